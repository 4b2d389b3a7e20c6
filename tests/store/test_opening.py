import os
import resource
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest
from kr.store.database import create_tables, migrate
from sqlalchemy import StaticPool, create_engine

from kr.errors import StoreBusy, StoreCorrupt, StoreError, StoreTooNew, StoreUnwritable
from kr.store import entries, meta, saving
from kr.store.engine import Store, Transaction
from kr.store.schema import VIEWS, metadata
from kr.store.sqlite import FIRST_RELEASED, SCHEMA_VERSION
from tests.support.older import make_unreleased
from tests.support.stores import (
    NOW,
    ROOT,
    draft,
    finish,
    obey_permissions,
    protected,
    sql,
    start,
)


def use(store: Store) -> int:
    with store.write() as tx:
        meta.put(tx, "used", "yes")
    with store.read() as tx:
        return entries.count(tx)


def test_a_new_store_opens_nothing_until_it_is_used(base: Path) -> None:
    with Store(None, base):
        assert not base.exists()


def test_first_use_makes_a_database_in_wal_mode_at_the_newest_version(store: Store) -> None:
    assert use(store) == 0
    assert sql(store.path, "PRAGMA journal_mode") == [("wal",)]
    assert sql(store.path, "PRAGMA user_version") == [(SCHEMA_VERSION,)]
    assert sql(store.path, "SELECT version_num FROM alembic_version") == [(f"{SCHEMA_VERSION:04}",)]


def described(connection: sqlite3.Connection) -> dict[str, object]:
    """What a database is made of, however it is written: spaces, and the order of columns, say nothing."""
    made: dict[str, object] = {}
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
    for kind, name, statement in rows:
        if name.startswith("entry_search_"):
            continue
        if kind == "table" and "VIRTUAL" not in statement:
            columns = [row[1:] for row in connection.execute(f"PRAGMA table_info({name})")]
            references = [row[2:] for row in connection.execute(f"PRAGMA foreign_key_list({name})")]
            plain = [(*column[:3], str(column[3]).strip("'"), column[4]) for column in columns]
            words = [word for word in ("AUTOINCREMENT", "WITHOUT ROWID") if word in statement]
            made[name] = (sorted(plain), sorted(references), words)
        else:
            made[name] = "".join(statement.split())
    return made


def test_what_alembic_makes_of_an_empty_database_is_what_a_first_use_makes() -> None:
    with (
        closing(sqlite3.connect(":memory:", isolation_level=None)) as new,
        closing(sqlite3.connect(":memory:", isolation_level=None)) as migrated,
    ):
        create_tables(new)
        migrate(migrated)
        assert described(new) == described(migrated)
        for query in ("SELECT * FROM alembic_version", "PRAGMA user_version"):
            assert new.execute(query).fetchall() == migrated.execute(query).fetchall()


@pytest.mark.parametrize("version", [1, FIRST_RELEASED - 1])
def test_a_database_from_before_the_first_release_is_refused_with_a_way_on(
    store: Store, base: Path, version: int
) -> None:
    make_unreleased(store.path, version=version)
    before = (base / "kr.db").read_bytes()
    for action in (store.read, store.write):
        with pytest.raises(StoreError, match=r"kr\.db: .*export-yaml.*import-yaml"), action():
            pass
    assert (base / "kr.db").read_bytes() == before
    assert sql(store.path, "SELECT id FROM entries") == [("click-one",)]
    assert not list(base.glob("*.bak*"))


def test_sqlalchemy_makes_the_same_of_the_declared_tables() -> None:
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as new:
        create_tables(new)
        made = sqlite3.connect(":memory:")
        metadata.create_all(create_engine("sqlite://", creator=lambda: made, poolclass=StaticPool))
        declared = described(made)
        made.close()
        ours = described(new)
        beside = {"alembic_version", "entry_search", "search_rows", *VIEWS}
        assert {name: ours[name] for name in ours if name not in beside} == declared
        assert beside <= {*ours}


def test_an_empty_file_is_a_new_database(store: Store, base: Path) -> None:
    base.mkdir()
    (base / "kr.db").touch()
    assert use(store) == 0


def test_a_url_puts_the_database_elsewhere(base: Path, tmp_path: Path) -> None:
    with Store(f"sqlite:///{tmp_path}/deep/er/some%20where.db", base) as store:
        assert use(store) == 0
    assert (tmp_path / "deep" / "er" / "some where.db").is_file()
    assert not base.exists()


