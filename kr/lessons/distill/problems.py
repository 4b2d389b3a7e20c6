"""Finds the errors in a tool's output: what it says, in which file and line, and what stands beside it (SPEC 4.2).

How tools begin an error is data (``matchers.yaml``). What they put beside it is alike in all of them, and is read here: the
cause behind a wrapper, the values that were expected and given, hints, the line of code, the frames of a stack.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import islice, pairwise, takewhile
from textwrap import dedent
from typing import Any

from kr.lessons.distill import read_table
from kr.lessons.distill.trust import cures

LOOKED_AT = 24_000
"""Characters of an output that are looked at: the first and the last half of them."""

_MOST = 20
_WITHIN = 8
_MORE = 3
_BESIDE = 14
_DEEP = 60
_WRAPPED = 24
_GOES_ON = re.compile(r"[ \t]{2,}(?!(?:at|from) )[a-z]+ [a-z]+\b[^|=>^~{}();]*$")
_WORDS_ON = re.compile(r"(?!(?:at|by|from|in|npm|on|with)\b)[a-z]+ [a-z]+ ")
_LONG_LINE = 2000
_TRACEBACK = "Traceback (most recent call last):"
_CHAINED = re.compile(
    r"^(?:\s*\|\s*)?(?:The above exception was the direct cause of|During handling of the above exception)",
    re.MULTILINE,
)
_EXCEPTION = re.compile(
    r"^(?:\s*[|+]?\s*)(?P<name>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?::(?:\s(?P<text>.*))?)?$"
)
_FOREIGN = re.compile(
    r"://|(?:^|/)\.\w+$|site-packages|dist-packages|node_modules|lib/python3|<|/rustc/|/usr/(?:lib|local|share|include)/|\.cargo/|vendor/|\(eval|^node:|pyenv/versions|\bnptl/|/sysdeps/"
)
# A line of a stack that the runtime or a library wrote.
_RUNTIME = re.compile(
    r"\bat (?:java|javax|jdk|sun|scala|kotlin|groovy|org\.(?:junit|gradle|apache|springframework|hibernate))\b[./]|\bnode:"
)
_FRAME = re.compile(
    r"^\s*(?:\|\s+)?\(?[Ff]ile \"(?P<python>[^\"]+)\",? line (?P<python_line>\d+)"
    r"|(?:-->|(?:[╭┌]─|,-)\[?|❯|#\d+|\b(?:at|from|in|on))\s+(?:\S+\s+)??(?:[^\s()]*[\s(\[]+)?(?:file://)?(?P<stack>[^\s()\[\]:\"']+\.\w+)(?::|\(| line )(?P<stack_line>\d+)"
    r"|^\s*(?:file://)?(?P<plain>[^\s():\"']+\.\w+):(?P<plain_line>\d+)(?::\d+)?(?::? \+0x|:(?: +\w|\s*$|in [`'])|$)"
    r"|^\s+(?P<sheet>[^\s:()]+\.s[ac]ss) (?P<sheet_line>\d+):\d+\s",
    re.MULTILINE,
)
# What only tells that something failed before it: an earlier error is the cause.
_FOLLOWS = re.compile(
    r"\bBroken(?:Process|Thread)Pool\b|\bterminated abruptly\b|\bcurrent transaction is aborted\b|\bsubprocess-exited-with-error\b"
    r"|\boriginates from a subprocess\b|\bWorker failed to boot\b|^metadata-generation-failed|^\S+ exited with code \d+$|^process \".* did not complete successfully|\bhas a bad unit file setting\b"
)
# What a runner puts before each line of another program's output: compose, kubectl, a workflow's log, the journal, BuildKit.
_PREFIX = re.compile(
    r"^(?:[\w.-]+[-_]\d+ +\| |\[pod/\S+\] |#\d+ \d+\.\d+ |\d{4}-\d\d-\d\dT[\d:.]+Z (?:##\[\w+\])?"
    r"|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \S+ [\w.@-]+\[\d+\]: )",
    re.MULTILINE,
)
_BUILD_STEP = re.compile(r"^\d+\.\d{1,3} (?=\S)", re.MULTILINE)
# A verdict, a runner's counters, a bare place: what came of the error, never the error.
VERDICT = re.compile(
    r"^(?:[\w./ -]{1,40}: )?(?:FAIL(?:ED|URE)?|(?:command |process )?(?:failed|exited|returned|terminated)|ld returned|exit)\b(?: with)?[ :]+(?:(?:exit )?(?:code|status)[ :]*)?-?\d+\b(?: exit status)?(?: \([^()]*\))?\.?$"
    r"|^(?:[A-Z][\w ]{0,30}: \d+[,; ]*)+$|^(?:[\w./ -]{1,40}: )?\W*(?:found |total:? )?\d+ (?:\w+ )?(?:errors?|problems?|failures?|failed|issues?|offenses?|violations?|warnings?)\b(?:[, (]+\d+ [\w ]+)*[).]*$"
    r"|^[\w ]{0,30}\b(?:errors?|problems?|failures?) (?:(?:were|was|have been|has been) (?:encountered|found|detected|reported)|occurred)\W*$"
    r"|^(?:\w+ )?summary: \d+ errors?\b.*|^\W*\d+ (?:other|more) (?:\w+ )?(?:errors?|problems?|failures?)\b.*"
    r"|^\S+\.\w+[ :]*\(?\d+(?:[:,]\d+)?\)?:?$|^(?:failed: |aborted with )\d+ .*|^\W*(?:evaluation|build|compilation|check|validation) failed\W*(?:\([\d. \w]+\)|in [\d. ]+m?s)?$",
    re.IGNORECASE,
)
# A statement of SQL, and how to look closer.
_NO_CURE = re.compile(
    r"^LINE |\b(?:help|to|for|when) (?:\w+ )?(?:debug|troubleshoot)\w*\b|/troubleshooting\b"
)
# Where a tool shows what another one said that it called: pip.
_WITHIN_OUTPUT = re.compile(r"\[\d+ lines of output\]\n")
_END_OF_OUTPUT = "[end of output]"
_CAUSE = re.compile(
    r"^\s*(?:\[cause\]: |cause: (?=\w*Error)|Caused by:\s+(?:\d+: )?)(?P<cause>\S.*?)(?: \{)?$",
    re.MULTILINE,
)
_BAR = re.compile(r"^\s*\| ?")
_PACKAGE_OF_CLASS = re.compile(r"^(?:[a-z_$][\w$]*\.)+(?=[A-Z])")
# What was expected and what came, and what a tool says to help; not the heads of its sections.
_VALUES = re.compile(
    r"^(?:E\s|\[ERROR\]|npm (?:ERR!|error)(?: notsup)?|[\s|│+*#])*(?P<more>(?:expected|received|actual|got|found|required|left|right|reason|symbol|detail|missing)\b[^:(=]{0,24}[:=]\s*\S.*|(?:have|want) \(.*|expected .+, but found .+"
    r"|(?:where|peer|because) \S.*|conflicting .+: .+|.{1,60} !==? .{1,60})$",
    re.IGNORECASE,
)
_HINT = re.compile(
    r"^(?:E\s|\[ERROR\]|npm (?:ERR!|error)|[\s|│=*#])*(?:\S+:\d+:(?:\d+:)? )?(?P<more>(?:(?:(?:note|help|hint|suggestions?|tip|locator)|line \d+: (?:warning|error)):\s+\S.*|(?:did you mean\W+\w|perhaps|maybe you|possible|valid|available|allowed|the most similar)\b.*))$",
    re.IGNORECASE,
)
_LABEL = re.compile(r"^[\s\d]*\|(?:[\s|~-]*\^[\^~-]*|[\s|]*-{3,}(?= similarly))\s(?P<more>[a-z#`].{6,})$")
_CARETS = re.compile(r"^[\s\d]*[|│]?[\s|│]*[~-]*\^[\s^~-]*(?:\s[a-z#`].*)?$")
_CODE_ALONE = re.compile(r"^\[?[A-Za-z]+-?\d+\]?:?$")
_NUMBERED = re.compile(r"^\s*>?\s*\d+\s*[|│]")
_GUTTER = re.compile(r"^\s*>?\s*(?:\d+)?\s*[|│]\s?|^>\s+(?:\d+\s*[|│]\s*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One error as a tool told it.

    ``text`` is one line; ``beside`` what the tool puts next to it, the most telling first; ``code`` the line of code that
    it shows; ``context`` what stands around it, for the remedies.
    """

    text: str
    file: str | None = None
    line: int | None = None
    tool: str = ""
    beside: tuple[str, ...] = ()
    code: str = ""
    context: str = ""

    @property
    def place(self) -> str | None:
        """``file:line``, ``file``, or None where the tool names none of the project."""
        if not self.file or _FOREIGN.search(self.file):
            return None
        return f"{self.file}:{self.line}" if self.line else self.file


