"""The numbers behind ``kr stats``: read-only counts, most of them from the public views (SPEC 5)."""

from typing import Any, NamedTuple

import sqlalchemy as sa

from kr.store.schema import archived_entries, entries, lessons, requests, source_calls

HIT = "cache-hit"
ANSWERED = ("success", "partial", "timeout")
"""The statuses of a research that a source answered: what a hit spares (SPEC 3.9)."""

Row = dict[str, Any]


class Averages(NamedTuple):
    """Requests of one kind: how many, their mean duration, and the mean number of calls they were charged."""

    number: int
    mean_ms: float
    mean_calls: float


class Counts:
    """Counts in the caller's transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def view(self, name: str) -> list[Row]:
        """Return the rows of a public view, in its order."""
        return self._rows(sa.select(sa.text("*")).select_from(sa.table(name)))

    def calls_by_day(self, since: str) -> dict[str, dict[str, int]]:
        """Count calls to sources by UTC day from ``since`` (a date) on: ``charged`` and ``failed`` ones."""
        day = sa.func.substr(source_calls.c.at, 1, 10).label("day")
        charged = sa.func.sum(sa.case((source_calls.c.charged.is_(sa.true()), 1), else_=0))
        failed = sa.func.sum(sa.case((source_calls.c.outcome != "success", 1), else_=0))
        query = sa.select(day, charged.label("charged"), failed.label("failed"))
        rows = self._rows(query.where(source_calls.c.at >= since).group_by(day))
        return {row.pop("day"): row for row in rows}

    def answer_tokens(self) -> float | None:
        """Return how much a research that was answered gave to read on average, in tokens; None: never measured."""
        each = (
            sa.select(sa.func.sum(source_calls.c.answer_tokens).label("tokens"))
            .where(source_calls.c.answer_tokens.is_not(None))
            .group_by(source_calls.c.request_id)
            .subquery()
        )
        mean = self._connection.execute(sa.select(sa.func.avg(each.c.tokens))).scalar_one()
        return None if mean is None else float(mean)

    def requests_by_story(self) -> list[Row]:
        """Count the research requests of each story that were no failure, and how many of them were hits."""
        story = (requests.c.session_id, requests.c.story_key)
        query = sa.select(
            *story,
            sa.func.count().label("requests"),
            sa.func.sum(sa.case((requests.c.status == HIT, 1), else_=0)).label("hits"),
            sa.func.max(requests.c.at).label("last_at"),
        )
        chosen = query.where(requests.c.mode == "research", requests.c.status != "failure")
        return self._rows(chosen.group_by(*story))

    def entries_by(self, column: str) -> dict[str, int]:
        """Count live entries by ``status``, ``confidence`` or another column; most first."""
        return self._counted(entries.c[column])

    def archived_by_reason(self) -> dict[str, int]:
        """Count archived rows by why they were archived."""
        return self._counted(archived_entries.c.reason)

    def last_accesses(self) -> list[str]:
        """Return the time of the last access of every live entry."""
        return list(self._connection.execute(sa.select(entries.c.last_accessed)).scalars())

    def requests_by(self, column: str) -> dict[str, int]:
        """Count requests by ``mode`` or ``status``; what a bad request lacked counts as ``none``."""
        return self._counted(requests.c[column])

    def research_statuses(self) -> dict[str, int]:
        """Count the requests in mode research by status."""
        return self._counted(requests.c.status, requests.c.mode == "research")

    def lessons(self) -> int:
        """Count the lessons that the file holds, as far as is known."""
        query = sa.select(sa.func.count()).select_from(lessons).where(lessons.c.gone_at.is_(None))
        return self._connection.execute(query).scalar_one()

    def hits(self) -> Averages:
        """Measure the research requests that the cache answered."""
        return self._averages(requests.c.status == HIT)

    def answered(self) -> Averages:
        """Measure the research requests that a source answered."""
        return self._averages(requests.c.status.in_(ANSWERED))

    def _averages(self, which: sa.ColumnElement[bool]) -> Averages:
        calls = (
            sa.select(sa.func.count())
            .select_from(source_calls)
            .where(source_calls.c.request_id == requests.c.id, source_calls.c.charged.is_(sa.true()))
            .scalar_subquery()
        )
        chosen = sa.select(requests.c.duration_ms, calls.label("calls")).where(
            requests.c.mode == "research", which
        )
        each = chosen.subquery()
        row = self._connection.execute(
            sa.select(
                sa.func.count().label("number"),
                sa.func.avg(each.c.duration_ms).label("ms"),
                sa.func.avg(each.c.calls).label("calls"),
            ).select_from(each)
        ).one()
        return Averages(row.number, float(row.ms or 0), float(row.calls or 0))

    def _counted(self, column: sa.Column[Any], *which: sa.ColumnElement[bool]) -> dict[str, int]:
        number = sa.func.count().label("number")
        rows = self._connection.execute(
            sa.select(column.label("name"), number)
            .where(*which)
            .group_by(column)
            .order_by(number.desc(), column)
        )
        return {str(row.name) if row.name is not None else "none": row.number for row in rows}

    def _rows(self, query: sa.Select[Any]) -> list[Row]:
        return [dict(row._mapping) for row in self._connection.execute(query)]  # noqa: SLF001 - the documented name
