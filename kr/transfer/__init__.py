"""The index as YAML, for people and older tools; here when it is written and imported by itself (SPEC 3.8, 6.2)."""

import logging
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from kr.store import entries, meta
from kr.store.engine import Store
from kr.store.meta import FIRST_IMPORT

if TYPE_CHECKING:
    from _typeshed import StrPath

    from kr.settings import Settings

log = logging.getLogger(__name__)

INDEX = "index.yaml"
ARCHIVE = "_archived-index.yaml"
WORDINGS = "_wordings.yaml"
"""What entries were asked, who wrote them, and when, beside an index in another folder (SPEC 3.2 and 6.1).

The index keeps the nine keys of seed 002, and of times the days. Without these words the entries would not be found
elsewhere as they are here, without the times not leave in the same order, and without the writers be overwritten by research;
so they go along in a file of their own: one item for each live entry's times, each text's writer, each entry's question, and
each wording. A mark of staleness for one major version alone (SPEC 3.3) goes with the times: the index says ``stale``.
"""
TIMES = "times"
"""The kind of an item there that says when, to the microsecond."""
WRITER = "writer"
"""The kind of an item there that says who wrote a text, which it names by its hash: live or archived."""
PROVED = "proved"
"""The key of a wording there that serves by itself."""
STALE_MAJOR = "stale_major"
"""The key of such an item that a marked entry alone has."""
EXACT = ("created", "last_accessed", "researched_at", "fresh_until")

_BEGUN = "begun"
_LOCK = ".import.lock"
_WAIT_SECONDS = 60.0
_SHOWN = 20


def import_on_first_use(store: Store, knowledge_base: "StrPath", *, now: datetime) -> bool:
    """Import index and archive once, one of parallel first users for all, and tell whether that was done now.

    A broken index is a warning (seed 000, error row 4), and tried again until there are entries. Raises a ``StoreError``.
    """
    if not _is_first_use(store):
        return False
    from pathlib import Path

    from kr.freshness import to_text
    from kr.store.lock import file_lock
    from kr.text.counting import counted
    from kr.transfer.import_yaml import import_yaml

    base = Path(knowledge_base)
    with file_lock(base / _LOCK, timeout=_WAIT_SECONDS):
        if not _is_first_use(store):
            return False
        # Whoever is interrupted leaves a part: the next one goes on, whatever is in the database by then.
        _note(store, _BEGUN)
        result = import_yaml(store, base, [base], now=now)
        told = [*map(str, result.unreadable), *map(str, result.refused), *result.warnings]
        for line in told[:_SHOWN]:
            log.warning("%s", line)
        if len(told) > _SHOWN:
            log.warning("%s: %s", knowledge_base, counted(len(told) - _SHOWN, "more warning"))
        is_in_vain = bool(result.unreadable) and not result.has_changed
        _note(store, "" if is_in_vain else to_text(now))
        if is_in_vain:
            return False
        counts = result.counts
        imported = counted(counts["imported"], "entry", "entries")
        log.info("%s: imported %s, %d archived", knowledge_base, imported, counts["archived"])
    return True


def is_day(time: str) -> bool:
    """Tell whether a kept time is that of a bare date."""
    return time[10:19] == "T00:00:00"


def export_wanted(settings: "Settings", store: Store) -> Callable[[], None]:
    """Give what writes the YAML files after a change; nothing where ``auto_export`` is off (SPEC 3.8)."""

    def export() -> None:
        if settings.knowledge_research.auto_export:
            from kr.transfer.export import refresh_exports

            refresh_exports(store, settings.knowledge_base)

    return export


def _is_first_use(store: Store) -> bool:
    with store.read() as tx:
        noted = meta.get(tx, FIRST_IMPORT)
        return noted == _BEGUN or (not noted and entries.count(tx) == 0)


def _note(store: Store, value: str) -> None:
    with store.write() as tx:
        meta.put(tx, FIRST_IMPORT, value)
