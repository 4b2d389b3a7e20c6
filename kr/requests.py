"""The requests that kr takes: research, injection and recording of lessons, findings, ratings.

Each is a record with a table of how its fields are read (``kr.fields``). ``parse_…`` takes the nested plain data of a
document, in which scalars may be the text that was written, and returns the record, or raises ``InvalidRequest`` with
every bad field at once. The rules are the "Input Validation Rules" of F1 and U5.
"""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

from kr.errors import FieldError, InvalidRequest
from kr.fields import (
    Fields,
    Reader,
    bad,
    count,
    decoded,
    line,
    lines,
    loose_text,
    named,
    one_of,
    optional,
    read_fields,
    scalars,
    shown,
    text,
    warn_of_unknown,
    yes_no,
)
from kr.models import PHASES, IfUnsure, Query

logger = logging.getLogger(__name__)

Mode = Literal["research", "lessons-inject"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchOverrides:
    """What a caller of research may override; None is the configured value.

    ``refresh`` researches again whatever the cache holds; ``use`` is the id of the entry to be served.
    """

    max_calls: int | None = None
    timeout_seconds: int | None = None
    refresh: bool = False
    use: str | None = None
    if_unsure: IfUnsure = "research"


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchRequest:
    story_key: str
    session_id: str
    research_query: Query
    config_overrides: ResearchOverrides = ResearchOverrides()
    mode: Literal["research"] = "research"


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonsInject:
    """The ``lessons_inject`` of a request; framework, query and files narrow the choice."""

    phase: str
    framework: str = ""
    query: str = ""
    files: tuple[str, ...] = ()
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonsInjectRequest:
    story_key: str
    session_id: str
    lessons_inject: LessonsInject
    mode: Literal["lessons-inject"] = "lessons-inject"


def story_key(value: object) -> str:
    taken = text(value)
    if not re.fullmatch(r"[0-9]+-[0-9]+", taken):
        raise bad(f"must look like 3-1 (epic-story, digits only), not {shown(taken)}")
    return taken


def _tags(value: object) -> tuple[str, ...]:
    """Take a list of at least one tag (F1)."""
    value = decoded(value)
    if value is None:
        raise bad("required, but missing")
    if not isinstance(value, list | tuple):
        raise bad(f"must be a list of at least one tag, such as [a, b], not {shown(value)}")
    if not (tags := lines(value)):
        raise bad("must hold at least one tag")
    return tags


IDENTITY: Fields = {"story_key": story_key, "session_id": text}
_QUERY: Fields = {
    "framework": line,
    "framework_version": line,
    "topic": line,
    "tags": _tags,
    "question": lambda value: text(value).strip(),
}
_INJECT: Fields = {
    "phase": named("phase tag", PHASES),
    "framework": loose_text,
    "query": loose_text,
    "files": scalars,
    "dry_run": optional(yes_no, default=False),
}


def _counted(name: str, least: int) -> Reader:
    """Take a count; anything else is logged, and the configured value is used (F1, step 1)."""

    def read(value: object) -> int | None:
        number = count(value, least=least)
        if number is None:
            logger.warning(
                "config_overrides.%s: %s is no positive integer: the configured value is used",
                name,
                shown(value),
            )
        return number

    return optional(read)


_OVERRIDES: Fields = {
    "max_calls": _counted("max_calls", 0),
    "timeout_seconds": _counted("timeout_seconds", 1),
    "refresh": optional(yes_no, default=False),
    "use": optional(line),
    "if_unsure": optional(one_of(*get_args(IfUnsure)), "research"),
}
_BLOCKS: Mapping[str, Fields] = {
    "research_query": _QUERY,
    "lessons_inject": _INJECT,
    "config_overrides": _OVERRIDES,
}


def parse_request(
    data: Mapping[str, Any],
    *,
    default_mode: Mode | None = None,
    phases: Sequence[str] = PHASES,
) -> ResearchRequest | LessonsInjectRequest:
    """Check a request of either mode; ``default_mode`` stands in for a missing one. Raises ``InvalidRequest``."""
    blocks = {name: decoded(data.get(name)) for name in _BLOCKS}
    warn_of_unknown(data, {*IDENTITY, "mode", *_BLOCKS})
    for name, fields in _BLOCKS.items():
        warn_of_unknown(blocks[name], fields, f"{name}.")
    mode = default_mode if data.get("mode") is None else data["mode"]
    identity, errors = read_fields(IDENTITY, data)
    if mode not in MODES:
        errors.insert(0, _wrong_mode(mode))
    query: dict[str, Any] = {}
    inject: dict[str, Any] = {}
    said: dict[str, Any] = {}
    if mode == "research" or (mode not in MODES and blocks["research_query"]):
        query, wrong = read_fields(_QUERY, blocks["research_query"], "research_query.")
        said, odd = _overrides(blocks["config_overrides"])
        errors += [*wrong, *odd]
    if mode == "lessons-inject" or (mode not in MODES and blocks["lessons_inject"]):
        fields = {**_INJECT, "phase": named("phase tag", phases)}
        inject, wrong = read_fields(fields, blocks["lessons_inject"], "lessons_inject.")
        errors += wrong
    if errors:
        raise InvalidRequest(*errors)
    if mode == "research":
        return ResearchRequest(
            **identity, research_query=Query(**query), config_overrides=ResearchOverrides(**said)
        )
    return LessonsInjectRequest(**identity, lessons_inject=LessonsInject(**inject))


def with_overrides(data: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Put what is given beside a document over its ``config_overrides``."""
    own = decoded(data.get("config_overrides"))
    return {**data, "config_overrides": {**(own if isinstance(own, Mapping) else {}), **overrides}}


def _wrong_mode(mode: object) -> FieldError:
    given = "required, but missing" if mode is None else shown(mode)
    return FieldError("mode", f"Invalid mode: {given}; allowed: {', '.join(MODES)}")


def _overrides(given: object) -> tuple[dict[str, Any], list[FieldError]]:
    if given is not None and not isinstance(given, Mapping):
        logger.warning("config_overrides is no mapping: the configured values are used")
    values, errors = read_fields(_OVERRIDES, given, "config_overrides.")
    if values.get("refresh") and values.get("use"):
        problem = bad("can't be combined with refresh: an entry is served as it is, or researched again")
        errors.append(FieldError("config_overrides.use", str(problem)))
    return values, errors
