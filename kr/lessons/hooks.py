"""What the hooks of Claude Code send, and what is answered (SPEC 6.5). Pure.

Agents are careless: what is odd in a hook's JSON means that there is nothing to do; nothing here raises.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from kr.lessons.events import Finding, as_mapping, text_of
from kr.lessons.wording import word_finding

CONTEXT_LIMIT = 10_000
"""Characters that ``additionalContext`` may have at most."""

DEFAULT_PHASE = "dev-execution"
"""The phase of whoever says nothing of one: a main session, ``general-purpose``, ``Explore``."""

ASK_FOR_LESSONS = (
    "kr: this return reports a failure. Before you end, word what the next agent should know: repeat the return with "
    "`lessons: [{symptom, fix, ref}]`. symptom: what one sees; fix: what to do, one sentence of at most 120 characters; ref: file:line. "
    "Three at most. If it teaches nothing, end again as you did."
)

_PHASE_WORDS = {
    "e2e-inspection": re.compile("e2e|browser|playwright|cypress|inspect(?:or|ion|ing)?"),
    "code-review": re.compile("review(?:s|ers?|ing)?|audit(?:or|ing)?|critic|critique"),
    "story-creation": re.compile("story|stories|scrum|plan(?:ner|ning)?"),
    "dev-execution": re.compile(
        "devs?|develop(?:ers?|ment|ing)?|cod(?:er|ers|ing)|implement(?:er|or|ation|ing)?|engineer(?:s|ing)?|programm(?:er|ers|ing)|fix(?:er|ing)?|refactor(?:er|ing)?"
    ),
}
_CHANGING = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
_OWN_TOOLS = frozenset(
    {*_CHANGING, "Read", "Glob", "Grep", "LS", "TodoWrite", "Task", "Agent", "WebFetch", "WebSearch"}
)
_LONG_PROMPT = 4000
_MANY_FILES = 50
_STARTS = frozenset({"SessionStart", "SubagentStart"})
# What an agent mends in its next step and nobody else need know: a slip of the pen, formatting, an unused import.
_SLIP = re.compile(
    r"\b(?:SyntaxError|IndentationError|TabError)\b|\bF401\b|unused import|imported but unused|would be reformatted|\bTS1\d{3}\b"
    r"|pathspec .* did not match|command not found|: line \d+: +\d+ (?:Killed|Terminated)"
)
_EXIT_CODE = re.compile(r"^Exit code -?\d+\n?")


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
    """A tool failed: record what its error teaches."""

    phase: str
    session_id: str
    error: str


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentStop:
    """A subagent returned: record what its return teaches. Its words are in ``message`` or in the transcript.

    ``was_asked``: it was asked for lessons before, and ends for the second time.
    """

    phase: str
    session_id: str
    message: str
    transcript: str | None
    was_asked: bool = False


Event = Start | ToolFailure | AgentStop


def read_hook(data: object, default_phase: str | None = None) -> Event | None:
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
        if str(data.get("is_interrupt")).lower() == "true" or _text(data, "tool_name") in _OWN_TOOLS:
            return None
        error = teaching_part(_text(data, "error"))
        return ToolFailure(phase=phase, session_id=session, error=error) if error else None
    if event == "SubagentStop":
        message = _text(data, "last_assistant_message")
        transcript = _text(data, "agent_transcript_path") or None
        if message or transcript:
            was_asked = data.get("stop_hook_active") is True
            return AgentStop(
                phase=phase, session_id=session, message=message, transcript=transcript, was_asked=was_asked
            )
    return None


def teaching_part(error: str) -> str:
    """Return what of a tool's error may teach others: without the agent's slips, and only what makes a lesson."""
    text = text_of(_EXIT_CODE.sub("", error))
    lines = [line for line in text.splitlines() if not _SLIP.search(line)]
    rest = "\n".join(lines)
    worded = word_finding(Finding(message=rest)) if len(rest.split()) > 2 else None
    # What the agent ran into may be anything: without a row of the table, only an exception or an error is one.
    is_error = worded is not None and (
        worded.has_fix or re.search(r"(?i)error|exception|fatal|panic", worded.summary)
    )
    return rest if is_error else ""


def phase_of(agent_type: str) -> str | None:
    """Map an agent's type to a phase by the words of its name (``code-reviewer``, ``bso-dev-runner``)."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", agent_type).lower())
    found = [phase for phase, known in _PHASE_WORDS.items() if any(map(known.fullmatch, words))]
    if {"code-review", "story-creation"} <= set(found):
        return "story-review"
    return found[0] if found else None


def context_answer(event: str, context: str) -> dict[str, Any]:
    """Give an agent some context. Only whole lines go in, as many as fit."""
    kept: list[str] = []
    room = CONTEXT_LIMIT
    for line in context.splitlines():
        room -= len(line) + 1
        if room < 0:
            break
        kept.append(line)
    return {"hookSpecificOutput": {"hookEventName": event, "additionalContext": "\n".join(kept)}}


def ask_answer() -> dict[str, Any]:
    """Have an agent word its lessons before it ends."""
    return {"decision": "block", "reason": ASK_FOR_LESSONS}


def task_of(transcript: str) -> tuple[str, tuple[str, ...]]:
    """Return what a transcript of JSON lines says of the task: the last prompt, and the files that were changed.

    The prompt is what an agent is called with, or else what the user said last.
    """
    prompt = ""
    files: dict[str, None] = {}
    for message in _messages(transcript):
        for part in _parts(message):
            given = as_mapping(part.get("input"))
            if given:
                prompt = prompt or _text(given, "prompt")
                path = _text(given, "file_path") or _text(given, "notebook_path")
                if path and part.get("name") in _CHANGING:
                    files[path] = None
            elif message.get("role") == "user" and not part.get("tool_use_id"):
                prompt = prompt or _text(part, "text")
    return prompt[:_LONG_PROMPT], tuple(files)[:_MANY_FILES]


def last_words(transcript: str) -> Iterator[str]:
    """Yield the texts of an assistant in a transcript of JSON lines, the last one first."""
    for message in _messages(transcript):
        if message.get("role") == "assistant":
            text = "\n".join(filter(None, (_text(part, "text") for part in _parts(message))))
            if text.strip():
                yield text


def _messages(transcript: str) -> Iterator[Mapping[str, Any]]:
    for line in reversed(transcript.splitlines()):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        yield as_mapping(as_mapping(entry).get("message"))


def _parts(message: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    content = message.get("content")
    parts = content if isinstance(content, list) else [{"text": content}]
    return [part for part in parts if isinstance(part, Mapping)]


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    # A lone surrogate is no text that a database or a stream could take.
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""
