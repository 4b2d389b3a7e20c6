"""Makes a lesson's line of a failure, without a model (seed 003, step 3; SPEC 4.2).

First the issue's own remedy; then structured output; then the problem matchers, which find the error's own line; then the
table of remedies, which says what to do about it. The line that is chosen is told as it stands.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from itertools import takewhile
from typing import Literal

from kr.lessons.distill import listed, phrases, shortened, speaks_alone
from kr.lessons.distill.clean import clean, portable, relative_path, visible
from kr.lessons.distill.complaint import names_an_order, says_to_do
from kr.lessons.distill.problems import (
    LOOKED_AT,
    Problem,
    causes,
    find_problems,
    placed,
    plain,
    read_structured,
)
from kr.lessons.distill.remedies import Known, Remedy, remedy_for
from kr.lessons.distill.trust import addresses, cures, dangers, defused, is_order
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
_TRIED = 6
_LETTERS = re.compile(r"[^\W\d_]")
_MODULE = re.compile(r"^(?:[A-Za-z_]\w*\.)+(?=[A-Z]\w*: )")
_WORDS = re.compile(r"[\w.@/-]{3,}")
# A colon in brackets begins no cause.
_CHAIN = re.compile(r": (?![^()]*\))")
_HEAD = re.compile(r"^(?:note|help|hint|tip|suggestions?):\s+", re.IGNORECASE)
# Where a module of the runtime lies says nothing, nor does the ruling of a heading.
_MARK = re.compile(r"^(?:(?:x(?= [A-Z])|[×✖⨯✘✗•]|;+(?= \w)) +|(?:\[\]|:)\s+|-\s+(?=[A-Z]))")
_LEVEL = re.compile(r"^\W*(?:WARN(?:ING)?|ERROR|FATAL|CRITICAL)\b[\s:|\]-]+(?=\w)")
_ASIDE_PATH = re.compile(r" \((?:lib/python3|site-packages)[^()]*\)| \{aka [^{}]*\}| ?[_=]{8,}")
_LONG_HINT = 90
_LONG_WORD = 30
_LONG_CODE = 70
_FENCE = re.compile(r"^[ \t]*(?:`{3,}|~{3,}).*$", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*(?:[-*•]|\(?[0-9]{1,2}[.)、])[ \t]+(?=\S)", re.MULTILINE)
# Python shows the line of code that warns under its warning.
_WARNED = re.compile(r"^(\S+\.py:\d+: \w*Warning: .*\n)[ \t]+\S.*\n?", re.MULTILINE)
_AT = re.compile(r"^(?:[\w.-]+: )?[^\s:]+\.\w+(?::\d+)*:? ")
_POSITION = re.compile(r"^\S+?\.\w+:\d+(?::\d+)?:?\s+")
_ROOMY = 60
# The code of a finding: "E501 Line too long", "TS2345: Argument", "… [no-any-return]".
_CODED = re.compile(r"^[A-Z]{1,8}\d{2,5}\b|(?<=[\[(])[a-z][\w/-]{2,30}(?=[\])]$)")
_MOST_CODES = 3
_A_NAME = re.compile(r"@?[\w./:]+(?:-[\w./:]+)*")
_NEAR, _VERY_NEAR = 0.6, 0.85
_QUOTED = re.compile(r"[\"'`‘][^\"'`’]*[\"'`’]|\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """A lesson's words: who worded them, the place that the output names, the tags that it shows, what is dangerous in them."""

    summary: str
    source: Source
    place: str | None = None
    tags: tuple[str, ...] = ()
    dangers: tuple[str, ...] = ()


def distill(
    complaint: str,
    remedy: str = "",
    *,
    limit: int = COLUMNS,
    own: Sequence[Remedy] = (),
    tool: str = "",
    is_said: bool = False,
    quotes_tools: bool = True,
) -> Told | None:
    """Return what a failure teaches in one line of at most ``limit`` columns; ``None`` when it tells nothing.

    ``complaint`` is what went wrong, in words or as a tool printed it; ``remedy`` what the issue itself says to do;
    ``own`` are the users' rows of remedies; ``tool`` is what the failed command called. ``is_said``: the complaint is an
    agent's own words. Without ``quotes_tools`` what a tool printed waits for a person, and is not put behind a remedy.
    """
    told = _distilled(complaint, remedy, limit, own, tool, is_said=is_said, quotes=quotes_tools)
    if told and told.source == "tool" and not (quotes_tools or is_said):
        told = replace(told, dangers=(*told.dangers, "unread"))
    return replace(told, tags=(tool,)) if told and tool and not told.tags else told


