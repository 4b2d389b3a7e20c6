"""What processes share: calls and what they cost a story, reservations, leases, circuits, libraries; instances of workflows.

Leases and reservations expire by time alone: their holder renews them while it works.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Literal

from kr.frameworks import framework_key
from kr.models import Learned
from kr.store.engine import Transaction, insert_into, record_of, texts_of
from kr.store.files import new_id
from kr.times import to_text

RESERVATION_SECONDS = 15.0
"""How long a reservation lives unless its owner renews it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceCall:
    """One row of ``source_calls``. The request, if one is named, has its row."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservation:
    """The result of a reservation; ``id`` is set where it was granted. ``in_flight``: others hold the rest, and may give it back."""

    outcome: Literal["granted", "exhausted", "in_flight"]
    id: str | None = None


def spent(tx: Transaction, session_id: str, story_key: str) -> int:
    statement = (
        "SELECT count(*) FROM source_calls WHERE session_id = :session AND story_key = :story AND charged"
    )
    return int(tx.value(statement, session=session_id, story=story_key))


def reserve(
    tx: Transaction,
    session_id: str,
    story_key: str,
    *,
    limit: int | None,
    owner: str,
    now: datetime,
    ttl: float = RESERVATION_SECONDS,
) -> Reservation:
    """Reserve a call of a story's ``limit`` (None: a budget of its own) for ``owner``, for ``ttl`` seconds."""
    tx.lock(f"story {session_id} {story_key}")
    tx.execute("DELETE FROM reservations WHERE expires_at <= :now", now=to_text(now))
    if limit is not None:
        charged = spent(tx, session_id, story_key)
        if charged >= limit:
            return Reservation(outcome="exhausted")
        if charged + reserved(tx, session_id, story_key) >= limit:
            return Reservation(outcome="in_flight")
    reservation = new_id()
    tx.execute(
        "INSERT INTO reservations (id, session_id, story_key, owner, expires_at) VALUES (:id, :session, :story, :owner, :end)",
        id=reservation,
        session=session_id,
        story=story_key,
        owner=owner,
        end=_end(now, ttl),
    )
    return Reservation(outcome="granted", id=reservation)


def reserved(tx: Transaction, session_id: str, story_key: str) -> int:
    """Return the reservations of a story; expired ones leave with the next ``reserve``."""
    statement = "SELECT count(*) FROM reservations WHERE session_id = :session AND story_key = :story"
    return int(tx.value(statement, session=session_id, story=story_key))


def settle(tx: Transaction, reservation: str | None, call: SourceCall) -> None:
    """Write a call down, and give back what was held for it. It counts even if its reservation has expired."""
    tx.lock(f"story {call.session_id} {call.story_key}")
    tx.execute("DELETE FROM reservations WHERE id = :id", id=reservation)
    tx.insert("source_calls", call)


def release_all(tx: Transaction, owner: str) -> int:
    """Give back everything that an owner holds; return how many."""
    return tx.execute("DELETE FROM reservations WHERE owner = :owner", owner=owner)


def renew(tx: Transaction, owner: str, *, now: datetime, ttl: float = RESERVATION_SECONDS) -> int:
    """Prolong an owner's reservations; return how many. One that expired may have been taken meanwhile."""
    return tx.execute(
        "UPDATE reservations SET expires_at = :end WHERE owner = :owner", end=_end(now, ttl), owner=owner
    )


def acquire_lease(tx: Transaction, key: str, owner: str, *, now: datetime, ttl: float) -> bool:
    """Take or prolong a lease for ``ttl`` seconds. False while another owner holds it."""
    tx.execute("DELETE FROM leases WHERE expires_at <= :now", now=to_text(now))
    taken = tx.execute(
        f"{insert_into('leases', ('key', 'owner', 'expires_at'))} ON CONFLICT (key) DO UPDATE "
        "SET expires_at = excluded.expires_at WHERE leases.owner = excluded.owner",
        key=key,
        owner=owner,
        expires_at=_end(now, ttl),
    )
    return bool(taken)


def release_lease(tx: Transaction, key: str, owner: str) -> bool:
    return bool(tx.execute("DELETE FROM leases WHERE key = :key AND owner = :owner", key=key, owner=owner))


