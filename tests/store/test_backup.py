"""Backups while others write, restoring, checking, and ``kr db``, on real files."""

import json
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

from kr.errors import StoreCorrupt, StoreError, StoreTooNew
from kr.store import SCHEMA_VERSION, backup, saving
from kr.store.engine import Store
from tests.support.program import Project
from tests.support.stores import NOW, draft, sql, start


@pytest.fixture
def database_url() -> None:
    """What is tried here is SQLite's file."""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "base"


@pytest.fixture
def store(base: Path) -> Iterator[Store]:
    with Store(None, base, timeout=20.0) as opened:
        yield opened


def make_backup(store: Store, target: Path | None = None) -> Path:
    return backup.backup(store.path, target, MOMENT)


def restore(store: Store, source: Path) -> Path | None:
    return backup.restore(store.path, source, MOMENT)


MOMENT = "20261121T120000Z"


def at(path: Path) -> Store:
    return Store(f"sqlite:///{path}", path.parent)


def check(path: Path) -> list[str]:
    return backup.check(at(path))


def inspect(path: Path) -> backup.Inspection:
    return backup.inspect(at(path))


def save(store: Store, topic: str) -> None:
    saving.save(store, draft(topic=topic), f"# click - {topic}\n", NOW)


def topics(path: Path) -> list[str]:
    return [topic for (topic,) in sql(path, "SELECT topic FROM entries ORDER BY topic")]


def test_a_backup_is_a_sound_database_in_one_file(store: Store, tmp_path: Path) -> None:
    save(store, "one")
    assert make_backup(store, tmp_path / "copy.db") == tmp_path / "copy.db"
    assert inspect(tmp_path / "copy.db").state == "current"
    assert check(tmp_path / "copy.db") == []
    assert topics(tmp_path / "copy.db") == ["one"]
    assert sql(tmp_path / "copy.db", "PRAGMA journal_mode") == [("delete",)]
    assert not [path for path in tmp_path.iterdir() if path.name.startswith((".kr", "copy.db-"))]


def test_backups_have_the_time_in_their_name_and_never_overwrite(store: Store) -> None:
    save(store, "one")
    made = [Path(make_backup(store)) for _ in range(3)]
    assert [path.name for path in made] == [
        "kr-20261121T120000Z.db",
        "kr-20261121T120000Z-2.db",
        "kr-20261121T120000Z-3.db",
    ]
    assert {path.parent for path in made} == {store.path.parent}


def test_a_damaged_database_makes_no_backup(store: Store, tmp_path: Path) -> None:
    for number in range(30):
        save(store, f"topic {number}")
    store.close()
    damage(store.path)
    with pytest.raises(StoreCorrupt):
        make_backup(store, tmp_path / "copy.db")
    assert not (tmp_path / "copy.db").exists()


