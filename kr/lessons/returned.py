"""What an agent returns, and where its facts stand (SPEC 4.2, "Where the facts stand").

Agents are careless: a list may be a single text, a number may be text, a block may be missing. What can't be
read is absent; nothing here raises.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from kr.lessons.distill import phrases, shortened, tool_of
from kr.values import EVENT_TYPES, EventType

REMEDY_KEYS = ("fix", "suggestion", "recommendation", "resolution")
COMPLAINT_KEYS = ("message", "description", "summary", "detail")
_PATH_KEYS = ("file", "path")
_MANY = 50
LONG = 20_000
"""Characters of a text that are looked at: its head and its tail."""
_TRUE = frozenset({"true", "yes", "on", "1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One error or issue: what is wrong, what to do about it, how bad it is, and where; or what an agent says in all.

    ``tool`` is the one that the failed command called, where the return names a command. ``is_said``: the complaint is what
    an agent found and worded, as a review does, not what a tool printed.
    """

    complaint: str = ""
    remedy: str = ""
    severity: str = ""
    path: str | None = None
    is_summary: bool = False
    tool: str = ""
    is_said: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentReturn:
    """``status`` and ``agent`` are folded: lower case, dashes for spaces and underscores."""

    status: str
    agent: str
    summary: str
    remedy: str
    errors: tuple[Finding, ...]
    issues: tuple[Finding, ...]
    review_rounds: int | None
    is_auto_fixed: bool
    artifacts: tuple[str, ...]

    @property
    def severe(self) -> tuple[Finding, ...]:
        """The issues of severity HIGH."""
        return tuple(issue for issue in self.issues if issue.severity == "high")


def read_return(data: Mapping[str, Any]) -> AgentReturn:
    """Read an ``agent_return``: plain data, scalars as text or as themselves."""
    results = mapping(data.get("results"))
    return AgentReturn(
        status=_folded(data.get("status")),
        agent=_folded(data.get("agent")),
        summary=_text(data.get("summary")),
        remedy=_first(results, REMEDY_KEYS) or _first(data, REMEDY_KEYS),
        errors=tuple(_findings(data.get("errors"))),
        issues=tuple(replace(issue, is_said=True) for issue in _findings(results.get("issues"))),
        review_rounds=_count(results.get("review_rounds")),
        is_auto_fixed=_folded(results.get("auto_fix_applied")) in _TRUE,
        artifacts=tuple(filter(None, map(_path, _list(results.get("artifacts"))))),
    )


def _findings(value: object) -> Iterator[Finding]:
    for item in _list(value):
        finding = _finding(item)
        if finding.complaint or finding.remedy or finding.severity:
            yield finding


def _finding(item: object) -> Finding:
    if not isinstance(item, Mapping):
        return Finding(complaint=_text(item))
    nested = mapping(item.get("error"))
    return Finding(
        complaint=_first(item, COMPLAINT_KEYS) or _first(nested, COMPLAINT_KEYS) or _text(item.get("error")),
        remedy=_first(item, REMEDY_KEYS) or _first(nested, REMEDY_KEYS),
        severity=_folded(item.get("severity")),
        path=_path(item),
        tool=tool_of(_text(item.get("command"))[:LONG]),
    )


def _path(item: object) -> str | None:
    if not isinstance(item, Mapping):
        return _text(item) or None
    path = _first(item, _PATH_KEYS)
    line = _count(item.get("line"))
    has_line = path.rpartition(":")[2].isdigit()
    return (f"{path}:{line}" if line and not has_line else path) or None


def mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[object]:
    if value is None or value == "":
        return ()
    if isinstance(value, list | tuple):
        return value[:_MANY]
    return (value,)


def _first(data: Mapping[str, Any], keys: Sequence[str]) -> str:
    from kr.lessons.distill.distill import is_vague  # half of what kr stats and kr lessons list would load

    texts = (_text(data.get(key)) for key in keys)
    return next((text for text in texts if text and not is_vague(text)), "")


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return shortened("; ".join(filter(None, (_text(item) for item in value[:_MANY]))), LONG)
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return shortened(str(value).strip(), LONG)


