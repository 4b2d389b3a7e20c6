"""The seven events of U5 in what an agent returned. Pure.

Agents are careless: a list may be a single text, a number may be text, a block may be missing. What can't be read is
absent; nothing here raises.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kr.models import EVENT_TYPES, EventType
from kr.requests import count

FIX_KEYS = ("fix", "suggestion", "recommendation", "resolution")
MESSAGE_KEYS = ("message", "description", "summary", "detail", "error")
MOST_EVENTS = 3
"""At most so many lessons from one return (U5, "Event Detection Priority")."""

_LONGEST = 20_000
_MOST_ITEMS = 50
_TRUE = frozenset({"true", "yes", "on", "1"})
_SUCCESS = frozenset({"success", "completed", "passed", "ok", "cache-hit", "recorded", "empty", "skipped"})
_FALLBACK: EventType = "general_agent_failure"
_RESEARCHER = "knowledge-researcher"  # F1's own agent is called bso-knowledge-researcher
_REVIEWS = frozenset({"code-review", "story-review"})
_PHASES: dict[EventType, str] = {
    "review_max_rounds": "code-review",
    "dev_failure_auto_fixed": "dev-execution",
    "high_severity_issues": "code-review",
    "e2e_verification_failure": "e2e-inspection",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """One error or issue: what is wrong, what its author says to do, how bad it is, and where. Texts as they came."""

    message: str = ""
    fix: str = ""
    severity: str = ""
    path: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReturn:
    """``status`` and ``agent`` are folded: small letters, dashes for spaces and underscores."""

    status: str
    agent: str
    summary: str
    errors: tuple[Fault, ...]
    issues: tuple[Fault, ...]
    review_rounds: int | None
    is_auto_fixed: bool
    artifacts: tuple[str, ...]

    @property
    def severe(self) -> tuple[Fault, ...]:
        """The issues of severity HIGH or worse."""
        return tuple(issue for issue in self.issues if issue.severity in {"high", "critical", "blocker"})


def read_return(data: Mapping[str, Any]) -> AgentReturn:
    """Read an ``agent_return``: each fact stands in it or in its ``results``."""
    results = as_mapping(data.get("results"))
    facts = {**data, **{name: value for name, value in results.items() if value not in (None, "", [])}}
    return AgentReturn(
        status=_folded(data.get("status")),
        agent=_folded(data.get("agent")),
        summary=text_of(data.get("summary")),
        errors=tuple(_faults(_items(facts.get("errors")))),
        issues=tuple(_faults(_items(facts.get("issues")))),
        review_rounds=count(facts.get("review_rounds")),
        is_auto_fixed=_folded(facts.get("auto_fix_applied")) in _TRUE,
        artifacts=tuple(filter(None, map(_path, _items(facts.get("artifacts"))))),
    )


def detect(declared: EventType, returned: AgentReturn, seen: Collection[EventType]) -> tuple[EventType, ...]:
    """Return every event that happened, in the table's order: the caller keeps the first ``MOST_EVENTS``. ``seen`` are ``evident``.

    What the caller declared counts, unless the agent returned a clean success: no errors, no auto-fix, no HIGH issue. The last row is for returns that no other
    one is about: it is not added to what the caller declared.
    """
    has_faults = bool(returned.errors or returned.is_auto_fixed or returned.severe)
    if returned.status in _SUCCESS and not has_faults:
        return ()
    happened = {*seen} - {_FALLBACK} | {declared}
    return tuple(event for event in EVENT_TYPES if event in happened)


def evident(
    phase: str, returned: AgentReturn, *, most_rounds: int, is_e2e_enabled: bool
) -> tuple[EventType, ...]:
    """Return the rows of the trigger table that hold, whatever anybody declares."""
    status = returned.status
    needs_somebody, is_e2e = status == "needs-intervention", phase == "e2e-inspection"
    rows: dict[EventType, bool] = {
        "review_max_rounds": needs_somebody and (returned.review_rounds or 0) >= most_rounds,
        "dev_failure_auto_fixed": status == "success" and returned.is_auto_fixed,
        "high_severity_issues": bool(returned.severe),
        "agent_needs_intervention": needs_somebody,
        "knowledge_researcher_timeout": status == "timeout" and returned.agent.endswith(_RESEARCHER),
        "e2e_verification_failure": status == "failure" and is_e2e and is_e2e_enabled,
    }
    seen = tuple(event for event, holds in rows.items() if holds)
    return (_FALLBACK,) if status == "failure" and not seen else seen


def phase_tag(event: EventType, phase: str) -> str:
    """Return the phase of the event's lesson: the table's, unless the given one is a review as well."""
    tag = _PHASES.get(event, phase)
    return phase if tag in _REVIEWS and phase in _REVIEWS else tag


def _faults(items: Sequence[object]) -> Iterator[Fault]:
    for item in items:
        data = item if isinstance(item, Mapping) else {"message": text_of(item)}
        found = Fault(
            message=_first(data, MESSAGE_KEYS),
            fix=_first(data, FIX_KEYS),
            severity=_folded(data.get("severity")),
            path=_path(data),
        )
        if found.message or found.fix or found.severity:
            yield found


def _path(item: object) -> str | None:
    data = item if isinstance(item, Mapping) else {"path": item}
    path, line = _first(data, ("file", "path")), count(data.get("line"))
    return (f"{path}:{line}" if path and line and not path.rpartition(":")[2].isdigit() else path) or None


def as_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _items(value: object) -> Sequence[object]:
    if value is None or value == "":
        return ()
    return value[:_MOST_ITEMS] if isinstance(value, list | tuple) else (value,)


def _first(data: Mapping[str, Any], keys: Sequence[str]) -> str:
    return next(filter(None, (text_of(data.get(key)) for key in keys)), "")


def text_of(value: object) -> str:
    """Return what a value says as text: of a list its items, of a mapping nothing, of a long text its beginning and its end."""
    if isinstance(value, list | tuple):
        value = "; ".join(filter(None, map(text_of, value[:_MOST_ITEMS])))
    if value is None or isinstance(value, Mapping):
        return ""
    text = str(value).strip() if not isinstance(value, bool) else str(value).lower()
    if len(text) <= _LONGEST:
        return text
    half = _LONGEST // 2
    # The rest of a line that was cut might be half a secret.
    return f"{text[:half].rpartition(chr(10))[0] or text[:half]}\n{text[-half:].partition(chr(10))[2]}"


def _folded(value: object) -> str:
    return text_of(value).casefold().replace("_", "-").replace(" ", "-")
