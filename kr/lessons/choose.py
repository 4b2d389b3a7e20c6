"""What of the lessons reaches an agent (seed 000, LI-2 to LI-4; SPEC 4.1)."""

import heapq
import math
import re
from collections import Counter
from collections.abc import Callable, Container, Sequence

from kr.lessons.columns import columns, cut, cut_head
from kr.lessons.line import Lesson, clean
from kr.text.keywords import keywords

COLUMNS = 160
"""Two lines of 80 columns for each lesson, its number and reference included."""

_REF_COLUMNS = 80
_LOOKED_AT = 3000
_AT_FIRST = 10
_END = " .。;；"
_FORGED_TITLE = re.compile(r"\[\s*LESSONS\s*\]", re.IGNORECASE)
# Only what a list would put there: `404: return Not Found` and `2.x needs` say something by their numbers.
_FIRST_NUMBER = re.compile(r"^(?:(?:\(?[0-9]{1,2}[.)、．]|[-*+•])\s+)+")


def of_phase(lessons: Sequence[Lesson], phase: str) -> list[Lesson]:
    """Keep the lessons that have ``phase`` among their tags, exactly (LI-2)."""
    return [lesson for lesson in lessons if phase in lesson.tags]


def distinct(first: Callable[[int], Sequence[Lesson]], budget: int, total: int) -> list[Lesson]:
    """Take the first ``budget`` of ``total`` lessons that read differently; ``first`` gives the first of them all.

    Who edits or copies lines may leave a lesson twice: the newest of those stands for all.
    """
    count = budget * _AT_FIRST
    while True:
        found: dict[str, Lesson] = {}
        for lesson in first(count):
            text = lesson.summary.rstrip(_END).casefold()
            other = found.get(text)
            if other is None or _recency(lesson) > _recency(other):
                found[text] = lesson
        if len(found) >= budget or count >= total:
            return list(found.values())[:budget]
        count *= _AT_FIRST


def newest(lessons: Sequence[Lesson], budget: int) -> list[Lesson]:
    """Take the first ``budget``: newest date, then those of this phase alone, then the later line (LI-3)."""
    return heapq.nlargest(budget, lessons, key=_recency)


def _recency(lesson: Lesson) -> tuple[str, bool, int]:
    return lesson.date, len(lesson.tags) == 1, lesson.position


def most_relevant(lessons: Sequence[Lesson], budget: int, *, query: str, framework: str) -> list[Lesson]:
    """Take the first ``budget`` by relevance, and by the usual order where that is equal (SPEC 4.1).

    A lesson about the framework goes before others; then what it shares with the query counts, rare words
    more than those that every lesson has. Lessons that share nothing come last, they are not left out.
    """
    near = _ranked(
        lessons, max(budget, _LOOKED_AT), query, framework, lambda lesson: _told(lesson).casefold()
    )
    return _ranked(near, budget, query, framework, lambda lesson: frozenset(keywords(_told(lesson))))


def matching(lessons: Sequence[Lesson], count: int, *, query: str) -> list[Lesson]:
    """Take the ``count`` most relevant of the lessons that share a word with the query."""
    wanted = frozenset(keywords(query))
    ranked = most_relevant(lessons, max(count, _LOOKED_AT), query=query, framework="")
    return [lesson for lesson in ranked if wanted & {*keywords(_told(lesson))}][:count]


def _ranked(
    lessons: Sequence[Lesson],
    count: int,
    query: str,
    framework: str,
    words_of: Callable[[Lesson], Container[str]],
) -> list[Lesson]:
    """Rank by what ``words_of`` says a lesson contains: its text for a first look, its keywords for a close one."""
    wanted, named = keywords(query), keywords(framework)
    told = [words_of(lesson) for lesson in lessons]
    hits = [[word for word in wanted if word in words] for words in told]
    frequency = Counter(word for words in hits for word in words)

    def score(at: int) -> tuple[bool, float, tuple[str, bool, int]]:
        is_named = bool(named) and all(word in told[at] for word in named)
        shared = sum(math.log(1 + len(lessons) / frequency[word]) for word in hits[at])
        return is_named, shared, _recency(lessons[at])

    return [lessons[at] for at in heapq.nlargest(count, range(len(lessons)), key=score)]


def _told(lesson: Lesson) -> str:
    return f"{' '.join(lesson.tags)} {lesson.summary} {lesson.ref or ''}"


def block(phase: str, lessons: Sequence[Lesson]) -> str:
    """Write the injection block (LI-4): one numbered line for each lesson under the phase's title."""
    lines = [f"[LESSONS] {phase} phase warnings:"]
    lines += [numbered(number, lesson) for number, lesson in enumerate(lessons, start=1)]
    return "\n".join(lines) + "\n"


def numbered(number: int, lesson: Lesson) -> str:
    """Write ``{n}. {summary} -- {ref}`` in at most 160 columns, the reference whole where it can be."""
    head = f"{number}. "
    ref = clean(lesson.ref or "")
    tail = f" -- {cut_head(ref, _REF_COLUMNS)}" if ref else ""
    return f"{head}{cut(_harmless(lesson.summary), COLUMNS - columns(head) - columns(tail))}{tail}"


def _harmless(summary: str) -> str:
    """Keep a lesson from reading as a block of its own. One line is one lesson whatever numbers stand in it."""
    line = _FORGED_TITLE.sub("LESSONS", clean(summary))
    return _FIRST_NUMBER.sub("", line) or line
