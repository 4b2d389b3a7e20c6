"""``kr doctor``: the checks of the database file, every check, their repairs, and one question to each source (SPEC 6.5)."""

import os
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kr.errors import KrError, SourceFailure, SourceNotAsked, StoreError
from kr.maintenance import checks
from kr.maintenance.checks import Finding, Fix, KnowledgeBase, report_paths
from kr.store import backup, entries
from kr.text.counting import counted
from kr.transfer import ARCHIVE, INDEX
from kr.values import Query

if TYPE_CHECKING:
    from kr.sources.base import Source

_MOST_SHOWN = 5
_QUESTION = Query(
    framework="react",
    framework_version="unknown",
    topic="state",
    tags=("state",),
    question="How is state kept in a component?",
)
_REPOSITORY = "facebook/react"


_BUILT_ANEW = "move it aside, and build a new one from the exports and the reports"


def check_database(base: KnowledgeBase) -> Iterator[Finding]:
    """A database that is deleted, damaged, of another version, or none of ours."""
    found, about = base.look, partial(Finding, "database", subject=base.place)
    told = found.message
    match found.state:
        case "absent":
            if _nearest(base.folder).is_dir():  # else check_permissions told of it
                yield _absent(base)
        case "corrupt":
            why = f"is damaged: {told}. `kr db restore FILE` brings a backup back, if there is one"
            yield about("error", message=why, repair=_BUILT_ANEW, fix=partial(replace_damaged, base))
        case "older":
            why = f"is of an older kr (schema {found.version}); the next use upgrades it"
            fix = partial(_upgrade, base)
            yield about("information", message=why, repair="back it up and upgrade it", fix=fix)
        case "newer":
            yield about("error", message=f"{told}. Install that kr, or `kr db restore` an older backup")
        case "foreign":
            yield about("error", message=f"{told}. Set KR_DATABASE_URL or --kb to another place")
        case "unreadable":
            yield about("error", message=str(told))


def _absent(base: KnowledgeBase) -> Finding:
    about = partial(Finding, "database", subject=base.place)
    if left := remains(base.folder):
        why, fix = f"there is no database, but there are {left}", partial(rebuild, base)
        return about("error", message=why, repair="make a new database from them", fix=fix)
    why = "there is no knowledge base yet; `kr init` or the first research makes it"
    return about("information", message=why)


def _upgrade(base: KnowledgeBase) -> str:
    with base.store.write() as tx:
        return f"upgraded, {counted(entries.count(tx), 'entry', 'entries')}"


def check_integrity(base: KnowledgeBase) -> Iterator[Finding]:
    """Broken indexes, pages, references, tables or views."""
    if base.look.state not in {"current", "older"}:
        return
    problems = backup.check(base.store.path)
    if not problems:
        return
    repair, fix = _BUILT_ANEW, replace_damaged
    if backup.is_repairable(problems):
        repair, fix = "back it up and rebuild its indexes, in place", _repair
    why = f"is not sound: {_some(problems)}"
    yield Finding("integrity", "error", base.place, why, repair=repair, fix=partial(fix, base))


def _repair(base: KnowledgeBase) -> str:
    kept = backup.keep_before_repair(base.store.path)
    with base.store.write() as tx:
        backup.repair(tx)
    return f"indexes rebuilt; the database as it was is {kept}"


def check_network(base: KnowledgeBase) -> Iterator[Finding]:
    """SQLite's locks don't hold on network file systems."""
    if base.look.state == "unreadable":
        return
    kind = backup.network_file_system(base.store.path.parent, base.mounts)
    if kind is not None:
        yield Finding(
            "network_file_system",
            "warning",
            base.place,
            f"is on a network file system ({kind}), where SQLite may corrupt it. Set "
            "KR_DATABASE_URL=sqlite:////local/path/kr.db; reports may stay where they are",
        )


def check_permissions(base: KnowledgeBase) -> Iterator[Finding]:
    """What kr must read and write and may not or can't: of a whole tree, its top-most folder."""
    told: set[Path] = set()
    if not (place := _nearest(base.folder)).is_dir():
        why = f"is no folder, and {base.folder} is to be one: move it away, or name another place (--kb)"
        yield Finding("permissions", "error", str(place), why)
        return
    for path in _to_be_written(base):
        lacking = _lacking(path)
        if lacking and told.isdisjoint((path, *path.parents)):
            told.add(path)
            mode = "-R u+rwX" if path.is_dir() else "u+rw"
            why = f"may not be {lacking} by this user; `chmod {mode} {path}`, or let its owner run kr"
            if os.statvfs(path).f_flag & os.ST_RDONLY:
                why = "is on a file system that is mounted read-only: nothing new is kept until it is mounted writable"
            yield Finding("permissions", "error", str(path), why)
    if not told and not shutil.disk_usage(_nearest(base.folder)).free:
        yield Finding(
            "disk", "error", base.place, "the disk is full: nothing new is kept until there is room"
        )


def _lacking(path: Path) -> str:
    enter = os.X_OK if path.is_dir() else 0
    if not os.access(path, os.R_OK | enter):
        return "read"
    return "" if os.access(path, os.W_OK | enter) else "written"


