"""The line format of the lessons file (U5, "Entry Format Specification"), and when two lessons say the same. Pure.

One lesson is one line: ``- [YYYY-MM-DD] [tag, tag…] summary. Ref: path``. The reference is optional.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from hashlib import sha256

from kr.models import PHASES
from kr.text import columns, contraries, keywords, strip_invisible, width_of

HEADER = """\
# Lessons Learned

> Auto-recorded by BSO Sprint Orchestrator. Entries are append-only.
> Format: - [YYYY-MM-DD] [phase-tag] Summary. Ref: file/path:line

"""
"""What a new file begins with (U5, step 5.2)."""

LINE_COLUMNS = 160
"""Two lines of 80 columns: what an agent is given of a lesson, with its number and without its reference."""
SUMMARY_COLUMNS = LINE_COLUMNS - len("10. ")
"""What a lesson that kr words takes at most."""
KEPT_COLUMNS = 2 * LINE_COLUMNS
"""What the file keeps of a lesson in somebody's own words."""
FIX_COLUMNS = 120
"""A longer fix is refused: it is always given whole."""
DUPLICATE_OVERLAP = 0.70
"""More shared keywords than this, and two lessons of one phase are one (U5, step 4)."""

_LESSON = re.compile(r"- +\[([0-9]{4}-[0-9]{2}-[0-9]{2})\][ \t]*\[([^\[\]]*)\][ \t]*(?=\S)(.*)", re.DOTALL)
_REF = "Ref"
_BEFORE_REF = " \t.。;；!?！？…"
_NO_REF = frozenset({"", "N/A", "n/a", "-"})
_STOPS = ".。;；"
_TRAILING_MARKS = " .。;；,，:："
_ELLIPSIS = "…"
# A number that counts: not the line in a path, nor a part of a name.
_NUMBER = re.compile(r"(?<![\w.:/#-])\d+(?:\.\d+)*")
# Where one of these stands, the order of the words says which is which: "call init() before connect()".
_ORDERING = re.compile(
    r"\b(?:before|after|instead of|rather than|over|from)\b|之前|之后|而不是|先", re.IGNORECASE
)
_LONGEST_COMPARED = 320


@dataclass(frozen=True, slots=True)
class Lesson:
    """One lesson. ``position`` is its place among the lessons of its file, from 0: later is newer; -1 in no file."""

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
        return sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class ParsedLines:
    """The lessons of a text, and the numbers of the lines (from 1) that are none, and neither blank, a heading nor a quote."""

    lessons: tuple[Lesson, ...]
    unread: tuple[int, ...] = ()


def parse_lines(text: str) -> ParsedLines:
    """Read every line as a lesson or as none.

    Only a line feed ends a line: another kind of line break inside a lesson must not make two of it. A line that holds a
    NUL or a byte that is no UTF-8 (read as a lone surrogate) costs itself alone.
    """
    lessons: list[Lesson] = []
    unread: list[int] = []
    is_damaged = _is_damaged(text)
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), start=1):
        found = None if is_damaged and _is_damaged(line) else _LESSON.match(line)
        if found and (lesson := _to_lesson(found[1], found[2], found[3], len(lessons))):
            lessons.append(lesson)
        elif line.strip() and not line.lstrip().startswith(("#", ">")):
            unread.append(number)
    return ParsedLines(tuple(lessons), tuple(unread))


def _to_lesson(day: str, tag_list: str, rest: str, position: int) -> Lesson | None:
    tags = _split_tags(tag_list)
    summary, ref = _split_ref(rest.rstrip())
    return Lesson(day, tags, summary, ref, position) if tags and summary and _is_date(day) else None


def _is_damaged(text: str) -> bool:
    return "\0" in text or (not text.isascii() and re.search("[\ud800-\udfff]", text) is not None)


@lru_cache(maxsize=4096)
def _is_date(text: str) -> bool:
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


@lru_cache(maxsize=4096)
def _split_tags(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(str.strip, re.split("[,，、]", text)))))


def _split_ref(text: str) -> tuple[str, str | None]:
    """Part ``summary. Ref: path``; the last ``Ref:`` counts, and a path that says nothing is none."""
    at = text.rfind(_REF)
    while at >= 0 and not (text[at + 3 : at + 4] in {":", "："} and (at == 0 or text[at - 1] in _BEFORE_REF)):
        at = text.rfind(_REF, 0, at)
    if at < 0:
        return text, None
    summary, path = text[:at].rstrip(), text[at + 4 :].strip()
    if summary.endswith(tuple(_STOPS)):
        summary = summary[:-1].rstrip()
    return summary, None if path in _NO_REF else path


def format_line(lesson: Lesson) -> str:
    """Write a lesson as its line, without the line feed. Its parts must be clean (``make_lesson``)."""
    stop = "" if lesson.summary.endswith(tuple("!?！？…")) else "."
    ref = f"{stop} Ref: {lesson.ref}" if lesson.ref else ""
    return f"- [{lesson.date}] [{', '.join(lesson.tags)}] {lesson.summary}{ref}"


