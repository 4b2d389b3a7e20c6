"""A lesson is one line, which no text breaks, and loses of its symptom alone (SPEC 4.1, 4.2)."""

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kr.lessons.line import FIX_COLUMNS, cut, fit_summary, format_line, make_lesson, parse_lines, word_lesson
from kr.models import Lesson
from kr.text import columns

WORDS = st.lists(st.text("abcdefgh", min_size=1, max_size=30), min_size=1, max_size=30).map(" ".join)
START = "- [2026-02-07] [dev-execution]"


def lesson(summary: str, ref: str | None = None, *tags: str) -> Lesson:
    made = make_lesson("2026-02-07", ("dev-execution", *tags), summary, ref)
    assert made is not None
    return made


@pytest.mark.parametrize(
    ("summary", "line"),
    [
        ("Set it", "Set it."),
        ("Really?", "Really?"),
        ("真的吗？", "真的吗？"),
        ("on…", "on…"),
        ("设置。", "设置."),
    ],
)
def test_a_lesson_is_written_as_u5_has_it_and_read_again(summary: str, line: str) -> None:
    made = lesson(summary, "a.py")
    assert format_line(made) == f"{START} {line} Ref: a.py"
    assert parse_lines(format_line(made).encode()).lessons == (replace(made, position=0),)
    assert format_line(replace(made, ref=None)) == f"{START} {made.summary}"


@pytest.mark.parametrize(
    ("ref", "kept"),
    [
        *((nothing, None) for nothing in ("N/A", "n/a", "-", "  ", None)),
        ("\nsrc/a.py\nb.py", "src/a.py"),
        ("app/[id]/page.tsx", "app/[id]/page.tsx"),
        ("a.py - [2026-02-07] [x] y", None),
        ("a.py Ref: b.py", "a.py ref: b.py"),
    ],
)
def test_a_ref_is_a_path_and_no_second_lesson(ref: str | None, kept: str | None) -> None:
    assert lesson("Set it", ref).ref == kept


def test_a_tag_holds_nothing_that_ends_it() -> None:
    assert lesson("Set it", None, "[vue]", "a,b，c、d", "", "vue").tags == ("dev-execution", "vue", "a b c d")
    assert make_lesson("2026-02-07", ("[]", ","), "Set it", None) is None
    assert make_lesson("2026-02-07", ("vue",), " .：", None) is None


@pytest.mark.parametrize("damage", ["\0", "\udc80"])
def test_a_damaged_line_costs_itself_alone(damage: str) -> None:
    good, bad = f"{START} 设置 it", f"{START} set {damage} it"
    parsed = parse_lines(f"{good}\n{bad}\n{good}\nfree text".encode(errors="surrogateescape"))
    assert [(it.summary, it.position) for it in parsed.lessons] == [("设置 it", 0), ("设置 it", 1)]
    assert parsed.unread == 2


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
    room = text[: limit - 1]
    near = room.rfind(" ") if text[limit - 1] != " " else -1
    is_near = near > 0 and len(room) - near < 20
    assert kept == f"{(room[:near] if is_near else room).rstrip()}…"


@given(WORDS, WORDS)
def test_a_lesson_with_its_number_fits_two_lines_and_keeps_its_fix(symptom: str, fix: str) -> None:
    assume(columns(fix) <= FIX_COLUMNS)
    line, whole = word_lesson(symptom, fix), f"{symptom}: {fix}"
    assert line.endswith(f": {fix}")
    assert columns(f"10. {line}") <= 160
    assert (line == whole) == (columns(f"10. {whole}") <= 160)
    assert line == whole or columns(f"10. {line}") > 160 - 22


@pytest.mark.parametrize(
    ("symptom", "fix", "line"),
    [
        (" ;", "Set it.", "Set it"),
        ("It fails", "x" * 30, f"It fails: {'x' * 30}"),
        ("It fails", "x" * 36, f"I…: {'x' * 36}"),
        ("It fails", "x" * 38, "x" * 38),
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
    for fix in ("x" * 120, "行" * 60):
        assert fit_summary(f"{'It fails ' * 30}: {fix}", 160).endswith(f"…: {fix}")
        assert not fit_summary(f"{'It fails ' * 30}: {fix}x", 160).endswith(f"{fix}x")