@pytest.mark.parametrize(
    "url", ["sqlite://", "sqlite:///:memory:", "mysql://u:secret@h/d", "nonsense", "sqlite://h/x"]
)
def test_a_url_that_names_no_file_is_refused_without_its_password(url: str, base: Path) -> None:
    with Store(url, base) as store, pytest.raises(StoreError, match="KR_DATABASE_URL") as caught:
        use(store)
    assert "secret" not in str(caught.value)


@pytest.mark.parametrize(
    "content", [b"x", b"id: not a database\n" * 400, b"SQLite format 3\0" + b"\xff" * 5000]
)
def test_what_is_no_database_is_corrupt_and_stays_as_it_is(store: Store, base: Path, content: bytes) -> None:
    base.mkdir()
    (base / "kr.db").write_bytes(content)
    for action in (store.read, store.write):
        with pytest.raises(StoreCorrupt, match=r"kr\.db"), action():
            pass
    with pytest.raises(StoreCorrupt):
        saving.save(store, draft(), "# text\n", NOW)
    assert (base / "kr.db").read_bytes() == content
    assert sorted(path.name for path in base.iterdir() if not path.name.endswith(".lock")) == ["kr.db"]


def test_a_folder_in_place_of_the_database_is_corrupt(store: Store, base: Path) -> None:
    (base / "kr.db").mkdir(parents=True)
    with pytest.raises(StoreCorrupt, match=r"kr\.db"):
        use(store)


def test_a_damaged_database_is_corrupt_and_stays_as_it_is(store: Store, base: Path) -> None:
    for number in range(40):
        saving.save(store, draft(topic=f"topic {number}"), f"# {number}\n" + "x" * 500, NOW)
    store.close()
    content = bytearray((base / "kr.db").read_bytes())
    content[4096:] = b"\xa5" * (len(content) - 4096)
    (base / "kr.db").write_bytes(content)
    with pytest.raises(StoreCorrupt, match=r"kr\.db"), store.read() as tx:
        entries.all(tx)
    store.close()
    assert (base / "kr.db").read_bytes() == content


def test_another_programs_database_is_left_alone(store: Store, base: Path) -> None:
    base.mkdir()
    sql(base / "kr.db", "CREATE TABLE songs (name TEXT)")
    with pytest.raises(StoreError, match="songs"):
        use(store)
    assert sql(base / "kr.db", "SELECT name FROM sqlite_master") == [("songs",)]


