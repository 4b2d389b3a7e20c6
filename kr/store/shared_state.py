"""What processes share beside entries: leases on questions, how sources do (circuits), libraries, instances of workflows."""

import json
from collections.abc import Sequence
from datetime import datetime, timedelta

from kr.freshness import to_text
from kr.store.entries import framework_key
from kr.store.lock import is_alive
from kr.store.session import Part, insert_into, texts_of, upsert_into
from kr.values import Value

_HOLDER = "SELECT owner FROM leases WHERE key = :key AND expires_at > :moment"
_CLEAR = "DELETE FROM leases WHERE key = :key OR expires_at <= :moment"
_ACQUIRE = insert_into("leases", ("key", "owner", "expires_at"))
_RENEW = (
    "UPDATE leases SET expires_at = :expires_at WHERE key = :key AND owner = :owner AND expires_at > :moment"
)
_RELEASE = "DELETE FROM leases WHERE key = :key AND owner = :owner"


class Leases(Part):
    def holder(self, key: str, now: datetime) -> str | None:
        found: str | None = self._session.value(_HOLDER, key=key, moment=to_text(now))
        return found

    def acquire(self, key: str, owner: str, *, now: datetime, ttl: float) -> bool:
        """Take or prolong a lease for ``ttl`` seconds. False while another owner, who is not dead, holds it."""
        holder = self.holder(key, now)
        if holder not in {None, owner} and is_alive(holder or "") is not False:
            return False
        self._session.execute(_CLEAR, key=key, moment=to_text(now))
        self._session.execute(_ACQUIRE, key=key, owner=owner, expires_at=_end(now, ttl))
        return True

    def renew(self, key: str, owner: str, *, now: datetime, ttl: float) -> bool:
        """Prolong a lease. False when it expired or is another's: the work it stood for may be done twice."""
        moment = to_text(now)
        return bool(
            self._session.execute(_RENEW, key=key, owner=owner, moment=moment, expires_at=_end(now, ttl))
        )

    def release(self, key: str, owner: str) -> bool:
        return bool(self._session.execute(_RELEASE, key=key, owner=owner))


def _end(now: datetime, ttl: float) -> str:
    return to_text(now + timedelta(seconds=ttl))


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
_PUT = upsert_into("circuits", Circuit.names(), "source")
_RELEASE_PROBE = "UPDATE circuits SET probe_owner = NULL, probe_until = NULL WHERE source = :source AND probe_owner = :owner"
_CLOSE = "DELETE FROM circuits WHERE source = :source"


def pause(opened_times: int, *, base: float, retry_after: float | None) -> float:
    """Return a breaker's pause in seconds: ``base``, doubling up to 15 minutes, or what the source asked for, one hour at most."""
    if retry_after is not None:
        return min(max(retry_after, 0.0), _LONGEST_RETRY_AFTER)
    return min(base * 2.0 ** min(opened_times - 1, 30), _LONGEST_PAUSE)


class Circuits(Part):
    def all(self) -> list[Circuit]:
        """Return the breakers of all sources that failed lately, by name."""
        return [Circuit(**row) for row in self._session.rows(_ALL)]

    def get(self, source: str) -> Circuit:
        """Return a source's breaker; one that never failed is closed."""
        row = self._session.row(_GET, source=source)
        return Circuit(source=source) if row is None else Circuit(**row)

    def admit(self, source: str, owner: str, *, now: datetime, probe_seconds: float) -> bool:
        """Return whether a source may be asked now. After a pause one living owner makes the probe, for ``probe_seconds`` at most."""
        circuit = self.get(source)
        if circuit.open_until is None:
            return True
        moment = to_text(now)
        if moment < circuit.open_until:
            return False
        is_probed = circuit.probe_until is not None and moment < circuit.probe_until
        if is_probed and circuit.probe_owner != owner and is_alive(circuit.probe_owner or "") is not False:
            return False
        probe_until = to_text(now + timedelta(seconds=probe_seconds))
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
        is_open = circuit.open_until is not None and to_text(now) < circuit.open_until
        if retry_after is not None and retry_after < _SHORTEST_PAUSE:
            retry_after = None  # it asks for no pause: an ordinary failure
        if failures and (retry_after is not None or (count >= failures and not is_open)):
            opened = circuit.opened_times + (not is_open)
            seconds = pause(opened, base=pause_seconds, retry_after=retry_after)
            self._put(
                source,
                opened_times=opened,
                open_until=to_text(now + timedelta(seconds=seconds)),
                probe_owner=None,
                probe_until=None,
            )
        return self.get(source)

    def release_probe(self, source: str, owner: str) -> None:
        self._session.execute(_RELEASE_PROBE, source=source, owner=owner)

    def record_success(self, source: str) -> None:
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


class Libraries(Part):
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
            now_known = {"framework_key": framework_key(framework), "learned_at": to_text(now)}
            self._session.execute(_PUT_LIBRARY, {**learned, **now_known})


class WorkflowRow(Value):
    """What is known of an instance without its state file. Times are stored texts."""

    workflow_id: str
    template_id: str
    template_ref: str | None
    type: str | None
    status: str
    current_step: str | None
    state_file: str | None
    is_simulated: bool
    created_at: str
    updated_at: str | None
    completed_at: str | None


_RECORD = insert_into("workflows", WorkflowRow.names()).replace("INSERT", "INSERT OR REPLACE", 1)
_NEWEST = f"SELECT {', '.join(WorkflowRow.names())} FROM workflows ORDER BY created_at DESC, workflow_id LIMIT :limit"
_BY_STATUS = "SELECT status, count(*) AS number FROM workflows GROUP BY status ORDER BY number DESC, status"


class Workflows(Part):
    def record(self, row: WorkflowRow) -> None:
        self._session.execute(_RECORD, row.fields())

    def newest(self, limit: int | None = None) -> list[WorkflowRow]:
        rows = self._session.rows(_NEWEST, limit=-1 if limit is None else limit)
        return [WorkflowRow(**{**row, "is_simulated": bool(row["is_simulated"])}) for row in rows]

    def by_status(self) -> dict[str, int]:
        return {row["status"]: row["number"] for row in self._session.rows(_BY_STATUS)}