@dataclass(frozen=True, slots=True, kw_only=True)
class Matcher:
    """One row of ``matchers.yaml``."""

    pattern: re.Pattern[str]
    tool: str = ""
    message: str = "{message}"
    back: re.Pattern[str] | None = None
    more: re.Pattern[str] | None = None
    within: int = _WITHIN
    unless: re.Pattern[str] | None = None

    def find(self, text: str) -> Iterator[Problem]:
        """Yield the problems in a text."""
        matches = list(islice(self.pattern.finditer(text), _MOST))
        ends = [match.start() for match in matches[1:]] + [len(text)]
        for match, end in zip(matches, ends, strict=False):
            groups = {name: value or "" for name, value in match.groupdict().items()}
            told = " ".join(self.message.format(**groups).split())
            is_its_own = self.back is None or self.back.search(text, 0, match.start())
            if (
                told
                and is_its_own
                and not VERDICT.search(told)
                and not (self.unless and self.unless.search(told))
            ):
                yield self._problem(match, told, text, end)

    def _problem(self, match: re.Match[str], told: str, text: str, end: int) -> Problem:
        groups = match.groupdict()
        file, line = groups.get("file"), groups.get("line")
        if self.back:
            heads = list(self.back.finditer(text, 0, match.start()))
            file = heads[-1]["file"] if heads else None
        after = text[match.end() : end].split("\n", _DEEP)[1:_DEEP]
        before = text[: match.start()].rsplit("\n", _WITHIN)[-_WITHIN:]
        if self.more:
            found = (more for one in after[: self.within] if (more := self.more.match(one)))
            told = " ".join([told, *(more["more"].strip() for more in islice(found, _MORE))])
        if told.endswith("...") and (whole := text.find(told[:-3].removeprefix("Failed: "))) >= 0:
            # A sum that was cut: the whole stands above.
            told, after = text[whole:end].split("\n", 1)[0].strip(), text[whole:].split("\n", _DEEP)[1:_DEEP]
        if told.endswith((":", "***")) or _CODE_ALONE.match(told):
            # A heading: what it is about comes next, unless that is code, which stands beside it.
            lines = takewhile(lambda one: not _NUMBERED.match(one), filter(str.strip, after))
            said = [one.strip(" │") for one in lines if any(map(str.isalnum, one))]
            # The sentence may go on behind what it shows.
            goes_on = takewhile(lambda one: _WORDS_ON.match(one) or told.endswith("***"), said[1:])
            told = ("; " if told.endswith("***") else " ").join(
                [told, *said[:1], *islice(goes_on, _MORE - 1)]
            )
        elif (
            len(told) > _WRAPPED
            and (told[-1].isalnum() or told[-1] in ",)")
            and after
            and _GOES_ON.match(after[0])
        ):
            # A sentence that the tool wrapped.
            told = f"{told} {after[0].strip()}"
        problem = Problem(
            text=told,
            file=file,
            line=int(line) if line else None,
            tool=_tool_of(file or "") if self.tool == "extension" else self.tool,
            beside=tuple(_beside(after)),
            code=_code_shown(before, match[0].split("\n") + after[:_WITHIN]),
            context=told
            + text[match.end() : end][:_LONG_LINE].partition("\n")[0]
            + "\n"
            + "\n".join(after[:_BESIDE]),
        )
        problem = problem if problem.place else _placed(problem, before, after)
        if not problem.place and groups.get("test_file"):
            problem = replace(problem, file=groups["test_file"], line=int(groups["test_line"]))
        return _with_cause(problem, text[match.end() :])


