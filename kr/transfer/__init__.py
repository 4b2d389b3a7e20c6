"""The index as YAML, for people and older tools: written after a change, and imported."""

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kr.settings import Settings
    from kr.store.engine import Store

INDEX = "index.yaml"
ARCHIVE = "_archived-index.yaml"
WORDINGS = "_wordings.yaml"
"""Beside an index that was exported into another folder: what its nine keys leave out, for an import.

One item for each live entry's exact times (kind ``times``), each text's writer (``writer``), each entry's question (``question``), and
each wording (``wording``).
"""
EXACT_TIMES = ("created", "last_accessed", "researched_at", "fresh_until")
"""The times of an entry that ``WORDINGS`` has to the microsecond; the index has days."""


def is_day(time: str) -> bool:
    """Tell whether a kept time is that of a bare date."""
    return time[10:19] == "T00:00:00"


def export_wanted(settings: "Settings", store: "Store") -> Callable[[], None]:
    """Give what writes the YAML files after a change; nothing where ``auto_export`` is off."""

    def export() -> None:
        if settings.knowledge_research.auto_export:
            from kr.transfer.export_yaml import refresh_exports  # heavy: no hit exports

            refresh_exports(store, settings.knowledge_base)

    return export