def test_a_newer_database_is_too_new(store: Store) -> None:
    use(store)
    store.close()
    sql(store.path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    for action in (store.read, store.write):
        with pytest.raises(StoreTooNew, match=r"kr\.db"), action():
            pass


def test_a_database_upgraded_while_it_is_open_is_too_new_for_writing(store: Store) -> None:
    use(store)
    sql(store.path, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    with pytest.raises(StoreTooNew), store.write():
        pass


def test_a_database_that_is_there_needs_neither_sqlalchemy_nor_alembic(store: Store, base: Path) -> None:
    use(store)
    [modules] = finish([start("modules", base)])
    assert "sqlalchemy" not in modules.split()
    assert "alembic" not in modules.split()


def test_naming_a_store_imports_nothing_heavy() -> None:
    heavy = "{'sqlalchemy', 'alembic', 'sqlite3', 'fcntl'} & set(sys.modules)"
    command = f"import sys, kr.store.store; print({heavy})"
    printed = subprocess.run(
        [sys.executable, "-c", command], cwd=ROOT, text=True, capture_output=True, check=True
    )
    assert printed.stdout == "set()\n"


def test_writers_wait_for_a_plain_sqlite_program(store: Store) -> None:
    use(store)
    with closing(sqlite3.connect(store.path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        with store.read() as tx:
            assert entries.count(tx) == 0
        release = threading.Timer(1.0, lambda: other.execute("COMMIT"))
        release.start()
        assert use(store) == 0
        assert release.finished.is_set()
        release.join()


def test_first_use_waits_for_a_plain_sqlite_program(store: Store, base: Path) -> None:
    base.mkdir()
    with closing(sqlite3.connect(base / "kr.db", isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN EXCLUSIVE")
        release = threading.Timer(1.0, lambda: other.execute("COMMIT"))
        release.start()
        assert use(store) == 0
        release.join()


def test_a_lock_held_for_too_long_is_busy(base: Path) -> None:
    with Store(None, base, timeout=0.3) as store:
        use(store)
        with closing(sqlite3.connect(store.path, isolation_level=None)) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(StoreBusy, match=r"kr\.db"), store.write():
                pass
            other.execute("ROLLBACK")
        assert use(store) == 0


def test_a_database_that_may_only_be_read_is_read(store: Store, base: Path) -> None:
    saving.save(store, draft(), "# text\n", NOW)
    store.close()
    with protected(base / "kr.db", base):
        [outcome] = finish([start("try-both", base, preexec_fn=obey_permissions)])
    assert outcome == "1 StoreUnwritable ReportUnwritable"
    assert not (base / "kr.db-wal").exists()


def test_a_protected_file_in_an_open_folder_is_read(store: Store, base: Path) -> None:
    saving.save(store, draft(), "# text\n", NOW)
    store.close()
    with protected(base / "kr.db"):
        [outcome] = finish([start("try-both", base, preexec_fn=obey_permissions)])
    assert outcome == "1 StoreUnwritable StoreUnwritable"
    assert [path.name for path in base.rglob("*.md")] == ["repeatable-options.md"]


def test_a_store_that_writes_is_read_by_one_that_may_not(store: Store, base: Path) -> None:
    saving.save(store, draft(), "# text\n", NOW)
    with protected(base, *base.glob("kr.db*")):
        [outcome] = finish([start("try-both", base, preexec_fn=obey_permissions)])
    assert outcome == "1 StoreUnwritable ReportUnwritable"


@pytest.mark.parametrize("room", [0, 4096])
def test_a_database_on_a_full_disk_is_read(store: Store, base: Path, room: int) -> None:
    """SQLite tells an I/O error there: its shared memory finds no room."""
    saving.save(store, draft(), "# text\n", NOW)
    store.close()
    [outcome] = finish(
        [start("try-both", base, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (room, room)))]
    )
    assert outcome.startswith("1 StoreUnwritable ")


def test_nothing_can_be_made_in_a_protected_folder(base: Path) -> None:
    base.mkdir()
    with protected(base):
        [outcome] = finish([start("try-both", base, preexec_fn=obey_permissions)])
    assert outcome == "StoreUnwritable StoreUnwritable ReportUnwritable"


def test_a_read_cannot_write(store: Store) -> None:
    use(store)
    with pytest.raises(StoreUnwritable), store.read() as tx:
        meta.put(tx, "key", "value")


def put_and_fail(tx: Transaction) -> None:
    meta.put(tx, "key", "value")
    raise ZeroDivisionError


def test_a_write_that_fails_leaves_nothing_and_can_be_repeated(store: Store) -> None:
    with pytest.raises(ZeroDivisionError), store.write() as tx:
        put_and_fail(tx)
    with store.read() as tx:
        assert meta.get(tx, "key") is None
    assert use(store) == 0


def test_a_write_inside_a_write_does_not_wait_for_itself(store: Store) -> None:
    with store.write(), pytest.raises(RuntimeError, match="inside"), store.write():
        pass


def test_a_snapshot_does_not_see_what_is_written_meanwhile(store: Store) -> None:
    use(store)
    with store.read() as tx:
        assert entries.count(tx) == 0
        saving.save(store, draft(), "# text\n", NOW)
        assert entries.count(tx) == 0
    with store.read() as tx:
        assert entries.count(tx) == 1


def test_a_database_that_was_replaced_is_opened_anew(store: Store, base: Path) -> None:
    saving.save(store, draft(), "# text\n", NOW)
    for path in base.glob("kr.db*"):
        path.unlink()
    saving.save(store, draft(topic="another"), "# text\n", NOW)
    assert sql(store.path, "SELECT topic FROM entries") == [("another",)]


def test_alembic_itself_migrates_under_the_lock(base: Path) -> None:
    url = f"sqlite:///{base}/kr.db"
    command = [sys.executable, "-m", "alembic", "upgrade", "head"]
    subprocess.run(
        command, cwd=ROOT, env=os.environ | {"KR_DATABASE_URL": url}, check=True, capture_output=True
    )
    with Store(None, base) as store:
        assert use(store) == 0


def test_a_report_that_cannot_be_read_is_not_gone(base: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from kr.store.store import Store\n"
        "with Store(None, Path(sys.argv[1])) as store:\n"
        "    with store.read() as unit: (entry,) = entries.all(unit)\n"
        "    assert reports.read_report(store, entry) is None\n"
        "    assert not reports.drop_lost(store, entry)\n"
        "    with store.read() as unit: assert entries.count(unit) == 1\n"
    )
    with Store(None, base) as store:
        saved = saving.save(store, draft(), "# text\n", NOW)
    sql(base / "kr.db", "UPDATE entries SET sha256 = NULL")
    folder = (base / saved.entry.path).parent
    folder.chmod(0)
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, str(base)],
            preexec_fn=obey_permissions,
            capture_output=True,
            cwd=ROOT,
            check=False,
        )
    finally:
        folder.chmod(0o755)
    assert done.returncode == 0, done.stderr.decode()
