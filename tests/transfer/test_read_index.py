"""Reading index files that anybody may have written: an item or a reason with a line, whatever is in them; and checking items."""

import io
import re
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kr.errors import IndexUnreadable
from kr.slugs import base_name, suffixed_name
from kr.transfer.read_index import BadItem, Fields, Item, Tree, check_item, check_path, read_items

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
YAML_ITEM = "- id: {0}\n  framework: vue\n  topic: {0}\n  path: frameworks/vue/{0}.md\n"
ITEM: dict[str, Tree] = {"framework": "vue", "topic": "slots", "path": "frameworks/vue/slots.md"}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def read(text: str | bytes) -> list[tuple[int, Fields | BadItem]]:
    return list(read_items(io.BytesIO(text if isinstance(text, bytes) else text.encode())))


def ids(text: str | bytes) -> list[object]:
    """Give the ids of items, and the lines of what is none."""
    return [line if isinstance(fields, BadItem) else fields.get("id") for line, fields in read(text)]


def broken(text: str) -> tuple[list[object], int]:
    """Give the ids that stand before the place where the YAML breaks, and its line."""
    found: list[object] = []
    try:
        for _, fields in read_items(io.BytesIO(text.encode())):
            found.append(fields["id"] if isinstance(fields, dict) else fields)
    except IndexUnreadable as error:
        return found, int(re.match(r"line (\d+)\b", str(error))[1])  # type: ignore[index]
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
        ("- !!python/object/apply:os.system [ls]\n", "must be a mapping"),
        ("- {id: *a}\n", "aliases are not allowed"),
        ("- *a\n", "must be a mapping"),
        ("- text\n", "must be a mapping"),
        ("-\n", "must be a mapping"),
        ("- {[a]: b}\n", "a key must be text"),
        ("- {id: b, id: c}\n", "id: is given twice"),
    ],
)
def test_a_bad_item_is_named_and_the_others_are_read(bad: str, reason: str) -> None:
    text = f"- &a {{id: a}}\n{bad}- id: c\n"
    assert ids(text) == ["a", 2, "c"]
    assert reason in str(read(text)[1][1])


@pytest.mark.parametrize(
    "bad",
    [
        "- id: b\n  topic: scrolling: and more\n",
        "- id: b\n   topic: c\n",
        "- id: b\n\ttopic: c\n",
        "- id: b\n  topic: @c\n",
        "- id: b\n  topic: \x1b\n",
    ],
)
def test_broken_yaml_is_named_with_its_line_after_what_stands_before(bad: str) -> None:
    found, line = broken(f"{YAML_ITEM.format('a')}{bad}{YAML_ITEM.format('c')}")
    assert found in ([], ["a"])
    assert 5 <= line <= 7


def test_nothing_is_an_empty_index() -> None:
    assert read("") == read("# nothing\n") == read("[]\n") == []


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"just text", "line 1: is no list"),
        (b"name: x\n", "line 1: is no list"),
        (b"entries:\n- id: a\n", "line 1: is no list"),
        (b"- id: a\n- id: \xff\n", "line 2: no text"),
        (b"\x00\x01\x02", "control character"),
        (b"[" * 100_000, "line 1: nested deeper than"),
        (b"- id: " + b"[" * 50 + b"]" * 50, "line 1: nested deeper than"),
        (b"- id: a\n---\n- id: b\n", "line 2: a second document"),
    ],
)
def test_what_is_no_index(data: bytes, message: str) -> None:
    with pytest.raises(IndexUnreadable, match=message):
        read(data)


def test_a_bomb_of_aliases_stays_small() -> None:
    levels = "".join(f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    assert ids(f"- a0: &a0 [lol]\n{levels}- id: b\n") == [1, "b"]


@settings(max_examples=200, deadline=None)
@given(
    st.binary(max_size=200) | st.text(alphabet="-:[]{}&*!|>'\"#\n\t abé,?%@`", max_size=120).map(str.encode)
)
@example(b"- a: \x85- b")
@example(b"- - -\n- ? ")
def test_any_bytes_give_items_or_an_error_of_ours(data: bytes) -> None:
    try:
        found = read(data)
    except IndexUnreadable:
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
    return check_item({**ITEM, **changes}, 1, now=NOW, is_archive=is_archive)


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
    assert refusal(**{field: value}) == f"{field}: required, but missing"


@pytest.mark.parametrize("field", ["id", "framework", "framework_version", "topic", "path", "created"])
def test_texts_are_one_line_without_control_characters(field: str) -> None:
    assert refusal(**{field: ["a"]}) == f"{field}: must be text, not a list"
    assert refusal(**{field: "a\x1bb"}) == f"{field}: must not contain control characters (found U+001B)"
    assert refusal(**{field: "a\nb"}) == f"{field}: must be one line"


def test_tags_as_people_write_them() -> None:
    assert check(tags=["a", None, " ", "b"]).tags == ("a", "b")
    assert check(tags="a, b").tags == ("a", "b")
    assert check(tags=[]).tags == ()
    assert refusal(tags=[["a"]]) == refusal(tags={"a": "b"}) == "tags: must be a list of texts"


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
    assert refusal(status="gone") == 'status: must be fresh, stale or archived, not "gone"'


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
        plain = PurePosixPath(check_path(path))
    except BadItem:
        return
    assert not plain.is_absolute()
    assert ".." not in plain.parts
    assert plain.suffix.lower() in {".md", ".markdown"}


@given(TEXT, TEXT)
def test_every_path_that_kr_makes_is_taken(framework: str, topic: str) -> None:
    for name in (base_name(framework, topic), suffixed_name(framework, topic)):
        assert check_path(name.path) == name.path


ANY = st.recursive(
    st.none() | TEXT, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=4
)


@given(
    st.dictionaries(st.sampled_from([*ITEM, "id", "tags", "created", "status", "reason", "archived_at"]), ANY)
)
def test_any_item_is_taken_or_refused(fields: dict[str, Tree]) -> None:
    try:
        item = check_item({**ITEM, **fields}, 1, now=NOW, is_archive=False)
    except BadItem:
        return
    assert item.framework.strip()
    assert item.topic.strip()
