"""Checks of rows against reports, exports and time (SPEC 6.5)."""

from collections.abc import Iterator
from functools import partial

from kr.maintenance.findings import Finding, Patient
from kr.maintenance.orphans import entry_of, modified, report_paths
from kr.rules.freshness import parse_time
from kr.values import Entry

_VOLATILE = ("  last_accessed: ", "  status: ")
"""Lines of the export that a mere hit changes, after which nothing is exported (SPEC 3.8)."""


def check_dangling(patient: Patient) -> Iterator[Finding]:
    """Rows whose report is missing or empty."""
    if not patient.is_readable:
        return
    with patient.store.read() as unit:
        entries = unit.entries.all()
    if entries and not patient.knowledge_base.is_dir():
        yield Finding(
            check="dangling",
            severity="error",
            subject=str(patient.knowledge_base),
            message=f"the knowledge base's folder is not there, and {len(entries)} entries have their reports "
            "in it. Mount it, or set knowledge_base_path",
        )
        return
    for entry in entries:
        if not _has_report(patient, entry):
            yield Finding(
                check="dangling",
                severity="error",
                subject=entry.id,
                message=f"its report {entry.path} is missing or empty",
                repair="move it to the archive; `kr archive restore` brings it back with the text that is kept",
                fix=partial(_archive, patient, entry),
            )


def _has_report(patient: Patient, entry: Entry) -> bool:
    return bool((patient.reports.read(entry.path) or b"").strip())


def _archive(patient: Patient, entry: Entry) -> str:
    with patient.store.write() as unit:
        row = unit.entries.get(entry.id)
        if row is None or _has_report(patient, row):
            return "somebody else has put it right"
        unit.archive.move(entry.id, "manual", patient.clock())
    return "archived"


def check_orphans(patient: Patient) -> Iterator[Finding]:
    """Reports that no row speaks of."""
    if not patient.is_readable:
        return
    with patient.store.read() as unit:
        known = unit.upkeep.known_paths()
    for path in report_paths(patient.knowledge_base):
        if path not in known:
            yield _orphan(patient, path)


def _orphan(patient: Patient, path: str) -> Finding:
    entry = _read(patient, path)
    if entry is None:
        return Finding(
            check="orphan",
            severity="information",
            subject=path,
            message="is no report that kr can index: it has no title `# framework - topic`. It is left alone",
        )
    with patient.store.read() as unit:
        live = unit.entries.of_pair(entry.framework, entry.topic)
    if live is not None:
        return Finding(
            check="orphan",
            severity="information",
            subject=path,
            message=f"is not indexed: {live.id} ({live.path}) has this framework and topic. It is left alone",
        )
    return Finding(
        check="orphan",
        severity="warning",
        subject=path,
        message="no entry has this report",
        repair=f"index it as {entry.framework} - {entry.topic}, researched {entry.created[:10]}",
        fix=lambda: _adopt(patient, path),
    )


def _read(patient: Patient, path: str) -> Entry | None:
    content = patient.reports.read(path)
    try:
        text = (content or b"").decode()
        written = modified(patient.knowledge_base / path)
        path.encode()
    except (OSError, UnicodeError):
        return None
    return entry_of(text, path, modified=written, now=patient.clock())


def _adopt(patient: Patient, path: str) -> str:
    entry = _read(patient, path)
    content = patient.reports.read(path)
    if entry is None or content is None:
        return "it is gone"
    with patient.store.write() as unit:
        adopted = unit.upkeep.adopt(patient.reports, entry, content)
    return f"indexed as {adopted.id}" if adopted else "somebody else has indexed its topic"


def check_export(patient: Patient) -> Iterator[Finding]:
    """``index.yaml`` and ``_archived-index.yaml`` that don't say what the database says."""
    if not patient.is_readable or not patient.knowledge_base.is_dir():
        return
    from kr.transfer.export import ARCHIVE, INDEX
    from kr.transfer.index_yaml import render_archive, render_index

    with patient.store.read() as unit:
        live, archived = unit.entries.all(), unit.archive.all()
    wanted = {
        INDEX: render_index(live),
        ARCHIVE: render_archive((row.entry, row.archived_at, row.reason) for row in archived),
    }
    is_expected = patient.auto_export and bool(live or archived)
    for name, text in wanted.items():
        path = patient.knowledge_base / name
        present = path.read_bytes() if path.is_file() else None
        if present == text.encode() or (present is None and not is_expected):
            continue
        yield Finding(
            check="export",
            severity="information" if present and _lasting(present) == _lasting(text.encode()) else "warning",
            subject=str(path),
            message="is missing" if present is None else "differs from the database",
            repair="export both files; a file that somebody else wrote is kept as a copy beside it",
            fix=lambda: _export(patient),
        )


def _lasting(content: bytes) -> list[str]:
    lines = content.decode(errors="replace").splitlines()
    return [line for line in lines if not line.startswith(_VOLATILE)]


def _export(patient: Patient) -> str:
    from kr.transfer.export import export_yaml

    export_yaml(patient.store, patient.knowledge_base)
    return "exported"


def check_expired(patient: Patient) -> Iterator[Finding]:
    """Leases and reservations that killed processes left."""
    if not patient.is_readable:
        return
    with patient.store.read() as unit:
        expired = unit.upkeep.expired(patient.clock())
    if any(expired):
        yield Finding(
            check="expired",
            severity="warning",
            subject=str(patient.database),
            message=f"{expired.leases} leases and {expired.reservations} reserved calls have expired",
            repair="remove them: they hold nothing any more",
            fix=lambda: _sweep(patient),
        )


def _sweep(patient: Patient) -> str:
    with patient.store.write() as unit:
        gone = unit.upkeep.drop_expired(patient.clock())
    return f"{gone.leases} leases and {gone.reservations} reserved calls removed"


def check_circuits(patient: Patient) -> Iterator[Finding]:
    """Sources that are paused because they kept failing (SPEC 3.5)."""
    if not patient.is_readable:
        return
    with patient.store.read() as unit:
        circuits = unit.upkeep.circuits()
    for circuit in circuits:
        until = parse_time(circuit.open_until or "")
        if until is not None and patient.clock() < until:
            yield Finding(
                check="circuit",
                severity="information",
                subject=circuit.source,
                message=f"is not asked until {circuit.open_until}, after {circuit.failures} failures in a row; "
                f"the last: {circuit.last_error or 'unknown'}",
            )
