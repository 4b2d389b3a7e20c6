import hashlib
import os
import random
import signal
import time
from pathlib import Path

import pytest

from kr.store.reports import ReportFiles
from kr.store.store import Store
from kr.values import Entry
from tests.support.stores import NOW, draft, sql, start


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def replace_without_commit(base: Path, entry: Entry, text: str) -> None:
    """Leave what a writer leaves that is killed between the rename and the commit."""
    files = ReportFiles(base)
    with files.staged(text.encode()) as staged, files.replacement(entry.path) as target:
        target.run(staged, sha(text))


def hidden(base: Path) -> list[str]:
    return [path.name for path in base.rglob(".kr-*")]


@pytest.fixture
def entry(store: Store) -> Entry:
    return store.save_report(draft(), "# old\n", NOW).entry


def test_a_reader_brings_the_old_pair_back(store: Store, base: Path, entry: Entry) -> None:
    replace_without_commit(base, entry, "# uncommitted\n")
    assert len(hidden(base)) == 1
    assert store.read_report(entry) == "# old\n"
    assert (base / entry.path).read_text() == "# old\n"
    assert hidden(base) == []


def test_the_next_writer_brings_the_old_pair_back(store: Store, base: Path, entry: Entry) -> None:
    replace_without_commit(base, entry, "# uncommitted\n")
    store.save_report(draft(), "# new\n", NOW)
    with store.read() as unit:
        assert [unit.revisions.text(row.sha256) for row in unit.revisions.of_entry(entry.id)] == ["# old\n"]
    assert hidden(base) == []


def test_a_person_s_text_comes_back_too(store: Store, base: Path, entry: Entry) -> None:
    (base / entry.path).write_text("# edited\n")
    replace_without_commit(base, entry, "# uncommitted\n")
    assert store.read_report(entry) == "# edited\n"
    assert hidden(base) == []


def test_an_undo_name_of_a_committed_write_is_only_removed(store: Store, base: Path, entry: Entry) -> None:
    replace_without_commit(base, entry, "# new\n")
    sql(store.path, "UPDATE entries SET sha256 = ?", sha("# new\n"))
    assert store.read_report(entry) == "# new\n"
    (base / entry.path).write_text("# edited\n")
    assert store.read_report(entry) == "# edited\n"
    assert hidden(base) == []


def test_a_writer_killed_before_the_rename_leaves_the_old_pair(
    store: Store, base: Path, entry: Entry
) -> None:
    with ReportFiles(base).replacement(entry.path) as target, pytest.raises(Exception, match="No such file"):
        target.run("absent", sha("# new\n"))
    assert len(hidden(base)) == 1
    assert store.read_report(entry) == "# old\n"
    (base / entry.path).write_text("# edited\n")
    assert store.read_report(entry) == "# edited\n"
    assert hidden(base) == []


def test_an_edit_without_an_undo_name_is_served(store: Store, base: Path, entry: Entry) -> None:
    (base / entry.path).write_text("# edited\n")
    assert store.read_report(entry) == "# edited\n"


@pytest.mark.processes
@pytest.mark.effort(20, 3)
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_an_end_at_any_moment_leaves_one_pair(base: Path, end: signal.Signals, effort: int) -> None:
    chance = random.Random(7)
    seen: set[str] = set()
    with Store(None, base) as store:
        store.save_report(draft(), "# first\n" + "x" * 4096, NOW)
    for turn in range(effort):
        writer = start("save-on", base, turn)
        assert writer.stdout is not None
        writer.stdout.readline()
        time.sleep(chance.uniform(0.0, 0.1))
        os.kill(writer.pid, end)
        writer.communicate()
        with Store(None, base) as store:
            with store.read() as unit:
                [entry] = unit.entries.all()
            text = store.read_report(entry)
            assert text is not None
            assert sha(text) == entry.sha256
            assert text.endswith("x" * 4096)
            seen.add(text)
            with store.read() as unit:
                kept = [unit.revisions.text(row.sha256) for row in unit.revisions.of_entry(entry.id)]
            assert None not in kept
            assert len(set(kept)) == len(kept)
        # What ends right after the commit leaves its undo name to the next one.
        assert len([name for name in hidden(base) if name.startswith(".kr-undo-")]) <= 1
    assert len(seen) > effort // 2
    assert sql(base / "kr.db", "PRAGMA integrity_check") == [("ok",)]
