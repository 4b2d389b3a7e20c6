"""What tests of the store share: drafts, a moment, plain SQL, and the programs that other processes run.

``python -m tests.support.stores PROGRAM KNOWLEDGE_BASE ARGUMENT...`` runs one of ``PROGRAMS``.
"""

import ctypes
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from importlib import import_module
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import Any

from kr.errors import KrError
from kr.frameworks import framework_key
from kr.models import Entry
from kr.store import entries, lookup, saving
from kr.store.engine import Store
from kr.store.lookup import keywords_key, topic_key
from kr.times import major_key

ROOT = Path(__file__).resolve().parents[2]
NOW = datetime(2026, 10, 1, 12, 0, tzinfo=UTC)
PUBLIC_COLUMNS = (
    "id, framework, framework_version, topic, tags, path, created, last_accessed, status, confidence, sha256"
)


def draft(framework: str = "click", topic: str = "repeatable options", **changes: Any) -> Entry:
    values: dict[str, Any] = {"framework_version": "8.2", "tags": ("options",), "confidence": "high"}
    return Entry(framework=framework, topic=topic, **(values | changes))


def sql(database: Path | Store, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Run one statement as the plain ``sqlite3`` program would, or ``psql`` on PostgreSQL; parameters are ``?``."""
    if isinstance(database, Store) and database.is_shared:
        return on_server(str(database.url), statement, *parameters)
    database = database if isinstance(database, Path) else database.path
    with closing(sqlite3.connect(database)) as connection, connection:
        return connection.execute(statement, parameters).fetchall()


def on_server(url: str, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
    """Run one statement on PostgreSQL."""
    import psycopg

    written = statement.replace("%", "%%").replace("?", "%s") if parameters else statement
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        cursor = connection.execute(written.encode(), parameters or None)
        return cursor.fetchall() if cursor.description else []


def refuse(database: Store, event: str) -> None:
    """Have the database refuse an event, such as ``INSERT ON entries``."""
    if not database.is_shared:
        name = event.replace(" ", "_")
        sql(database, f"CREATE TRIGGER no_{name} BEFORE {event} BEGIN SELECT RAISE(ABORT, 'not today'); END")
        return
    body = "BEGIN RAISE EXCEPTION 'not today'; END"
    sql(
        database,
        f"CREATE OR REPLACE FUNCTION kr_test_refuse() RETURNS trigger LANGUAGE plpgsql AS $${body}$$",
    )
    sql(
        database,
        f"CREATE TRIGGER no_{event[:6]} BEFORE {event} FOR EACH ROW EXECUTE FUNCTION kr_test_refuse()",
    )


def leave_no_room(database: Store, table: str) -> None:
    """Have the database refuse each further row, also to who opens it anew: a trigger would have it refused as a whole."""
    if database.is_shared:
        refuse(database, f"INSERT ON {table}")
        return
    known = ", ".join(f"'{entry_id}'" for (entry_id,) in sql(database, f"SELECT id FROM {table}"))
    none = "abs(-9223372036854775807 - (id IS NOT NULL))"  # overflows
    sql(database, f"CREATE INDEX no_room ON {table} (CASE WHEN id IN ({known}) THEN 1 ELSE {none} END)")


def allow(database: Store, event: str) -> None:
    """Take ``refuse`` back."""
    if database.is_shared:
        sql(database, "DROP FUNCTION kr_test_refuse CASCADE")
    else:
        sql(database, f"DROP TRIGGER no_{event.replace(' ', '_')}")


def opened(base: Path, **options: Any) -> Store:
    """Return the store that KR_DATABASE_URL names, or that of the folder."""
    return Store(os.environ.get("KR_DATABASE_URL"), base, **options)


def insert_entry(database: Path | Store, entry_id: str, **changes: str | None) -> None:
    """Insert a row by plain SQL."""
    row: dict[str, str | None] = {
        "id": entry_id,
        "framework": "click",
        "framework_version": "8.2",
        "topic": entry_id,
        "tags": '["options"]',
        "path": f"frameworks/click/{entry_id}.md",
        "created": "2026-09-01",
        "last_accessed": "2026-09-30",
        "status": "fresh",
        "confidence": "high",
        "sha256": None,
    }
    row |= {name: value for name, value in changes.items() if name in row}
    keys: dict[str, str | None] = {
        "framework_key": framework_key(str(row["framework"])),
        "topic_key": topic_key(str(row["topic"])),
        "keywords_key": keywords_key(str(row["topic"])),
        "major": major_key(str(row["framework_version"])),
    }
    row |= keys | {name: value for name, value in changes.items() if name in keys}
    columns = f"{PUBLIC_COLUMNS}, framework_key, topic_key, keywords_key, major"
    sql(database, f"INSERT INTO entries ({columns}) VALUES ({', '.join('?' * 15)})", *row.values())


def start(program: str, base: Path, *arguments: object, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "tests.support.stores", program, str(base), *map(str, arguments)]
    return subprocess.Popen(
        command, cwd=ROOT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options
    )


def finish(processes: Sequence[subprocess.Popen[str]], *, timeout: float = 90.0) -> list[str]:
    """Wait for the processes and return what they printed; fail with the first one's complaint."""
    try:
        finished = [(process, *process.communicate(timeout=timeout)) for process in processes]
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
    for process, _, complaint in finished:
        assert process.returncode == 0, complaint
    return [output.strip() for _, output, _ in finished]


def together(program: str, base: Path, turns: Sequence[Sequence[object]]) -> list[str]:
    """Run a program at the same moment in one process for each of the ``turns``, its arguments; return the outputs.

    They are forks of a process that has imported what they need: interpreters that start cost more than the race.
    """
    [printed] = finish([start("together", base, base, program, json.dumps(turns))])
    outputs: list[str] = json.loads(printed)
    return outputs


def obey_permissions() -> None:
    """For ``preexec_fn``: let the superuser, whom tests may run as, be stopped by file permissions."""
    drop_from_bounding_set, override, search = 24, 1, 2
    libc = ctypes.CDLL(None)
    libc.prctl(drop_from_bounding_set, override, 0, 0, 0)
    libc.prctl(drop_from_bounding_set, search, 0, 0, 0)


@contextmanager
def protected(*paths: Path) -> Iterator[None]:
    """Take the write permission from files and folders, for as long as the block runs."""
    modes = [path.stat().st_mode for path in paths]
    for path in paths:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        yield
    finally:
        for path, mode in zip(paths, modes, strict=True):
            path.chmod(mode)


def _together(_: Store, base: str, program: str, turns: str) -> str:
    for module in ("alembic.command", "sqlalchemy.dialects.sqlite"):
        import_module(module)
    forking, given = get_context("fork"), json.loads(turns)
    barrier = forking.Barrier(len(given))
    outputs = []
    for arguments in given:
        ours, theirs = forking.Pipe(duplex=False)
        forking.Process(target=_turn, args=(barrier, theirs, Path(base), program, arguments)).start()
        theirs.close()
        outputs.append(ours)
    return json.dumps([output.recv() for output in outputs])


def _turn(
    barrier: Barrier, output: Connection, base: Path, program: str, arguments: Sequence[object]
) -> None:
    barrier.wait(60)
    with opened(Path(base)) as store:
        output.send(PROGRAMS[program](store, *map(str, arguments)))


def _first_use(store: Store, number: str) -> str:
    saving.save(store, draft(topic=f"topic {number}"), f"# report {number}\n", datetime.now(UTC))
    with store.read() as tx:
        return str(entries.count(tx) > 0)


def call(request_id: str | None = None, **changes: Any) -> dict[str, Any]:
    values: dict[str, Any] = {"at": "2026-10-01T12:00:00.000000Z", "source": "context7", "outcome": "success"}
    values |= {"session_id": "s", "story_key": "1-1", "charged": False}
    return {"request_id": request_id, **values, **changes}


def _save_on(store: Store, seed: str) -> str:
    for number in range(10_000):
        head = f"# report {seed}.{number}\n"
        saving.save(store, draft(), head + "x" * 4096, datetime.now(UTC))
        sys.stdout.write(head)
        sys.stdout.flush()
    return ""


def _touch_on(store: Store, entry_id: str, times: str) -> str:
    for _ in range(int(times)):
        with store.write() as tx:
            assert lookup.touch(tx, entry_id, NOW)
    return ""


def _try_both(store: Store) -> str:
    outcomes = []
    try:
        with store.read() as tx:
            outcomes.append(str(entries.count(tx)))
    except KrError as exc:
        outcomes.append(type(exc).__name__)
    try:
        with store.write() as tx:
            tx.note("key", "value")
            outcomes.append("written")
    except KrError as exc:
        outcomes.append(type(exc).__name__)
    try:
        saving.save(store, draft(topic="new"), "# new\n", NOW)
        outcomes.append("saved")
    except KrError as exc:
        outcomes.append(type(exc).__name__)
    return " ".join(outcomes)


PROGRAMS: dict[str, Callable[..., str]] = {
    "together": _together,
    "first-use": _first_use,
    "save-on": _save_on,
    "touch-on": _touch_on,
    "try-both": _try_both,
}


if __name__ == "__main__":
    with opened(Path(sys.argv[2])) as found:
        sys.stdout.write(PROGRAMS[sys.argv[1]](found, *sys.argv[3:]) + "\n")
