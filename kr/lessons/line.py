"""The line format of the lessons file (U5, "Entry Format Specification"), and when two lessons say the same. Pure.

One lesson is one line: ``- [YYYY-MM-DD] [tag, tag…] summary. Ref: path``. The reference is optional.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from kr.guard import safe
from kr.models import Lesson
from kr.requests import bad, checked, decoded, loose_text, scalars, text
from kr.text import columns, contraries, keywords, one_line

HEADER = """\
# Lessons Learned

> Auto-recorded by BSO Sprint Orchestrator. Entries are append-only.
> Format: - [YYYY-MM-DD] [phase-tag] Summary. Ref: file/path:line

"""
"""What a new file begins with (U5, step 5.2)."""
BOM = b"\xef\xbb\xbf"

LINE_COLUMNS = 160
"""Two lines of 80 columns: what an agent is given of a lesson, with its number and without its reference."""
SUMMARY_COLUMNS = LINE_COLUMNS - len("10. ")
"""What a lesson that kr words takes at most."""
KEPT_COLUMNS = 2 * LINE_COLUMNS
"""What the file keeps of a lesson in somebody's own words."""
FIX_COLUMNS = 120
"""A longer fix is refused: it is always given whole."""
LONGEST = 4000
"""Characters of a text that are looked at: far more than are kept."""

# No lesson has an empty list of tags, or nothing but a reference.
_LESSON = re.compile(
    r"^- +\[([0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01]))\][ \t]*\[(?=[\s,，、]*[^\s,，、\]])([^\[\]\n]*)\]"
    r"[ \t]*(?!\s|[.。;；]?[^\S\n]*Ref[:：])(.+)$",
    re.MULTILINE,
)
_BROKEN_LINE = r"(?m)^.*[\udc80-\udcff].*$"
_OTHER_LINE = r"(?m)^[^\S\n]*[^\s#>]"
_REF = re.compile(r"(.*(?:[ \t.。;；!?！？…]|^))Ref[:：](.*)", re.DOTALL)
_NO_REF = frozenset({"", "N/A", "n/a", "-"})
_TRAILING_MARKS = " .。;；,，:："
_SHARED = 0.70
# Patterns are texts: ``re`` keeps what it compiled, and who only reads lessons compares none.
# A number that counts: not the line in a path, nor a part of a name.
_NUMBER = r"(?<![\w.:/#-])\d+(?:\.\d+)*"
# Where one of these stands, the order of the words says which is which: "call init() before connect()".
_ORDERING = r"(?i)\b(?:before|after|instead of|rather than|over|from)\b|之前|之后|而不是|先"


@dataclass(frozen=True, slots=True)
class ParsedLines:
    """The lessons of a text as columns of what stands there: a ``Lesson`` is made of those alone that somebody wants.

    ``unread`` counts the lines that are none, and neither blank, a heading nor a quote.
    """

    dates: Sequence[str]
    tags: Sequence[str]
    texts: Sequence[str]
    unread: int = 0

    def __len__(self) -> int:
        return len(self.dates)

    def lesson(self, at: int) -> Lesson:
        """Return the lesson at a place, from 0."""
        return Lesson(self.dates[at], split_tags(self.tags[at]), *split_text(self.texts[at]), at)

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        return tuple(map(self.lesson, range(len(self))))

    def tagged(self, is_wanted: Callable[[tuple[str, ...]], bool]) -> set[int]:
        """Return the places of the lessons with such tags; each list of tags is judged once."""
        wanted = {tags for tags in set(self.tags) if is_wanted(split_tags(tags))}
        return {at for at, tags in enumerate(self.tags) if tags in wanted}


def parse_lines(content: bytes) -> ParsedLines:
    """Read every line as a lesson or as none.

    Only a line feed ends a line: another kind of line break inside a lesson must not make two of it. A line that holds a
    NUL or is no UTF-8 costs itself alone.
    """
    content = content.removeprefix(BOM).replace(b"\0", b"\xff")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = re.sub(_BROKEN_LINE, "?", content.decode(errors="surrogateescape"))
    parts = _LESSON.split(text)  # what stands before a lesson, its date, tags and text, and so on
    unread = len(re.findall(_OTHER_LINE, "".join(parts[::4])))
    return ParsedLines(parts[1::4], parts[2::4], parts[3::4], unread)


@lru_cache(maxsize=4096)
def split_tags(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(filter(None, map(str.strip, re.split("[,，、]", text)))))


