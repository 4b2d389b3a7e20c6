"""What a look-up reads: the entries that may be served, and those that may answer, with what sessions say of them."""

from collections.abc import Sequence

from kr.models import NO_RATINGS, Entry, Ratings
from kr.store import search
from kr.store.engine import Transaction
from kr.store.entries import COLUMNS, to_entry
from kr.store.sql import named

Found = tuple[Entry, Ratings, bool]
"""A live entry, its ratings, and whether the question is a known wording of it."""

_OF = "FROM ratings AS r WHERE r.entry_id = e.id AND r.revision = e.revision AND r.outcome ="
_RATED = (
    f"(SELECT count(*) {_OF} 'worked') AS worked, (SELECT count(*) {_OF} 'wrong') AS wrong, "
    f"EXISTS (SELECT 1 {_OF} 'wrong' AND r.session_id LIKE 'person:%') AS by_person, "
    f"(SELECT note {_OF} 'wrong' AND note IS NOT NULL ORDER BY at DESC LIMIT 1) AS note"
)
_PROVED = "SELECT w.entry_id FROM wordings AS w WHERE w.question_key = :question AND w.proved"
_FOUND = (
    f"SELECT {', '.join(f'e.{name}' for name in COLUMNS)}, {_RATED}, "
    f"(e.question_key = :question OR e.id IN ({_PROVED})) AS is_wording FROM entries AS e"
)


def served(tx: Transaction, keys: Sequence[str], *, topic: str, question: str, keywords: str) -> list[Found]:
    """Return the entries of the frameworks ``keys`` that have this topic, question, wording or keywords, each as its key."""
    listed, parameters = named("key", keys)
    where = (
        f"e.framework_key IN {listed} AND (e.topic_key = :topic "
        f"OR e.question_key = :question OR e.keywords_key = :keywords OR e.id IN ({_PROVED}))"
    )
    return _found(tx, where, topic=topic, question=question, keywords=keywords, **parameters)


def framework(tx: Transaction, keys: Sequence[str], *, question: str) -> list[Found]:
    """Return all live entries of the frameworks ``keys``."""
    listed, parameters = named("key", keys)
    return _found(tx, f"e.framework_key IN {listed}", question=question, **parameters)


def candidates(
    tx: Transaction, keys: Sequence[str], words: Sequence[str], *, most: int = 20
) -> list[tuple[Found, float]]:
    """Return the entries that share words with a request, with their ``bm25`` (higher is better), best first."""
    scores = search.rank(tx, keys, words, most=most)
    found = {it[0].id: it for it in _some(tx, [*scores])}
    return [(found[entry_id], score) for entry_id, score in scores.items() if entry_id in found]


def findings(tx: Transaction, keys: Sequence[str], *, most: int) -> list[Found]:
    """Return what agents and people wrote about the frameworks ``keys``, the last accessed first."""
    listed, parameters = named("key", keys)
    where = f"e.framework_key IN {listed} AND e.origin = 'finding' ORDER BY e.last_accessed DESC, e.id LIMIT :most"
    return _found(tx, where, most=most, **parameters)


def one(tx: Transaction, entry_id: str) -> Found | None:
    """Return the live entry of an id."""
    return next(iter(_some(tx, [entry_id])), None)


def count(tx: Transaction, keys: Sequence[str]) -> int:
    """Return how many live entries the frameworks have."""
    listed, parameters = named("key", keys)
    return int(tx.value(f"SELECT count(*) FROM entries WHERE framework_key IN {listed}", **parameters))


def _some(tx: Transaction, entry_ids: Sequence[str]) -> list[Found]:
    listed, parameters = named("id", entry_ids)
    return _found(tx, f"e.id IN {listed}", **parameters)


def _found(tx: Transaction, where: str, *, question: str = "", **parameters: object) -> list[Found]:
    found = list[Found]()
    for row in tx.rows(f"{_FOUND} WHERE {where}", question=question, **parameters):
        ratings = NO_RATINGS
        if row["worked"] or row["wrong"]:
            ratings = Ratings(row["worked"], row["wrong"], bool(row["by_person"]), row["note"])
        found.append((to_entry(row), ratings, bool(row["is_wording"])))
    return found


def counts(tx: Transaction, session_id: str, story_key: str) -> tuple[int, int]:
    """Return how many live entries there are, and the calls charged to a story: what every answer says."""
    charged = (
        "SELECT count(*) FROM source_calls WHERE session_id = :session AND story_key = :story AND charged"
    )
    [row] = tx.rows(
        f"SELECT (SELECT count(*) FROM entries), ({charged})", session=session_id, story=story_key
    )
    return row[0], row[1]
