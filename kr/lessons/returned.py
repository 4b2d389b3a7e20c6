"""What comes from agents: their returns (SPEC 4.2, "Where the facts stand"), and the hooks of Claude Code (SPEC 8).

Agents are careless: a list may be a single text, a number may be text, a block may be missing. What can't be
read is absent, and what is odd in a hook's JSON means that there is nothing to do; nothing here raises.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from kr.lessons.distill import listed, program, tool_of
from kr.values import EVENT_TYPES, EventType

REMEDY_KEYS = ("fix", "suggestion", "recommendation", "resolution")
COMPLAINT_KEYS = ("message", "description", "summary", "detail")
_PATH_KEYS = ("file", "path")
_MANY = 50
_LONG = 20_000
_TRUE = frozenset({"true", "yes", "on", "1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One error or issue: what is wrong, what to do about it, how bad it is, and where; or what an agent says in all.

    ``tool`` is the one that the failed command called, where the return names a command.
    """

    complaint: str = ""
    remedy: str = ""
    severity: str = ""
    path: str | None = None
    is_summary: bool = False
    tool: str = ""


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
    results = _mapping(data.get("results"))
    return AgentReturn(
        status=_folded(data.get("status")),
        agent=_folded(data.get("agent")),
        summary=_text(data.get("summary")),
        remedy=_first(results, REMEDY_KEYS) or _first(data, REMEDY_KEYS),
        errors=tuple(_findings(data.get("errors"))),
        issues=tuple(_findings(results.get("issues"))),
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
    nested = _mapping(item.get("error"))
    return Finding(
        complaint=_first(item, COMPLAINT_KEYS) or _first(nested, COMPLAINT_KEYS) or _text(item.get("error")),
        remedy=_first(item, REMEDY_KEYS) or _first(nested, REMEDY_KEYS),
        severity=_folded(item.get("severity")),
        path=_path(item),
        tool=tool_of(_text(item.get("command"))[:_LONG]),
    )


def _path(item: object) -> str | None:
    if not isinstance(item, Mapping):
        return _text(item) or None
    path = _first(item, _PATH_KEYS)
    line = _count(item.get("line"))
    has_line = path.rpartition(":")[2].isdigit()
    return (f"{path}:{line}" if line and not has_line else path) or None


def _mapping(value: object) -> Mapping[str, Any]:
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
        return "; ".join(filter(None, (_text(item) for item in value[:_MANY])))[:_LONG]
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value).strip()[:_LONG]


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


CONTEXT_LIMIT = 10_000
"""Characters that ``additionalContext`` may have at most."""

DEFAULT_PHASE = "dev-execution"
"""The phase of whoever says nothing of one: a main session, ``general-purpose``, ``Explore``."""

