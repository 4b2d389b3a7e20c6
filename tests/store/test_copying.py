"""A knowledge base moves from SQLite to PostgreSQL and back, and nothing of it changes on the way."""

from datetime import timedelta
from pathlib import Path

import pytest

from kr.errors import StoreError
from kr.models import Lesson
from kr.store import backup, entries, lessons, lookup, saving
from kr.store.engine import Store
from kr.store.lessons import LessonRow
from kr.transfer.export_yaml import export_yaml
from tests.support.postgresql import Databases
from tests.support.stores import NOW, allow, call, draft, refuse, sql


@pytest.fixture
def database_url(postgresql: Databases) -> str:
    return postgresql.clean()


@pytest.fixture
def old(tmp_path: Path) -> Store:
    """A knowledge base with something in every table, of which a part is archived."""
    store = Store(None, tmp_path / "old", max_entries=20)
    for number in range(30):
        topic = f"Topic {number} ünï 中文"
        saved = saving.save(store, draft(topic=topic, question=f"{topic}?"), f"# {number}\n\n'\"\\%s\n", NOW)
        with store.write() as tx:
            lookup.touch(tx, saved.entry.id, NOW + timedelta(minutes=number))
            asked = {
                "at": "2026-10-01T12:00:00.000000Z",
                "topic": f"other words {number}",
                "tags": ("a",),
                "question": f"Other words {number}?",
                "proved": bool(number % 2),
            }
            entries.keep_wording(tx, saved.entry, asked)
            row = {
                "id": f"r{number}",
                "at": "2026-10-01",
                "mode": "research",
                "status": "cache-hit",
                "score": 0.1,
            }
            lookup.log_request(tx, row)
    with store.write() as tx:
        tx.insert("source_calls", call("r1", charged=True))
        lessons.add(tx, [LessonRow(id="l", lesson=Lesson("2026-10-01", ("any",), "a; b"))], str.split)
    return store


def copied(source: Store, target: Store) -> dict[str, int]:
    return backup.copy(source, target)


def exported(store: Store, folder: Path) -> dict[str, bytes]:
    export_yaml(store, store.folder, folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_there_and_back_is_the_same(old: Store, store: Store, tmp_path: Path) -> None:
    there = copied(old, store)
    assert there["entries"] == 20
    assert there["archived_entries"] == 10
    back = Store(f"sqlite:///{tmp_path}/back.db", tmp_path / "back")
    assert copied(store, back) == there
    assert exported(old, tmp_path / "a") == exported(store, tmp_path / "b") == exported(back, tmp_path / "c")
    [[last]] = sql(old, "SELECT id FROM entries WHERE topic LIKE 'Topic 25%'")
    for one in (store, back):
        with one.read() as tx:
            assert lookup.find(tx, "topic 25", most=1) == [last]
        # What is given numbers goes on after the last one.
        assert saving.save(one, draft(topic="new"), "# new\n", NOW + timedelta(days=1)).lru_evicted == 0


def test_a_copy_that_fails_leaves_nothing_and_is_made_again(old: Store, store: Store) -> None:
    refuse(store, "INSERT ON lessons")
    with pytest.raises(StoreError, match="not today"):
        copied(old, store)
    assert sql(store, "SELECT count(*) FROM entries") == [(0,)]
    allow(store, "INSERT ON lessons")
    assert copied(old, store)["archived_entries"] == 10


def test_what_is_in_use_is_not_written_over(old: Store, store: Store, tmp_path: Path) -> None:
    saving.save(store, draft(), "# text\n", NOW)
    with pytest.raises(StoreError, match="is not empty"):
        copied(old, store)
    with pytest.raises(StoreError, match="no database to copy"):
        copied(Store(None, tmp_path / "nothing"), store)
    with pytest.raises(StoreError, match="itself"):
        copied(old, Store(None, tmp_path / "old"))
