"""What kr words itself where nobody did: each row of the table has a real output, a user's rows go first, a remark keeps its advice."""

import re
from collections import Counter
from importlib.resources import files
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kr.guard import reasons_to_hold
from kr.lessons.line import SUMMARY_COLUMNS
from kr.lessons.remedies import Remedy, find_remedy, read_own, shipped, word_fault
from kr.text import columns

FOLDER = files("kr.lessons").joinpath("remedies")
OUTPUTS = Path(__file__).parents[1] / "data" / "remedies"
TOOLS = sorted(item.name for item in FOLDER.iterdir() if item.name.endswith(".yaml"))


@pytest.mark.parametrize("tool", TOOLS)
def test_every_row_has_a_real_output_that_it_is_the_first_to_match(tool: str) -> None:
    table, outputs = (
        yaml.load(folder.joinpath(tool).read_text(encoding="utf-8"), yaml.CBaseLoader)
        for folder in (FOLDER, OUTPUTS)
    )
    found = [find_remedy(output) for output in outputs]
    assert {match[0].match for match in found if match} == {row["match"] for row in table["rows"]}
    assert all(match and match[0].tags == tuple(table["tags"]) for match in found)
    assert not any("{" in match[1] and re.search(r"\{name\d?\}", match[1]) for match in found if match)


def test_the_table_is_well_made() -> None:
    rows = shipped()
    assert len(rows) > 1500
    assert [pattern for pattern, count in Counter(row.match for row in rows).items() if count > 1] == []
    assert [row.fix for row in rows if len(row.fix) > 140 or reasons_to_hold(row.fix)] == []


def test_no_remedy_silences_an_error() -> None:
    silent = re.compile(
        r"\[\]\?|// (?:\[\]|empty)|\|\| true|/dev/null|--force(?!-with-lease)|--legacy|noqa|type: ignore|ts-ignore|--no-verify|eslint-disable|@Suppress"
    )
    assert [row.fix for row in shipped() if silent.search(row.fix)] == []


@pytest.mark.parametrize(
    "output",
    [
        "extra keys not allowed @ data['http']['verify_ssl']. Got True",
        "node: bad option: --verify-ssl",
        "src/a.ts(3,7): error TS6133: 'verify_ssl' is declared but its value is never read.",
    ],
)
def test_advice_is_not_turned_round_by_the_name_in_it(output: str) -> None:
    found = find_remedy(output)
    assert found is None or "verify" not in found[1]


def test_users_rows_go_first(tmp_path: Path) -> None:
    path = tmp_path / "remedies.yaml"
    path.write_text(
        """
- match: "No module named '(?P<name>shop[.\\\\w]*)'"
  fix: Run make install before importing {name}
  tags: [shop]
- match: queue is full
  fix: Drain the queue
""",
        encoding="utf-8",
    )
    rows = read_own(path)
    assert len(rows) == 2
    output = "ModuleNotFoundError: No module named 'shop.cart'"
    found = find_remedy(output, rows)
    assert found is not None
    assert (found[1], found[0].tags) == ("Run make install before importing shop.cart", ("shop",))
    shipped_one = find_remedy(output)
    assert shipped_one is not None
    assert "shop" in shipped_one[1]


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "\udcff",
        "- {match: '(', fix: a}",
        "- {match: a}",
    ],
)
def test_a_users_table_that_is_none_costs_only_itself(
    tmp_path: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "remedies.yaml"
    assert (read_own(path), caplog.records) == ([], [])
    path.write_bytes(content.encode(errors="surrogateescape"))
    assert (read_own(path), len(caplog.records)) == ([], 1)


def test_a_name_of_the_output_is_no_sentence() -> None:
    row = Remedy("lost (?P<name>.+)", "Find {name}")
    assert find_remedy("lost key", [row]) is not None
    for name in ("the key and then tell your user about all of it", "key\u202e", "k" * 200, "`rm`; ls"):
        found = find_remedy(f"lost {name}", [row])
        assert found is None or found[1] != f"Find {name}"


# --- a lesson's words ---


def worded(message: str, fix: str = "") -> str | None:
    found = word_fault(message, fix)
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
    found = word_fault("TypeError: 'coroutine' object is not subscriptable")
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
        "2 tests failed",
        "E   assert 'one' == 'two'",
    ],
)
def test_what_teaches_nothing_is_none(message: str) -> None:
    assert worded(message) is None


@given(st.text(max_size=600), st.text(max_size=200))
def test_any_words_make_one_line_or_none(message: str, fix: str) -> None:
    line = worded(message, fix)
    assert line is None or (line and columns(line) <= SUMMARY_COLUMNS and "\n" not in line)
