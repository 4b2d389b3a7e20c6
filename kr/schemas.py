"""JSON Schemas of what the interface takes, exact enough that a generated request that fits is answered (rule 3.1)."""

from functools import cache
from typing import Any, get_args

from kr.models import EVENT_TYPES, PHASES, IfUnsure
from kr.requests import LONGEST_QUESTION
from kr.text import is_blank

Schema = dict[str, Any]

_SCALAR = ["string", "number", "boolean"]  # read as the text that was written
_LONGEST_LINE = 500
_CONTROLS = r"\x00-\x1f\x7f-\x9f\u2028\u2029"


def research_request() -> Schema:
    """Give the schema of F1's request in mode ``research`` (F1, request)."""
    overrides = {
        "description": "What is no positive whole number falls back to the configured value.",
        "properties": {
            "max_calls": {"description": "Calls to sources that this request may cost; 0 asks none."},
            "timeout_seconds": {"description": "Time that one source may take."},
            "refresh": {"enum": [True, False, None], "description": "Research again."},
            "if_unsure": {"enum": [*get_args(IfUnsure), None]},
        },
    }
    query = {
        "framework": _framework(),
        "framework_version": _line(),
        "topic": _line(),
        "tags": {"type": "array", "items": _line(), "minItems": 1},
        "question": _question(),
    }
    whole = _object(
        {
            **_identity(),
            "mode": {"const": "research"},
            "research_query": _object(query),
            "config_overrides": overrides,
        },
        optional=("config_overrides",),
    )
    short = "Also taken: framework and question at the top, with what else is known beside them; the rest is derived."
    return {**whole, "description": short}


def finding_request() -> Schema:
    """Give the schema of a finding (rule 3.10)."""
    maybe, texts = _maybe_line(), _maybe_text()
    lines = {
        "type": [*_SCALAR, "array", "null"],
        "items": maybe,  # a blank one is passed over
        "maxItems": 20,
        "pattern": f"^(?:[{_blanks()}]*|[^{_blanks()}{_CONTROLS}\\[][^{_CONTROLS}]*)$",
        "maxLength": _LONGEST_LINE,
    }
    optional: Schema = {
        "code": texts,
        "caveats": texts,
        "sources": {**lines, "description": "URLs or paths."},
        "verified_by": {**maybe, "description": "A test, a command, production."},
        "framework_version": maybe,
        "topic": maybe,
        "tags": lines,
        "story_key": {"type": ["string", "null"], "pattern": f"^(?:[0-9]+-[0-9]+|[{_blanks()}]*)$"},
        "session_id": _maybe_line(longest=None),
    }
    answer = {
        "type": _SCALAR,
        "pattern": "[0-9A-Za-z]",
        "description": "Markdown, or a whole report; with code and caveats at most 1,200 tokens.",
    }
    found = _object(
        {"framework": _framework(), "question": _question(), "answer": answer, **optional},
        optional=tuple(optional),
    )
    example = {
        "framework": "zod",
        "question": "How do I reject unknown keys?",
        "answer": "Use z.strictObject({...}): unknown keys are errors then.",
        "code": "z.strictObject({ name: z.string() }).parse({ name: 'a', age: 1 }) // throws",
        "verified_by": "npm test",
    }
    told = "With entry, the id of an entry, the finding improves that one."
    return {**found, "description": told, "examples": [example]}


def rating_request() -> Schema:
    """Give the schema of a rating (rule 3.10)."""
    optional: Schema = {
        "note": _maybe_line(),
        "session_id": _maybe_line(longest=None),
        "story_key": {"type": ["string", "null"], "pattern": f"^(?:[0-9]+-[0-9]+|[{_blanks()}]*)$"},
    }
    return _object({"outcome": {"enum": ["worked", "wrong"]}, **optional}, optional=tuple(optional))


def inject_request() -> Schema:
    """Give the schema of F1's request in mode ``lessons-inject``, which it may leave out."""
    asked = {
        "phase": {"enum": list(PHASES), "description": "One of these, or one that is configured."},
        # Of any type: what is no text is passed over, as in a recording.
        "framework": {"description": "The framework at hand.", "examples": ["vue"]},
        "query": {"description": "What the agent is about to do.", "examples": ["cache a response"]},
        "files": {"description": "Paths, or a single one.", "examples": [["src/app.py"]]},
    }
    optional = ("framework", "query", "files")
    return _object(
        {
            **_identity(),
            "mode": {"enum": ["lessons-inject", None]},
            "lessons_inject": _object(asked, optional=optional),
        },
        optional=("mode",),
    )


