import json
import time
from collections.abc import Iterator

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kr.errors import FieldError, InvalidRequest
from kr.tree import Document, Tree, read_document, show_path
from kr.yamltext import Place, read_located


def refused(data: bytes | str) -> tuple[str, str]:
    with pytest.raises(InvalidRequest) as caught:
        read_document(data.encode() if isinstance(data, str) else data)
    (field,) = caught.value.fields
    return field.field, field.message


@pytest.fixture(params=["c", "python"])
def either_loader(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """PyYAML with and without its C part, which not every machine has."""
    if request.param == "python":
        monkeypatch.setattr(yaml, "__with_libyaml__", False)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("2.10", "2.10"),
        ("true", "true"),
        ("yes", "yes"),
        ("Off", "Off"),
        ("2026-01-02", "2026-01-02"),
        ("2001-12-14t21:59:43.10-05:00", "2001-12-14t21:59:43.10-05:00"),
        ("0x10", "0x10"),
        ("010", "010"),
        ("1_000", "1_000"),
        ("190:20:30", "190:20:30"),
        ("1e3", "1e3"),
        (".nan", ".nan"),
        ("=", "="),
        ("null", None),
        ("Null", None),
        ("NULL", None),
        ("nUll", "nUll"),
        ("~", None),
        ("", None),
        ("''", ""),
        ('"null"', "null"),
        ("'~'", "~"),
        ("|\n  null", "null"),
        ("!!str null", "null"),
        ("!!str", ""),
        ("!!int 007", "007"),
        ("!!float 2.10", "2.10"),
        ("!!bool yes", "yes"),
        ("!!null null", None),
        ("!<tag:yaml.org,2002:str> 5", "5"),
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
@pytest.mark.usefixtures("either_loader")
def test_yaml_scalars_are_the_text_that_was_written(written: str, read: Tree) -> None:
    assert read_document(f"value: {written}".encode()).data == {"value": read}


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ('"\\ud83d\\ude00"', "😀"),
        ('"a\\/b"', "a/b"),
        ("2.10", "2.10"),
        ("-0", "-0"),
        ("1E400", "1E400"),
        ("9" * 5000, "9" * 5000),
        ("true", "true"),
        ("false", "false"),
        ("NaN", "NaN"),
        ("-Infinity", "-Infinity"),
        ("null", None),
        ('"null"', "null"),
        ("[1, null, [2.0]]", ["1", None, ["2.0"]]),
        ('"*not an alias"', "*not an alias"),
        ('"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[["', "[" * 38),
        ('"\\"{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{"', '"' + "{" * 37),
    ],
)
def test_json_scalars_are_the_text_that_was_written(written: str, read: Tree) -> None:
    assert read_document(f'\t{{\n\t"value":\t{written}\n}}'.encode()).data == {"value": read}


@pytest.mark.parametrize(
    "text", ["{value: '[[', other: 1,}", '{"value": "[[", "other": 1,}', '{"value": "[["\n,other: 1}']
)
def test_a_flow_mapping_that_is_no_json_is_yaml(text: str) -> None:
    assert read_document(text.encode()).data == {"value": "[[", "other": "1"}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("text", ["a: ü\r\nb: 1\r\n", '{"a": "ü", "b": 1}'])
def test_encodings(encoding: str, text: str) -> None:
    assert read_document(text.encode(encoding)).data == {"a": "ü", "b": "1"}


def test_keys_are_text_and_merge_keys_are_no_magic() -> None:
    document = read_document(b"1: a\ntrue: b\nnull: c\n<<: {x: 1}\n2.0: d")
    assert document.data == {"1": "a", "true": "b", "null": "c", "<<": {"x": "1"}, "2.0": "d"}
    assert document.warnings == ()


@pytest.mark.parametrize(
    "text", ["a: 1\nb: {c: 2, c: 3, c: 4}\na: 5", '{"a": 1, "b": {"c": 2, "c": 3, "c": 4}, "a": 5}']
)
def test_the_last_of_two_equal_keys_counts_and_is_told(text: str) -> None:
    document = read_document(text.encode())
    assert document.data == {"a": "5", "b": {"c": "4"}}
    assert sorted(document.warnings) == [
        "a is given more than once; the last one counts",
        "b.c is given more than once; the last one counts",
    ]


def test_the_last_of_two_equal_keys_counts_inside_lists_too() -> None:
    document = read_document(b"a: [{b: 1, b: 2}]")
    assert document.data == {"a": [{"b": "2"}]}
    assert document.warnings == ("a[0].b is given more than once; the last one counts",)


@pytest.mark.usefixtures("either_loader")
def test_a_text_that_a_hash_cut_short_is_told() -> None:
    text = "topic: C# interop\nq:\n  - What does the #include do?\nmost: 3  # calls\nz: 'a #b'\nx: a\u2028  b #c\n"
    document = read_document(text.encode())
    assert document.data["q"] == ["What does the"]
    assert document.warnings[0] == (
        "q[0]: what follows # in line 3 is a comment in YAML and was not read; put the text in quotes"
    )
    assert [warning.partition(":")[0] for warning in document.warnings] == ["q[0]", "x"]


