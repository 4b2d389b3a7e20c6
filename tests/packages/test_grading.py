"""The grades that scripts/questions gives are what a reader would give."""

from dataclasses import replace

from tests.support.installed_questions import FLOORS as FLOORS_OF_INSTALLED
from tests.support.installed_questions import Asked, Graded, grade, load, totals
from tests.support.questions import FLOORS, Case, Outcome, fallen

ASKED = Asked(group="g", framework="f", question="Is it dead?", must=(("one",), ("two", "2"), ("dead",)))


def test_a_grade_counts_what_is_there_outside_of_the_question() -> None:
    assert grade(ASKED, "one 2 dead") == (2, ())
    assert grade(ASKED, "Is it dead? one") == (0, ("two", "dead"))
    assert grade(ASKED, "one two") == (1, ("dead",))
    assert grade(ASKED, "") == (0, ("one", "two", "dead"))


def test_the_goals_are_held_against_all_questions() -> None:
    row = Graded(asked=ASKED, grade=2, given=2, missing=(), tokens=100, seconds=1.0, report="")
    assert totals([row] * 10).missed == []
    assert [text.split(":")[0] for text in totals([row] * 5 + [replace(row, grade=0)] * 5).missed] == [
        "graded 2",
        "graded 0",
    ]
    skeletons = totals([row] * 5 + [replace(row, grade=None)] * 5)
    assert [text.split(":")[0] for text in skeletons.missed] == ["graded 2"]
    assert len(totals([replace(row, tokens=4_000)] * 3).missed) == 2


def test_groups_with_floors_of_their_own_are_held_to_them() -> None:
    group = next(group for group, floors in FLOORS_OF_INSTALLED.items() if floors.foreign < 1.0)
    asked = replace(ASKED, group=group)
    foreign = Graded(
        asked=replace(asked, is_foreign=True), grade=0, given=0, missing=(), tokens=1, seconds=1.0, report=""
    )
    row = replace(foreign, asked=asked, grade=2, summary=True)
    told = totals([row, foreign])
    assert (told.foreign, told.foreign_asked) == (1, 1)
    assert [text.split(":")[0] for text in told.missed] == ["not documented and answered"]
    assert totals([row, replace(foreign, grade=None)]).missed == []


def test_a_fall_is_told() -> None:
    case = Case(group="dev", framework="f", question="?", expect=())
    good = Outcome(case=case, summary=True, top=True, anywhere=True, answered=True)
    assert fallen("dev", [good]) == []
    assert len(fallen("dev", [good, Outcome(case=case), Outcome(case=case)])) == len(FLOORS["dev"])


def test_the_questions_are_complete() -> None:
    asked = load()
    assert len([one for one in asked if one.group == "forty"]) == 40
    assert len([one for one in asked if one.group.startswith("stories")]) == 468
    assert all(one.is_foreign or (one.must and all(one.must)) for one in asked)
