"""What is left of a knowledge base when a command dies, or its disk fails, at any system call that changes a file.

``python -m tests.proof.crashes [NAME…]`` runs each command once to count its points, then once more for each point and each way of
ending there, on a copy of the same project; ``--points N`` takes N of them, evenly. It prints a table, and ends with 1 where a promise
was broken. See docs/reliability.md.
"""

import argparse
import errno
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from kr.store import SCHEMA_VERSION
from kr.transfer import ARCHIVE
from tests.proof import scenarios
from tests.proof.scenarios import LESSON, MARKS, SCENARIOS, SOURCES, Scenario, count, printed, run, sql
from tests.support.forked import import_everything
from tests.support.program import Project
from tests.support.stores import ROOT
from tests.support.tracer import CannotTrace, How, Trace, trace

WAYS: dict[str, tuple[How, int]] = {
    "kill": ("kill", 0),
    "tear": ("tear", 0),
    "EIO": ("fail", errno.EIO),
    "ENOSPC": ("fail", errno.ENOSPC),
}
MIGRATION = """
from alembic import op

revision, down_revision = "0002", "0001"


def upgrade():
    op.execute("ALTER TABLE entries ADD COLUMN added TEXT")
    op.execute("UPDATE entries SET added = 'yes'")
"""
_CHANGES_NOTHING = {"fcntl", "flock", "fsync", "fdatasync"}


@dataclass(slots=True)
class Tally:
    points: int = 0
    runs: int = 0
    acknowledged: int = 0
    repaired: int = 0
    left_over: int = 0
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


# --- the promises


def broken(project: Project, scenario: Scenario, ended: Trace, way: str, tally: Tally) -> Iterator[str]:
    """Say which promises do not hold after a run."""
    out, err = printed(project)
    if "Traceback" in err:
        yield f"traceback: {err.strip().splitlines()[-1]}"
    if way not in {"kill", "tear"} and ended.status not in {0, 1}:
        yield f"exit status {ended.status}: {err.strip()[-200:]}"
    is_acknowledged = is_answer(out) and (way in {"kill", "tear"} or ended.status == 0)
    tally.acknowledged += is_acknowledged
    yield from torn(project, way)
    if is_acknowledged and not kept(lambda: scenario.promised(project)):
        yield f"acknowledged, and not there: {out[:200]}"
    yield from lost(project, scenario)
    yield from examined(project, tally)
    yield from lost(project, scenario)
    if count(project, "sqlite_master WHERE name = 'leases'"):
        sql(project.database, "DELETE FROM leases")  # that of the dead expires by itself, after 15 s
    is_begun = scenario.begun and (project.root / scenario.begun).exists()
    status, out, err = run(project, scenario.go_on if is_begun else scenario.command, scenario.stdin)
    if status != 0 or "Traceback" in err:
        yield f"can't go on: exit status {status}, {(err or out).strip()[-200:]}"
    elif not kept(lambda: scenario.promised(project)):
        yield f"went on, and it is not there: {out[:200]}"
    yield from lost(project, scenario)
    hidden = (".kr-", ".index.yaml.", "._archived")
    tally.left_over += sum(path.name.startswith(hidden) for path in project.root.rglob(".*"))


def kept(holds: Callable[[], object]) -> bool:
    try:
        return holds() is not False
    except (OSError, ValueError, sqlite3.Error, yaml.YAMLError):
        return False


def is_answer(out: str) -> bool:
    try:
        answer = json.loads(out)
    except ValueError:
        return False
    results = answer.get("results", {})
    is_refused = answer.get("status") in {"failure", "skipped", "failed"} or answer.get("refused", 0)
    return not is_refused and results is not None and results.get("index_updated", True)


def lost(project: Project, scenario: Scenario) -> Iterator[str]:
    """Name what was acknowledged before the run and can't be reached."""
    if LESSON not in scenarios.lessons(project):
        yield "the earlier lesson is gone"
    if scenario.is_new:
        return
    try:
        present = scenarios.texts(project)
        if (found := sql(project.database, "PRAGMA integrity_check")) != [("ok",)]:
            yield f"integrity_check: {found[0][0]}"
    except sqlite3.Error as error:
        yield f"the database can't be read: {error}"
        return
    expected = MARKS - {"Mark-second"} if scenario.command == "db restore earlier.db" else MARKS
    yield from (f"{mark} is gone" for mark in sorted(expected) if mark not in present)


def torn(project: Project, way: str) -> Iterator[str]:
    """Name the files that are neither what they were nor what they are to be.

    Appends are allowed one thing: a write that was torn may leave a part of them.
    """
    readers: dict[str, Callable[[Path], object]] = {
        "*.yaml": lambda path: yaml.safe_load(path.read_text()),
        "workflow_state.json": lambda path: json.loads(path.read_text()),
        "kr.db.schema-*": scenarios.is_sound,
        "kept.db": scenarios.is_sound,
    }
    for pattern, read in readers.items():
        for path in project.root.rglob(pattern):
            is_appended = path.name == ARCHIVE and way != "kill"
            if not (is_appended or kept(lambda read=read, path=path: read(path))):  # type: ignore[misc]
                yield f"{path.name} is torn"
    known = known_texts(project)
    for path in (project.base / "frameworks").rglob("*.md"):
        if digest(path) not in known:
            yield f"{path.name} is torn"
    if way == "kill" and not scenarios.lessons(project).endswith("\n"):
        yield "the lessons file ends within a line"