def _folded(value: object) -> str:
    return _text(value).casefold().replace("_", "-").replace(" ", "-")


def _count(value: object) -> int | None:
    text = _text(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


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
    """The configuration that detection depends on (seed 003, "Configuration Dependencies").

    ``quotes_tools``: what a tool printed goes on, where it is a complaint, without a person.
    """

    max_review_rounds: int = 10
    max_story_review_rounds: int = 3
    is_e2e_enabled: bool = True
    quotes_tools: bool = True


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
    """Tell a return with nothing to learn from: success, no errors but warnings, no auto-fix, no HIGH issue."""
    errors = [error for error in returned.errors if not phrases("only_warns").match(error.complaint)]
    return returned.status in _SUCCESS_LIKE and not (errors or returned.is_auto_fixed or returned.severe)


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


LOOKED_AT = 256 * 1024
"""Characters at the end of a message that are looked at."""

_MOST = 8
_MOST_TRIED = 4 * 1024 * 1024
_LEAST_TRIED = 1024
_FENCED = re.compile(
    r"^[ \t>]*(?P<mark>`{3,}|~{3,})[^\n]*\n(?P<body>.*?)(?:^[ \t>]*(?P=mark)[`~ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_OBJECT = re.compile(r'\{(?=\s*")')
_STATUS = re.compile(r"status[\"']?[ \t]*:")
_KEY = r"[\"']?[A-Za-z_][\w.-]*[\"']?[ \t]*:(?=\s|$)"
# Lines that read as YAML: a key, and what may come under it.
_KEYS = re.compile(rf"^{_KEY}[^\n]*(?:\n(?:{_KEY}|[ \t]|- |-?$|#|[\]}}])[^\n]*)*", re.MULTILINE)
_FIRST_KEY = re.compile(r"^[\"']?(?:status|return)[\"']?[ \t]*:(?=\s|$)", re.MULTILINE)
_BLANK = re.compile(r"^[ \t]*$", re.MULTILINE)

_Span = tuple[int, int]


def returned_documents(message: str) -> list[str]:
    """Return the texts that may be the agent's return, the most likely first: at most eight.

    What ends last in the message comes first, and of two that end alike the longer one.
    """
    text = message[-LOOKED_AT:].replace("\r\n", "\n")
    if "status" not in text:
        return []
    spans = {*_blocks(text), *_objects(text)}
    if text.lstrip().startswith("{"):
        # What is no JSON may be a mapping of YAML.
        spans.add((0, len(text)))
    told = (text[start:end] for start, end in sorted(spans, key=lambda span: (-span[1], span[0])))
    return list(islice(filter(_STATUS.search, told), _MOST))


def _objects(text: str) -> Iterator[_Span]:
    """Find the outermost JSON objects that have a status, wherever they stand."""
    decoder = json.JSONDecoder(strict=False)
    end, room = 0, _MOST_TRIED
    for found in _OBJECT.finditer(text):
        start = found.start()
        if start < end:
            continue
        try:
            value, end = decoder.raw_decode(text, start)
        except json.JSONDecodeError as error:
            room -= max(error.pos - start, _LEAST_TRIED)
        except RecursionError:
            room -= LOOKED_AT
        else:
            if _has_status(value):
                yield start, end
        if room < 0:
            return


def _has_status(value: object) -> bool:
    if not isinstance(value, Mapping):
        return False
    inner = value.get("return")
    return "status" in value or (isinstance(inner, Mapping) and "status" in inner)


def _blocks(text: str) -> Iterator[_Span]:
    """Find what stands in fences, and lines that read as YAML: all, from a return's first key on, up to a blank line.

    Prose has lines with a colon too, before the return and after it.
    """
    yield from (fenced.span("body") for fenced in _FENCED.finditer(text))
    for keys in _KEYS.finditer(_FENCED.sub(lambda fenced: "!" * len(fenced[0]), text)):
        start, end = keys.span()
        if first := _FIRST_KEY.search(text, start, end):
            blank = _BLANK.search(text, first.start(), end)
            yield from ((start, end), (first.start(), end), (first.start(), blank.start() if blank else end))
