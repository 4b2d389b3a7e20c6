"""Row and file of a report after an end at any moment, and after a person's hand in the file (SPEC 3.8)."""

import hashlib
import os
import random
import signal
import time
from pathlib import Path

import pytest

from kr.store.store import Store
from kr.values import Entry
from tests.support.stores import NOW, draft, insert_entry, sql, start

OLD_FILE = (1_000_000_000, 1_000_000_000)


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def live(store: Store) -> Entry:
    with store.read() as unit:
        [entry] = unit.entries.all()
        return entry


def earlier_texts(store: Store, entry: Entry) -> list[str | None]:
    with store.read() as unit:
        return [unit.revisions.text(row.sha256) for row in unit.revisions.of_entry(entry.id)]


@pytest.fixture
def entry(store: Store) -> Entry:
    return store.save_report(draft(), "# old\n", NOW).entry


@pytest.mark.parametrize(
    "left", [None, "", "  \n", "# older, of a write that was killed before its rename\n"]
)
def test_a_file_that_is_missing_empty_or_older_is_made_of_the_row(
    store: Store, base: Path, entry: Entry, left: str | None
) -> None:
    file = base / entry.path
    file.unlink()
    if left is not None:
        file.write_text(left)
        os.utime(file, OLD_FILE)
    assert store.read_report(entry) == "# old\n"
    assert file.read_text() == "# old\n"
    assert earlier_texts(store, entry) == []
    assert live(store) == entry


def test_an_older_file_is_no_revision_of_the_next_report(store: Store, base: Path, entry: Entry) -> None:
    file = base / entry.path
    file.write_text("# of a write that was killed before its rename\n")
    os.utime(file, OLD_FILE)
    store.save_report(draft(), "# new\n", NOW)
    assert earlier_texts(store, entry) == ["# old\n"]


def test_what_a_person_wrote_is_taken_in_as_a_revision(store: Store, base: Path, entry: Entry) -> None:
    (base / entry.path).write_text("# edited\n")
    assert store.read_report(entry) == "# edited\n"
    edited = live(store)
    assert edited.sha256 == sha("# edited\n")
    assert earlier_texts(store, entry) == ["# old\n"]
    assert sql(store.path, "SELECT text FROM reports") == [("# edited\n",)]
    (base / entry.path).unlink()
    assert store.read_report(edited) == "# edited\n"
    with store.read() as unit:
        assert [found.key for found in unit.search.find("edited", "entry")] == [entry.id]


def test_bytes_that_are_no_text_stay_in_the_file(store: Store, base: Path, entry: Entry) -> None:
    (base / entry.path).write_bytes(b"# caf\xe9\n")
    assert store.read_report(entry) == "# caf\ufffd\n"
    assert store.read_report(live(store)) == "# caf\ufffd\n"
    assert (base / entry.path).read_bytes() == b"# caf\xe9\n"


def test_a_file_that_kr_knows_is_not_read_again(store: Store, base: Path, entry: Entry) -> None:
    file = base / entry.path
    status = file.stat()
    file.write_text("# ODL\n")  # as nobody does it: of the same size, at the same time
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert store.read_report(entry) == "# old\n"


def test_a_copy_of_the_knowledge_base_knows_its_files_after_one_look(
    store: Store, base: Path, entry: Entry
) -> None:
    os.utime(base / entry.path)
    assert store.read_report(entry) == "# old\n"
    [[mtime]] = sql(store.path, "SELECT mtime_ns FROM report_files")
    assert mtime == (base / entry.path).stat().st_mtime_ns
    assert earlier_texts(store, entry) == []


def test_a_row_by_hand_takes_its_file_in(store: Store, base: Path) -> None:
    store.save_report(draft(), "# old\n", NOW)
    insert_entry(store.path, "mine", path="frameworks/click/mine.md")
    (base / "frameworks/click/mine.md").write_text("# mine\n")
    with store.read() as unit:
        mine = unit.entries.get("mine")
    assert mine is not None
    assert store.read_report(mine) == "# mine\n"
    (base / "frameworks/click/mine.md").unlink()
    assert store.read_report(mine) == "# mine\n"
    assert not store.drop_lost(mine)


def test_an_entry_whose_text_is_nowhere_is_dropped(store: Store, entry: Entry) -> None:
    insert_entry(store.path, "mine", path="frameworks/click/mine.md")
    with store.read() as unit:
        mine = unit.entries.get("mine")
    assert mine is not None
    assert store.read_report(mine) is None
    assert store.drop_lost(mine)
    assert live(store) == entry


def test_a_file_that_cannot_be_made_costs_only_the_file(store: Store, base: Path, entry: Entry) -> None:
    (base / entry.path).unlink()
    (base / entry.path).mkdir()
    assert store.read_report(entry) == "# old\n"
    assert live(store) == entry


@pytest.mark.processes
@pytest.mark.timeout(1_200)
@pytest.mark.effort(500, 3)
@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGINT])
def test_an_end_at_any_moment_loses_nothing_that_was_acknowledged(
    base: Path, end: signal.Signals, effort: int
) -> None:
    chance = random.Random(7)
    known: set[str] = set()
    with Store(None, base) as store:
        store.save_report(draft(), "# first\n" + "x" * 4096, NOW)
    for turn in range(effort if end is signal.SIGKILL else min(effort, 20)):
        writer = start("save-on", base, turn)
        assert writer.stdout is not None
        acknowledged = [writer.stdout.readline()]
        time.sleep(chance.uniform(0.0, 0.1))
        os.kill(writer.pid, end)
        rest, _ = writer.communicate()
        acknowledged += [line for line in rest.splitlines(keepends=True) if line.endswith("\n")]
        with Store(None, base) as store:
            entry = live(store)
            text = store.read_report(entry)
            assert text is not None
            assert sha(text) == entry.sha256
            assert (base / entry.path).read_text() == text
            kept = earlier_texts(store, entry)
            assert None not in kept
            assert len({*kept, text}) == len(kept) + 1
            heads = {(one or "").splitlines()[0] for one in (*kept, text)}
            assert known <= heads
            assert {line.strip() for line in acknowledged} <= heads
            known = heads
    assert sql(base / "kr.db", "PRAGMA integrity_check") == [("ok",)]
