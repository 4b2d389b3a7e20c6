"""What processes share: calls and what they cost a story, reservations, leases, circuits, libraries; instances of workflows.

Leases and reservations expire by time alone: their holder renews them while it works.
"""

from datetime import datetime, timedelta
from typing import Any, Literal

from kr.frameworks import framework_key
from kr.models import Learned
from kr.store import lookup
from kr.store.engine import Row, Transaction, insert_into, json_list, named, texts_of
from kr.store.files import new_id
from kr.times import to_text

Outcome = Literal["granted", "exhausted", "in_flight"]
"""What became of a wish for a call. ``in_flight``: others hold the rest, and may give it back."""

_RESERVATION_SECONDS = 15.0
"""How long a reservation lives unless its owner renews it."""


def reserve(
    tx: Transaction, session_id: str, story_key: str, *, limit: int | None, owner: str, now: datetime
) -> tuple[Outcome, str | None]:
    """Reserve a call of a story's ``limit`` (None: a budget of its own) for ``owner``; return its id where it is granted."""
    tx.lock(f"story {session_id} {story_key}")
    tx.execute("DELETE FROM reservations WHERE expires_at <= :now", now=to_text(now))
    if limit is not None:
        charged = lookup.spent(tx, session_id, story_key)
        if charged >= limit:
            return "exhausted", None
        if charged + reserved(tx, session_id, story_key) >= limit:
            return "in_flight", None
    held = {"id": new_id(), "session_id": session_id, "story_key": story_key, "owner": owner}
    tx.insert("reservations", held | {"expires_at": _end(now, _RESERVATION_SECONDS)})
    return "granted", held["id"]


def reserved(tx: Transaction, session_id: str, story_key: str) -> int:
    """Return the reservations of a story; expired ones leave with the next ``reserve``."""
    statement = "SELECT count(*) FROM reservations WHERE session_id = :session AND story_key = :story"
    return int(tx.value(statement, session=session_id, story=story_key))


def record_call(tx: Transaction, reservation: str | None, call: Row) -> None:
    """Write a row of ``source_calls``, and give back what was held for it. It counts even if its reservation has expired."""
    tx.lock(f"story {call['session_id']} {call['story_key']}")
    tx.execute("DELETE FROM reservations WHERE id = :id", id=reservation)
    tx.insert("source_calls", call)


def release_all(tx: Transaction, owner: str) -> int:
    """Give back everything that an owner holds; return how many."""
    return tx.execute("DELETE FROM reservations WHERE owner = :owner", owner=owner)


def renew(tx: Transaction, owner: str, *, now: datetime) -> int:
    """Prolong an owner's reservations; return how many. One that expired may have been taken meanwhile."""
    end = _end(now, _RESERVATION_SECONDS)
    return tx.execute("UPDATE reservations SET expires_at = :end WHERE owner = :owner", end=end, owner=owner)


def acquire_lease(tx: Transaction, key: str, owner: str, *, now: datetime, ttl: float) -> bool:
    """Take or prolong a lease for ``ttl`` seconds. False while another owner holds it."""
    tx.execute("DELETE FROM leases WHERE expires_at <= :now", now=to_text(now))
    row = {"key": key, "owner": owner, "expires_at": _end(now, ttl)}
    prolonged = "DO UPDATE SET expires_at = excluded.expires_at WHERE leases.owner = excluded.owner"
    return bool(tx.execute(f"{insert_into('leases', row)} ON CONFLICT (key) {prolonged}", **row))


def release_lease(tx: Transaction, key: str, owner: str) -> bool:
    return bool(tx.execute("DELETE FROM leases WHERE key = :key AND owner = :owner", key=key, owner=owner))


def _end(now: datetime, ttl: float) -> str:
    return to_text(now + timedelta(seconds=ttl))


_LONGEST_PAUSE = 15 * 60.0
_LONGEST_RETRY_AFTER = 60 * 60.0


def circuits(tx: Transaction) -> list[Row]:
    """Return the breakers of all sources that failed lately, by name; ``failures`` are in a row, ``open_until`` may be None."""
    return tx.rows("SELECT * FROM circuits ORDER BY source")


def circuit(tx: Transaction, source: str) -> Row | None:
    """Return a source's breaker; None where it never failed, or answered since."""
    return tx.row("SELECT * FROM circuits WHERE source = :source", source=source)


def record_failure(
    tx: Transaction,
    source: str,
    error: str,
    *,
    now: datetime,
    failures: int,
    pause_seconds: float,
    retry_after: float | None = None,
) -> None:
    """Count a failure; open the breaker at ``failures`` in a row (0: never) or when the source asked so.

    A failure that was under way while it opened doesn't double the pause.
    """
    tx.lock(f"source {source}")
    found = circuit(tx, source) or {"source": source, "failures": 0, "opened_times": 0, "open_until": None}
    found |= {"failures": found["failures"] + 1, "last_error": error}
    is_open = to_text(now) < (found["open_until"] or "")
    asks_for_pause = retry_after is not None and retry_after >= 1.0
    if failures and (asks_for_pause or (found["failures"] >= failures and not is_open)):
        found["opened_times"] += not is_open
        pause = min(pause_seconds * 2.0 ** min(found["opened_times"] - 1, 30), _LONGEST_PAUSE)
        if asks_for_pause and retry_after is not None:
            pause = min(retry_after, _LONGEST_RETRY_AFTER)
        found["open_until"] = _end(now, pause)
    tx.insert("circuits", found, "source")


