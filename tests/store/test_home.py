"""A database that lies outside of its folder of reports (``KR_DATABASE_URL``) loses nothing to another folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from kr.errors import StoreError
from kr.store.store import Store
from kr.values import Entry
from tests.support.stores import NOW, draft


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
