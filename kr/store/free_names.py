"""Under which id and path a report may stand (SPEC 2): its own, or the first that nothing stands in the way of."""

from collections.abc import Iterator

import sqlalchemy as sa

from kr import naming
from kr.errors import StoreError
from kr.store.reports import ReportFiles
from kr.store.schema import archived_entries, entries, revisions


def free_name(connection: sa.Connection, files: ReportFiles, framework: str, topic: str) -> naming.Name:
    """Return the first name that nothing stands in the way of. Raises ``StoreError`` when there is none."""
    for name in _names(framework, topic):
        if is_free(connection, files, name, framework, topic):
            return name
    raise StoreError(f"{framework} - {topic}: every name for its report is taken")


def is_free(
    connection: sa.Connection, files: ReportFiles, name: naming.Name, framework: str, topic: str
) -> bool:
    """Return whether a report of this framework and topic can stand under a name."""
    return not files.is_blocked(name.path) and not _is_taken(connection, name, framework, topic)


def _names(framework: str, topic: str) -> Iterator[naming.Name]:
    yield naming.base_name(framework, topic)
    suffixed = naming.suffixed_name(framework, topic)
    yield suffixed
    stem = suffixed.path.removesuffix(".md")
    for number in range(2, 100):
        yield naming.Name(id=f"{suffixed.id}-{number}", path=f"{stem}-{number}.md")


def _is_taken(connection: sa.Connection, name: naming.Name, framework: str, topic: str) -> bool:
    """Return whether another framework or topic has this id or path: live, archived or in the history."""
    pair = (naming.fold(framework), naming.fold(topic))
    for table, key in (
        (entries, entries.c.id),
        (archived_entries, archived_entries.c.id),
        (revisions, revisions.c.entry_id),
    ):
        other = sa.or_(table.c.framework_key != pair[0], table.c.topic_key != pair[1])
        # Two look-ups rather than an OR: each has an index.
        for same in (key == name.id, table.c.path == name.path):
            if connection.execute(sa.select(sa.literal(1)).where(same, other).limit(1)).first():
                return True
    return False
