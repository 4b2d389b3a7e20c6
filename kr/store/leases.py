"""Leases: a key that one owner at a time holds, for as long as it renews it (SPEC 3.5)."""

from datetime import datetime, timedelta

from kr.store import times
from kr.store.process_ids import is_alive
from kr.store.session import Session, insert_into
from kr.values import NamedTuple

_HOLDER = "SELECT owner FROM leases WHERE key = :key AND expires_at > :moment"
_CLEAR = "DELETE FROM leases WHERE key = :key OR expires_at <= :moment"
_ACQUIRE = insert_into("leases", ("key", "owner", "expires_at"))
_RENEW = (
    "UPDATE leases SET expires_at = :expires_at WHERE key = :key AND owner = :owner AND expires_at > :moment"
)
_RELEASE = "DELETE FROM leases WHERE key = :key AND owner = :owner"


_OLD_LEASES = "SELECT count(*) FROM leases WHERE expires_at <= :moment"
_OLD_RESERVATIONS = "SELECT count(*) FROM reservations WHERE expires_at <= :moment"
_DROP_LEASES = "DELETE FROM leases WHERE expires_at <= :moment"
_DROP_RESERVATIONS = "DELETE FROM reservations WHERE expires_at <= :moment"


class Expired(NamedTuple):
    """How many leases and reservations have outlived their time."""

    leases: int
    reservations: int


class Leases:
    """Reads and writes leases in the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def holder(self, key: str, now: datetime) -> str | None:
        """Return the owner of an unexpired lease."""
        found: str | None = self._session.value(_HOLDER, key=key, moment=times.to_text(now))
        return found

    def acquire(self, key: str, owner: str, *, now: datetime, ttl: float) -> bool:
        """Take or prolong a lease for ``ttl`` seconds. False while another owner, who is not dead, holds it."""
        holder = self.holder(key, now)
        if holder not in {None, owner} and is_alive(holder or "") is not False:
            return False
        self._session.execute(_CLEAR, key=key, moment=times.to_text(now))
        self._session.execute(_ACQUIRE, key=key, owner=owner, expires_at=_end(now, ttl))
        return True

    def renew(self, key: str, owner: str, *, now: datetime, ttl: float) -> bool:
        """Prolong a lease. False when it expired or is another's: the work it stood for may be done twice."""
        moment = times.to_text(now)
        return bool(
            self._session.execute(_RENEW, key=key, owner=owner, moment=moment, expires_at=_end(now, ttl))
        )

    def release(self, key: str, owner: str) -> bool:
        """Give a lease back. False when the owner doesn't hold it."""
        return bool(self._session.execute(_RELEASE, key=key, owner=owner))

    def expired(self, now: datetime) -> Expired:
        """Count what a killed process may have left, reservations too, and others have not yet swept away."""
        moment = times.to_text(now)
        return Expired(
            *(self._session.value(count, moment=moment) for count in (_OLD_LEASES, _OLD_RESERVATIONS))
        )

    def drop_expired(self, now: datetime) -> Expired:
        """Remove those: they hold nothing any more."""
        moment = times.to_text(now)
        return Expired(
            *(self._session.execute(drop, moment=moment) for drop in (_DROP_LEASES, _DROP_RESERVATIONS))
        )


def _end(now: datetime, ttl: float) -> str:
    return times.to_text(now + timedelta(seconds=ttl))
