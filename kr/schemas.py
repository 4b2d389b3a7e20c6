"""JSON Schemas of what the interface takes: for people, agents and ``/openapi.json``. What they allow is still checked."""

from typing import Any, get_args

from kr.models import EVENT_TYPES, PHASES, IfUnsure, Outcome
from kr.requests import LONGEST_LINE, LONGEST_QUESTION

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
TEXTS: Schema = {"type": "array", "items": TEXT}
_SCALAR = ["string", "number", "boolean"]  # read as the text that was written
_LINE: Schema = {"type": _SCALAR, "pattern": r"\S", "maxLength": LONGEST_LINE}
_QUESTION: Schema = {"type": _SCALAR, "pattern": r"\S", "maxLength": LONGEST_QUESTION}
_STORY_KEY: Schema = {"type": "string", "pattern": "^[0-9]+-[0-9]+$"}


def object_of(names: str, every: Schema = TEXT, **special: Schema) -> Schema:
    """Make the schema of an object with these properties. One that ends with ``?`` may be left out; all but ``special`` ones are ``every``."""
    properties = {name: special.get(name, every) for name in names.replace("?", "").split()}
    required = [name for name in names.split() if not name.endswith("?")]
    return {"type": "object", "properties": properties, "required": required}


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
    tags = {"type": "array", "items": _LINE, "minItems": 1}
    whole = object_of(
        "story_key session_id mode research_query config_overrides?",
        _LINE,
        story_key=_STORY_KEY,
        mode={"const": "research"},
        research_query=object_of(
            "framework framework_version topic tags question", _LINE, tags=tags, question=_QUESTION
        ),
        config_overrides=overrides,
    )
    short = "Also taken: framework and question at the top, with what else is known beside them; the rest is derived."
    return {**whole, "description": short}


def text_of(description: str) -> Schema:
    return {"type": "string", "description": description}


FINDING = object_of(
    "framework question answer code? caveats? sources? verified_by? framework_version? topic? tags? entry? "
    "story_key? session_id?",
    question=text_of("as another would ask"),
    answer=text_of("Markdown, at most 1,200 tokens"),
    sources=TEXTS,
    verified_by=text_of("test or command"),
    tags=TEXTS,
    entry=text_of("id"),
)
LESSON = object_of(
    "symptom fix ref? tags?",
    symptom=text_of("what one sees"),
    fix=text_of("what to do, 120 characters"),
    ref=text_of("file:line"),
    tags=TEXTS,
)
RATING = object_of("outcome note? session_id? story_key?", outcome={"enum": [*get_args(Outcome)]})


def finding_request() -> Schema:
    """Give the schema of a finding (rule 3.10)."""
    about = "With entry, the id of an entry, the finding improves that one. The answer may be a whole report."
    return {**FINDING, "description": about}


def inject_request() -> Schema:
    """Give the schema of F1's request in mode ``lessons-inject``, which it may leave out."""
    wanted = object_of(
        "phase framework? query? files?",
        phase={"enum": list(PHASES), "description": "One of these, or one that is configured."},
        # Of any type: what is no text is passed over, as in a recording.
        framework={"description": "The framework at hand."},
        query={"description": "The task, and every language, framework and tool it touches: fastapi, redis."},
        files={"description": "Paths, or a single one."},
    )
    mode = {"enum": ["lessons-inject", None]}
    names = "story_key session_id mode? lessons_inject"
    return object_of(names, _LINE, story_key=_STORY_KEY, mode=mode, lessons_inject=wanted)


def record_request() -> Schema:
    """Give the schema of U5's request: it describes, and forbids nothing, since recording never stops its caller (rule 4.2)."""
    properties = {
        "lessons": {
            "items": {"properties": LESSON["properties"]},
            "description": "Three at most, in your own words. With them phase, event_type and agent_return may be missing.",
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
    return {
        "description": "What is no valid request is answered with status skipped.",
        "properties": properties,
        "examples": [{"session_id": "sprint-1", "story_key": "3-1", "lessons": [worded]}],
    }
