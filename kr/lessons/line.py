"""The line format of the lessons file (seed 003, "Entry Format Specification"; SPEC 4.1).

One lesson is one line: ``- [YYYY-MM-DD] [tag, tag…] summary. Ref: path``.
"""

import re
import unicodedata
from collections.abc import Container
from datetime import date
from functools import lru_cache
from typing import NamedTuple

from kr.naming import sha256_of
from kr.text.characters import strip_invisible
from kr.values import PHASES

HEADER = """\
# Lessons Learned

> Auto-recorded by BSO Sprint Orchestrator. Entries are append-only.
> Format: - [YYYY-MM-DD] [phase-tag] Summary. Ref: file/path:line

"""
"""What a new file begins with (seed 003, step 5.2)."""

QUARANTINED = "quarantined"
"""The tag of a lesson that is kept, and not injected until a person approves it (SPEC 4.1)."""

_HEAD = re.compile(r"- +\[([0-9]{4}-[0-9]{2}-[0-9]{2})\][ \t]*\[([^\[\]]*)\][ \t]*(?=\S)")
_REF = ("Ref:", "Ref：")
# The sentence mark belongs to the format: `summary. Ref: path`. A question or an exclamation is the author's own.
_FORMAT_MARKS = ".。;；"
_AUTHORS_MARKS = "!?！？…"
_BEFORE_REF = " " + _FORMAT_MARKS + _AUTHORS_MARKS
_TAG_BREAK = re.compile(r"[,，、]")
_NO_SUMMARY = ("Ref", *_FORMAT_MARKS)  # perhaps
_NO_REF = frozenset({"", "N/A", "n/a", "-"})
_REF_WORD = r"\bRef([:：])"
_OWN_BRACKETS = r"(?:^|\s)\[|\](?:\s|$)"
_LAST_MARK = r"[\s.。;；,，]+$"


class Lesson(NamedTuple):
    """One lesson. ``position`` is the number of its line in the file, from 0; later is newer."""

    date: str
    tags: tuple[str, ...]
    summary: str
    ref: str | None = None
    position: int = -1

    @property
    def phase(self) -> str:
        """The first tag that is a phase, or else the first tag."""
        return next((tag for tag in self.tags if tag in PHASES), self.tags[0])

    @property
    def id(self) -> str:
        """The lesson's name in the database: made from its text alone, so every process finds the same."""
        text = "\0".join((self.date, ",".join(self.tags), self.summary, self.ref or ""))
        return sha256_of(text.encode(errors="surrogatepass"))[:16]


class Parsed(NamedTuple):
    """A whole file, or the lessons of it that have a wanted tag; ``total`` counts all of them.

    ``unread`` counts lines that are no lesson, and neither blank, a heading nor a quote.
    """

    lessons: tuple[Lesson, ...]
    unread: int
    total: int


def _lesson(head: re.Match[str], line: str, position: int) -> Lesson | None:
    tags = _tags(head[2])
    summary, ref = split_ref(line[head.end() :].rstrip())
    if not tags or not summary or not _is_date(head[1]):
        return None
    return Lesson(head[1], tags, summary, ref, position)


def parse_file(text: str, tags: Container[str] | None = None) -> Parsed:
    """Read every line of a file as a lesson or none; the byte order mark, CRLF and a missing last line feed are no matter.

    Lessons without any of ``tags`` are counted, and not taken apart: that is what makes a long file quick.
    """
    lessons: list[Lesson] = []
    unread = total = 0
    is_clean = not _is_bad(text)
    # Only a line feed ends a line: another kind of line break inside a lesson must not make two of it.
    for position, line in enumerate(text.removeprefix("\ufeff").split("\n")):
        head = _HEAD.match(line) if is_clean or not _is_bad(line) else None
        if head is not None and tags is not None and _is_date(head[1]):
            found = _tags(head[2])
            is_other = found and all(tag not in tags for tag in found)
            if is_other and not line.startswith(_NO_SUMMARY, head.end()):
                total += 1
                continue
        lesson = _lesson(head, line, position) if head is not None else None
        if lesson is not None:
            lessons.append(lesson)
            total += 1
        elif line.strip() and not line.lstrip().startswith(("#", ">")):
            unread += 1
    return Parsed(tuple(lessons), unread, total)


