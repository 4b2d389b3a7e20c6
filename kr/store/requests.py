"""The log of requests, the calls that they cost a story's budget, and what they nearly hit (SPEC 3.2, 3.4, 5)."""

import json
import sqlite3
import uuid
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal

from kr.store import times
from kr.store.process_ids import is_alive
from kr.store.session import Session, insert_into, json_list, texts_of
from kr.values import Related, Value


class RequestRow(Value):
    """One row of ``requests``. ``id`` is made by the caller (uuid4 hex); fields a bad request lacks are None."""

    id: str
    at: str
    mode: str | None
    status: str
    story_key: str | None = None
    session_id: str | None = None
    framework: str | None = None
    framework_version: str | None = None
    topic: str | None = None
    tier: str | None = None
    entry_id: str | None = None
    persona: str | None = None
    duration_ms: int | None = None
    budget_remaining: int | None = None
    question: str | None = None
    likelihood: float | None = None
    error: str | None = None
    """What went wrong, or what interrupted it."""


UNDER_WAY = "interrupted, or still under way"
"""The error of a request that has asked a source and has no answer yet: what a killed process leaves."""

_HAS_ENDED = f"SELECT 1 FROM requests WHERE id = :id AND error IS NOT '{UNDER_WAY}'"
_ENDING = ", ".join(f"{name} = excluded.{name}" for name in RequestRow.names() if name != "id")
_BEGIN = f"{insert_into('requests', RequestRow.names())} ON CONFLICT (id) DO NOTHING"
_RECORD = f"{insert_into('requests', RequestRow.names())} ON CONFLICT (id) DO UPDATE SET {_ENDING}"


class Requests:
    """Writes the log in the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def has_ended(self, request_id: str) -> bool:
        """Tell whether the row of a request says how it ended."""
        return self._session.row(_HAS_ENDED, id=request_id) is not None

    def begin(self, row: RequestRow) -> None:
        """Write the row that the calls of a request belong to, once."""
        self._session.execute(_BEGIN, row.fields() | {"status": "failure", "error": UNDER_WAY})

    def record(self, row: RequestRow) -> None:
        """Write how a request ended."""
        self._session.execute(_RECORD, row.fields())


class SourceCall(Value):
    """One row of ``source_calls``. ``duration_ms`` is a whole number; the request, if one is named, has its row."""

    request_id: str | None
    at: str
    source: str
    outcome: str
    session_id: str
    story_key: str
    duration_ms: int | None = None
    url: str | None = None
    reason: str | None = None
    charged: bool = False
    answer_tokens: int | None = None
    """How much there was to read in what the source answered (characters / 4)."""


class Reservation(Value):
    """The answer to a wish for one call. ``id`` is there exactly when it was granted.

    ``exhausted``: the story has spent its budget. ``in_flight``: others hold the rest; they may give it back.
    """

    outcome: Literal["granted", "exhausted", "in_flight"]
    id: str | None = None


_LONGEST_SLEEP = 3600.0
"""How long, in seconds, a living owner's expired reservation is kept: a process number is no proof for ever."""

RESERVATION_SECONDS = 15.0
"""How long a reservation lives unless its owner renews it: what a killed process takes to give it back."""

_OF_STORY = "session_id = :session_id AND story_key = :story_key"
_SPENT = f"SELECT count(*) FROM source_calls WHERE {_OF_STORY} AND charged = 1"
_RESERVED = f"SELECT count(*) FROM reservations WHERE {_OF_STORY}"
_HELD = f"SELECT id, owner, expires_at FROM reservations WHERE expires_at <= :moment OR ({_OF_STORY})"
_RESERVE = insert_into("reservations", ("id", "session_id", "story_key", "owner", "expires_at"))
_RELEASE = "DELETE FROM reservations WHERE id = :id"
_RELEASE_ALL = "DELETE FROM reservations WHERE owner = :owner"
_RENEW = "UPDATE reservations SET expires_at = :expires_at WHERE owner = :owner"
_RECORD_CALL = insert_into("source_calls", SourceCall.names())


