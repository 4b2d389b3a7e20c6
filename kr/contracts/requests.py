"""Requests of F1 (seed 000, "Input Schema"): research and lessons-inject.

``parse_request`` takes the nested plain data of a document, in which scalars are text as written, and
answers with a typed request or with every bad field at once. What is odd but harmless (unknown keys, an
override that is no number) is a warning.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_args

from kr.contracts.fields import (
    Field,
    Fields,
    as_text,
    bad,
    is_blank,
    line,
    misspelt,
    one_of,
    optional_paths,
    optional_text,
    phase_of,
    read_count,
    read_fields,
    shown,
    story_key,
    text,
    unknown_keys,
    yes_no,
)
from kr.errors import FieldError, InvalidRequest
from kr.values import PHASES, IfUnsure, Query, Value

MODES = ("research", "lessons-inject")
Mode = Literal["research", "lessons-inject"]


class ConfigOverrides(Value):
    """What a caller may override; ``None`` is the configured value."""

    max_calls: int | None = None
    timeout_seconds: int | None = None


class ResearchOverrides(ConfigOverrides):
    """What a caller of research may say besides (SPEC 3.1, 3.2).

    ``refresh`` researches again whatever the cache holds; ``use`` is the id of the entry to be served; ``if_unsure``
    says what to do where kr is not sure.
    """

    refresh: bool = False
    use: str | None = None
    if_unsure: IfUnsure = "research"


class ResearchRequest(Value):
    """A request in mode ``research``."""

    story_key: str
    mode: Literal["research"] = "research"
    session_id: str
    research_query: Query
    config_overrides: ResearchOverrides = ResearchOverrides()


class LessonsInject(Value):
    """The ``lessons_inject`` of a request."""

    phase: str
    framework: str = ""
    query: str = ""
    files: tuple[str, ...] = ()
    dry_run: bool = False


class LessonsInjectRequest(Value):
    """A request in mode ``lessons-inject``."""

    story_key: str
    mode: Literal["lessons-inject"] = "lessons-inject"
    session_id: str
    lessons_inject: LessonsInject
    config_overrides: ConfigOverrides = ConfigOverrides()


def _tags(value: object) -> tuple[str, ...]:
    """Drop blank members, as long as one tag is left (seed 000: at least one tag)."""
    if value is None:
        raise bad("required, but missing")
    if not isinstance(value, list | tuple):
        raise bad("must be a list of at least one tag")
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


def _inject_fields(phases: Sequence[str]) -> Fields:
    return {
        "phase": Field(phase_of(phases)),
        "framework": Field(optional_text),
        "query": Field(optional_text),
        "files": Field(optional_paths),
        "dry_run": Field(yes_no, default=False),
    }


class Parsed(Value):
    """A valid request with what is to be said about it on standard error."""

    request: ResearchRequest | LessonsInjectRequest
    warnings: tuple[str, ...]


def parse_request(
    data: Mapping[str, Any], *, default_mode: Mode | None = None, phases: Sequence[str] = PHASES
) -> Parsed:
    """Validate a request of either mode (seed 000, "Input Validation Rules").

    ``default_mode`` stands in for a missing ``mode`` where a command takes one mode alone.
    Raises ``InvalidRequest`` with one ``FieldError`` per bad field.
    """
    blocks = {"research_query": _QUERY, "lessons_inject": _inject_fields(phases)}
    overrides = {**dict.fromkeys(_COUNTS), **_OVERRIDES}
    within: dict[str, Any] = {**blocks, "config_overrides": overrides}
    warnings = [f"unknown key ignored: {shown(key)}" for key in unknown_keys(_KEYS, data, within=within)]
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
    if mode == "research":
        said, more = _research_overrides(data.get("config_overrides"))
        errors += more
        if not errors:
            research = ResearchRequest(
                **identity,
                research_query=Query(**asked),
                config_overrides=ResearchOverrides(**counts, **said),
            )
            return Parsed(request=research, warnings=tuple(warnings))
    if errors:
        raise InvalidRequest(*errors, warnings=warnings)
    inject = LessonsInjectRequest(
        **identity, lessons_inject=LessonsInject(**asked), config_overrides=ConfigOverrides(**counts)
    )
    return Parsed(request=inject, warnings=tuple(warnings))


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