def known_texts(project: Project) -> set[str]:
    """Return the digests of the texts that the database has, and of the files that were there before."""
    known = {digest(path) for path in (project.root.parent / "ready" / ".kr").rglob("*.md")}
    if project.database.exists() and count(project, "sqlite_master WHERE name = 'report_texts'"):
        known |= {row[0] for row in sql(project.database, "SELECT sha256 FROM report_texts")}
    return known


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def examined(project: Project, tally: Tally) -> Iterator[str]:
    """Have the doctor look, and name what is left of what it finds when it has repaired it."""
    problems: list[dict[str, str]] = []
    for command in ("doctor", "doctor --repair"):
        status, out, err = run(project, command)
        if "Traceback" in err or not is_answer(out):
            yield f"kr {command}: exit status {status}, {err.strip()[-200:]}"
            return
        problems = [row for row in json.loads(out)["findings"] if row["severity"] != "information"]
        if not problems:
            return
        tally.repaired += command == "doctor"
    yield from (f"not repaired: {row['check']}: {row['message']}" for row in problems)


# --- the sweep


def sweep(name: str, folder: Path, *, ways: Sequence[str], most: int | None, start: int = 0) -> Tally:
    """Run one scenario at its points. ``most``: so many of all points and ways, evenly, from the ``start``-th on.

    ``folder`` may be another scenario's before: the projects that are copied stay in it.
    """
    scenario, tally, began = SCENARIOS[name], Tally(), time.monotonic()
    ready = folder / ("new" if scenario.is_new else "ready")
    if not ready.exists():
        scenarios.prepare(ready, is_new=scenario.is_new)

    def once(at: int | None, way: str) -> tuple[Project, Trace]:
        shutil.rmtree(folder / "run", ignore_errors=True)
        shutil.copytree(ready, folder / "run")
        project = Project(folder / "run", env={**SOURCES, **scenario.env})
        how, error = WAYS[way]
        return project, trace(
            lambda: scenarios.execute(scenario.command),
            before=lambda: scenarios.redirect(project, scenario.stdin),
            at=at,
            how=how,
            error=error,
        )

    project, whole = once(None, "kill")
    assert whole.status == 0, printed(project)
    tally.points = len(whole.points)
    tally.faults += [f"undisturbed: {fault}" for fault in broken(project, scenario, whole, "EIO", Tally())]
    turns = [
        (at, way)
        for at, point in enumerate(whole.points)
        for way in ways
        # Where nothing changed since the point before, that was killed in the same state.
        if not (way == "kill" and at and whole.points[at - 1] in _CHANGES_NOTHING)
        if not (way == "tear" and point not in {"write", "pwrite64"})
        if not (WAYS[way][0] == "fail" and point in {"flock", "fcntl"})
    ]
    step = max(1, len(turns) // most) if most else 1
    for at, way in turns[(start + step // 2) % step :: step]:
        project, ended = once(at, way)
        tally.runs += 1
        for fault in broken(project, scenario, ended, way, tally):
            tally.faults.append(f"{way} at {at} ({whole.points[at]}): {fault}")
    tally.seconds = time.monotonic() - began
    return tally


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def sweep_upgrade(arguments: Sequence[str]) -> int:
    """Run the scenario ``upgrade`` with a newer kr: this one's source, with one migration more."""
    assert "KR_IS_NEWER" not in os.environ, "the newer kr is as old as this one"
    with tempfile.TemporaryDirectory(prefix="kr-") as place:
        for name in ("kr", "migrations", "tests/support", "tests/proof"):
            shutil.copytree(ROOT / name, Path(place, name), ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copy(ROOT / "alembic.ini", place)
        shutil.copy(ROOT / "tests/__init__.py", Path(place, "tests"))
        file = Path(place, "kr/store/__init__.py")
        before, found, after = file.read_text().partition("SCHEMA_VERSION = 1\n")
        assert found, f"{file}: has no SCHEMA_VERSION"
        file.write_text(f"{before}SCHEMA_VERSION = 2\n{after}")
        Path(place, "migrations/versions/0002_added.py").write_text(MIGRATION)
        command = [sys.executable, "-m", "tests.proof.crashes", "upgrade", *arguments]
        return subprocess.run(
            command, cwd=place, check=False, env={**os.environ, "PYTHONPATH": place, "KR_IS_NEWER": "yes"}
        ).returncode


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(SCENARIOS))
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--points", type=int, help="how many of all points and ways of a command")
    parser.add_argument("--start", type=int, default=0, help="which of them is the first")
    given = parser.parse_args()
    try:
        trace(lambda: 0)
    except CannotTrace as error:
        say(f"skipped: {error}")
        return 0
    import_everything()
    if SCHEMA_VERSION == 1:
        say("| command | points | runs | acknowledged | repaired | left over | broken | seconds |")
        say("|---|---|---|---|---|---|---|---|")
    is_broken = False
    with tempfile.TemporaryDirectory(prefix="kr-") as place:
        for name in given.names or SCENARIOS:
            if name == "upgrade" and SCHEMA_VERSION == 1:
                options = {
                    key: value for key, value in vars(given).items() if key != "names" and value is not None
                }
                is_broken |= bool(sweep_upgrade([f"--{key}={value}" for key, value in options.items()]))
                continue
            found = sweep(name, Path(place), ways=given.ways.split(","), most=given.points, start=given.start)
            ran = (
                f"{found.points} | {found.runs} | {found.acknowledged} | {found.repaired} | {found.left_over}"
            )
            say(f"| {name} | {ran} | {len(found.faults)} | {found.seconds:.0f} |")
            for fault in found.faults:
                is_broken = True
                sys.stderr.write(f"  {name}: {fault}\n")
    return int(is_broken)


if __name__ == "__main__":
    sys.exit(main())
