"""Puts a database's indexes, triggers, views and unreadable cells right, in place (SPEC 6.5)."""

import sqlalchemy as sa

from kr.store import upgrade
from kr.store.cells import Told, mend_cells
from kr.store.schema import archived_entries, entries, entry_terms, entry_vectors, report_texts
from kr.store.search import Search
from kr.text.counting import counted

_KINDS = ("index", "trigger", "view")


def mend(connection: sa.Connection, told: Told) -> list[str]:
    """Create what is missing of them as the migrations do, build the indexes anew.

    Returns what was put right, as ``index entries_path`` or ``2 rows``. The caller commits.
    """
    present = {(kind, name.lower()) for kind, name in _definitions(connection)}
    made = []
    for (kind, name), statement in _definitions_of_a_new_one().items():
        if (kind, name) not in present:
            connection.exec_driver_sql(statement)
            made.append(f"{kind} {name}")
    connection.exec_driver_sql("REINDEX")
    for table in (entries, archived_entries):
        unknown = table.c.sha256.not_in(sa.select(report_texts.c.sha256))
        connection.execute(sa.update(table).where(unknown).values(sha256=None))
    made += _drop_derived_of_gone(connection)
    Search(connection).refill()
    cells = mend_cells(connection, told)
    if cells:
        made.append(counted(cells, "row"))
    return made


def _drop_derived_of_gone(connection: sa.Connection) -> list[str]:
    """Drop what was made of entries that somebody deleted by plain SQL, where no reference is followed."""
    made = []
    for table in (entry_terms, entry_vectors):
        gone = sa.delete(table).where(table.c.entry_id.not_in(sa.select(entries.c.id)))
        if dropped := connection.execute(gone).rowcount:
            made.append(f"{counted(dropped, 'row')} of {table.name}")
    return made


def _definitions_of_a_new_one() -> dict[tuple[str, str], str]:
    """The migrations are the one place that says what a view is."""
    engine = sa.create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            upgrade.run(connection)
            return _definitions(connection)
    finally:
        engine.dispose()


def _definitions(connection: sa.Connection) -> dict[tuple[str, str], str]:
    rows = connection.exec_driver_sql(
        "SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type, name"
    )
    return {(kind, name): statement for kind, name, statement in rows if kind in _KINDS}
