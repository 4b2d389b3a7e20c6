"""Makes a lesson's line of a failure, without a model (seed 003, step 3; SPEC 4.2).

First the issue's own remedy; then structured output; then the problem matchers, which find the error's own line; then the
table of remedies, which says what to do about it. The line that is chosen is told as it stands.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal

from kr.lessons.distill import read_table
from kr.lessons.distill.called import speaks_alone
from kr.lessons.distill.clean import ERROR_WORD, clean, portable, relative_path, visible
from kr.lessons.distill.problems import (
    VERDICT,
    Problem,
    causes,
    find_problems,
    placed,
    shortened,
    with_short_lines,
    without_prefixes,
)
from kr.lessons.distill.remedies import Remedy, remedy_for
from kr.lessons.distill.structured import read_structured
from kr.lessons.distill.trust import cures, dangers, defused, is_order
from kr.lessons.line import ELLIPSIS, clean_summary, columns, cut
from kr.text.keywords import keywords

COLUMNS = 160
"""Two lines of 80 columns."""

Source = Literal["table", "agent", "tool", "model", "person"]
"""Who worded a lesson: kr's table (its users' rows too), an agent's remedy, a tool's output, a model, a person."""

_SHORT_REMEDY = 28
_LEAST_ERROR = 24
_PROSE_LINES = 6
_WHOLE_LINES = 2
# A heading, an exclamation, a runner's sum.
_SUM = re.compile(r"(?::|!|\.\.\.)$|\*\*\*|\bError \d+$|\bexit(?:ed)?\b.{0,20}\d+$")
# What a shell or a runner repeats of a call.
_ECHO = re.compile(
    r"[>$+%]\s|[Uu]sage:|Exit code|Process exited|at (?:\S+ )*\(?\S+:\d+:\d+\)?$|at \S+ \(<anonymous>\)$"
)
_TRIED = 6
_ASIDE = re.compile(r"^\W*(?:warn(?:ing)?|notice|note|info|debug|hint|help|deprecat\w+)\b", re.IGNORECASE)
_LETTERS = re.compile(r"[^\W\d_]")
_LABEL = re.compile(
    r"^\W*(?:(?:fix|solution|suggestion|recommendation|resolution|remedy|修复|建议|解决方案)\s*[:：]\s*)+",
    re.IGNORECASE,
)
_MODULE = re.compile(r"^(?:[A-Za-z_]\w*\.)+(?=[A-Z]\w*: )")
_CLASS = re.compile(
    r"^(?:\[\w+\] )?(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Warning|Violation|Check)(?: \[\w+\])?: "
)
# What an error is about: in quotation marks, a host with its port, coordinates.
_NAMED = re.compile(
    r"\"[^\"]+\"|'[^']+'|`[^`]+`|‘[^’]+’|[\w.-]+:[\w.:-]*[0-9]|(?<![\w-])[A-Z]\w*\.[a-z]\w+|\bdtype=\S+"
)
_WORDS = re.compile(r"[\w.@/-]{3,}")
# A colon in brackets begins no cause.
_CHAIN = re.compile(r": (?![^()]*\))")
_HEAD = re.compile(r"^(?:note|help|hint|tip|suggestions?):\s+", re.IGNORECASE)
_SAYS_NOTHING = re.compile(
    r"(?:raise|throw)\b|(?:import|from|export|assert|except|catch|return)\b(?! \S*[(.\[])|[\W\d]*$"
)
# Where a module of the runtime lies says nothing, nor does the ruling of a heading.
_MARK = re.compile(r"^(?:x(?= [A-Z])|[×✖⨯✘✗•]) +")
_ASIDE_PATH = re.compile(r" \((?:lib/python3|site-packages)[^()]*\)| \{aka [^{}]*\}| ?[_=]{8,}")
_HINTS_AT_NOTHING = re.compile(
    r"^(?:\w+ )*(?:defined|declared|required) (?:here|by)|for (?:more|full) |run with |try `|make sure your test|backtrace",
    re.IGNORECASE,
)
_LONG_HINT = 90
_LONG_WORD = 30
_LONG_CODE = 70
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,}).*$", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*(?:[-*•]|\(?[0-9]{1,2}[.)、])[ \t]+(?=\S)", re.MULTILINE)
_SENTENCE = re.compile(r"(?<=[.!?;])(?<!\.\.\.)\s+|(?<=[。！？；])|\n+")
_EXIT_CODE = re.compile(r"^(?:Error: )?Exit code -?\d+\n?|^exit status \d+$", re.MULTILINE)
# Python shows the line of code that warns under its warning.
_WARNED = re.compile(r"^(\S+\.py:\d+: \w*Warning: .*\n)[ \t]+\S.*\n?", re.MULTILINE)
# Node shows the line of its own code that threw.
_THROWN = re.compile(r"^node:\S+:\d+\n.*\n[ \t]*\^+\n", re.MULTILINE)
_AT = re.compile(r"^(?:[\w.-]+: )?[^\s:]+\.\w+(?::\d+)*:? ")
_POSITION = re.compile(r"^(?:\S+?\.\w+:\d+(?::\d+)?:?\s+)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A lesson's words: who worded them, the place that the output names, the tags that it shows, what is dangerous in them."""

    summary: str
    source: Source
    place: str | None = None
    tags: tuple[str, ...] = ()
    dangers: tuple[str, ...] = ()


