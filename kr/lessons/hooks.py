"""What the hooks of Claude Code send, and what is answered. Pure.

Agents are careless: what is odd in a hook's JSON means that there is nothing to do; nothing here raises.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from kr.errors import InvalidRequest
from kr.requests import read_document

LOOKED_AT = 256 * 1024
"""Characters at the end of a message or a transcript that are looked at."""
DEFAULT_PHASE = "dev-execution"
"""The phase of whoever says nothing of one: a main session, ``general-purpose``, ``Explore``."""
ASK_FOR_LESSONS = (
    "kr: this return reports a failure. Before you end, word what the next agent should know: repeat the return with "
    "`lessons: [{symptom, fix, ref}]`. symptom: what one sees; fix: what to do, one sentence of at most 120 characters; ref: file:line. "
    "Three at most. If it teaches nothing, end again as you did."
)

_PHASE_WORDS = {
    "e2e-inspection": "e2e|browser|playwright|cypress|inspect(?:or|ion|ing)?",
    "code-review": "review(?:s|ers?|ing)?|audit(?:or|ing)?|critic|critique",
    "story-creation": "story|stories|scrum|plan(?:ner|ning)?",
    "dev-execution": "devs?|develop(?:ers?|ment|ing)?|cod(?:er|ers|ing)|implement(?:er|or|ation|ing)?|engineer(?:s|ing)?"
    "|programm(?:er|ers|ing)|fix(?:er|ing)?|refactor(?:er|ing)?",
}
_CHANGING = frozenset({"Edit", "MultiEdit", "Write", "NotebookEdit"})
_OWN_TOOLS = _CHANGING | {"Read", "Glob", "Grep", "LS", "TodoWrite", "Task", "Agent", "WebFetch", "WebSearch"}
_MOST_DOCUMENTS = 8
_MOST_TRIES = 50
# What an agent mends in its next step and nobody else need know: a slip of the pen, formatting, an unused import, a wrong path.
_SLIP = re.compile(
    r"\b(?:SyntaxError|IndentationError|TabError)\b|\bF401\b|unused import|imported but unused|would be reformatted|\bTS1\d{3}\b"
    r"|pathspec .* did not match|command not found|: line \d+: +\d+ (?:Killed|Terminated)|^usage: "
    r"|^(?:ls|cat|cp|mv|rm|mkdir|rmdir|touch|head|tail|sed|grep|find|wc|diff): "
)
_FENCED = re.compile(
    r"^[ \t>]*(?P<mark>`{3,}|~{3,})[^\n]*\n(?P<body>.*?)(?:^[ \t>]*(?P=mark)[`~ \t]*$|\Z)",
    re.MULTILINE | re.DOTALL,
)
_BEGINNING = re.compile(
    r"\{(?=\s*[\"'])|^[\"']?(?:story_key|status|return|lessons?)[\"']?[ \t]*:(?=\s|$)", re.MULTILINE
)
_SIGNS = ("status", "lessons", "lesson")


@dataclass(frozen=True, slots=True, kw_only=True)
class HookEvent:
    """Somebody starts, and gets the lessons of the phase that fit ``query`` and ``files``; or something failed: ``agent_return`` is recorded.

    ``phase``: by the agent's type. ``may_ask``: who returns a failure without a lesson can be asked for its words before it ends.
    """

    name: str
    phase: str | None
    session_id: str
    query: str = ""
    files: tuple[str, ...] = ()
    agent_return: Mapping[str, Any] | None = None
    may_ask: bool = False


def read_hook(data: Mapping[str, Any], read_transcript: Callable[[str], str]) -> HookEvent | None:
    """Say what to do about a hook's input; ``None`` when there is nothing. ``read_transcript`` gives the end of a transcript."""
    name = _text(data, "hook_event_name")
    phase, session = phase_of(_text(data, "agent_type")), _text(data, "session_id") or "hook"
    event = HookEvent(name=name, phase=phase, session_id=session)
    match name:
        case "SessionStart" | "SubagentStart":
            path = _text(data, "transcript_path")
            query, files = task_of(read_transcript(path)) if path else ("", ())
            return replace(event, query=_text(data, "prompt") or query, files=files)
        case "PostToolUseFailure" if error := teaching_part(data):
            return replace(event, agent_return={"status": "failure", "errors": [{"message": error}]})
        case "SubagentStop" if returned := read_last_return(_text(data, "last_assistant_message")):
            return replace(event, agent_return=returned, may_ask=data.get("stop_hook_active") is not True)
    return None


