"""The log of requests, the calls that they cost a story's budget, what they were offered, how they worded their needs, and what they say.

SPEC 3.2, 3.4, 3.10 and 5. Wordings and ratings belong to the id of an entry, and so stay with it through the archive and back.
"""

import json
import sqlite3
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Literal

from kr.freshness import to_text
from kr.models import Entry, Outcome
from kr.store.entries import Entries, framework_key, question_key
from kr.store.lock import is_alive
from kr.store.session import Part, insert_into, json_list, texts_of, upsert_into
from kr.values import NamedTuple, Value


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
    tags: str | None = None
    """A JSON list."""
    project: str | None = None
    answer_tokens: int | None = None
    """How much the caller was given to read (characters / 4)."""
    score: float | None = None
    candidates: str | None = None
    """The entries that were offered, best first, as a JSON list of ``{id, score}``."""
    error: str | None = None
    """What went wrong, or what interrupted it."""


UNDER_WAY = "interrupted, or still under way"
"""The error of a request that has asked a source and has no answer yet: what a killed process leaves."""

_HAS_ENDED = f"SELECT 1 FROM requests WHERE id = :id AND error IS NOT '{UNDER_WAY}'"
_BEGIN = f"{insert_into('requests', RequestRow.names())} ON CONFLICT (id) DO NOTHING"
_RECORD = upsert_into("requests", RequestRow.names(), "id")


class Given(NamedTuple):
    """What a session was given to read for a need before it saved what it found: tokens, and how long that took."""

    tokens: int
    milliseconds: int


_GIVEN_BEFORE = (
    "SELECT coalesce(sum(answer_tokens), 0), coalesce(sum(duration_ms), 0) FROM requests "
    "WHERE session_id = :session_id AND mode = 'research' AND framework = :framework AND at > coalesce("
    "(SELECT max(at) FROM requests WHERE session_id = :session_id AND mode = 'save' AND framework = :framework), '')"
)


class Requests(Part):
    def given_before(self, session_id: str, framework: str) -> Given:
        """Return what a session was given about a framework since it last saved something about it."""
        row = self._session.row(_GIVEN_BEFORE, session_id=session_id, framework=framework)
        return Given(0, 0) if row is None else Given(row[0], row[1])

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
_COUNTED = f"SELECT (SELECT count(*) FROM entries), ({_SPENT})"
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


class Need(NamedTuple):
    """What a request says of what it needs."""

    topic: str
    tags: tuple[str, ...]
    question: str


class Unanswered(Value):
    """A request to which candidates were offered (id, score), best first, and none of them was taken. ``entry_id``: what its research wrote."""

    request_id: str
    at: str
    framework: str
    topic: str
    question: str
    tags: tuple[str, ...]
    status: str
    entry_id: str | None
    candidates: tuple[tuple[str, float], ...]


_FOUND = (
    "SELECT id, at, coalesce(framework, '') AS framework, coalesce(topic, '') AS topic, coalesce(question, '') AS question, "
    "tags, status, entry_id, candidates FROM requests "
    "WHERE candidates IS NOT NULL AND {} ORDER BY at DESC, id"
)
_OPEN, _ONE = _FOUND.format("settled_at IS NULL"), _FOUND.format("id = :id")
_SETTLED = "UPDATE requests SET answered_by = :answered_by, settled_at = :at WHERE candidates IS NOT NULL AND settled_at IS NULL AND "
_SETTLE = f"{_SETTLED} id IN (SELECT value FROM json_each(:ids))"
# The first one's report was given to the session, which did not go on to have the question researched.
_GIVEN_TO = (
    "SELECT id, topic, tags, question FROM requests AS asked WHERE session_id = :session_id AND status = 'candidates' "
    "AND settled_at IS NULL AND json_extract(candidates, '$[0].id') = :entry_id AND NOT EXISTS (SELECT 1 FROM requests AS again "
    "WHERE again.session_id = asked.session_id AND again.question = asked.question AND again.at > asked.at)"
)
_TAKE_OFFER = (
    "UPDATE requests SET answered_by = :entry_id, entry_id = :entry_id, tier = 'use', settled_at = :at "
    "WHERE id IN (SELECT value FROM json_each(:ids))"
)
_SETTLE_ALIKE = f"{_SETTLED} framework = :framework AND question = :question"