def distill(
    complaint: str, remedy: str = "", *, limit: int = COLUMNS, own: Sequence[Remedy] = (), tool: str = ""
) -> Told | None:
    """Return what a failure teaches in one line of at most ``limit`` columns; ``None`` when it tells nothing.

    ``complaint`` is what went wrong, in words or as a tool printed it; ``remedy`` what the issue itself says to do;
    ``own`` are the users' rows of remedies; ``tool`` is what the failed command called.
    """
    told = _distilled(complaint, remedy, limit, own, tool)
    return replace(told, tags=(tool,)) if told and tool and not told.tags else told


def _distilled(complaint: str, remedy: str, limit: int, own: Sequence[Remedy], tool: str) -> Told | None:
    # Cut only after the secrets are gone: half of one could not be told from a word.
    text = _WARNED.sub(r"\1", _EXIT_CODE.sub("", without_prefixes(with_short_lines(complaint))))
    text = _THROWN.sub("", text)
    text = shortened(visible(text))
    problems = [_cleaned(problem) for problem in read_structured(text) or find_problems(text)]
    if given := _remedy(remedy):
        return _from_agent(given, _prose(portable(text)), problems, limit)
    text = portable(text)
    words = _prose(text)
    # Another tool's rows are not about what a tool said that runs no others.
    alone = tool if speaks_alone(tool) else ""
    looked_at = problems[:_TRIED] or _lines(text)
    looked_at = [replace(one, tool=one.tool or alone) for one in looked_at]
    known = remedy_for(looked_at, own, is_one=not problems)
    if known is not None:
        problem, told, tag = known
        tags = tuple(dict.fromkeys(filter(None, (tag, problem.tool))))
        return _told(_with_error(told, problem, limit), "table", problem.place, tags)
    # What tells the reader what to do is kept where the tool says nothing else, and waits for a person.
    return next(
        filter(None, (_as_told(problems, words, text, limit, advice=advice) for advice in (False, True))),
        None,
    )


def _as_told(problems: Sequence[Problem], words: str, whole: str, limit: int, *, advice: bool) -> Told | None:
    """Take the first problem whose own line says something; without problems, the words."""
    for problem in problems or [placed(words, whole)]:
        text = defused(problem.text, advice=advice)
        fuller = _with_beside(text, problem, limit) if text else ""
        if problems and columns(fuller) > limit:
            fuller = _last_causes(fuller, limit)
        fuller = _with_cure(fuller, problem, limit)
        if is_telling(fuller):
            text = _cut(fuller, limit) if problems else _fitting(text, limit)
            told = _told(text, "tool", problem.place, (problem.tool,) if problem.tool else ())
            return replace(told, dangers=(*told.dangers, "advice")) if told and advice else told
    return None


def _with_cure(text: str, problem: Problem, limit: int) -> str:
    """Cut an error so that what its tool says to do about it still stands behind it."""
    cure = next((cure for told in (problem.text, *problem.beside) for cure in cures(told)), "")
    if not cure or cure.casefold() in cut(text, limit).casefold():
        return text
    room = limit - columns(cure) - 2
    return f"{_cut(text, room)}; {cure}" if text and room >= _LEAST_ERROR else text


def _with_beside(text: str, problem: Problem, limit: int) -> str:
    """Put behind an error what its tool shows beside it, as far as there is room for the whole of it."""
    text = text.rstrip(" .;:")
    for more in (*map(_hint, problem.beside), _code(problem.code, text)):
        is_code = more.startswith(" in ")
        if is_code and cures(text):
            # What to do about it says more.
            break
        fuller = f"{text}{'' if is_code else '; '}{more}"
        is_new = more and more.casefold() not in text.casefold()
        if is_new and columns(fuller) <= limit and not dangers(more) and defused(fuller) == fuller:
            text = fuller
    return text


