"""The budget of a story: calls charged, and calls reserved before they are made (SPEC 3.4)."""

import uuid
from dataclasses import asdict
from datetime import datetime, timedelta

import sqlalchemy as sa

from kr.store import times
from kr.store.owners import is_alive
from kr.store.rows import Reservation, SourceCall
from kr.store.schema import reservations, source_calls

_LONGEST_SLEEP = 3600.0
"""How long, in seconds, a living owner's expired reservation is kept: a process number is no proof for ever."""

RESERVATION_SECONDS = 15.0
"""How long a reservation lives unless its owner renews it: what a killed process takes to give it back."""


class Ledger:
    """Reads and writes the ledger in the caller's transaction; only ``spent`` may run in a read."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def spent(self, session_id: str, story_key: str) -> int:
        """Return the calls charged to a story, and nothing else."""
        return self._connection.execute(
            sa.select(sa.func.count())
            .select_from(source_calls)
            .where(
                source_calls.c.session_id == session_id,
                source_calls.c.story_key == story_key,
                source_calls.c.charged.is_(sa.true()),
            )
        ).scalar_one()

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
        self._connection.execute(
            sa.insert(reservations).values(
                id=reservation,
                session_id=session_id,
                story_key=story_key,
                owner=owner,
                expires_at=times.to_text(now + timedelta(seconds=ttl)),
            )
        )
        return Reservation(outcome="granted", id=reservation)

    def _drop_dead(self, session_id: str, story_key: str, now: datetime) -> None:
        moment, oldest = times.to_text(now), times.to_text(now - timedelta(seconds=_LONGEST_SLEEP))
        held = self._connection.execute(
            sa.select(reservations).where(
                sa.or_(
                    reservations.c.expires_at <= moment,
                    sa.and_(reservations.c.session_id == session_id, reservations.c.story_key == story_key),
                )
            )
        ).all()
        for row in held:
            alive = is_alive(row.owner)
            has_expired = row.expires_at <= moment
            if alive is False or (has_expired and (alive is None or row.expires_at <= oldest)):
                self.release(row.id)

    def reserved(self, session_id: str, story_key: str) -> int:
        """Return the reservations of a story; expired ones leave with the next ``reserve``."""
        return self._connection.execute(
            sa.select(sa.func.count())
            .select_from(reservations)
            .where(reservations.c.session_id == session_id, reservations.c.story_key == story_key)
        ).scalar_one()

    def settle(self, reservation: str | None, call: SourceCall) -> None:
        """Write a call down, and give back what was held for it.

        A charged call counts even if its reservation has expired.
        """
        if reservation is not None:
            self.release(reservation)
        self.record(call)

    def release(self, reservation: str) -> None:
        """Give a reserved call back; one that is gone already is no error."""
        self._connection.execute(sa.delete(reservations).where(reservations.c.id == reservation))

    def release_all(self, owner: str) -> int:
        """Give back everything that an owner holds; return how many."""
        return self._connection.execute(sa.delete(reservations).where(reservations.c.owner == owner)).rowcount

    def renew(self, owner: str, *, now: datetime, ttl: float = RESERVATION_SECONDS) -> int:
        """Prolong an owner's reservations; return how many. One that was taken meanwhile is gone."""
        return self._connection.execute(
            sa.update(reservations)
            .where(reservations.c.owner == owner)
            .values(expires_at=times.to_text(now + timedelta(seconds=ttl)))
        ).rowcount

    def record(self, call: SourceCall) -> None:
        """Write one row of ``source_calls`` as it is."""
        self._connection.execute(sa.insert(source_calls).values(**asdict(call)))
