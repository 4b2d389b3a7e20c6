"""Requests of F1 (seed 000, "Input Schema"): research and lessons-inject; and the kinds of field they are made of.

``parse_request`` takes the nested plain data of a document, in which scalars are text as written, and
answers with a typed request or with every bad field at once. What is odd but harmless (unknown keys, an
override that is no number) is a warning. A request is a table of readers: each takes what was given (None where nothing
was) and returns the value, or raises ``Bad``. Every message is a detail after the seed's words ``Validation failed:``.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Literal, get_args

from kr.errors import FieldError, InvalidRequest
from kr.models import PHASES, IfUnsure, Query
from kr.naming import nearest

_LINE_SEPARATORS = "\u2028\u2029"
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and a symbol that are blank."""
_MOST_DIGITS = 18
"""A longer number fits no integer column and no timer, and nobody means it."""


class Bad(Exception):
    """What was given is not allowed; the text is the whole message."""


def bad(detail: str) -> Bad:
    return Bad(f"Validation failed: {detail}")


Reader = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class Field:
    """How a field is read. Where its key is missing, ``read`` gets None, unless there is a ``default``."""

    read: Reader
    default: Any = NotImplemented


Fields = Mapping[str, Field]


def read_fields(
    fields: Fields, data: Mapping[str, Any], prefix: str = ""
) -> tuple[dict[str, Any], list[FieldError]]:
    """Read every field; give what could be read, and an error for each that could not, by its dotted name."""
    read: dict[str, Any] = {}
    errors: list[FieldError] = []
    for name, field in fields.items():
        if name not in data and field.default is not NotImplemented:
            read[name] = field.default
            continue
        try:
            read[name] = field.read(data.get(name))
        except Bad as wrong:
            errors.append(FieldError(f"{prefix}{name}", f"{wrong}{misspelt(name, fields, data)}"))
    return read, errors


def misspelt(name: str, known: Collection[str], data: Mapping[str, Any]) -> str:
    """End the message of a missing key: with the unknown key that is spelt nearly like it, or with nothing."""
    if name in data:
        return ""
    near = (key for key in data if key not in known and nearest(key, known) == name)
    return "".join(f"; {shown(key)} is unknown: did you mean {name}?" for key in near)


def unknown_keys(
    known: Mapping[str, Any],
    data: Mapping[str, Any],
    prefix: str = "",
    within: Mapping[str, Fields] = MappingProxyType({}),
) -> Iterator[str]:
    """Name every key that is not ``known``, nor known ``within`` a block."""
    for key, value in data.items():
        if key not in known:
            yield f"{prefix}{key}"
        elif key in within and isinstance(value, Mapping):
            yield from unknown_keys(within[key], value, f"{prefix}{key}.")


def as_text(value: object) -> str:
    """Take a scalar as text; refuse lists and mappings. Booleans and numbers read as YAML writes them."""
    if isinstance(value, str):
        if not value.isascii() and any("\ud800" <= character <= "\udfff" for character in value):
            raise bad("is not valid Unicode text")
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return str(value)
    if value is None:
        raise bad("required, but missing")
    raise bad(f"must be text, not a {'mapping' if isinstance(value, Mapping) else 'list'}")


def is_blank(text: str) -> bool:
    """Tell whether a text shows nothing: white space and invisible characters alone."""
    if text.isascii():
        return not text.strip()
    from unicodedata import category

    return all(c.isspace() or c in _FILLERS or category(c) == "Cf" for c in text)


def text(value: object) -> str:
    """Take text that is not blank; white space alone is (SPEC 3.1)."""
    taken = as_text(value)
    if is_blank(taken):
        raise bad("must not be empty")
    return taken


def line(value: object) -> str:
    """Take text that is not blank, without control characters and line breaks (SPEC 3.7), trimmed."""
    taken = text(value)
    if taken.isascii() and taken.isprintable():
        return taken.strip()
    from unicodedata import category

    for character in taken:
        if category(character) == "Cc" or character in _LINE_SEPARATORS:
            raise bad(f"must not contain line breaks or control characters (found U+{ord(character):04X})")
    return taken.strip()


def story_key(value: object) -> str:
    taken = text(value)
    epic, _, story = taken.partition("-")
    if not all(part.isascii() and part.isdigit() for part in (epic, story)):
        raise bad(f"must look like 3-1 (epic-story, digits only), not {shown(taken)}")
    return taken


def tag_of(what: str, names: Sequence[str]) -> Reader:
    """Take one of these names; the message has the seed's words, ``Invalid phase tag``."""

    def read(value: object) -> str:
        if isinstance(value, str) and value in names:
            return value
        detail = shown(value) if value else "required, but missing"
        raise Bad(f"Invalid {what}: {detail}; allowed: {', '.join(names)}")

    return read


def one_of(*names: str) -> Reader:
    def read(value: object) -> str:
        if isinstance(value, str) and value in names:
            return value
        raise bad(f"must be one of {', '.join(names)}, not {shown(value)}")

    return read


