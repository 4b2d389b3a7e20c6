"""Checks of reports without rows, of exports, and of what time has overtaken (SPEC 6.5)."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from kr.freshness import parse_time
from kr.maintenance.findings import Finding, KnowledgeBase
from kr.store.saving import adopt
from kr.text.counting import counted
from kr.values import Entry

if TYPE_CHECKING:
    from kr.store.leases import Expired
import os
import re
from datetime import UTC, datetime
from typing import NamedTuple

from kr.reports.template import fresh_until, origin_of, read_confidence, read_date, read_version
from kr.store.times import to_text
from kr.text.characters import one_line

_VOLATILE = ("  last_accessed: ", "  status: ")
"""Lines of the export that a mere hit changes, after which nothing is exported (SPEC 3.8)."""


def check_orphans(base: KnowledgeBase) -> Iterator[Finding]:
    """Reports that no row speaks of."""
    if not base.is_readable:
        return
    with base.store.read() as unit:
        known = unit.entries.known_paths()
    yield from (_orphan(base, path) for path in report_paths(base.folder) if path not in known)


def _orphan(base: KnowledgeBase, path: str) -> Finding:
    entry = _read(base, path)
    if entry is None:
        stands = base.reports.look(path)
        if stands.state == "unreadable":
            return Finding(
                check="unreadable",
                severity="error",
                subject=str(stands.blocked_by),
                message=f"can't be read: {stands.reason}",
            )
        return Finding(
            check="orphan",
            severity="information",
            subject=path,
            message="is not a report that kr can index: it has no title `# framework - topic`. It is left alone",
        )
    with base.store.read() as unit:
        live = unit.entries.of_topic(entry.framework, entry.topic, entry.framework_version)
    if live is not None:
        return Finding(
            check="orphan",
            severity="information",
            subject=path,
            message=f"is not indexed: {live.id} ({live.path}) has this framework, topic and major version. It is left alone",
        )
    return Finding(
        check="orphan",
        severity="warning",
        subject=path,
        message="no entry has this report",
        repair=f"index it as {entry.framework} - {entry.topic}, researched {entry.created[:10]}",
        fix=lambda: _adopt(base, path),
    )


def _read(base: KnowledgeBase, path: str) -> Entry | None:
    content = base.reports.read(path)
    try:
        text = (content or b"").decode()
        written = modified(base.folder / path)
        path.encode()
    except (OSError, UnicodeError):
        return None
    return entry_of(text, path, modified=written, now=base.clock())


def _adopt(base: KnowledgeBase, path: str) -> str:
    entry = _read(base, path)
    content = base.reports.read(path)
    if entry is None or content is None:
        return "it is gone"
    with base.store.write() as unit:
        adopted = adopt(unit, base.reports, entry, content)
    return f"indexed as {adopted.id}" if adopted else "somebody else has indexed its topic"


def check_links(base: KnowledgeBase) -> Iterator[Finding]:
    """Folders of reports that are symbolic links: nothing is written through them."""
    for path in linked_folders(base.folder):
        yield Finding(
            check="link",
            severity="error",
            subject=str(path),
            message="is a symbolic link, and no report is written through one below the knowledge base. Put the "
            "folder itself there (a bind mount will do), or set knowledge_base_path to where the folder is",
        )


def check_export(base: KnowledgeBase) -> Iterator[Finding]:
    """``index.yaml`` and ``_archived-index.yaml`` that don't say what the database says."""
    if not base.is_readable or not base.folder.is_dir():
        return
    from kr.transfer import ARCHIVE, INDEX
    from kr.transfer.index_yaml import render_archive, render_index

    with base.store.read() as unit:
        live, archived = unit.entries.all(), unit.archive.all()
    wanted = {
        INDEX: render_index(live),
        ARCHIVE: "".join(render_archive(archived)),
    }
    is_expected = base.auto_export and bool(live or archived)
    found = {name: _present(base.folder / name) for name in wanted}
    blocked = [name for name, present in found.items() if isinstance(present, str)]
    for name, text in wanted.items():
        path, present = base.folder / name, found[name]
        if isinstance(present, str):
            yield Finding(check="export", severity="error", subject=str(path), message=present)
        elif present != text.encode() and (present is not None or is_expected):
            yield _outdated(base, path, present, text, blocked)


def _present(path: Path) -> bytes | str | None:
    """Read an export: its bytes, None where none is, or why there is something that can't be read."""
    try:
        if path.exists() and not path.is_file():
            return "is not a regular file; move it away, and the next export writes the file"
        return path.read_bytes() if path.exists() else None
    except OSError as error:
        return f"can't be read: {error.strerror or error}; `chmod u+r {path}`, or let its owner run kr"


def _outdated(
    base: KnowledgeBase, path: Path, present: bytes | None, text: str, blocked: list[str]
) -> Finding:
    is_minor = present is not None and _lasting(present) == _lasting(text.encode())
    message = (
        "is missing"
        if present is None
        else "differs from the database; if that is an older copy, `kr import-yaml` takes in what the file knows more"
    )
    if blocked:
        message += f"; both files are exported together, once {blocked[0]} is put right"
    return Finding(
        check="export",
        severity="information" if is_minor else "warning",
        subject=str(path),
        message=message,
        repair=None
        if blocked
        else "export both files; a file that somebody else wrote is kept as a copy beside it",
        fix=None if blocked else lambda: _export(base),
    )


