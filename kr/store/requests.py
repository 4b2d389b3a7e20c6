"""The log of requests, the calls that they cost a story's budget, what they nearly hit, and how they worded their needs.

SPEC 3.2, 3.4 and 5. Wordings (table ``wordings``) belong to the id of the entry that answered, and so stay with it
through the archive and back.
"""

import json
import sqlite3
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from kr import naming
from kr.freshness import to_text
from kr.store.lock import is_alive
from kr.store.session import Part, insert_into, json_list, texts_of, upsert_into
from kr.values import Entry, NamedTuple, Related, Value


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
_BEGIN = f"{insert_into('requests', RequestRow.names())} ON CONFLICT (id) DO NOTHING"
_RECORD = upsert_into("requests", RequestRow.names(), "id")


class Requests(Part):
    def has_ended(self, request_id: str) -> bool:
        return self._session.row(_HAS_ENDED, id=request_id) is not None

    def begin(self, row: RequestRow) -> None:
        self._session.execute(_BEGIN, row.fields() | {"status": "failure", "error": UNDER_WAY})

    def record(self, row: RequestRow) -> None:
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
    """The answer to a wish for a call; granted it has an ``id``. ``in_flight``: others hold the rest, and may give it back."""

    outcome: Literal["granted", "exhausted", "in_flight"]
    id: str | None = None


_LONGEST_SLEEP = 3600.0
"""How long, in seconds, a living owner's expired reservation is kept: a process number is no proof for ever."""

RESERVATION_SECONDS = 15.0
"""How long a reservation lives unless its owner renews it: what a killed process takes to give it back."""

_OF_STORY = "session_id = :session_id AND story_key = :story_key"
_SPENT = f"SELECT count(*) FROM source_calls WHERE {_OF_STORY} AND charged = 1"
_COUNTED = f"SELECT (SELECT entries FROM entry_count), ({_SPENT})"
_RESERVED = f"SELECT count(*) FROM reservations WHERE {_OF_STORY}"
_HELD = f"SELECT id, owner, expires_at FROM reservations WHERE expires_at <= :moment OR ({_OF_STORY})"
_RESERVE = insert_into("reservations", ("id", "session_id", "story_key", "owner", "expires_at"))
_RELEASE = "DELETE FROM reservations WHERE id = :id"
_RELEASE_ALL = "DELETE FROM reservations WHERE owner = :owner"
_RENEW = "UPDATE reservations SET expires_at = :expires_at WHERE owner = :owner"
_RECORD_CALL = insert_into("source_calls", SourceCall.names())


