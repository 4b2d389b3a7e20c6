"""The line format of the lessons file (seed 003, "Entry Format Specification"; SPEC 4.1). Pure.

One lesson is one line: ``- [YYYY-MM-DD] [tag, tag…] summary. Ref: path``.
"""

import re
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from kr.naming import sha256_of
from kr.text import columns, strip_invisible, width_of
from kr.values import PHASES

HEADER = """\
# Lessons Learned

> Auto-recorded by BSO Sprint Orchestrator. Entries are append-only.
> Format: - [YYYY-MM-DD] [phase-tag] Summary. Ref: file/path:line

"""
"""What a new file begins with (seed 003, step 5.2)."""

LINE_COLUMNS = 160
"""Two lines of 80 columns: a lesson with its number, without its reference."""

SUMMARY_COLUMNS = LINE_COLUMNS - len("10. ")
"""What a lesson that kr words takes at most."""
KEPT_COLUMNS = 2 * LINE_COLUMNS
"""What the file keeps of a lesson in somebody's own words. It is given in ``LINE_COLUMNS``, searched and shown whole."""
FIX_COLUMNS = 120
"""A longer fix is refused: it is given whole."""

ELLIPSIS = "…"

_HEAD = re.compile(r"- +\[([0-9]{4}-[0-9]{2}-[0-9]{2})\][ \t]*\[([^\[\]]*)\][ \t]*(?=\S)")
_REF = ("Ref:", "Ref：")
_SENTENCE_MARKS = ".。;；"
_OTHER_MARKS = "!?！？…"
_BEFORE_REF = f" {_SENTENCE_MARKS}{_OTHER_MARKS}"
_NO_REF = frozenset({"", "N/A", "n/a", "-"})
_TRAILING_MARKS = " .。;；,，:："


@dataclass(frozen=True, slots=True)
class Lesson:
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
        """Made from the text alone, so that every process finds the same one."""
        text = "\0".join((self.date, ",".join(self.tags), self.summary, self.ref or ""))
        return sha256_of(text.encode(errors="surrogatepass"))[:16]


@dataclass(frozen=True, slots=True)
class ParsedLines:
    """Lines of a file; ``unread`` counts those that are no lesson, and neither blank, a heading nor a quote."""

    lessons: tuple[Lesson, ...]
    unread: tuple[int, ...] = ()


def parse_lines(text: str, first: int = 0) -> ParsedLines:
    """Read every line as a lesson or none; ``first`` is the position of the first one.

    Only a line feed ends a line: another kind of line break inside a lesson must not make two of it. A line that holds a
    NUL or a byte that is no UTF-8 (read as a lone surrogate) costs itself alone.
    """
    lessons: list[Lesson] = []
    unread: list[int] = []
    is_damaged = _is_damaged(text)
    for position, line in enumerate(text.removeprefix("\ufeff").split("\n"), first):
        head = None if is_damaged and _is_damaged(line) else _HEAD.match(line)
        if head is not None and (lesson := _lesson(head, line, position)):
            lessons.append(lesson)
        elif line.strip() and not line.lstrip().startswith(("#", ">")):
            unread.append(position)
    return ParsedLines(tuple(lessons), tuple(unread))


def _lesson(head: re.Match[str], line: str, position: int) -> Lesson | None:
    tags = _tags(head[2])
    summary, ref = split_ref(line[head.end() :].rstrip())
    return Lesson(head[1], tags, summary, ref, position) if tags and summary and _is_date(head[1]) else None


def _is_damaged(text: str) -> bool:
    return "\0" in text or (not text.isascii() and re.search("[\ud800-\udfff]", text) is not None)


@lru_cache(maxsize=4096)
def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1024)
def _tags(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(str.strip, re.split("[,，、]", text)))))