def _is_bad(text: str) -> bool:
    """Tell whether a byte is no UTF-8 (a lone surrogate since it was read) or NUL: such a line costs itself alone."""
    return "\0" in text or (not text.isascii() and re.search("[\ud800-\udfff]", text) is not None)


def split_ref(text: str) -> tuple[str, str | None]:
    """Part ``summary. Ref: path``; the last ``Ref:`` counts, and a path that says nothing is none."""
    # Written out: a file of a hundred thousand lines comes by here.
    at = max(text.rfind(_REF[0]), text.rfind(_REF[1]))
    while at > 0 and text[at - 1] not in _BEFORE_REF and not text[at - 1].isspace():
        at = max(text.rfind(_REF[0], 0, at), text.rfind(_REF[1], 0, at))
    if at < 0:
        return text, None
    summary = text[:at].rstrip()
    if summary and summary[-1] in _FORMAT_MARKS:
        summary = summary[:-1].rstrip()
    path = text[at + len(_REF[0]) :].strip()
    return summary, None if path in _NO_REF else path


def format_line(lesson: Lesson) -> str:
    """Write a lesson as its line, without the line feed. The parts must be clean (``cleaned``)."""
    ref = (
        f"{'' if lesson.summary[-1:] in tuple(_AUTHORS_MARKS) else '.'} Ref: {lesson.ref}"
        if lesson.ref
        else ""
    )
    return f"- [{lesson.date}] [{', '.join(lesson.tags)}] {lesson.summary}{ref}"


def cleaned(lesson: Lesson) -> Lesson | None:
    """Return the lesson as it survives a way through the file; ``None`` when nothing of it is left."""
    tags = tuple(dict.fromkeys(tag for tag in map(clean_tag, lesson.tags) if tag))
    summary = clean_summary(lesson.summary)
    if not tags or not summary:
        return None
    return Lesson(date=lesson.date, tags=tags, summary=summary, ref=clean_ref(lesson.ref))


def clean_summary(text: str) -> str:
    """Make one line of it that ends in no full stop, and in which nothing reads as a reference."""
    return re.sub(_LAST_MARK, "", re.sub(_REF_WORD, r"ref\1", clean(text)))


def clean_ref(text: str | None) -> str | None:
    """Make one line of a path; ``None`` when it says nothing, or reads as more than a path.

    A path may hold blanks (``My Project/a.py``) or brackets (``app/[id]/page.tsx``); with a word in brackets of
    its own it would read as a line of the file.
    """
    first = next(filter(str.strip, (text or "").splitlines()), "")
    ref = re.sub(_REF_WORD, r"ref\1", clean(first))
    return None if ref in _NO_REF or re.search(_OWN_BRACKETS, ref) else ref


def clean_tag(text: str) -> str:
    """Make a tag that cannot leave its brackets."""
    return clean(re.sub(r"[\[\],，、]", " ", text))


def clean(text: str) -> str:
    """Make one trimmed line without control and invisible characters."""
    return " ".join(strip_invisible(text).split())


@lru_cache(maxsize=4096)
def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1024)
def _tags(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(tag for tag in (part.strip() for part in _TAG_BREAK.split(text)) if tag))


ELLIPSIS = "…"
_WIDE = frozenset({"W", "F"})
_NO_WIDTH = frozenset({"Mn", "Me", "Cf"})


def columns(text: str) -> int:
    """Count the columns that ``text`` takes; combining marks take none."""
    if text.isascii():
        return len(text)
    return sum(map(_width, text))


def cut(text: str, limit: int) -> str:
    """Return at most ``limit`` columns of ``text``; what had to be cut ends in ``…``."""
    if columns(text) <= limit:
        return text
    if limit < 1:
        return ""
    room = limit - 1
    for index, character in enumerate(text):
        room -= _width(character)
        if room < 0:
            return text[:index].rstrip() + ELLIPSIS
    return text


def cut_head(text: str, limit: int) -> str:
    """Like ``cut``, but keep the end: of a path that tells more."""
    kept = cut(text[::-1], limit)
    return kept[::-1]


def _width(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1