def yes_no(value: object) -> bool:
    """Take a boolean, or as a document's text has it: scalars are read as text (SPEC 3.1)."""
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else None
    if word not in {"true", "false"}:
        raise bad(f"must be true or false, not {shown(value)}")
    return word == "true"


def optional_paths(value: object) -> tuple[str, ...]:
    """Take paths or a single one, and pass over what is none: optional fields never stop a recording."""
    given = value if isinstance(value, list | tuple) else (value,)
    texts = (as_text(item) for item in given if item is not None and not isinstance(item, Mapping | list))
    return tuple(path for path in texts if path.strip())


def optional_text(value: object) -> str:
    """Take text that may be missing; a list's members stand side by side."""
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, list | tuple):
        members = (item for item in value if item is not None and not isinstance(item, Mapping | list))
        return ", ".join(map(as_text, members)).strip()
    return as_text(value).strip()


def read_count(value: object, *, zero_is_meant: bool) -> int | None:
    """Read an override that must be a positive integer below 10**18; ``None`` when it is none (seed 000, step 1).

    ``zero_is_meant`` lets ``0`` through (SPEC 3.1: ``max_calls: 0`` means that nothing is left).
    """
    digits = value.strip() if isinstance(value, str) else str(value) if type(value) is int else ""
    if not (digits.isascii() and digits.isdigit()) or (digits[0] == "0" and digits != "0"):
        return None
    if digits == "0" and not zero_is_meant:
        return None
    return int(digits) if len(digits) <= _MOST_DIGITS else None


def shown(value: object, limit: int = 60) -> str:
    """Quote what was given, shortened, in one line, for a message."""
    given = value if isinstance(value, str) else str(value)
    given = "".join(c if c.isprintable() else "\ufffd" for c in given[: limit + 1])
    return f'"{given[:limit]}…"' if len(given) > limit else f'"{given}"'


Mode = Literal["research", "lessons-inject"]
MODES = ("research", "lessons-inject")


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchOverrides:
    """What a caller of research may override (SPEC 3.1, 3.2); ``None`` is the configured value.

    ``refresh`` researches again whatever the cache holds; ``use`` is the id of the entry to be served; ``if_unsure``
    says what to do where kr is not sure.
    """

    max_calls: int | None = None
    timeout_seconds: int | None = None
    refresh: bool = False
    use: str | None = None
    if_unsure: IfUnsure = "research"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchRequest:
    """A request in mode ``research``."""

    story_key: str
    mode: Literal["research"] = "research"
    session_id: str
    research_query: Query
    config_overrides: ResearchOverrides = ResearchOverrides()


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonsInject:
    """The ``lessons_inject`` of a request."""

    phase: str
    framework: str = ""
    query: str = ""
    files: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonsInjectRequest:
    """A request in mode ``lessons-inject``."""

    story_key: str
    mode: Literal["lessons-inject"] = "lessons-inject"
    session_id: str
    lessons_inject: LessonsInject


def decoded(value: object) -> object:
    """Read JSON text where a list or a mapping is expected: MCP clients send such (SPEC 3.1)."""
    if not isinstance(value, str) or value.lstrip()[:1] not in {"[", "{"}:
        return value
    try:
        return json.loads(value)
    except (ValueError, RecursionError):
        return value


def _tags(value: object) -> tuple[str, ...]:
    """Drop blank members, as long as one tag is left (seed 000: at least one tag)."""
    value = decoded(value)
    if value is None:
        raise bad("required, but missing")
    if not isinstance(value, list | tuple):
        raise bad(f"must be a list of at least one tag, such as [a, b], not {shown(value)}")
    given = [as_text(tag) for tag in value if tag is not None]
    tags = dict.fromkeys(tag for tag in given if not is_blank(tag))
    if not tags:
        raise bad("must hold at least one tag")
    return tuple(map(line, tags))


_IDENTITY: Fields = {"story_key": Field(story_key), "session_id": Field(text)}
_QUERY: Fields = {
    "framework": Field(line),
    "framework_version": Field(line),
    "topic": Field(line),
    "tags": Field(_tags),
    "question": Field(lambda value: text(value).strip()),
}
_COUNTS = ("max_calls", "timeout_seconds")
_OVERRIDES: Fields = {
    "refresh": Field(yes_no, default=False),
    "use": Field(line, default=None),
    "if_unsure": Field(one_of(*get_args(IfUnsure)), default="research"),
}
_BLOCKS = {"research": "research_query", "lessons-inject": "lessons_inject"}
_KEYS = dict.fromkeys((*_IDENTITY, "mode", *_BLOCKS.values(), "config_overrides"))
"""Every key that either mode knows: a caller may send one document for both."""


