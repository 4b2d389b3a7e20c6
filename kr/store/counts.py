"""The numbers behind ``kr stats``: read-only counts, most of them from the public views (SPEC 5)."""

from typing import Any, Literal, NamedTuple

from kr.store.session import Part, json_list

HIT = "cache-hit"
ANSWERED = ("success", "partial", "timeout")
"""The statuses of a research that a source answered: what a hit spares (SPEC 3.9)."""

Row = dict[str, Any]

_CALLS_BY_DAY = (
    "SELECT substr(at, 1, 10) AS day, sum(charged = 1) AS charged, sum(outcome <> 'success') AS failed "
    "FROM source_calls WHERE at >= :since GROUP BY day"
)
_ANSWER_TOKENS = (
    "SELECT avg(tokens) FROM (SELECT sum(answer_tokens) AS tokens FROM source_calls "
    "WHERE answer_tokens IS NOT NULL GROUP BY request_id)"
)
_BY_STORY = (
    f"SELECT session_id, story_key, count(*) AS requests, sum(status = '{HIT}') AS hits, max(at) AS last_at "
    "FROM requests WHERE mode = 'research' AND status <> 'failure' GROUP BY session_id, story_key"
)
_COUNTED = "SELECT coalesce({0}, 'none') AS name, count(*) AS number FROM {1} {2} GROUP BY {0} ORDER BY number DESC, {0}"
_LAST_ACCESSES = "SELECT last_accessed FROM entries"
_LESSONS = "SELECT count(*) FROM lessons WHERE gone_at IS NULL"
_AVERAGES = (
    "SELECT count(*), coalesce(avg(duration_ms), 0.0), coalesce(avg((SELECT count(*) FROM source_calls AS call "
    "WHERE call.request_id = requests.id AND call.charged = 1)), 0.0) "
    "FROM requests WHERE mode = 'research' AND status IN (SELECT value FROM json_each(:statuses))"
)


class Averages(NamedTuple):
    """Requests of one kind: how many, their mean duration, and the mean number of calls they were charged."""

    number: int
    mean_ms: float
    mean_calls: float


class Counts(Part):
    def view(self, name: str) -> list[Row]:
        return self._rows(f"SELECT * FROM {name}")

    def calls_by_day(self, since: str) -> dict[str, dict[str, int]]:
        """Count calls to sources by UTC day from ``since`` (a date) on: ``charged`` and ``failed`` ones."""
        return {row.pop("day"): row for row in self._rows(_CALLS_BY_DAY, since=since)}

    def answer_tokens(self) -> float | None:
        """Return how much a research that was answered gave to read on average, in tokens; None: never measured."""
        mean: float | None = self._session.value(_ANSWER_TOKENS)
        return mean

    def requests_by_story(self) -> list[Row]:
        """Count the research requests of each story that were no failure, and how many of them were hits."""
        return self._rows(_BY_STORY)

    def number_by(
        self,
        column: str,
        table: Literal["entries", "archived_entries", "requests"],
        *,
        mode: str | None = None,
    ) -> dict[str, int]:
        """Count the rows of a table (of one ``mode`` the requests) by a column, most first; where there is none: ``none``."""
        which = "" if mode is None else "WHERE mode = :mode"
        rows = self._session.rows(_COUNTED.format(column, table, which), mode=mode)
        return {row["name"]: row["number"] for row in rows}

    def last_accesses(self) -> list[str]:
        return [row[0] for row in self._session.rows(_LAST_ACCESSES)]

    def lessons(self) -> int:
        return int(self._session.value(_LESSONS))

    def averages(self, *statuses: str) -> Averages:
        """Measure the research requests that ended so."""
        [row] = self._session.rows(_AVERAGES, statuses=json_list(statuses))
        return Averages(*row)

    def _rows(self, statement: str, **named: str) -> list[Row]:
        return [dict(row) for row in self._session.rows(statement, **named)]
