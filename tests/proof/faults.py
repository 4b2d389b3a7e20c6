"""What each command answers on a machine that is not well: a full disk, a file that may not be read, a damaged database.

``python -m tests.proof.faults`` breaks a project in each way, runs each command in it, and prints a table: exit status and status of the
answer. It ends with 1 where one is not as ``FAULTS`` says, came with a traceback or late, or where the knowledge base is not whole once
the fault is gone. See docs/reliability.md.
"""

import ctypes
import json
import os
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from tests.proof import scenarios
from tests.proof.crashes import Tally, examined, lost, say
from tests.proof.scenarios import ASK, RECORD, SCENARIOS, SOURCES, sql
from tests.support.forked import import_everything
from tests.support.program import Project

COMMANDS = {
    "hit": "research click 'How do I ask for a password?' --framework-version 8",
    "miss": ASK,
    "save": scenarios.save("click", "How do I exit?", "Mark-new"),
    "record": "lessons record --request -",
    "inject": "lessons inject --phase dev-execution",
    "doctor": "doctor",
}
LIMIT = "defaults: {agent_timeout_seconds: {knowledge_research: 4}}\n"
"""How long a busy database is waited for: half of it."""
SLOWEST = 20.0
"""Seconds that a command may take: the lock of another program is waited for."""


@dataclass(frozen=True, slots=True)
class Fault:
    """``breaks`` spoils a project for as long as its block runs; ``before`` is run in the command's process.

    ``answers``: of each command what it says. ``is_damage``: nothing brings back what is lost, so that only the answers count.
    """

    breaks: Callable[[Project], "Iterator[None]"]
    answers: str
    before: Callable[[], None] = lambda: None
    is_damage: bool = False
    skips: str = ""
    """A command that waits too long to be part of this."""
    needs_root: bool = False


def nothing(_: Project) -> Iterator[None]:
    yield


def no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def obeying() -> None:
    """Let the superuser, whom tests may run as, be stopped by file permissions."""
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    capabilities = (ctypes.c_uint32 * 6)()
    libc = ctypes.CDLL(None)
    libc.capget(header, capabilities)
    override, search = 1, 2
    for kind in (0, 1):  # effective, permitted
        capabilities[kind] &= ~(1 << override | 1 << search)
    libc.capset(header, capabilities)


def full_disk(project: Project) -> Iterator[None]:
    """Put the knowledge base on a disk of its own, and fill that."""
    with moved_to_disk(project, "-o", "size=2m"):
        filler = project.base / "filler"
        with filler.open("wb", buffering=0) as file, suppress(OSError):
            while file.write(b"x" * 4096):
                pass
        yield
        filler.unlink(missing_ok=True)


def read_only_disk(project: Project) -> Iterator[None]:
    with moved_to_disk(project):
        mount("-o", "remount,ro", str(project.base))
        yield
        mount("-o", "remount,rw", str(project.base))


@contextmanager
def moved_to_disk(project: Project, *options: str) -> Iterator[None]:
    kept = project.base.with_name("kept")
    project.base.rename(kept)
    project.base.mkdir()
    mount("-t", "tmpfs", *options, "tmpfs", str(project.base))
    try:
        shutil.copytree(kept, project.base, dirs_exist_ok=True)
        yield
        shutil.rmtree(kept)
        shutil.copytree(project.base, kept)
    finally:
        subprocess.run(["umount", str(project.base)], check=True)
        project.base.rmdir()
        kept.rename(project.base)


def mount(*arguments: str) -> None:
    subprocess.run(["mount", *arguments], check=True)


def no_permission_to_write(project: Project) -> Iterator[None]:
    return modes(project, 0o555, 0o444)


def no_permission_to_read(project: Project) -> Iterator[None]:
    return modes(project, 0o000, 0o000)


def modes(project: Project, folder: int, file: int) -> Iterator[None]:
    paths = [project.base, *project.base.rglob("*")]
    before = [(path, path.stat().st_mode) for path in paths]
    for path in reversed(paths):
        path.chmod(folder if path.is_dir() else file)
    yield
    for path, mode in before:
        path.chmod(mode)


def corrupt_page(project: Project) -> Iterator[None]:
    overwrite(project.database, range(2, 20))
    yield


