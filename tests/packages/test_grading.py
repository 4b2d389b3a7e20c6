"""The grades that scripts/questions gives are what a reader would give."""

from pathlib import Path

from kr.models import Query
from tests.support.installed_questions import Asked, Graded, grade, load, measure, table

QUERY = Query(framework="f", framework_version="unknown", topic="t", tags=(), question="Is it dead?")
ASKED = Asked(
    kind="usual", ecosystem="npm", query=QUERY, must=(("one",), ("two", "2"), ("dead",)), is_foreign=False
)


def test_a_grade_counts_what_is_there_outside_of_the_question() -> None:
    assert grade(ASKED, "one 2 dead") == (2, ())
    assert grade(ASKED, "Is it dead? one") == (0, ("two", "dead"))
    assert grade(ASKED, "one two") == (1, ("dead",))


def test_a_package_that_is_not_there_gets_a_placeholder(tmp_path: Path) -> None:
    row = measure(ASKED, tmp_path, tmp_path / "cache", max_tokens=1_500)
    assert (row.grade, row.is_found) == (None, False)


def test_the_table_has_a_line_for_each_kind_and_ecosystem() -> None:
    row = Graded(asked=ASKED, grade=2, is_found=True, missing=(), tokens=100, seconds=1.0, report="")
    lines = table([row, row]).splitlines()
    assert [line.split()[:3] for line in lines[1:]] == [["npm", "usual", "2"], ["npm", "all", "2"]]


def test_the_questions_of_the_repository_are_read() -> None:
    assert {(one.kind, one.ecosystem) for one in load()} == {
        (k, e) for k in ("usual", "natural") for e in ("python", "npm")
    }