def split_ref(text: str) -> tuple[str, str | None]:
    """Part ``summary. Ref: path``; the last ``Ref:`` counts, and a path that says nothing is none."""
    at = max(text.rfind(mark) for mark in _REF)
    while at > 0 and text[at - 1] not in _BEFORE_REF and not text[at - 1].isspace():
        at = max(text.rfind(mark, 0, at) for mark in _REF)
    if at < 0:
        return text, None
    summary = text[:at].rstrip()
    if summary and summary[-1] in _SENTENCE_MARKS:
        summary = summary[:-1].rstrip()
    path = text[at + len(_REF[0]) :].strip()
    return summary, None if path in _NO_REF else path


def format_line(lesson: Lesson) -> str:
    """Write a lesson as its line, without the line feed. Its parts must be clean (``make_lesson``)."""
    stop = "" if lesson.summary[-1:] in tuple(_OTHER_MARKS) else "."
    ref = f"{stop} Ref: {lesson.ref}" if lesson.ref else ""
    return f"- [{lesson.date}] [{', '.join(lesson.tags)}] {lesson.summary}{ref}"


def make_lesson(day: str, tags: tuple[str, ...], summary: str, ref: str | None) -> Lesson | None:
    """Make a lesson that survives a way through the file; ``None`` when nothing of its text is left."""
    kept = tuple(dict.fromkeys(filter(None, map(_clean_tag, tags))))
    text = _strip_ref(one_line(summary)).rstrip(_TRAILING_MARKS)
    return Lesson(day, kept, text, _clean_ref(ref)) if kept and text else None


def one_line(text: str) -> str:
    """Make one trimmed line without control and invisible characters."""
    return " ".join(strip_invisible(text).split())


def _strip_ref(text: str) -> str:
    """Keep a text from reading as one with a reference."""
    return re.sub(r"\bRef([:：])", r"ref\1", text)


def _clean_tag(text: str) -> str:
    return one_line(re.sub(r"[\[\],，、]", " ", text))


def _clean_ref(text: str | None) -> str | None:
    """Make one line of a path; ``None`` when it says nothing, or reads as more than a path.

    A path may hold blanks (``My Project/a.py``) or brackets (``app/[id]/page.tsx``).
    """
    first = next(filter(str.strip, (text or "").splitlines()), "")
    ref = _strip_ref(one_line(first))
    return None if ref in _NO_REF or re.search(r"(?:^|\s)\[|\](?:\s|$)", ref) else ref


def word_lesson(symptom: str, fix: str, limit: int = SUMMARY_COLUMNS) -> str:
    """Write both halves of a lesson, ``{symptom}: {fix}``, in ``limit`` columns: what is too long loses of its symptom."""
    symptom, fix = (one_line(half).strip(_TRAILING_MARKS) for half in (symptom, fix))
    room = limit - columns(fix) - 2
    return f"{cut(symptom, room)}: {fix}" if symptom and room > 0 else cut(fix, limit)


def fit_summary(text: str, limit: int) -> str:
    """Shorten a line that somebody wrote to ``limit`` columns: of two halves the first one loses."""
    if columns(text) <= limit:
        return text
    for colon in re.finditer(r": |：", text):
        fix = text[colon.end() :]
        if columns(fix) <= FIX_COLUMNS:
            return word_lesson(text[: colon.start()], fix, limit)
    return cut(text, limit)


def cut(text: str, limit: int) -> str:
    """Return at most ``limit`` columns of ``text``, cut behind a word where one ends near; what was cut ends in ``…``."""
    if columns(text) <= limit:
        return text
    room = limit - 1
    for at, character in enumerate(text):
        room -= width_of(character)
        if room < 0:
            kept = text[:at]
            word = kept.rpartition(" ")[0] if text[at : at + 1].strip() else kept
            near_enough = len(kept) - len(word) < 20 and word
            return (word if near_enough else kept).rstrip(f"{_TRAILING_MARKS}(") + ELLIPSIS if kept else ""
    return text


def cut_start(text: str, limit: int) -> str:
    """Return the last ``limit`` columns of a path: its end tells more."""
    kept = text
    while columns(kept) > limit - 1:
        kept = kept[1:]
    return text if columns(text) <= limit else f"{ELLIPSIS}{kept}"
