"""Rows and report files together: reading a report, taking in what somebody wrote into its file, making a file again.

The text in the database is the report. A file that is missing, torn, or holds an earlier text of kr's is made again; what somebody else
wrote into it becomes a finding, and the text before a revision.
"""

import logging

from kr.errors import ReportUnwritable, StoreError
from kr.models import Entry
from kr.store import entries, revisions, wordings
from kr.store.engine import Store, Transaction

log = logging.getLogger(__name__)

_SETTLE_TIMEOUT = 0.2
"""Seconds that a reader waits for writers, to bring file and row together; the next reader tries again."""


def read_report(store: Store, entry: Entry) -> str | None:
    """Return a report's text; None when it is nowhere. An edit is taken in first, a missing file is made.

    Where the file can't be brought together with the row just now, the text is returned all the same.
    """
    with store.read() as tx:
        found = settled(tx, entry) or (_copied(tx, entry) if store.is_shared else None)
    if found is not None:
        return found
    try:
        found = store.change(lambda tx: settle(tx, entry.id), timeout=_SETTLE_TIMEOUT)
    except (StoreError, ReportUnwritable) as exc:
        log.warning("%s: its file is left as it is: %s", entry.path, exc)
    if found is None:
        with store.read() as tx:
            found = revisions.text(tx, entry.sha256) or tx.files.read_text(entry.path)
    return found if found.strip() else None


def _copied(tx: Transaction, entry: Entry) -> str | None:
    """Write an entry's text into this machine's folder, where its file is missing, torn or older; None where it was edited.

    No row changes for that, so that nobody need wait, and a database that may only be read will do. ``entry`` was read before: its
    row may have a newer text.
    """
    from kr.store.edits import edit_at  # heavy: the guard

    row = entries.get(tx, entry.id)
    text = None if row is None else revisions.text(tx, row.sha256)
    if row is None or text is None or edit_at(tx, row.path, row.sha256) is not None:
        return None
    entry = row
    try:
        if not tx.files.is_blocked(entry.path):
            tx.files.write(entry.path, text)
    except ReportUnwritable as exc:
        log.warning("%s; its text is in the database", exc)
    return text


def settled(tx: Transaction, entry: Entry) -> str | None:
    """Return an entry's text where its file holds it; else None."""
    text = revisions.text(tx, entry.sha256)
    return text if text is not None and tx.files.read(entry.path) == text.encode() else None


def drop_lost(store: Store, entry: Entry) -> bool:
    """Remove an entry whose text is nowhere: not one that can't be read just now, nor of a folder that is not mounted."""
    if store.is_shared:  # another machine's folder may have its file
        return False
    with store.write() as tx:
        row = entries.get(tx, entry.id)
        is_kept = row is not None and revisions.text(tx, row.sha256) is not None
        if row is None or is_kept or tx.files.state(row.path) != "absent":
            return False
        wordings.forget(tx, entry.id)
        return entries.remove(tx, entry.id)


def settle(tx: Transaction, entry_id: str) -> str | None:
    """Bring row and file of a live entry together in a write; return the text, None when it is nowhere. Raises ``ReportUnwritable``."""
    row = entries.get(tx, entry_id)
    if row is None:
        return None
    from kr.store.edits import in_conflict, ingest_edit  # heavy: the guard

    if in_conflict(tx, row.path, row.sha256):
        log.warning("%s has the conflict markers of git, and is left as it is: take one side", row.path)
        return revisions.text(tx, row.sha256)
    entry = ingest_edit(tx, row)
    text = revisions.text(tx, entry.sha256)
    if text is not None and settled(tx, entry) is None and not tx.files.is_blocked(entry.path):
        tx.files.write(entry.path, text)
    return text
