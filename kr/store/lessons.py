"""Tables ``lessons`` and ``lesson_injections``: what is known of the lines of the lessons file (SPEC 4.2, 5)."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict

import sqlalchemy as sa

from kr.store.rows import LessonMark, LessonRow, LessonState
from kr.store.schema import lesson_injections, lessons

_SUNK_AFTER = 10

_AT_ONCE = 400
_ORIGIN = ("event_type", "story_key", "session_id", "recorded_at", "source")
_SESSIONS = (
    sa.select(sa.func.count(lesson_injections.c.session_id.distinct()))
    .where(lesson_injections.c.lesson_id == lessons.c.id)
    .scalar_subquery()
    .label("sessions")
)
_STATE = (
    *(
        lessons.c[name]
        for name in LessonState.__dataclass_fields__
        if name != "sessions"
    ),
    _SESSIONS,
)  # fmt: skip


class Lessons:
    """Reads and writes them in the caller's transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def add(self, rows: Sequence[LessonRow]) -> int:
        """Add the rows whose id is new, and return how many those are.

        What is known stays as it is, but an origin that was not known is filled in: a line may be picked up by
        one process before the one that recorded it tells where it came from. What was gone is back.
        """
        unique = {row.id: row for row in rows}
        known = self._known(list(unique))
        self.mark_gone(known, None)
        new = [{**asdict(row), "tags": _json(row.tags)} for row in unique.values() if row.id not in known]
        if new:
            self._connection.execute(sa.insert(lessons), new)
        for row in unique.values():
            if row.id in known and row.event_type is not None:
                origin = {name: getattr(row, name) for name in _ORIGIN}
                unknown = lessons.c.id == row.id, lessons.c.event_type.is_(None)
                self._connection.execute(sa.update(lessons).where(*unknown).values(origin))
        return len(new)

    def injected(self, ids: Sequence[str], *, phase: str, story_key: str, session_id: str, at: str) -> None:
        """Count each lesson as injected once more, and keep for whom."""
        given = {"phase": phase, "story_key": story_key, "session_id": session_id, "at": at}
        if ids:
            self._connection.execute(
                sa.insert(lesson_injections), [{"lesson_id": lesson, **given} for lesson in ids]
            )
            self._connection.execute(
                sa.update(lessons).where(lessons.c.id.in_(ids)).values(injected=lessons.c.injected + 1)
            )

    def recurred(self, ids: Sequence[str], *, session_id: str, at: str) -> None:
        """Count that the lessons' failures came back, and apart whether this session had been given them."""
        was_given = (
            sa.select(lesson_injections.c.id)
            .where(
                lesson_injections.c.lesson_id == lessons.c.id, lesson_injections.c.session_id == session_id
            )
            .exists()
        )
        after = lessons.c.recurred_after_injection + sa.case((was_given, 1), else_=0)
        self._connection.execute(
            sa.update(lessons)
            .where(lessons.c.id.in_(ids))
            .values(recurred=lessons.c.recurred + 1, recurred_after_injection=after, last_recurred_at=at)
        )

    def in_file(self) -> dict[str, bool]:
        """Return the id of every row, and whether it is in the file as far as is known."""
        rows = self._connection.execute(sa.select(lessons.c.id, lessons.c.gone_at))
        return {row.id: row.gone_at is None for row in rows}

    def mark_gone(self, ids: Iterable[str], at: str | None) -> None:
        """Mark lessons that the file no longer holds, or with ``None`` those that it holds again. Their counts stay."""
        has_changed = lessons.c.gone_at.is_(None) if at else lessons.c.gone_at.is_not(None)
        for some in _portions(sorted(ids)):
            self._connection.execute(
                sa.update(lessons).where(lessons.c.id.in_(some), has_changed).values(gone_at=at)
            )

    def states(self, ids: Iterable[str]) -> dict[str, LessonState]:
        """Return what is known of each of the lessons that have a row."""
        found: dict[str, LessonState] = {}
        for some in _portions(list(ids)):
            rows = self._connection.execute(sa.select(*_STATE).where(lessons.c.id.in_(some))).mappings()
            found.update({row["id"]: LessonState(**row) for row in rows})
        return found

    def remarkable(self, phase: str) -> dict[str, LessonState]:
        """Return what is known of the lessons that don't stand where their date puts them, or have an origin.

        Of any phase: a line may carry several.
        """
        # The number of sessions costs a look at each injection, and no rank needs it.
        columns = [column for column in _STATE if column is not _SESSIONS]
        told = (
            lessons.c.tags.contains(json.dumps(phase, ensure_ascii=False)),
            lessons.c.gone_at.is_(None),
            sa.or_(
                lessons.c.recurred > 0,
                lessons.c.injected >= _SUNK_AFTER,
                lessons.c.source.is_not(None),
                *(
                    lessons.c[mark].is_not(None)
                    for mark in ("retired_at", "pinned_at", "approved_at", "superseded_by")
                ),
            ),
        )
        rows = self._connection.execute(sa.select(*columns).where(*told)).mappings()
        return {row["id"]: LessonState(**row) for row in rows}

    def mark(self, lesson_id: str, mark: LessonMark, value: str | None) -> None:
        """Set or take off what a person said of a lesson."""
        self._connection.execute(sa.update(lessons).where(lessons.c.id == lesson_id).values({mark: value}))

    def _known(self, ids: Sequence[str]) -> set[str]:
        found: set[str] = set()
        for some in _portions(ids):
            found.update(
                self._connection.execute(sa.select(lessons.c.id).where(lessons.c.id.in_(some))).scalars()
            )
        return found


def _portions(ids: Sequence[str]) -> Iterable[Sequence[str]]:
    return (ids[at : at + _AT_ONCE] for at in range(0, len(ids), _AT_ONCE))


def _json(tags: tuple[str, ...]) -> str:
    return json.dumps(tags, ensure_ascii=False)
