"""Keeps the file of a report what its row says (SPEC 3.8): the text in the database is the report.

The file is made from it, and made again wherever it is missing, empty or older. What somebody wrote into the file
since kr did is taken in as the entry's text, and what it said before becomes a revision. A file that has the size
and the time that kr noted is not read.
"""

from datetime import UTC, datetime
from typing import NamedTuple

from kr.store.hashing import decoded, digest
from kr.store.reports import ReportFiles
from kr.store.revisions import FileState
from kr.store.unit import Unit
from kr.values import Entry, replace


class Edit(NamedTuple):
    """What somebody wrote, and the state of the file that holds it."""

    text: str
    state: FileState


def settled(unit: Unit, files: ReportFiles, entry: Entry) -> str | None:
    """Return an entry's text if its file is known to hold it; None: ``settle`` is to look at both."""
    noted = unit.revisions.file_at(entry.path)
    if noted is None or noted.sha256 != entry.sha256 or noted.state != files.state(entry.path):
        return None
    return unit.revisions.text(entry.sha256)


def edit_at(unit: Unit, files: ReportFiles, path: str) -> Edit | None:
    """Return what somebody wrote at a path since kr did. None: nothing that kr doesn't know, or an older file."""
    state, noted = files.state(path), unit.revisions.file_at(path)
    if state is None or (noted is not None and state.mtime_ns < noted.state.mtime_ns):
        return None
    text = decoded(files.read(path)) if noted is None or state != noted.state else ""
    if not text.strip() or (noted is not None and digest(text) == noted.sha256):
        return None
    return Edit(text, state)


def take_edit(unit: Unit, files: ReportFiles, entry: Entry) -> Entry:
    """Take in what somebody wrote into a live entry's file; return the entry as it is then."""
    edit = edit_at(unit, files, entry.path)
    if edit is None:
        return entry
    edited = replace(entry, sha256=unit.revisions.keep(edit.text))
    if edited.sha256 != entry.sha256:
        written = datetime.fromtimestamp(edit.state.mtime_ns // 1_000_000_000, UTC)
        unit.revisions.replace(edited, entry, None, written)
        unit.entries.set_text(entry.id, edited.sha256 or "")
    unit.revisions.note_file(entry.path, edited.sha256 or "", edit.state)
    return edited


def settle(unit: Unit, files: ReportFiles, entry_id: str) -> str | None:
    """Bring row and file of a live entry together, and return the text; None: it is nowhere, or the entry is gone.

    Call in a write. Raises ``ReportUnwritable`` where the file can't be made.
    """
    row = unit.entries.get(entry_id)
    if row is None:
        return None
    entry = take_edit(unit, files, row)
    text = unit.revisions.text(entry.sha256)
    if text is None or entry.sha256 is None:
        return None
    content = files.read(entry.path)
    if content is None and files.state(entry.path) is not None:
        return text  # somebody's own: unreadable, no regular file, or a link that leads out of the base
    state = files.state(entry.path) if decoded(content) == text else None
    unit.revisions.note_file(entry.path, entry.sha256, state or files.write(entry.path, text))
    return text
