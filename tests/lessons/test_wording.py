"""What kr words itself where nobody did: the issue's own remedy, the table, a remark's advice, the error's own line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.lessons.events import Finding
from kr.lessons.line import SUMMARY_COLUMNS
from kr.lessons.remedies import word_finding
from kr.text import columns


def worded(message: str, fix: str = "") -> str | None:
    found = word_finding(Finding(message=message, fix=fix))
    return found.summary if found else None


def test_the_issues_own_remedy_stands_behind_its_message() -> None:
    assert worded("v-for without a key reuses the wrong row", "give every v-for a key") == (
        "v-for without a key reuses the wrong row: give every v-for a key"
    )
    traceback = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nshop.Missing_Error: no rates\nValueError: no rates for 2031'
    assert worded(traceback, "Load the rates first") == "ValueError: no rates for 2031: Load the rates first"
    assert worded("2 tests failed", "Load the rates first") == "Load the rates first"
    assert worded("Rates are missing for 2031", "N/A") == "Rates are missing for 2031"


def test_the_table_puts_a_remedy_behind_the_errors_line() -> None:
    found = word_finding(Finding(message="TypeError: 'coroutine' object is not subscriptable"))
    assert found is not None
    assert (
        found.summary
        == "TypeError: 'coroutine' object is not subscriptable: Await the call; it returns a coroutine"
    )
    assert (found.source, found.tags, found.has_fix) == ("table", ("python",), True)


def test_an_error_that_no_row_knows_is_its_own_line_with_its_hint() -> None:
    assert worded("error: no member `lenght`\n --> a.rs:3:1\n  hint: members are `length` and `size`") == (
        "no member `lenght`; hint: members are `length` and `size`"
    )
    assert (
        worded("1 passed\nshop.RateError: no rates for 2031\nFAILED x\n1 failed")
        == "RateError: no rates for 2031"
    )


@pytest.mark.parametrize(
    ("remark", "lesson"),
    [
        (
            "The test for saveProfile only asserts toHaveBeenCalled(). It passes with the wrong id. Assert the arguments with toHaveBeenCalledWith.",
            "The test for saveProfile only asserts toHaveBeenCalled(). It passes with the wrong id. Assert the arguments with toHaveBeenCalledWith.",
        ),
        (
            "Migration 7f3a adds orders.currency as NOT NULL without a default. The table has rows, so the upgrade fails.",
            "Migration 7f3a adds orders.currency as NOT NULL without a default. The table has rows, so the upgrade fails.",
        ),
        (
            "分页查询没有使用 Page 对象。必须使用 Page 对象，直接 List 查询不支持分页参数。",
            "分页查询没有使用 Page 对象。 必须使用 Page 对象，直接 List 查询不支持分页参数。",
        ),
        (
            (
                "The story is not done. The importer reads the whole CSV into memory and dies on the 2 GB file of the customer with exit code 137. "
                "The old importer had the same problem for years. Read it in chunks with pandas.read_csv(chunksize=...)."
            ),
            "The importer reads the whole CSV into memory and dies on the 2 GB file of the customer with exit…: Read it in chunks with pandas.read_csv(chunksize=...)",
        ),
        ("The form resets on every submit", "The form resets on every submit"),
    ],
)
def test_a_remark_is_kept_whole_or_with_its_complaint_and_its_advice(remark: str, lesson: str) -> None:
    assert worded(remark) == lesson


@pytest.mark.parametrize(
    "message",
    [
        "",
        "failed",
        "N/A",
        "Exit code 1",
        "2 tests failed",
        "E   assert 'one' == 'two'",
        "AssertionError",
        "3 issues found",
    ],
)
def test_what_teaches_nothing_is_none(message: str) -> None:
    assert worded(message) is None


@given(st.text(max_size=600), st.text(max_size=200))
def test_any_words_make_one_line_or_none(message: str, fix: str) -> None:
    line = worded(message, fix)
    assert line is None or (line and columns(line) <= SUMMARY_COLUMNS and "\n" not in line)
