"""Rows whose report is not there (SPEC 6.5): written back where the text is kept, archived where it is not.

A report that may not be read is no reason to touch its row: it is there, for all that anybody knows.
"""

from collections.abc import Iterator
from functools import partial
from pathlib import Path

from kr.errors import ReportUnwritable
from kr.maintenance.findings import Finding, Patient
from kr.store.standing import standing
from kr.store.unit import Unit
from kr.text.counting import counted
from kr.values import Entry

_MOST_NAMED = 5
_PUT_RIGHT = "somebody else has put it right"


def check_home(patient: Patient) -> Iterator[Finding]:
    """A database of another folder's reports. What it says is held against none of the reports here."""
    if not patient.is_readable:
        return
    reason = patient.store.why_foreign()
    if reason is None:
        return
    may_move = patient.store.may_move_in()
    yield Finding(
        check="foreign_folder",
        severity="error",
        subject=str(patient.knowledge_base),
        message=f"{patient.store.path} is another folder's: {reason}",
        repair="give the database this folder, which holds the same reports" if may_move else None,
        fix=partial(_move_in, patient) if may_move else None,
    )


def _move_in(patient: Patient) -> str:
    return "the database is this folder's now" if patient.store.move_in() else "failed: the reports differ"


def check_dangling(patient: Patient) -> Iterator[Finding]:
    """Rows whose report is missing, empty, or not to be read."""
    if not patient.is_at_home:
        return
    with patient.store.read() as unit:
        entries = unit.entries.all()
        kept = {entry.id for entry in entries if _kept(unit, entry) is not None}
    if entries and not patient.knowledge_base.is_dir():
        yield Finding(
            check="dangling",
            severity="error",
            subject=str(patient.knowledge_base),
            message=f"the knowledge base's folder is not there, and it holds the reports of "
            f"{counted(len(entries), 'entry', 'entries')}. Mount it, or set knowledge_base_path",
        )
        return
    unreadable: dict[tuple[Path | None, str], list[str]] = {}
    for entry in entries:
        found = standing(patient.knowledge_base, entry.path)
        if found.state == "unreadable":
            unreadable.setdefault((found.blocked_by, found.reason), []).append(entry.id)
        elif found.state == "absent":
            yield _dangling(patient, entry, is_kept=entry.id in kept)
    for (blocked_by, reason), ids in unreadable.items():
        yield _unreadable(blocked_by, reason, ids)


def _dangling(patient: Patient, entry: Entry, *, is_kept: bool) -> Finding:
    is_blocked = patient.reports.is_blocked(entry.path)
    if is_kept and not is_blocked:
        repair = "write the report back: its text is kept in the database"
    elif is_kept:
        repair = "move it to the archive; `kr archive restore` brings it back with the text that is kept"
    else:
        repair = "move it to the archive; its text is not kept, so that only research can answer again"
    return Finding(
        check="dangling",
        severity="error",
        subject=entry.id,
        message=f"its report {entry.path} is missing or empty",
        repair=repair,
        fix=partial(_write_back if is_kept and not is_blocked else _archive, patient, entry),
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


def _kept(unit: Unit, entry: Entry) -> str | None:
    text = unit.revisions.text(entry.sha256) if entry.sha256 is not None else None
    return text if text is not None and text.strip() else None


def _write_back(patient: Patient, entry: Entry) -> str:
    with patient.store.change() as unit:
        row = unit.entries.get(entry.id)
        text = _kept(unit, row) if row is not None else None
        if row is None or standing(patient.knowledge_base, row.path).state != "absent":
            return _PUT_RIGHT
        if text is None or row.sha256 is None:
            return "failed: its text is not kept any more"
        with patient.reports.staged(text.encode()) as staged, patient.reports.replacement(row.path) as target:
            target.heal(row.sha256)
            if (target.current() or b"").strip():
                return _PUT_RIGHT
            try:
                target.run(staged, row.sha256)
            except ReportUnwritable:
                target.roll_back()
                raise
            target.finish()
            target.sync()
    return f"{row.path} written back"


def _archive(patient: Patient, entry: Entry) -> str:
    with patient.store.change() as unit:
        row = unit.entries.get(entry.id)
        if row is None or standing(patient.knowledge_base, row.path).state != "absent":
            return _PUT_RIGHT
        unit.archive.move(entry.id, "manual", patient.clock())
    return "archived"
