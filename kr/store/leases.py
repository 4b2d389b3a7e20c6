"""Leases: a key that one owner at a time holds, for as long as it renews it (SPEC 3.5)."""

from datetime import datetime, timedelta

import sqlalchemy as sa

from kr.store import times
from kr.store.owners import is_alive
from kr.store.schema import leases


class Leases:
    """Reads and writes leases in the caller's transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def holder(self, key: str, now: datetime) -> str | None:
        """Return the owner of an unexpired lease."""
        return self._connection.execute(
            sa.select(leases.c.owner).where(leases.c.key == key, leases.c.expires_at > times.to_text(now))
        ).scalar_one_or_none()

    def acquire(self, key: str, owner: str, *, now: datetime, ttl: float) -> bool:
        """Take or prolong a lease for ``ttl`` seconds. False while another owner, who is not dead, holds it."""
        holder = self.holder(key, now)
        if holder not in {None, owner} and is_alive(holder or "") is not False:
            return False
        self._connection.execute(
            sa.delete(leases).where(sa.or_(leases.c.key == key, leases.c.expires_at <= times.to_text(now)))
        )
        expires_at = times.to_text(now + timedelta(seconds=ttl))
        self._connection.execute(sa.insert(leases).values(key=key, owner=owner, expires_at=expires_at))
        return True

    def renew(self, key: str, owner: str, *, now: datetime, ttl: float) -> bool:
        """Prolong a lease. False when it expired or is another's: the work it stood for may be done twice."""
        renewed = self._connection.execute(
            sa.update(leases)
            .where(leases.c.key == key, leases.c.owner == owner, leases.c.expires_at > times.to_text(now))
            .values(expires_at=times.to_text(now + timedelta(seconds=ttl)))
        )
        return bool(renewed.rowcount)

    def release(self, key: str, owner: str) -> bool:
        """Give a lease back. False when the owner doesn't hold it."""
        return bool(
            self._connection.execute(
                sa.delete(leases).where(leases.c.key == key, leases.c.owner == owner)
            ).rowcount
        )
