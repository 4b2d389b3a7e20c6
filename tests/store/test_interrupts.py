"""Reports and their rows when an interrupt strikes after any of the store's calls to the system or to SQLite."""

import hashlib
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from kr.store import entries, saving
from kr.store.engine import Store
from tests.support.interrupts import Interrupter
from tests.support.stores import NOW, draft, sql

ENTRY = "click-repeatable-options"


def save(store: Store) -> None:
    saving.save(store, draft(), "# new\n", NOW)


def save_another(store: Store) -> None:
    saving.save(store, draft(topic="another"), "# another\n", NOW)


def restore_revision(store: Store) -> None:
    saving.restore_revision(store, ENTRY, 1, NOW)


def restore_archived(store: Store) -> None:
    with store.read() as tx:
        [archived] = entries.archived(tx, id="flask-repeatable-options")
    saving.restore_archived(store, archived, NOW)


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A knowledge base with an entry of two revisions, one that the guard will archive, and an archived one."""
    base = tmp_path_factory.mktemp("ready") / "knowledge-base"
    with Store(None, base) as store:
        saving.save(store, draft("django"), "# django\n", NOW)
        saving.save(store, draft("flask"), "# flask\n", NOW)
        saving.remove(store, ["flask-repeatable-options"], NOW)
        for text in ("# one\n", "# two\n", "# three\n"):
            saving.save(store, draft(), text, NOW)
    return base


@pytest.mark.timeout(600)  # a hundred stores and more, each brought to disk
@pytest.mark.effort(1_000, 10)
# What an interrupt keeps from being closed is closed by the collector.
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("operation", [save, save_another, restore_revision, restore_archived])
def test_an_interrupt_after_any_call_leaves_pairs(
    ready: Path, tmp_path: Path, operation: Callable[[Store], None], effort: int
) -> None:
    def left_after(number: int) -> int:
        base = tmp_path / str(number)
        shutil.copytree(ready, base)
        interrupter = Interrupter(number)
        with Store(None, base, max_entries=2) as store, suppress(KeyboardInterrupt), interrupter.watching():
            operation(store)
        check(base)
        shutil.rmtree(base)
        return interrupter.left

    calls = 1_000 - left_after(1_000)
    assert 20 < calls < 1_000
    struck = [left_after(number) == 0 for number in range(1, calls + 1, max(1, calls // effort))]
    assert sum(struck) > 0.9 * len(struck)  # not each time do as many objects wait for the collector


def check(base: Path) -> None:
    with Store(None, base) as store:
        with store.read() as tx:
            rows = entries.all(tx)
        assert ENTRY in {entry.id for entry in rows}
        for entry in rows:
            text = saving.read_report(store, entry)
            assert text is not None, entry.path
            assert hashlib.sha256(text.encode()).hexdigest() == entry.sha256
    archived = {path for (path,) in sql(base / "kr.db", "SELECT path FROM archived_entries")}
    files = {str(path.relative_to(base)) for path in base.rglob("*.md")}
    assert files == archived | {entry.path for entry in rows}
    assert [path.name for path in base.rglob(".kr-tmp-*")] == []
    assert sql(base / "kr.db", "PRAGMA integrity_check") == [("ok",)]