def _hint(more: str) -> str:
    """Return what of a tool's own hint may go on: nothing of one that says what to run, to install or to change."""
    more = _HEAD.sub("", " ".join(more.split())).rstrip(" .;:,")
    is_plain = defused(more) == more and columns(more) <= _LONG_HINT and not _HINTS_AT_NOTHING.search(more)
    return more if is_plain and not is_vague(more) else ""


def _code(code: str, text: str) -> str:
    """Return the code that failed, unless it says nothing that the error does not."""
    code = " ".join(code.split())
    if (
        _SAYS_NOTHING.match(code)
        or columns(code) > _LONG_CODE
        or all(n in text for n in _WORDS.findall(code))
    ):
        return ""
    return f" in `{code}`"


def is_telling(text: str) -> bool:
    """Tell a line that says something from one that only says that something failed."""
    return len(keywords(text)) > 1 and not is_vague(text)


def is_worth_keeping(complaint: str) -> bool:
    """Tell whether an error that nobody reported by hand teaches: a known one, or words that speak of an error."""
    told = distill(complaint)
    if told is None:
        return False
    is_known = told.source == "table" or told.tags or told.place
    return bool(is_known or ERROR_WORD.search(told.summary) or find_problems(complaint))


def is_vague(text: str) -> bool:
    """Tell a text that only says that something failed, or nothing: ``N/A``, ``failed``."""
    empty = _empty_words()
    return all(word in empty or not _LETTERS.search(word) for word in keywords(text))


_DUMPED = 3
_DUMP = re.compile(
    r"\{(?![^{}]*\b(?:msg|message|detail|reason|error)\b)(?:[^{}]|\{[^{}]*\}){60,}\}|(?<=\[)\{[^\[\]]{30,}\}(?=\])"
)


@cache
def _empty_words() -> frozenset[str]:
    return frozenset(read_table("words.yaml")["empty"].split())


def _cleaned(problem: Problem) -> Problem:
    file = relative_path(problem.file) if problem.place and problem.file else None
    text = _MARK.sub("", _ASIDE_PATH.sub("", " ".join(portable(problem.text).split())))
    shorter = _DUMP.sub("…", _DUMP.sub("…", text))
    if len(_CLASS.sub("", shorter).split()) > _DUMPED:
        # What a program shows of an object says less than what it says of it.
        text = shorter
    return replace(
        problem,
        text=text,
        file=file,
        beside=tuple(portable(more) for more in problem.beside),
        code=portable(problem.code),
        context=portable(problem.context),
    )


def _lines(text: str) -> list[Problem]:
    """Make problems of the lines of a text that no matcher knows; of a long one, of those that speak of an error."""
    lines = [line.strip() for line in text.split("\n") if line.strip()]
    if len(lines) > _PROSE_LINES:
        lines = [line for line in lines if ERROR_WORD.search(line) and not _ASIDE.match(line)]
    told = causes(Problem(text=line) for line in lines)
    return sorted(told, key=lambda problem: _telling(problem.text), reverse=True)


def _from_agent(given: str, words: str, problems: Sequence[Problem], limit: int) -> Told | None:
    place = next((problem.place for problem in problems if problem.place), None)
    tags = tuple(problem.tool for problem in problems[:1] if problem.tool)
    told = _fitting(given, limit)
    error = problems[0] if problems else Problem(text=words)
    if columns(told) < _SHORT_REMEDY and is_telling(error.text):
        told = _with_error(told, error, limit)
    return _told(told, "agent", place, tags) if is_telling(told) or keywords(told) else None


def _told(text: str, source: Source, place: str | None, tags: tuple[str, ...]) -> Told | None:
    # Lines that were put together may show what none of them showed.
    summary = clean_summary(visible(text))
    if not summary:
        return None
    # What kr's own table says is trusted; the words of a tool beside it were defused.
    found = () if source == "table" else dangers(summary)
    return Told(summary=summary, source=source, place=place, tags=tags, dangers=found)


