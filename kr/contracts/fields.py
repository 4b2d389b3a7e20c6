"""The kinds of field that requests are made of, and how a bad one is named.

Every validator's message is a detail after the seed's words ``Validation failed:`` (seed 000, step 1).
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BaseModel, BeforeValidator, ValidationError, ValidationInfo
from pydantic_core import PydanticCustomError

from kr.errors import FieldError
from kr.values import PHASES

_STORY_KEY = re.compile(r"[0-9]+-[0-9]+")
_SURROGATE = re.compile("[\ud800-\udfff]")
_LINE_SEPARATORS = "\u2028\u2029"
_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and a symbol that are blank."""
_COUNT = re.compile(r"0|[1-9][0-9]*")
_MOST_DIGITS = 18
"""A longer number fits no integer column and no timer, and nobody means it."""

Model = TypeVar("Model", bound=BaseModel)


def bad(detail: str) -> PydanticCustomError:
    """Make the error that reads ``Validation failed: {detail}``."""
    # The detail may quote what an agent sent: it travels as a value, never as a template.
    return PydanticCustomError("kr", "{message}", {"message": f"Validation failed: {detail}"})


def worded(message: str) -> PydanticCustomError:
    """Make an error whose whole message is given by a seed."""
    return PydanticCustomError("kr", "{message}", {"message": message})


def as_text(value: object) -> str:
    """Take a scalar as text; refuse lists and mappings. Booleans and numbers read as YAML writes them."""
    if isinstance(value, str):
        if not value.isascii() and _SURROGATE.search(value):
            raise bad("is no valid Unicode text")
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
    return all(c.isspace() or c in _FILLERS or unicodedata.category(c) == "Cf" for c in text)


def _not_blank(text: str) -> str:
    if is_blank(text):
        raise bad("must not be empty")
    return text


def _story_key(text: str) -> str:
    if not _STORY_KEY.fullmatch(text):
        raise bad(f"must look like 3-1 (epic-story, digits only), not {shown(text)}")
    return text


def _one_line(text: str) -> str:
    for character in text:
        if unicodedata.category(character) == "Cc" or character in _LINE_SEPARATORS:
            raise bad(f"must not contain line breaks or control characters (found U+{ord(character):04X})")
    return text.strip()


def _phase(value: object, info: ValidationInfo) -> str:
    phases = (info.context or {}).get("phases", PHASES)
    if isinstance(value, str) and value in phases:
        return value
    detail = shown(value) if value else "required, but missing"
    raise worded(f"Invalid phase tag: {detail}; allowed: {', '.join(phases)}")


def shown(value: object, limit: int = 60) -> str:
    """Quote what was given, shortened, in one line, for a message."""
    text = value if isinstance(value, str) else str(value)
    text = "".join(c if c.isprintable() else "\ufffd" for c in text[: limit + 1])
    return f'"{text[:limit]}…"' if len(text) > limit else f'"{text}"'


Text = Annotated[str, BeforeValidator(as_text), AfterValidator(_not_blank)]
"""Non-empty text; white space alone is empty (SPEC 3.1)."""

Line = Annotated[Text, AfterValidator(_one_line)]
"""Non-empty text without control characters and line breaks (SPEC 3.7), trimmed."""


def one_of(*names: str) -> Callable[[object], str]:
    """Take one of these words."""

    def read(value: object) -> str:
        if isinstance(value, str) and value in names:
            return value
        raise bad(f"must be one of {', '.join(names)}, not {shown(value)}")

    return read


def _yes_no(value: object) -> bool:
    """Take a boolean, or as a document's text has it: scalars are read as text (SPEC 3.1)."""
    if isinstance(value, bool):
        return value
    text = value.strip().lower() if isinstance(value, str) else None
    if text not in {"true", "false"}:
        raise bad(f"must be true or false, not {shown(value)}")
    return text == "true"


YesNo = Annotated[bool, BeforeValidator(_yes_no)]
StoryKey = Annotated[Text, AfterValidator(_story_key)]
Phase = Annotated[str, BeforeValidator(_phase)]


def _paths(value: object) -> object:
    """Take a single path, and pass over what is none: optional fields never stop a recording."""
    given = value if isinstance(value, list | tuple) else (value,)
    texts = (as_text(item) for item in given if item is not None and not isinstance(item, Mapping | list))
    return tuple(text for text in texts if text.strip())


def _optional_text(value: object) -> object:
    if value is None or isinstance(value, Mapping):
        return ""
    if isinstance(value, list | tuple):
        return ", ".join(
            as_text(item) for item in value if item is not None and not isinstance(item, Mapping | list)
        )
    return as_text(value)


OptionalText = Annotated[str, BeforeValidator(_optional_text), AfterValidator(str.strip)]
OptionalPaths = Annotated[tuple[str, ...], BeforeValidator(_paths)]
"""Texts of an optional field, which never stops a request."""


def read_count(value: object, *, zero_is_meant: bool) -> int | None:
    """Read an override that must be a positive integer below 10**18; ``None`` when it is none (seed 000, step 1).

    ``zero_is_meant`` lets ``0`` through (SPEC 3.1: ``max_calls: 0`` means that nothing is left).
    """
    text = value.strip() if isinstance(value, str) else str(value) if type(value) is int else ""
    if not _COUNT.fullmatch(text) or (text == "0" and not zero_is_meant):
        return None
    return int(text) if len(text) <= _MOST_DIGITS else None


def validate(
    model: type[Model],
    data: Mapping[str, Any],
    rename: Callable[[str], str] = str,
    *,
    phases: Sequence[str] = PHASES,
) -> Model | list[FieldError]:
    """Build the model, or tell every bad field by its dotted name in the request; ``phases`` are the legal tags."""
    try:
        return model.model_validate(data, context={"phases": phases})
    except ValidationError as error:
        return list(_field_errors(error, rename))


def _field_errors(error: ValidationError, rename: Callable[[str], str]) -> Iterator[FieldError]:
    told: set[str] = set()
    for detail in error.errors(include_url=False, include_input=False):
        # A list's members are told under the list's own name: the table knows no `tags.0`.
        field = rename(".".join(part for part in detail["loc"] if isinstance(part, str)))
        if field in told:
            continue
        told.add(field)
        message = detail["msg"] if detail["type"] == "kr" else _GENERAL.get(detail["type"], detail["msg"])
        yield FieldError(field, message)


_GENERAL = {
    "missing": "Validation failed: required, but missing",
    "model_type": "Validation failed: must be a mapping",
    "list_type": "Validation failed: must be a list",
}


def unknown_keys(model: type[BaseModel], data: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Name every key of a request that the model, or a model within it, does not know."""
    for key, value in data.items():
        known = model.model_fields.get(key)
        if known is None:
            yield f"{prefix}{key}"
        elif (
            isinstance(value, Mapping)
            and isinstance(known.annotation, type)
            and issubclass(known.annotation, BaseModel)
        ):
            yield from unknown_keys(known.annotation, value, f"{prefix}{key}.")
