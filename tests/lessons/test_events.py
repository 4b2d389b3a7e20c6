from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.lessons.events import detect, phase_tag, read_return
from kr.lessons.record import evident_events
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
        (rounds("many"), "code-review", ["agent_needs_intervention"]),
        (
            {"status": "success", "results": {"auto_fix_applied": "true"}},
            "dev-execution",
            ["dev_failure_auto_fixed"],
        ),
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
            {"status": "timeout", "agent": "knowledge-researcher"},
            "dev-execution",
            ["knowledge_researcher_timeout"],
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


def test_rows_are_taken_in_the_tables_order() -> None:
    data = rounds(12)
    data["results"]["issues"] = [{"severity": "HIGH", "message": "m"}]
    assert found(data, "general_agent_failure") == [
        "review_max_rounds",
        "high_severity_issues",
        "agent_needs_intervention",
        "general_agent_failure",
    ]


@pytest.mark.parametrize(
    "status",
    ["success", "completed", "passed", "ok", "cache-hit", "recorded", "empty", "skipped", "OK", "cache_hit"],
)
@pytest.mark.parametrize("declared", EVENT_TYPES)
def test_a_clean_success_is_no_event(status: str, declared: EventType) -> None:
    assert (
        found(
            {"status": status, "errors": [], "results": {"issues": [{"severity": "low", "message": "m"}]}},
            declared,
        )
        == []
    )


@pytest.mark.parametrize(
    "data",
    [
        {"status": "success", "errors": ["e"]},
        {"status": "success", "errors": ["a.py:3: UserWarning: no cache\nValueError: no rows"]},
        {"status": "success", "results": {"auto_fix_applied": "yes"}},
        {"status": "success", "results": {"issues": [{"severity": "HIGH"}]}},
        {"status": "needs-fix"},
        {"status": "whatever"},
    ],
)
def test_what_was_declared_counts_otherwise(data: dict[str, Any]) -> None:
    assert "agent_needs_intervention" in found(data, "agent_needs_intervention")


def test_the_fallback_is_not_added_to_a_declared_event() -> None:
    assert found({"status": "failure"}, "dev_failure_auto_fixed") == ["dev_failure_auto_fixed"]
    assert found({"status": "failure"}, GENERAL) == [GENERAL]


def test_limits_are_the_configured_ones() -> None:
    assert "review_max_rounds" in found(
        rounds(4), "agent_needs_intervention", "code-review", max_review_rounds=4
    )
    assert found({"status": "failure"}, GENERAL, "e2e-inspection", is_e2e_enabled=False) == [
        "general_agent_failure"
    ]


def test_phase_tags() -> None:
    tags = {event: phase_tag(event, "story-creation") for event in EVENT_TYPES}
    assert tags == {
        "review_max_rounds": "code-review",
        "dev_failure_auto_fixed": "dev-execution",
        "high_severity_issues": "code-review",
        "agent_needs_intervention": "story-creation",
        "knowledge_researcher_timeout": "story-creation",
        "e2e_verification_failure": "e2e-inspection",
        "general_agent_failure": "story-creation",
    }


def test_findings_are_read_from_texts_and_objects() -> None:
    returned = read_return(
        {
            "status": "failure",
            "errors": [
                "one",
                {"detail": "two", "path": "a.py", "line": "7"},
                {"error": "three", "fix": "use g()"},
                None,
                "",
            ],
            "results": {
                "issues": {"severity": "HIGH", "summary": "four", "file": "b.py:3", "line": 9},
                "artifacts": "c.py",
            },
        }
    )
    assert [(error.message, error.path) for error in returned.errors] == [
        ("one", None),
        ("two", "a.py:7"),
        ("three", None),
    ]
    assert returned.errors[2].fix == "use g()"
    assert [(issue.message, issue.path) for issue in returned.severe] == [("four", "b.py:3")]
    assert returned.artifacts == ("c.py",)


def test_facts_stand_in_the_return_or_in_its_results() -> None:
    facts = {
        "review_rounds": 11,
        "auto_fix_applied": "yes",
        "issues": [{"severity": "High", "message": "no ownership check"}],
        "artifacts": ["a.py"],
    }
    beside, within = read_return({"status": "x", **facts}), read_return({"status": "x", "results": facts})
    assert beside == within
    assert (beside.review_rounds, beside.is_auto_fixed, beside.artifacts) == (11, True, ("a.py",))
    assert [issue.message for issue in beside.severe] == ["no ownership check"]


def test_a_story_review_stays_one() -> None:
    assert phase_tag("review_max_rounds", "story-review") == "story-review"
    assert phase_tag("high_severity_issues", "story-review") == "story-review"
    assert phase_tag("high_severity_issues", "dev-execution") == "code-review"


@given(_JSON, _JSON, _JSON, st.sampled_from(EVENT_TYPES), st.sampled_from(PHASES))
def test_any_shape_is_read(status: Any, errors: Any, results: Any, declared: EventType, phase: str) -> None:
    returned = read_return({"status": status, "errors": errors, "results": results, "agent": results})
    seen = detect(declared, returned, evident_events(phase, returned, settings_of()))
    assert list(seen) == sorted(seen, key=EVENT_TYPES.index)
    assert (declared in seen) or not seen
