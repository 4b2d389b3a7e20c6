"""Finds the errors in a tool's output: what it says, in which file and line (SPEC 4.2).

The matchers are data (``matchers.yaml``); a Python traceback alone needs a reader of its own, since its error stands behind
the frames and may go on for lines.
"""

import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import files
from typing import Any

LOOKED_AT = 24_000
"""Characters of an output that are looked at: the first and the last half of them."""

_MOST = 20
_WITHIN = 8
_MORE = 3
_LONG_LINE = 2000
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = re.compile(r"^\s*(?:\|\s+)?File \"(?P<file>[^\"]+)\", line (?P<line>\d+)", re.MULTILINE)
_EXCEPTION = re.compile(r"^(?:\s*[|+]?\s*)(?P<name>(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*)(?::\s(?P<text>.*))?$")
_FOREIGN = re.compile(
    r"://|(?:^|/)\.\w+$|site-packages|dist-packages|node_modules|lib/python3|<|/rustc/|/usr/(?:lib|local|share)/|\.cargo/|vendor/|\(eval"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One error as a tool told it. ``text`` is one line; ``context`` is what stands around it, for the remedies."""

    text: str
    file: str | None = None
    line: int | None = None
    tool: str = ""
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

    name: str
    pattern: re.Pattern[str]
    tool: str = ""
    message: str = "{message}"
    then: re.Pattern[str] | None = None
    within: int = _WITHIN
    back: re.Pattern[str] | None = None
    more: re.Pattern[str] | None = None
    unless: re.Pattern[str] | None = None
    take: str = "first"

    def find(self, text: str) -> list[Problem]:
        """Return the problems in a text, those to be taken first in front."""
        found = [problem for match in self._matches(text) if (problem := self._problem(match, text))]
        return found[::-1] if self.take == "last" else found

    def _matches(self, text: str) -> Iterator[re.Match[str]]:
        for number, match in enumerate(self.pattern.finditer(text)):
            if number >= _MOST:
                return
            yield match

    def _problem(self, match: re.Match[str], text: str) -> Problem | None:
        groups = {name: value or "" for name, value in match.groupdict().items()}
        told = " ".join(self.message.format(**groups).split())
        if not told or (self.unless and self.unless.search(told)):
            return None
        after = text[match.end() :].split("\n", self.within + 1)[: self.within + 1]
        file, line = groups.get("file") or None, groups.get("line") or None
        if self.then and (place := self.then.search("\n".join(after))):
            file, line = place["file"], place["line"]
        if self.back:
            heads = list(self.back.finditer(text, 0, match.start()))
            file = heads[-1]["file"] if heads else None
        if self.more:
            told = " ".join([told, *(found["more"].strip() for found in _some(self.more, after))])
        return Problem(
            text=told,
            file=file,
            line=int(line) if line else None,
            tool=self.tool,
            context="\n".join([told, *after]),
        )


def _some(pattern: re.Pattern[str], lines: list[str]) -> Iterator[re.Match[str]]:
    matches = (match for line in lines if (match := pattern.match(line)))
    return (match for match, _ in zip(matches, range(_MORE), strict=False))


def find_problems(text: str) -> list[Problem]:
    """Return the errors that a text tells, the most telling first; empty when no matcher knows it."""
    found: list[Problem] = []
    for matcher in matchers():
        if matcher.name == "java-cause":
            found += _exceptions(text)
        found += matcher.find(text)
    return found


def with_short_lines(output: str) -> str:
    """Cut the lines of an output to what of a line is looked at."""
    return "\n".join(line[:_LONG_LINE].rstrip() for line in output.split("\n"))


def shortened(output: str) -> str:
    """Cut an output to what of it is looked at: its head and its tail."""
    if len(output) <= LOOKED_AT:
        return output
    return f"{output[: LOOKED_AT // 2]}\n{output[-LOOKED_AT // 2 :]}"


def _exceptions(text: str) -> Iterator[Problem]:
    """Read the exception of the last traceback, which is what came out in the end."""
    start = text.rfind(_TRACEBACK)
    if start < 0:
        return
    lines = text[start:].split("\n")[1:]
    indent = len(text[:start].rpartition("\n")[2])
    for number, line in enumerate(lines):
        body = line[indent:] if line[:indent].isspace() or not indent else line
        if not body or body[0].isspace() or not (match := _EXCEPTION.match(body)):
            continue
        frames = _FRAME.finditer("\n".join(lines[:number]))
        own = [frame for frame in frames if not _FOREIGN.search(frame["file"])]
        place = own[-1] if own else None
        package = match["name"].partition(".")[0] if "." in match["name"] else ""
        yield Problem(
            text=body.strip(),
            file=place["file"] if place else None,
            line=int(place["line"]) if place else None,
            tool=""
            if package in sys.stdlib_module_names
            else package.removeprefix("_").removesuffix("_core"),
            # The code of the last own frame stands under it.
            context="\n".join([*_code(lines, place), *lines[number : number + _WITHIN]]),
        )
        return


def _code(lines: list[str], frame: re.Match[str] | None) -> list[str]:
    """Return the line of code that a traceback shows under a frame."""
    if frame is None:
        return []
    number = next(at for at, line in enumerate(lines) if line.startswith(frame[0].strip("\n")))
    return [line.strip() for line in lines[number + 1 : number + 2]]


@lru_cache(maxsize=1)
def matchers() -> tuple[Matcher, ...]:
    """Return the shipped problem matchers, in their order."""
    rows: list[dict[str, Any]] = read_table("matchers.yaml")
    return tuple(Matcher(**{key: _read(key, value) for key, value in row.items()}) for row in rows)


def _read(key: str, value: Any) -> Any:
    is_pattern = key in {"pattern", "then", "back", "more", "unless"}
    return re.compile(value, re.MULTILINE) if is_pattern else value


def read_table(name: str) -> Any:
    """Read a shipped table."""
    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = files("kr.lessons.distill").joinpath(name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=loader)  # noqa: S506 - one of the two safe loaders


_NAME = re.compile(r"[\w@$./:+<>#()\[\]*=, -]{1,60}")
_GROUP = re.compile(r"\{(\w+)\}")
_COMMAND = re.compile(r"`[^`]*\{\w+\}[^`]* [^`]*`|`[^`]* [^`]*\{\w+\}[^`]*`")
_KEYS = frozenset({"match", "say", "tag", "tool"})
LONGEST = 140
"""Characters of a remedy, so that it fits a lesson."""


@dataclass(frozen=True, slots=True)
class Remedy:
    """One row; ``tool`` limits it to the errors of one tool."""

    match: re.Pattern[str]
    say: str
    tag: str = ""
    tool: str = ""

    def says(self, problem: Problem, text: str) -> str | None:
        """Return what to do about a problem by a text of it; None when the row is not about it."""
        if self.tool and self.tool != problem.tool:
            return None
        found = self.match.search(text)
        if found is None:
            return None
        named = {name: (value or "").strip() for name, value in found.groupdict().items()}
        if not all(_NAME.fullmatch(named.get(name, "")) for name in _GROUP.findall(self.say)):
            return None
        return _GROUP.sub(lambda group: named[group[1]], self.say)


@lru_cache(maxsize=1)
def shipped() -> tuple[Remedy, ...]:
    """Return the rows of ``remedies.yaml``."""
    rows, problems = read_rows(read_table("remedies.yaml"))
    if problems:
        raise ValueError("; ".join(problems))
    return rows


def read_rows(data: object) -> tuple[tuple[Remedy, ...], list[str]]:
    """Read rows from plain data; what is no row is told in a sentence, and left out."""
    items: Sequence[object] = data if isinstance(data, list) else ()
    problems = (
        [] if isinstance(data, list) or data is None else ["it must be a list of rows with match and say"]
    )
    rows: list[Remedy] = []
    for number, item in enumerate(items, start=1):
        problem = _wrong(item)
        if problem:
            problems.append(f"row {number}: {problem}")
        elif isinstance(item, Mapping):
            rows.append(
                Remedy(
                    re.compile(item["match"], re.MULTILINE),
                    item["say"].strip(),
                    item.get("tag", ""),
                    item.get("tool", ""),
                )
            )
    return tuple(rows), problems


def _wrong(item: object) -> str:
    if not isinstance(item, Mapping) or not all(
        isinstance(item.get(key), str) and item[key] for key in ("match", "say")
    ):
        return "match and say must be texts"
    if unknown := [str(key) for key in item if key not in _KEYS or not isinstance(item[key], str)]:
        return f"unknown or no text: {', '.join(unknown)}; allowed: {', '.join(sorted(_KEYS))}"
    try:
        groups = re.compile(item["match"]).groupindex
    except re.error as error:
        return f"match is no regular expression: {error}"
    if missing := [name for name in _GROUP.findall(item["say"]) if name not in groups]:
        return f"say names {{{missing[0]}}}, which is no group of match"
    if _COMMAND.search(item["say"]):
        return "say puts a word of the output into a command"
    return f"say is longer than {LONGEST} characters" if len(item["say"]) > LONGEST else ""


def remedy_for(problems: Iterable[Problem], own: Sequence[Remedy] = ()) -> tuple[Problem, str, str] | None:
    """Return the first problem that a row knows, what to do about it, and the row's tag; users' rows go first."""
    table = (*own, *shipped())
    for problem in problems:
        # The error's own line says more than what stands around it.
        for text in (problem.text, problem.context):
            for row in table:
                if (told := row.says(problem, text)) is not None:
                    return problem, told, row.tag
    return None
