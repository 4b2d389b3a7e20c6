"""Reading index files that anybody may have written: an item or a reason with a line, whatever is in them; and checking items."""

import io
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kr.errors import BrokenYaml
from kr.slugs import base_name, suffixed_name
from kr.text import Tree
from kr.transfer.place import BadItem, Item, check_item
from kr.yaml_io import read_list

INDEX = Path("index.yaml")
NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
YAML_ITEM = "- id: {0}\n  framework: vue\n  topic: {0}\n  path: frameworks/vue/{0}.md\n"
ITEM: dict[str, Tree] = {"framework": "vue", "topic": "slots", "path": "frameworks/vue/slots.md"}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def read(text: str | bytes) -> list[tuple[int, Tree]]:
    return list(read_list(io.BytesIO(text if isinstance(text, bytes) else text.encode())))


def ids(text: str | bytes) -> list[object]:
    return [fields.get("id") for _, fields in read(text) if isinstance(fields, dict)]


def broken(text: str | bytes) -> tuple[int, str]:
    """Read up to the place where the YAML breaks; return how many items stand before, and what is wrong."""
    number = 0
    try:
        for _ in read_list(io.BytesIO(text if isinstance(text, bytes) else text.encode())):
            number += 1
    except BrokenYaml as error:
        return number, str(error)
    raise AssertionError("it is not broken")


@pytest.mark.parametrize(
    "text",
    [
        "- id: a\n- id: b\n",
        "[{id: a}, {id: b}]",
        '[{"id": "a"}, {"id": "b"}]',
        "---\n# a comment\n-\n  id: a\n- {id: b}\n...\n",
        "- id: a\r\n- id: b\r\n",
        "\ufeff- id: a\n- id: b\n",
        "- id: a\n- id: b\n".encode("utf-16"),
    ],
)
def test_a_list_in_any_style(text: str | bytes) -> None:
    assert ids(text) == ["a", "b"]


@pytest.mark.parametrize(
    ("written", "read_as"),
    [
        ("2.10", "2.10"),
        ("yes", "yes"),
        ("2026-01-20", "2026-01-20"),
        ("0x1F", "0x1F"),
        ("null", None),
        ("~", None),
        ("", None),
        ("'null'", "null"),
        ('"a: b"', "a: b"),
        ("虚拟滚动 🎉", "虚拟滚动 🎉"),
        ("|\n    one\n    two", "one\ntwo\n"),
        ("!!str 2.10", "2.10"),
    ],
)
def test_scalars_are_the_text_that_was_written(written: str, read_as: str | None) -> None:
    assert read(f"- topic: {written}\n") == [(1, {"topic": read_as})]


def test_an_item_has_its_line() -> None:
    assert [line for line, _ in read("# one\n# two\n- id: a\n  topic: b\n-\n  id: c\n- 3\n")] == [3, 6, 7]


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ("- !!python/object/apply:os.system [ls]\n", "line 5, column 3: the tag"),
        ("- {id: *a}\n", "line 5, column 8: aliases are not allowed"),
        ("- {[a]: b}\n", "line 5, column 4: a key must be text"),
        ("- {id: b, id: c}\n", "line 5, column 11: this key is given twice"),
        ("- id: b\n  topic: scrolling: and more\n", "line 6, column 19: mapping values"),
        ("- id: b\n   topic: c\n", "line 6, column 9: mapping values"),
        ("- id: b\n\ttopic: c\n", "line 6, column 1: found a tab"),
        ("- id: b\n  topic: @c\n", "line 6, column 10: found character"),
        ("- id: b\n  topic: \x1b\n", "line 6, column 10: the character U+001B"),
    ],
)
def test_broken_yaml_is_named_with_its_place_after_what_stands_before(bad: str, reason: str) -> None:
    number, found = broken(f"{YAML_ITEM.format('a')}{bad}{YAML_ITEM.format('c')}")
    assert found.startswith(reason)
    assert number <= 1


