"""What every request does: look entries up, by the keys by which they are compared, note an access, and log itself (table ``requests``)."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, get_args

from kr.models import NO_RATINGS, Confidence, Entry, Origin, Ratings
from kr.store import search
from kr.store.engine import Row, Transaction, named, texts_of
from kr.text import beginning, fold, keywords
from kr.times import after

COLUMNS = tuple(field.name for field in fields(Entry))
"""The columns that make an ``Entry``."""
KEYS = ("framework_key", "topic_key", "major", "question_key", "keywords_key")
IS_GIVEN = "gone_at IS NULL AND retired_at IS NULL AND superseded_by IS NULL AND (held IS NULL OR approved_at IS NOT NULL)"
"""Which lessons are given to agents."""
UNDER_WAY = "interrupted, or still under way"
"""The error of a request that has asked a source and has no answer yet: what a killed process leaves."""

_CONFIDENCES, _ORIGINS = get_args(Confidence), get_args(Origin)
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

Found = tuple[Entry, Ratings, bool]
"""A live entry, its ratings, and whether the question is a known wording of it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRow:
    """One row of ``requests``. ``id`` is made by the caller (32 hexadecimal digits); fields that a bad request lacks are None."""

    id: str
    at: str
    mode: str | None
    status: str
    story_key: str | None = None
    session_id: str | None = None
    framework: str | None = None
    framework_version: str | None = None
    topic: str | None = None
    question: str | None = None
    tags: str | None = None
    """A JSON list."""
    tier: str | None = None
    entry_id: str | None = None
    persona: str | None = None
    project: str | None = None
    duration_ms: int | None = None
    budget_remaining: int | None = None
    answer_tokens: int | None = None
    """How much the caller was given to read (characters / 4)."""
    score: float | None = None
    candidates: str | None = None
    """The entries that were offered, best first, as a JSON list of ``{id, score}``."""
    error: str | None = None
    """What went wrong, or what interrupted it."""


def topic_key(topic: str) -> str:
    return " ".join(fold(topic).split())


def question_key(question: str) -> str:
    """Return the form in which questions are compared: folded, on one line, without the mark at its end."""
    return " ".join(fold(question).split()).rstrip(" ?？!.。")


def keywords_key(topic: str) -> str:
    """Return the stems of a topic's keywords in their order."""
    return " ".join(keywords(topic))


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
    listed, parameters = named("id", scores)
    found = {it[0].id: it for it in _found(tx, f"e.id IN {listed}", **parameters)}
    return [(found[entry_id], score) for entry_id, score in scores.items() if entry_id in found]


def findings(tx: Transaction, keys: Sequence[str], *, most: int) -> list[Found]:
    """Return what agents and people wrote about the frameworks ``keys``, the last accessed first."""
    listed, parameters = named("key", keys)
    where = f"e.framework_key IN {listed} AND e.origin = 'finding' ORDER BY e.last_accessed DESC, e.id LIMIT :most"
    return _found(tx, where, most=most, **parameters)


def one(tx: Transaction, entry_id: str) -> Found | None:
    """Return the live entry of an id."""
    return next(iter(_found(tx, "e.id = :id", id=entry_id)), None)


def count(tx: Transaction, keys: Sequence[str]) -> int:
    """Return how many live entries the frameworks have."""
    listed, parameters = named("key", keys)
    return int(tx.value(f"SELECT count(*) FROM entries WHERE framework_key IN {listed}", **parameters))


def lessons(tx: Transaction, words: Sequence[str], *, most: int, frameworks: Sequence[str] = ()) -> list[Row]:
    """Return ``id, phase, summary, ref`` of the lessons that agents are given and that hold a word, most words first.

    With ``frameworks``, those that carry one of these keys as a tag.
    """
    named = "replace(replace(lower(tags), '-', ''), '.', '') LIKE :name"
    is_named = " OR ".join(f"{named}{number}" for number in range(len(frameworks)))
    where = f"{IS_GIVEN} AND ({is_named})" if frameworks else IS_GIVEN
    rows = tx.rows(
        f"SELECT id, phase, summary, tags, ref FROM lessons WHERE {where} ORDER BY date DESC, id",
        **{f"name{number}": f'%"{name}"%' for number, name in enumerate(frameworks)},
    )
    beginnings = [beginning(word) for word in words]
    found = []
    for row in rows:
        line = f"{row['summary']} {row['tags']} {row['ref'] or ''}".lower()
        if number := sum(word in line for word in beginnings):
            found.append((number, row))
    return [row for _, row in sorted(found, key=lambda it: -it[0])[:most]]