def _to_be_written(base: KnowledgeBase) -> Iterator[Path]:
    folder = base.folder
    yield _nearest(folder)
    try:
        path = base.store.path
    except StoreError:
        return
    yield _nearest(path.parent)
    beside = [path.with_name(path.name + end) for end in ("", "-wal", "-shm", ".lock")]
    exports = (folder / INDEX, folder / ARCHIVE, folder / ".export.lock")
    lessons = (folder / "lessons", folder / "lessons" / "_lessons-learned.md")
    yield from (path for path in (*beside, *exports, *lessons) if path.exists())
    frameworks = folder / "frameworks"
    if frameworks.is_dir():
        yield frameworks
        if os.access(frameworks, os.R_OK):
            yield from sorted(path for path in frameworks.iterdir() if path.is_dir())


def _nearest(folder: Path) -> Path:
    """A folder, or the first one above it that is there: it would be made in that."""
    return next(path for path in (folder, *folder.absolute().parents) if path.exists())


def remains(folder: Path) -> str:
    """Say what a new database could be made of; empty when there is nothing."""
    exports = [name for name in (INDEX, ARCHIVE) if (folder / name).is_file()]
    reports = len(report_paths(folder))
    told = [*exports, counted(reports, "report") if reports else ""]
    return " and ".join(part for part in told if part)


def rebuild(base: KnowledgeBase) -> str:
    with base.store.write() as tx:
        entries.count(tx)
    return take_in(base)


def replace_damaged(base: KnowledgeBase) -> str:
    """Move a damaged database aside, and make a new one of the exports and reports."""
    base.store.close()
    kept = backup.move_aside(base.store.path, f"{base.clock():%Y%m%dT%H%M%SZ}")
    return f"{take_in(base)}; the damaged file is {kept}"


def take_in(base: KnowledgeBase) -> str:
    """Import the exports. What can't be read is told, and copied before it is written over."""
    from kr.transfer.import_yaml import import_yaml

    if not any((base.folder / name).is_file() for name in (INDEX, ARCHIVE)):
        return "there is no export to import"
    result = import_yaml(base.store, base.folder, [base.folder], now=base.clock())
    counts = ", ".join(f"{number} {name}" for name, number in result.counts.items() if number)
    told = [*map(str, result.unreadable), *map(str, result.refused)]
    return f"from the exports: {counts or 'nothing new'}" + (
        f" (not taken in: {_some(told)})" if told else ""
    )


def _some(told: Sequence[str]) -> str:
    more = len(told) - _MOST_SHOWN
    return "; ".join(told[:_MOST_SHOWN]) + (f"; and {more} more" if more > 0 else "")


Check = Callable[[KnowledgeBase], Iterator[Finding]]

CONTENT_CHECKS: tuple[Check, ...] = (
    checks.check_missing_reports,
    checks.check_orphans,
    checks.check_export,
)
CHECKS: tuple[Check, ...] = (
    check_network,
    check_permissions,
    check_database,
    check_integrity,
    *CONTENT_CHECKS,
)
"""In the order in which they repair: a row must be right before it is exported."""


def examine(base: KnowledgeBase) -> list[Finding]:
    return [finding for check in CHECKS for finding in _findings(base, check)]


def _findings(base: KnowledgeBase, check: Check) -> list[Finding]:
    """Run one check; an error that stops it is a finding itself."""
    findings: list[Finding] = []
    if check in CONTENT_CHECKS and not base.is_readable:
        return findings
    try:
        findings += check(base)
    except (KrError, OSError) as error:
        subject = error.filename if isinstance(error, OSError) else None
        why = f"can't be examined: {(error.strerror if isinstance(error, OSError) else None) or error}"
        findings.append(
            Finding(check.__name__.removeprefix("check_"), "error", str(subject or base.place), why)
        )
    return findings


def report(base: KnowledgeBase) -> dict[str, Any]:
    """Say what is wrong: ``{knowledge_base, problems, findings, repaired}``."""
    return _result(base, examine(base), [])


def repair(base: KnowledgeBase, announce: Callable[[Finding], None]) -> dict[str, Any]:
    """Do what the findings announce (``announce`` hears of it before), check by check: each sees what was put right before."""
    repaired: list[dict[str, Any]] = []
    for check in CHECKS:
        for finding in _findings(base, check):
            if finding.fix is not None:
                announce(finding)
                repaired.append(finding.plain() | {"done": _done(finding.fix)})
    return _result(base, examine(base), repaired)


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


def check_sources(
    sources: "Sequence[Source]", models: Sequence[tuple[str, Callable[[], object]]], *, timeout: float
) -> Iterator[Finding]:
    """Ask each source and model one question, and tell whether it works; nothing is kept. ``timeout`` in seconds for each."""
    from kr.sources.base import Ask
    from kr.sources.folder import Folder

    ask = Ask(query=_QUESTION, repository=_REPOSITORY)
    for source in sources:
        # A folder is about its own subject: it is read, and no word of the question need stand in it.
        yield _found(
            source.name,
            source.check if isinstance(source, Folder) else partial(source.ask, ask, timeout=timeout),
        )
    for name, use in models:
        yield _found(name, use)


def _found(name: str, use: Callable[[], object]) -> Finding:
    started = time.monotonic()
    try:
        use()
    except SourceNotAsked as failure:
        return Finding("source", "warning", name, failure.reason)
    except SourceFailure as failure:
        return Finding("source", "error", name, f"gave no answer: {failure.reason}")
    message = f"answered in {time.monotonic() - started:.1f} s"
    return Finding("source", "information", name, message)
