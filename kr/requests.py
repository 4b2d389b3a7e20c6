"""Reads request documents, YAML or JSON, and the fields in them; the requests of research and of lessons.

A request is a record whose fields name their readers (``field_read_by``): each takes what was given (None where nothing was), and
returns the value or raises ``Bad``. ``parse_…`` takes the nested plain data of a document, in which scalars may be the text
that was written, and returns the record, or raises ``InvalidRequest`` with every bad field at once. The rules are the "Input
Validation Rules" of F1 and U5. What is odd but harmless, such as an unknown key, is logged as a warning.
"""

import json
import logging
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, field, fields
from functools import partial
from typing import Any, Literal, TypeVar, get_args
from unicodedata import category

from kr.errors import BrokenYaml, FieldError, InvalidRequest
from kr.models import PHASES, IfUnsure, Query
from kr.text import DEPTH, Tree, is_blank, show_path

logger = logging.getLogger(__name__)

LIMIT = 1024 * 1024
"""Bytes that a request may have at most."""

LONGEST_LINE = 500
LONGEST_QUESTION = 1000
"""Characters of a question, which stands as the entry's title in every list: in a request as in a finding."""
_MOST_ITEMS = 20
_NAME = re.compile(r"(?!.*\.\.)[^!\"$-*,;-?\[-^`{-~]+", re.DOTALL)
"""The characters of a package's name: letters and digits of any script, and ``. - _ @ / + # :`` and blanks, no two dots together."""
_COUNT = re.compile(r"(\d{1,18})(\.0+)?", re.ASCII)
"""A longer number fits no integer column and no timer."""


def read_document(data: bytes | Mapping[str, Any]) -> Mapping[str, Any]:
    """Read one request, in which every number is the text that was written; plain data stays as it is. Raises ``InvalidRequest``."""
    if isinstance(data, Mapping):
        return data
    if len(data) > LIMIT:
        raise _unreadable(f"is larger than {LIMIT} bytes")
    encoding = "utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as exc:
        raise _unreadable(f"is no {encoding} text (byte {exc.start})") from exc
    try:
        tree = _read(text)
    except BrokenYaml as exc:
        named = show_path(tuple(step for step in exc.path if isinstance(step, str)))
        error = _unreadable(f"is broken: {exc}", named or "request")
        error.read = exc.read
        raise error from exc
    if not isinstance(tree, dict):
        found = "is empty" if tree is None else "is a list" if isinstance(tree, list) else "is plain text"
        raise _unreadable(f"{found}; it must be a mapping in YAML or JSON")
    return tree


def _unreadable(problem: str, field: str = "request") -> InvalidRequest:
    return InvalidRequest(FieldError(field, f"the request {problem}"))


def _read(text: str) -> Tree:
    """Read JSON where it is some; anything else is left to the reader of YAML, which names the place."""
    if text.lstrip().startswith("{"):
        with suppress(ValueError, RecursionError):
            value: Tree = json.loads(text, parse_int=str, parse_float=str, parse_constant=str)
            json.dumps(value, ensure_ascii=False).encode()  # a lone surrogate is a ValueError
            if _is_within(value, DEPTH):
                return value
    from kr.yaml_io import read_yaml  # heavy: PyYAML, which JSON does without

    return read_yaml(text)[0]


def _is_within(value: object, depth: int) -> bool:
    """Whether mappings and lists are nested no deeper."""
    members = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return members is None or (depth > 0 and all(_is_within(it, depth - 1) for it in members))


class Bad(Exception):
    """What was given is not allowed; the text is the whole message."""


def bad(detail: str) -> Bad:
    return Bad(f"Validation failed: {detail}")


T = TypeVar("T")
Reader = Callable[[Any], Any]
Fields = Mapping[str, "Reader | Fields"]
"""The readers of a mapping's fields by their names; a mapping of its own in place of a reader is one within."""


