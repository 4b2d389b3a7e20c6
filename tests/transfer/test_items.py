"""Items of index files that anybody may have written: taken, or refused with a reason, whatever is in them."""

from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kr.text import Tree
from kr.transfer.place import BadItem, Item, check_item

INDEX = Path("index.yaml")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ITEM: dict[str, Tree] = {"framework": "vue", "topic": "slots", "path": "frameworks/vue/slots.md"}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def check(*, is_archive: bool = False, **changes: Any) -> Item:
    return check_item({**ITEM, **changes}, INDEX, 1, now=NOW, is_archive=is_archive)


def refusal(**changes: Any) -> str:
    with pytest.raises(BadItem) as refused:
        check(**changes)
    return str(refused.value)


@pytest.mark.parametrize("field", ["framework", "topic", "path"])
@pytest.mark.parametrize("value", [None, "", "  ", "\n"])
def test_what_is_required(field: str, value: str | None) -> None:
    assert refusal(**{field: value}) in {f"{field}: required, but missing", f"{field}: must not be empty"}


def test_everything_that_is_wrong_is_told_at_once() -> None:
    assert refusal(topic=["a"], status="gone") == (
        'topic: must be text, not a list; status: Invalid status: "gone"; allowed: fresh, stale, archived'
    )
    with pytest.raises(BadItem, match="an item must be a mapping"):
        check_item("text", INDEX, 1, now=NOW, is_archive=False)


@pytest.mark.parametrize("written", ["9999-12-31T23:59:59-12:00", "2026-13-01", "yesterday"])
def test_what_is_no_time(written: str) -> None:
    assert refusal(last_accessed=written).startswith("last_accessed: must be a date such as 2026-01-20")


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd.md",
        "../x.md",
        "a/../../x.md",
        "..",
        ".",
        "C:/x.md",
        "a\\b.md",
        "kr.db",
        "index.yaml",
        "lessons/_lessons-learned.md",
        "Lessons/x.md",
        ".git/x.md",
        "a/.hidden.md",
        "a\tb.md",
        "x" * 300 + ".md",
        "a/" * 600 + "x.md",
        "a.sh",
        "frameworks/vue/",
    ],
)
def test_hostile_paths_are_refused(path: str) -> None:
    assert refusal(path=path).startswith("path: ")


@given(TEXT | st.lists(st.sampled_from(["..", ".", "/", "a", "\\", "~", "a.md", ".md", "\0"])).map("".join))
@example("a/..//.md")
def test_no_path_escapes(path: str) -> None:
    try:
        plain = PurePosixPath(check(path=path).path)
    except BadItem:
        return
    assert not plain.is_absolute()
    assert ".." not in plain.parts
    assert plain.suffix.lower() in {".md", ".markdown"}


ANY = st.recursive(
    st.none() | TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=4
)


@given(
    st.dictionaries(st.sampled_from([*ITEM, "id", "tags", "created", "status", "reason", "archived_at"]), ANY)
)
def test_any_item_is_taken_or_refused(fields: dict[str, Tree]) -> None:
    try:
        item = check_item({**ITEM, **fields}, INDEX, 1, now=NOW, is_archive=False)
    except BadItem:
        return
    assert item.framework.strip()
    assert item.topic.strip()
