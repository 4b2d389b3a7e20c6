"""What a check finds and looks at; checks of rows, reports, exports, and what time has overtaken (SPEC 6.5).

The checks are for a database whose tables can be asked. A report that may not be read is no reason to touch its row: it
is there, for all that anybody knows.
"""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from kr.errors import StoreError
from kr.freshness import parse_time, to_text
from kr.report import fresh_until, origin_of, read_confidence, read_date, read_version
from kr.store import archive, backup, revisions
from kr.store import entries as entry_rows
from kr.store import reports as stored_reports
from kr.store.backup import Inspection
from kr.store.engine import Store
from kr.store.files import ReportFiles
from kr.store.reports import edit_at
from kr.store.restoring import adopt
from kr.text.characters import one_line
from kr.text.counting import counted
from kr.values import Entry, origin_of_kind

_FRAMEWORK = re.compile(r"^[ \t*_-]*framework[*_]*:[ \t]*(\S.*)$", re.IGNORECASE | re.MULTILINE)
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_HEADER_CHARACTERS = 20_000
_VOLATILE = ("  last_accessed: ", "  status: ")
"""Lines of the export that a mere hit changes, after which nothing is exported (SPEC 3.8)."""


Severity = Literal["error", "warning", "information"]
Fix = Callable[[], str]
"""Does what a finding's ``repair`` announced, and returns what was done. Raises ``KrError``."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found; ``information`` is no problem. ``repair`` says what ``--repair`` would do, None where only a person can help."""

    check: str
    severity: Severity
    subject: str
    message: str
    repair: str | None = None
    fix: Fix | None = field(default=None, compare=False, repr=False)

    @property
    def is_problem(self) -> bool:
        return self.severity != "information"

    def plain(self) -> dict[str, Any]:
        names = ("check", "severity", "subject", "message", "repair")
        return {name: getattr(self, name) for name in names}


@dataclass(kw_only=True)
class KnowledgeBase:
    """A knowledge base under examination. ``mounts`` is the system's table of file systems."""

    store: Store
    folder: Path
    auto_export: bool
    clock: Callable[[], datetime]
    mounts: Path = Path("/proc/self/mounts")

    @property
    def look(self) -> Inspection:
        try:
            return backup.inspect(self.store.path)
        except StoreError as error:
            return Inspection(state="unreadable", message=str(error))

    @property
    def place(self) -> str:
        """What a finding about the database is about: its path, or the setting that names none."""
        try:
            return str(self.store.path)
        except StoreError:
            return "KR_DATABASE_URL"

    @property
    def is_readable(self) -> bool:
        """Whether the tables can be asked without upgrading them."""
        return self.look.state == "current"

    @property
    def reports(self) -> ReportFiles:
        return ReportFiles(self.folder)


def check_orphans(base: KnowledgeBase) -> Iterator[Finding]:
    """Reports that no row speaks of."""
    with base.store.read() as tx:
        known = entry_rows.known_paths(tx)
    yield from (_orphan(base, path) for path in report_paths(base.folder) if path not in known)


def _orphan(base: KnowledgeBase, path: str) -> Finding:
    entry = _read(base, path)
    if entry is None:
        if base.reports.state(path) == "unreadable":
            return Finding("unreadable", "error", str(base.folder / path), "can't be read")
        why = "is not a report that kr can index: it has no title `# framework - topic`. It is left alone"
        return Finding("orphan", "information", path, why)
    with base.store.read() as tx:
        live = entry_rows.of_topic(tx, entry.framework, entry.topic, entry.framework_version)
    if live is not None:
        why = f"is not indexed: {live.id} ({live.path}) has this framework, topic and major version. It is left alone"
        return Finding("orphan", "information", path, why)
    repair = f"index it as {entry.framework} - {entry.topic}, researched {entry.created[:10]}"
    return Finding("orphan", "warning", path, "no entry has this report", repair, partial(_adopt, base, path))


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
    with base.store.write() as tx:
        adopted = adopt(tx, entry, content.decode(errors="replace"))
    return f"indexed as {adopted.id}" if adopted else "somebody else has indexed its topic"


def check_export(base: KnowledgeBase) -> Iterator[Finding]:
    """``index.yaml`` and ``_archived-index.yaml`` that don't say what the database says."""
    if not base.folder.is_dir():
        return
    from kr.transfer import ARCHIVE, INDEX
    from kr.transfer.export import render_archive, render_index

    with base.store.read() as tx:
        live, archived = entry_rows.all(tx), archive.all(tx)
    is_expected = base.auto_export and bool(live or archived)
    for name, text in ((INDEX, render_index(live)), (ARCHIVE, "".join(render_archive(archived)))):
        path = base.folder / name
        if path.exists() and not path.is_file():
            why = "is not a regular file; move it away, and the next export writes the file"
            yield Finding("export", "error", str(path), why)
            continue
        present = path.read_bytes() if path.exists() else None
        if present != text.encode() and (present is not None or is_expected):
            yield _outdated(base, path, present, text)


