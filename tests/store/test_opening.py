"""How a database is made, opened, shared and refused."""

import os
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kr.errors import StoreBusy, StoreCorrupt, StoreError, StoreTooNew
from kr.store import SCHEMA_VERSION, entries, saving
from kr.store.engine import Store
from kr.store.schema import make
from tests.support.program import Project, request
from tests.support.stores import NOW, ROOT, draft, finish, obey_permissions, protected, sql, start


@pytest.fixture
def database_url() -> None:
    """What is tried here is SQLite's file."""


def use(store: Store) -> int:
    with store.write() as tx:
        tx.note("used", "yes")
    with store.read() as tx:
        return entries.count(tx)


def test_first_use_makes_a_database_in_wal_mode_at_the_newest_version(store: Store) -> None:
    assert use(store) == 0
    assert sql(store.path, "PRAGMA journal_mode") == [("wal",)]
    assert sql(store.path, "PRAGMA user_version") == [(SCHEMA_VERSION,)]
    assert sql(store.path, "SELECT version_num FROM alembic_version") == [(f"{SCHEMA_VERSION:04}",)]


def test_migrations_and_a_first_use_make_the_same_schema() -> None:
    def made_by(how: Callable[[sqlite3.Connection], None]) -> list[tuple[str, ...]]:
        with closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
            how(connection)
            schema = connection.execute("SELECT type, name, coalesce(sql, '') FROM sqlite_master").fetchall()
            facts = [
                connection.execute(query).fetchone()
                for query in ("PRAGMA user_version", "PRAGMA application_id", "SELECT * FROM alembic_version")
            ]
        return sorted((kind, name, "".join(statement.split())) for kind, name, statement in schema) + facts

    assert made_by(lambda it: make(it, 1)) == made_by(make)


def test_a_look_makes_no_database(store: Store, base: Path) -> None:
    with store.read() as tx:
        assert entries.all(tx) == []
    assert not base.exists()


def test_an_empty_file_is_a_new_database(store: Store, base: Path) -> None:
    base.mkdir()
    (base / "kr.db").touch()
    assert use(store) == 0


def test_a_url_puts_the_database_elsewhere(base: Path, tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path}/deep/er/so%3Fme%20where.db", base) as store:
        assert use(store) == 0
    assert (tmp_path / "deep" / "er" / "so?me where.db").is_file()
    assert not base.exists()


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "mysql://u:secret@h/d", "sqlite://h/x"])
def test_a_url_that_names_no_file_is_refused_without_its_password(url: str, base: Path) -> None:
    with Store(url, base) as store, pytest.raises(StoreError, match="KR_DATABASE_URL") as caught:
        use(store)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize("content", [b"id: no database\n" * 400, b"SQLite format 3\0" + b"\xff" * 5000])
def test_what_is_no_database_is_corrupt_and_stays_as_it_is(store: Store, base: Path, content: bytes) -> None:
    base.mkdir()
    (base / "kr.db").write_bytes(content)
    for action in (store.read, store.write):
        with pytest.raises(StoreCorrupt, match=r"kr\.db"), action():
            pass
    assert (base / "kr.db").read_bytes() == content
    assert sorted(path.name for path in base.iterdir() if not path.name.endswith(".lock")) == ["kr.db"]


def test_a_folder_in_place_of_the_database_is_corrupt(store: Store, base: Path) -> None:
    (base / "kr.db").mkdir(parents=True)
    with pytest.raises(StoreCorrupt, match=r"kr\.db"):
        use(store)


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION, SCHEMA_VERSION + 11])
def test_what_is_not_ours_is_left_alone(store: Store, base: Path, version: int) -> None:
    """Another program's, or of a kr that was never released."""
    base.mkdir()
    sql(base / "kr.db", "CREATE TABLE songs (name TEXT)")
    sql(base / "kr.db", f"PRAGMA user_version = {version}")
    before = (base / "kr.db").read_bytes()
    for action in (store.read, store.write):
        with pytest.raises(StoreError, match=r"kr\.db: .*export-yaml.*import-yaml"), action():
            pass
    assert (base / "kr.db").read_bytes() == before