def truncated(project: Project) -> Iterator[None]:
    os.truncate(project.database, project.database.stat().st_size // 2)
    yield


def overwrite(path: Path, pages: range, size: int = 4096) -> None:
    with path.open("r+b") as file:
        for page in pages:
            file.seek(page * size)
            file.write(b"\xa5" * size)


def crashed(project: Project) -> None:
    """Leave the database as a killed writer does, with commits in its log that were not moved into it yet."""
    with closing(sqlite3.connect(project.database, isolation_level=None)) as writer:
        for number in range(20):
            writer.execute("INSERT INTO meta (key, value) VALUES (?, ?)", (f"crash-{number}", "x" * 3000))
        for suffix in ("", "-wal"):
            shutil.copy(f"{project.database}{suffix}", f"{project.database}{suffix}.crashed")
    for suffix in ("", "-wal"):
        Path(f"{project.database}{suffix}.crashed").replace(f"{project.database}{suffix}")


def truncated_log(project: Project) -> Iterator[None]:
    crashed(project)
    log = Path(f"{project.database}-wal")
    os.truncate(log, log.stat().st_size * 2 // 3)
    yield


def deleted_log(project: Project) -> Iterator[None]:
    crashed(project)
    Path(f"{project.database}-wal").unlink()
    yield


def newer_schema(project: Project) -> Iterator[None]:
    [(version,)] = sql(project.database, "PRAGMA user_version")
    sql(project.database, f"PRAGMA user_version = {version + 1}")
    yield
    sql(project.database, f"PRAGMA user_version = {version}")


def another_programs_lock(project: Project) -> Iterator[None]:
    holder = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1], isolation_level=None); c.execute('BEGIN EXCLUSIVE'); print(flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", holder, str(project.database)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        yield
        process.communicate()


WELL = "0 cache-hit | 0 success | 0 saved | 0 recorded | 0 success | 0, no problem"
NOT_KEPT = "0 cache-hit, not indexed | 0 partial, not indexed | 1"
UNWRITABLE = f"{NOT_KEPT} | 0 failure | 0 success | 1, problems"
UNREADABLE = "0 degraded, not indexed | 0 partial, not indexed | 1 | 0 recorded | 0 success | 1, problems"
"""Where the database can't be used: what the sources have is given, and lessons are kept in their file."""
LOCKED_OUT = "0 degraded, not indexed | 0 partial, not indexed | 1 | 0 failure | 1 failure | 1"
FAULTS: dict[str, Fault] = {
    "none": Fault(nothing, WELL),
    "no file may grow (RLIMIT_FSIZE)": Fault(nothing, UNWRITABLE, before=no_room),
    # The last block of the lessons file has room.
    "full disk (tmpfs)": Fault(full_disk, UNWRITABLE.replace("0 failure", "0 recorded"), needs_root=True),
    "read-only disk": Fault(read_only_disk, UNWRITABLE, needs_root=True),
    "no permission to write": Fault(no_permission_to_write, UNWRITABLE, before=obeying),
    "no permission to read": Fault(no_permission_to_read, LOCKED_OUT, before=obeying),
    "another program's lock": Fault(
        another_programs_lock, f"{NOT_KEPT} |  | 0 success | 0, no problem", skips="record"
    ),
    "a newer kr's database": Fault(newer_schema, UNREADABLE),
    "overwritten pages": Fault(corrupt_page, UNREADABLE, is_damage=True),
    "half of the database": Fault(truncated, UNREADABLE, is_damage=True),
    "write-ahead log cut off": Fault(truncated_log, WELL),
    "write-ahead log deleted": Fault(deleted_log, WELL),
}


def run(project: Project, name: str, fault: Fault) -> tuple[str, list[str]]:
    """Run a command; return its answer in short, and what is wrong with how it gave it."""
    began = time.monotonic()
    status, out, err = scenarios.run(
        project, COMMANDS[name], RECORD if name == "record" else "", fault.before
    )
    wrong = []
    if "Traceback" in err:
        wrong.append(err.strip().splitlines()[-1])
    if (took := time.monotonic() - began) > SLOWEST:
        wrong.append(f"took {took:.0f} s")
    if not out and not err.startswith(("error: ", "warning: ")):
        wrong.append(f"neither an answer nor an error: {err[:200]}")
    return f"{status}{short(out)}", wrong


def short(out: str) -> str:
    """Return what counts of an answer."""
    try:
        answer = json.loads(out)
    except ValueError:
        return ""
    if "problems" in answer:
        return ", problems" if answer["problems"] else ", no problem"
    results = answer.get("results") or {}
    return f" {answer['status']}" + (", not indexed" if results.get("index_updated") is False else "")


def repaired(project: Project) -> Iterator[str]:
    """Say what a repair does not bring back from the exports and the reports."""
    yield from examined(project, Tally())
    present = scenarios.texts(project)
    yield from (f"{mark} is gone" for mark in ("Mark-second", "Mark-flask") if mark not in present)


def suffer(project: Project, name: str, fault: Fault) -> tuple[str, list[str]]:
    """Run every command under a fault; return the answers, and what is wrong."""
    answers, wrong = [], []
    with contextmanager(fault.breaks)(project):
        damaged = project.database.read_bytes() if fault.is_damage else b""
        for command in COMMANDS:
            answer, complaints = ("", []) if command == fault.skips else run(project, command, fault)
            answers.append(answer)
            wrong += [f"{command}: {it}" for it in complaints]
        if fault.is_damage and project.database.read_bytes() != damaged:
            wrong.append("the damaged file was changed")
    told = " | ".join(answers)
    if told != fault.answers:
        wrong.append(f"expected {fault.answers}")
    if fault.is_damage:
        wrong += repaired(project)
    else:
        wrong += [*lost(project, SCENARIOS["save"]), *examined(project, Tally())]
    for line in wrong:
        sys.stderr.write(f"  {name}: {line}\n")
    return told, wrong


def main() -> int:
    import_everything()
    say(f"| fault | {' | '.join(COMMANDS)} | afterwards |\n|---|{'---|' * (len(COMMANDS) + 1)}")
    is_wrong = False
    with tempfile.TemporaryDirectory(prefix="kr-") as place:
        ready, folder = Path(place, "ready"), Path(place, "run")
        scenarios.prepare(ready, is_new=False)
        for name, fault in FAULTS.items():
            if fault.needs_root and os.geteuid() != 0:
                say(f"| {name} | not tried: it needs a mount |")
                continue
            shutil.rmtree(folder, ignore_errors=True)
            shutil.copytree(ready, folder)
            project = Project(folder, env=SOURCES)
            with (folder / "kr.yaml").open("a") as config:
                config.write(LIMIT)
            answers, wrong = suffer(project, name, fault)
            is_wrong |= bool(wrong)
            well = "repaired" if fault.is_damage else "whole"
            say(f"| {name} | {answers} | {'broken' if wrong else well} |")
    return int(is_wrong)


if __name__ == "__main__":
    sys.exit(main())
