"""The events that an agent's return tells of: the trigger table of U5, and where SPEC 4.2 finds its facts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.lessons.record import MOST_EVENTS, detect, evident_events, phase_tag, read_return
from kr.models import EVENT_TYPES, PHASES
from kr.settings import Settings
from tests.support.lessons import settings_of

DEV, REVIEW, STORY, E2E = "dev-execution", "code-review", "story-review", "e2e-inspection"
STUCK = "needs-intervention"
MOST = settings_of(max_review_rounds=10, max_story_review_rounds=3)


def rows(phase: str, settings: Settings = MOST, **data: Any) -> tuple[int, ...]:
    """Return which rows of "Trigger Conditions" in U5 hold, from 1."""
    events = evident_events(phase, read_return({"status": "success", **data}), settings)
    return tuple(EVENT_TYPES.index(event) + 1 for event in events)


@pytest.mark.parametrize("limits", [MOST, settings_of()], ids=["configured", "of the seeds"])
@pytest.mark.parametrize(("phase", "most"), [(REVIEW, 10), (STORY, 3)])
def test_a_review_ends_at_its_limit_of_rounds(phase: str, most: int, limits: Settings) -> None:
    assert rows(phase, limits, status=STUCK, review_rounds=most) == (1, 4)
    assert rows(phase, limits, status=STUCK, review_rounds=most - 1) == (4,)
    assert rows(phase, limits, status="needs-fix", review_rounds=most) == ()


@pytest.mark.parametrize(
    ("status", "phase", "held"),
    [
        ("success", DEV, ()),
        ("failure", DEV, (7,)),
        ("failure", E2E, (6,)),
        ("timeout", DEV, ()),
        ("timeout", E2E, ()),
        *((word, DEV, (4,)) for word in (STUCK, "Needs Intervention", "NEEDS_INTERVENTION")),
    ],
)
def test_a_status_is_read_in_any_spelling(status: str, phase: str, held: tuple[int, ...]) -> None:
    assert rows(phase, status=status) == held


@pytest.mark.parametrize("said", [True, "true", "yes", "on", 1, " YES "])
def test_what_was_fixed_by_itself_is_seen_after_a_success_alone(said: object) -> None:
    for status, held in (("Success", (2,)), ("failure", (7,)), ("partial", ())):
        assert rows(DEV, status=status, auto_fix_applied=said) == held
    assert rows(DEV, auto_fix_applied="no") == rows(DEV, auto_fix_applied=False) == ()


def test_severe_issues_slow_researchers_and_all_at_once() -> None:
    for severity, held in (("HIGH", (3,)), ("critical", (3,)), ("medium", ())):
        assert rows(REVIEW, issues=[{"severity": severity, "message": "m"}]) == held
    for agent, held in (
        ("knowledge-researcher", (5,)),
        ("bso-knowledge-researcher", (5,)),
        ("developer", ()),
    ):
        assert rows(DEV, status="timeout", agent=agent) == held
        assert rows(DEV, agent=agent) == ()
    assert rows(E2E, status=STUCK, review_rounds=10, issues=[{"severity": "HIGH"}]) == (1, 3, 4)
    assert rows(E2E, settings_of(is_e2e_enabled=False), status="failure") == (7,)
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


@pytest.mark.parametrize("kind", ["errors", "issues"])
def test_a_fact_stands_in_any_of_its_fields(kind: str) -> None:
    for key in ("message", "description", "summary", "detail"):
        for data in ({kind: [{key: "boom"}]}, {"results": {kind: [{key: "boom"}]}}, {kind: {key: "boom"}}):
            [found] = getattr(read_return(data), kind)
            assert found.message == "boom"
    for key in ("fix", "suggestion", "recommendation", "resolution"):
        [issue] = read_return({"issues": [{"message": "m", key: "do it"}]}).issues
        assert issue.fix == "do it"


@pytest.mark.parametrize(
    ("error", "path"),
    [
        ({"path": "a.py", "line": 3}, "a.py:3"),
        ({"file": "a.py", "line": "12"}, "a.py:12"),
        ({"file": "a.py:4", "line": 12}, "a.py:4"),
        ({"file": "a.py", "line": "there"}, "a.py"),
        ({"line": 3}, None),
    ],
)
def test_an_error_says_where_it_is(error: dict[str, Any], path: str | None) -> None:
    [found] = read_return({"errors": [{"message": "boom", **error}]}).errors
    assert found.path == path


@pytest.mark.parametrize("name", ["review_rounds", "auto_fix_applied", "errors", "issues", "artifacts"])
@pytest.mark.parametrize("nothing", [None, "", []])
def test_what_is_empty_in_one_place_is_read_in_the_other(name: str, nothing: object) -> None:
    value: object = {"review_rounds": 4, "auto_fix_applied": True}.get(name, ["a"])
    alone = read_return({"status": "x", name: value})
    assert read_return({"status": "x", name: value, "results": {name: nothing}}) == alone
    assert read_return({"status": "x", "results": {name: value}, name: nothing}) == alone
    assert read_return({"status": "x"}) != alone


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


def test_a_lesson_is_of_the_tables_phase_and_a_review_stays_that_review() -> None:
    of_table = {EVENT_TYPES[0]: REVIEW, EVENT_TYPES[1]: DEV, EVENT_TYPES[2]: REVIEW, EVENT_TYPES[5]: E2E}
    for event in EVENT_TYPES:
        for phase in PHASES:
            own = of_table.get(event, phase)
            assert phase_tag(event, phase) == (phase if own == REVIEW and phase == STORY else own)
