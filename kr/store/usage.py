"""How entries are used and what is said of them: wordings, ratings, offers that wait for a choice, findings that wait for a person.

Wordings and ratings belong to the id of an entry, and so stay with it through the archive and back. The numbers behind ``kr stats`` are
counted here too, most of them by the public views.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from kr.models import Entry, Outcome
from kr.store import entries
from kr.store.engine import Transaction, named, record_of, texts_of
from kr.store.lookup import RequestRow, question_key

MOST_WORDINGS = 20
"""How many wordings an entry keeps: the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """How a request that an entry answers worded its need. One that is ``proved`` serves by itself. ``at`` is stored text."""

    at: str
    topic: str
    tags: tuple[str, ...]
    question: str
    session_id: str | None = None
    proved: bool = False


def wordings_of(tx: Transaction, entry_id: str) -> list[Wording]:
    """Return the wordings of an id, oldest first."""
    return [
        record_of(Wording, row, tags=texts_of(row["tags"]), proved=bool(row["proved"]))
        for row in tx.rows("SELECT * FROM wordings WHERE entry_id = :id ORDER BY id", id=entry_id)
    ]


def keep_wording(tx: Transaction, entry: Entry, wording: Wording) -> None:
    """Keep how a request worded an entry's need, and have the entry found by it.

    It is proved where the caller says so, or once two sessions used the entry for it.
    """
    key = question_key(wording.question)
    if key == question_key(entry.question or ""):
        return
    known = tx.row(
        "SELECT id, session_id, proved FROM wordings WHERE entry_id = :id AND question_key = :key",
        id=entry.id,
        key=key,
    )
    if known is not None:
        if not known["proved"] and (wording.proved or known["session_id"] != wording.session_id):
            tx.execute("UPDATE wordings SET proved = true WHERE id = :id", id=known["id"])
        return
    tx.insert("wordings", wording, entry_id=entry.id, question_key=key)
    tx.execute(
        "DELETE FROM wordings WHERE entry_id = :id AND id NOT IN "
        "(SELECT id FROM wordings WHERE entry_id = :id ORDER BY id DESC LIMIT :most)",
        id=entry.id,
        most=MOST_WORDINGS,
    )
    entries.index_again(tx, entry.id)


def prove_wording(tx: Transaction, entry_id: str, question: str) -> None:
    """Have a wording serve by itself: the entry worked for who asked so."""
    changed = "UPDATE wordings SET proved = true WHERE entry_id = :id AND question_key = :question"
    tx.execute(changed, id=entry_id, question=question_key(question))


def doubt_wordings(tx: Transaction, entry_id: str) -> None:
    """Have no wording of an entry serve by itself any more, until somebody confirms it anew: they still rank."""
    tx.execute("UPDATE wordings SET proved = false WHERE entry_id = :id", id=entry_id)