def test_a_newer_database_is_too_new(store: Store) -> None:
    use(store)
    store.close()
    sql(store.path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    for action in (store.read, store.write):
        with pytest.raises(StoreTooNew, match=r"kr\.db"), action():
            pass


@contextmanager
def held(path: Path, statement: str = "BEGIN IMMEDIATE") -> Iterator[sqlite3.Connection]:
    """Hold SQLite's own lock, as a program does that doesn't know kr's."""
    with closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute(statement)
        yield other
        if other.in_transaction:
            other.execute("ROLLBACK")


def test_writers_wait_for_a_plain_sqlite_program_and_readers_do_not(store: Store) -> None:
    use(store)
    with held(store.path) as other:
        with store.read() as tx:
            assert entries.count(tx) == 0
        release = threading.Timer(0.5, lambda: other.execute("COMMIT"))
        release.start()
        assert use(store) == 0
        assert release.finished.is_set()
        release.join()


def test_first_use_waits_for_a_plain_sqlite_program(store: Store, base: Path) -> None:
    base.mkdir()
    with held(base / "kr.db", "BEGIN EXCLUSIVE") as other:
        release = threading.Timer(0.5, lambda: other.execute("COMMIT"))
        release.start()
        assert use(store) == 0
        release.join()


def test_a_lock_held_for_too_long_is_busy(base: Path) -> None:
    with Store(None, base, timeout=0.3) as store:
        use(store)
        with held(store.path):
            began = time.monotonic()
            with pytest.raises(StoreBusy, match=r"kr\.db"), store.write():
                pass
            assert time.monotonic() - began < 2
        assert use(store) == 0


@pytest.mark.processes
def test_a_hit_does_not_wait_for_another_program_that_holds_the_database(tmp_path: Path) -> None:
    """Once it took 61 s."""
    project = Project(tmp_path / "project")
    with project.app() as app:
        saving.save(
            app.store, draft("vue", "virtual scrolling", framework_version="3.x"), "# text\n", project.clock()
        )
    with held(project.database):
        began = time.monotonic()
        answer = project.research(request(topic="virtual scrolling"))
        assert time.monotonic() - began < 5
    assert (answer["status"], answer["results"]["index_updated"]) == ("cache-hit", False)


WAIT = "import sys; from kr.store.engine import Store\nprint('waiting', flush=True)\nwith Store(None, sys.argv[1]).write(): pass"


@pytest.mark.processes
@pytest.mark.parametrize("end", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("is_ours", [True, False])
def test_a_signal_is_obeyed_at_once_while_waiting(
    store: Store, base: Path, end: signal.Signals, *, is_ours: bool
) -> None:
    """Once it took 70 s."""
    use(store)
    with store.write() if is_ours else held(store.path):
        waiting = subprocess.Popen(
            [sys.executable, "-c", WAIT, str(base)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert waiting.stdout is not None
        waiting.stdout.readline()
        time.sleep(0.5)
        assert waiting.poll() is None
        began = time.monotonic()
        waiting.send_signal(end)
        assert waiting.wait(30) != 0
        assert time.monotonic() - began < 5
        waiting.stdout.close()


def test_a_database_that_may_only_be_read_is_read(store: Store, base: Path) -> None:
    saving.save(store, draft(), "# text\n", NOW)
    store.close()
    with protected(base / "kr.db", base):
        [outcome] = finish([start("try-both", base, preexec_fn=obey_permissions)])
    assert outcome == "1 StoreUnwritable StoreUnwritable"
    with protected(base / "kr.db"):
        [outcome] = finish([start("try-both", base, preexec_fn=obey_permissions)])
    assert outcome == "1 StoreUnwritable StoreUnwritable"


def test_a_database_that_was_replaced_is_opened_anew(store: Store, base: Path) -> None:
    saving.save(store, draft(), "# text\n", NOW)
    for path in base.glob("kr.db*"):
        path.unlink()
    saving.save(store, draft(topic="another"), "# text\n", NOW)
    assert sql(store.path, "SELECT topic FROM entries") == [("another",)]


def test_alembic_itself_migrates_under_the_lock(base: Path) -> None:
    environ = os.environ | {"KR_DATABASE_URL": f"sqlite:///{base}/kr.db"}
    command = [sys.executable, "-m", "alembic", "upgrade", "head"]
    subprocess.run(command, cwd=ROOT, env=environ, check=True, capture_output=True)
    with Store(None, base) as store:
        assert use(store) == 0
