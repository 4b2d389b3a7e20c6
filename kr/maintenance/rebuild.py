"""Building a database anew from what is left: readable rows, exports, and reports (SPEC 6.5).

Nothing is deleted: a damaged file is kept beside the new one.
"""

from collections.abc import Callable
from pathlib import Path

from kr.maintenance.findings import Patient
from kr.maintenance.orphans import report_paths
from kr.store.cells import Told
from kr.store.copies import move_aside
from kr.store.incoming import Incoming
from kr.store.inspection import sqlite_file
from kr.store.salvage import salvage
from kr.text.counting import counted

EXPORTS = ("index.yaml", "_archived-index.yaml")

_MOST_TOLD = 5


def remains(patient: Patient) -> str:
    """Say what a new database could be made of; empty when there is nothing."""
    exports = [name for name in EXPORTS if (patient.knowledge_base / name).is_file()]
    reports = len(report_paths(patient.knowledge_base))
    told = [*exports, counted(reports, "report") if reports else ""]
    return " and ".join(part for part in told if part)


def rebuild(patient: Patient) -> str:
    """Make a database from the exports; reports that they leave out are found as orphans next."""
    with patient.store.write() as unit:
        unit.entries.count()
    return take_in(patient)


def replace_damaged(patient: Patient) -> str:
    """Move a damaged database aside, and rescue into a new one what can be read of it and of the exports."""
    path = patient.database
    patient.store.close()
    with sqlite_file(path, timeout=60.0).exclusive():
        kept = move_aside(path, f"{patient.clock():%Y%m%dT%H%M%SZ}.damaged")
    rescued = _rescue(patient, kept)
    return f"{rescued}; {take_in(patient)}; the damaged file is {kept}"


def _rescue(patient: Patient, damaged: Path) -> str:
    with patient.store.rescuing() as connection:
        rows = salvage(damaged, connection)
    told = ", ".join(f"{number} of {table}" for table, number in rows.items() if number)
    return f"rows rescued: {told or 'none'}"


def take_in(patient: Patient, only: Callable[[Incoming], bool] | None = None) -> str:
    """Import the exports, or ``only`` some items of them.

    What can't be read is told; the file stays, and is copied before it is written over.
    """
    from kr.transfer.import_yaml import import_yaml

    base = patient.knowledge_base
    if not any((base / name).is_file() for name in EXPORTS):
        return "there is no export to import"
    result = import_yaml(patient.store, base, [base], now=patient.clock(), only=only)
    counts = ", ".join(f"{number} {name}" for name, number in result.counts.items() if number)
    told = [*map(str, result.unreadable), *map(str, result.refused)]
    more = len(told) - _MOST_TOLD
    bad = "; ".join(told[:_MOST_TOLD]) + (f"; and {more} more" if more > 0 else "")
    return f"from the exports: {counts or 'nothing new'}" + (f" (not taken in: {bad})" if bad else "")


def told_times(patient: Patient) -> Told:
    """Return the times that the exports tell; none where they are another database's, or tell an id twice."""
    from kr.transfer.import_yaml import told_in

    if not patient.is_at_home:
        return {}
    found: dict[tuple[bool, str], dict[str, str | None]] = {}
    twice = set()
    for file in (patient.knowledge_base / name for name in EXPORTS):
        for item in told_in(file, now=patient.clock()):
            key = (item.departure is None, item.id or "")
            if key in found:
                twice.add(key)
            at = item.departure.at if item.departure is not None else None
            found[key] = {"created": item.created, "last_accessed": item.last_accessed, "archived_at": at}
    return {key: times for key, times in found.items() if key not in twice}
