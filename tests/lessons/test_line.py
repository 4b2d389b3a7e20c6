import unicodedata
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.lessons.line import (
    fit_summary,
    format_line,
    make_lesson,
    parse_lines,
    word_lesson,
)
from kr.models import Lesson
from kr.text import columns, one_line

_ANY = st.text(st.characters(codec=None), max_size=120)


def lesson(summary: str, ref: str | None = None, tags: tuple[str, ...] = ("dev-execution",)) -> Lesson:
    return Lesson(date="2026-02-07", tags=tags, summary=summary, ref=ref)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "- [2026-02-07] [dev-execution] vue-easytable 必须显式设置 row-height prop. Ref: src/YokoEasyTable.vue:142",
            lesson(
                "vue-easytable 必须显式设置 row-height prop",
                "src/YokoEasyTable.vue:142",
            ),
        ),
        ("- [2026-02-07] [dev-execution] Set the key", lesson("Set the key")),
        ("- [2026-02-07] [dev-execution] Set the key.", lesson("Set the key.")),
        (
            "- [2026-02-07] [dev-execution, vue] Set it. Ref: a b.vue",
            lesson("Set it", "a b.vue", ("dev-execution", "vue")),
        ),
        (
            "- [2026-02-07] [ dev-execution ，vue] 设置。Ref：a.vue:1",
            lesson("设置", "a.vue:1", ("dev-execution", "vue")),
        ),
        ("- [2026-02-07] [dev-execution] Really? Ref: a", lesson("Really?", "a")),
        ("- [2026-02-07] [dev-execution] Set it. Ref: N/A", lesson("Set it")),
        ("- [2026-02-07] [dev-execution] useRef: give it null", lesson("useRef: give it null")),
        ("- [2026-02-07] [dev-execution] Two. Ref: a. Ref: b", lesson("Two. Ref: a", "b")),
        ("- [2026-02-07] [dev-execution] with CR. Ref: a\r", lesson("with CR", "a")),
    ],
)
def test_lines_that_are_lessons(line: str, expected: Lesson) -> None:
    assert parse_lines(line.encode()).lessons == (replace(expected, position=0),)


@pytest.mark.parametrize(
    "line",
    [
        "",
        "# Lessons Learned",
        "> Format: - [YYYY-MM-DD] [phase-tag] Summary. Ref: file/path:line",
        "- [2026-02-32] [dev-execution] no such day",
        "- [2026-2-7] [dev-execution] short date",
        "- [2026-02-07] [] no tag",
        "- [2026-02-07] [dev-execution]",
        "- [2026-02-07] [dev-execution] Ref: only/a/ref",
        "  - [2026-02-07] [dev-execution] indented",
        "- [٢٠٢٦-٠٢-٠٧] [dev-execution] other digits",
    ],
)
def test_lines_that_are_none(line: str) -> None:
    assert parse_lines(line.encode()).lessons == ()


def test_only_a_line_feed_ends_a_line() -> None:
    inside = "a\rb\x0bc\x0cd\x1ce\x85f\u2028g\u2029h"
    parsed = parse_lines(f"- [2026-02-07] [x] {inside}\n- [2026-02-07] [x] other\n".encode())
    assert len(parsed.lessons) == 2
    assert one_line(parsed.lessons[0].summary) == "a b c de f g h"


@given(_ANY, st.none() | _ANY, st.lists(_ANY, max_size=3))
def test_a_clean_lesson_survives_the_file(summary: str, ref: str | None, tags: list[str]) -> None:
    made = make_lesson("2026-02-07", ("dev-execution", *tags), summary, ref)
    if made is None:
        return
    line = format_line(made)
    assert "\n" not in line
    assert parse_lines(f"{line}\n{line}\n".encode()).lessons == (
        replace(made, position=0),
        replace(made, position=1),
    )
    assert not any(unicodedata.category(char) in {"Cc", "Zl", "Zp"} for char in line)
    line.encode()


@given(_ANY, _ANY, st.integers(30, 200))
def test_any_words_fit_two_lines(symptom: str, fix: str, limit: int) -> None:
    assert columns(word_lesson(symptom, fix, limit)) <= limit
    assert columns(fit_summary(one_line(f"{symptom}: {fix}"), limit)) <= limit
