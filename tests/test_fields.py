"""Any bytes are read as a request document, or refused with the field and the place."""

import time
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kr.errors import InvalidRequest
from kr.requests import LIMIT, read_document
from kr.text import Tree


def refused(data: bytes | str) -> tuple[str, str]:
    with pytest.raises(InvalidRequest) as caught:
        read_document(data.encode() if isinstance(data, str) else data)
    (field,) = caught.value.fields
    return field.field, field.message


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('"\\ud83d\\ude00"', "😀"),
        ('"a\\/b"', "a/b"),
        ("2.10", "2.10"),
        ("9" * 5000, "9" * 5000),
        ("null", None),
        ('"null"', "null"),
        ("[1, null, [2.0]]", ["1", None, ["2.0"]]),
        ('"*no alias [[["', "*no alias [[["),
    ],
)
def test_json_numbers_are_the_text_that_was_written(written: str, read: Tree) -> None:
    assert read_document(f'\t{{\n\t"value":\t{written}\n}}'.encode()) == {"value": read}


@pytest.mark.parametrize("text", ["{value: '[[', other: 1,}", '{"value": "[[", "other": 1,}'])
def test_a_flow_mapping_that_is_no_json_is_yaml(text: str) -> None:
    assert read_document(text.encode()) == {"value": "[[", "other": "1"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("text", ["a: ü\r\nb: 1\r\n", '{"a": "ü", "b": 1}'])
def test_encodings(encoding: str, text: str) -> None:
    assert read_document(text.encode(encoding)) == {"a": "ü", "b": "1"}


@pytest.mark.parametrize(
    ("data", "field", "part"),
    [
        ("", "request", "empty"),
        ("- a\n", "request", "a list"),
        ("just words", "request", "plain text"),
        ("a: 1\n b: 2", "request", "line 2, column 3"),
        ('{"a": "x" "b"}', "request", "line 1, column 11"),
        ("{a: {b: 1,\n b: 2}}", "a.b", "line 2, column 2: this key is given twice"),
        ("a: &x 1\nb: {c: [0, *x]}", "b.c", "line 2, column 12: aliases"),
        ("a: !!python/object:os.system x", "a", "tag tag:yaml.org,2002:python/object:os.system"),
        (b"a: \xff", "request", "byte 3"),
        (b"\xff\xfea", "request", "utf-16"),
        ('{"a": {"b": [1, "\\ud800"]}}', "request", "line 1"),
        ('{"a": "\x07"}', "request", "U+0007"),
    ],
)
def test_refusals_name_the_field_and_the_place(data: bytes | str, field: str, part: str) -> None:
    found = refused(data)
    assert found[0] == field
    assert part in found[1]


@pytest.mark.parametrize(
    "text",
    [
        *(unit * 100_000 for unit in ("[", '{"a":', '{"a":[', "- ", "{a: ", "[{a: ")),
        '{"a": "' + '\\"' * 500_000,
        "{" + '"' * 1_000_000,
        '{"a": [' + "[]," * 300_000,
    ],
)
def test_hostile_openings_of_full_size_are_refused_quickly(text: str) -> None:
    began = time.process_time()
    refused(text)
    assert time.process_time() - began < 10


def test_the_limit_is_in_bytes() -> None:
    assert read_document(b"a: " + b"x" * (LIMIT - 3))
    assert f"larger than {LIMIT} bytes" in refused(b"a: " + b"x" * (LIMIT - 2))[1]


@settings(max_examples=400, deadline=None)
@given(
    st.one_of(
        st.binary(max_size=60),
        st.text(max_size=60).map(lambda text: text.encode("utf-8", "surrogatepass")),
        st.text(alphabet="{}[]\":,'-?|>&*!%@#\\ \n\ta1~<=u0d8", max_size=40).map(str.encode),
    )
)
@example(b'{"a":"\\')
@example(b"%TAG ! x\n--- !a b")
@example(b"a: >-9\n")
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    try:
        document = read_document(data)
    except InvalidRequest as exc:
        assert all(it.field and it.message.isprintable() for it in exc.fields)  # noqa: PT017
        return
    assert all(isinstance(text, str | bool | None) for text in leaves(dict(document)))


def leaves(tree: Tree) -> Iterator[str | None]:
    if isinstance(tree, dict):
        for key, value in tree.items():
            yield key
            yield from leaves(value)
    elif isinstance(tree, list):
        for item in tree:
            yield from leaves(item)
    else:
        yield tree