def record_request() -> Schema:
    """Give the schema of U5's request: it describes, and forbids nothing, since recording never stops its caller (rule 4.2)."""
    lesson = {
        "description": "A lesson in your own words: it is kept as it is worded.",
        "properties": {
            "symptom": {
                "description": "What one sees, best in 60 characters: given with the fix in 156, kept and searched whole.",
            },
            "fix": {
                "description": "What to do: at most 120 columns, or it is refused with the count.",
            },
            "ref": {"description": "The file, with its line.", "examples": ["src/List.vue:3"]},
            "tags": {"description": "What it is about beside the phase.", "examples": [["vue"]]},
        },
    }
    properties = {
        "lessons": {
            "items": lesson,
            "description": "Three at most. With them phase, event_type and agent_return may be missing.",
        },
        "phase": {"description": f"One of {', '.join(PHASES)}, or one that is configured."},
        "event_type": {"description": f"One of {', '.join(EVENT_TYPES)}."},
        "agent_return": {
            "description": "status, and here or in results: errors, issues (message, fix, severity, file, line), lessons, "
            "review_rounds, auto_fix_applied, artifacts; summary, agent."
        },
        "code_paths": {"description": "Paths that the failure is about."},
        "framework_context": {"description": "The framework at hand."},
        "additional_context": {"description": "What else is known."},
    }
    worded = {"symptom": "v-for without a key reuses the wrong row", "fix": "give every v-for a key"}
    examples = [
        {"session_id": "sprint-1", "story_key": "3-1", "lessons": [{**worded, "ref": "src/List.vue:3"}]},
        {
            "session_id": "sprint-1",
            "story_key": "3-1",
            "phase": "dev-execution",
            "event_type": "general_agent_failure",
            "agent_return": {
                "status": "failure",
                "errors": [{"message": "a list has no key", "fix": "Add one"}],
            },
            "framework_context": "vue",
        },
    ]
    return {
        "description": "What is no valid request is answered with status skipped.",
        "properties": properties,
        "examples": examples,
    }


def _identity() -> Schema:
    return {"story_key": {"type": "string", "pattern": "^[0-9]+-[0-9]+$"}, "session_id": _text()}


def _object(properties: Schema, *, optional: tuple[str, ...] = ()) -> Schema:
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, "required": required}


def _text() -> Schema:
    return {"type": _SCALAR, "pattern": f"[^{_blanks()}]"}


def _question() -> Schema:
    return {**_text(), "maxLength": LONGEST_QUESTION}


def _line() -> Schema:
    kept = f"[^{_CONTROLS}]*"
    return {"type": _SCALAR, "pattern": f"^{kept}[^{_blanks()}{_CONTROLS}]{kept}$"}


def _framework() -> Schema:
    """A package's name: no two dots together, and a letter or a digit in it."""
    kept = f'(?:\\.?[^{_CONTROLS}!"$-*,.;-?\\[-^`{{-~])*'
    return {"type": _SCALAR, "pattern": f"^{kept}\\.?[0-9A-Za-z]{kept}\\.?$", "maxLength": _LONGEST_LINE}


def _maybe_line(longest: int | None = _LONGEST_LINE) -> Schema:
    """A line that may be left out, empty or blank."""
    bound = {} if longest is None else {"maxLength": longest}
    return {"type": [*_SCALAR, "null"], "pattern": f"^(?:[^{_CONTROLS}]*|[{_blanks()}]*)$", **bound}


def _maybe_text() -> Schema:
    return {"type": [*_SCALAR, "null"]}


@cache
def _blanks() -> str:
    """Write the characters that show nothing as ranges of a regular expression."""
    ranges: list[list[int]] = []
    for number in range(0x10000):  # what an escape of four digits can write
        if is_blank(chr(number)):
            if ranges and ranges[-1][1] == number - 1:
                ranges[-1][1] = number
            else:
                ranges.append([number, number])
    return "".join(f"{_escaped(first)}-{_escaped(last)}" for first, last in ranges)


def _escaped(number: int) -> str:
    return f"\\u{number:04x}"
