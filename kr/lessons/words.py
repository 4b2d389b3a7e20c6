"""A lesson in the words of who learned it: both halves, and what is wrong with them (SPEC 4.2)."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass

from kr.errors import FieldError, InvalidRequest
from kr.fields import bad, decoded, loose_text, read_fields, scalars, text
from kr.guard import clean, mask_secrets
from kr.lessons.line import FIX_COLUMNS, KEPT_COLUMNS, one_line, word_lesson
from kr.text import columns

logger = logging.getLogger(__name__)


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
        "symptom": text,
        "fix": _fix,
        "ref": loose_text,
        "tags": scalars,
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


def keep_words(symptom: str, fix: str) -> str:
    """Write both halves as the file keeps them, without secrets; says so where the symptom is cut."""
    summary = word_lesson(mask_secrets(clean(symptom)), mask_secrets(clean(fix)), KEPT_COLUMNS)
    taken = columns(one_line(symptom)) + columns(one_line(fix)) + 2
    if taken > KEPT_COLUMNS:
        logger.warning(
            "the symptom is cut: with its fix it takes %d columns, at most %d", taken, KEPT_COLUMNS
        )
    return summary
