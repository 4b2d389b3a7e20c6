"""The events that an agent's return tells of: the trigger table of U5, and where SPEC 4.2 finds its facts."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.lessons.record import detect, evident_events, phase_tag, read_return
from kr.models import EVENT_TYPES, PHASES
from tests.support.lessons import settings_of

DEV, REVIEW, STORY, E2E = "dev-execution", "code-review", "story-review", "e2e-inspection"
MOST = settings_of(max_review_rounds=10, max_story_review_rounds=3)


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