def field_read_by(read: Reader, default: Any = MISSING) -> Any:
    """Declare a field of a request, and how it is read; one that has a default may be missing or empty."""
    reader = read if default is MISSING else optional(read, default)
    return field(default=default, metadata={"read": reader})


def fields_of(record: type[Any]) -> Fields:
    """Return the readers of a request's fields, by their names."""
    return {each.name: each.metadata["read"] for each in fields(record) if "read" in each.metadata}


def read_fields(readers: Fields, data: object, prefix: str = "") -> tuple[dict[str, Any], list[FieldError]]:
    """Read every field of a mapping, and those of the mappings in it: the values that are right, and an error for each that is wrong."""
    given = data if isinstance(data, Mapping) else {}
    values: dict[str, Any] = {}
    errors: list[FieldError] = []
    for name, read in readers.items():
        if isinstance(read, Mapping):
            block, within = decoded(given.get(name)), f"{prefix}{name}."
            warn_of_unknown(block, read, within)
            values[name], wrong_ones = read_fields(read, block, within)
            errors += wrong_ones
            continue
        try:
            values[name] = read(given.get(name))
        except Bad as wrong:
            errors.append(FieldError(f"{prefix}{name}", str(wrong)))
    return values, errors


def checked(readers: Fields, data: object) -> dict[str, Any]:
    """Read every field of a mapping, and warn of keys that are unknown. Raises ``InvalidRequest``."""
    warn_of_unknown(data, readers)
    values, errors = read_fields(readers, data)
    if errors:
        raise InvalidRequest(*errors)
    return values


def parse(record: type[T], data: object) -> T:
    """Read a request whose fields were declared with ``field_read_by``. Raises ``InvalidRequest`` with every bad field."""
    return record(**checked(fields_of(record), data))


def warn_of_unknown(data: object, known: Collection[str], prefix: str = "") -> None:
    """Warn of what is ignored: unknown keys, and what is no mapping."""
    if not isinstance(data, Mapping):
        if data:
            logger.warning("%s is no mapping, and is ignored", prefix.removesuffix(".") or "what was given")
        return
    unknown = [f"{prefix}{key}" for key in data if key not in known]
    if unknown:
        logger.warning("unknown keys are ignored: %s", shown(", ".join(unknown), 1000))


def optional(read: Reader, default: Any = None) -> Reader:
    """Read a field that may be missing; an empty text or list is as if it were not there."""

    def reader(value: object) -> Any:
        is_absent = value is None or value in ([], ()) or (isinstance(value, str) and is_blank(value))
        return default if is_absent else read(value)

    return reader


