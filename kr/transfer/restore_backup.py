"""A backup in the place of the database, and the reports and exports as it says."""

from pathlib import Path

from kr.store import backup, entries, reports
from kr.store.engine import Store
from kr.transfer import ARCHIVE, INDEX
from kr.transfer.export_yaml import refresh_exports


def restore_backup(store: Store, folder: Path, file: Path, moment: str) -> Path | None:
    """Put a backup in the database's place, and make reports and exports what it says; return the present database's copy.

    A report or export that differs is kept beside its new text, as ``NAME.MOMENT.bak``: it may hold what somebody wrote since.
    """
    kept = backup.restore(store.path, file, moment)
    for name in (INDEX, ARCHIVE):
        if (folder / name).exists():
            _set_aside(folder / name, moment)
    with store.write() as tx:
        for entry in entries.all(tx):
            text, present = reports.text_of(tx, entry.sha256), store.files.read(entry.path)
            if text is not None and present != text.encode():
                if present is not None:
                    _set_aside(folder / entry.path, moment)
                store.files.write(entry.path, text)
    refresh_exports(store, folder)
    return kept


def _set_aside(path: Path, moment: str) -> None:
    path.rename(path.with_name(f"{path.name}.{moment}.bak"))
