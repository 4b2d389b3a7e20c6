"""Reading index files: whatever is in them, an item or a reason with a line."""

import re

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kr.errors import IndexUnreadable
from kr.transfer.read_index import LIMIT, Bad, Item, read_items

ITEM = "- id: {0}\n  framework: vue\n  topic: {0}\n  path: frameworks/vue/{0}.md\n"


def read(text: str | bytes) -> list[Item | Bad]:
    return list(read_items(text if isinstance(text, bytes) else text.encode()))


def lines(text: str | bytes) -> list[int | str]:
    """Give the ids of items and the lines of what is none."""
    return [item.line if isinstance(item, Bad) else str(item.fields.get("id")) for item in read(text)]


def broken(text: str) -> tuple[list[str], int]:
    """Give the ids that stand before the place where the YAML breaks, and its line."""
    found = []
    try:
        for item in read_items(text.encode()):
            assert isinstance(item, Item)
            found.append(str(item.fields["id"]))
    except IndexUnreadable as error:
        return found, int(re.search(r"line (\d+)", str(error))[1])  # type: ignore[index]
    raise AssertionError("it is not broken")


def reason(text: str) -> str:
    (bad,) = [item.reason for item in read(text) if isinstance(item, Bad)]
    return bad


@pytest.mark.parametrize(
    "text",
    [
        "- id: a\n- id: b\n",
        "[{id: a}, {id: b}]",
        '[{"id": "a"}, {"id": "b"}]',
        "entries:\n- id: a\n- id: b\n",
        "version: 1\nentries:\n  - id: a\n  - id: b\nmore: [x, {y: z}]\n",
        "{entries: [{id: a}, {id: b}]}",
        "---\n# a comment\n-\n  id: a\n- {id: b}\n...\n",
        "- id: a\r\n- id: b\r\n",
        "\ufeff- id: a\n- id: b\n",
    ],
)
def test_a_list_or_a_mapping_in_any_style(text: str) -> None:
    assert lines(text) == ["a", "b"]


def test_utf_16_as_editors_write_it() -> None:
    assert lines("- id: a\n- id: ä\n".encode("utf-16")) == ["a", "ä"]


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
    (item,) = read(f"- topic: {written}\n")
    assert isinstance(item, Item)
    assert item.fields == {"topic": read_as}


def test_an_item_tells_its_line() -> None:
    assert [item.line for item in read("# one\n# two\n- id: a\n  topic: b\n-\n  id: c\n- 3\n")] == [3, 6, 7]


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        ("- !!python/object/apply:os.system [ls]\n", "must be a mapping"),
        ("- !!python/object:os.x {id: b}\n", "the tag tag:yaml.org,2002:python/object:os.x is not allowed"),
        ("- {id: !custom b}\n", "the tag !custom is not allowed"),
        ("- {id: !!binary b}\n", "is not allowed"),
        ("- {id: *a}\n", "aliases (*a) are not allowed"),
        ("- *a\n", "must be a mapping"),
        ("- text\n", "must be a mapping"),
        ("- [id, b]\n", "must be a mapping"),
        ("-\n", "must be a mapping"),
        ("- {[a]: b}\n", "a key must be text"),
    ],
)
def test_a_bad_item_is_named_and_the_others_are_read(bad: str, said: str) -> None:
    text = f"- &a {{id: a}}\n{bad}- id: c\n"
    assert lines(text) == ["a", 2, "c"]
    assert said in reason(text)


@pytest.mark.parametrize(
    "bad",
    [
        "- id: b\n  topic: scrolling: and more\n",
        "- id: b\n  topic: [x\n",
        '- id: b\n  topic: "open\n',
        "- id: b\n   topic: c\n",
        "- id: b\n\ttopic: c\n",
        "- id: b\n  topic: \x1b\n",
        "- id: b\n  topic: @c\n",
        "- id: b\n  tags: " + "[" * 100 + "\n",
        "- id: b\n  topic: !<x y\n",
    ],
)
@pytest.mark.parametrize("head", ["", "entries:\n", "# c\n\n---\n", "kind: x\nentries: # these\n\n"])
def test_broken_yaml_is_told_with_its_line_after_what_stands_before(bad: str, head: str) -> None:
    found, line = broken(f"{head}{ITEM.format('a')}{bad}{ITEM.format('c')}- id: d\n")
    first = head.count("\n") + 5
    assert found == ([] if "\x1b" in bad else ["a"])  # what is no text is seen first of all
    assert first <= line <= first + 2


def test_a_conflict_of_a_merge_is_broken_yaml() -> None:
    text = f"{ITEM.format('x')}<<<<<<< HEAD\n{ITEM.format('a')}=======\n{ITEM.format('b')}>>>>>>> other\n"
    assert broken(text) == ([], 6)


def test_nothing_is_an_empty_index() -> None:
    assert read("") == read("# nothing\n") == read("[]\n") == read("entries:\n") == read("entries: []") == []


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"just text", "neither a list"),
        (b"name: x\n", "without `entries:`"),
        (b"entries: text\n", "`entries:` must be a list"),
        (b"entries: {a: b}\n", "`entries:` must be a list"),
        (b"[[[[\n", "broken"),
        (b": : :\n- [", "broken"),
        (b"- id: a\n- id: \xff\n", "line 2: no utf-8 text"),
        (b"\x00\x01\x02", "control character"),
        (b"[" * 100_000, "nested deeper than"),
        (b"a: " * 1000, "broken"),
        (b"- id: [\n", "broken"),
    ],
)
def test_what_is_no_index_at_all(data: bytes, said: str) -> None:
    with pytest.raises(IndexUnreadable, match=said.replace("[", r"\[")):
        read(data)


@pytest.mark.parametrize("left_open", ['"unterminated', "'unterminated", "[a, b", "{a: b"])
@pytest.mark.parametrize("head", ["", "entries:\n"])
def test_what_is_left_open_is_told_where_it_opened(left_open: str, head: str) -> None:
    text = f"{head}- id: a\n  topic: a\n  path: a.md\n- id: b\n  topic: {left_open}\n  path: b.md\n- id: c\n"
    assert broken(text) == (["a"], 5 + head.count("\n"))


def test_too_large() -> None:
    with pytest.raises(IndexUnreadable, match="larger than 64 MiB"):
        read(b" " * (LIMIT + 1))


def test_a_second_document_is_named() -> None:
    assert lines("- id: a\n---\n- id: b\n") == ["a", 2]


def test_a_key_that_stands_twice_is_told() -> None:
    (item,) = read("- id: a\n  id: b\n")
    assert isinstance(item, Item)
    assert item.fields == {"id": "b"}
    assert item.warnings == ("id is given more than once; the last one counts",)


def test_a_bomb_of_aliases_stays_small() -> None:
    levels = "".join(f"  a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 30))
    assert lines(f"- a0: &a0 [lol]\n{levels}- id: b\n") == [2, "b"]


@settings(max_examples=300, deadline=None)
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
    total = data.count(b"\n") + data.count(b"\r") + data.count(b"\xc2\x85") + 1
    assert all(1 <= item.line <= total + 1 for item in found)


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.dictionaries(st.text("abc:-#é", max_size=5), st.text("ab: -\n#'\"", max_size=8)), max_size=4)
)
def test_what_others_dump_is_read_as_they_meant_it(items: list[dict[str, str]]) -> None:
    for style in (False, True, None):
        read_back = read(yaml.safe_dump(items, default_flow_style=style, allow_unicode=True))
        assert [item.fields for item in read_back if isinstance(item, Item)] == items
