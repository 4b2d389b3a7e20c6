"""What to say of an id that is not there: where it is instead, or which ids are like it."""

from collections.abc import Iterable

from kr.errors import UnknownEntry
from kr.frameworks import most_alike
from kr.store import archive, entries
from kr.store.engine import Transaction
from kr.text import one_line

_LONGEST_ID = 200


def unknown_entry(tx: Transaction, entry_id: str) -> UnknownEntry:
    """Say that no live entry has this id."""
    if archive.of_id(tx, entry_id):
        how = f"kr archive restore {entry_id}"
        return UnknownEntry(f"{_shown(entry_id)} is in the archive, not in the index; {how} brings it back")
    return _unknown("no entry has the id", entry_id, entries.ids(tx), "kr entries list")


def unknown_archived(tx: Transaction, entry_id: str) -> UnknownEntry:
    """Say that no archived entry has this id."""
    if entries.get(tx, entry_id) is not None:
        return UnknownEntry(f"{_shown(entry_id)} is not in the archive: it is live; see kr entries show")
    return _unknown("no archived entry has the id", entry_id, archive.ids(tx), "kr archive list")


def nowhere(entry_id: str) -> UnknownEntry:
    """Say that nothing has this id, since there is no database."""
    return UnknownEntry(f"no entry has the id {_shown(entry_id)}; there is no database yet")


def _unknown(what: str, entry_id: str, ids: Iterable[str], command: str) -> UnknownEntry:
    alike = ", ".join(one_line(found, _LONGEST_ID) for found in most_alike(entry_id, ids))
    hint = f"nearest: {alike}" if alike else f"{command} shows them"
    return UnknownEntry(f"{what} {_shown(entry_id)}; {hint}")


def _shown(entry_id: str) -> str:
    return f'"{one_line(entry_id, _LONGEST_ID)}"'