def _end(now: datetime, ttl: float) -> str:
    return to_text(now + timedelta(seconds=ttl))


@dataclass(frozen=True, slots=True, kw_only=True)
class Circuit:
    """A source's breaker. ``failures`` are in a row; ``open_until`` is None while it never opened.

    After a pause one asks the source, and the others wait for what becomes of that, until ``probe_until`` at most.
    """

    source: str
    failures: int = 0
    opened_times: int = 0
    open_until: str | None = None
    last_error: str | None = None
    probe_until: str | None = None


_LONGEST_PAUSE = 15 * 60.0
_LONGEST_RETRY_AFTER = 60 * 60.0


def circuits(tx: Transaction) -> list[Circuit]:
    """Return the breakers of all sources that failed lately, by name."""
    return [record_of(Circuit, row) for row in tx.rows("SELECT * FROM circuits ORDER BY source")]


def circuit(tx: Transaction, source: str) -> Circuit:
    """Return a source's breaker; one that never failed is closed."""
    row = tx.row("SELECT * FROM circuits WHERE source = :source", source=source)
    return Circuit(source=source) if row is None else record_of(Circuit, row)


def admit(tx: Transaction, source: str, *, now: datetime, probe_seconds: float) -> bool:
    """Return whether a source may be asked now. After a pause one makes the probe, for ``probe_seconds`` at most."""
    tx.lock(f"source {source}")
    found, moment = circuit(tx, source), to_text(now)
    if found.open_until is None:
        return True
    if moment < max(found.open_until, found.probe_until or ""):
        return False
    tx.insert("circuits", replace(found, probe_until=_end(now, probe_seconds)), "source")
    return True


def record_failure(
    tx: Transaction,
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
    tx.lock(f"source {source}")
    found = circuit(tx, source)
    found = replace(found, failures=found.failures + 1, last_error=error)
    is_open = found.open_until is not None and to_text(now) < found.open_until
    asks_for_pause = retry_after is not None and retry_after >= 1.0
    if failures and (asks_for_pause or (found.failures >= failures and not is_open)):
        opened = found.opened_times + (not is_open)
        pause = min(pause_seconds * 2.0 ** min(opened - 1, 30), _LONGEST_PAUSE)
        if asks_for_pause and retry_after is not None:
            pause = min(retry_after, _LONGEST_RETRY_AFTER)
        found = replace(found, opened_times=opened, open_until=_end(now, pause), probe_until=None)
    tx.insert("circuits", found, "source")
    return found


def release_probe(tx: Transaction, source: str) -> None:
    tx.execute("UPDATE circuits SET probe_until = NULL WHERE source = :source", source=source)


def record_success(tx: Transaction, source: str) -> None:
    tx.execute("DELETE FROM circuits WHERE source = :source", source=source)


def library(tx: Transaction, framework: str) -> Learned | None:
    """Return what is known of a framework (whichever of its names)."""
    row = tx.row("SELECT * FROM libraries WHERE framework_key = :key", key=framework_key(framework))
    return None if row is None else record_of(Learned, row, versions=texts_of(row["versions"]))


def learn_library(tx: Transaction, framework: str, learned: Learned, *, now: datetime) -> None:
    """Remember what was learned; None leaves what was known. ``versions`` belong to ``library_id``."""
    if learned.library_id is None and learned.repository is None:
        return
    known = library(tx, framework) or Learned()
    learned = Learned(
        library_id=learned.library_id or known.library_id,
        versions=known.versions if learned.library_id is None else learned.versions,
        repository=learned.repository or known.repository,
        learned_at=to_text(now),
    )
    tx.insert("libraries", learned, "framework_key", framework_key=framework_key(framework))


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRow:
    """What is known of a workflow's instance without its state file, which is the authority. Times are stored texts."""

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


def record_workflow(tx: Transaction, row: WorkflowRow) -> None:
    tx.insert("workflows", row, "workflow_id")


def workflows(tx: Transaction, limit: int | None = None) -> list[WorkflowRow]:
    """Return the instances, the last started first."""
    rows = tx.rows("SELECT * FROM workflows ORDER BY created_at DESC, workflow_id")[:limit]
    return [record_of(WorkflowRow, row, is_simulated=bool(row["is_simulated"])) for row in rows]
