import math
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from kr.errors import BrokenYaml
from kr.text import Tree
from kr.yaml_io import Place, read_yaml, write_yaml


@pytest.mark.parametrize(
    ("written", "read"),
    [
        *(
            (text, text)
            for text in ("2.10", "true", "Off", "2026-01-02", "0x10", "010", "1_000", "1e3", ".nan", "=")
        ),
        *((text, None) for text in ("null", "Null", "NULL", "~", "")),
        ("nUll", "nUll"),
        ("''", ""),
        ('"null"', "null"),
        ("|\n  null", "null"),
        ("!!str null", "null"),
        ("! 12", "12"),
        ("&here text", "text"),
        ("text # comment", "text"),
        ("😀 中文", "😀 中文"),
        ("|\n  two\n  lines\n", "two\nlines\n"),
        ('"tab\\t and \\u4e2d"', "tab\t and 中"),
        ("[1.0, [null, off]]", ["1.0", [None, "off"]]),
        ("!!seq [!!map {a: 1}]", [{"a": "1"}]),
        ("{a: , b}", {"a": None, "b": None}),
    ],
)
def test_scalars_are_the_text_that_was_written(written: str, read: Tree) -> None:
    assert read_yaml(f"value: {written}")[0] == {"value": read}


def test_keys_and_members_know_where_they_stand() -> None:
    tree, places = read_yaml("\n\na: 1\nb:\n  - x\n  - {c: '2'}\n")
    assert tree == {"a": "1", "b": ["x", {"c": "2"}]}
    assert places == {
        (): Place(3, 1),
        ("a",): Place(3, 1),
        ("b",): Place(4, 1),
        ("b", 0): Place(5, 5),
        ("b", 1): Place(6, 5),
        ("b", 1, "c"): Place(6, 6),
    }


@pytest.mark.parametrize(
    ("text", "place", "path", "problem"),
    [
        ("a: &x 1\nb: {c: [0, *x]}", (2, 12), ("b", "c", 1), "aliases"),
        ("*x : 1", (1, 1), (), "aliases"),
        ("a: *emphasis*", (1, 13), (), "needs quotes"),
        ("a: !!binary aGk=", (1, 4), ("a",), "tag"),
        ("a: !mine 1", (1, 4), ("a",), "the tag !mine"),
        ("a: !!int 1", (1, 4), ("a",), "tag"),
        ("!mine {a: 1}", (1, 1), (), "tag"),
        ("a: 1\nb:\n  c: 1\n  c: 2", (4, 3), ("b", "c"), "given twice"),
        ("a: 1\n---\nb: 2", (2, 1), (), "second document"),
        ("? [a]\n: 1", (1, 3), (), "a key must be text"),
        ("x: {? {a: b} : 1}", (1, 7), ("x",), "a key must be text"),
        ("a: 1\nb: " + "[" * 40, (2, 35), ("b",), "nested deeper than 32"),
        ("a: b\nc: 中\x00", (2, 5), (), "U+0000"),
        ("a: \x1b[0m", (1, 4), (), "U+001B"),
        ("a: 'x\nb: 1", (2, 5), (), "unexpected end of stream"),
        ("a:\n\tb: 1\n", (2, 1), (), "cannot start any token"),
        ("f: @vue/core", (1, 4), (), "needs quotes"),
        ('a: "\\ud800"', (1, 7), (), ""),
        ("%YAML 9.9\n---\na: 1", (1, 1), (), "YAML"),
    ],
)
def test_what_is_refused_has_its_place(text: str, place: tuple[int, int], path: object, problem: str) -> None:
    with pytest.raises(BrokenYaml) as raised:
        read_yaml(text)
    error = raised.value
    assert problem in error.problem
    assert error.path == path
    assert (error.line, error.column) == place


TEXTS = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ["yes", "2.10", "0o17", "1e3", "12:30", "2026-01-02", "null", "~", "- a", "a: b", "a #b", "---", "a\n\nb", "a\n b\n", "\n", " a\nb", "=", "😀"]
)  # fmt: skip
ANSWERS = st.recursive(
    TEXTS | st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(ANSWERS)
@example({"k" * 1500: {"a": ["b"]}})
@example([math.inf, 1e22])
def test_any_answer_is_read_alike_by_readers_of_1_1_and_1_2(value: Any) -> None:
    written = write_yaml({"a": value})
    assert yaml.safe_load(written)["a"] == value
    assert YAML(typ="safe", pure=True).load(written)["a"] == value


def test_answers_are_easy_to_read() -> None:
    value = {
        "status": "cache-hit",
        "report": "# A\n\n中文 text\n",
        "list": ["a", {"b": None}],
        "empty": [],
        "t": "1.0",
    }
    assert write_yaml(value) == (
        "status: cache-hit\nreport: |\n  # A\n\n  中文 text\nlist:\n- a\n- b: null\nempty: []\nt: '1.0'\n"
    )
    shared = ["x"]
    assert write_yaml([shared, shared]) == "- - x\n- - x\n"
