"""Which of the seven error events an agent's return shows (seed 003, "Trigger Conditions"; SPEC 4.2)."""

from dataclasses import dataclass

from kr.lessons.returned import AgentReturn
from kr.values import EVENT_TYPES, EventType

MOST_EVENTS = 3
"""At most so many lessons from one return (seed 003, "Event Detection Priority")."""

_SUCCESS_LIKE = frozenset(
    {"success", "completed", "passed", "ok", "cache-hit", "recorded", "empty", "skipped"}
)
_PHASE_OF: dict[EventType, str] = {
    "review_max_rounds": "code-review",
    "dev_failure_auto_fixed": "dev-execution",
    "high_severity_issues": "code-review",
    "e2e_verification_failure": "e2e-inspection",
}
_FALLBACK: EventType = "general_agent_failure"
_RESEARCHER = "knowledge-researcher"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The configuration that detection depends on (seed 003, "Configuration Dependencies")."""

    max_review_rounds: int = 10
    max_story_review_rounds: int = 3
    is_e2e_enabled: bool = True


def detect(declared: EventType, phase: str, returned: AgentReturn, limits: Limits) -> tuple[EventType, ...]:
    """Return every event that happened, in the table's order: the caller keeps the first ``MOST_EVENTS``.

    What the caller declared counts, unless the agent returned a clean success (SPEC 4.2). The last row is for
    returns that no other one is about: it is not added to what the caller declared.
    """
    seen = set(shown(phase, returned, limits))
    if not is_clean_success(returned):
        seen = {*(seen - {_FALLBACK}), declared}
    return tuple(event for event in EVENT_TYPES if event in seen)


def shown(phase: str, returned: AgentReturn, limits: Limits) -> tuple[EventType, ...]:
    """Return the rows of the trigger table that hold, whatever anybody declares."""
    seen = tuple(event for event in EVENT_TYPES[:-1] if _shows(event, phase, returned, limits))
    if not seen and returned.status in {"failure", "needs-intervention"}:
        return (_FALLBACK,)
    return seen


def is_clean_success(returned: AgentReturn) -> bool:
    """Tell a return with nothing to learn from: success, no errors, no auto-fix, no HIGH issue."""
    is_success = returned.status in _SUCCESS_LIKE
    return is_success and not (returned.errors or returned.is_auto_fixed or returned.severe)


def phase_tag(event: EventType, phase: str) -> str:
    """Return the tag that the event's lesson carries; ``phase`` is the one given with the request."""
    return _PHASE_OF.get(event, phase)


def _shows(event: EventType, phase: str, returned: AgentReturn, limits: Limits) -> bool:
    status = returned.status
    match event:
        case "review_max_rounds":
            is_story = phase == "story-review"
            most = limits.max_story_review_rounds if is_story else limits.max_review_rounds
            rounds = returned.review_rounds
            return status == "needs-intervention" and rounds is not None and rounds >= most
        case "dev_failure_auto_fixed":
            return status == "success" and returned.is_auto_fixed
        case "high_severity_issues":
            return bool(returned.severe)
        case "agent_needs_intervention":
            return status == "needs-intervention"
        case "knowledge_researcher_timeout":
            # The seed's own agent is called bso-knowledge-researcher.
            return status == "timeout" and returned.agent.endswith(_RESEARCHER)
        case "e2e_verification_failure":
            return limits.is_e2e_enabled and status == "failure" and phase == "e2e-inspection"
        case _:
            return False