def _outdated(base: KnowledgeBase, path: Path, present: bytes | None, text: str) -> Finding:
    repair, fix = (
        "export both files; one that somebody else wrote is kept as a copy beside it",
        partial(_export, base),
    )
    if present is None:
        return Finding("export", "warning", str(path), "is missing", repair, fix)
    is_minor = _lasting(present) == _lasting(text.encode())
    why = "differs from the database; if that is an older copy, `kr import-yaml` takes in what the file knows more"
    return Finding("export", "information" if is_minor else "warning", str(path), why, repair, fix)


def _lasting(content: bytes) -> list[str]:
    lines = content.decode(errors="replace").splitlines()
    return [line for line in lines if not line.startswith(_VOLATILE)]


def _export(base: KnowledgeBase) -> str:
    from kr.transfer.export import export_yaml

    export_yaml(base.store, base.folder)
    return "exported"


def report_paths(knowledge_base: Path) -> list[str]:
    """Return the Markdown files below ``frameworks/``, as the index writes paths, sorted; no links, nothing hidden."""
    found = []
    for folder, folders, files in os.walk(knowledge_base / "frameworks"):
        folders[:] = [name for name in folders if not name.startswith(".")]
        here = Path(folder).relative_to(knowledge_base)
        found += [
            (here / name).as_posix() for name in files if name.endswith(".md") and not name.startswith(".")
        ]
    return sorted(found)


def read_facts(text: str) -> tuple[str, str] | None:
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
    facts = one_line(framework), one_line(title[len(framework) + 3 :])
    return facts if all(facts) else None


def entry_of(text: str, path: str, *, modified: datetime, now: datetime) -> Entry | None:
    """Make the entry that a report would have, read last on the day of its research; None when its title tells nothing."""
    facts = read_facts(text)
    if facts is None:
        return None
    researched = min(parse_time(read_date(text) or "") or modified, now)
    kind = origin_of(text)
    end = fresh_until(kind, to_text(researched))
    return Entry(
        id="",
        framework=facts[0],
        framework_version=_unescaped(read_version(text) or "unknown"),
        topic=facts[1],
        tags=(),
        path=path,
        created=to_text(researched),
        last_accessed=to_text(researched),
        status="stale" if kind in {"skeleton", "baseline"} else "fresh",
        confidence=read_confidence(text) or "low",
        researched_at=to_text(researched),
        fresh_until=to_text(end) if end is not None else None,
        origin=origin_of_kind(kind, is_ours=False),
    )


def modified(path: Path) -> datetime:
    return datetime.fromtimestamp(path.stat().st_mtime, UTC)


def _unescaped(line: str) -> str:
    return _ESCAPED.sub(r"\1", line).strip()


def check_missing_reports(base: KnowledgeBase) -> Iterator[Finding]:
    """Rows whose report is missing, empty, edited, or not to be read."""
    with base.store.read() as tx:
        entries = entry_rows.all(tx)
        kept = {entry.id for entry in entries if revisions.text(tx, entry.sha256) is not None}
        edited = {entry.id for entry in entries if edit_at(tx, entry.path, entry.sha256) is not None}
    unreadable: Counter[str] = Counter()
    for entry in entries:
        state = base.reports.state(entry.path)
        if state == "unreadable":
            unreadable[str((base.folder / entry.path).parent)] += 1
        elif state == "absent":
            yield _missing(base, entry, is_kept=entry.id in kept)
        elif entry.id in edited & kept:
            yield _edited(base, entry)
    for folder, number in unreadable.items():
        why = f"can't be read; {counted(number, 'report')} may be there, and the entries are left alone"
        yield Finding("unreadable", "error", folder, why)


def _edited(base: KnowledgeBase, entry: Entry) -> Finding:
    why = f"somebody wrote into its report {entry.path}; whoever reads it next takes that in"
    repair = "take it in as a finding, unless it must wait for `kr review`"
    return Finding("edited_report", "information", entry.id, why, repair, partial(_take_in, base, entry))


def _take_in(base: KnowledgeBase, entry: Entry) -> str:
    stored_reports.read_report(base.store, entry)
    with base.store.read() as tx:
        row = entry_rows.get(tx, entry.id)
    is_taken_in = row is not None and row.sha256 != entry.sha256
    return "taken in" if is_taken_in else "left out: it waits for `kr review`, or says nothing"


def _missing(base: KnowledgeBase, entry: Entry, *, is_kept: bool) -> Finding:
    severity: Severity = "warning" if is_kept else "error"
    repair, fix = "make the file of the text in the database", partial(_make, base, entry)
    if not is_kept:
        repair = "move it to the archive; its text is not kept, so that only research can answer again"
        fix = partial(_archive, base, entry)
    why = f"its report {entry.path} is missing or empty"
    return Finding("missing_report", severity, entry.id, why, repair, fix)


def _make(base: KnowledgeBase, entry: Entry) -> str:
    stored_reports.read_report(base.store, entry)
    is_there = base.reports.state(entry.path) == "there"
    return f"{entry.path} made" if is_there else f"failed: {entry.path} can't be written"


def _archive(base: KnowledgeBase, entry: Entry) -> str:
    with base.store.write() as tx:
        row = entry_rows.get(tx, entry.id)
        if row is None or base.reports.state(row.path) != "absent":
            return "somebody else has put it right"
        archive.move(tx, entry.id, "manual", base.clock())
    return "archived"
