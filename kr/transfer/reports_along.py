"""The reports that go along with an export into another folder (SPEC 6.1): texts of the database, as files."""

from pathlib import Path

from kr.store.archive import Archived
from kr.store.reports import ReportFiles
from kr.store.unit import Unit


def archived_report(archived: Archived) -> str | None:
    """Return where an archived row's text goes: its path may be a live entry's by now. None: it has no text."""
    return f"archived/{archived.archive_id}.md" if archived.entry.sha256 is not None else None


def write_reports(unit: Unit, folder: Path) -> int:
    """Write the text of every live entry to its path, and of every archived row beside; return how many.

    Raises ``ReportUnwritable``. A file that holds something that kr never wrote is kept as a revision of none:
    it is left as a copy, ``.bak``.
    """
    files = ReportFiles(folder)
    texts = [(entry.path, entry.sha256) for entry in unit.entries.all()]
    texts += [(path, row.entry.sha256) for row in unit.archive.since(0) if (path := archived_report(row))]
    number = 0
    for path, sha256 in texts:
        text = unit.revisions.text(sha256)
        if text is not None:
            files.write(path, text)
            number += 1
    return number