class Offers(Part):
    """What was offered and not taken (SPEC 3.10, review): a query over ``requests``."""

    def open(self) -> list[Unanswered]:
        """Return the requests whose candidates nobody has chosen from, the newest first."""
        return [_to_unanswered(row) for row in self._session.rows(_OPEN)]

    def get(self, request_id: str) -> Unanswered | None:
        row = self._session.row(_ONE, id=request_id)
        return None if row is None else _to_unanswered(row)

    def given_to(self, session_id: str, entry_id: str) -> dict[str, Need]:
        """Return the needs for which a session was given an entry's report and asked no further, by the ids of their requests."""
        rows = self._session.rows(_GIVEN_TO, session_id=session_id, entry_id=entry_id)
        return {row["id"]: Need(row["topic"], texts_of(row["tags"]), row["question"]) for row in rows}

    def take(self, request_ids: Sequence[str], entry_id: str, *, at: str) -> None:
        """Note that the report that these requests were given worked: they were answered from the cache."""
        self._session.execute(_TAKE_OFFER, ids=json_list(request_ids), entry_id=entry_id, at=at)

    def settle_alike(self, framework: str, question: str, answered_by: str, *, at: str) -> None:
        """Note which entry answers every open request of this very question: somebody took it."""
        self._session.execute(
            _SETTLE_ALIKE, framework=framework, question=question, answered_by=answered_by, at=at
        )

    def settle(self, request_ids: Sequence[str], answered_by: str | None, *, at: str) -> None:
        """Note which entry answers these requests, or that none of those offered does. ``at`` is stored text."""
        self._session.execute(_SETTLE, ids=json_list(request_ids), answered_by=answered_by, at=at)


def _to_unanswered(row: sqlite3.Row) -> Unanswered:
    offered = tuple((it["id"], it["score"]) for it in json.loads(row["candidates"]))
    names = (name for name in Unanswered.names() if name not in {"request_id", "tags", "candidates"})
    return Unanswered(
        **{name: row[name] for name in names},
        request_id=row["id"],
        tags=texts_of(row["tags"]),
        candidates=offered,
    )


class Wording(Value):
    """One row of ``wordings``: how a request that an entry answered worded its need. One that is ``proved`` serves by itself."""

    entry_id: str
    at: str
    topic: str
    tags: tuple[str, ...]
    question: str
    session_id: str | None = None
    proved: bool = False


MOST = 20
"""How many an entry keeps: the newest."""

_COLUMNS = ", ".join(Wording.names())
_OF = f"SELECT {_COLUMNS} FROM wordings WHERE entry_id IN (SELECT value FROM json_each(:ids)) ORDER BY id"
_ALL = f"SELECT {_COLUMNS} FROM wordings ORDER BY id"
_SAME = (
    "SELECT id, session_id, proved FROM wordings WHERE entry_id = :entry_id AND question_key = :question_key"
)
_KEEP = insert_into("wordings", (*Wording.names(), "question_key"))
_PROVE = "UPDATE wordings SET proved = 1 WHERE id = :id"
_DOUBT = "UPDATE wordings SET proved = 0 WHERE entry_id = :entry_id"
_PROVE_OF_SESSION = "UPDATE wordings SET proved = 1 WHERE entry_id = :entry_id AND session_id = :session_id"
_DROP_OLD = (
    "DELETE FROM wordings WHERE entry_id = :entry_id AND id NOT IN "
    f"(SELECT id FROM wordings WHERE entry_id = :entry_id ORDER BY id DESC LIMIT {MOST})"
)
_OF_OTHERS = (
    "FROM wordings WHERE question_key = :question_key AND entry_id <> :keep "
    "AND entry_id IN (SELECT id FROM entries WHERE framework_key = :framework_key)"
)
_TAKEN, _TAKE = f"SELECT DISTINCT entry_id {_OF_OTHERS}", f"DELETE {_OF_OTHERS}"
_FORGET = "DELETE FROM wordings WHERE entry_id = :entry_id"
_FORGET_OF_SESSION = f"{_FORGET} AND session_id = :session_id"


