"""What requests were offered and have not taken, and what they were given (table ``requests``)."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

from kr.store.engine import Row, Transaction
from kr.store.sql import named, record_of, texts_of


@dataclass(frozen=True, slots=True)
class Need:
    """What a request says of what it needs."""

    topic: str
    tags: tuple[str, ...]
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A request to which candidates were offered: their ids, best first. ``entry_id``: what its research wrote."""

    id: str
    at: str
    framework: str
    topic: str
    question: str
    tags: tuple[str, ...]
    entry_id: str | None
    candidates: tuple[str, ...]


_IS_OPEN = "candidates IS NOT NULL AND settled_at IS NULL"


def given_before(tx: Transaction, session_id: str, framework: str) -> tuple[int, int]:
    """Return what a session was given about a framework since it last saved something about it: tokens, and how many ms that took."""
    row = tx.row(
        "SELECT coalesce(sum(answer_tokens), 0), coalesce(sum(duration_ms), 0) FROM requests "
        "WHERE session_id = :session AND mode = 'research' AND framework = :framework AND at > coalesce("
        "(SELECT max(at) FROM requests WHERE session_id = :session AND mode = 'save' AND framework = :framework), '')",
        session=session_id,
        framework=framework,
    )
    return (row[0], row[1]) if row else (0, 0)


def open_offers(tx: Transaction) -> list[Unanswered]:
    """Return the requests whose candidates nobody has chosen from, the newest first."""
    return [
        _unanswered(row) for row in tx.rows(f"SELECT * FROM requests WHERE {_IS_OPEN} ORDER BY at DESC, id")
    ]


def get_offer(tx: Transaction, request_id: str) -> Unanswered | None:
    row = tx.row("SELECT * FROM requests WHERE id = :id AND candidates IS NOT NULL", id=request_id)
    return None if row is None else _unanswered(row)


def given_to(tx: Transaction, session_id: str, entry_id: str) -> dict[str, Need]:
    """Return the needs for which a session was given an entry's report and asked no further, by the ids of their requests."""
    rows = tx.rows(
        "SELECT id, topic, tags, question FROM requests AS asked WHERE session_id = :session AND status = 'candidates' "
        "AND settled_at IS NULL AND best_candidate = :entry AND NOT EXISTS (SELECT 1 FROM requests AS again "
        "WHERE again.session_id = asked.session_id AND again.question = asked.question AND again.at > asked.at)",
        session=session_id,
        entry=entry_id,
    )
    return {row["id"]: Need(row["topic"], texts_of(row["tags"]), row["question"]) for row in rows}


def take_offers(tx: Transaction, request_ids: Sequence[str], entry_id: str, *, at: str) -> None:
    """Note that the report that these requests were given worked: they were answered from the cache."""
    ids, parameters = named("id", request_ids)
    tx.execute(
        "UPDATE requests SET answered_by = :entry, entry_id = :entry, tier = 'use', settled_at = :at "
        f"WHERE id IN {ids}",
        entry=entry_id,
        at=at,
        **parameters,
    )


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


def _unanswered(row: Row) -> Unanswered:
    offered = tuple(it["id"] for it in json.loads(row["candidates"]))
    return record_of(Unanswered, row, tags=texts_of(row["tags"]), candidates=offered)
