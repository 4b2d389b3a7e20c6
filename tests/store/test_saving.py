import hashlib
import os
import time
from datetime import timedelta
from pathlib import Path

import pytest

from kr.errors import ReportUnwritable, StoreError
from kr.store import entries as entry_rows
from kr.store import lookup, saving
from kr.store.engine import Store
from tests.support.stores import NOW, draft, insert_entry, refuse, sql

LATER = NOW + timedelta(days=1)


def make(store: Store) -> None:
    with store.write():
        pass


def revisions(store: Store, entry_id: str) -> list[str | None]:
    with store.read() as tx:
        kept = saving.revisions(tx, entry_id)
        numbers = [revision["revision"] for revision in kept]
        assert numbers == sorted({*numbers})
        return [lookup.text_of(tx, revision["sha256"]) for revision in kept]


def disk(base: Path) -> dict[str, bytes]:
    return {
        str(path.relative_to(base)): path.read_bytes()
        for path in base.rglob("*")
        if path.is_file() and not path.name.startswith(("kr.db", ".gitignore"))
    }


def test_a_report_stands_where_its_row_says(store: Store, base: Path) -> None:
    saved = saving.save(store, draft(tags=("a", "b")), "# text — 文\n", NOW)
    entry = saved.entry
    assert (entry.id, entry.path) == ("click-repeatable-options", "frameworks/click/repeatable-options.md")
    assert disk(base) == {entry.path: "# text — 文\n".encode()}
    assert entry.sha256 == hashlib.sha256("# text — 文\n".encode()).hexdigest()
    assert entry.created == entry.last_accessed == entry.researched_at == "2026-10-01T12:00:00.000000Z"
    assert (entry.tags, entry.status, entry.confidence, entry.origin) == (
        ("a", "b"),
        "fresh",
        "high",
        "excerpt",
    )
    with store.read() as tx:
        assert entry_rows.get(tx, entry.id) == entry


def test_the_same_question_renews_its_entry(store: Store, base: Path) -> None:
    first = saving.save(store, draft(tags=("a",), status="stale", origin="placeholder"), "# one\n", NOW).entry
    changed = draft(" CLICK ", "Repeatable OPTIONS ", framework_version="v8.9", tags=("b", "A"))
    second = saving.save(store, changed, "# two\n", LATER)
    assert (second.entry.id, second.entry.path, second.entry.created) == (first.id, first.path, first.created)
    assert (second.entry.framework, second.entry.framework_version) == ("click", "v8.9")
    assert (second.entry.status, second.entry.origin, second.index_count) == ("fresh", "excerpt", 1)
    assert second.entry.tags == ("a", "b")
    assert second.entry.last_accessed > first.last_accessed
    assert disk(base) == {first.path: b"# two\n"}
    assert revisions(store, first.id) == ["# one\n"]


def test_what_a_killed_process_left_is_swept_after_an_hour(store: Store, base: Path) -> None:
    base.mkdir()
    for name, age in ((".kr-tmp-old", 3700), (".kr-tmp-new", 3500)):
        (base / name).touch()
        os.utime(base / name, times=(time.time() - age,) * 2)
    saving.save(store, draft(), "# text\n", NOW)
    assert [path.name for path in base.glob(".kr-tmp-*")] == [".kr-tmp-new"]


def test_an_aged_entry_is_renewed_not_archived(store: Store) -> None:
    first = saving.save(store, draft(), "# one\n", NOW - timedelta(days=500)).entry
    saved = saving.save(store, draft(), "# two\n", NOW)
    assert (saved.entry.id, saved.entry.created, saved.auto_archived) == (first.id, first.created, 0)


def test_an_imported_entry_keeps_its_id_and_path(store: Store, base: Path) -> None:
    make(store)
    (base / "notes").mkdir(parents=True)
    (base / "notes" / "old.md").write_text("# mine\n")
    insert_entry(store, "legacy-17", topic="Repeatable options", path="notes/old.md")
    saved = saving.save(store, draft(), "# new\n", NOW)
    assert (saved.entry.id, saved.entry.path, saved.entry.created) == (
        "legacy-17",
        "notes/old.md",
        "2026-09-01",
    )
    assert disk(base) == {"notes/old.md": b"# new\n"}
    assert revisions(store, "legacy-17") == ["# mine\n"]


@pytest.mark.parametrize(
    "pairs",
    [
        [("C", "pointers"), ("C++", "pointers"), ("C#", "pointers")],
        [("a-b", "c"), ("a", "b-c")],
        [("x", "a b"), ("x", "a-b"), ("x", "a_b")],
    ],
)
def test_different_pairs_never_share_an_id_or_a_path(store: Store, pairs: list[tuple[str, str]]) -> None:
    entries = [saving.save(store, draft(*pair), f"# {pair}\n", NOW).entry for pair in pairs]
    assert len({entry.id for entry in entries}) == len({entry.path for entry in entries}) == len(pairs)
    assert [saving.save(store, draft(*pair), f"# {pair} again\n", LATER).entry.id for pair in pairs] == [
        entry.id for entry in entries
    ]
    for pair, entry in zip(pairs, entries, strict=True):
        assert saving.read_report(store, entry) == f"# {pair} again\n"


