"""What the hooks of Claude Code send, and what is answered (SPEC 8).

Agents are careless: what is odd in a hook's JSON means that there is nothing to do; nothing here raises.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kr.lessons.distill import listed, program, shortened
from kr.lessons.returned import LONG, mapping

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
        given = mapping(data.get("tool_input"))
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

    told = without_vain_looks(shortened(error, LONG))
    given = mapping(tool_input)
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
    return _WORDS.findall(_EXIT.sub("", shortened(error, LONG)).lower())


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
