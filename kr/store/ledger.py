"""What processes share: calls and what they cost a story, reservations, leases, circuits, libraries; instances of workflows.

Leases and reservations expire by time alone: their holder renews them while it works.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from kr.frameworks import framework_key
from kr.models import Learned
from kr.store.engine import Transaction, insert_into, named, record_of, texts_of
from kr.store.entries import Wording
from kr.store.files import new_id
from kr.store.lookup import RequestRow
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


def record_call(tx: Transaction, reservation: str | None, call: SourceCall) -> None:
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
    return next((it for it in circuits(tx) if it.source == source), Circuit(source=source))


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


# --- offers that wait for a choice, and the numbers behind ``kr stats``, most of them by the public views

_IS_OPEN = "candidates IS NOT NULL AND settled_at IS NULL"


def given_before(tx: Transaction, session_id: str, framework: str) -> tuple[int, int]:
    """Return what a session was given about a framework since it last saved something about it: tokens, and how many ms that took."""
    [row] = tx.rows(
        "SELECT coalesce(sum(answer_tokens), 0) AS tokens, coalesce(sum(duration_ms), 0) AS ms FROM requests "
        "WHERE session_id = :session AND mode = 'research' AND framework = :framework AND at > coalesce("
        "(SELECT max(at) FROM requests WHERE session_id = :session AND mode = 'save' AND framework = :framework), '')",
        session=session_id,
        framework=framework,
    )
    return row["tokens"], row["ms"]


def open_offers(tx: Transaction) -> list[RequestRow]:
    """Return the requests whose candidates nobody has chosen from, the newest first."""
    rows = tx.rows(f"SELECT * FROM requests WHERE {_IS_OPEN} ORDER BY at DESC, id")
    return [record_of(RequestRow, row) for row in rows]


def offer(tx: Transaction, request_id: str) -> RequestRow | None:
    row = tx.row("SELECT * FROM requests WHERE id = :id AND candidates IS NOT NULL", id=request_id)
    return None if row is None else record_of(RequestRow, row)


def take_offers(tx: Transaction, session_id: str, entry_id: str, *, at: str) -> list[Wording]:
    """Note that the report of an entry worked for a session that was given it and asked no further; return how it had asked.

    These requests were answered from the cache.
    """
    rows = tx.rows(
        "SELECT id, topic, tags, question FROM requests AS asked WHERE session_id = :session AND status = 'candidates' "
        "AND settled_at IS NULL AND best_candidate = :entry AND NOT EXISTS (SELECT 1 FROM requests AS again "
        "WHERE again.session_id = asked.session_id AND again.question = asked.question AND again.at > asked.at)",
        session=session_id,
        entry=entry_id,
    )
    ids, parameters = named("id", [row["id"] for row in rows])
    tx.execute(
        "UPDATE requests SET answered_by = :entry, entry_id = :entry, tier = 'use', settled_at = :at "
        f"WHERE id IN {ids}",
        entry=entry_id,
        at=at,
        **parameters,
    )
    return [
        Wording(
            at=at,
            topic=row["topic"],
            tags=texts_of(row["tags"]),
            question=row["question"],
            session_id=session_id,
        )
        for row in rows
    ]


def close_alike(tx: Transaction, framework: str, question: str, answered_by: str, *, at: str) -> None:
    """Note which entry answers every open request of this very question: somebody took it."""
    alike = f"SELECT id FROM requests WHERE {_IS_OPEN} AND framework = :framework AND question = :question"
    close_offers(tx, tx.column(alike, framework=framework, question=question), answered_by, at=at)


def close_offers(tx: Transaction, request_ids: Sequence[str], answered_by: str | None, *, at: str) -> None:
    """Note which entry answers these requests, or that none of those offered does. ``at`` is stored text."""
    ids, parameters = named("id", request_ids)
    tx.execute(
        f"UPDATE requests SET answered_by = :answered_by, settled_at = :at WHERE {_IS_OPEN} AND id IN {ids}",
        answered_by=answered_by,
        at=at,
        **parameters,
    )


# What finding out had cost, each time that somebody did: of a research its sources' answers and its time, of a finding what its
# session had been given before it saved. What was not measured has no row. Of the documentation that is installed only what the
# asker was given counts: nobody else would have read all the passages that kr weighed.
_COSTS = """
SELECT r.entry_id, r.at, sum(CASE WHEN c.source = 'local_docs' AND coalesce(r.answer_tokens, 0) < c.answer_tokens
  THEN coalesce(r.answer_tokens, 0) ELSE c.answer_tokens END) AS tokens, coalesce(r.duration_ms, 0) AS ms
