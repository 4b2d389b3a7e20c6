"""What a Claude Code hook asks of kr: lessons for who starts, a recording of what failed (SPEC 8).

The hook's JSON comes from outside: whatever is missing or odd means that there is nothing to do.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from kr.lessons.distill import read_table
from kr.lessons.distill.called import program
from kr.lessons.distill.clean import is_meant, is_no_failure, is_slip, teaches_nothing, without_vain_looks

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
    """A tool failed: record what its error teaches. ``about`` is what failed, where the error names nothing.

    ``command`` is the command line that was run; of it no more is told than which program it calls.
    """

    phase: str
    session_id: str
    error: str
    about: str = ""
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
    phase = phase_of(_text(data, "agent_type")) or default_phase or DEFAULT_PHASE
    session = _text(data, "session_id") or "hook"
    event = _text(data, "hook_event_name")
    if event in _STARTS:
        return Start(
            event=event,
            phase=phase,
            session_id=session,
            prompt=_text(data, "prompt"),
            transcript=_text(data, "transcript_path") or None,
            cwd=_text(data, "cwd") or None,
        )
    if event == "PostToolUseFailure":
        told = taught(_text(data, "tool_name"), data.get("tool_input"), _text(data, "error"))
        if told is None or str(data.get("is_interrupt")).lower() == "true":
            return None
        given = data.get("tool_input")
        command = _text(given, "command")[:_LONG_COMMAND] if isinstance(given, Mapping) else ""
        return ToolFailure(phase=phase, session_id=session, error=told[0], about=told[1], command=command)
    if event == "SubagentStop" and data.get("stop_hook_active") is not True:
        message = _text(data, "last_assistant_message")
        transcript = _text(data, "agent_transcript_path") or None
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
                prompt = prompt or _text(given, "prompt")
                path = _text(given, "file_path") or _text(given, "notebook_path")
                if path and part.get("name") in _CHANGING:
                    files[path] = None
            elif message.get("role") == "user" and not part.get("tool_use_id"):
                prompt = prompt or _text(part, "text")
    return prompt[:_LONG_PROMPT], tuple(files)[:_MANY_FILES]


def last_words(transcript: str) -> str:
    """Return the last text of an assistant in a transcript of JSON lines; empty when there is none."""
    for line in reversed(transcript.splitlines()):
        message = _message(line)
        if message.get("role") == "assistant":
            told = "\n".join(filter(None, (_text(part, "text") for part in _parts(message))))
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


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    # A lone surrogate is no text that a database or a stream could take.
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


_OWN_SLIPS = frozenset(
    {"Read", "Edit", "MultiEdit", "Write", "NotebookEdit", "Glob", "Grep", "LS", "TodoWrite", "Task", "Agent"}
)
_LONG = 20_000
_LONG_COMMAND = 2000
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
    told = without_vain_looks(error[:_LONG])
    given = tool_input if isinstance(tool_input, Mapping) else {}
    if is_slip(told) or teaches_nothing(told) or is_no_failure(told) or is_meant(_said_of(given)):
        return None
    words = _WORDS.findall(_EXIT.sub("", told).lower())
    if tool in _OWN_SLIPS or len(words) < 2 or (_THROWN_AWAY.search(told) and _MISWRITTEN.search(told)):
        return None
    said_by_any = read_table("words.yaml")["said_by_any"].split()
    if any(word not in said_by_any and not _AMOUNT.fullmatch(word) for word in words):
        return told, ""
    about = _about(tool, given)
    return (told, about) if about else None


def _said_of(tool_input: Mapping[str, Any]) -> str:
    """Return what the agent says of its call, beside it or in its comments: that the test is meant to fail, for one."""
    comments = _COMMENT.findall(_text(tool_input, "command")[:_LONG_COMMAND])
    return "\n".join((_text(tool_input, "description")[:_LONG_COMMAND], *comments))


def _about(tool: str, tool_input: Mapping[str, Any]) -> str:
    command = tool_input.get("command")
    if isinstance(command, str):
        return program(command[:_LONG_COMMAND])
    path = tool_input.get("file_path")
    if isinstance(path, str) and path.strip():
        return re.split(r"[/\\]", path.strip())[-1]
    # mcp__SERVER__TOOL
    return tool.split("__")[1] if tool.startswith("mcp__") else ""