def _with_error(remedy: str, problem: Problem, limit: int) -> str:
    """Put the error's own line behind what to do about it, as far as there is room."""
    room = limit - columns(remedy) - 3
    error = defused(problem.text, cure=False).rstrip(" .;:")
    if not error and columns(cured := defused(problem.text)) <= room:
        # The tool says nothing but what to do itself.
        error = cured.rstrip(" .;:")
    if not error or room < _LEAST_ERROR or error.casefold() in remedy.casefold():
        return remedy
    if columns(error) > room:
        return f"{remedy.rstrip('.')} ({_squeezed(error, room, remedy)})"
    fuller = (_with_beside(shorter, problem, room) for shorter in (error, _CLASS.sub("", error)))
    return f"{remedy.rstrip('.')} ({max(fuller, key=columns)})"


def _squeezed(error: str, room: int, remedy: str) -> str:
    """Return what fits of an error: rather its names and values than the class of the exception or how it begins."""
    for shorter in (error, _MODULE.sub("", error), _CLASS.sub("", error)):
        if columns(shorter) <= room:
            return shorter
    error = _last_causes(_CLASS.sub("", error), room)
    if columns(error) <= room:
        return error
    named = next((name for name in _NAMED.finditer(error) if columns(name[0]) < room), None)
    if (
        named is None
        or columns(error[: named.end()]) < room
        or any(name[0] in remedy for name in _WORDS.finditer(named[0]))
    ):
        return _cut(error, room)
    start = max(error.rfind(" ", 0, at) for at in (named.start(), max(named.end() - room + 1, 1)))
    rest = f"{ELLIPSIS}{error[start:].strip()}"
    return _cut(rest if columns(rest) >= _LEAST_ERROR else error, room)


def _cut(text: str, room: int) -> str:
    """Cut a text behind a word: half of one says nothing, or something else."""
    short = cut(text, room)
    head = short.removesuffix(ELLIPSIS)
    if short == text or text[len(head)].isspace():
        return short
    whole, _, rest = head.rpartition(" ")
    return f"{whole.rstrip(' ,;:(')}{ELLIPSIS}" if len(rest) < _LONG_WORD and whole else short


def _last_causes(error: str, room: int) -> str:
    """Return what fits of the end of a chain of causes (``a: b: c``), if that names something; else the whole."""
    parts = _CHAIN.split(error)
    ends = (": ".join(parts[at:]) for at in range(1 if "(" in parts[0] else 2, len(parts)))
    fitting = next((end for end in ends if columns(end) < room), "")
    return f"{ELLIPSIS}{fitting}" if _NAMED.search(fitting) and columns(fitting) >= _LEAST_ERROR else error


def _remedy(text: str) -> str:
    """Read what somebody gave as the remedy, without its label and its list marks."""
    plain = _LABEL.sub("", _BULLET.sub("", _FENCE.sub("", clean(text[:4000]))).strip())
    return "" if not keywords(plain) or is_vague(plain) else plain


def _prose(text: str) -> str:
    """Return what words say: a short text whole, of several lines from the most telling one on."""
    lines = [line.strip() for line in _FENCE.sub("", text).split("\n")]
    lines = [line for line in lines if _LETTERS.search(line) and not _ECHO.match(line)]
    lines = [line for line in lines if not VERDICT.search(line)] or lines
    if len(lines) > _WHOLE_LINES or any(map(_AT.match, lines)):
        best = max(range(len(lines)), key=lambda at: (_telling(lines[at]), -at))
        is_said = len(lines) <= _PROSE_LINES or _telling(lines[best]) > 0
        lines = lines[best : best + 2] if is_said else []
    return "\n".join(_POSITION.sub("", line) for line in lines)


def _telling(line: str) -> int:
    """Weigh a line: it speaks of an error, it names something; it is an aside, a heading or an exclamation."""
    says_nothing = _ASIDE.match(line) or _SUM.search(line) or VERDICT.search(line) or is_order(line)
    says_more = bool(_NAMED.search(line)) + 2 * bool(cures(line)) + bool(_AT.match(line))
    return 2 * bool(ERROR_WORD.search(line)) + says_more - 3 * bool(says_nothing)


def _fitting(text: str, limit: int) -> str:
    """Return the first sentences that fit, or what fits of the first."""
    parts = [" ".join(part.split()) for part in _SENTENCE.split(text) if part.strip()]
    kept = parts[0] if parts else ""
    for part in parts[1:]:
        mark = "" if kept[-1:] in ".!?;。！？；:：" else "."
        if columns(f"{kept}{mark} {part}") > limit:
            break
        kept = f"{kept}{mark} {part}"
    return _cut(kept, limit)