def forget_wordings(tx: Transaction, entry: Entry, session_id: str) -> None:
    """Delete the wordings of a session for which the entry was wrong."""
    deleted = "DELETE FROM wordings WHERE entry_id = :id AND session_id = :session"
    if tx.execute(deleted, id=entry.id, session=session_id):
        entries.index_again(tx, entry.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """One row of ``ratings``: what a session says of an entry's text. ``revision`` is the text's number."""

    entry_id: str
    revision: int
    session_id: str
    story_key: str | None
    outcome: Outcome
    note: str | None
    at: str


def rate(tx: Transaction, rating: Rating) -> None:
    """Keep a rating. A session counts once for a text, by its last word."""
    tx.insert("ratings", rating, "entry_id", "revision", "session_id")


def ratings_of(tx: Transaction, entry: Entry) -> list[Rating]:
    """Return what was said of an entry's current text, oldest first."""
    rows = tx.rows(
        "SELECT * FROM ratings WHERE entry_id = :id AND revision = :revision ORDER BY at",
        id=entry.id,
        revision=entry.revision,
    )
    return [record_of(Rating, row) for row in rows]


def rated_wrong(tx: Transaction) -> list[str]:
    """Return the live entries of which more sessions say that they are wrong than that they worked, the last said first."""
    rows = tx.rows(
        "SELECT e.id FROM entries AS e JOIN ratings AS r ON r.entry_id = e.id AND r.revision = e.revision "
        "GROUP BY e.id HAVING count(*) FILTER (WHERE r.outcome = 'wrong') > count(*) FILTER (WHERE r.outcome = 'worked') "
        "ORDER BY max(r.at) DESC"
    )
    return [row[0] for row in rows]


@dataclass(frozen=True, slots=True)
class Quarantined:
    """A finding that waits for a person, served to nobody.

    ``request`` is the finding as it was handed over, without its secrets; ``reasons`` say why it waits.
    """

    id: str
    at: str
    framework: str
    question: str
    reasons: tuple[str, ...]
    request: dict[str, Any]
    written_by: str


def quarantine(tx: Transaction, finding: Quarantined) -> None:
    """Have a finding wait; one that waits already stays as it is."""
    if not quarantined(tx, finding.id):
        tx.insert("quarantine", finding, request=json.dumps(finding.request, ensure_ascii=False))


def quarantined(tx: Transaction, finding_id: str | None = None) -> list[Quarantined]:
    """Return what waits under an id, or all that waits, the oldest first."""
    where = "" if finding_id is None else "WHERE id = :id"
    rows = tx.rows(f"SELECT * FROM quarantine {where} ORDER BY at, id", id=finding_id)
    return [
        record_of(Quarantined, row, reasons=texts_of(row["reasons"]), request=json.loads(row["request"]))
        for row in rows
    ]


def release(tx: Transaction, finding_id: str) -> None:
    tx.execute("DELETE FROM quarantine WHERE id = :id", id=finding_id)


_IS_OPEN = "candidates IS NOT NULL AND settled_at IS NULL"


def given_before(tx: Transaction, session_id: str, framework: str) -> tuple[int, int]:
    """Return what a session was given about a framework since it last saved something about it: tokens, and how many ms that took."""
    row = tx.rows(
        "SELECT coalesce(sum(answer_tokens), 0), coalesce(sum(duration_ms), 0) FROM requests "
        "WHERE session_id = :session AND mode = 'research' AND framework = :framework AND at > coalesce("
        "(SELECT max(at) FROM requests WHERE session_id = :session AND mode = 'save' AND framework = :framework), '')",
        session=session_id,
        framework=framework,
    )[0]
    return row[0], row[1]


def open_offers(tx: Transaction) -> list[RequestRow]:
    """Return the requests whose candidates nobody has chosen from, the newest first."""
    rows = tx.rows(f"SELECT * FROM requests WHERE {_IS_OPEN} ORDER BY at DESC, id")
    return [record_of(RequestRow, row) for row in rows]


def offer(tx: Transaction, request_id: str) -> RequestRow | None:
    row = tx.row("SELECT * FROM requests WHERE id = :id AND candidates IS NOT NULL", id=request_id)
    return None if row is None else record_of(RequestRow, row)


def take_offers(tx: Transaction, session_id: str, entry_id: str, *, at: str) -> list[Wording]:
    """Note that the report of an entry worked for a session that was given it and asked no further; return how it had asked.

    These requests were answered from the cache.
    """
    rows = tx.rows(
        "SELECT id, topic, tags, question FROM requests AS asked WHERE session_id = :session AND status = 'candidates' "
        "AND settled_at IS NULL AND best_candidate = :entry AND NOT EXISTS (SELECT 1 FROM requests AS again "
        "WHERE again.session_id = asked.session_id AND again.question = asked.question AND again.at > asked.at)",
        session=session_id,
        entry=entry_id,
    )
    ids, parameters = named("id", [row["id"] for row in rows])
    tx.execute(
        "UPDATE requests SET answered_by = :entry, entry_id = :entry, tier = 'use', settled_at = :at "
        f"WHERE id IN {ids}",
        entry=entry_id,
        at=at,
        **parameters,
    )
    return [
        Wording(
            at=at,
            topic=row["topic"],
            tags=texts_of(row["tags"]),
            question=row["question"],
            session_id=session_id,
        )
        for row in rows
    ]


def settle_alike(tx: Transaction, framework: str, question: str, answered_by: str, *, at: str) -> None:
    """Note which entry answers every open request of this very question: somebody took it."""
    tx.execute(
        f"UPDATE requests SET answered_by = :answered_by, settled_at = :at WHERE {_IS_OPEN} "
        "AND framework = :framework AND question = :question",
        answered_by=answered_by,
        at=at,
        framework=framework,
        question=question,
    )


def settle_offers(tx: Transaction, request_ids: Sequence[str], answered_by: str | None, *, at: str) -> None:
    """Note which entry answers these requests, or that none of those offered does. ``at`` is stored text."""
    ids, parameters = named("id", request_ids)
    tx.execute(
        f"UPDATE requests SET answered_by = :answered_by, settled_at = :at WHERE {_IS_OPEN} AND id IN {ids}",
        answered_by=answered_by,
        at=at,
        **parameters,
    )


# What finding out had cost, each time that somebody did: of a research its sources' answers and its time, of a finding what its
# session had been given before it saved. What was not measured has no row. Of the documentation that is installed only what the
# asker was given counts: nobody else would have read all the passages that kr weighed.
_COSTS = """
SELECT r.entry_id, r.at, sum(CASE WHEN c.source = 'local_docs' AND coalesce(r.answer_tokens, 0) < c.answer_tokens
  THEN coalesce(r.answer_tokens, 0) ELSE c.answer_tokens END) AS tokens, coalesce(r.duration_ms, 0) AS ms
FROM requests AS r JOIN source_calls AS c ON c.request_id = r.id
WHERE r.mode = 'research' AND r.entry_id IS NOT NULL AND c.answer_tokens > 0
GROUP BY r.id, r.entry_id, r.at, r.duration_ms
UNION ALL
SELECT entry_id, at, answer_tokens, coalesce(duration_ms, 0)
FROM requests WHERE mode = 'save' AND status = 'saved' AND answer_tokens > 0
"""
# What a session was offered, with the best candidate's report. ``chosen``: it asked for that entry by its id then; ``worked``: it
# said of the report that it worked.
_OFFERED = """
SELECT o.id, o.at, o.session_id, o.question, o.best_candidate AS entry_id,
  coalesce(o.duration_ms, 0) AS ms, o.answer_tokens AS tokens
FROM requests AS o WHERE o.mode = 'research' AND o.status = 'candidates' AND o.answer_tokens > 0
"""
# Answers from the cache: hits, which cost what was offered before as well, and offered reports that were used as they were.
_ANSWERS = """
SELECT h.id, h.at, h.entry_id, coalesce(h.duration_ms, 0) AS ms, coalesce(h.answer_tokens, 0) + (
  SELECT coalesce(sum(o.tokens), 0) FROM offered AS o WHERE h.tier = 'use' AND o.session_id = h.session_id
  AND o.question = h.question AND o.entry_id = h.entry_id AND o.at < h.at) AS tokens
FROM requests AS h WHERE h.mode = 'research' AND h.status = 'cache-hit'
UNION ALL
SELECT o.id, o.at, o.entry_id, o.ms, o.tokens FROM offered AS o
WHERE EXISTS (SELECT 1 FROM ratings AS w WHERE w.session_id = o.session_id AND w.entry_id = o.entry_id
  AND w.outcome = 'worked' AND w.at > o.at)
AND NOT EXISTS (SELECT 1 FROM requests AS h WHERE h.session_id = o.session_id AND h.tier = 'use'
  AND h.status = 'cache-hit' AND h.question = o.question AND h.entry_id = o.entry_id)
"""
_SPARED = f"""
WITH costs AS ({_COSTS}), offered AS ({_OFFERED}), answers AS ({_ANSWERS}), spared AS (
  SELECT a.at, max(c.tokens) - a.tokens AS tokens, max(c.ms) - a.ms AS ms
  FROM answers AS a JOIN costs AS c ON c.entry_id = a.entry_id AND c.at < a.at GROUP BY a.id, a.at, a.tokens, a.ms)
SELECT substr(at, 1, 10) AS day, count(*) AS answers, sum(CASE WHEN tokens > 0 THEN tokens ELSE 0 END) AS tokens,
  sum(CASE WHEN ms > 0 THEN ms ELSE 0 END) AS milliseconds
FROM spared GROUP BY day ORDER BY day
"""


def view(tx: Transaction, name: str) -> list[dict[str, Any]]:
    """Return the rows of a public view."""
    return _rows(tx, f"SELECT * FROM {name}")


def calls_by_day(tx: Transaction, since: str) -> dict[str, dict[str, int]]:
    """Count calls to sources by UTC day from ``since`` (a date) on: ``charged`` and ``failed`` ones."""
    rows = _rows(
        tx,
        "SELECT substr(at, 1, 10) AS day, count(*) FILTER (WHERE charged) AS charged, "
        "count(*) FILTER (WHERE outcome <> 'success') AS failed FROM source_calls WHERE at >= :since GROUP BY substr(at, 1, 10)",
        since=since,
    )
    return {row.pop("day"): row for row in rows}


def spared_by_day(tx: Transaction) -> list[dict[str, Any]]:
    """Sum up what answers from the cache spared: ``{day, answers, tokens, milliseconds}``, the oldest first.

    ``answers`` are those of which it is known what finding out had cost; of several times the dearest counts. An
    answer that is longer than that spares nothing.
    """
    return _rows(tx, _SPARED)


def number_by(
    tx: Transaction,
    column: str,
    table: Literal["entries", "archived_entries", "requests", "workflows"],
) -> dict[str, int]:
    """Count the rows of a table by a column, most first; where there is none: ``none``."""
    rows = tx.rows(
        f"SELECT coalesce({column}, 'none') AS name, count(*) AS number FROM {table} "
        f"GROUP BY {column} ORDER BY number DESC, {column}"
    )
    return {row["name"]: row["number"] for row in rows}


def _rows(tx: Transaction, statement: str, **parameters: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in tx.rows(statement, **parameters)]