class Ledger(Part):
    """Reads and writes the ledger in the caller's transaction; only ``spent`` and ``counted`` may run in a read."""

    def counted(self, session_id: str, story_key: str) -> tuple[int, int]:
        """Return how many live entries there are, and the calls charged to a story: what every answer tells."""
        row = self._session.row(_COUNTED, session_id=session_id, story_key=story_key)
        return (row[0], row[1]) if row is not None else (0, 0)

    def spent(self, session_id: str, story_key: str) -> int:
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
        """Reserve a call of a story's ``limit`` (None: a budget of its own) for ``owner``, for ``ttl`` seconds.

        Dead owners' reservations go at once; an expired one stays while its owner is known to live (it may only have slept).
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
            expires_at=to_text(now + timedelta(seconds=ttl)),
        )
        return Reservation(outcome="granted", id=reservation)

    def _drop_dead(self, session_id: str, story_key: str, now: datetime) -> None:
        moment, oldest = to_text(now), to_text(now - timedelta(seconds=_LONGEST_SLEEP))
        for row in self._session.rows(_HELD, moment=moment, session_id=session_id, story_key=story_key):
            alive = is_alive(row["owner"])
            has_expired = row["expires_at"] <= moment
            if alive is False or (has_expired and (alive is None or row["expires_at"] <= oldest)):
                self.release(row["id"])

    def reserved(self, session_id: str, story_key: str) -> int:
        """Return the reservations of a story; expired ones leave with the next ``reserve``."""
        return int(self._session.value(_RESERVED, session_id=session_id, story_key=story_key))

    def settle(self, reservation: str | None, call: SourceCall) -> None:
        """Write a call down, and give back what was held for it. It counts even if its reservation has expired."""
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
        expires_at = to_text(now + timedelta(seconds=ttl))
        return self._session.execute(_RENEW, owner=owner, expires_at=expires_at)

    def record(self, call: SourceCall) -> None:
        self._session.execute(_RECORD_CALL, call.fields())


class NearMiss(Value):
    """A request that no entry answered for sure, with those near it (id, likelihood), best first. ``entry_id``: what its research wrote."""

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


class NearMisses(Part):
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


class Need(NamedTuple):
    """What a request says of what it needs."""

    topic: str
    tags: tuple[str, ...]
    question: str


class Wording(Value):
    """One row of ``wordings``: how a request that an entry answered worded its need."""

    entry_id: str
    at: str
    topic: str
    tags: tuple[str, ...]
    question: str
    session_id: str | None = None


MOST = 20
"""How many an entry keeps: the newest."""

_COLUMNS = ", ".join(Wording.names())
_OF = f"SELECT {_COLUMNS} FROM wordings WHERE entry_id IN (SELECT value FROM json_each(:ids)) ORDER BY id"
_OF_ONE = "SELECT topic, tags, question FROM wordings WHERE entry_id = :entry_id"
_ALL = f"SELECT {_COLUMNS} FROM wordings ORDER BY id"
_KEEP = insert_into("wordings", Wording.names())
_DROP_OLD = (
    "DELETE FROM wordings WHERE entry_id = :entry_id AND id NOT IN "
    f"(SELECT id FROM wordings WHERE entry_id = :entry_id ORDER BY id DESC LIMIT {MOST})"
)
_KEYS_ARE_DUE = "UPDATE entries SET keys_version = NULL WHERE id = :entry_id"
_TAKE = "DELETE FROM wordings WHERE entry_id = :entry_id AND topic = :topic AND question = :question"
_FORGET = "DELETE FROM wordings WHERE entry_id = :entry_id"


class Wordings(Part):
    def of(self, entry_ids: Iterable[str]) -> dict[str, list[Wording]]:
        """Return the wordings of each of these ids that has some, oldest first."""
        return _grouped(self._session.rows(_OF, ids=json_list([*entry_ids])))

    def needs(self, entry_id: str) -> list[Need]:
        """Return what an entry was asked for in other words than its own."""
        return [Need(it.topic, it.tags, it.question) for it in self.of([entry_id]).get(entry_id, ())]

    def all(self) -> dict[str, list[Wording]]:
        """Return the wordings of every id that has some, oldest first."""
        return _grouped(self._session.rows(_ALL))

    def keep(self, entry: Entry, need: Need, *, at: str, session_id: str | None = None) -> bool:
        """Keep how a request worded a live entry's need. False where the entry knows these words. ``at`` is stored text."""
        words, tags = _words(need.topic, need.question), set(map(naming.tag_key, need.tags))
        known = [(row[0], texts_of(row[1]), row[2]) for row in self._session.rows(_OF_ONE, entry_id=entry.id)]
        if entry.question is not None:
            known.append((entry.topic, entry.tags, entry.question))
        # Fewer tags say nothing new.
        same = (theirs for topic, theirs, question in known if _words(topic, question) == words)
        if any(tags.issubset(map(naming.tag_key, theirs)) for theirs in same):
            return False
        wording = Wording(entry_id=entry.id, at=at, session_id=session_id, **need._asdict())
        self._session.execute(_KEEP, {**wording.fields(), "tags": json.dumps(need.tags, ensure_ascii=False)})
        self._session.execute(_DROP_OLD, entry_id=entry.id)
        self._session.execute(_KEYS_ARE_DUE, entry_id=entry.id)
        return True

    def take(self, need: Need, entry_ids: Iterable[str]) -> None:
        """Have live entries answer these very words no more: somebody said that another one does."""
        for row in (row for rows in self.of(entry_ids).values() for row in rows):
            if _words(row.topic, row.question) == _words(need.topic, need.question):
                self._session.execute(_TAKE, row.fields())
                self._session.execute(_KEYS_ARE_DUE, entry_id=row.entry_id)

    def forget(self, entry_id: str) -> None:
        """Delete the wordings of an entry that is gone for good: its id may become another one's."""
        self._session.execute(_FORGET, entry_id=entry_id)


def _grouped(rows: Sequence[sqlite3.Row]) -> dict[str, list[Wording]]:
    found: dict[str, list[Wording]] = {}
    for row in rows:
        found.setdefault(row["entry_id"], []).append(_to_wording(row))
    return found


def _words(topic: str, question: str) -> tuple[str, str]:
    """Return topic and question in the form in which they are compared."""
    return naming.fold(topic), " ".join(naming.fold(question).split())


def _to_wording(row: sqlite3.Row) -> Wording:
    columns = {name: row[name] for name in Wording.names()}
    return Wording(**{**columns, "tags": texts_of(columns["tags"])})