def as_text(value: object) -> str:
    """Take a scalar as text; booleans and numbers read as YAML writes them."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | int | float):
        return str(value)
    if value is None:
        raise bad("required, but missing")
    raise bad(f"must be text, not a {'mapping' if isinstance(value, Mapping) else 'list'}")


def text(value: object, most: int | None = None) -> str:
    """Take text that shows something, of so many characters at most."""
    given = as_text(value)
    if is_blank(given):
        raise bad("must not be empty")
    if most is not None and len(given) > most:
        raise bad(f"has {len(given)} characters; at most {most}")
    return given


def block(value: object) -> str:
    """Take text of several lines, without the line breaks around it."""
    return text(value).strip("\n")


def line(value: object) -> str:
    """Take one line of 500 characters at most, without control characters, trimmed."""
    given = text(value)
    control = next((sign for sign in given if category(sign) in {"Cc", "Zl", "Zp"}), None)
    if control is not None:
        raise bad(f"must not contain line breaks or control characters (found U+{ord(control):04X})")
    return text(given.strip(), LONGEST_LINE)


def framework_name(value: object) -> str:
    """Take what may be the name of a framework or package."""
    given = line(value)
    if not any(map(str.isalnum, given)) or not _NAME.fullmatch(given):
        why = "must be a name: letters, digits, blanks and . - _ @ / + # : (no two dots together)"
        raise bad(f"{why}, not {shown(given)}")
    return given


def question(value: object) -> str:
    """Take a question; it may have lines."""
    taken = text(text(value).strip(), LONGEST_QUESTION)
    if not any(map(str.isalnum, taken)):
        raise bad("must hold a letter or a digit")
    return taken


def decoded(value: object) -> object:
    """Read JSON text where a list or a mapping is expected: MCP clients send such."""
    if not isinstance(value, str) or value.lstrip()[:1] not in {"[", "{"}:
        return value
    with suppress(ValueError, RecursionError):
        value = json.loads(value)
    return value


def lines(value: object) -> tuple[str, ...]:
    """Take a list of lines, or a single one; blank and repeated ones are passed over."""
    value = decoded(value)
    given = value if isinstance(value, list | tuple) else [value]
    shown_ones = (item for item in given if item is not None and not is_blank(as_text(item)))
    return tuple(dict.fromkeys(map(line, shown_ones)))


def few_lines(value: object) -> tuple[str, ...]:
    found = lines(value)
    if len(found) > _MOST_ITEMS:
        raise bad(f"has {len(found)} items; at most {_MOST_ITEMS}")
    return found


def one_of(what: str, names: Sequence[str]) -> Reader:
    """Take one of these names; the message has F1's words, such as ``Invalid phase tag``."""

    def read(value: object) -> str:
        if value in names:
            return str(value)
        given = shown(value) if value else "required, but missing"
        raise Bad(f"Invalid {what}: {given}; allowed: {', '.join(names)}")

    return read


def yes_no(value: object) -> bool:
    word = as_text(value).strip().lower()
    if word not in {"true", "false"}:
        raise bad(f"must be true or false, not {shown(value)}")
    return word == "true"


def scalars(value: object) -> tuple[str, ...]:
    """Take texts or a single one, and pass over what is none: such fields never stop a recording."""
    value = decoded(value)
    given = value if isinstance(value, list | tuple) else (value,)
    texts = (as_text(item) for item in given if item is not None and not isinstance(item, Mapping | list))
    return tuple(item for item in texts if item.strip())


def loose_text(value: object) -> str:
    """Take text that may be missing; members of a list stand side by side."""
    return ", ".join(scalars(value)).strip()


def count(value: object, *, least: int = 1) -> int | None:
    """Take a whole number in any form (``3``, ``"3"``, ``3.0``); None where it is none, or less than ``least``."""
    match = None if isinstance(value, bool) else _COUNT.fullmatch(str(value).strip())
    number = int(match[1]) if match else -1
    return number if number >= least else None


def shown(value: object, limit: int = 60) -> str:
    """Quote what was given in one line, shortened, for a message."""
    given = "".join(it if it.isprintable() else "\ufffd" for it in str(value)[: limit + 1])
    return f'"{given[:limit]}…"' if len(given) > limit else f'"{given}"'


# --- research, and lessons for a phase