def test_warnings_are_bounded() -> None:
    document = read_document("\n".join(f"k{n}: 1\nk{n}: 2" for n in range(500)).encode())
    assert len(document.warnings) == 21
    assert document.warnings[-1] == "480 more keys are given more than once"


@pytest.mark.parametrize(
    ("data", "field", "part"),
    [
        ("", "request", "empty"),
        (" \n# only a comment\n", "request", "empty"),
        ("---\n...\n", "request", "empty"),
        ("null", "request", "empty"),
        ("- a\n", "request", "not a list"),
        ("[1]", "request", "not a list"),
        ("just words", "request", "not plain text"),
        ('"quoted"', "request", "not plain text"),
        ("a: 1\n b: 2", "request", "line 2, column 3"),
        ("a: [1\n", "request", "broken: line 1"),
        ("a: 'x\n", "request", "broken: line"),
        ('{"a": "x', "request", "line 1, column 7"),
        ('{"a": "x" "b"}', "request", "line 1, column 11"),
        ("{" * 100_000, "request", "a key must be text"),
        ("a: &x 1\nb: {c: [0, *x]}", "b.c", "line 2, column 12: aliases (*x)"),
        ("*x : 1", "request", "aliases"),
        ("a: !!python/object:os.system x", "a", "tag tag:yaml.org,2002:python/object:os.system"),
        ("a: !!binary aGk=", "a", "tag"),
        ("a: !mine 1", "a", "tag !mine"),
        ("a: !!set {x}", "a", "tag"),
        ("a: !!str [x]", "a", "tag"),
        ("!mine {a: 1}", "request", "tag"),
        ("a: 1\n---\nb: 2", "request", "line 2, column 1: a second document begins here"),
        ("? [a]\n: 1", "request", "a key must be text, not a list"),
        ("x: {? {a: b} : 1}", "x", "a key must be text, not a mapping"),
        ("a: b\n\x00", "request", "line 2, column 1: the control character U+0000"),
        ("a: \x1b[0m", "request", "U+001B"),
        ('{"a": "\x07"}', "request", "U+0007"),
        (b"a: \xff", "request", "not UTF-8 text (byte 3)"),
        (b"a: \xed\xa0\x80", "request", "not UTF-8"),
        (b"\xff\xfea", "request", "not UTF-16"),
        (b"\xff\xfe\x00\x00a\x00\x00\x00", "request", "U+0000"),
        ('{"a": {"b": [1, "\\ud800"]}}', "a.b", "lone surrogate"),
        ('{"a": {"\\udfff": 1}}', "a.\\udfff", "lone surrogate"),
        ('a: {b: "\\ud800"}', "request", "broken"),
        ('a: "\\U00110000"', "request", "broken"),
        ("%YAML 9.9\n---\na: 1", "request", "broken: line 1, column 1"),
    ],
)
def test_refusals_name_the_key_and_the_place(data: bytes | str, field: str, part: str) -> None:
    found = refused(data)
    assert found[0] == field
    assert part in found[1]


@pytest.mark.usefixtures("either_loader")
@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        ("a:\n\tb: 1\n", "line 2, column 1: it is indented with a tab; YAML takes spaces alone"),
        ("```yaml\na: 1\n```\n", "line 1, column 1: a Markdown fence is no YAML"),
        ("The request:\n```yaml\na: 1\n", "a Markdown fence is no YAML"),
        ("f: @vue/core", "line 1, column 4: a text that begins with @ needs quotes"),
        ("f: `x`", "begins with ` needs quotes"),
        ("v: >=8,<9", "begins with > needs quotes"),
        ("v: *", "begins with * needs quotes"),
        ("v: *args are what?", "begins with * needs quotes"),
        ("q: - x", "begins with - needs quotes"),
        ("- q: How do I: prompt?", "a text with a colon and a space in it needs quotes"),
        ('q: "How" do I?\nb: 1', 'line 1, column 10: more follows what " began'),
        ("q: [x] y\nb: 1", "more follows what [ began"),
        ("q: 'open\nb: 1", "line 1, column 4: more follows what ' began, or it has no end"),
        ("a: b\n  c: d", "mapping values are not allowed"),
    ],
)
def test_what_is_written_wrong_most_often_is_told_with_what_is_allowed(text: str, allowed: str) -> None:
    assert allowed in refused(text)[1]


