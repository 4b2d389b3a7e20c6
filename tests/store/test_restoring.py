"""Entries that are removed by hand, and archived entries and earlier texts that come back."""

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from kr.errors import EntryConflict, UnknownEntry
from kr.models import Entry
from kr.store import entries, lookup, saving
from kr.store.engine import Store
from kr.store.entries import Archived
from tests.support.stores import NOW, draft, insert_entry, sql

LATER = NOW + timedelta(days=1)
MUCH_LATER = NOW + timedelta(days=40)


def archived(store: Store, entry_id: str, place: int = 0) -> Archived:
    with store.read() as tx:
        return entries.archived(tx, id=entry_id)[place]


def live(store: Store, entry_id: str) -> Entry | None:
    with store.read() as tx:
        return entries.get(tx, entry_id)


def texts(store: Store, entry_id: str) -> list[str]:
    with store.read() as tx:
        return [lookup.text_of(tx, revision["sha256"]) or "" for revision in saving.revisions(tx, entry_id)]


def hidden(base: Path) -> list[str]:
    return [path.name for path in base.rglob(".kr-*")]


@pytest.fixture
def entry(store: Store) -> Entry:
    return saving.save(store, draft(tags=("a", "b")), "# one\n", NOW).entry


def test_a_removed_entry_comes_back_whole(store: Store, base: Path, entry: Entry) -> None:
    moved = saving.remove(store, [entry.id], LATER)
    assert moved == [archived(store, entry.id)]
    assert (archived(store, entry.id).reason, archived(store, entry.id).entry) == ("manual", entry)
    assert live(store, entry.id) is None
    (base / entry.path).unlink()
    back = saving.restore_archived(store, archived(store, entry.id), MUCH_LATER)
    assert back.entry.stale_reason is None
    assert back.entry == replace(entry, last_accessed="2026-11-10T12:00:00.000000Z") == live(store, entry.id)
    assert saving.read_report(store, back.entry) == "# one\n"
    assert sql(store, "SELECT count(*) FROM archived_entries") == [(0,)]
    assert texts(store, entry.id) == []
    assert hidden(base) == []


@pytest.mark.parametrize("is_archived", [True, False])
@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"origin": "placeholder", "status": "stale"}, "stale"),
        ({"origin": "excerpt", "status": "stale"}, "stale"),  # an older report stood in
        ({"origin": "excerpt", "fresh_until": "2026-10-02T12:00:00.000000Z"}, "stale"),
        ({"origin": "excerpt", "fresh_until": "2026-12-01T12:00:00.000000Z"}, "fresh"),
    ],
)
def test_what_was_not_researched_never_comes_back_fresh(
    store: Store, changes: dict[str, str], status: str, *, is_archived: bool
) -> None:
    entry = saving.save(store, draft(**changes), "# text\n", NOW).entry
    if is_archived:
        saving.remove(store, [entry.id], NOW)
        back = saving.restore_archived(store, archived(store, entry.id), MUCH_LATER)
    else:
        finding = draft(origin="finding", written_by="agent:s")
        assert saving.save(store, finding, "# new\n", NOW).replaced == 1
        back = saving.restore_revision(store, entry.id, 1, MUCH_LATER)
    assert back.entry.fresh_until == changes.get("fresh_until")
    assert (back.entry.status, back.entry.stale_reason is None) == (status, status == "fresh")
    assert sql(store, "SELECT status, stale_reason FROM entries") == [(status, back.entry.stale_reason)]
    assert back.entry.origin == changes["origin"]


def test_a_live_entry_goes_to_the_archive(store: Store, base: Path, entry: Entry) -> None:
    saving.remove(store, [entry.id], NOW)
    saving.save(store, draft(framework_version="8.9"), "# two\n", LATER)
    (base / entry.path).write_text("# two, edited\n")
    old = archived(store, entry.id)
    back = saving.restore_archived(store, old, MUCH_LATER)
    assert saving.read_report(store, back.entry) == "# one\n"
    [replaced] = back.archived
    assert (replaced.reason, replaced.entry.framework_version) == ("manual", "8.9")
    with store.read() as tx:
        assert lookup.text_of(tx, replaced.entry.sha256 or "") == "# two, edited\n"
    assert (replaced.entry.origin, replaced.entry.written_by) == ("finding", "file")
    assert "# two\n" in texts(store, entry.id)
    again = saving.restore_archived(store, replaced, MUCH_LATER)
    assert again is not None
    assert saving.read_report(store, again.entry) == "# two, edited\n"


