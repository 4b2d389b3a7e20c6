"""The folder of reports that a database belongs to, where it lies outside of it (``KR_DATABASE_URL``).

An entry whose report is missing leaves the index (SPEC 3.3). With another project's folder named beside the
database, every entry would seem to have lost its report; so the database remembers its folder.
"""

import os
from pathlib import Path

from kr.store.unit import Unit

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


def is_claimed(unit: Unit, knowledge_base: Path) -> bool:
    """Tell whether the database remembers this very folder."""
    return unit.meta.get(_KEY) == os.path.realpath(knowledge_base)


def claim(unit: Unit, knowledge_base: Path) -> None:
    """Remember the folder."""
    unit.meta.put(_KEY, os.path.realpath(knowledge_base))
