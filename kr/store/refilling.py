"""Makes the keys of rows: they are NULL where plain SQL wrote the row, and others once kr learned more names."""

import zlib

import sqlalchemy as sa

from kr.store.keys import framework_key, pair_of
from kr.store.meta import Meta
from kr.store.schema import archived_entries, entries, libraries, revisions

_NAMES = "framework_names"


def fill(connection: sa.Connection) -> None:
    """Make the keys of rows that came, or were edited, by plain SQL; of all rows once kr knows other names."""
    _follow_names(connection)
    for table, key in ((entries, entries.c.id), (archived_entries, archived_entries.c.archive_id)):
        rows = connection.execute(
            sa.select(key.label("key"), table.c.framework, table.c.topic).where(
                table.c.framework_key.is_(None)
            )
        ).all()
        for row in rows:
            pair = pair_of(row.framework, row.topic)
            connection.execute(
                sa.update(table).where(key == row.key).values(framework_key=pair[0], topic_key=pair[1])
            )


def _follow_names(connection: sa.Connection) -> None:
    """Make the keys anew that another table of names made; where a name is not kept, its old key is one."""
    from kr.matching.framework_table import NAMES

    meta, current = Meta(connection), str(zlib.crc32(NAMES.encode()))
    if meta.get(_NAMES) == current:
        return
    for table in (entries, archived_entries):
        written = (table.c.framework, table.c.framework_key)
        for name, old in connection.execute(sa.select(*written).distinct()).all():
            if old is not None and framework_key(name) != old:
                named = sa.update(table).where(table.c.framework_key == old, table.c.framework == name)
                connection.execute(named.values(framework_key=framework_key(name)))
    for table in (revisions, libraries):
        old = connection.execute(sa.select(table.c.framework_key).distinct()).scalars().all()
        for key in old:
            if key is None or framework_key(key) == key:
                continue
            # A library that is known under both names stays as it is under the newer one.
            rename = sa.update(table).where(table.c.framework_key == key).prefix_with("OR IGNORE")
            connection.execute(rename.values(framework_key=framework_key(key)))
    meta.put(_NAMES, current)
