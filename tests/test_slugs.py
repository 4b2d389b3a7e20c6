import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.slugs import Name, base_name, kebab, suffixed_name
from kr.text import fold

_NASTY = [
    "../../etc", "..", "/", "\\\\server\\share", "CON", "com1.txt", "LPT0", "aux.", "a" * 300, "漢" * 300, "e\u0301" * 200, "🎉🎉", "\u0301",
    "  trailing. ", "组件 生命周期", "\u202egnp.exe", "\u200d", "\u3164", "\ud800", "-rf", "~root", "a:b", "x\x00y", "ﬁle", "İstanbul", "1️⃣",
]  # fmt: skip
_ANY_TEXT = st.text(st.characters(codec=None), max_size=400) | st.sampled_from(_NASTY)
_WINDOWS_DEVICES = {"con", "prn", "aux", "nul"} | {f"{d}{n}" for d in ("com", "lpt") for n in range(10)}


def _segments(name: Name) -> list[str]:
    folder, *rest = name.path.split("/")
    assert folder == "frameworks"
    assert len(rest) == 2
    assert rest[1].endswith(".md")
    return rest


def _assert_safe(segment: str) -> None:
    assert 0 < len(segment.encode()) <= 100
    stem = segment.removesuffix(".md")
    assert stem
    assert stem not in _WINDOWS_DEVICES
    assert stem[0] != "-"
    assert stem[-1] != "-"
    assert all(char == "-" or unicodedata.category(char)[0] in "LMN" for char in stem), stem
    assert unicodedata.normalize("NFC", stem) == stem


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Next.js", "next-js"),
        ("@scope/pkg", "scope-pkg"),
        ("virtual scrolling configuration", "virtual-scrolling-configuration"),
        ("C", "c"),
        ("C++", "c"),
        ("C#", "c"),
        ("  Ｖｕｅ  ", "vue"),
        ("Straße", "strasse"),
        ("组件 生命周期", "组件-生命周期"),
        ("cafe\u0301", "café"),
        ("a\u200db", "ab"),
        ("../../etc", "etc"),
        ("snake_case", "snake-case"),
        ("हिन्दी", "हिन्दी"),
        ("١٢٣", "١٢٣"),
        ("🎉", ""),
        ("...", ""),
        ("\u0301", ""),
    ],
)
def test_kebab(text: str, expected: str) -> None:
    assert kebab(text) == expected


@pytest.mark.parametrize(
    "twin", ["a\u200bb", "\u202eab\u202c", "ab\ufeff", "A\u00adB", "a\u3164b", "a\ufe0fb"]
)
def test_names_that_look_alike_are_one(twin: str) -> None:
    assert fold(twin) == "ab"
    assert base_name(twin, "t") == base_name("ab", "t")


@given(_ANY_TEXT, _ANY_TEXT)
def test_any_name_is_safe(framework: str, topic: str) -> None:
    for name in (base_name(framework, topic), suffixed_name(framework, topic)):
        folder, file = _segments(name)
        _assert_safe(folder)
        _assert_safe(file)
        assert name.id == f"{folder}-{file.removesuffix('.md')}"


@given(_ANY_TEXT)
def test_fold_and_kebab_are_stable(text: str) -> None:
    assert fold(fold(text)) == fold(text)
    assert kebab(kebab(text)) == kebab(text)
    assert kebab(fold(text)) == kebab(text)


@given(st.text(max_size=40), st.text(max_size=40))
def test_equal_folded_pairs_have_equal_names(framework: str, topic: str) -> None:
    twin = (f"  {fold(framework)} ", fold(topic))
    assert base_name(*twin) == base_name(framework, topic)
    assert suffixed_name(*twin) == suffixed_name(framework, topic)


@given(st.tuples(_ANY_TEXT, _ANY_TEXT), st.tuples(_ANY_TEXT, _ANY_TEXT))
def test_different_pairs_never_share_a_suffixed_name(one: tuple[str, str], other: tuple[str, str]) -> None:
    if tuple(map(fold, one)) != tuple(map(fold, other)):
        assert suffixed_name(*one).id != suffixed_name(*other).id
        assert suffixed_name(*one).path != suffixed_name(*other).path


def test_pairs_that_share_a_kebab_form() -> None:
    pairs = [("C", "pointers"), ("C++", "pointers"), ("C#", "pointers"), ("c", "pointers!")]
    assert len({base_name(*pair) for pair in pairs}) == 1
    names = [base_name(*pairs[0]), *(suffixed_name(*pair) for pair in pairs)]
    assert len({name.id for name in names}) == len({name.path for name in names}) == len(names)
    assert base_name("a-b", "c").id == base_name("a", "b-c").id
    assert suffixed_name("a-b", "c").id != suffixed_name("a", "b-c").id


def test_names_are_the_same_in_another_process() -> None:
    code = "from kr.slugs import suffixed_name; name = suffixed_name('C++', 'ｐointers'); print(name.id, name.path, sep='\\n')"
    shown = subprocess.run(
        [sys.executable, "-c", code], check=True, capture_output=True, text=True, env={"PYTHONHASHSEED": "7"}
    )
    name = suffixed_name("c++", " Pointers")
    assert shown.stdout.split() == [name.id, name.path]
