"""The folder of reports that a database belongs to, where it lies outside of it (``KR_DATABASE_URL``).

An entry whose report is missing leaves the index (SPEC 3.3). With another project's folder named beside the
database, every entry would seem to have lost its report; so the database remembers its folder.
"""

import os
from pathlib import Path

from kr.store.hashing import decoded, digest
from kr.store.reports import ReportFiles
from kr.store.standing import standing
from kr.store.unit import Unit
from kr.values import Entry

_KEY = "knowledge_base"


def foreign_home(unit: Unit, knowledge_base: Path) -> Path | None:
    """Return the folder that the database belongs to when it is another than ``knowledge_base``, and still there.

    A folder that is gone was moved, or is mounted elsewhere on this machine: then it may be this one.
    """
    known = unit.meta.get(_KEY)
    if known is None or not Path(known, "frameworks").is_dir():
        return None
    try:
        is_same = Path(known).samefile(knowledge_base)
    except OSError:
        is_same = False
    return None if is_same else Path(known)


def why_foreign(unit: Unit, knowledge_base: Path) -> str | None:
    """Say, in a clause, why the database is not this folder's; None where it is, or may become so.

    One that remembers no folder belongs to one where some of its reports are.
    """
    home = foreign_home(unit, knowledge_base)
    if home is not None:
        return f"it indexes the reports in {home}, not those in {knowledge_base}"
    if unit.meta.get(_KEY) is not None:
        return None
    live = unit.entries.all()
    if not live or any(standing(knowledge_base, entry.path).state != "absent" for entry in live):
        return None
    return f"none of the reports that it indexes is in {knowledge_base}"


def is_claimed(unit: Unit, knowledge_base: Path) -> bool:
    """Tell whether the database remembers this very folder."""
    return unit.meta.get(_KEY) == os.path.realpath(knowledge_base)


def claim(unit: Unit, knowledge_base: Path) -> None:
    """Remember the folder."""
    unit.meta.put(_KEY, os.path.realpath(knowledge_base))


def may_move_in(unit: Unit, knowledge_base: Path) -> bool:
    """Tell whether the database belongs to another folder of which this one holds every live report as well."""
    home = foreign_home(unit, knowledge_base)
    live = unit.entries.all() if home is not None else []
    return home is not None and bool(live) and all(_is_here(it, home, knowledge_base) for it in live)


def _is_here(entry: Entry, home: Path, knowledge_base: Path) -> bool:
    content = ReportFiles(knowledge_base).read(entry.path) or b""
    known = digest(decoded(content)) == entry.sha256 or content == ReportFiles(home).read(entry.path)
    return known and bool(content.strip())
