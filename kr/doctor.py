"""``kr doctor``: what is wrong with a knowledge base, and what ``--repair`` does about it.

A corrupt database is not mended cell by cell: a person brings a backup back, or ``--repair`` sets it aside and builds a new one from
``index.yaml``, ``_archived-index.yaml`` and the report files. Nothing is deleted for good.
"""

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any, Literal

from kr.errors import KrError, SourceFailure, SourceNotAsked, StoreError
from kr.freshness import parse_time, to_text
from kr.models import Entry, Query
from kr.naming import decoded
from kr.report import origin_of, parse_report
from kr.sources.base import Ask, Source
from kr.sources.local_docs import Folder
from kr.store import archive, backup, revisions
from kr.store import entries as entry_rows
from kr.store import reports as stored_reports
from kr.store.engine import Store
from kr.store.files import ReportFiles
from kr.store.reports import edit_at
from kr.text.characters import one_line
from kr.text.counting import counted
from kr.transfer import ARCHIVE, INDEX
from kr.transfer.export_yaml import export_yaml, render_archive, render_index
from kr.transfer.import_yaml import import_report, import_yaml
from kr.transfer.read_index import Item

_MOST_SHOWN = 5
_ESCAPED = re.compile(r"\\([!-/:-@\[-`{-~])")
_VOLATILE = ("  last_accessed: ", "  status: ")
"""Lines of an export that a mere hit changes; a hit does not export."""
_QUESTION = Query(
    framework="react",
    framework_version="unknown",
    topic="state",
    tags=("state",),
    question="How is state kept in a component?",
)

Severity = Literal["error", "warning", "information"]
Fix = Callable[[], str]
"""Does what a finding announced, and says what was done. Raises ``KrError`` or ``OSError``."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What a check found; ``information`` is no problem. ``repair`` says what ``fix`` would do."""

    check: str
    severity: Severity
    subject: str
    message: str
    repair: str | None = None
    fix: Fix | None = None

    @property
    def is_problem(self) -> bool:
        return self.severity != "information"

    def plain(self) -> dict[str, Any]:
        names = ("check", "severity", "subject", "message", "repair")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, slots=True, kw_only=True)
class KnowledgeBase:
    """A knowledge base that is examined: its store, the folder of its files, and whether exports are wanted."""

    store: Store
    folder: Path
    auto_export: bool
    clock: Callable[[], datetime]

    @property
    def moment(self) -> str:
        return f"{self.clock():%Y%m%dT%H%M%SZ}"


Check = Callable[[KnowledgeBase], Iterator[Finding]]


def report(base: KnowledgeBase) -> dict[str, Any]:
    """Say what is wrong: ``{knowledge_base, problems, findings, repaired}``."""
    return _result(base, examine(base), [])


def repair(base: KnowledgeBase, announce: Callable[[Finding], None]) -> dict[str, Any]:
    """Do what the findings announce; ``announce`` hears of each before it is done. Each check sees what was repaired before."""
    repaired: list[dict[str, Any]] = []
    for check in CHECKS:
        for finding in _findings(base, check):
            if finding.fix is not None:
                announce(finding)
                repaired.append(finding.plain() | {"done": _done(finding.fix)})
    return _result(base, examine(base), repaired)


def examine(base: KnowledgeBase) -> list[Finding]:
    return [finding for check in CHECKS for finding in _findings(base, check)]


def check_sources(
    sources: Sequence[Source], models: Sequence[tuple[str, Callable[[], object]]], *, timeout: float
) -> Iterator[Finding]:
    """Ask each source and model one question, and say whether it answers; nothing is kept. ``timeout``: seconds for each."""
    ask = Ask(query=_QUESTION, repository="facebook/react")
    for source in sources:
        if isinstance(
            source, Folder
        ):  # it is about its own subject: that it can be read is all that is asked
            yield _answer(source.name, source.check)
        else:
            yield _answer(source.name, partial(source.ask, ask, timeout=timeout))
    for name, use in models:
        yield _answer(name, use)


def _answer(name: str, use: Callable[[], object]) -> Finding:
    started = time.monotonic()
    try:
        use()
    except SourceNotAsked as failure:
        return Finding("source", "warning", name, failure.reason)
    except SourceFailure as failure:
        return Finding("source", "error", name, f"gave no answer: {failure.reason}")
    return Finding("source", "information", name, f"answered in {time.monotonic() - started:.1f} s")


