"""Puts a database's indexes, triggers, views, counters and unreadable cells right, in place (SPEC 6.5)."""

import sqlalchemy as sa

from kr.store import upgrade
from kr.store.cells import Told, mend_cells
from kr.store.schema import DERIVED, counters, entries, metadata
from kr.text.counting import counted

_KINDS = ("index", "trigger", "view")


def mend(connection: sa.Connection, told: Told) -> list[str]:
    """Create what is missing of them as the migrations do, build the indexes anew and count the rows.

    Returns what was put right, as ``index entries_path`` or ``2 rows``. The caller commits.
    """
    present = {(kind, name.lower()) for kind, name in _definitions(connection)}
    made = []
    for (kind, name), statement in _definitions_of_a_new_one().items():
        if (kind, name) not in present:
            connection.exec_driver_sql(statement)
            made.append(f"{kind} {name}")
    connection.exec_driver_sql("REINDEX")
    made += _drop_derived_of_gone(connection)
    cells = mend_cells(connection, told)
    if cells:
        made.append(counted(cells, "row"))
    recount(connection)
    return made


def _drop_derived_of_gone(connection: sa.Connection) -> list[str]:
    """Drop what was made of entries that somebody deleted by plain SQL, where no reference is followed."""
    made = []
    for name in sorted(DERIVED):
        table = metadata.tables[name]
        gone = sa.delete(table).where(table.c.entry_id.not_in(sa.select(entries.c.id)))
        if dropped := connection.execute(gone).rowcount:
            made.append(f"{counted(dropped, 'row')} of {name}")
    return made


def recount(connection: sa.Connection) -> None:
    """Set the counter of live entries to what is there."""
    number = sa.select(sa.func.count()).select_from(entries).scalar_subquery()
    changed = connection.execute(sa.update(counters).where(counters.c.name == "entries").values(value=number))
    if not changed.rowcount:
        connection.execute(sa.insert(counters).values(name="entries", value=number))


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