_INJECT: Fields = {
    "phase": Field(tag_of("phase tag", PHASES)),
    "framework": Field(optional_text),
    "query": Field(optional_text),
    "files": Field(optional_paths),
    "dry_run": Field(yes_no, default=False),
}
_WITHIN: Mapping[str, Fields] = {
    "research_query": _QUERY,
    "lessons_inject": _INJECT,
    "config_overrides": {**dict.fromkeys(_COUNTS, Field(as_text)), **_OVERRIDES},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """A valid request with what is to be said about it on standard error."""

    request: ResearchRequest | LessonsInjectRequest
    warnings: tuple[str, ...]


def parse_request(
    data: Mapping[str, Any], *, default_mode: Mode | None = None, phases: Sequence[str] = PHASES
) -> Parsed:
    """Validate a request (seed 000, "Input Validation Rules"). Raises ``InvalidRequest``; ``default_mode`` stands in for a missing one."""
    blocks = {
        "research_query": _QUERY,
        "lessons_inject": {**_INJECT, "phase": Field(tag_of("phase tag", phases))},
    }
    texts = [name for name in (*blocks, "config_overrides") if isinstance(data.get(name), str)]
    data = {**data, **{name: decoded(data[name]) for name in texts}}
    warnings = [
        f"unknown key ignored: {shown(key)}{_where(key)}" for key in unknown_keys(_KEYS, data, within=_WITHIN)
    ]
    mode = default_mode if data.get("mode") is None else data["mode"]
    if mode not in MODES:
        detail = "required, but missing" if mode is None else shown(mode)
        allowed = f"allowed: {', '.join(MODES)}{misspelt('mode', _KEYS, data)}"
        wrong = FieldError("mode", f"Invalid mode: {detail}; {allowed}")
        raise InvalidRequest(wrong, *_errors_whatever_the_mode(data, blocks), warnings=warnings)
    identity, errors = read_fields(_IDENTITY, data)
    block = _BLOCKS[mode]
    # A block that is missing or no mapping is told field by field, as the table lists them.
    given = data.get(block)
    asked, more = read_fields(blocks[block], given if isinstance(given, Mapping) else {}, f"{block}.")
    if hint := misspelt(block, _KEYS, data):
        errors.append(FieldError(block, f"Validation failed: required, but missing{hint}"))
    errors += more
    counts = _counts(data.get("config_overrides"), warnings)
    said, more = _research_overrides(data.get("config_overrides")) if mode == "research" else ({}, [])
    if errors := [*errors, *more]:
        raise InvalidRequest(*errors, warnings=warnings)
    request: ResearchRequest | LessonsInjectRequest
    if mode == "research":
        overrides = ResearchOverrides(**counts, **said)
        request = ResearchRequest(**identity, research_query=Query(**asked), config_overrides=overrides)
    else:
        request = LessonsInjectRequest(**identity, lessons_inject=LessonsInject(**asked))
    return Parsed(request=request, warnings=tuple(warnings))


def put_over(own: object, overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Put what is said beside a document over its ``config_overrides``. What is wrong there stays: ``parse_request`` refuses it."""
    given = own if isinstance(own, Mapping) else {}
    hidden = {key: given[key] for key in overrides if given.get(key) is not None}
    wrong = {error.field for error in read_fields(_OVERRIDES, hidden)[1]}
    return {**given, **{key: value for key, value in overrides.items() if key not in wrong}}


def _where(key: str) -> str:
    """Say in which block a key of the top belongs."""
    return next((f"; it belongs in {block}" for block, fields in _WITHIN.items() if key in fields), "")


def _errors_whatever_the_mode(data: Mapping[str, Any], blocks: Mapping[str, Fields]) -> list[FieldError]:
    """Check what can be checked without a mode: the identity, and the blocks that were sent."""
    _, errors = read_fields(_IDENTITY, data)
    for block, fields in blocks.items():
        if isinstance(data.get(block), Mapping):
            errors += read_fields(fields, data[block], f"{block}.")[1]
    return errors


def _research_overrides(value: object) -> tuple[dict[str, Any], list[FieldError]]:
    given = value if isinstance(value, Mapping) else {}
    said = {key: item for key, item in given.items() if item is not None}
    read, errors = read_fields(_OVERRIDES, said, "config_overrides.")
    if read.get("refresh") and read.get("use") is not None:
        problem = bad("can't be combined with refresh: an entry is served as it is, or researched again")
        errors.append(FieldError("config_overrides.use", str(problem)))
    return read, errors


def _counts(value: object, warnings: list[str]) -> dict[str, Any]:
    """Read the counts, where anything odd is a warning."""
    if value is not None and not isinstance(value, Mapping):
        warnings.append("config_overrides is not a mapping: the configured values are used")
    read: dict[str, Any] = {}
    for key in _COUNTS:
        given = value.get(key) if isinstance(value, Mapping) else None
        read[key] = read_count(given, zero_is_meant=key == "max_calls")
        if given is not None and read[key] is None:
            warnings.append(
                f"config_overrides.{key}: {shown(given)} is not a positive integer below 10^18: the configured value is used"
            )
    return read
