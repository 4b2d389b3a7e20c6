"""A knowledge base that is exported with its reports and imported elsewhere is the same there (SPEC 6.1)."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from kr.store.store import Store
from kr.transfer import ARCHIVE, INDEX, WORDINGS
from kr.transfer.export import export_yaml
from kr.transfer.import_yaml import import_yaml
from tests.support.stores import NOW, draft, insert_entry, sql

LIVE, ARCHIVED = 100, 200
LATER = NOW + timedelta(days=1)


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """Give 100 live and 200 archived entries; of twenty topics an archived text is at a live one's path."""
    with Store(None, tmp_path_factory.mktemp("here") / "base", max_entries=1_000) as store:
        for number in range(ARCHIVED):
            store.save_report(draft(topic=f"topic {number}"), f"# old {number}\n", NOW)
        with store.read() as unit:
            old = [entry.id for entry in unit.entries.all()]
        store.remove(old, NOW)
        for number in range(LIVE):
            topic = f"topic {number}" if number < 20 else f"new {number}"
            store.save_report(draft(topic=topic, question=f"How {number}?"), f"# new {number}\n", LATER)
        yield store


def texts(store: Store) -> list[tuple[str, str, str]]:
    query = "SELECT e.id, e.path, t.text FROM {} e JOIN report_texts t USING (sha256) ORDER BY e.id, t.text"
    return [row for table in ("entries", "archived_entries") for row in sql(store.path, query.format(table))]


def exported(store: Store, base: Path, folder: Path) -> dict[str, bytes]:
    export_yaml(store, base, folder)
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_nothing_is_lost_on_the_way(here: Store, tmp_path: Path) -> None:
    told = export_yaml(here, here.path.parent, tmp_path / "box")
    assert (told["entries"], told["archived"], told["reports"]) == (LIVE, ARCHIVED, LIVE + ARCHIVED)
    with Store(None, tmp_path / "there", max_entries=1_000) as there:
        result = import_yaml(there, tmp_path / "there", [tmp_path / "box"], now=LATER)
        assert result.counts == {"imported": LIVE, "updated": 0, "unchanged": 0, "archived": ARCHIVED}
        assert (result.refused, result.warnings) == ([], [])
        assert texts(there) == texts(here)
        first, second = (
            exported(here, here.path.parent, tmp_path / "one"),
            exported(there, tmp_path / "there", tmp_path / "two"),
        )
        assert first == second
        with there.read() as unit:
            (archived,) = unit.archive.of_id("click-topic-3")
        back = there.restore_archived(archived, LATER, replace=True)
        assert back is not None
        assert there.read_report(back.saved.entry) == "# old 3\n"


def test_the_index_alone_where_that_is_wanted(here: Store, tmp_path: Path) -> None:
    told = export_yaml(here, here.path.parent, tmp_path / "box", index_only=True)
    assert told["reports"] == 0
    assert sorted(path.name for path in (tmp_path / "box").iterdir()) == [ARCHIVE, WORDINGS, INDEX]


def test_the_archive_is_appended_to_and_written_anew_when_a_row_left(tmp_path: Path) -> None:
    base = tmp_path / "base"
    with Store(None, base) as store:
        with store.write():
            pass
        for number in range(3):
            insert_entry(store.path, f"a{number}")
        store.remove(["a2"], NOW)
        export_yaml(store, base)
        file = (base / ARCHIVE).stat().st_ino
        store.remove(["a0"], NOW)
        export_yaml(store, base)
        assert (base / ARCHIVE).stat().st_ino == file
        appended = (base / ARCHIVE).read_bytes()
        (base / ARCHIVE).unlink()
        export_yaml(store, base)
        assert (base / ARCHIVE).read_bytes() == appended
        assert appended.index(b'"a2"') < appended.index(b'"a0"')  # in the order of archiving
        with store.write() as unit:
            (row,) = unit.archive.of_id("a2")
            assert unit.archive.take(row.archive_id)
        store.remove(["a1"], NOW)
        export_yaml(store, base)
        assert b'"a2"' not in (base / ARCHIVE).read_bytes()
        assert (base / ARCHIVE).read_bytes().count(b"- id: ") == 2
    assert not list(base.glob("*.bak*"))


def test_an_export_that_was_killed_while_it_appended_leaves_no_strangers_copy(tmp_path: Path) -> None:
    base = tmp_path / "base"
    with Store(None, base) as store:
        with store.write():
            pass
        for number in range(2):
            insert_entry(store.path, f"a{number}")
        store.remove(["a0"], NOW)
        export_yaml(store, base)
        whole = (base / ARCHIVE).read_bytes()
        store.remove(["a1"], NOW)
        (base / ARCHIVE).write_bytes(whole + b'- id: "a1"\n  frame')
        export_yaml(store, base)
        assert (base / ARCHIVE).read_bytes().startswith(whole)
        assert (base / ARCHIVE).read_bytes().count(b"- id: ") == 2
    assert not list(base.glob("*.bak*"))
