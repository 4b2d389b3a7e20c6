"""The events that an agent's return tells of: the trigger table of U5, and where SPEC 4.2 finds its facts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.lessons.events import MOST_EVENTS, detect, phase_tag, read_return
from kr.lessons.record import evident_events
from kr.models import EVENT_TYPES, PHASES
from kr.settings import Settings
from tests.support.lessons import settings_of

DEV, REVIEW, E2E = "dev-execution", "code-review", "e2e-inspection"
MOST = settings_of(max_review_rounds=10, max_story_review_rounds=3)


def rows(data: dict[str, Any], phase: str = DEV, settings: Settings = MOST) -> tuple[str, ...]:
    return evident_events(phase, read_return(data), settings)


@pytest.mark.parametrize(
    ("data", "phase", "events"),
    [
        ({"status": "needs-intervention", "review_rounds": 10}, REVIEW, (1, 4)),
        ({"status": "needs-intervention", "review_rounds": 9}, REVIEW, (4,)),
        ({"status": "needs-fix", "review_rounds": 10}, REVIEW, ()),
        ({"status": "needs-intervention", "review_rounds": 3}, "story-review", (1, 4)),
        ({"status": "needs-intervention", "review_rounds": 2}, "story-review", (4,)),
        ({"status": "needs-intervention", "review_rounds": 3}, REVIEW, (4,)),
        ({"status": "needs-intervention"}, DEV, (4,)),
        ({"status": "success", "auto_fix_applied": True}, DEV, (2,)),
        ({"status": "success", "auto_fix_applied": False}, DEV, ()),
        ({"status": "failure", "auto_fix_applied": True}, DEV, (7,)),
        ({"status": "partial", "auto_fix_applied": True}, DEV, ()),
        ({"status": "success", "issues": [{"severity": "HIGH", "message": "m"}]}, REVIEW, (3,)),
        ({"status": "success", "issues": [{"severity": "critical", "message": "m"}]}, REVIEW, (3,)),
        ({"status": "success", "issues": [{"severity": "medium", "message": "m"}]}, REVIEW, ()),
        ({"status": "timeout", "agent": "knowledge-researcher"}, DEV, (5,)),
        ({"status": "timeout", "agent": "bso-knowledge-researcher"}, DEV, (5,)),
        ({"status": "timeout", "agent": "developer"}, DEV, ()),
        ({"status": "success", "agent": "knowledge-researcher"}, DEV, ()),
        ({"status": "failure"}, E2E, (6,)),
        ({"status": "timeout"}, E2E, ()),
        ({"status": "failure"}, DEV, (7,)),
        ({"status": "timeout"}, DEV, ()),
        (
            {"status": "needs-intervention", "review_rounds": 10, "issues": [{"severity": "HIGH"}]},
            E2E,
            (1, 3, 4),
        ),
    ],
)
def test_a_row_of_the_table_holds_where_all_its_conditions_do(
    data: dict[str, Any], phase: str, events: tuple[int, ...]
) -> None:
    """The numbers are the rows of "Trigger Conditions" in U5."""
    assert rows(data, phase) == tuple(EVENT_TYPES[row - 1] for row in events)


def test_who_says_nothing_gets_the_limits_of_the_seeds() -> None:
    settings = settings_of()
    for phase, most in ((REVIEW, 10), ("story-review", 3)):
        reached = {"status": "needs-intervention", "review_rounds": most}
        assert EVENT_TYPES[0] in rows(reached, phase, settings)
        assert EVENT_TYPES[0] not in rows({**reached, "review_rounds": most - 1}, phase, settings)
    assert rows({"status": "failure"}, E2E, settings) == (EVENT_TYPES[5],)
    assert rows({"status": "failure"}, E2E, settings_of(is_e2e_enabled=False)) == (EVENT_TYPES[6],)


def test_one_return_makes_three_lessons_at_most() -> None:
    assert MOST_EVENTS == 3


@given(st.sampled_from(EVENT_TYPES), st.sampled_from(PHASES), st.sampled_from(["failure", "needs-fix"]))
def test_what_was_declared_is_seen_in_the_tables_order_unless_all_went_well(
    declared: Any, phase: str, status: str
) -> None:
    returned = read_return({"status": status, "errors": ["boom"]})
    shown = evident_events(phase, returned, MOST)
    seen = detect(declared, returned, shown)
    assert declared in seen
    assert list(seen) == sorted(seen, key=EVENT_TYPES.index)
    assert set(seen) - {declared} == set(shown) - {declared, EVENT_TYPES[6]}
    assert detect(declared, read_return({"status": "success"}), ()) == ()


@pytest.mark.parametrize("said", [True, "true", "yes", "on", "1", 1, " YES "])
@pytest.mark.parametrize(
    ("status", "is_seen"), [("success", True), ("Success", True), ("failure", False), ("partial", False)]
)
def test_what_was_fixed_by_itself_is_seen_after_a_success_alone(
    status: str, said: object, *, is_seen: bool
) -> None:
    assert (EVENT_TYPES[1] in rows({"status": status, "auto_fix_applied": said})) == is_seen
    assert EVENT_TYPES[1] not in rows({"status": status, "auto_fix_applied": "no"})


@pytest.mark.parametrize("word", ["needs-intervention", "Needs Intervention", "NEEDS_INTERVENTION"])
def test_a_status_is_read_in_any_spelling(word: str) -> None:
    assert rows({"status": word}) == (EVENT_TYPES[3],)


@pytest.mark.parametrize("key", ["message", "description", "summary", "detail"])
@pytest.mark.parametrize("kind", ["errors", "issues"])
def test_an_error_says_what_is_wrong_in_any_of_four_fields(key: str, kind: str) -> None:
    for data in ({kind: [{key: "boom"}]}, {"results": {kind: [{key: "boom"}]}}, {kind: {key: "boom"}}):
        [found] = getattr(read_return(data), kind)
        assert found.message == "boom"


@pytest.mark.parametrize("key", ["fix", "suggestion", "recommendation", "resolution"])
def test_a_remedy_stands_in_any_of_four_fields(key: str) -> None:
    [issue] = read_return({"issues": [{"message": "m", key: "do it"}]}).issues
    assert issue.fix == "do it"


@pytest.mark.parametrize(
    ("error", "path"),
    [
        ({"file": "a.py"}, "a.py"),
        ({"path": "a.py", "line": 3}, "a.py:3"),
        ({"file": "a.py", "line": "12"}, "a.py:12"),
        ({"file": "a.py:4", "line": 12}, "a.py:4"),
        ({"file": "a.py", "line": "there"}, "a.py"),
        ({"file": "a.py", "line": 123_456_789}, "a.py:123456789"),
        ({"line": 3}, None),
        ({}, None),
    ],
)
def test_an_error_says_where_it_is(error: dict[str, Any], path: str | None) -> None:
    [found] = read_return({"errors": [{"message": "boom", **error}]}).errors
    assert found.path == path


@given(
    st.sampled_from(["review_rounds", "auto_fix_applied", "errors", "issues", "artifacts"]),
    st.sampled_from([None, "", [], {}]),
)
def test_what_is_empty_in_one_place_is_read_in_the_other(name: str, nothing: object) -> None:
    value: object = {"review_rounds": 4, "auto_fix_applied": True}.get(name, ["a"])
    alone = read_return({"status": "x", name: value})
    if nothing != {}:
        assert read_return({"status": "x", name: value, "results": {name: nothing}}) == alone
        assert read_return({"status": "x", "results": {name: value}, name: nothing}) == alone
    assert read_return({"status": "x"}) != alone


def test_what_an_agent_says_of_itself_is_kept_as_it_came() -> None:
    returned = read_return({"status": "X", "summary": " All is lost. ", "agent": "Dev_One"})
    assert (returned.summary, returned.status, returned.agent) == ("All is lost.", "x", "dev-one")
    assert (returned.errors, returned.artifacts) == ((), ())


@given(st.integers(18_000, 90_000), st.integers(1, 400))
def test_a_long_text_keeps_its_beginning_and_its_end_and_no_torn_line(size: int, width: int) -> None:
    """Half a line might be half a secret."""
    lines = [f"{number:06d}{'x' * width}" for number in range(size // (width + 7) + 1)]
    [found] = read_return({"errors": ["\n".join(lines)]}).errors
    kept = found.message.split("\n")
    assert set(kept) <= set(lines)
    assert (kept[0], kept[-1]) == (lines[0], lines[-1])
    assert len(found.message) <= 20_001
    if len("\n".join(lines)) > 20_001:
        assert len(found.message) > 20_000 - 3 * (width + 7)
        assert kept != lines


def test_a_lesson_is_of_the_tables_phase_and_a_review_stays_that_review() -> None:
    of_table = {EVENT_TYPES[0]: REVIEW, EVENT_TYPES[1]: DEV, EVENT_TYPES[2]: REVIEW, EVENT_TYPES[5]: E2E}
    for event in EVENT_TYPES:
        for phase in PHASES:
            own = of_table.get(event, phase)
            is_review = own == REVIEW and phase == "story-review"
            assert phase_tag(event, phase) == (phase if is_review else own)
