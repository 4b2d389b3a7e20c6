"""The budget of a story: calls charged, and calls reserved before they are made (SPEC 3.4)."""

import uuid
from datetime import datetime, timedelta

from kr.store import times
from kr.store.owners import is_alive
from kr.store.rows import Reservation, SourceCall
from kr.store.session import Session, insert_into

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
_RECORD = insert_into("source_calls", SourceCall.names())


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

        ``owner`` is one invocation's own text (``kr.store.owners``); ``ttl`` is in seconds. Dead owners'
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
        self._session.execute(_RECORD, call.fields())
