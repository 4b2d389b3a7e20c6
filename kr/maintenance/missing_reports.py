"""Rows whose report is not in its file (SPEC 6.5): made of the text in the database, or archived where that is lost.

A report that may not be read is no reason to touch its row: it is there, for all that anybody knows.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from kr.maintenance.findings import Finding, KnowledgeBase
from kr.text.counting import counted
from kr.values import Entry

_MOST_NAMED = 5


def check_missing_reports(base: KnowledgeBase) -> Iterator[Finding]:
    """Rows whose report is missing, empty, or not to be read."""
    if not base.is_readable:
        return
    with base.store.read() as unit:
        entries = unit.entries.all()
        kept = {entry.id for entry in entries if unit.revisions.text(entry.sha256) is not None}
    if entries and not base.folder.is_dir():
        yield Finding(
            check="missing_report",
            severity="error",
            subject=str(base.folder),
            message=f"the knowledge base's folder is not there, and it holds the reports of "
            f"{counted(len(entries), 'entry', 'entries')}. Mount it, or set knowledge_base_path",
        )
        return
    unreadable: dict[tuple[Path | None, str], list[str]] = {}
    for entry in entries:
        found = base.reports.look(entry.path)
        if found.state == "unreadable":
            unreadable.setdefault((found.blocked_by, found.reason), []).append(entry.id)
        elif found.state == "absent":
            yield _missing(base, entry, is_kept=entry.id in kept)
    for (blocked_by, reason), ids in unreadable.items():
        yield _unreadable(blocked_by, reason, ids)


def _missing(base: KnowledgeBase, entry: Entry, *, is_kept: bool) -> Finding:
    is_blocked = base.reports.is_blocked(entry.path)
    if is_kept and is_blocked:
        repair = None
        message = (
            f"the file of its report, {entry.path}, can't be made: something else is there; move it away"
        )
    else:
        message = f"its report {entry.path} is missing or empty"
        repair = (
            "make the file of the text in the database"
            if is_kept
            else "move it to the archive; its text is not kept, so that only research can answer again"
        )
    return Finding(
        check="missing_report",
        severity="warning" if is_kept else "error",
        subject=entry.id,
        message=message,
        repair=repair,
        fix=partial(_make if is_kept else _archive, base, entry) if repair is not None else None,
    )


def _unreadable(blocked_by: Path | None, reason: str, ids: list[str]) -> Finding:
    named = ", ".join(ids[:_MOST_NAMED])
    more = f" and {len(ids) - _MOST_NAMED} more" if len(ids) > _MOST_NAMED else ""
    return Finding(
        check="unreadable",
        severity="error",
        subject=str(blocked_by),
        message=f"can't be read ({reason}), so that nobody can tell whether "
        f"{'the reports' if len(ids) > 1 else 'the report'} of {named}{more} "
        f"{'are' if len(ids) > 1 else 'is'} there. Give this user the permission, or mend the file system; "
        "the entries are left alone",
    )


def _make(base: KnowledgeBase, entry: Entry) -> str:
    base.store.read_report(entry)
    is_there = base.reports.look(entry.path).state == "there"
    return f"{entry.path} made" if is_there else f"failed: {entry.path} can't be written"


def _archive(base: KnowledgeBase, entry: Entry) -> str:
    with base.store.write() as unit:
        row = unit.entries.get(entry.id)
        if row is None or base.reports.look(row.path).state != "absent":
            return "somebody else has put it right"
        unit.archive.move(entry.id, "manual", base.clock())
    return "archived"