def _findings(base: KnowledgeBase, check: Check) -> list[Finding]:
    """Run one check; an error that stops it is a finding itself."""
    name, findings = check.__name__.removeprefix("check_"), list[Finding]()
    try:
        path = base.store.path
    except StoreError as error:
        is_told = check is not check_database
        return [] if is_told else [Finding(name, "error", "KR_DATABASE_URL", str(error))]
    try:
        if check not in CONTENT_CHECKS or backup.inspect(path).state == "current":
            findings += check(base)
    except KrError as error:
        findings.append(Finding(name, "error", str(path), f"can't be examined: {error}"))
    except OSError as error:
        why = f"can't be examined: {error.strerror or error}"
        findings.append(Finding(name, "error", str(error.filename or base.folder), why))
    return findings


def _done(fix: Fix) -> str:
    try:
        return fix()
    except (KrError, OSError) as error:
        return f"failed: {error}"


def _result(base: KnowledgeBase, findings: list[Finding], repaired: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "knowledge_base": str(base.folder),
        "problems": sum(finding.is_problem for finding in findings),
        "findings": [finding.plain() for finding in findings],
        "repaired": repaired,
    }


def check_permissions(base: KnowledgeBase) -> Iterator[Finding]:
    """What kr must read and write and may not; of a whole tree its top-most folder."""
    place = _nearest(base.folder)
    if not place.is_dir():
        why = f"is no folder, and {base.folder} is to be one: move it away, or name another place (--kb)"
        yield Finding("permissions", "error", str(place), why)
        return
    named: list[Path] = []
    for path in (place, *_written_files(base)):
        lacking = _lacking(path)
        if lacking and not any(path.is_relative_to(other) for other in named):
            named.append(path)
            why = f"may not be {lacking} by this user; let its owner run kr, or change its mode or mount"
            yield Finding("permissions", "error", str(path), why)


def _nearest(folder: Path) -> Path:
    """Return a folder, or the first above it that is there: it would be made in that."""
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def _written_files(base: KnowledgeBase) -> list[Path]:
    folder, database = base.folder, base.store.path
    paths = [
        database.parent,
        database,
        *(folder / name for name in (INDEX, ARCHIVE, "lessons", "frameworks")),
    ]
    if os.access(folder / "frameworks", os.R_OK):
        paths += sorted((folder / "frameworks").glob("*/"))
    return [path for path in paths if path.exists()]


def _lacking(path: Path) -> str:
    enter = os.X_OK if path.is_dir() else 0
    if not os.access(path, os.R_OK | enter):
        return "read"
    return "" if os.access(path, os.W_OK | enter) else "written"


def check_database(base: KnowledgeBase) -> Iterator[Finding]:
    """A database that is absent, corrupt, of another version, or another program's."""
    path = base.store.path
    found, about = backup.inspect(path), partial(Finding, "database", subject=str(path))
    match found.state:
        case "absent" if left := remains(base.folder):
            why, fix = f"there is no database, but there are {left}", partial(_rebuild, base)
            yield about("error", message=why, repair="make a new database from them", fix=fix)
        case "absent" if _nearest(base.folder).is_dir():  # else it was named before
            why = "there is no knowledge base yet; `kr init` or the first research makes it"
            yield about("information", message=why)
        case "corrupt":
            why = f"is corrupt: {found.problem}. `kr db restore FILE` brings a backup back, if there is one"
            yield about("error", message=why, repair=_ANEW, fix=partial(_replace, base))
        case "older":
            why = f"is of an older kr (schema {found.version}); the next use upgrades it"
            yield about("information", message=why)
        case "newer":
            why = f"{found.problem}. Install that kr, or `kr db restore` an older backup"
            yield about("error", message=why)
        case "foreign":
            why = f"{found.problem}. Set KR_DATABASE_URL or --kb to another place"
            yield about("error", message=why)
        case "unreadable":
            yield about("error", message=str(found.problem))


_ANEW = "set it aside, and make a new one from the exports and the reports"


def remains(folder: Path) -> str:
    """Say what a new database could be made of; empty where there is nothing."""
    parts = [name for name in (INDEX, ARCHIVE) if (folder / name).is_file()]
    if reports := len(report_paths(folder)):
        parts.append(counted(reports, "report"))
    return " and ".join(parts)


def _replace(base: KnowledgeBase) -> str:
    base.store.close()
    aside = backup.set_aside(base.store.path, base.moment)
    return f"{_rebuild(base)}; the corrupt file is {aside}"