Mode = Literal["research", "lessons-inject"]
MODES: tuple[Mode, ...] = get_args(Mode)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchOverrides:
    """What a caller of research may override; None is the configured value.

    ``use`` is the id of the entry to be served, which goes before ``refresh``: to research again whatever the cache holds.
    """

    max_calls: int | None = field_read_by(partial(count, least=0), None)
    timeout_seconds: int | None = field_read_by(count, None)
    refresh: bool = field_read_by(yes_no, default=False)
    use: str | None = field_read_by(line, None)
    if_unsure: IfUnsure = field_read_by(one_of("if_unsure", get_args(IfUnsure)), "research")  # noqa: RUF009 - a dataclass field
    notes: tuple[str, ...] = ()
    """What was not taken, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchRequest:
    """A request of mode ``research``."""

    story_key: str
    session_id: str
    research_query: Query
    config_overrides: ResearchOverrides = ResearchOverrides()


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonsInject:
    """The ``lessons_inject`` of a request; framework, query and files narrow the choice."""

    phase: str
    framework: str = field_read_by(loose_text, "")
    query: str = field_read_by(loose_text, "")
    files: tuple[str, ...] = field_read_by(scalars, ())


@dataclass(frozen=True, slots=True, kw_only=True)
class LessonsInjectRequest:
    """A request of mode ``lessons-inject``."""

    story_key: str
    session_id: str
    lessons_inject: LessonsInject


def story_key(value: object) -> str:
    given = text(value)
    if not re.fullmatch(r"[0-9]+-[0-9]+", given):
        raise bad(f"must be two numbers with a dash, such as 3-1 (0-0: no story), not {shown(given)}")
    return given


def _tags(value: object) -> tuple[str, ...]:
    """Take a list of at least one tag (F1)."""
    given = decoded(value)
    tags = few_lines(given) if isinstance(given, list | tuple) else ()
    if not tags:
        why = "required, but missing" if value is None else f"not {shown(value)}"
        raise bad(f"must be a list of at least one tag, such as [a, b]: {why}")
    return tags


IDENTITY: Fields = {"story_key": story_key, "session_id": partial(text, most=LONGEST_LINE)}
_QUERY: Fields = {
    "framework": framework_name,
    "framework_version": line,
    "topic": line,
    "tags": _tags,
    "question": question,
}
_BLOCKS = {"research": ("research_query", "config_overrides"), "lessons-inject": ("lessons_inject",)}
"""What a document of each mode is read for."""


def parse_request(
    data: Mapping[str, Any],
    *,
    default_mode: Mode | None = None,
    phases: Sequence[str] = PHASES,
) -> ResearchRequest | LessonsInjectRequest:
    """Check a request of either mode; ``default_mode`` stands in for a missing one. Raises ``InvalidRequest``."""
    blocks: Fields = {
        "research_query": _QUERY,
        "config_overrides": fields_of(ResearchOverrides),
        "lessons_inject": {"phase": one_of("phase tag", phases), **fields_of(LessonsInject)},
    }
    mode = default_mode if data.get("mode") is None else data["mode"]
    # Where nobody knows the mode, all that is there is checked.
    wanted = _BLOCKS[mode] if mode in MODES else [name for name in blocks if data.get(name)]
    own = {name: value for name, value in data.items() if name in wanted or name not in blocks}
    readers = {"mode": one_of("mode", MODES), **IDENTITY, **{name: blocks[name] for name in wanted}}
    read = checked(readers, {**own, "mode": mode})
    identity = {name: read[name] for name in IDENTITY}
    if mode == "lessons-inject":
        return LessonsInjectRequest(**identity, lessons_inject=LessonsInject(**read["lessons_inject"]))
    overrides = read["config_overrides"]
    notes = _fallbacks(decoded(data.get("config_overrides")), overrides)
    said = ResearchOverrides(**overrides, notes=notes)
    return ResearchRequest(**identity, research_query=Query(**read["research_query"]), config_overrides=said)


def _fallbacks(given: object, read: Mapping[str, Any]) -> tuple[str, ...]:
    """Say, and log, for which counts the configured value is used: what was given is none (F1, step 1)."""
    known = given if isinstance(given, Mapping) else {}
    wrong = [
        it for it in ("max_calls", "timeout_seconds") if known.get(it) not in (None, "") and read[it] is None
    ]
    why = "is no positive integer: the configured value is used"
    notes = tuple(f"config_overrides.{name}: {shown(known[name])} {why}" for name in wrong)
    for note in notes:
        logger.warning("%s", note)
    return notes


def with_overrides(data: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Put what is given beside a document over its ``config_overrides``."""
    own = decoded(data.get("config_overrides"))
    return {**data, "config_overrides": {**(own if isinstance(own, Mapping) else {}), **overrides}}