def _tool_of(file: str) -> str:
    """Return the tag of a file's language."""
    name = file.rpartition(".")[2].lower()
    return next(
        (tool for tool, names in read_table("programs.yaml")["languages"].items() if name in names.split()),
        "",
    )


def _beside(after: Sequence[str]) -> Iterator[str]:
    """Yield what a tool puts under an error: what it says to do, values, the labels in its code, its hints."""
    lines = after[:_BESIDE]
    # In code it is code; what shows more of a failure mends nothing.
    said = (line for line in lines if not _GUTTER.match(line) and not _NO_CURE.search(line))
    yield from islice((cure for line in said for cure in cures(line)), 1)
    for pattern in (_VALUES, _LABEL, _HINT):
        found = (match["more"].strip() for line in lines if (match := pattern.match(line)))
        yield from islice(dict.fromkeys(found), _MORE)


def _code_shown(before: Sequence[str], after: Sequence[str]) -> str:
    """Return the line of code that a tool shows with carets under it, or that pytest marks, without its margin."""
    is_own = not any(line.startswith("node:") for line in before)
    for lines in (after, [*before, ""] if is_own else []):
        for line, marks in pairwise(lines):
            if _CARETS.match(marks) and not _CARETS.match(line) and len(marks) < _LONG_LINE // 4:
                return _GUTTER.sub("", line).strip()
    return next((_GUTTER.sub("", line).strip() for line in reversed(before) if line.startswith(">  ")), "")


