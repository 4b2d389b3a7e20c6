"""The numbers behind ``kr stats``, most of them from the public views."""

from typing import Any, Literal

from kr.store.engine import Transaction

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
    return _rows(tx, f"SELECT * FROM {name}")


def calls_by_day(tx: Transaction, since: str) -> dict[str, dict[str, int]]:
    """Count calls to sources by UTC day from ``since`` (a date) on: ``charged`` and ``failed`` ones."""
    rows = _rows(
        tx,
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
    return _rows(tx, _SPARED)


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


def _rows(tx: Transaction, statement: str, **parameters: Any) -> list[dict[str, Any]]:
    return [dict(row) for row in tx.rows(statement, **parameters)]