def damage(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[4096 : len(content) // 2] = b"\xa5" * (len(content) // 2 - 4096)
    path.write_bytes(content)


@pytest.mark.processes
def test_backups_made_while_others_write_are_whole(store: Store, base: Path) -> None:
    writer = start("save-on", base, "w")
    try:
        assert writer.stdout is not None
        writer.stdout.readline()
        made = [Path(make_backup(store)) for _ in range(8)]
    finally:
        writer.kill()
        writer.communicate()
    for path in made:
        assert check(path) == []
        ((sha256,),) = sql(path, "SELECT sha256 FROM entries")
        assert sql(path, "SELECT count(*) FROM report_texts WHERE sha256 = ?", sha256) == [(1,)]


def test_writers_go_on_through_a_restore(store: Store, tmp_path: Path) -> None:
    save(store, "one")
    make_backup(store, tmp_path / "copy.db")
    errors: list[Exception] = []
    stop = threading.Event()

    def write() -> None:
        with Store(None, store.path.parent, timeout=20.0) as own:
            while not stop.is_set():
                try:
                    saving.save(own, draft(topic="busy"), f"# {datetime.now(UTC)}\n", NOW)
                except StoreError as error:
                    errors.append(error)

    threads = [threading.Thread(target=write) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        kept = [path for _ in range(5) if (path := restore(store, tmp_path / "copy.db"))]
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert not errors
    assert len(set(kept)) == 5
    assert all(not check(path) for path in (store.path, *kept))


def test_a_restore_of_what_is_no_database_says_that_nothing_was_changed(store: Store, tmp_path: Path) -> None:
    (tmp_path / "bad.db").write_text("no database\n" * 100)
    with pytest.raises(StoreCorrupt, match=r"bad\.db: file is not a database; nothing was changed$"):
        backup.restore(store.path, tmp_path / "bad.db", "20260101T000000Z")


def test_a_restore_makes_a_database_where_none_is(store: Store, tmp_path: Path) -> None:
    save(store, "one")
    make_backup(store, tmp_path / "copy.db")
    store.close()
    for path in store.path.parent.glob("kr.db*"):
        path.unlink()
    (tmp_path / "copy.db").chmod(0o400)
    assert restore(store, tmp_path / "copy.db") is None
    assert store.path.stat().st_mode & 0o777 == 0o600
    assert topics(store.path) == ["one"]


@pytest.mark.parametrize("content", [b"no database at all\n" * 300, None])
def test_a_damaged_database_is_moved_aside(store: Store, tmp_path: Path, content: bytes | None) -> None:
    for number in range(30):
        save(store, f"topic {number:02}")
    make_backup(store, tmp_path / "copy.db")
    store.close()
    if content is None:
        damage(store.path)
    else:
        store.path.write_bytes(content)
    broken = store.path.read_bytes()
    kept = restore(store, tmp_path / "copy.db")
    assert kept is not None
    assert (kept.read_bytes(), len(topics(store.path))) == (broken, 30)
    assert check(store.path) == []


def bad_backups(folder: Path) -> dict[str, Path]:
    other, newer = folder / "other.db", folder / "newer.db"
    sql(other, "CREATE TABLE songs (name TEXT)")
    with Store(f"sqlite:///{newer}", folder) as store, store.write() as tx:
        tx.note("key", "value")
    sql(newer, f"PRAGMA user_version = {SCHEMA_VERSION + 1}")
    (folder / "text.db").write_text("text\n" * 1000)
    return {
        "other": other,
        "newer": newer,
        "text": folder / "text.db",
        "absent": folder / "absent.db",
    }


@pytest.mark.parametrize(
    ("name", "error", "told"),
    [
        ("other", StoreError, "another program"),
        ("newer", StoreTooNew, "newer kr"),
        ("text", StoreCorrupt, "not a database"),
        ("absent", StoreError, "no such backup"),
    ],
)
def test_a_bad_backup_changes_nothing(
    store: Store, tmp_path: Path, name: str, error: type[StoreError], told: str
) -> None:
    save(store, "one")
    source = bad_backups(tmp_path)[name]
    with pytest.raises(error, match=told) as caught:
        restore(store, source)
    assert str(source) in str(caught.value)
    assert topics(store.path) == ["one"]
    assert not list(store.path.parent.glob("*.bak*"))
    assert not list(store.path.parent.glob(".kr-copy-*"))


def test_a_damaged_backup_changes_nothing(store: Store, tmp_path: Path) -> None:
    for number in range(30):
        save(store, f"topic {number}")
    make_backup(store, tmp_path / "copy.db")
    damage(tmp_path / "copy.db")
    with pytest.raises(StoreCorrupt, match=r"copy\.db"):
        restore(store, tmp_path / "copy.db")
    assert len(topics(store.path)) == 30


def test_another_programs_database_is_not_written_over(store: Store, tmp_path: Path) -> None:
    save(store, "one")
    make_backup(store, tmp_path / "copy.db")
    store.close()
    for path in store.path.parent.glob("kr.db*"):
        path.unlink()
    sql(store.path, "CREATE TABLE songs (name TEXT)")
    with pytest.raises(StoreError, match="another program"):
        restore(store, tmp_path / "copy.db")
    assert sql(store.path, "SELECT name FROM sqlite_master") == [("songs",)]


@pytest.mark.parametrize(
    ("statement", "problem"),
    [
        ("DROP VIEW next_evictions", "view next_evictions is missing"),
        ("DROP INDEX entries_last_accessed", "index entries_last_accessed is missing"),
        ("DROP TABLE circuits", "table circuits is missing"),
        ("DELETE FROM search_rows", "not every entry is in the search index"),
        ("UPDATE report_texts SET text = 'other'", "not the one that was written"),
        (
            "INSERT INTO revisions (entry_id, revision, sha256, path, framework_key, topic_key, replaced_at) VALUES ('a', 1, 'x', 'p', 'f', 't', 't')",
            "refers to a row of report_texts",
        ),
    ],
)
def test_what_is_not_sound_is_named(store: Store, statement: str, problem: str) -> None:
    save(store, "one")
    store.close()
    assert check(store.path) == []
    sql(store.path, statement)
    assert any(problem in found for found in check(store.path))


def test_the_commands(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    missing = project.run("db", "check", "--format", "json")
    assert (missing.returncode, json.loads(missing.stdout)["state"]) == (0, "absent")
    assert not project.base.exists()
    assert project.run("db", "upgrade").returncode == 0
    assert project.run("db", "path").stdout.decode() == f"{project.database}\n"
    told = json.loads(project.run("db", "path", "--format", "json").stdout)
    assert told == {"path": str(project.database), "exists": True}
    backup = json.loads(project.run("db", "backup", "mine.db", "--format", "json").stdout)
    assert backup["backup"] == "mine.db"
    again = project.run("db", "backup", "mine.db")
    assert (again.returncode, b"never overwrites" in again.stderr) == (1, True)
    restored = project.run("db", "restore", "mine.db", "--format", "text")
    assert restored.returncode == 0
    assert b"kept: " in restored.stdout
    assert project.run("db", "check").returncode == 0
    assert project.run("db", "restore").returncode == 2
    copied = yaml.safe_load(project.run("db", "copy", str(project.database), "copy.db").stdout)
    assert (copied["to"], copied["rows"]["entries"]) == ("copy.db", 0)