def _placed(problem: Problem, before: Sequence[str], after: Sequence[str]) -> Problem:
    """Give a problem the first place of the project in the lines under it, or else right above it."""
    for line in (*after, *reversed(before)):
        if _RUNTIME.search(line):
            continue
        for frame in _FRAME.finditer(line):
            file, number = _of_frame(frame)
            if not _FOREIGN.search(file):
                return replace(problem, file=file, line=number)
    return problem


def placed(words: str, text: str) -> Problem:
    """Make a problem of words in a text that no matcher knows, with the first place that the text names."""
    return _placed(Problem(text=words), (), text.split("\n", _DEEP)[:_DEEP])


def _of_frame(frame: re.Match[str]) -> tuple[str, int]:
    kind = frame.lastgroup or ""
    return frame[kind.removesuffix("_line")], int(frame[kind])


def _with_cause(problem: Problem, rest: str) -> Problem:
    """Put the cause that a chain of exceptions ends with before the wrapper that was told first."""
    causes = list(_CAUSE.finditer(rest, 0, LOOKED_AT // 2))
    if not causes:
        return problem
    cause = causes[-1]
    told = cause["cause"]
    if len(causes) > 1 and not re.search(r"[\"'`/.:]", told):
        told = f"{causes[-2]['cause']}: {told}"
    if told in problem.text or told.partition(": ")[2] in problem.text:
        return problem
    after = rest[cause.end() :].split("\n", _DEEP)[1:_DEEP]
    placed = _placed(replace(problem, file=None, line=None), (), after)
    return replace(
        placed if placed.file else problem,
        text=f"{told} ({_PACKAGE_OF_CLASS.sub('', problem.text)})",
        context=f"{told}\n{problem.context}",
    )


def find_problems(text: str) -> list[Problem]:
    """Return the errors that a text tells, the most telling first; empty when no matcher knows it.

    What follows from another error is none where that stands before it.
    """
    inner = _WITHIN_OUTPUT.search(text)
    end = text.find(_END_OF_OUTPUT, inner.end()) if inner else -1
    if inner and end >= 0 and (within := find_problems(dedent(text[inner.end() : end]))):
        return [replace(problem, tool="pip") for problem in within]
    found: list[Problem] = []
    for matcher in matchers():
        for problem in causes(_tracebacks(text) if matcher is None else matcher.find(text)):
            # A general matcher finds again what one of a tool found: it is that tool's.
            tool = problem.tool or (found[0].tool if found else "")
            found.append(replace(problem, tool=tool))
    return [problem for problem in found if not _FOLLOWS.search(problem.text)] or found


def causes(problems: Iterable[Problem]) -> list[Problem]:
    """Leave out what stands behind an error that only follows from those before it."""
    found = list(problems)
    return list(takewhile(lambda problem: not _FOLLOWS.search(problem.text), found)) or found


def without_prefixes(output: str) -> str:
    """Take out what a runner puts before the lines of what it ran."""
    plain = _PREFIX.sub("", output)
    return _BUILD_STEP.sub("", plain) if "failed to solve" in output else plain


def with_short_lines(output: str) -> str:
    """Cut the lines of an output to what of a line is looked at."""
    return "\n".join(line[:_LONG_LINE].rstrip() for line in output.split("\n"))


def shortened(output: str) -> str:
    """Cut an output to what of it is looked at: its head and its tail."""
    if len(output) <= LOOKED_AT:
        return output
    return f"{output[: LOOKED_AT // 2]}\n{output[-LOOKED_AT // 2 :]}"


def _tracebacks(text: str) -> Iterator[Problem]:
    """Read the last traceback of Python, which is what came out in the end, with the one that it was made from."""
    parts = text.split(_TRACEBACK)
    problem = _exception(parts[-2], parts[-1]) if len(parts) > 1 else None
    if problem is None:
        return
    if len(parts) > 2 and _FOLLOWS.search(problem.text):
        yield _exception(parts[0], parts[1]) or problem
    if len(parts) > 2 and _CHAINED.search(parts[-2]):
        cause = _exception(parts[-3], parts[-2])
        # A project's own wrapper says less than what it wraps; a library's says it in its own words.
        if cause and problem.code.startswith("raise ") and cause.text not in problem.text:
            context = f"{cause.context}\n{problem.context}"
            problem = replace(cause, text=f"{cause.text} ({problem.text})", context=context)
    yield problem


def _exception(head: str, body: str) -> Problem | None:
    # In a group of exceptions a bar stands before each line.
    lines = [_BAR.sub("", line) for line in body.split("\n")[1:]]
    indent = len(_BAR.sub("", head.rpartition("\n")[2]))
    for number, line in enumerate(lines):
        told = line[indent:] if line[:indent].isspace() or not indent else line
        if not told or told[0].isspace() or not (match := _EXCEPTION.match(told)):
            continue
        if told.endswith(":"):
            # A message of several lines, which begins on the next one.
            said = takewhile(str.strip, lines[number + 1 :])
            told = " ".join([told, *islice(map(str.strip, said), _MORE)])
        frames = [(at, frame) for at, one in enumerate(lines[:number]) if (frame := _FRAME.match(one))]
        own = [(at, frame) for at, frame in frames if not _FOREIGN.search(_of_frame(frame)[0])]
        at, place = own[-1] if own else (-1, None)
        code = lines[at + 1].strip() if place else ""
        file, line_number = _of_frame(place) if place else (None, None)
        package = match["name"].partition(".")[0] if "." in match["name"] else _library(frames)
        is_standard = package in sys.stdlib_module_names
        return Problem(
            text=told.strip(),
            file=file,
            line=line_number,
            tool="" if is_standard else package.removeprefix("_").removesuffix("_core"),
            beside=tuple(_beside(lines[number + 1 :])),
            code=code,
            context="\n".join([code, *lines[number : number + _WITHIN]]),
        )
    return None


def _library(frames: Sequence[tuple[int, re.Match[str]]]) -> str:
    """Return the package whose code raised an exception that Python brings; empty where the project's or Python's did."""
    file = _of_frame(frames[-1][1])[0] if frames else ""
    package = file.replace("\\", "/").partition("-packages/")[2].partition("/")[0]
    return "" if package.startswith("_") or "." in package else package


@lru_cache(maxsize=1)
def matchers() -> tuple[Matcher | None, ...]:
    """Return the shipped problem matchers, in their order; None is the place of the reader of tracebacks."""
    rows: list[dict[str, Any]] = read_table("matchers.yaml")
    return tuple(
        None if "reader" in row else Matcher(**{key: _read(key, value) for key, value in row.items()})
        for row in rows
    )


def _read(key: str, value: Any) -> Any:
    return re.compile(value, re.MULTILINE) if key in {"pattern", "back", "more", "unless"} else value