def _found(tx: Transaction, where: str, *, question: str = "", **parameters: object) -> list[Found]:
    found = list[Found]()
    for row in tx.rows(f"{_FOUND} WHERE {where}", question=question, **parameters):
        ratings = NO_RATINGS
        if row["worked"] or row["wrong"]:
            ratings = Ratings(row["worked"], row["wrong"], bool(row["by_person"]), row["note"])
        found.append((to_entry(row), ratings, bool(row["is_wording"])))
    return found


def text_of(tx: Transaction, sha256: str | None) -> str | None:
    return texts(tx, [sha256]).get(sha256)


def texts(tx: Transaction, hashes: Iterable[str | None]) -> dict[str | None, str]:
    """Return those of the reports' texts that are kept, by their hash."""
    listed, parameters = named("sha256", {it for it in hashes if it is not None})
    rows = tx.rows(f"SELECT sha256, text FROM report_texts WHERE sha256 IN {listed}", **parameters)
    return {row["sha256"]: row["text"] for row in rows}


def settled(tx: Transaction, entry: Entry) -> str | None:
    """Return an entry's text where its file holds it; else None."""
    text = text_of(tx, entry.sha256)
    return text if text is not None and tx.files.read(entry.path) == text.encode() else None


def counts(tx: Transaction, session_id: str, story_key: str) -> tuple[int, int]:
    """Return how many live entries there are, and the calls charged to a story: what every answer says."""
    charged = (
        "SELECT count(*) FROM source_calls WHERE session_id = :session AND story_key = :story AND charged"
    )
    [row] = tx.rows(
        f"SELECT (SELECT count(*) FROM entries), ({charged})", session=session_id, story=story_key
    )
    return row[0], row[1]


def to_entry(row: Row, *, status: str | None = None) -> Entry:
    """Read a row; what plain SQL wrote and kr doesn't know counts as stale, and as of low confidence."""
    columns: dict[str, Any] = {name: row[name] for name in COLUMNS}
    columns["tags"] = texts_of(columns["tags"])
    columns["status"] = "fresh" if (status or columns["status"]) == "fresh" else "stale"
    if columns["confidence"] not in _CONFIDENCES:
        columns["confidence"] = "low"
    if columns["origin"] not in _ORIGINS:
        columns["origin"] = "imported"
    return Entry(**columns)


def next_access(tx: Transaction, now: datetime) -> str:
    """Return the time of an access now: later than every other that is committed, though the clock jumped back."""
    return after(now, tx.value("SELECT max(last_accessed) FROM entries") or "")


def touch(tx: Transaction, entry_id: str, now: datetime) -> str | None:
    """Record an access and return its time; None when the entry is gone."""
    accessed = next_access(tx, now)
    changed = tx.execute(
        "UPDATE entries SET last_accessed = :accessed WHERE id = :id", id=entry_id, accessed=accessed
    )
    return accessed if changed else None


def begin_request(tx: Transaction, row: RequestRow) -> None:
    """Note that a request asks a source, so that it leaves a row even when its process is killed."""
    if tx.row("SELECT 1 FROM requests WHERE id = :id", id=row.id) is None:
        tx.insert("requests", replace(row, status="failure", error=UNDER_WAY))


def log_request(tx: Transaction, row: RequestRow) -> None:
    """Write a request down, over what was noted when it began."""
    offered = json.loads(row.candidates or "[]")
    tx.insert("requests", row, "id", best_candidate=offered[0]["id"] if offered else None)


def has_ended(tx: Transaction, request_id: str) -> bool:
    row = tx.row("SELECT error FROM requests WHERE id = :id", id=request_id)
    return row is not None and row["error"] != UNDER_WAY
