from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.lessons.record import detect, evident_events, read_return
from kr.models import EVENT_TYPES, PHASES, EventType
from tests.support.lessons import settings_of

GENERAL: EventType = "general_agent_failure"
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=20,
)


def found(
    data: dict[str, Any], declared: EventType = GENERAL, phase: str = "dev-execution", **limits: Any
) -> list[str]:
    returned = read_return(data)
    return list(detect(declared, returned, evident_events(phase, returned, settings_of(**limits))))


def rounds(count: object) -> dict[str, Any]:
    return {"status": "needs-intervention", "results": {"review_rounds": count}}


@pytest.mark.parametrize(
    ("data", "phase", "expected"),
    [
        (rounds("10"), "code-review", ["review_max_rounds", "agent_needs_intervention"]),
        (rounds(9), "code-review", ["agent_needs_intervention"]),
        (rounds("3"), "story-review", ["review_max_rounds", "agent_needs_intervention"]),
        (rounds("2"), "story-review", ["agent_needs_intervention"]),
        (
            {"status": "success", "results": {"auto_fix_applied": True}},
            "dev-execution",
            ["dev_failure_auto_fixed"],
        ),
        (
            {"status": "needs-fix", "results": {"issues": [{"severity": "High"}]}},
            "code-review",
            ["high_severity_issues"],
        ),
        (
            {"status": "timeout", "agent": "bso_Knowledge Researcher"},
            "dev-execution",
            ["knowledge_researcher_timeout"],
        ),
        ({"status": "failure"}, "e2e-inspection", ["e2e_verification_failure"]),
        ({"status": "failure"}, "dev-execution", ["general_agent_failure"]),
        ({"status": "Needs_Intervention"}, "story-creation", ["agent_needs_intervention"]),
    ],
)
def test_every_row_of_the_trigger_table(data: dict[str, Any], phase: str, expected: list[str]) -> None:
    declared = next(event for event in EVENT_TYPES if event == expected[0])
    assert found(data, declared, phase) == expected


def test_limits_are_the_configured_ones() -> None:
    assert "review_max_rounds" in found(
        rounds(4), "agent_needs_intervention", "code-review", max_review_rounds=4
    )
    assert found({"status": "failure"}, GENERAL, "e2e-inspection", is_e2e_enabled=False) == [
        "general_agent_failure"
    ]


@given(_JSON, _JSON, _JSON, st.sampled_from(EVENT_TYPES), st.sampled_from(PHASES))
def test_any_shape_is_read(status: Any, errors: Any, results: Any, declared: EventType, phase: str) -> None:
    returned = read_return({"status": status, "errors": errors, "results": results, "agent": results})
    seen = detect(declared, returned, evident_events(phase, returned, settings_of()))
    assert list(seen) == sorted(seen, key=EVENT_TYPES.index)
    assert (declared in seen) or not seen