def test_an_archived_pair_keeps_its_name_from_others_and_gets_it_back(base: Path) -> None:
    with Store(None, base, max_entries=1) as store:
        first = saving.save(store, draft("C", "pointers"), "# C\n", NOW).entry
        other = saving.save(store, draft("C++", "pointers"), "# C++\n", NOW).entry
        assert sql(store, "SELECT id FROM archived_entries") == [(first.id,)]
        assert first.id != other.id
        again = saving.save(store, draft("c", "POINTERS"), "# C again\n", LATER).entry
        assert (again.id, again.path) == (first.id, first.path)


def test_a_file_that_nobody_speaks_of_is_left_alone(store: Store, base: Path) -> None:
    orphan = base / "frameworks" / "click" / "repeatable-options.md"
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"\xff\xfe not text")
    entry = saving.save(store, draft(), "# one\n", NOW).entry
    assert entry.path.startswith("frameworks/click/repeatable-options-")
    assert orphan.read_bytes() == b"\xff\xfe not text"


def test_a_folder_in_the_way_of_a_renewal_moves_the_report_not_the_id(store: Store, base: Path) -> None:
    first = saving.save(store, draft(), "# one\n", NOW).entry
    (base / first.path).unlink()
    (base / first.path).mkdir()
    second = saving.save(store, draft(), "# two\n", NOW)
    assert (second.entry.id, second.index_count) == (first.id, 1)
    assert second.entry.path != first.path
    assert saving.read_report(store, second.entry) == "# two\n"
    assert revisions(store, first.id) == ["# one\n"]


@pytest.mark.parametrize(
    "path", ["/etc/kr.md", "../outside.md", "frameworks/../../outside.md", "a\\b.md", "a\0b", ""]
)
def test_a_path_that_leaves_the_base_is_neither_read_nor_written(store: Store, base: Path, path: str) -> None:
    if store.is_shared and "\0" in path:
        pytest.skip("PostgreSQL has no such text")
    make(store)
    (base.parent / "outside.md").write_text("# secret\n")
    insert_entry(store, "bad", topic="repeatable options", path=path)
    with store.read() as tx:
        [bad] = entry_rows.all(tx)
    assert saving.read_report(store, bad) is None
    saved = saving.save(store, draft(), "# new\n", NOW)
    assert (saved.entry.id, saved.entry.path) == ("bad", "frameworks/click/repeatable-options.md")
    assert (base.parent / "outside.md").read_text() == "# secret\n"


def test_a_symlink_in_place_of_a_report_is_replaced_not_followed(store: Store, base: Path) -> None:
    outside = base.parent / "outside.md"
    outside.write_text("# secret\n")
    link = base / "frameworks" / "click" / "repeatable-options.md"
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    entry = saving.save(store, draft(), "# text\n", NOW).entry
    assert not link.is_symlink()
    assert outside.read_text() == "# secret\n"
    assert revisions(store, entry.id) == []
    link.unlink()
    link.symlink_to(outside)
    assert saving.read_report(store, entry) == "# text\n"
    assert outside.read_text() == "# secret\n"


@pytest.mark.parametrize("obstacle", ["frameworks", "frameworks/click"])
def test_a_report_that_cannot_be_written_changes_nothing(store: Store, base: Path, obstacle: str) -> None:
    make(store)
    (base / obstacle).parent.mkdir(parents=True, exist_ok=True)
    (base / obstacle).write_text("a file where a folder belongs")
    before = disk(base)
    with pytest.raises(ReportUnwritable, match=r"repeatable-options\.md"):
        saving.save(store, draft(), "# text\n", NOW)
    assert disk(base) == before
    assert sql(store, "SELECT (SELECT count(*) FROM entries), (SELECT count(*) FROM report_texts)") == [
        (0, 0)
    ]


@pytest.mark.parametrize("has_old", [True, False])
@pytest.mark.parametrize("event", ["INSERT ON entries", "UPDATE ON entries", "INSERT ON report_texts"])
def test_a_transaction_that_fails_changes_nothing(
    store: Store, base: Path, event: str, *, has_old: bool
) -> None:
    make(store)
    if has_old:
        saving.save(store, draft(), "# old\n", NOW)
    before, rows = disk(base), sql(store, "SELECT * FROM entries")
    for refused in {event, "UPDATE ON entries" if has_old else "INSERT ON entries"}:
        refuse(store, refused)
    with pytest.raises(StoreError, match="not today"):
        saving.save(store, draft(), "# new\n", NOW)
    assert disk(base) == before
    assert sql(store, "SELECT * FROM entries") == rows


def test_an_empty_report_is_refused(store: Store, base: Path) -> None:
    with pytest.raises(ReportUnwritable, match="empty"):
        saving.save(store, draft(), " \n", NOW)
    assert not base.exists()


def test_text_of_a_careless_caller_is_written_all_the_same(store: Store) -> None:
    entry = saving.save(store, draft(), "# lone \ud800 surrogate\n", NOW).entry
    assert saving.read_report(store, entry) == "# lone ? surrogate\n"


def test_tags_that_compare_alike_are_stored_once(store: Store) -> None:
    first = saving.save(store, draft(tags=("a-b", "a_b", "A B", "c")), "# one\n", NOW).entry
    assert first.tags == ("a-b", "c")
    assert saving.save(store, draft(tags=("C", "a b", "d")), "# two\n", LATER).entry.tags == ("a-b", "c", "d")