class Wordings(Part):
    def of(self, entry_ids: Iterable[str]) -> dict[str, list[Wording]]:
        """Return the wordings of each of these ids that has some, oldest first."""
        return _grouped(self._session.rows(_OF, ids=json_list([*entry_ids])))

    def all(self) -> dict[str, list[Wording]]:
        """Return the wordings of every id that has some, oldest first."""
        return _grouped(self._session.rows(_ALL))

    def keep(
        self, entry: Entry, need: Need, *, at: str, session_id: str | None = None, proved: bool = False
    ) -> None:
        """Keep how a request worded a live entry's need, and have the entry found by it. ``at`` is stored text.

        It is proved where the caller says so, or once two sessions used the entry for it (SPEC 3.2).
        """
        key = question_key(need.question)
        if key == question_key(entry.question or ""):
            return
        known = self._session.row(_SAME, entry_id=entry.id, question_key=key)
        if known is not None:
            if not known["proved"] and (proved or known["session_id"] != session_id):
                self._session.execute(_PROVE, id=known["id"])
            return
        wording = Wording(entry_id=entry.id, at=at, session_id=session_id, proved=proved, **need._asdict())
        tags = json.dumps(need.tags, ensure_ascii=False)
        self._session.execute(_KEEP, {**wording.fields(), "tags": tags, "question_key": key})
        self._session.execute(_DROP_OLD, entry_id=entry.id)
        Entries(self._session).index_again(entry.id)

    def prove(self, entry_id: str, session_id: str) -> None:
        """Have the wordings of a session serve by themselves: the entry worked for it."""
        self._session.execute(_PROVE_OF_SESSION, entry_id=entry_id, session_id=session_id)

    def doubt(self, entry_id: str) -> None:
        """Have no wording of an entry serve by itself any more, until somebody confirms it anew: they still rank."""
        self._session.execute(_DOUBT, entry_id=entry_id)

    def forget_session(self, entry: Entry, session_id: str) -> None:
        """Delete the wordings of a session for which the entry was wrong."""
        if self._session.execute(_FORGET_OF_SESSION, entry_id=entry.id, session_id=session_id):
            Entries(self._session).index_again(entry.id)

    def take(self, question: str, keep: Entry) -> None:
        """Have no other entry of the framework answer this very question any more: it was researched anew for ``keep``."""
        asked = {
            "question_key": question_key(question),
            "keep": keep.id,
            "framework_key": framework_key(keep.framework),
        }
        losing = [row["entry_id"] for row in self._session.rows(_TAKEN, asked)]
        self._session.execute(_TAKE, asked)
        for entry_id in losing:
            Entries(self._session).index_again(entry_id)

    def forget(self, entry_id: str) -> None:
        """Delete the wordings of an entry that is gone for good: its id may become another one's."""
        self._session.execute(_FORGET, entry_id=entry_id)


def _grouped(rows: Sequence[sqlite3.Row]) -> dict[str, list[Wording]]:
    found: dict[str, list[Wording]] = {}
    for row in rows:
        columns = {name: row[name] for name in Wording.names()} | {"proved": bool(row["proved"])}
        wording = Wording(**{**columns, "tags": texts_of(columns["tags"])})
        found.setdefault(wording.entry_id, []).append(wording)
    return found


class Rating(Value):
    """One row of ``ratings``: what a session says of an entry's text. ``revision`` is the text's number."""

    entry_id: str
    revision: int
    session_id: str
    story_key: str | None
    outcome: Outcome
    note: str | None
    at: str


_RATE = upsert_into("ratings", Rating.names(), "entry_id, revision, session_id")
_RATINGS = f"SELECT {', '.join(Rating.names())} FROM ratings WHERE entry_id = :entry_id AND revision = :revision ORDER BY at"
_WRONG = (
    "SELECT e.id FROM entries AS e JOIN ratings AS r ON r.entry_id = e.id AND r.revision = e.revision "
    "GROUP BY e.id HAVING sum(r.outcome = 'wrong') > sum(r.outcome = 'worked') ORDER BY max(r.at) DESC"
)


class Ratings(Part):
    """What sessions say of entries. A session counts once for a text, by its last word (SPEC 3.10)."""

    def rate(self, rating: Rating) -> None:
        self._session.execute(_RATE, rating.fields())

    def of(self, entry: Entry) -> list[Rating]:
        """Return what was said of an entry's current text, oldest first."""
        rows = self._session.rows(_RATINGS, entry_id=entry.id, revision=entry.revision)
        return [Rating(**dict(row)) for row in rows]

    def wrong(self) -> list[str]:
        """Return the live entries of which more sessions say that they are wrong than that they worked, the last said first."""
        return [row["id"] for row in self._session.rows(_WRONG)]