def _rebuild(base: KnowledgeBase) -> str:
    """Import the exports into a new database; the reports that they don't name follow as orphans."""
    with base.store.write() as tx:
        entry_rows.count(tx)
    if not any((base.folder / name).is_file() for name in (INDEX, ARCHIVE)):
        return "an empty database was made"
    result = import_yaml(base.store, base.folder, [base.folder], now=base.clock())
    counts = ", ".join(f"{number} {name}" for name, number in result.counts.items() if number)
    problems = [*map(str, result.unreadable), *map(str, result.refused)]
    refused = f" (not imported: {_some(problems)})" if problems else ""
    return f"from the exports: {counts or 'nothing'}{refused}"


def check_integrity(base: KnowledgeBase) -> Iterator[Finding]:
    """Broken pages, indexes, references, and texts that are not those that were written."""
    if problems := backup.check(base.store.path):
        repair = f"back it up and rebuild its indexes; where that is not enough, {_ANEW}"
        why = f"is not sound: {_some(problems)}"
        yield Finding("integrity", "error", str(base.store.path), why, repair, partial(_mend, base))


def _mend(base: KnowledgeBase) -> str:
    path = base.store.path
    try:
        kept = backup.backup(path, None, base.moment)
        with base.store.write() as tx:
            backup.rebuild_indexes(tx)
        if not backup.check(path):
            return f"indexes rebuilt; the database as it was is {kept}"
    except StoreError:
        pass  # more than its indexes is broken
    return _replace(base)


