"""What every process knows of the sources: their circuit breakers, and what they taught about frameworks (SPEC 3.5)."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from kr.store import times
from kr.store.keys import framework_key
from kr.store.process_ids import is_alive
from kr.store.session import Session, insert_into, texts_of
from kr.values import Value


class Circuit(Value):
    """A source's breaker. ``failures`` are in a row; ``open_until`` is None while it never opened."""

    source: str
    failures: int = 0
    opened_times: int = 0
    open_until: str | None = None
    last_error: str | None = None
    probe_owner: str | None = None
    probe_until: str | None = None


_SHORTEST_PAUSE = 1.0
_LONGEST_PAUSE = 15 * 60.0
_LONGEST_RETRY_AFTER = 60 * 60.0

_ALL = f"SELECT {', '.join(Circuit.names())} FROM circuits ORDER BY source"
_GET = f"SELECT {', '.join(Circuit.names())} FROM circuits WHERE source = :source"
_PUT = f"{insert_into('circuits', Circuit.names())} ON CONFLICT (source) DO UPDATE SET " + ", ".join(
    f"{name} = excluded.{name}" for name in Circuit.names() if name != "source"
)
_RELEASE_PROBE = "UPDATE circuits SET probe_owner = NULL, probe_until = NULL WHERE source = :source AND probe_owner = :owner"
_CLOSE = "DELETE FROM circuits WHERE source = :source"


def pause(opened_times: int, *, base: float, retry_after: float | None) -> float:
    """Return how long a breaker stays open, in seconds: ``base``, doubling up to 15 minutes.

    Or as long as the source asked for, one hour at most. ``opened_times`` counts this time.
    """
    if retry_after is not None:
        return min(max(retry_after, 0.0), _LONGEST_RETRY_AFTER)
    return min(base * 2.0 ** min(opened_times - 1, 30), _LONGEST_PAUSE)


class Circuits:
    """Reads and writes breakers in the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def all(self) -> list[Circuit]:
        """Return the breakers of all sources that failed lately, by name."""
        return [Circuit(**row) for row in self._session.rows(_ALL)]

    def get(self, source: str) -> Circuit:
        """Return a source's breaker; one that never failed is closed."""
        row = self._session.row(_GET, source=source)
        return Circuit(source=source) if row is None else Circuit(**row)

    def admit(self, source: str, owner: str, *, now: datetime, probe_seconds: float) -> bool:
        """Return whether a source may be asked now.

        Once a pause is over one owner makes the probe; the others wait for its outcome, or for
        ``probe_seconds`` if it never comes. One who is known to be dead is not waited for.
        """
        circuit = self.get(source)
        if circuit.open_until is None:
            return True
        moment = times.to_text(now)
        if moment < circuit.open_until:
            return False
        is_probed = circuit.probe_until is not None and moment < circuit.probe_until
        if is_probed and circuit.probe_owner != owner and is_alive(circuit.probe_owner or "") is not False:
            return False
        probe_until = times.to_text(now + timedelta(seconds=probe_seconds))
        self._put(source, probe_owner=owner, probe_until=probe_until)
        return True

    def record_failure(
        self,
        source: str,
        error: str,
        *,
        now: datetime,
        failures: int,
        pause_seconds: float,
        retry_after: float | None = None,
    ) -> Circuit:
        """Count a failure; open the breaker at ``failures`` in a row (0: never) or when the source asked so.

        A failure that was under way while it opened doesn't double the pause.
        """
        circuit = self.get(source)
        count = circuit.failures + 1
        self._put(source, failures=count, last_error=error)
        is_open = circuit.open_until is not None and times.to_text(now) < circuit.open_until
        if retry_after is not None and retry_after < _SHORTEST_PAUSE:
            retry_after = None  # it asks for no pause: an ordinary failure
        if failures and (retry_after is not None or (count >= failures and not is_open)):
            opened = circuit.opened_times + (not is_open)
            seconds = pause(opened, base=pause_seconds, retry_after=retry_after)
            self._put(
                source,
                opened_times=opened,
                open_until=times.to_text(now + timedelta(seconds=seconds)),
                probe_owner=None,
                probe_until=None,
            )
        return self.get(source)

    def release_probe(self, source: str, owner: str) -> None:
        """Give a probe back that was not made."""
        self._session.execute(_RELEASE_PROBE, source=source, owner=owner)

    def record_success(self, source: str) -> None:
        """Close the breaker."""
        self._session.execute(_CLOSE, source=source)

    def _put(self, source: str, **values: object) -> None:
        self._session.execute(_PUT, {**self.get(source).fields(), **values})


class Library(Value):
    """What was learned about a framework: its Context7 id and listed versions, its GitHub ``owner/repo``."""

    library_id: str | None
    versions: tuple[str, ...]
    repository: str | None
    learned_at: str | None


_GET_LIBRARY = "SELECT library_id, versions, repository, learned_at FROM libraries WHERE framework_key = :key"
_PUT_LIBRARY = (
    insert_into("libraries", ("framework_key", "library_id", "versions", "repository", "learned_at"))
    + " ON CONFLICT (framework_key) DO UPDATE SET learned_at = excluded.learned_at, "
    + ", ".join(
        f"{name} = ifnull(excluded.{name}, {name})" for name in ("library_id", "versions", "repository")
    )
)


class Libraries:
    """Reads and writes that memory in the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(self, framework: str) -> Library | None:
        """Return what is known of a framework (whichever of its names)."""
        row = self._session.row(_GET_LIBRARY, key=framework_key(framework))
        if row is None:
            return None
        return Library(**{**row, "versions": texts_of(row["versions"])})

    def put(
        self,
        framework: str,
        *,
        now: datetime,
        library_id: str | None = None,
        versions: Sequence[str] = (),
        repository: str | None = None,
    ) -> None:
        """Remember what is given; None leaves what was known. ``versions`` belong to ``library_id``."""
        listed = json.dumps(list(versions)) if library_id is not None else None
        learned = {"library_id": library_id, "versions": listed, "repository": repository}
        if any(value is not None for value in learned.values()):
            now_known = {"framework_key": framework_key(framework), "learned_at": times.to_text(now)}
            self._session.execute(_PUT_LIBRARY, {**learned, **now_known})
