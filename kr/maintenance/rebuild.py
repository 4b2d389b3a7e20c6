"""Building a database anew from what is left: readable rows, exports, and reports (SPEC 6.5).

Nothing is deleted: a damaged file is kept beside the new one.
"""

from pathlib import Path

from kr.maintenance.findings import KnowledgeBase
from kr.maintenance.orphans import report_paths
from kr.store.soundness import rescue
from kr.text.counting import counted

EXPORTS = ("index.yaml", "_archived-index.yaml")

_MOST_TOLD = 5


def remains(base: KnowledgeBase) -> str:
    """Say what a new database could be made of; empty when there is nothing."""
    exports = [name for name in EXPORTS if (base.folder / name).is_file()]
    reports = len(report_paths(base.folder))
    told = [*exports, counted(reports, "report") if reports else ""]
    return " and ".join(part for part in told if part)


def rebuild(base: KnowledgeBase) -> str:
    """Make a database from the exports; reports that they leave out are found as orphans next."""
    with base.store.write() as unit:
        unit.entries.count()
    return take_in(base)


def replace_damaged(base: KnowledgeBase) -> str:
    """Move a damaged database aside, and rescue into a new one what can be read of it and of the exports."""
    base.store.close()
    kept = base.store.care.move_aside(f"{base.clock():%Y%m%dT%H%M%SZ}")
    rescued = _rescue(base, kept)
    return f"{rescued}; {take_in(base)}; the damaged file is {kept}"


def _rescue(base: KnowledgeBase, damaged: Path) -> str:
    with base.store.write() as unit:
        rows = rescue(damaged, unit.session)
    told = ", ".join(f"{number} of {table}" for table, number in rows.items() if number)
    return f"rows rescued: {told or 'none'}"


def take_in(base: KnowledgeBase) -> str:
    """Import the exports.

    What can't be read is told; the file stays, and is copied before it is written over.
    """
    from kr.transfer.import_yaml import import_yaml

    if not any((base.folder / name).is_file() for name in EXPORTS):
        return "there is no export to import"
    result = import_yaml(base.store, base.folder, [base.folder], now=base.clock())
    counts = ", ".join(f"{number} {name}" for name, number in result.counts.items() if number)
    told = [*map(str, result.unreadable), *map(str, result.refused)]
    more = len(told) - _MOST_TOLD
    bad = "; ".join(told[:_MOST_TOLD]) + (f"; and {more} more" if more > 0 else "")
    return f"from the exports: {counts or 'nothing new'}" + (f" (not taken in: {bad})" if bad else "")