def _lasting(content: bytes) -> list[str]:
    lines = content.decode(errors="replace").splitlines()
    return [line for line in lines if not line.startswith(_VOLATILE)]


def _export(base: KnowledgeBase) -> str:
    from kr.transfer.export import export_yaml

    export_yaml(base.store, base.folder)
    return "exported"


def check_expired(base: KnowledgeBase) -> Iterator[Finding]:
    """Leases and reservations that killed processes left."""
    if not base.is_readable:
        return
    with base.store.read() as unit:
        expired = unit.leases.expired(base.clock())
    if any(expired):
        yield Finding(
            check="expired",
            severity="warning",
            subject=base.place,
            message=f"expired: {_told(expired)}",
            repair="remove what has expired: it holds nothing any more",
            fix=lambda: _sweep(base),
        )


def _sweep(base: KnowledgeBase) -> str:
    with base.store.write() as unit:
        gone = unit.leases.drop_expired(base.clock())
    return f"removed: {_told(gone)}"


def _told(expired: "Expired") -> str:
    parts = (
        counted(expired.leases, "lease") if expired.leases else "",
        counted(expired.reservations, "reserved call") if expired.reservations else "",
    )
    return " and ".join(part for part in parts if part) or "nothing"


def check_circuits(base: KnowledgeBase) -> Iterator[Finding]:
    """Sources that are paused because they kept failing (SPEC 3.5)."""
    if not base.is_readable:
        return
    with base.store.read() as unit:
        circuits = unit.circuits.all()
    for circuit in circuits:
        until = parse_time(circuit.open_until or "")
        if until is not None and base.clock() < until:
            yield Finding(
                check="circuit",
                severity="information",
                subject=circuit.source,
                message=f"is not asked until {circuit.open_until}, after {counted(circuit.failures, 'failure')} in a row; "
                f"the last: {circuit.last_error or 'unknown'}",
            )


_FRAMEWORK = re.compile(r"^[ \t*_-]*framework[*_]*:[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_HEADER_CHARACTERS = 20_000


class Facts(NamedTuple):
    """What an entry made from a report alone is told by."""

    framework: str
    topic: str


def report_paths(knowledge_base: Path) -> list[str]:
    """Return the Markdown files below ``frameworks/``, as the index writes paths, sorted.

    Symlinks are not followed, hidden files are not ours.
    """
    found = []
    for folder, folders, files in os.walk(knowledge_base / "frameworks"):
        folders[:] = [name for name in folders if not name.startswith(".")]
        here = Path(folder).relative_to(knowledge_base)
        found += [
            (here / name).as_posix() for name in files if name.endswith(".md") and not name.startswith(".")
        ]
    return sorted(found)


def linked_folders(knowledge_base: Path) -> list[Path]:
    """Return what is a symbolic link where ``frameworks/`` or a folder below it would be, sorted."""
    top = knowledge_base / "frameworks"
    found = [top] if top.is_symlink() else []
    for folder, folders, _ in os.walk(top) if not found else ():
        found += [path for name in folders if (path := Path(folder, name)).is_symlink()]
    return sorted(found)


def read_facts(text: str) -> Facts | None:
    """Read framework and topic from ``# framework - topic``; None for a text that begins otherwise."""
    lines = (line.strip() for line in text[:_HEADER_CHARACTERS].lstrip("\ufeff").splitlines())
    title = next((line for line in lines if line), "")
    if not title.startswith("# "):
        return None
    title = _unescaped(title.removeprefix("# "))
    header = _FRAMEWORK.search(text[:_HEADER_CHARACTERS].split("\n## ", 1)[0])
    framework = _unescaped(header[1].strip("*_ \t")) if header else ""
    if not framework or not title.casefold().startswith(f"{framework} - ".casefold()):
        framework, _, _ = title.partition(" - ")
    topic = title[len(framework) + 3 :]
    facts = Facts(one_line(framework), one_line(topic))
    return facts if facts.framework and facts.topic else None


def entry_of(text: str, path: str, *, modified: datetime, now: datetime) -> Entry | None:
    """Make the entry that a report would have; its id is left open. None when its title tells nothing.

    Nobody knows when it was read last, so that the day of its research stands in (of its file, where the
    header has none): an old report comes back as stale, not as fresh.
    """
    facts = read_facts(text)
    if facts is None:
        return None
    researched = min(parse_time(read_date(text) or "") or modified, now)
    origin = origin_of(text)
    end = fresh_until(origin, to_text(researched))
    return Entry(
        id="",
        framework=facts.framework,
        framework_version=_unescaped(read_version(text) or "unknown"),
        topic=facts.topic,
        tags=(),
        path=path,
        created=to_text(researched),
        last_accessed=to_text(researched),
        status="stale" if origin in {"skeleton", "baseline"} else "fresh",
        confidence=read_confidence(text) or "low",
        researched_at=to_text(researched),
        fresh_until=to_text(end) if end is not None else None,
        origin=origin,
    )


def modified(path: Path) -> datetime:
    """Return when a file was written. Raises ``OSError``."""
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _unescaped(line: str) -> str:
    return _ESCAPED.sub(r"\1", line).strip()