def _distilled(
    complaint: str,
    remedy: str,
    limit: int,
    own: Sequence[Remedy],
    tool: str,
    *,
    is_said: bool,
    quotes: bool,
) -> Told | None:
    # Cut only after the secrets are gone: half of one could not be told from a word.
    text = shortened(visible(_WARNED.sub(r"\1", plain(complaint))), LOOKED_AT)
    problems = [_cleaned(problem) for problem in read_structured(text) or find_problems(text)]
    shown, text = text, portable(text)
    if given := _remedy(remedy):
        return _from_agent(given, text, problems, limit, quotes=quotes)
    # Another tool's rows are not about what a tool said that runs no others.
    alone = tool if speaks_alone(tool) else ""
    looked_at = [replace(one, tool=one.tool or alone) for one in problems[:_TRIED] or _lines(text)]
    known = remedy_for(looked_at, own, is_one=not problems)
    # What only follows from an error says less than the words of it that no matcher knows.
    is_told = not all(phrases("follows").search(problem.text) for problem in problems)
    if known is None and problems and not is_told:
        known = remedy_for([replace(one, tool=alone) for one in _lines(text)], own, is_one=True)
    if known is not None:
        tags = tuple(dict.fromkeys(filter(None, (known.row.tag, known.problem.tool))))
        others = _others(known.same, problems)
        told = _with_findings(known, others, limit) if quotes else known.say
        head = known.say.rstrip(".") if known.say == known.row.say else ""
        where = known.problem
        if known.problem not in looked_at or not problems:
            where = _cleaned(placed(where, shown))
        made = _told(told, "table", where.place, tags, head)
        if made and not quotes and not all(map(_A_NAME.fullmatch, known.named.values())):
            # In kr's own advice a name stands for itself: nothing that has words, calls or flags of a stranger's in it.
            made = replace(made, dangers=(*made.dangers, "unread"))
        return made
    found = problems if is_told else [_cleaned(placed(Problem(text=_prose(text)), shown)), *problems]
    # What tells the reader what to do is kept where the tool says nothing else, and waits for a person.
    return (
        _as_told(found, limit, is_said=is_said)
        or _as_told(_other_lines(text, found), limit, is_said=is_said)
        or _as_told(found, limit, advice=True)
    )


def _as_told(
    problems: Sequence[Problem], limit: int, *, advice: bool = False, is_said: bool = False
) -> Told | None:
    """Take the first problem whose own line says something."""
    for problem in problems:
        text = defused(problem.text, advice=advice, is_said=is_said)
        others = _others([problem], problems)
        room = limit - columns(_more(others))
        fuller = _with_beside(text, problem, room) if text else ""
        if problem.context and columns(fuller) > room:
            fuller = _last_causes(fuller, room)
        if is_telling(fuller):
            text = _with_others(_cut(" ".join(fuller.split()), room), others, limit)
            told = _told(text, "tool", problem.place, (problem.tool,) if problem.tool else ())
            return replace(told, dangers=(*told.dangers, "advice")) if told and advice else told
    return None


def _others(told: Sequence[Problem], problems: Sequence[Problem]) -> list[str]:
    """Return the findings of other kinds than those that are told, names aside, once each: what of it may go on."""
    known = {_QUOTED.sub("", problem.text) for problem in told}
    found = {
        _QUOTED.sub("", problem.text): problem.text for problem in problems if problem.is_beside(told[0])
    }
    return [
        defused(phrases("error_class").sub("", text)).rstrip(" .;:")
        for kind, text in found.items()
        if kind not in known
    ]


def _with_findings(known: Known, others: Sequence[str], limit: int) -> str:
    """Put behind what to do the error that it is about, and the findings of other kinds."""
    room = limit - columns(_more(others)) - columns(_codes(others))
    if others and known.named and not known.problem.beside:
        # The order names what it is about: rather the second finding than all of the first.
        short = _with_others(known.say, others, limit)
        if room - columns(known.say) > _ROOMY:
            room -= _LEAST_ERROR
        elif short.startswith(f"{known.say}{_more(others)}: "):
            return short
    return _with_others(_with_error(known.say, known.problem, room), others, limit)


def _more(others: Sequence[str]) -> str:
    return f"; and {len(others)} more" if others else ""


def _codes(others: Sequence[str]) -> str:
    """Return the codes of findings that each have one, as linters and compilers give them, unless they are too many."""
    codes = dict.fromkeys(found[0] if (found := _CODED.search(text)) else "" for text in others)
    return f" ({', '.join(codes)})" if all(codes) and 0 < len(codes) <= _MOST_CODES else ""


