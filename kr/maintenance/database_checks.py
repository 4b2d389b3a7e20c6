"""Checks of the database file itself: there, ours, sound, writable, on a local file system (SPEC 6.5)."""

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from kr.errors import StoreError
from kr.maintenance.content_checks import report_paths
from kr.maintenance.findings import Finding, KnowledgeBase
from kr.store.soundness import repair, rescue
from kr.text.counting import counted

_MOST_SHOWN = 5


def check_database(base: KnowledgeBase) -> Iterator[Finding]:
    """A database that is deleted, damaged, of another version, or none of ours."""
    found = base.look
    path = base.place
    if found.state == "absent":
        yield from _absent(base)
    elif found.state == "corrupt":
        yield Finding(
            check="database",
            severity="error",
            subject=path,
            message=f"is damaged: {found.message}. `kr db restore FILE` brings a backup back, if there is one",
            repair="move it aside, and build a new one from its readable rows, the exports and the reports",
            fix=lambda: replace_damaged(base),
        )
    elif found.state == "older":
        yield Finding(
            check="database",
            severity="information",
            subject=path,
            message=f"is of an older kr (schema {found.version}); the next use upgrades it",
            repair="back it up and upgrade it",
            fix=lambda: _upgrade(base),
        )
    elif found.state == "newer":
        yield _beyond_repair(path, f"{found.message}. Install that kr, or `kr db restore` an older backup")
    elif found.state == "foreign":
        yield _beyond_repair(path, f"{found.message}. Set KR_DATABASE_URL or --kb to another place")
    elif found.state == "unreadable":
        yield _beyond_repair(path, str(found.message))


def _beyond_repair(path: str, message: str) -> Finding:
    return Finding(check="database", severity="error", subject=path, message=message)


def _absent(base: KnowledgeBase) -> Iterator[Finding]:
    left = remains(base)
    if not left:
        yield Finding(
            check="database",
            severity="information",
            subject=base.place,
            message="there is no knowledge base yet; `kr init` or the first research makes it",
        )
        return
    yield Finding(
        check="database",
        severity="error",
        subject=base.place,
        message=f"there is no database, but there are {left}",
        repair="make a new database from them",
        fix=lambda: rebuild(base),
    )


def _upgrade(base: KnowledgeBase) -> str:
    with base.store.write() as unit:
        return f"upgraded, {counted(unit.entries.count(), 'entry', 'entries')}"


def check_integrity(base: KnowledgeBase) -> Iterator[Finding]:
    """Broken indexes, pages, references, tables or views."""
    if base.look.state not in {"current", "older"}:
        return
    health = base.store.care.examine()
    if not health.problems:
        return
    shown = "; ".join(health.problems[:_MOST_SHOWN])
    more = len(health.problems) - _MOST_SHOWN
    if health.is_mendable:
        repair, fix = (
            "back it up, put back what is missing and rebuild its indexes, in place",
            lambda: _repair(base),
        )
    else:
        repair = "move it aside, and build a new one from its readable rows, the exports and the reports"
        fix = lambda: replace_damaged(base)  # noqa: E731 - beside its text
    yield Finding(
        check="integrity",
        severity="error",
        subject=base.place,
        message=f"is not sound: {shown}{f'; and {more} more' if more > 0 else ''}",
        repair=repair,
        fix=fix,
    )


def _repair(base: KnowledgeBase) -> str:
    kept = base.store.care.keep_before_repair()
    with base.store.write() as unit:
        made = repair(unit.session)
    mended = f"put right: {', '.join(made)}; " if made else ""
    return f"{mended}indexes rebuilt; the database as it was is {kept}"


def check_network(base: KnowledgeBase) -> Iterator[Finding]:
    """SQLite's locks don't hold on network file systems."""
    if base.look.state == "unreadable":
        return
    kind = base.store.care.network_file_system(base.mounts)
    if kind is not None:
        yield Finding(
            check="network_file_system",
            severity="warning",
            subject=base.place,
            message=f"is on a network file system ({kind}), where SQLite may corrupt it. Set "
            "KR_DATABASE_URL=sqlite:////local/path/kr.db; reports may stay where they are",
        )


def check_permissions(base: KnowledgeBase) -> Iterator[Finding]:
    """What kr must read and write and may not: of a whole tree, its top-most folder."""
    told: dict[Path, str] = {}
    below: Counter[Path] = Counter()
    for path in dict.fromkeys(_to_be_written(base)):
        lacking = _lacking(path)
        top = next((folder for folder in path.parents if told.get(folder) == lacking), None)
        if lacking and top is not None:
            below[top] += 1
        elif lacking:
            told[path] = lacking
    for path, lacking in told.items():
        more = f", nor may {below[path]} more below it" if below[path] else ""
        option = "-R " if below[path] else ""
        yield Finding(
            check="permissions",
            severity="error",
            subject=str(path),
            message=f"may not be {lacking} by this user{more}; "
            f"`chmod {option}u+rw{'X' if path.is_dir() else ''} {path}`, or let its owner run kr",
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
        home, *beside = base.store.care.files()
    except StoreError:
        return
    yield _nearest(home)
    exports = (folder / "index.yaml", folder / "_archived-index.yaml", folder / ".export.lock")
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


EXPORTS = ("index.yaml", "_archived-index.yaml")

_MOST_TOLD = 5


def remains(base: KnowledgeBase) -> str:
    """Say what a new database could be made of; empty when there is nothing."""
    exports = [name for name in EXPORTS if (base.folder / name).is_file()]
    reports = len(report_paths(base.folder))
    told = [*exports, counted(reports, "report") if reports else ""]
    return " and ".join(part for part in told if part)


def rebuild(base: KnowledgeBase) -> str:
    """Make a database from the exports; reports that they leave out are found as orphans next."""
    with base.store.write() as unit:
        unit.entries.count()
    return take_in(base)


def replace_damaged(base: KnowledgeBase) -> str:
    """Move a damaged database aside, and rescue into a new one what can be read of it and of the exports."""
    base.store.close()
    kept = base.store.care.move_aside(f"{base.clock():%Y%m%dT%H%M%SZ}")
    rescued = _rescue(base, kept)
    return f"{rescued}; {take_in(base)}; the damaged file is {kept}"


def _rescue(base: KnowledgeBase, damaged: Path) -> str:
    with base.store.write() as unit:
        rows = rescue(damaged, unit.session)
    told = ", ".join(f"{number} of {table}" for table, number in rows.items() if number)
    return f"rows rescued: {told or 'none'}"


def take_in(base: KnowledgeBase) -> str:
    """Import the exports.

    What can't be read is told; the file stays, and is copied before it is written over.
    """
    from kr.transfer.import_yaml import import_yaml

    if not any((base.folder / name).is_file() for name in EXPORTS):
        return "there is no export to import"
    result = import_yaml(base.store, base.folder, [base.folder], now=base.clock())
    counts = ", ".join(f"{number} {name}" for name, number in result.counts.items() if number)
    told = [*map(str, result.unreadable), *map(str, result.refused)]
    more = len(told) - _MOST_TOLD
    bad = "; ".join(told[:_MOST_TOLD]) + (f"; and {more} more" if more > 0 else "")
    return f"from the exports: {counts or 'nothing new'}" + (f" (not taken in: {bad})" if bad else "")
