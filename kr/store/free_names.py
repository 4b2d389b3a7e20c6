"""Under which id and path a report may stand (SPEC 2): its own, or the first that nothing stands in the way of."""

from collections.abc import Iterator
from typing import NamedTuple

import sqlalchemy as sa

from kr import naming
from kr.errors import StoreError
from kr.freshness import major_key, same_major
from kr.store.keys import pair_of
from kr.store.reports import ReportFiles
from kr.store.schema import archived_entries, entries, revisions


class Subject(NamedTuple):
    """What a report is about. ``version`` is as it was asked for."""

    framework: str
    topic: str
    version: str


def free_name(connection: sa.Connection, files: ReportFiles, subject: Subject) -> naming.Name:
    """Return the first name that nothing stands in the way of. Raises ``StoreError`` when there is none."""
    for name in wanted_names(subject, has_others=_has_other_majors(connection, subject)):
        if is_free(connection, files, name, subject):
            return name
    raise StoreError(f"{subject.framework} - {subject.topic}: every name for its report is taken")


def free_id(connection: sa.Connection, files: ReportFiles, subject: Subject, path: str) -> str:
    """Return the first id that the report at a path, which no row speaks of, can have. Raises ``StoreError``."""
    for name in wanted_names(subject, has_others=_has_other_majors(connection, subject)):
        if is_free(connection, files, name._replace(path=path), subject):
            return name.id
    raise StoreError(f"{subject.framework} - {subject.topic}: every id for its report is taken")


def is_free(
    connection: sa.Connection,
    files: ReportFiles,
    name: naming.Name,
    subject: Subject,
    *,
    own_id: str | None = None,
) -> bool:
    """Return whether a report of this subject can stand under a name. ``own_id``: the live entry that it renews."""
    return not files.is_blocked(name.path) and not _is_taken(connection, name, subject, own_id)


def wanted_names(subject: Subject, *, has_others: bool) -> Iterator[naming.Name]:
    """Give the names that a subject asks for, in order; ``has_others``: other major versions of it have theirs."""
    pair = (subject.framework, subject.topic)
    wanted = [naming.base_name(*pair), naming.suffixed_name(*pair)]
    if has_others:
        wanted = [naming.versioned_name(name, major_key(subject.version)) for name in wanted]
    yield from wanted
    last = wanted[-1]
    stem = last.path.removesuffix(".md")
    for number in range(2, 100):
        yield naming.Name(id=f"{last.id}-{number}", path=f"{stem}-{number}.md")


def _has_other_majors(connection: sa.Connection, subject: Subject) -> bool:
    """Tell whether there are entries of other major versions, live or archived."""
    pair = pair_of(subject.framework, subject.topic)
    versions = {
        version
        for table in (entries, archived_entries)
        for version in connection.execute(
            sa.select(table.c.framework_version).where(
                table.c.framework_key == pair[0], table.c.topic_key == pair[1]
            )
        ).scalars()
    }
    return any(not same_major(version, subject.version) for version in versions)


def _is_taken(connection: sa.Connection, name: naming.Name, subject: Subject, own_id: str | None) -> bool:
    """Return whether another framework or topic has this id or path, live, archived or in the history.

    So does a live entry of the same topic, if it is not the one that is renewed: it is of another major version.
    """
    pair = pair_of(subject.framework, subject.topic)
    for same in (entries.c.id == name.id, entries.c.path == name.path):
        found = connection.execute(sa.select(entries.c.id).where(same)).scalars()
        if any(entry_id != own_id for entry_id in found):
            return True
    for table, key in (
        (archived_entries, archived_entries.c.id),
        (revisions, revisions.c.entry_id),
    ):
        other = sa.or_(table.c.framework_key != pair[0], table.c.topic_key != pair[1])
        # Two look-ups rather than an OR: each has an index.
        for same in (key == name.id, table.c.path == name.path):
            if connection.execute(sa.select(sa.literal(1)).where(same, other).limit(1)).first():
                return True
    return False