class Ledger:
    """Reads and writes the ledger in the caller's transaction; only ``spent`` may run in a read."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def spent(self, session_id: str, story_key: str) -> int:
        """Return the calls charged to a story, and nothing else."""
        return int(self._session.value(_SPENT, session_id=session_id, story_key=story_key))

    def reserve(
        self,
        session_id: str,
        story_key: str,
        *,
        limit: int | None,
        owner: str,
        now: datetime,
        ttl: float = RESERVATION_SECONDS,
    ) -> Reservation:
        """Reserve one call of a story's ``limit`` (None: the invocation has a budget of its own).

        ``owner`` is one invocation's own text (``kr.store.process_ids``); ``ttl`` is in seconds. Dead owners'
        reservations go at once; an expired one stays while its owner is known to live (it may only have slept).
        """
        self._drop_dead(session_id, story_key, now)
        if limit is not None:
            spent = self.spent(session_id, story_key)
            if spent >= limit:
                return Reservation(outcome="exhausted")
            if spent + self.reserved(session_id, story_key) >= limit:
                return Reservation(outcome="in_flight")
        reservation = uuid.uuid4().hex
        self._session.execute(
            _RESERVE,
            id=reservation,
            session_id=session_id,
            story_key=story_key,
            owner=owner,
            expires_at=times.to_text(now + timedelta(seconds=ttl)),
        )
        return Reservation(outcome="granted", id=reservation)

    def _drop_dead(self, session_id: str, story_key: str, now: datetime) -> None:
        moment, oldest = times.to_text(now), times.to_text(now - timedelta(seconds=_LONGEST_SLEEP))
        for row in self._session.rows(_HELD, moment=moment, session_id=session_id, story_key=story_key):
            alive = is_alive(row["owner"])
            has_expired = row["expires_at"] <= moment
            if alive is False or (has_expired and (alive is None or row["expires_at"] <= oldest)):
                self.release(row["id"])

    def reserved(self, session_id: str, story_key: str) -> int:
        """Return the reservations of a story; expired ones leave with the next ``reserve``."""
        return int(self._session.value(_RESERVED, session_id=session_id, story_key=story_key))

    def settle(self, reservation: str | None, call: SourceCall) -> None:
        """Write a call down, and give back what was held for it.

        A charged call counts even if its reservation has expired.
        """
        if reservation is not None:
            self.release(reservation)
        self.record(call)

    def release(self, reservation: str) -> None:
        """Give a reserved call back; one that is gone already is no error."""
        self._session.execute(_RELEASE, id=reservation)

    def release_all(self, owner: str) -> int:
        """Give back everything that an owner holds; return how many."""
        return self._session.execute(_RELEASE_ALL, owner=owner)

    def renew(self, owner: str, *, now: datetime, ttl: float = RESERVATION_SECONDS) -> int:
        """Prolong an owner's reservations; return how many. One that was taken meanwhile is gone."""
        expires_at = times.to_text(now + timedelta(seconds=ttl))
        return self._session.execute(_RENEW, owner=owner, expires_at=expires_at)

    def record(self, call: SourceCall) -> None:
        """Write one row of ``source_calls`` as it is."""
        self._session.execute(_RECORD_CALL, call.fields())


class NearMiss(Value):
    """A request that no entry answered for sure, with the entries that were near it: id and likelihood, best first.

    ``entry_id`` is what its own research wrote, where it wrote something.
    """

    request_id: str
    at: str
    framework: str
    topic: str
    question: str
    tags: tuple[str, ...]
    status: str
    entry_id: str | None
    related: tuple[tuple[str, float], ...]


_KEEP_NEAR = insert_into("near_misses", ("request_id", "tags", "related"))
_FOUND = (
    "SELECT near.request_id, asked.at, coalesce(asked.framework, '') AS framework, coalesce(asked.topic, '') AS topic, "
    "coalesce(asked.question, '') AS question, near.tags, asked.status, asked.entry_id, near.related "
    "FROM near_misses AS near JOIN requests AS asked ON asked.id = near.request_id "
    "WHERE {} ORDER BY asked.at DESC, asked.id"
)
_OPEN, _NEAR = _FOUND.format("near.settled_at IS NULL"), _FOUND.format("near.request_id = :id")
_ALIKE = (
    "SELECT request_id FROM near_misses JOIN requests ON id = request_id "
    "WHERE settled_at IS NULL AND topic = :topic AND question = :question"
)
_SETTLE = (
    "UPDATE near_misses SET answered_by = :answered_by, settled_at = :at "
    "WHERE request_id IN (SELECT value FROM json_each(:ids))"
)


class NearMisses:
    """Keeps near misses in the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def keep(self, request_id: str, tags: Sequence[str], related: Sequence[Related]) -> None:
        """Keep what was near a request, whose row must be there, best first."""
        near = [{"id": it.id, "likelihood": round(it.likelihood, 4)} for it in related]
        self._session.execute(
            _KEEP_NEAR, request_id=request_id, tags=json_list(tags), related=json_list(near)
        )

    def open(self) -> list[NearMiss]:
        """Return those that nobody has settled, the newest first."""
        return [_to_near_miss(row) for row in self._session.rows(_OPEN)]

    def get(self, request_id: str) -> NearMiss | None:
        """Return what was near a request, settled or not."""
        row = self._session.row(_NEAR, id=request_id)
        return None if row is None else _to_near_miss(row)

    def settle_alike(self, topic: str, question: str, answered_by: str, *, at: str) -> None:
        """Note which entry answers every open request of these very words: an agent has found it among those near."""
        alike = self._session.rows(_ALIKE, topic=topic, question=question)
        self.settle([row["request_id"] for row in alike], answered_by, at=at)

    def settle(self, request_ids: Sequence[str], answered_by: str | None, *, at: str) -> None:
        """Note which entry answers these requests, or that none of those near them does. ``at`` is stored text."""
        self._session.execute(_SETTLE, ids=json_list(request_ids), answered_by=answered_by, at=at)


def _to_near_miss(row: sqlite3.Row) -> NearMiss:
    columns = {name: row[name] for name in NearMiss.names()}
    near = tuple((it["id"], it["likelihood"]) for it in json.loads(columns["related"]))
    return NearMiss(**{**columns, "tags": texts_of(columns["tags"]), "related": near})