def test_nothing_is_an_empty_index() -> None:
    assert read("") == read("# nothing\n") == read("[]\n") == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"just text", "line 1, column 1: it must be a list"),
        (b"name: x\n", "line 1, column 1: it must be a list"),
        (b"entries:\n- id: a\n", "line 1, column 1: it must be a list"),
        (b"- id: a\n- id: \xff\n", "line 2, column "),
        (b"\x00\x01\x02", "line 1, column 1: the character U+0000"),
        (b"[" * 100_000, "line 1, column 33: nested deeper than"),
        (b"- id: " + b"[" * 50 + b"]" * 50, "line 1, column 37: nested deeper than"),
        (b"- id: a\n---\n- id: b\n", "line 2, column 1: a second document"),
    ],
)
def test_what_is_no_index(data: bytes, message: str) -> None:
    assert broken(data)[1].startswith(message)


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=200) | st.text(alphabet="-:[]{}&*!|>'\"#\n\t abé,?%@`", max_size=120).map(str.encode)
)
@example(b"- a: \x85- b")
@example(b"- - -\n- ? ")
def test_any_bytes_give_items_or_an_error_of_ours(data: bytes) -> None:
    try:
        found = read(data)
    except BrokenYaml:
        return
    assert all(line >= 1 for line, _ in found)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.dictionaries(st.text("abc:-#é", max_size=5), st.text("ab: -\n#'\"", max_size=8)), max_size=4)
)
def test_what_others_dump_is_read_as_they_meant_it(items: list[dict[str, str]]) -> None:
    for style in (False, True, None):
        dumped = yaml.safe_dump(items, default_flow_style=style, allow_unicode=True)
        assert [fields for _, fields in read(dumped)] == items


def check(*, is_archive: bool = False, **changes: Any) -> Item:
    return check_item({**ITEM, **changes}, INDEX, 1, now=NOW, is_archive=is_archive)


def refusal(**changes: Any) -> str:
    with pytest.raises(BadItem) as refused:
        check(**changes)
    return str(refused.value)


def test_what_is_absent_is_none() -> None:
    item = check()
    assert (item.id, item.framework_version, item.tags, item.created, item.last_accessed) == (None,) * 5
    assert (item.status, item.reason) == ("fresh", None)


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


@pytest.mark.parametrize("field", ["id", "framework", "framework_version", "topic", "path", "created"])
def test_texts_are_one_line_without_control_characters(field: str) -> None:
    assert refusal(**{field: ["a"]}) == f"{field}: must be text, not a list"
    for bad in "\x1b\n":
        assert refusal(**{field: f"a{bad}b"}).startswith(f"{field}: must ")


def test_tags_as_people_write_them() -> None:
    assert check(tags=["a", None, " ", "b"]).tags == ("a", "b")
    assert check(tags="a, b").tags == ("a", "b")
    assert check(tags=[]).tags == ()
    assert refusal(tags=[["a"]]) == "tags: must be text, not a list"
    assert refusal(tags={"a": "b"}) == "tags: must be a list of texts"


@pytest.mark.parametrize(
    ("written", "stored"),
    [
        ("2026-01-20", "2026-01-20"),
        (" 2026-01-20 ", "2026-01-20"),
        ("2026-01-20 10:00:00+02:00", "2026-01-20T08:00:00.000000Z"),
        ("2026-11-22", None),
    ],
)
def test_times(written: str, stored: str | None) -> None:
    assert check(last_accessed=written).last_accessed == stored


@pytest.mark.parametrize("written", ["9999-12-31T23:59:59-12:00", "2026-13-01", "yesterday"])
def test_what_is_no_time(written: str) -> None:
    assert refusal(last_accessed=written).startswith("last_accessed: must be a date such as 2026-01-20")


def test_archived_by_status_or_by_file() -> None:
    assert check(status="archived").reason == "manual"
    told = check(is_archive=True, status="fresh", archived_at="2026-02-01", reason="lru")
    assert (told.archived_at, told.reason) == ("2026-02-01", "lru")


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


@given(TEXT, TEXT)
def test_every_path_that_kr_makes_is_taken(framework: str, topic: str) -> None:
    for name in (base_name(framework, topic), suffixed_name(framework, topic)):
        assert check(path=name.path).path == name.path


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