def split_text(text: str) -> tuple[str, str | None]:
    """Part ``summary. Ref: path``; the last ``Ref:`` counts, and a path that says nothing is none."""
    text = text.rstrip()
    summary, is_plain, path = text.rpartition(" Ref: ")  # the usual form, twenty thousand times
    if not is_plain or "Ref" in path:
        if not (found := _REF.fullmatch(text)):
            return text, None
        summary, path = found[1], found[2]
    summary, path = summary.rstrip(), path.strip()
    if summary.endswith((".", "。", ";", "；")):
        summary = summary[:-1].rstrip()
    return summary, None if path in _NO_REF else path


def format_line(lesson: Lesson) -> str:
    """Write a lesson as its line, without the line feed. Its parts must be clean (``make_lesson``)."""
    stop = "" if lesson.summary.endswith(("!", "?", "！", "？", "…")) else "."
    ref = f"{stop} Ref: {lesson.ref}" if lesson.ref else ""
    return f"- [{lesson.date}] [{', '.join(lesson.tags)}] {lesson.summary}{ref}"


def make_lesson(day: str, tags: tuple[str, ...], summary: str, ref: str | None) -> Lesson | None:
    """Make a lesson that survives a way through the file; ``None`` when nothing of its text is left."""
    kept = tuple(dict.fromkeys(filter(None, (one_line(re.sub(r"[\[\],，、]", " ", tag)) for tag in tags))))
    text = _without_ref(one_line(summary, LONGEST)).rstrip(_TRAILING_MARKS)
    return Lesson(day, kept, text, _clean_ref(ref)) if kept and text else None


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
    symptom, fix = (one_line(half, LONGEST).strip(_TRAILING_MARKS) for half in (symptom, fix))
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
    size = limit - 1
    while columns(text[:size]) >= limit:
        size -= 1
    word = text[: size + 1].rpartition(" ")[0]
    kept = word if size - len(word) < 20 and word else text[:size]
    return f"{kept.rstrip(f'{_TRAILING_MARKS}(')}…" if kept else ""


def read_words(value: object) -> dict[str, Any]:
    """Read one lesson that was handed over, ``{symptom, fix, ref, tags}``, as ``{summary, ref, tags}``: both halves, without secrets.

    Raises ``InvalidRequest`` with an error per bad half.
    """
    words = checked({"symptom": text, "fix": _fix, "ref": loose_text, "tags": scalars}, decoded(value))
    summary = word_lesson(safe(words["symptom"][:LONGEST]), safe(words["fix"]), KEPT_COLUMNS)
    return {"summary": summary, "ref": words["ref"], "tags": words["tags"]}


def _fix(value: object) -> str:
    fix = " ".join(text(value).split())
    if (width := columns(fix)) > FIX_COLUMNS:
        raise bad(f"is too long: {width} columns, at most {FIX_COLUMNS}; say what to do in one sentence")
    return fix


# --- duplicates ---


def is_duplicate(lesson: Lesson, other: Lesson) -> bool:
    """Whether another lesson says the same for this one's phase, its first tag (U5, step 4).

    That is: more than 70 % shared keywords, the same numbers, negations and opposites, and no other framework's tag.
    """
    one, two = lesson.summary, other.summary
    about, others = {*lesson.tags[1:]}, {*other.tags} - {lesson.tags[0]}
    if lesson.tags[0] not in other.tags or (about and others and not about & others):
        return False
    if one == two:
        return True
    mine, yours = lesson_keywords(one), lesson_keywords(two)
    shared = {*mine} & {*yours}
    is_in_order = [word for word in mine if word in shared] == [word for word in yours if word in shared]
    return (
        len(shared) > _SHARED * len({*mine, *yours})
        and set(re.findall(_NUMBER, one)) == set(re.findall(_NUMBER, two))
        and contraries(one) == contraries(two)
        and (is_in_order or not re.search(_ORDERING, one))
    )


@lru_cache(maxsize=4096)
def lesson_keywords(summary: str) -> tuple[str, ...]:
    """Return the stems of a summary's keywords, each once."""
    return tuple(dict.fromkeys(keywords(summary[:KEPT_COLUMNS])))


def duplicate_probe(words: list[str], summary: str) -> tuple[list[str], int]:
    """Return words of which every duplicate of a summary holds one, and how many of all words it must share.

    Who shares more than 70 % of the words has one of any few, and a duplicate has the same numbers that count.
    """
    least, numbers = int(_SHARED * len(words)) + 1, re.findall(_NUMBER, summary)
    return [it for it in words if it in numbers][:1] or words[: len(words) - least + 1], least
