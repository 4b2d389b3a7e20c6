"""What an item tells, checked: pure, with the moment passed in."""

from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from kr.naming import base_name, suffixed_name
from kr.store.importing import Departure, Incoming
from kr.transfer.read_index import BadItem, check_item, check_path
from kr.tree import Tree

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ITEM: dict[str, Tree] = {"framework": "vue", "topic": "slots", "path": "frameworks/vue/slots.md"}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)


def check(*, archived: bool = False, **changes: Any) -> Incoming:
    return check_item({**ITEM, **changes}, now=NOW, archived=archived)


def refusal(**changes: Any) -> str:
    with pytest.raises(BadItem) as refused:
        check(**changes)
    return str(refused.value)


def test_what_is_not_told_is_none() -> None:
    told = check()
    assert (told.id, told.framework_version, told.tags) == (None, None, None)
    assert (told.created, told.last_accessed, told.departure) == (None, None, None)
    assert told.status == "fresh"


@pytest.mark.parametrize("field", ["framework", "topic", "path"])
@pytest.mark.parametrize("value", [None, "", "  ", "\n"])
def test_what_is_required(field: str, value: str | None) -> None:
    assert refusal(**{field: value}) == f"{field}: required, but missing"


@pytest.mark.parametrize(
    "field", ["id", "framework", "framework_version", "topic", "path", "created", "status"]
)
def test_texts_are_no_lists(field: str) -> None:
    assert refusal(**{field: ["a"]}) == f"{field}: must be text, not a list"
    assert refusal(**{field: {"a": "b"}}) == f"{field}: must be text, not a mapping"


def test_texts_stay_as_they_are() -> None:
    told = check(topic="one:\ntwo 虚拟 🎉", framework_version="2.10", id="yes", tags=["null", "a, b"])
    assert (told.topic, told.framework_version) == ("one:\ntwo 虚拟 🎉", "2.10")
    assert (told.id, told.tags) == ("yes", ("null", "a, b"))


@pytest.mark.parametrize("field", ["framework", "topic", "id", "path", "framework_version"])
@pytest.mark.parametrize("sign", ["\x00", "\x1b", "\x7f", "\x9b", "\ud800"])
def test_control_characters_are_refused(field: str, sign: str) -> None:
    message = f"{field}: must not contain control characters (found U+{ord(sign):04X})"
    assert refusal(**{field: f"a{sign}b"}) == message


def test_a_merge_key_is_named() -> None:
    assert refusal(**{"<<": {"framework": "vue"}}) == "<<: a merge key is not followed: write the fields out"


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
        ("2026-01-20T10:00:00Z", "2026-01-20T10:00:00.000000Z"),
        ("2026-11-22", None),
        ("9999-12-31T23:59:59-12:00", "bad"),
        ("2026-13-01", "bad"),
        ("yesterday", "bad"),
    ],
)
def test_times(written: str, stored: str | None) -> None:
    if stored == "bad":
        assert refusal(last_accessed=written).startswith("last_accessed: must be a date such as 2026-01-20")
    else:
        assert check(last_accessed=written).last_accessed == stored


def test_status() -> None:
    assert check(status="Stale").status == "stale"
    assert refusal(status="gone") == 'status: must be fresh, stale or archived, not "gone"'


def test_archived_by_status_or_by_file() -> None:
    assert check(status="archived").departure == Departure(at=None, reason="manual")
    told = check(archived=True, status="fresh", archived_at="2026-02-01", reason="lru")
    assert told.departure == Departure(at="2026-02-01", reason="lru")
    assert check(status="archived", reason="no idea", archived_at="2099-01-01").departure == Departure(
        at=None, reason="manual"
    )


@pytest.mark.parametrize(
    "path",
    [
        "/etc/passwd.md",
        "../x.md",
        "a/../../x.md",
        "a/..",
        "..",
        ".",
        "C:/x.md",
        "c:x.md",
        "a\\b.md",
        "..\\x.md",
        "kr.db",
        "kr.db-wal",
        "index.yaml",
        "_archived-index.yaml",
        "lessons/_lessons-learned.md",
        "Lessons/x.md",
        ".git/x.md",
        "a/.hidden.md",
        "a\nb.md",
        "a\tb.md",
        "x" * 300 + ".md",
        "a/" * 600 + "x.md",
        "a.sh",
        "frameworks/vue/",
    ],
)
def test_hostile_paths_are_refused(path: str) -> None:
    assert refusal(path=path).startswith("path: ")


@pytest.mark.parametrize(
    ("path", "plain"),
    [
        ("frameworks/vue/slots.md", "frameworks/vue/slots.md"),
        ("./frameworks//vue/slots.md", "frameworks/vue/slots.md"),
        ("框架/虚拟 滚动.md", "框架/虚拟 滚动.md"),
        ("x.MD", "x.MD"),
    ],
)
def test_paths_in_their_plain_form(path: str, plain: str) -> None:
    assert check(path=path).path == plain


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
        told = check_item({**ITEM, **fields}, now=NOW, archived=False)
    except BadItem:
        return
    assert told.framework.strip()
    assert told.topic.strip()
