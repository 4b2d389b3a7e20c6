"""A lesson in the words of who learned it: both halves, and what is wrong with them (SPEC 4.2). Pure."""

from collections.abc import Mapping
from dataclasses import dataclass

from kr.contracts.lessons import decoded
from kr.contracts.requests import Field, bad, optional_paths, optional_text, read_fields, text
from kr.errors import FieldError, InvalidRequest
from kr.lessons.line import FIX_COLUMNS
from kr.text.characters import columns


@dataclass(frozen=True, slots=True)
class LessonWords:
    """A lesson in the words of who learned it."""

    symptom: str
    fix: str
    ref: str = ""
    tags: tuple[str, ...] = ()


def read_words(value: object) -> LessonWords:
    """Read one lesson that was handed over. Raises ``InvalidRequest`` with an error per bad half."""
    given = decoded(value)
    if not isinstance(given, Mapping):
        raise InvalidRequest(FieldError("", "must be a mapping with symptom and fix"))
    fields = {
        "symptom": Field(text),
        "fix": Field(_fix),
        "ref": Field(optional_text),
        "tags": Field(lambda tags: optional_paths(decoded(tags))),
    }
    read, errors = read_fields(fields, given)
    if errors:
        raise InvalidRequest(*errors)
    return LessonWords(**read)


def _fix(value: object) -> str:
    fix = " ".join(text(value).split())
    if (taken := columns(fix)) > FIX_COLUMNS:
        raise bad(f"is too long: {taken} columns, at most {FIX_COLUMNS}; say what to do in one sentence")
    return fix
