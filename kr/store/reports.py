"""Rows and report files together: reading a report, taking in what somebody wrote into its file, making a file again.

The text in the database is the report. A file that is missing, torn, or holds an earlier text of kr's is made again; what somebody else
wrote into it becomes a finding, and the text before a revision.
"""

import logging
from dataclasses import replace
from datetime import UTC, datetime

from kr.errors import ReportUnwritable, StoreError
from kr.guard import clean, mask_secrets, reasons_to_hold
from kr.models import Entry
from kr.store import entries, quarantine, revisions, wordings
from kr.store.engine import Store, Transaction
from kr.store.quarantine import Quarantined
from kr.store.revisions import digest
from kr.times import to_text

log = logging.getLogger(__name__)

_SETTLE_TIMEOUT = 0.2
"""Seconds that a reader waits for writers, to bring file and row together; the next reader tries again."""


def read_report(store: Store, entry: Entry) -> str | None:
    """Return a report's text; None when it is nowhere. An edit is taken in first, a missing file is made.

    Where the file can't be brought together with the row just now, the text is returned all the same.
    """
    with store.read() as tx:
        if is_settled(tx, entry):
            return revisions.text(tx, entry.sha256)
    found = None
    try:
        with store.write(timeout=_SETTLE_TIMEOUT) as tx:
            found = settle(tx, entry.id)
    except (StoreError, ReportUnwritable) as exc:
        log.warning("%s: its file is left as it is: %s", entry.path, exc)
    if found is None:
        with store.read() as tx:
            found = revisions.text(tx, entry.sha256) or tx.files.read_text(entry.path)
    return found if found.strip() else None


def is_settled(tx: Transaction, entry: Entry) -> bool:
    """Tell whether an entry's file holds its text."""
    text = revisions.text(tx, entry.sha256)
    return text is not None and tx.files.read(entry.path) == text.encode()


def drop_lost(store: Store, entry: Entry) -> bool:
    """Remove an entry whose text is nowhere: not one that can't be read just now, nor of a folder that is not mounted."""
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
    entry = take_edit(tx, row)
    text = revisions.text(tx, entry.sha256)
    if text is not None and not is_settled(tx, entry) and not tx.files.is_blocked(entry.path):
        tx.files.write(entry.path, text)
    return text


def edit_at(tx: Transaction, path: str, sha256: str | None) -> str | None:
    """Return what somebody wrote into the file at a path, whose own text has this hash; None: nothing that kr doesn't know.

    A torn file (its end is missing, or zeros) and an earlier text of kr's are no edits.
    """
    content = tx.files.read(path) or b""
    text = content.decode(errors="replace")
    if not text.strip("\0").strip():
        return None
    own = (revisions.text(tx, sha256) or "").encode()
    is_torn = own.startswith(content.rstrip(b"\0")) and not content.endswith(b"\n")
    return None if is_torn or revisions.has(tx, digest(text)) else text


def take_edit(tx: Transaction, entry: Entry) -> Entry:
    """Take in as a finding what somebody wrote into a live entry's file; return the entry as it is then.

    What must wait for a person goes into the quarantine, and the entry stays as it was.
    """
    text = edit_at(tx, entry.path, entry.sha256)
    if text is None:
        return entry
    at = to_text(datetime.fromtimestamp(int(tx.files.changed_at(entry.path)), UTC))
    if entry.sha256 is None:  # it came without a text: this is its own
        edited = replace(entry, sha256=revisions.keep(tx, text))
        entries.put(tx, edited)
        return edited
    written = mask_secrets(clean(text))
    if reasons := reasons_to_hold(written):
        _hold(tx, entry, written, reasons, at)
        return entry
    if not written.strip():
        return entry
    edited = replace(
        entry,
        sha256=revisions.keep(tx, written),
        revision=revisions.next_number(tx, entry.id),
        origin="finding",
        written_by="file",
        status="fresh",
        stale_major=None,
        fresh_until=None,
        researched_at=at,
        confidence="low" if entry.confidence == "low" else "medium",
    )
    revisions.add(tx, entry, at)
    entries.put(tx, edited)
    return edited


def _hold(tx: Transaction, entry: Entry, text: str, reasons: tuple[str, ...], at: str) -> None:
    held_id = f"file-{digest(text)[:12]}"
    if quarantine.get(tx, held_id) is not None:
        return
    question = entry.question or entry.topic
    request = {
        "framework": entry.framework,
        "framework_version": entry.framework_version,
        "topic": entry.topic,
        "tags": list(entry.tags),
        "question": question,
        "entry": entry.id,
        "answer": text,
    }
    quarantine.add(
        tx,
        Quarantined(
            id=held_id,
            at=at,
            framework=entry.framework,
            question=question,
            reasons=reasons,
            request=request,
            written_by="file",
        ),
    )