def record_success(tx: Transaction, source: str) -> None:
    tx.execute("DELETE FROM circuits WHERE source = :source", source=source)


def library(tx: Transaction, framework: str) -> Learned | None:
    """Return what is known of a framework (whichever of its names)."""
    row = tx.row("SELECT * FROM libraries WHERE framework_key = :key", key=framework_key(framework))
    if row is None:
        return None
    del row["framework_key"]
    return Learned(**row | {"versions": texts_of(row["versions"])})


def learn_library(tx: Transaction, framework: str, learned: Learned, *, now: datetime) -> None:
    """Remember what was learned; None leaves what was known. ``versions`` belong to ``library_id``."""
    if learned.library_id is None and learned.repository is None:
        return
    known = library(tx, framework) or Learned()
    row = {
        "framework_key": framework_key(framework),
        "library_id": learned.library_id or known.library_id,
        "versions": json_list(known.versions if learned.library_id is None else learned.versions),
        "repository": learned.repository or known.repository,
        "learned_at": to_text(now),
    }
    tx.insert("libraries", row, "framework_key")


def record_workflow(tx: Transaction, row: Row) -> None:
    """Note what is known of a workflow's instance (table ``workflows``); its state file is the authority."""
    tx.insert("workflows", row, "workflow_id")


def workflows(tx: Transaction, limit: int | None = None) -> list[Row]:
    """Return the instances, the last started first."""
    rows = tx.rows("SELECT * FROM workflows ORDER BY created_at DESC, workflow_id")[:limit]
    return [row | {"is_simulated": bool(row["is_simulated"])} for row in rows]


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


def open_offers(tx: Transaction) -> list[Row]:
    """Return the requests whose candidates nobody has chosen from, the newest first."""
    return tx.rows(f"SELECT * FROM requests WHERE {_IS_OPEN} ORDER BY at DESC, id")


def offer(tx: Transaction, request_id: str) -> Row | None:
    return tx.row("SELECT * FROM requests WHERE id = :id AND candidates IS NOT NULL", id=request_id)


def take_offers(tx: Transaction, session_id: str, entry_id: str, *, at: str) -> list[Row]:
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
    taken = "UPDATE requests SET answered_by = :entry, entry_id = :entry, tier = 'use', settled_at = :at"
    tx.execute(f"{taken} WHERE id IN {ids}", entry=entry_id, at=at, **parameters)
    own = {"at": at, "session_id": session_id}
    return [own | {name: row[name] for name in ("topic", "tags", "question")} for row in rows]


def close_offers(tx: Transaction, framework: str, question: str, answered_by: str | None, *, at: str) -> int:
    """Note which entry answers every open request of a question, or that none of those offered does; return how many."""
    closed = (
        f"UPDATE requests SET answered_by = :answered_by, settled_at = :at WHERE {_IS_OPEN} "
        "AND framework = :framework AND coalesce(question, '') = :question"
    )
    return tx.execute(closed, framework=framework, question=question, answered_by=answered_by, at=at)


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
_SPARED = f"""
WITH costs AS ({_COSTS}), spared AS (
  SELECT a.at, max(c.tokens) - coalesce(a.answer_tokens, 0) AS tokens, max(c.ms) - coalesce(a.duration_ms, 0) AS ms
  FROM requests AS a JOIN costs AS c ON c.entry_id = a.entry_id AND c.at < a.at
  WHERE a.mode = 'research' AND (a.status = 'cache-hit' OR a.status = 'candidates' AND a.tier = 'use')
  GROUP BY a.id, a.at, a.answer_tokens, a.duration_ms)
SELECT substr(at, 1, 10) AS day, count(*) AS answers, sum(CASE WHEN tokens > 0 THEN tokens ELSE 0 END) AS tokens,
  sum(CASE WHEN ms > 0 THEN ms ELSE 0 END) AS milliseconds
FROM spared GROUP BY day ORDER BY day
"""
"""Answers from the cache are hits, and candidates whose report was used as it was: see ``take_offers``."""


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


def number_by(tx: Transaction, column: str, table: str) -> dict[str, int]:
    """Count the rows of a table by a column, most first; where there is none: ``none``."""
    rows = tx.rows(
        f"SELECT coalesce({column}, 'none') AS name, count(*) AS number FROM {table} "
        f"GROUP BY {column} ORDER BY number DESC, {column}"
    )
    return {row["name"]: row["number"] for row in rows}