def make_lesson(day: str, tags: tuple[str, ...], summary: str, ref: str | None) -> Lesson | None:
    """Make a lesson that survives a way through the file; ``None`` when nothing of its text is left."""
    kept = tuple(dict.fromkeys(filter(None, (one_line(re.sub(r"[\[\],，、]", " ", tag)) for tag in tags))))
    text = _without_ref(one_line(summary)).rstrip(_TRAILING_MARKS)
    return Lesson(day, kept, text, _clean_ref(ref)) if kept and text else None


def one_line(text: str) -> str:
    """Make one trimmed line without control and invisible characters."""
    return " ".join(strip_invisible(text).split())


def _without_ref(text: str) -> str:
    """Keep a text from reading as one with a reference."""
    return re.sub(r"\bRef([:：])", r"ref\1", text)


def _clean_ref(text: str | None) -> str | None:
    """Make one line of a path; ``None`` when it says nothing, or could be read as a second lesson.

    A path may hold blanks (``My Project/a.py``) or brackets (``app/[id]/page.tsx``).
    """
    first = next(filter(str.strip, (text or "").splitlines()), "")
    ref = _without_ref(one_line(first))
    return None if ref in _NO_REF or re.search(r"(?:^|\s)\[|\](?:\s|$)", ref) else ref


# --- fitting words into a line ---


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
        if columns(fix := text[colon.end() :]) <= FIX_COLUMNS:
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
            word = kept.rpartition(" ")[0] if character.strip() else kept
            is_near = len(kept) - len(word) < 20 and word
            return (word if is_near else kept).rstrip(f"{_TRAILING_MARKS}(") + _ELLIPSIS if kept else ""
    return text


def cut_start(text: str, limit: int) -> str:
    """Return the last ``limit`` columns of a path: its end tells more."""
    kept = text
    while columns(kept) > limit - 1:
        kept = kept[1:]
    return text if columns(text) <= limit else f"{_ELLIPSIS}{kept}"


# --- duplicates ---


def is_duplicate(lesson: Lesson, other: Lesson) -> bool:
    """Whether another lesson says the same for this one's phase (its first tag)."""
    return lesson.tags[0] in other.tags and says_the_same(lesson.summary, other.summary)


def says_the_same(one: str, other: str) -> bool:
    """Compare two summaries: more than 70 % shared keywords, the same numbers, negations and opposites."""
    if one == other:
        return True
    mine, yours = frozenset(lesson_keywords(one)), frozenset(lesson_keywords(other))
    shared = mine & yours
    return (
        len(shared) > DUPLICATE_OVERLAP * len(mine | yours)
        and _signature(one) == _signature(other)
        and not (_ORDERING.search(one) and _in_order(one, shared) != _in_order(other, shared))
    )


@lru_cache(maxsize=4096)
def _signature(summary: str) -> tuple[frozenset[str], frozenset[str]]:
    return frozenset(_NUMBER.findall(summary)), contraries(summary)


def _in_order(summary: str, words: frozenset[str]) -> list[str]:
    return [word for word in lesson_keywords(summary) if word in words]


@lru_cache(maxsize=4096)
def lesson_keywords(summary: str) -> tuple[str, ...]:
    """Return the stems of a summary's keywords, each once."""
    return tuple(dict.fromkeys(keywords(summary[:_LONGEST_COMPARED])))


def rarest(frequency: Sequence[tuple[str, int]], count: int) -> list[str]:
    """Return the words of which a duplicate must share one: who shares most of ``count`` words has one of any few.

    ``frequency`` says how often each word stands in the lessons that there are; the others stand in none.
    """
    # With more than 70 % shared, at most this many are missing.
    missing = count - int(DUPLICATE_OVERLAP * count) - 1
    absent = count - len(frequency)
    by_frequency = [word for word, _ in sorted(frequency, key=lambda item: (item[1], item[0]))]
    return by_frequency[: max(0, missing + 1 - absent)]


class KnownLessons:
    """Lessons by what a duplicate must share: its numbers, its negations and opposites, and one of its rarest keywords."""

    def __init__(self, lessons: Iterable[Lesson] = ()) -> None:
        self._by_key: dict[tuple[object, str], list[Lesson]] = {}
        for lesson in lessons:
            self.add(lesson)

    def add(self, lesson: Lesson) -> None:
        signature = _signature(lesson.summary)
        for word in lesson_keywords(lesson.summary):
            self._by_key.setdefault((signature, word), []).append(lesson)

    def find(self, lesson: Lesson) -> list[Lesson]:
        signature, words = _signature(lesson.summary), lesson_keywords(lesson.summary)
        found = {word: same for word in words if (same := self._by_key.get((signature, word)))}
        some = rarest([(word, len(same)) for word, same in found.items()], len(words))
        others = {id(other): other for word in some for other in found[word]}
        return [other for other in others.values() if is_duplicate(lesson, other)]
