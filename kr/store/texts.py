"""Texts of reports, kept by their hash for good; the revisions; and the files that are made from them (SPEC 3.8).

The text in the database is the report. The file is made from it, and made again wherever it is missing, empty or older.
What somebody wrote into the file since kr did is taken in as the entry's text, and what it said before becomes a
revision. A file that has the size and the time that kr noted is not read.
"""

from datetime import UTC, datetime

from kr.digest import decoded, digest
from kr.store import times
from kr.store.keys import framework_key, topic_key
from kr.store.reports import FileState, ReportFiles
from kr.store.session import Session, insert_into
from kr.store.unit import Unit
from kr.values import Entry, Value, replace


class Revision(Value):
    """An earlier text at an entry's path. What a person's own file was made for is not known: None."""

    entry_id: str
    revision: int
    sha256: str
    framework_version: str | None
    confidence: str | None
    researched_at: str | None
    replaced_at: str


_KEEP = "INSERT INTO report_texts (sha256, text) VALUES (:sha256, :text) ON CONFLICT DO NOTHING"
_TEXT = "SELECT text FROM report_texts WHERE sha256 = :sha256"
_HAS = "SELECT 1 FROM report_texts WHERE sha256 = :sha256"
_NOTE = (
    f"{insert_into('report_files', ('path', 'sha256', 'size', 'mtime_ns'))} ON CONFLICT (path) DO UPDATE "
    "SET sha256 = excluded.sha256, size = excluded.size, mtime_ns = excluded.mtime_ns"
)
_NOTED = "SELECT sha256, size, mtime_ns FROM report_files WHERE path = :path"
_OF_ENTRY = (
    f"SELECT {', '.join(Revision.names())} FROM revisions WHERE entry_id = :entry_id ORDER BY revision"
)
_LAST = "SELECT revision, sha256 FROM revisions WHERE entry_id = :entry_id ORDER BY revision DESC LIMIT 1"
_ADD = insert_into("revisions", (*Revision.names(), "path", "framework_key", "topic_key"))


class Noted(Value):
    """Which text a file holds while it is in this state."""

    sha256: str
    state: FileState


class Revisions:
    """Keeps texts in the caller's transaction. No text is ever deleted here."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def keep(self, text: str) -> str:
        """Store a text unless it is there already; return its hash."""
        sha256 = digest(text)
        self._session.execute(_KEEP, sha256=sha256, text=text)
        return sha256

    def text(self, sha256: str | None) -> str | None:
        """Return a stored text."""
        found: str | None = self._session.value(_TEXT, sha256=sha256)
        return found

    def has(self, sha256: str) -> bool:
        """Return whether a text is stored."""
        return self._session.value(_HAS, sha256=sha256) is not None

    def note_file(self, path: str, sha256: str, state: FileState) -> None:
        """Note which of the stored texts the file at a path holds."""
        self._session.execute(_NOTE, path=path, sha256=sha256, size=state.size, mtime_ns=state.mtime_ns)

    def file_at(self, path: str) -> Noted | None:
        """Return what was noted of the file at a path."""
        row = self._session.row(_NOTED, path=path)
        return (
            None
            if row is None
            else Noted(sha256=row["sha256"], state=FileState(row["size"], row["mtime_ns"]))
        )

    def get(self, entry_id: str, number: int) -> Revision | None:
        """Return one revision of an entry."""
        return next((kept for kept in self.of_entry(entry_id) if kept.revision == number), None)

    def of_entry(self, entry_id: str) -> list[Revision]:
        """Return an entry's revisions, oldest first; those of an entry that is gone too."""
        return [Revision(**dict(row)) for row in self._session.rows(_OF_ENTRY, entry_id=entry_id)]

    def replace(self, new: Entry, old: Entry | None, edited: str | None, now: datetime) -> None:
        """Note what the text of ``new`` takes the place of: the text of ``old``, and what somebody ``edited`` since."""
        replaced = []
        if old is not None and old.sha256 is not None and self.has(old.sha256):
            replaced.append(old.sha256)
        if edited is not None:
            replaced.append(self.keep(edited))
        for sha256 in dict.fromkeys(replaced):
            if sha256 != new.sha256:
                self._add(new, sha256, old, now)

    def _add(self, new: Entry, sha256: str, old: Entry | None, now: datetime) -> None:
        last = self._session.row(_LAST, entry_id=new.id)
        if last is not None and last["sha256"] == sha256:
            return
        self._session.execute(
            _ADD,
            entry_id=new.id,
            revision=last["revision"] + 1 if last is not None else 1,
            sha256=sha256,
            path=new.path,
            framework_key=framework_key(new.framework),
            topic_key=topic_key(new.topic),
            framework_version=old.framework_version if old else None,
            confidence=old.confidence if old else None,
            researched_at=(old.researched_at or old.created) if old else None,
            replaced_at=times.to_text(now),
        )


class Edit(Value):
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
    return Edit(text=text, state=state)


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
