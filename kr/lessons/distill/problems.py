"""Finds the errors in a tool's output: what it says, in which file and line, and what stands beside it (SPEC 4.2).

Output that was written for programs is read as such: SARIF, JUnit XML, the JSON of ruff, eslint, cargo, pytest, terraform,
services. In other output, how tools begin an error is data (``matchers.yaml``). What they put beside it is alike in all of
them, and is read here: the cause behind a wrapper, the values that were expected and given, hints, code, the frames of a stack.
"""

import json
import re
import sys
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, pairwise, takewhile
from textwrap import dedent
from typing import Any

from kr.lessons.distill import phrases, read_table
from kr.lessons.distill.trust import cures

LOOKED_AT = 24_000
"""Characters of an output that are looked at: the first and the last half of them."""

_MOST = 20
_WITHIN = 8
_MORE = 3
_BESIDE, _AROUND = 14, 20
_DEEP = 60
_WORDS_ON = re.compile(r"(?!(?:at|by|from|in|npm|on|with)\b)[a-z]+ [a-z]+ ")
_LONG_LINE = 2000
_TRACEBACK = "Traceback (most recent call last):"
_EXCEPTION = re.compile(
    r"^(?:\s*[|+]?\s*)(?P<name>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?::(?:\s(?P<text>.*))?)?$"
)
# Where a tool shows what another one said that it called: pip.
_WITHIN_OUTPUT = re.compile(r"\[\d+ lines of output\]\n")
_END_OF_OUTPUT = "[end of output]"
_BAR = re.compile(r"^\s*\| ?")
# The first lines are the code that it shows, and the error.
_HANDLED = re.compile(r"(?:.*\n){1,2}?(?:E?\s*\n)*\s*During handling of the above exception, another")
# A file in the report of coverage.py (statements, those missed, branches, the share in per cent) or of Jest.
_COVERED = re.compile(r"(?m)^ *(?P<file>\S+\.\w+)(?:[\s|]+[\d.]+){2,4}[\s|]+(?P<cover>\d+)[.\d]* *[%|]")
_LABEL = re.compile(r"^[\s\d]*\|(?:[\s|~-]*\^[\^~-]*|[\s|]*-{3,}(?= similarly))\s(?P<more>[a-z#`].{6,})$")
_CARETS = re.compile(r"^[\s\d]*[|│]?[\s|│~-]*\^[\s^~-]*(?:\s[a-z#`].*)?$")
_CODE_ALONE = re.compile(r"^\[?[A-Za-z]+-?\d+\]?:?$")
_LAUNCHER = re.compile(r"^\s*sys\.exit\([\w.]+\(\)\)$")
# A sentence that is broken at the end of a line goes on further in on the next one.
_UNFINISHED = re.compile(r"(?:\b(?:of|type|to|the|an|with|in|by|and|or|is|but|from|for)|,)$")
# What a short sentence is explained with, behind a bar.
_DETAIL = re.compile(r"^\s+[|│] ([A-Za-z'\"`].*)$")
_SHORT = 5
_CONTINUED = re.compile(r"^\s+[\w'\"`<(]")
_HEADING = re.compile(r"^[A-Za-z]\S* .*:$")
_NUMBERED = re.compile(r"^\s*>?\s*\d+(?:\s*[|│]|\s{1,4}\S.*[;{}()]$)")
# What a program for a terminal draws around a message, with its heading; a table has columns.
_BOX = re.compile(
    r"^[ \t]*[╭┌╔][─━═]+ ?([A-Z]\w+(?: \w+)?)?[ ─━═]*[╮┐╗]?\n((?:[ \t]*[│┃║][^│┃║\n]*[│┃║]\n)+)[ \t]*[╰└╚][─━═]+[╯┘╝]?$",
    re.MULTILINE,
)
_GUTTER = re.compile(r"^\s*>?\s*(?:\d+)?\s*[|│]\s?|^>\s+(?:\d+\s*[|│]\s*)?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One error as a tool told it.

    ``text`` is one line; ``beside`` what the tool puts next to it, the most telling first; ``code`` the line of code that
    it shows; ``context`` what stands around it, for the remedies; ``finding`` the matcher whose every match is a finding of
    its own, as a linter's are.
    """

    text: str
    file: str | None = None
    line: int | None = None
    tool: str = ""
    beside: tuple[str, ...] = ()
    code: str = ""
    context: str = ""
    finding: str = ""

    def is_beside(self, other: "Problem") -> bool:
        """Tell another finding of the same kind of line."""
        return self is not other and bool(self.finding) and self.finding == other.finding

    @property
    def place(self) -> str | None:
        """``file:line``, ``file``, or None where the tool names none of the project."""
        if not self.file or phrases("foreign").search(self.file):
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
    each: bool = False

    def find(self, text: str) -> Iterator[Problem]:
        """Yield the problems in a text."""
        matches = list(islice(self.pattern.finditer(text), _MOST))
        ends = [match.start() for match in matches[1:]] + [len(text)]
        for match, end in zip(matches, ends, strict=False):
            told = " ".join(self.message.format(**match.groupdict("")).split())
            heads = list(self.back.finditer(text, 0, match.start())) if self.back else [match]
            is_none = phrases("verdict").search(told) or (self.unless and self.unless.search(told))
            if told and heads and not is_none:
                yield self._problem(match, told, heads[-1].groupdict().get("file"), text, end)

    def _problem(self, match: re.Match[str], told: str, file: str | None, text: str, end: int) -> Problem:
        groups = match.groupdict()
        after = text[match.end() : end].split("\n", _DEEP)[1:_DEEP]
        before = text[: match.start()].rsplit("\n", _WITHIN)[-_WITHIN:]
        # What stands beside a warning is not about the error.
        below, after = after, list(takewhile(lambda one: not phrases("warns").match(one), after))
        if self.more:
            found = (more for one in after[: self.within] if (more := self.more.match(one)))
            told = " ".join([told, *(more["more"].strip() for more in islice(found, _MORE))])
        if told.endswith("...") and (whole := text.find(told[:-3].removeprefix("Failed: "))) >= 0:
            # A sum that was cut: the whole stands above.
            told, after = text[whole:end].split("\n", 1)[0].strip(), text[whole:].split("\n", _DEEP)[1:_DEEP]
        told = _headed(told, after)
        rest_of_line = text[match.end() : end][:_LONG_LINE].partition("\n")[0]
        code = _code_shown(
            [] if any(map(phrases("warns").match, before)) else before,
            match[0].split("\n") + after[:_WITHIN],
        )
        problem = Problem(
            text=told,
            file=file,
            line=int(groups["line"]) if groups.get("line") else None,
            tool=_tool_of(file or "") if self.tool == "extension" else self.tool,
            beside=tuple(_beside(after)),
            code=code,
            context="\n".join([code, told + rest_of_line, *after[:_AROUND], file or ""]).strip(),
            finding=self.pattern.pattern if self.each else "",
        )
        problem = problem if problem.place else stated(problem)
        problem = problem if problem.place else _placed(problem, before, below)
        if not problem.place and groups.get("test_file"):
            problem = replace(problem, file=groups["test_file"], line=int(groups["test_line"]))
        return _with_cause(problem, text[match.end() :])


def _headed(told: str, after: Sequence[str]) -> str:
    """Put behind a heading what it is about, which comes next, unless that is code, which stands beside it."""
    is_alarm = told.endswith("***")
    if _UNFINISHED.search(told) and after and _CONTINUED.match(after[0]) and not _NUMBERED.match(after[0]):
        return f"{told} {after[0].strip()}"
    if after and len(told.split()) < _SHORT and (detail := _DETAIL.match(after[0])):
        return f"{told}: {detail[1].strip()}"
    if not (is_alarm or told.endswith(":") or _CODE_ALONE.match(told)):
        return told
    lines = takewhile(lambda one: not _NUMBERED.match(one), filter(str.strip, after))
    under = [one for one in lines if any(map(str.isalnum, one))]
    # One heading may stand under another; what is further in belongs to what it shows.
    heads = sum(1 for _ in takewhile(_HEADING.match, under[:_MORE]))
    said = [one.strip(" │") for one in under]
    # The sentence may go on behind what it shows.
    goes_on = takewhile(lambda one: is_alarm or _WORDS_ON.match(one), said[heads + 1 :])
    return ("; " if is_alarm else " ").join([told, *said[: heads + 1], *islice(goes_on, _MORE - 1)])


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
    said = (line for line in lines if not (_GUTTER.match(line) or phrases("looks_closer").search(line)))
    yield from islice((cure for line in said for cure in cures(line)), 1)
    for pattern in (phrases("values"), _LABEL, phrases("hint")):
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
    after = [line for line, under in pairwise([*after, ""]) if not _LAUNCHER.match(under)]
    for line in (*after, *reversed(before)):
        if phrases("runtime").search(line):
            continue
        for frame in phrases("frame").finditer(line):
            file, number = _of_frame(frame)
            if not phrases("foreign").search(file):
                return replace(problem, file=file, line=number)
    return problem


def stated(problem: Problem) -> Problem:
    """Give a problem the place that its own words state, and leave that out of them where they begin with it."""
    found = phrases("stated").search(problem.text)
    if found is None:
        return problem
    kind = (found.lastgroup or "").removesuffix("_line")
    told = replace(problem, file=found[kind], line=int(found[f"{kind}_line"]))
    rest = problem.text[found.end() :].strip()
    is_head = found.start() == 0 and " " in rest
    return replace(told, text=rest) if told.place and is_head else told if told.place else problem


def placed(problem: Problem, text: str) -> Problem:
    """Give a problem that has no place of its own the one that its words state, or the first one that the text names."""
    told = stated(problem)
    return told if told.place else _placed(problem, (), text.split("\n", _DEEP)[:_DEEP])


def _of_frame(frame: re.Match[str]) -> tuple[str, int]:
    kind = (frame.lastgroup or "").removesuffix("_line")
    return frame[kind], int(frame[f"{kind}_line"])


def _with_cause(problem: Problem, rest: str) -> Problem:
    """Put the cause that a chain of exceptions ends with before the wrapper that was told first."""
    causes = list(phrases("cause").finditer(rest, 0, LOOKED_AT // 2))
    if not causes:
        return problem
    cause = causes[-1]
    told = cause["cause"]
    if len(causes) > 1 and not re.search(r"[\"'`/.:]", told):
        told = f"{causes[-2]['cause']}: {told}"
    # The bare name of a class says less than the wrapper.
    if " " not in told or (told.partition(": ")[2] or told) in problem.text:
        return problem
    after = rest[cause.end() :].split("\n", _DEEP)[1:_DEEP]
    placed = _placed(replace(problem, file=None, line=None), (), after)
    return replace(
        placed if placed.file else problem,
        text=f"{told} ({problem.text})",
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
    told = [problem for problem in found if not phrases("follows").search(problem.text)] or found
    # What was being handled when the last error came out says less than that, and a word alone says least.
    told.sort(key=lambda problem: (_HANDLED.match(problem.context) is not None, " " not in problem.text))
    return [_least_covered(problem, text) for problem in told]


def _least_covered(problem: Problem, text: str) -> Problem:
    """Give a coverage that is too low the file that has least of it."""
    if problem.place or "overage" not in problem.text:
        return problem
    least = min(_COVERED.finditer(text), key=lambda row: int(row["cover"]), default=None)
    return replace(problem, file=least["file"]) if least and least["cover"] != "100" else problem


def causes(problems: Iterable[Problem]) -> list[Problem]:
    """Leave out what stands behind an error that only follows from those before it."""
    found = list(problems)
    return list(takewhile(lambda problem: not phrases("follows").search(problem.text), found)) or found


def plain(output: str) -> str:
    """Take out what a runner puts before the lines of what it ran, boxes, and of each line what is not looked at."""
    text = phrases("prefix").sub("", "\n".join(line[:_LONG_LINE].rstrip() for line in output.split("\n")))
    return _BOX.sub(_unboxed, text)


def _unboxed(box: re.Match[str]) -> str:
    """Return what stands in a box as one line behind its heading."""
    said = " ".join(line.strip(" \t│┃║") for line in box[2].splitlines())
    return f"{box[1]}: {' '.join(said.split())}" if box[1] else " ".join(said.split())


def _tracebacks(text: str) -> Iterator[Problem]:
    """Read the last traceback of Python, which is what came out in the end, with the one that it was made from."""
    parts = text.split(_TRACEBACK)
    problem = _exception(parts[-2], parts[-1]) if len(parts) > 1 else None
    if problem is None:
        return
    if len(parts) > 2 and phrases("follows").search(problem.text):
        yield _exception(parts[0], parts[1]) or problem
    if len(parts) > 2 and phrases("chained").search(parts[-2]):
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
        frames = [
            (at, frame) for at, one in enumerate(lines[:number]) if (frame := phrases("frame").match(one))
        ]
        own = [(at, frame) for at, frame in frames if not phrases("foreign").search(_of_frame(frame)[0])]
        own = [(at, frame) for at, frame in own if not phrases("compiled").search(_of_frame(frame)[0])] or own
        # What a package puts on the PATH only calls it.
        own = [(at, frame) for at, frame in own if not _LAUNCHER.match(lines[at + 1])]
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


@cache
def matchers() -> tuple[Matcher | None, ...]:
    """Return the shipped problem matchers, in their order; None is the place of the reader of tracebacks."""
    rows: list[dict[str, Any]] = read_table("matchers.yaml")
    return tuple(
        None if "reader" in row else Matcher(**{key: _read(key, value) for key, value in row.items()})
        for row in rows
    )


def _read(key: str, value: Any) -> Any:
    return re.compile(value, re.MULTILINE) if key in {"pattern", "back", "more", "unless"} else value


_LARGEST = 1024 * 1024
_DEPTH = 6
_MOST_READ = 50
_MESSAGES = ("message", "msg", "detail", "description", "error_description", "errorMessage", "error_message", "defaultMessage", "title", "reason", "error")  # fmt: skip
_CAUSES = ("err", "error", "cause", "exception")
_NESTED = ("error", "errors", "detail", "details", "fault", "violations", "failures", "issues")
_FIELDS = ("loc", "field", "param", "property", "instancePath", "pointer", "path")
_XML = re.compile(r"<(?:testsuites?|\?xml)\b")


def read_structured(output: str) -> list[Problem]:
    """Return the problems of structured output, empty when it is none, or tells of none."""
    text = output.strip()
    if len(text) > _LARGEST:
        return []
    if (start := _XML.search(text[:LOOKED_AT])) and "<testcase" in text:
        return list(_junit(text[start.start() :]))
    problems = [problem for document in _documents(text) for problem in _of_json(document)]
    return [one if one.file else placed(one, text) for one in problems[:_MOST_READ]]


def _documents(text: str) -> Iterator[Any]:
    """Yield the JSON of a text: one document after words of a program, or one in each line."""
    decoder = json.JSONDecoder(strict=False)
    lines = [line for line in text.split("\n") if line.startswith("{")]
    if len(lines) > 1 and all(line.endswith("}") for line in lines):
        for line in lines:
            try:
                yield decoder.decode(line)
            except (ValueError, RecursionError):
                continue
        return
    starts = [found.start() for found in re.finditer(r"(?:^|(?<=\s))(?:\{\s*\"|\[\s*\{)", text)][:_DEPTH]
    for start in starts:
        try:
            yield decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue
        return


def _of_json(data: Any) -> Iterator[Problem]:
    for item in data[:_MOST_READ] if isinstance(data, list) else [data]:
        if not isinstance(item, Mapping):
            continue
        shapes = [
            shape for shape in read_table("structured.yaml") if all(map(item.__contains__, shape["has"]))
        ]
        told = (list(_of_shape(item, shape)) for shape in shapes)
        found = next(filter(None, told), [])
        yield from found
        if not shapes and "Action" not in item and "reason" not in item and (text := _message(item)):
            # What has an action or a reason is a step of `go test -json` or of cargo, and tells no error.
            path = item.get("file") or item.get("path") or item.get("filename")
            yield _problem(text, path if isinstance(path, str) else None, item.get("line"), "")


def _of_shape(data: Mapping[str, Any], shape: Mapping[str, Any]) -> Iterator[Problem]:
    for error in _walk(data, shape["path"].split(".") if shape["path"] else [], ()):
        if "severity" in shape and _get(error, shape["severity"]) not in shape["errors"]:
            continue
        text = _filled(shape["text"], error).replace(" ()", "").replace("..", ".").strip(" .")
        if text:
            tool = _filled(shape["tool"], error).lower()
            yield _problem(text, _get(error, shape["file"]), _get(error, shape["line"]), tool)


def _walk(data: Any, path: list[str], around: tuple[Mapping[str, Any], ...]) -> Iterator[Mapping[str, Any]]:
    """Yield what a path leads to, with the keys of what is around it."""
    if not path:
        if isinstance(data, Mapping):
            yield ChainMap(*({**one} for one in (data, *around)))
    elif path[0] == "*":
        for item in data[:_MOST_READ] if isinstance(data, list) else ():
            yield from _walk(item, path[1:], around)
    elif isinstance(data, Mapping):
        yield from _walk(data.get(path[0]), path[1:], (data, *around))


def _get(data: Any, path: str) -> Any:
    """Follow a path of keys; a number is a place in a list, another key the first item that has it. Empty: nothing."""
    for key in path.split(".") if path else ():
        if isinstance(data, list):
            place = int(key) if key.isdigit() else None
            some = data[place : place + 1] if place is not None else [it for it in data if _get(it, key)]
            data = some[0] if some else ""
        else:
            data = data.get(key) if isinstance(data, Mapping) else ""
    return "" if data is None or not path else data


def _filled(template: str, data: Mapping[str, Any]) -> str:
    return re.sub(r"\{([\w.]+)\}", lambda found: str(_get(data, found[1])).strip(), template)


def _junit(text: str) -> Iterator[Problem]:
    # A stranger's XML: entities and the like are refused, not expanded.
    from defusedxml import DefusedXmlException, ElementTree

    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, DefusedXmlException, ValueError):
        return
    for case in root.iter("testcase"):
        for failure in (*case.findall("error"), *case.findall("failure")):
            told = failure.get("message") or (failure.text or "").strip()
            kind = failure.get("type") or ""
            text = (
                told if not kind or kind.rpartition(".")[2] in told else f"{kind.rpartition('.')[2]}: {told}"
            )
            yield _problem(text, case.get("file"), case.get("line"), "")


def _message(data: Any, depth: int = 0) -> str:
    """Read the innermost message of a service's error, with the field it speaks of."""
    if isinstance(data, str):
        return data.strip()
    if isinstance(data, list):
        return next((told for item in data[:5] if (told := _message(item, depth + 1))), "")
    if not isinstance(data, Mapping) or depth > _DEPTH:
        return ""
    inner = (_message(data[key], depth + 1) for key in _NESTED if isinstance(data.get(key), Mapping | list))
    told = next(filter(None, inner), "") or next(
        (text for key in _MESSAGES if (text := _text(data, key))), ""
    )
    if (
        (cause := next(filter(None, (_text(data, key) for key in _CAUSES)), ""))
        and told
        and cause not in told
    ):
        told = f"{told}: {cause}"
    where = next((data[k] for k in _FIELDS if data.get(k) and (k != "path" or isinstance(data[k], list))), "")
    field = ".".join(map(str, where)) if isinstance(where, list) else str(where)
    return f"{field}: {told}" if told and field and field not in told else told


def _problem(text: str, file: object, line: object, tool: str) -> Problem:
    number = int(line) if isinstance(line, int | str) and str(line).isdigit() else None
    first = " ".join(text.split("\n\n", maxsplit=1)[0].split("\n    at ", maxsplit=1)[0].split())
    where = str(file) if file else None
    return Problem(text=first, file=where, line=number, tool=tool, context=text[:2000], finding=tool)


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    return value.strip() if isinstance(value, str) else ""
