"""A database that lies outside of its folder of reports (``KR_DATABASE_URL``) loses nothing to another folder."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from shutil import copytree

import pytest

from kr.errors import StoreError
from kr.store.store import Store
from kr.values import Entry
from tests.support.stores import NOW, draft, sql


@pytest.fixture
def first(tmp_path: Path) -> Iterator[Store]:
    with Store(url(tmp_path), tmp_path / "first") as store:
        yield store


def url(folder: Path) -> str:
    return f"sqlite:///{folder}/elsewhere/kr.db"


def live(store: Store) -> list[Entry]:
    with store.read() as unit:
        return list(unit.entries.all())


@pytest.mark.parametrize("is_there", [False, True])
def test_another_folder_of_reports_takes_no_entry_away(
    tmp_path: Path, first: Store, *, is_there: bool
) -> None:
    entry = first.save_report(draft(), "# text\n", NOW).entry
    other = tmp_path / "second"
    if is_there:
        (other / "frameworks" / "click").mkdir(parents=True)
    with Store(url(tmp_path), other) as store:
        assert store.read_report(entry) is None
        for attempt in (
            lambda: store.drop_lost(entry),
            lambda: store.save_report(draft(), "# other\n", NOW),
            lambda: store.remove([entry.id], NOW),
            lambda: store.take_in([], NOW),
        ):
            with pytest.raises(StoreError, match=f"{tmp_path}/first.*--kb") as caught:
                attempt()
            assert str(other) in str(caught.value)
        assert store.other_home() == tmp_path / "first"
    assert live(first) == [entry]
    assert list(other.rglob("*.md")) == []


def test_a_folder_that_moved_takes_its_entries_along(tmp_path: Path, first: Store) -> None:
    entry = first.save_report(draft(), "# text\n", NOW).entry
    (tmp_path / "first").rename(tmp_path / "moved")
    with Store(url(tmp_path), tmp_path / "moved") as store:
        assert store.other_home() is None
        assert store.read_report(entry) == "# text\n"
        (tmp_path / "moved" / entry.path).unlink()
        assert store.drop_lost(entry)
    assert live(first) == []


def test_a_folder_by_another_name_is_the_same(tmp_path: Path, first: Store) -> None:
    first.save_report(draft(), "# text\n", NOW)
    (tmp_path / "link").symlink_to(tmp_path / "first")
    with Store(url(tmp_path), tmp_path / "link") as store:
        assert store.save_report(draft(), "# new\n", NOW).index_count == 1


def test_a_folder_that_is_not_mounted_costs_no_entry(tmp_path: Path, first: Store) -> None:
    entry = first.save_report(draft(), "# text\n", NOW).entry
    (tmp_path / "first" / "frameworks").rename(tmp_path / "away")
    assert not first.drop_lost(entry)
    assert live(first) == [entry]


def test_a_database_within_its_folder_goes_where_that_goes(tmp_path: Path) -> None:
    base = tmp_path / "base"
    with Store(None, base) as store:
        entry = store.save_report(draft(), "# text\n", NOW).entry
        (base / entry.path).unlink()
        assert store.drop_lost(entry)
    base.rename(tmp_path / "copy")
    with Store(f"sqlite:///{tmp_path}/copy/kr.db", tmp_path / "copy") as store:
        assert store.save_report(draft(), "# text\n", NOW).index_count == 1


def test_nothing_changes_the_entries_of_another_folder(tmp_path: Path, first: Store) -> None:
    entry = first.save_report(draft(), "# text\n", NOW).entry
    with Store(url(tmp_path), tmp_path / "second") as store:
        with pytest.raises(StoreError, match=f"{tmp_path}/first"), store.change() as unit:
            unit.entries.mark_stale(entry.id, "no reason")
        with pytest.raises(StoreError, match=f"{tmp_path}/first"):
            store.run_guard(NOW + timedelta(days=900))
    assert live(first) == [entry]


def forget_home(tmp_path: Path) -> None:
    sql(tmp_path / "elsewhere" / "kr.db", "DELETE FROM meta WHERE key = 'knowledge_base'")


def test_a_database_without_a_memory_is_claimed_where_its_reports_are(tmp_path: Path, first: Store) -> None:
    entry = first.save_report(draft(), "# text\n", NOW).entry
    forget_home(tmp_path)
    with Store(url(tmp_path), tmp_path / "second") as store:
        with pytest.raises(StoreError, match=r"none of the reports.*--kb"):
            store.drop_lost(entry)
        assert store.other_home() is None
    assert first.save_report(draft(topic="more"), "# text\n", NOW).index_count == 2
    with Store(url(tmp_path), tmp_path / "second") as store:
        assert store.other_home() == tmp_path / "first"


@pytest.mark.parametrize("is_edited", [False, True])
def test_a_copy_of_the_folder_may_be_given_the_database(
    tmp_path: Path, first: Store, *, is_edited: bool
) -> None:
    entry = first.save_report(draft(), "# text\n", NOW).entry
    second = tmp_path / "second"
    with Store(url(tmp_path), second) as store:
        assert not store.move_in()
        copytree(tmp_path / "first", second)
        if is_edited:
            (second / entry.path).write_text("# another\n")
        with pytest.raises(StoreError):
            store.remove([entry.id], NOW)
        assert store.move_in() is not is_edited
        assert (store.other_home() is None) is not is_edited