def _some(lines: Sequence[str]) -> str:
    more = len(lines) - _MOST_SHOWN
    return "; ".join(lines[:_MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "")


def check_reports(base: KnowledgeBase) -> Iterator[Finding]:
    """Entries whose report file is missing, edited or can't be read.

    A file that may not be read is no reason to touch its entry: for all that anybody knows it is there.
    """
    files = ReportFiles(base.folder)
    with base.store.read() as tx:
        entries = entry_rows.all(tx)
        kept = {entry.id for entry in entries if revisions.text(tx, entry.sha256) is not None}
        edited = {entry.id for entry in entries if edit_at(tx, entry.path, entry.sha256) is not None}
    unreadable: Counter[tuple[str, str]] = Counter()
    for entry in entries:
        if (problem := files.hindrance(entry.path)) is not None:
            unreadable[str(problem.filename), problem.strerror or ""] += 1
        elif files.state(entry.path) == "absent":
            yield _missing(base, entry, is_kept=entry.id in kept)
        elif entry.id in edited & kept:
            why = f"somebody edited its report {entry.path}; whoever reads it next takes that in"
            repair = "take it in as a finding, unless it must wait for `kr review`"
            fix = partial(_take_in, base, entry)
            yield Finding("edited_report", "information", entry.id, why, repair, fix)
    for (place, reason), number in unreadable.items():
        why = f"can't be read ({reason}); {counted(number, 'report')} may be there, and the entries are left alone"
        yield Finding("unreadable", "error", place, why)


def _missing(base: KnowledgeBase, entry: Entry, *, is_kept: bool) -> Finding:
    why = f"its report {entry.path} is missing or empty"
    if is_kept:
        repair, fix = "write the file from the text in the database", partial(_write_file, base, entry)
        return Finding("missing_report", "warning", entry.id, why, repair, fix)
    repair = "move it to the archive; its text is lost, so that only research can answer again"
    return Finding("missing_report", "error", entry.id, why, repair, partial(_archive, base, entry))


def _take_in(base: KnowledgeBase, entry: Entry) -> str:
    stored_reports.read_report(base.store, entry)
    with base.store.read() as tx:
        row = entry_rows.get(tx, entry.id)
    is_taken_in = row is not None and row.sha256 != entry.sha256
    return "taken in" if is_taken_in else "left out: it waits for `kr review`, or says nothing"


def _write_file(base: KnowledgeBase, entry: Entry) -> str:
    stored_reports.read_report(base.store, entry)
    is_there = ReportFiles(base.folder).state(entry.path) == "there"
    return f"{entry.path} written" if is_there else f"failed: {entry.path} can't be written"


def _archive(base: KnowledgeBase, entry: Entry) -> str:
    with base.store.write() as tx:
        row = entry_rows.get(tx, entry.id)
        if row is None or tx.files.state(row.path) != "absent":
            return "somebody else has put it right"
        archive.move(tx, entry.id, "manual", base.clock())
    return "archived"


def check_orphans(base: KnowledgeBase) -> Iterator[Finding]:
    """Report files that no entry has, live or archived."""
    with base.store.read() as tx:
        known = entry_rows.known_paths(tx)
        for path in report_paths(base.folder):
            if path in known:
                continue
            item = _read_item(base, path)
            if item is None:
                why = "does not follow the template of reports; it is left alone"
                yield Finding("orphan", "information", path, why)
                continue
            version = item.framework_version or "unknown"
            live = entry_rows.of_topic(tx, item.framework, item.topic, version)
            yield _orphan(base, item, live)


def _orphan(base: KnowledgeBase, item: Item, live: Entry | None) -> Finding:
    if live is not None:
        why = f"is not indexed: {live.id} has this framework, topic and major version; it is left alone"
        return Finding("orphan", "information", item.path, why)
    repair, fix = f"index it as {item.framework} - {item.topic}", partial(_adopt, base, item.path)
    return Finding("orphan", "warning", item.path, "no entry has this report", repair, fix)


def _adopt(base: KnowledgeBase, path: str) -> str:
    item = _read_item(base, path)
    if item is None:
        return "it is gone"
    result = import_report(base.store, base.folder, item, now=base.clock())
    return result.refused[0].reason if result.refused else "indexed"


def report_paths(folder: Path) -> list[str]:
    """Return the Markdown files below ``frameworks/`` as the index writes paths, sorted; no links, nothing hidden."""
    found = []
    for here, folders, files in os.walk(folder / "frameworks"):
        folders[:] = [name for name in folders if not name.startswith(".")]
        at = Path(here).relative_to(folder)
        found += [(at / name).as_posix() for name in files if name.endswith(".md") and name[0] != "."]
    return sorted(found)


def _read_item(base: KnowledgeBase, path: str) -> Item | None:
    """Make the item of an index that a report's own header tells; None where it does not follow the template."""
    text = decoded(ReportFiles(base.folder).read(path))
    shape = parse_report(text)
    if shape is None:
        return None
    framework = _plain(shape.header["Framework"])
    topic = _plain(shape.title.removeprefix("# ")).removeprefix(f"{framework} - ")
    if not framework or not topic:
        return None
    now = base.clock()
    at = to_text(min(parse_time(shape.header["Research Date"]) or now, now))
    return Item(
        line=1,
        framework=framework,
        framework_version=_plain(shape.header["Version"]) or None,
        topic=topic,
        path=path,
        created=at,
        last_accessed=at,
        status="stale" if origin_of(text) in {"skeleton", "baseline"} else "fresh",
    )


def _plain(line: str) -> str:
    """Take the escapes of Markdown from a line of a header."""
    return one_line(_ESCAPED.sub(r"\1", line))


def check_export(base: KnowledgeBase) -> Iterator[Finding]:
    """``index.yaml`` and ``_archived-index.yaml`` that don't say what the database says."""
    with base.store.read() as tx:
        live, archived = entry_rows.all(tx), archive.all(tx)
    is_wanted = base.auto_export and bool(live or archived)
    for name, text in ((INDEX, render_index(live)), (ARCHIVE, "".join(render_archive(archived)))):
        path = base.folder / name
        repair, fix = "export both files; what kr did not write is imported first", partial(_export, base)
        if path.exists() and not path.is_file():
            why = "is not a regular file; move it away, and the next export writes the file"
            yield Finding("export", "error", str(path), why)
        elif not path.exists() and is_wanted:
            yield Finding("export", "warning", str(path), "is missing", repair, fix)
        elif path.exists() and (present := path.read_bytes()) != text.encode():
            is_minor = _lasting(present) == _lasting(text.encode())
            why = "differs from the database"
            yield Finding("export", "information" if is_minor else "warning", str(path), why, repair, fix)


def _lasting(content: bytes) -> list[str]:
    lines = content.decode(errors="replace").splitlines()
    return [line for line in lines if not line.startswith(_VOLATILE)]


def _export(base: KnowledgeBase) -> str:
    export_yaml(base.store, base.folder)
    return "exported"


CONTENT_CHECKS: tuple[Check, ...] = (check_integrity, check_reports, check_orphans, check_export)
"""Those that ask the tables of a database of this version."""

CHECKS: tuple[Check, ...] = (check_permissions, check_database, *CONTENT_CHECKS)
"""In the order in which they repair: a row must be right before it is exported."""
