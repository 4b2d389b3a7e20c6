"""Which lessons earn their place: what people decide of them."""

from pathlib import Path

import pytest

from kr.errors import UnknownEntry
from kr.lessons.file import LessonsFile
from kr.lessons.review import Lessons
from kr.store.engine import Store
from tests.support.lessons import NOW, inject_from, record_to


@pytest.fixture
def service(path: Path, store: Store) -> Lessons:
    return Lessons(LessonsFile(path, store), clock=lambda: NOW)


def given(path: Path, store: Store, session: str = "s") -> str:
    answer = inject_from(path, store, session_id=session)
    return str((answer.results or {})["injection_block"])


def test_a_person_retires_pins_and_words_anew(
    path: Path, project: Path, store: Store, service: Lessons
) -> None:
    record_to(path, project, store, errors=["Page is required for MyBatis-Plus"])
    record_to(path, project, store, errors=["row-height must be set"])
    newer, older = service.lessons()
    assert given(path, store).splitlines()[2:] == [
        "1. row-height must be set",
        "2. Page is required for MyBatis-Plus",
    ]
    assert service.mark(older["id"][:6], "pinned_at")["status"] == "pinned"
    assert given(path, store).splitlines()[2] == "1. Page is required for MyBatis-Plus"
    assert service.mark(newer["id"], "retired_at")["status"] == "retired"
    assert "row-height" not in given(path, store)
    assert service.mark(newer["id"], "approved_at")["status"] == "live"
    assert [lesson["summary"] for lesson in service.lessons()] == [newer["summary"], older["summary"]]
    before = path.read_bytes()
    edited = service.edit(
        older["id"], "Pass a Page to MyBatis-Plus selects, password=hunter2hunter2", by_person=True
    )
    assert path.read_bytes().startswith(before)
    assert edited["summary"] == "Pass a Page to MyBatis-Plus selects, password=<secret>"
    assert edited["source"] == "person"
    block = given(path, store)
    assert "Page is required" not in block
    assert "Pass a Page" in block
    assert [lesson["status"] for lesson in service.lessons()].count("superseded") == 1
    with pytest.raises(UnknownEntry, match="no lesson has the id"):
        service.mark("zzz", "pinned_at")


def test_what_was_retired_or_worded_anew_does_not_come_back(
    path: Path, project: Path, store: Store, service: Lessons
) -> None:
    record_to(path, project, store, errors=["row-height must be set"])
    (retired,) = service.lessons()
    service.mark(retired["id"], "retired_at")
    edited = service.edit(retired["id"], "Set the height of rows", by_person=True)
    assert edited["status"] == "retired"
    before = path.read_bytes()
    path.write_bytes(b"")  # somebody deletes the lines
    copy = project / "copy.md"
    copy.write_bytes(before)
    assert service.import_files([copy])["imported"] == 0
    assert given(path, store) == ""