def test_the_same_topic_under_another_id_goes_too(store: Store, entry: Entry) -> None:
    saving.remove(store, [entry.id], NOW)
    insert_entry(store, "imported-7", topic="Repeatable OPTIONS", path="notes/old.md")
    back = saving.restore_archived(store, archived(store, entry.id), LATER)
    assert [row.entry.id for row in back.archived] == ["imported-7"]


def test_the_capacity_holds_after_a_restoration(base: Path) -> None:
    with Store(None, base, max_entries=2) as store:
        first = saving.save(store, draft(topic="first"), "# first\n", NOW).entry
        saving.save(store, draft(topic="second"), "# second\n", NOW)
        saving.save(store, draft(topic="third"), "# third\n", LATER)
        assert archived(store, first.id).reason == "lru"
        back = saving.restore_archived(store, archived(store, first.id), LATER)
        assert (back.index_count, back.lru_evicted) == (2, 1)
        assert live(store, first.id) is not None
        assert archived(store, "click-second").reason == "lru"


def test_a_lost_text_is_an_error_that_changes_nothing(store: Store, base: Path, entry: Entry) -> None:
    saving.remove(store, [entry.id], NOW)
    sql(
        store,
        f"{'SET session_replication_role = replica;' if store.is_shared else ''} DELETE FROM report_texts",
    )
    (base / entry.path).unlink()
    with pytest.raises(EntryConflict, match=r"neither in the database nor at frameworks/click"):
        saving.restore_archived(store, archived(store, entry.id), LATER)
    assert live(store, entry.id) is None
    assert archived(store, entry.id).entry == entry


def test_remove_takes_all_or_nothing(store: Store, entry: Entry) -> None:
    with pytest.raises(UnknownEntry):
        saving.remove(store, [entry.id, "unknown"], NOW)
    assert live(store, entry.id) == entry
    assert len(saving.remove(store, [entry.id, entry.id], NOW)) == 1


def test_a_removed_entry_keeps_what_a_person_wrote(store: Store, base: Path, entry: Entry) -> None:
    (base / entry.path).write_text("# edited\n")
    saving.remove(store, [entry.id], NOW)
    assert texts(store, entry.id) == ["# one\n"]
    (base / entry.path).unlink()
    back = saving.restore_archived(store, archived(store, entry.id), LATER)
    assert saving.read_report(store, back.entry) == "# edited\n"


def test_a_revision_brings_its_text_version_and_confidence_back(
    store: Store, base: Path, entry: Entry
) -> None:
    saving.save(store, draft(framework_version="8.9", confidence="low", tags=("c",)), "# two\n", LATER)
    back = saving.restore_revision(store, entry.id, 1, MUCH_LATER)
    restored = back.entry
    assert (restored.framework_version, restored.confidence, restored.researched_at) == (
        "8.2",
        "high",
        entry.researched_at,
    )
    assert (restored.id, restored.tags, restored.status) == (entry.id, ("a", "b", "c"), "fresh")
    assert (base / entry.path).read_text() == "# one\n"
    assert texts(store, entry.id) == ["# one\n", "# two\n"]
    saving.restore_revision(store, entry.id, 2, MUCH_LATER)
    assert (base / entry.path).read_text() == "# two\n"
    assert hidden(base) == []


@pytest.mark.parametrize(("entry_id", "number"), [("unknown", 1), ("click-repeatable-options", 7)])
def test_an_unknown_revision_is_refused(store: Store, entry: Entry, entry_id: str, number: int) -> None:
    assert entry.id == "click-repeatable-options"
    for one, which in ((entry_id, number), (entry.id, 2**70)):
        with pytest.raises(UnknownEntry):
            saving.restore_revision(store, one, which, LATER)