FROM requests AS r JOIN source_calls AS c ON c.request_id = r.id
WHERE r.mode = 'research' AND r.entry_id IS NOT NULL AND c.answer_tokens > 0
GROUP BY r.id, r.entry_id, r.at, r.duration_ms
UNION ALL
SELECT entry_id, at, answer_tokens, coalesce(duration_ms, 0)
FROM requests WHERE mode = 'save' AND status = 'saved' AND answer_tokens > 0
"""
# What a session was offered, with the best candidate's report. ``chosen``: it asked for that entry by its id then; ``worked``: it
# said of the report that it worked.
_OFFERED = """
SELECT o.id, o.at, o.session_id, o.question, o.best_candidate AS entry_id,
  coalesce(o.duration_ms, 0) AS ms, o.answer_tokens AS tokens
FROM requests AS o WHERE o.mode = 'research' AND o.status = 'candidates' AND o.answer_tokens > 0
"""
# Answers from the cache: hits, which cost what was offered before as well, and offered reports that were used as they were.
_ANSWERS = """
SELECT h.id, h.at, h.entry_id, coalesce(h.duration_ms, 0) AS ms, coalesce(h.answer_tokens, 0) + (
  SELECT coalesce(sum(o.tokens), 0) FROM offered AS o WHERE h.tier = 'use' AND o.session_id = h.session_id
  AND o.question = h.question AND o.entry_id = h.entry_id AND o.at < h.at) AS tokens
FROM requests AS h WHERE h.mode = 'research' AND h.status = 'cache-hit'
UNION ALL
SELECT o.id, o.at, o.entry_id, o.ms, o.tokens FROM offered AS o
WHERE EXISTS (SELECT 1 FROM ratings AS w WHERE w.session_id = o.session_id AND w.entry_id = o.entry_id
  AND w.outcome = 'worked' AND w.at > o.at)
AND NOT EXISTS (SELECT 1 FROM requests AS h WHERE h.session_id = o.session_id AND h.tier = 'use'
  AND h.status = 'cache-hit' AND h.question = o.question AND h.entry_id = o.entry_id)
"""
_SPARED = f"""
WITH costs AS ({_COSTS}), offered AS ({_OFFERED}), answers AS ({_ANSWERS}), spared AS (
  SELECT a.at, max(c.tokens) - a.tokens AS tokens, max(c.ms) - a.ms AS ms
  FROM answers AS a JOIN costs AS c ON c.entry_id = a.entry_id AND c.at < a.at GROUP BY a.id, a.at, a.tokens, a.ms)
SELECT substr(at, 1, 10) AS day, count(*) AS answers, sum(CASE WHEN tokens > 0 THEN tokens ELSE 0 END) AS tokens,
  sum(CASE WHEN ms > 0 THEN ms ELSE 0 END) AS milliseconds
FROM spared GROUP BY day ORDER BY day
"""


def view(tx: Transaction, name: str) -> list[dict[str, Any]]:
    """Return the rows of a public view."""
    return tx.rows(f"SELECT * FROM {name}")


def calls_by_day(tx: Transaction, since: str) -> dict[str, dict[str, int]]:
    """Count calls to sources by UTC day from ``since`` (a date) on: ``charged`` and ``failed`` ones."""
    rows = tx.rows(
        "SELECT substr(at, 1, 10) AS day, count(*) FILTER (WHERE charged) AS charged, "
        "count(*) FILTER (WHERE outcome <> 'success') AS failed FROM source_calls WHERE at >= :since GROUP BY substr(at, 1, 10)",
        since=since,
    )
    return {row.pop("day"): row for row in rows}


def spared_by_day(tx: Transaction) -> list[dict[str, Any]]:
    """Sum up what answers from the cache spared: ``{day, answers, tokens, milliseconds}``, the oldest first.

    ``answers`` are those of which it is known what finding out had cost; of several times the dearest counts. An
    answer that is longer than that spares nothing.
    """
    return tx.rows(_SPARED)


def number_by(
    tx: Transaction,
    column: str,
    table: Literal["entries", "archived_entries", "requests", "workflows"],
) -> dict[str, int]:
    """Count the rows of a table by a column, most first; where there is none: ``none``."""
    rows = tx.rows(
        f"SELECT coalesce({column}, 'none') AS name, count(*) AS number FROM {table} "
        f"GROUP BY {column} ORDER BY number DESC, {column}"
    )
    return {row["name"]: row["number"] for row in rows}