def teaching_part(data: Mapping[str, Any]) -> str:
    """Return what of a tool's error may teach others: without the agent's slips, and only what makes a lesson."""
    if str(data.get("is_interrupt")).lower() == "true" or _text(data, "tool_name") in _OWN_TOOLS:
        return ""
    from kr.lessons.record import text_of  # heavy
    from kr.lessons.remedies import word_fault  # heavy

    error = re.sub(r"^Exit code -?\d+\n?", "", _text(data, "error"))
    rest = "\n".join(line for line in text_of(error).splitlines() if not _SLIP.search(line))
    worded = word_fault(rest) if len(rest.split()) > 2 else None
    # What the agent ran into may be anything: without a row of the table, only an exception or an error is one.
    is_error = worded and (worded.has_fix or re.search(r"(?i)error|exception|fatal|panic", worded.summary))
    return rest if is_error else ""


def phase_of(agent_type: str) -> str | None:
    """Map an agent's type to a phase by the words of its name (``code-reviewer``, ``bso-dev-runner``)."""
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", agent_type).lower())
    found = [phase for phase, known in _PHASE_WORDS.items() if any(re.fullmatch(known, it) for it in words)]
    if {"code-review", "story-creation"} <= set(found):
        return "story-review"
    return found[0] if found else None


def task_of(transcript: str) -> tuple[str, tuple[str, ...]]:
    """Return what a transcript of JSON lines says of the task: the last prompt, and the files that were changed.

    The prompt is what an agent is called with, or else what the user said last.
    """
    prompt = ""
    files: dict[str, None] = {}
    for role, part in _last_parts(transcript):
        if given := _mapping(part.get("input")):
            prompt = prompt or _text(given, "prompt")
            path = _text(given, "file_path") or _text(given, "notebook_path")
            if path and part.get("name") in _CHANGING:
                files[path] = None
        elif role == "user" and not part.get("tool_use_id"):
            prompt = prompt or _text(part, "text")
    return prompt, tuple(files)


def _last_parts(transcript: str) -> Iterator[tuple[object, Mapping[str, Any]]]:
    """Yield the parts of all messages, each with who said it, those of the last message first."""
    for line in reversed(transcript.splitlines()):
        with suppress(ValueError, RecursionError):
            message = _mapping(_mapping(json.loads(line)).get("message"))
            content = message.get("content")
            for part in content if isinstance(content, list) else [{"text": content}]:
                yield message.get("role"), _mapping(part)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    # A lone surrogate is no text that a database or a stream could take.
    return value.encode(errors="replace").decode() if isinstance(value, str) else ""


# --- the return in an agent's last words ---


def read_last_return(message: str) -> dict[str, Any] | None:
    """Return what an agent returned with its last words; lessons alone, of who was asked for them, are those of a failure."""
    for text in returned_documents(message):
        with suppress(InvalidRequest):
            data: Any = read_document(text.encode(errors="replace"))
            data = data.get("return") or data
            if isinstance(data, dict) and any(data.get(name) for name in _SIGNS):
                return data if data.get("status") else {**data, "status": "failure"}
    return None


def returned_documents(message: str) -> list[str]:
    """Return the texts that may be the agent's return, the most likely first: at most eight.

    What ends last in the message comes first, and of two that end alike the longer one: fenced blocks, JSON objects, and
    lines that read as YAML from a return's first key on, up to a blank line or to the end.
    """
    text = message[-LOOKED_AT:].replace("\r\n", "\n")
    if not any(sign in text for sign in _SIGNS):
        return []
    spans = {fenced.span("body") for fenced in _FENCED.finditer(text)}
    outside = _FENCED.sub(lambda fenced: "!" * len(fenced[0]), text)
    for found in islice(_BEGINNING.finditer(outside), _MOST_TRIES):
        if found[0] == "{":
            spans.add((found.start(), text.rfind("}") + 1))
        else:
            blank = outside.find("\n\n", found.start())
            spans |= {(found.start(), blank if blank >= 0 else len(text)), (found.start(), len(text))}
    bodies = (text[start:end] for start, end in sorted(spans, key=lambda span: (-span[1], span[0])))
    return list(islice((body for body in bodies if any(sign in body for sign in _SIGNS)), _MOST_DOCUMENTS))