_PHASE_WORDS = {
    "e2e-inspection": re.compile("e2e|browser|playwright|cypress|inspect(?:or|ion|ing)?"),
    "code-review": re.compile("review(?:s|ers?|ing)?|audit(?:or|ing)?|critic|critique"),
    "story-creation": re.compile("story|stories|scrum|plan(?:ner|ning)?"),
    "dev-execution": re.compile(
        "devs?|develop(?:ers?|ment|ing)?|cod(?:er|ers|ing)|implement(?:er|or|ation|ing)?|engineer(?:s|ing)?|programm(?:er|ers|ing)|fix(?:er|ing)?|refactor(?:er|ing)?"
    ),
}
_CHANGING = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
_LONG_PROMPT = 4000
_MANY_FILES = 50
_STARTS = frozenset({"SessionStart", "SubagentStart"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Somebody starts: give them the lessons of their phase that fit what they are to do.

    ``prompt`` is what the hook says of that; the transcript says more.
    """

    event: str
    phase: str
    session_id: str
    prompt: str = ""
    transcript: str | None = None
    cwd: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFailure:
    """A tool failed: record what its error teaches, which begins with what failed where it does not name that.

    ``command`` is the command line that was run; of it no more is told than which program it calls.
    """

    phase: str
    session_id: str
    error: str
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStop:
    """A subagent returned: record what its return teaches. Its words are in ``message`` or in the transcript."""

    phase: str
    session_id: str
    message: str
    transcript: str | None


Task = Start | ToolFailure | AgentStop


def read_hook(data: object, default_phase: str | None = None) -> Task | None:
    """Tell what to do about a hook's input; ``None`` when there is nothing to do.

    An agent's type goes before ``default_phase``, and that before ``DEFAULT_PHASE``.
    """
    if not isinstance(data, Mapping):
        return None
    phase = phase_of(_said(data, "agent_type")) or default_phase or DEFAULT_PHASE
    session = _said(data, "session_id") or "hook"
    event = _said(data, "hook_event_name")
    if event in _STARTS:
        return Start(
            event=event,
            phase=phase,
            session_id=session,
            prompt=_said(data, "prompt"),
            transcript=_said(data, "transcript_path") or None,
            cwd=_said(data, "cwd") or None,
        )
    if event == "PostToolUseFailure":
        if str(data.get("is_interrupt")).lower() == "true":
            return None
        given = _mapping(data.get("tool_input"))
        told = taught(_said(data, "tool_name"), given, _said(data, "error"))
        if told is None:
            return None
        error, about = re.sub(r"^Exit code -?\d+\n", "", told[0]), told[1]
        error = f"{about}: {error}" if about else error
        command = _said(given, "command")[:_LONG_COMMAND]
        return ToolFailure(phase=phase, session_id=session, error=error, command=command)
    if event == "SubagentStop" and data.get("stop_hook_active") is not True:
        message = _said(data, "last_assistant_message")
        transcript = _said(data, "agent_transcript_path") or None
        return (
            AgentStop(phase=phase, session_id=session, message=message, transcript=transcript)
            if message or transcript
            else None
        )
    return None


def phase_of(agent_type: str) -> str | None:
    """Map an agent's type to a phase by the words of its name (``code-reviewer``, ``bso-dev-runner``)."""
    words = _WORDS.findall(re.sub(r"(?<=[a-z])(?=[A-Z])", " ", agent_type).lower())
    found = [phase for phase, known in _PHASE_WORDS.items() if any(map(known.fullmatch, words))]
    if {"code-review", "story-creation"} <= set(found):
        return "story-review"
    return found[0] if found else None


def answer(event: str, context: str) -> dict[str, Any]:
    """Make the hook's answer. Only whole lines go in, as many as fit."""
    kept: list[str] = []
    room = CONTEXT_LIMIT
    for line in context.splitlines():
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": "\n".join(kept)}}


def task_of(transcript: str) -> tuple[str, tuple[str, ...]]:
    """Return what a transcript of JSON lines says of the task: the last prompt, and the files that were changed.

    The prompt is what an agent is called with, or else what the user said last.
    """
    prompt = ""
    files: dict[str, None] = {}
    for line in reversed(transcript.splitlines()):
        message = _message(line)
        for part in _parts(message):
            given = part.get("input")
            if isinstance(given, Mapping):
                prompt = prompt or _said(given, "prompt")
                path = _said(given, "file_path") or _said(given, "notebook_path")
                if path and part.get("name") in _CHANGING:
                    files[path] = None
            elif message.get("role") == "user" and not part.get("tool_use_id"):
                prompt = prompt or _said(part, "text")
    return prompt[:_LONG_PROMPT], tuple(files)[:_MANY_FILES]


def last_words(transcript: str) -> str:
    """Return the last text of an assistant in a transcript of JSON lines; empty when there is none."""
    for line in reversed(transcript.splitlines()):
        message = _message(line)
        if message.get("role") == "assistant":
            told = "\n".join(filter(None, (_said(part, "text") for part in _parts(message))))
            if told.strip():
                return told
    return ""


def _message(line: str) -> Mapping[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    message = entry.get("message") if isinstance(entry, Mapping) else None
    return message if isinstance(message, Mapping) else {}


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    return [part for part in parts if isinstance(part, Mapping)]


def _said(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    # A lone surrogate is no text that a database or a stream could take.
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


_OWN_SLIPS = frozenset(
    {"Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "Glob", "Grep", "LS", "TodoWrite", "Task", "Agent"}
)
_LONG_COMMAND = 2000
_FEWEST = 2
_WORDS = re.compile(r"[a-z0-9]+|[\u3400-\u9fff]")
_COMMENT = re.compile(r"(?:^|\s)#\s+(.*)")
_EXIT = re.compile(r"\b(?:exit(?:ed with)?(?: code| status)?|status|code):? ?-?[0-9]+", re.IGNORECASE)
_AMOUNT = re.compile(r"[0-9]+(?:ms|[smh])?")
# Code that was written on the command line and is gone with it.
_THROWN_AWAY = re.compile(r"File \"<(?:string|stdin)>\"")
_MISWRITTEN = re.compile(r"^(?:Name|Syntax|Indentation|Tab|UnboundLocal)Error\b", re.MULTILINE)


def taught(tool: str, tool_input: object, error: str) -> tuple[str, str] | None:
    """Return what of an error may teach, and what it is about where the error doesn't say that.

    ``None`` for what interests nobody but the agent that did it, and for what names nothing even so.
    """
    if tool in _OWN_SLIPS or len(_words(error)) < _FEWEST:
        return None
    # Half of what kr stats would load.
    from kr.lessons.distill.clean import is_meant, is_no_failure, is_slip, teaches_nothing, without_vain_looks

    told = without_vain_looks(error[:_LONG])
    given = _mapping(tool_input)
    if is_slip(told) or teaches_nothing(told) or is_no_failure(told) or is_meant(_said_of(given)):
        return None
    words = _words(told)
    if len(words) < _FEWEST or (_THROWN_AWAY.search(told) and _MISWRITTEN.search(told)):
        return None
    if any(word not in listed("words.yaml", "said_by_any") and not _AMOUNT.fullmatch(word) for word in words):
        return told, ""
    about = _about(tool, given)
    return (told, about) if about else None


def _words(error: str) -> list[str]:
    return _WORDS.findall(_EXIT.sub("", error[:_LONG]).lower())


def _said_of(tool_input: Mapping[str, Any]) -> str:
    """Return what the agent says of its call, beside it or in its comments: that the test is meant to fail, for one."""
    comments = _COMMENT.findall(_said(tool_input, "command")[:_LONG_COMMAND])
    return "\n".join((_said(tool_input, "description")[:_LONG_COMMAND], *comments))


def _about(tool: str, tool_input: Mapping[str, Any]) -> str:
    command = tool_input.get("command")
    if isinstance(command, str):
        return program(command[:_LONG_COMMAND])
    path = tool_input.get("file_path")
    if isinstance(path, str) and path.strip():
        return re.split(r"[/\\]", path.strip())[-1]
    # mcp__SERVER__TOOL
    return tool.split("__")[1] if tool.startswith("mcp__") else ""
