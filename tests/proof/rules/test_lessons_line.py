"""A lesson is one line, which no text breaks, and loses of its symptom alone (SPEC 4.1, 4.2); and when two say the same."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kr.lessons.line import (
    FIX_COLUMNS,
    cut,
    fit_summary,
    format_line,
    is_duplicate,
    make_lesson,
    parse_lines,
    word_lesson,
)
from kr.models import Lesson
from kr.text import columns

WORDS = st.lists(st.text("abcdefgh", min_size=1, max_size=30), min_size=1, max_size=30).map(" ".join)


def lesson(summary: str, ref: str | None = None, *tags: str) -> Lesson:
    made = make_lesson("2026-02-07", ("dev-execution", *tags), summary, ref)
    assert made is not None
    return made


# --- the line


@pytest.mark.parametrize(
    ("summary", "line"),
    [
        ("Set it", "Set it. Ref: a.py"),
        ("Really?", "Really? Ref: a.py"),
        ("Stop!", "Stop! Ref: a.py"),
        ("真的吗？", "真的吗？ Ref: a.py"),
        ("停！", "停！ Ref: a.py"),
        ("and so on…", "and so on… Ref: a.py"),
        ("设置。", "设置. Ref: a.py"),
    ],
)
def test_a_lesson_is_written_as_u5_has_it_and_read_again(summary: str, line: str) -> None:
    made = lesson(summary, "a.py")
    assert format_line(made) == f"- [2026-02-07] [dev-execution] {line}"
    assert parse_lines(format_line(made).encode()).lessons == (replace(made, position=0),)
    assert format_line(replace(made, ref=None)) == f"- [2026-02-07] [dev-execution] {made.summary}"


@pytest.mark.parametrize("stop", [".", "。", ";", "；", "!", "?", "！", "？", "…", "", "\t"])
def test_a_ref_is_read_behind_any_stop(stop: str) -> None:
    [found] = parse_lines(f"- [2026-02-07] [dev-execution] Set it{stop} Ref: src/a.py:3".encode()).lessons
    assert (found.summary.rstrip("!?！？…"), found.ref) == ("Set it", "src/a.py:3")
    [closer] = parse_lines(
        f"- [2026-02-07] [dev-execution] Set it{stop or ' '}Ref：src/a.py:3".encode()
    ).lessons
    assert (closer.summary.rstrip("!?！？…"), closer.ref) == ("Set it", "src/a.py:3")


@pytest.mark.parametrize("ref", ["N/A", "n/a", "-", "", "  ", None])
def test_a_ref_that_says_nothing_is_none(ref: str | None) -> None:
    assert lesson("Set it", ref).ref is None
    [found] = parse_lines(f"- [2026-02-07] [dev-execution] Set it. Ref: {ref or ''}".encode()).lessons
    assert (found.summary, found.ref) == ("Set it", None)


@pytest.mark.parametrize(
    ("ref", "kept"),
    [
        ("src/a.py", "src/a.py"),
        ("\nsrc/a.py\nb.py", "src/a.py"),
        ("app/[id]/page.tsx", "app/[id]/page.tsx"),
        ("a.py - [2026-02-07] [x] y", None),
        ("a.py Ref: b.py", "a.py ref: b.py"),
    ],
)
def test_a_ref_is_a_path_and_no_second_lesson(ref: str, kept: str | None) -> None:
    assert lesson("Row height must be set: set it", ref).ref == kept


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("See Ref: a.py of it", "See ref: a.py of it"),
        ("See Ref：a.py", "See ref：a.py"),
        *((f"Set it{mark}", "Set it") for mark in ".。;；,，:："),
    ],
)
def test_a_text_is_one_summary(said: str, kept: str) -> None:
    assert lesson(said).summary == kept


def test_a_tag_holds_nothing_that_ends_it() -> None:
    assert lesson("Set it", None, "[vue]", "a,b，c、d", "", "vue").tags == ("dev-execution", "vue", "a b c d")
    assert make_lesson("2026-02-07", ("[]", ","), "Set it", None) is None
    assert make_lesson("2026-02-07", ("vue",), " .：", None) is None


@pytest.mark.parametrize("damage", ["\0", "\udc80"])
def test_a_damaged_line_costs_itself_alone(damage: str) -> None:
    good, bad = "- [2026-02-07] [vue] 设置 it", f"- [2026-02-07] [vue] set {damage} it"
    content = f"{good}\n{bad}\n{good}\nfree text".encode(errors="surrogateescape")
    parsed = parse_lines(content)
    assert [(it.summary, it.position) for it in parsed.lessons] == [("设置 it", 0), ("设置 it", 1)]
    assert parsed.unread == 2


def test_a_lesson_that_is_in_no_file_has_no_place() -> None:
    assert lesson("Set it").position < 0


def test_a_lesson_has_the_same_id_in_every_version_since_the_database_knows_it_by_that() -> None:
    one = Lesson("2026-02-07", ("dev-execution", "vue"), "Set it", "src/a.py:3")
    assert one.id == "e2e61d4be6a5b4a0"
    assert Lesson("2026-02-07", ("dev-execution",), "Set \udc80", None).id == "1ab10e2ed04a14a3"


# --- fitting


@given(WORDS, st.integers(2, 200))
def test_what_is_cut_is_a_beginning_and_ends_behind_a_word_where_one_ends_near(text: str, limit: int) -> None:
    kept = cut(text, limit)
    assert columns(kept) <= limit
    if len(text) <= limit:
        assert kept == text
        return
    assert kept.endswith("…")
    assert text.startswith(kept[:-1])
    room = text[: limit - 1]
    near = room.rfind(" ") if text[limit - 1] != " " else -1
    assert kept[:-1] == (room[:near].rstrip() if near > 0 and len(room) - near < 20 else room.rstrip())


@given(st.text("虚拟滚动行高", min_size=1, max_size=60), st.integers(2, 60))
def test_a_wide_letter_takes_two_columns(text: str, limit: int) -> None:
    kept = cut(text, limit)
    assert columns(kept) <= limit
    assert kept == text or len(kept) == (limit - 1) // 2 + (1 if limit > 2 else 0)


@pytest.mark.parametrize(
    ("text", "kept"),
    [("call it (and more", "call it…"), ("one, two three", "one…"), ("one: twothree", "one…")],
)
def test_no_mark_stands_before_the_ellipsis(text: str, kept: str) -> None:
    assert cut(text, {"c": 11, "o": 7}[text[0]]) == kept


@given(WORDS, WORDS)
def test_a_lesson_with_its_number_fits_two_lines_and_keeps_its_fix(symptom: str, fix: str) -> None:
    assume(columns(fix) <= FIX_COLUMNS)
    line = word_lesson(symptom, fix)
    assert columns(f"10. {line}") <= 160
    assert line.endswith(f": {fix}")
    is_whole = columns(f"10. {symptom}: {fix}") <= 160
    assert (line == f"{symptom}: {fix}") == is_whole
    if not is_whole:
        assert columns(f"10. {line}") > 160 - 22


@pytest.mark.parametrize(
    ("symptom", "fix", "line"),
    [
        ("", "Set it", "Set it"),
        (" ;", "Set it.", "Set it"),
        ("It fails", "x" * 30, f"It fails: {'x' * 30}"),
        ("It fails", "x" * 36, f"I…: {'x' * 36}"),
        ("It fails", "x" * 38, "x" * 38),
        ("It fails", "x" * 40, "x" * 40),
        ("It fails", "x" * 41, f"{'x' * 39}…"),
    ],
)
def test_a_fix_for_whose_symptom_there_is_no_room_stands_alone(symptom: str, fix: str, line: str) -> None:
    assert word_lesson(symptom, fix, 40) == line


@given(WORDS, WORDS, st.integers(125, 200))
def test_a_line_that_somebody_wrote_loses_of_its_first_half(symptom: str, fix: str, limit: int) -> None:
    assume(columns(fix) <= FIX_COLUMNS)
    text = f"{symptom}: {fix}"
    fitted = fit_summary(text, limit)
    assert columns(fitted) <= limit
    assert (fitted == text) == (columns(text) <= limit)
    assert fitted.endswith(f": {fix}")


def test_a_fix_of_120_columns_stays_whole_and_a_longer_one_is_cut() -> None:
    for fix in ("x" * FIX_COLUMNS, "行" * (FIX_COLUMNS // 2)):
        assert fit_summary(f"{'It fails ' * 30}: {fix}", 160).endswith(f"…: {fix}")
        assert not fit_summary(f"{'It fails ' * 30}: {fix}x", 160).endswith(f"{fix}x")
    assert FIX_COLUMNS == 120


# --- the same twice


def test_lessons_that_are_known_are_found_again() -> None:
    one = lesson("Row height must be set for virtual scrolling: set it")
    assert is_duplicate(lesson("Row height must be set for virtual scrolling: set it now"), one)
    assert not is_duplicate(lesson("A port is taken already: choose another one"), one)