def _with_others(text: str, others: Sequence[str], limit: int) -> str:
    """Say how many findings of other kinds there are, and which is the second where there is room for it, or their codes."""
    told = f"{text}{_more(others)}"
    room = limit - columns(told) - 2
    second = next(filter(is_telling, others), "")
    if second and room >= min(_LEAST_ERROR, columns(second)):
        return f"{told}: {_cut(second, room)}"
    coded = f"{told}{_codes(others)}"
    return coded if columns(coded) <= limit else told


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
    is_plain = (
        defused(more) == more and columns(more) <= _LONG_HINT and not phrases("hints_at_nothing").search(more)
    )
    return more if is_plain and not is_vague(more) else ""


def _code(code: str, text: str) -> str:
    """Return the code that failed, unless it says nothing that the error does not."""
    code = " ".join(code.split())
    if (
        phrases("says_nothing").match(code)
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
    return bool(is_known or phrases("error").search(told.summary) or find_problems(complaint))


def is_vague(text: str) -> bool:
    """Tell a text that only says that something failed, or nothing: ``N/A``, ``failed``."""
    empty = listed("words.yaml", "empty")
    return all(word in empty or not _LETTERS.search(word) for word in keywords(text))


_DUMPED = 3
_DUMP = re.compile(
    r"\{(?![^{}]*\b(?:msg|message|detail|reason|error)\b)(?:[^{}]|\{[^{}]*\}){60,}\}|(?<=\[)\{[^\[\]]{30,}\}(?=\])"
)


def _cleaned(problem: Problem) -> Problem:
    file = relative_path(problem.file) if problem.place and problem.file else None
    text = _MARK.sub("", _ASIDE_PATH.sub("", " ".join(portable(problem.text).split())))
    shorter = _DUMP.sub("…", _DUMP.sub("…", text))
    if len(phrases("error_class").sub("", shorter).split()) > _DUMPED:
        # What a program shows of an object says less than what it says of it.
        text = shorter
    return replace(
        problem,
        text=text,
        file=file,
        beside=tuple(portable(more) for more in problem.beside),
        code=portable(problem.code),
        context=f"{portable(problem.context)}\n",
    )


def _lines(text: str) -> list[Problem]:
    """Make problems of the lines of a text that no matcher knows; of a long one, of those that speak of an error."""
    lines = [_MARK.sub("", line.strip()) for line in _without_guesses(text) if line.strip()]
    lines = _without_chatter(lines)
    if len(lines) > _PROSE_LINES:
        lines = [line for line in lines if phrases("error").search(line) and not phrases("aside").match(line)]
    told = causes(Problem(text=line) for line in lines)
    return sorted(told, key=lambda problem: _telling(problem.text), reverse=True)


def _other_lines(text: str, found: Sequence[Problem]) -> list[Problem]:
    """Return the lines without those of errors that were left out: they are not to come back with what stands before them."""
    return [
        line
        for line in _lines(text)
        if not (phrases("verdict").search(line.text) or any(problem.text in line.text for problem in found))
    ]


def _from_agent(
    given: str, text: str, problems: Sequence[Problem], limit: int, *, quotes: bool
) -> Told | None:
    place = next((problem.place for problem in problems if problem.place), None)
    tags = tuple(problem.tool for problem in problems[:1] if problem.tool)
    told = _cut(" ".join(given.split()), limit)
    error = problems[0] if problems else Problem(text=_prose(text))
    if quotes and columns(told) < _SHORT_REMEDY and is_telling(error.text):
        told = _with_error(told, error, limit)
    return _told(told, "agent", place, tags) if is_telling(told) or keywords(told) else None


def _told(text: str, source: Source, place: str | None, tags: tuple[str, ...], head: str = "") -> Told | None:
    """Word a lesson; ``head`` is what kr's table says at its beginning, without a name of anybody's."""
    # Lines that were put together may show what none of them showed.
    summary = clean_summary(visible(text))
    if not summary:
        return None
    if place and (" " in place or says_to_do(place) or addresses(place)):
        place = None
    # What kr's own table says is trusted; the words of a tool beside it were defused.
    found = () if source == "table" else dangers(summary)
    if source in {"table", "tool"} and names_an_order(f"{text.removeprefix(head)} {place or ''}"):
        # Whoever gave the name speaks through it.
        found = (*found, "name")
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
        short = _squeezed(error, room, remedy)
        meant = _meant(error)
        if meant and meant[1] not in f"{remedy} {short}" and columns(meant[0]) <= room:
            head = _cut(phrases("error_class").sub("", error), room - columns(meant[0]) - 2)
            short = f"{head}; {meant[0]}" if columns(head) >= _LEAST_ERROR else meant[0]
        return f"{remedy.rstrip('.')} ({short})"
    fuller = (
        _with_beside(shorter, problem, room) for shorter in (error, phrases("error_class").sub("", error))
    )
    return f"{remedy.rstrip('.')} ({max(fuller, key=columns)})"


def _meant(error: str) -> tuple[str, str] | None:
    """Return what a tool thinks was meant, and the name in it: its guess, or the nearest of the names that it lists."""
    if guess := phrases("meant_name").search(error):
        return guess[0], guess["name"]
    listed_names, wrong = phrases("listed_names").search(error), phrases("named").search(error)
    if listed_names is None:
        return None
    if wrong and wrong.start() < listed_names.start():
        given, least = [wrong[0].strip("\"'`‘’")], _NEAR
    else:
        # Without quotation marks any of the words may be it: then only what is very near.
        given, least = _WORDS.findall(error[: listed_names.start()]), _VERY_NEAR
    names = [name for name in _WORDS.findall(listed_names["names"]) if name not in given]
    near = next((found[0] for name in given if (found := get_close_matches(name, names, 1, least))), None)
    return (f"nearest: {near}", near) if near else None


def _squeezed(error: str, room: int, remedy: str) -> str:
    """Return what fits of an error: rather its names and values than the class of the exception or how it begins."""
    for shorter in (error, _MODULE.sub("", error), phrases("error_class").sub("", error)):
        if columns(shorter) <= room:
            return shorter
    error = _last_causes(phrases("error_class").sub("", error), room)
    if columns(error) <= room:
        return error
    named = next((name for name in phrases("named").finditer(error) if columns(name[0]) < room), None)
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
    return (
        f"{ELLIPSIS}{fitting}"
        if phrases("named").search(fitting) and columns(fitting) >= _LEAST_ERROR
        else error
    )


def _remedy(text: str) -> str:
    """Read what somebody gave as the remedy, without its label and its list marks."""
    plain = phrases("remedy_label").sub("", _BULLET.sub("", _FENCE.sub("", clean(text[:4000]))).strip())
    return "" if not keywords(plain) or is_vague(plain) else plain


def _prose(text: str) -> str:
    """Return what words say: a short text whole, of several lines from the most telling one on."""
    lines = [line.strip() for line in _without_guesses(text)]
    lines = [line for line in lines if _LETTERS.search(line) and not phrases("echo").match(line)]
    lines = [line for line in lines if not phrases("verdict").search(line)] or lines
    lines = _without_chatter(lines)
    if len(lines) > _WHOLE_LINES or any(map(_AT.match, lines)):
        best = max(range(len(lines)), key=lambda at: (_telling(lines[at]), -at))
        is_said = len(lines) <= _PROSE_LINES or _telling(lines[best]) > 0
        goes_on = [line for line in lines[best + 1 : best + 2] if _goes_on(line)]
        lines = [lines[best], *goes_on] if is_said else []
    return "\n".join(_LEVEL.sub("", _POSITION.sub("", line)) for line in lines)


def _goes_on(line: str) -> bool:
    """Tell a line that may belong to the one above it from another message of a log and from what follows from an error."""
    return _telling(line) >= 0 and not (_LEVEL.match(line) or phrases("follows").search(line))


def _without_guesses(text: str) -> list[str]:
    """Return the lines of a text up to where its tool guesses at reasons, unless that is its first."""
    lines = text.split("\n")
    return list(takewhile(lambda line: not phrases("guesses").match(line), lines)) or lines


def _without_chatter(lines: Sequence[str]) -> list[str]:
    """Leave out what a log says of its program's work, unless it says nothing else."""
    return [line for line in lines if not phrases("chatter").match(line)] or list(lines)


def _telling(line: str) -> int:
    """Weigh a line: it speaks of an error, it names something; it is an aside, a heading or an exclamation."""
    says_nothing = (
        phrases("aside").match(line)
        or phrases("sum").search(line)
        or phrases("verdict").search(line)
        or is_order(line)
    )
    says_more = bool(phrases("named").search(line)) + 2 * bool(cures(line)) + bool(_AT.match(line))
    says_more += bool(phrases("complains").match(line))
    return 2 * bool(phrases("error").search(line)) + says_more - 3 * bool(says_nothing)