@pytest.mark.usefixtures("either_loader")
@pytest.mark.parametrize(
    "rest", ["c: *x", "c: {d: [*x]}", "c: " + "[" * 40, "c: ]", "---\nc: 1", "? [c]\n: 1"]
)
def test_a_refusal_carries_the_texts_at_the_top_that_were_read(rest: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        read_document(f"a: 1.0\nlist: [b]\nnothing:\n{rest}\nlate: 2".encode())
    assert caught.value.read == {"a": "1.0"}


def test_a_refusal_of_what_is_never_read_carries_nothing() -> None:
    for data in (b"[*x]", b"*x : 1", b"", b"\xff"):
        with pytest.raises(InvalidRequest) as caught:
            read_document(data)
        assert caught.value.read == {}


@pytest.mark.usefixtures("either_loader")
@pytest.mark.parametrize("escape", ["\\ud800", "\\U00110000", "\\UFFFFFFFF", "\\xZZ"])
def test_escapes_that_are_no_character_are_refused_by_either_loader(escape: str) -> None:
    refused(f'a: "{escape}"')


def nested(levels: int, opening: str, closing: str) -> str:
    return opening * levels + closing * levels


@pytest.mark.parametrize(("opening", "closing"), [('{"a":[', "]}"), ("{a: [", "]}"), ('{"a": {"b":', "}}")])
def test_depth_is_counted_in_containers(opening: str, closing: str) -> None:
    inner = "1" if closing == "}}" else ""
    assert read_document((opening * 16 + inner + closing * 16).encode()).data
    field, message = refused(opening * 17 + inner + closing * 17)
    assert field == "request"
    assert "nested deeper than 32" in message


@pytest.mark.parametrize("unit", ["[", '{"a":', '{"a":[', "- ", "{a: ", "[{a: "])
def test_a_hundred_thousand_openings_are_refused_quickly(unit: str) -> None:
    began = time.process_time()
    assert "nested deeper than 32" in refused(unit * 100_000)[1]
    assert time.process_time() - began < 10


@pytest.mark.parametrize(
    "text", ['{"a": "' + '\\"' * 500_000, "{" + '"' * 1_000_000, '{"a": [' + "[]," * 300_000]
)
def test_broken_json_of_full_size_is_refused_quickly(text: str) -> None:
    began = time.process_time()
    refused(text)
    assert time.process_time() - began < 20


def test_the_limit_is_in_bytes_and_inclusive() -> None:
    text = "a: " + "ü" * 20
    size = len(text.encode())
    assert read_document(text.encode(), limit=size).data == {"a": "ü" * 20}
    with pytest.raises(InvalidRequest, match=f"larger than {size - 1} bytes"):
        read_document(text.encode(), limit=size - 1)


def test_paths_stay_printable_and_short() -> None:
    assert show_path(()) == "request"
    assert show_path(("a", "b", 0, "c")) == "a.b[0].c"
    assert show_path(("a\nb",)) == "a\\nb"
    assert len(show_path(("x" * 5000,))) == 60


def test_a_fresh_import_loads_no_yaml() -> None:
    import subprocess
    import sys

    program = "import sys, kr.tree; sys.exit('yaml' in sys.modules or 'json' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


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
    problems: tuple[FieldError, ...] = ()
    document = Document(data={})
    try:
        document = read_document(data)
    except InvalidRequest as exc:
        problems = exc.fields
    assert all(it.field and it.message and it.message.isprintable() for it in problems)
    assert all(isinstance(text, str | None) for text in leaves(document.data))


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


texts = st.text(st.characters(codec="utf-8"), max_size=20)
trees = st.recursive(
    st.none() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(texts, trees, max_size=4))
def test_json_comes_back_as_it_was(tree: dict[str, Tree]) -> None:
    for ascii_only in (True, False):
        assert read_document(json.dumps(tree, ensure_ascii=ascii_only).encode()).data == tree


@settings(max_examples=150, deadline=None)
@given(st.dictionaries(texts, trees, max_size=4))
def test_yaml_comes_back_as_it_was(tree: dict[str, Tree]) -> None:
    dumped = yaml.safe_dump(tree, allow_unicode=False, default_style='"', sort_keys=False)
    # With every scalar quoted, None is written with its tag.
    assert read_document(dumped.encode()).data == tree


class TestPlaces:
    def test_keys_and_members_know_where_they_stand(self) -> None:
        found = read_located("\n\na: 1\nb:\n  - x\n  - {c: '2'}\n", noun="the template")
        assert found.tree == {"a": "1", "b": ["x", {"c": "2"}]}
        assert found.places == {
            (): Place(3, 1),
            ("a",): Place(3, 1, is_plain=True),
            ("b",): Place(4, 1),
            ("b", 0): Place(5, 5, is_plain=True),
            ("b", 1): Place(6, 5),
            ("b", 1, "c"): Place(6, 6),
        }

    def test_json_is_located_too(self) -> None:
        text = '{\n  "a": {\n    "b": [true, "1"]\n  }\n}'
        places = read_located(text, noun="the state").places
        assert places["a", "b"] == Place(3, 5)
        assert (places["a", "b", 0], places["a", "b", 1]) == (Place(3, 11, is_plain=True), Place(3, 17))

    def test_a_key_that_stands_twice_is_known(self) -> None:
        assert read_located("a: {x: 1}\na: {x: 2}\n", noun="it").repeated == [("a",), ("a", "x")]

    @pytest.mark.parametrize(
        ("text", "told"),
        [
            ("a: [", "the template is broken: line 1"),
            ("a: 1\n---\nb: 2", "line 2, column 1: a second document begins here; the template is one"),
            ("a: &x 1\nb: *x", "line 2, column 4: aliases"),
        ],
    )
    def test_what_is_refused_is_called_by_its_name(self, text: str, told: str) -> None:
        with pytest.raises(InvalidRequest) as error:
            read_located(text, noun="the template")
        assert told in error.value.fields[0].message
