"""What to do about a problem: rows of a table, shipped and the users' own (SPEC 4.2)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from kr.lessons.distill import read_table
from kr.lessons.distill.problems import Problem, matchers
from kr.lessons.distill.trust import cures, is_order

_NAME = re.compile(r"[\w@$./:+<>#()\[\]*=, -]{1,60}")
_GROUP = re.compile(r"\{(\w+)\}")
_COMMAND = re.compile(r"`[^`]*\{\w+\}[^`]* [^`]*`|`[^`]* [^`]*\{\w+\}[^`]*`")
_KEYS = frozenset({"match", "say", "tag", "tool"})
_SPANS = re.compile(r"\\n|\[\\s\\S\]")
GENERAL = "general"
"""The family of the rows that hold for any tool."""

LONGEST = 140
"""Characters of a remedy, so that it fits a lesson."""


@cache
def _compiled(match: str) -> re.Pattern[str]:
    # On first use: most rows are never looked at, for their words don't stand in the text.
    return re.compile(match, re.MULTILINE)


_TOKEN = re.compile(
    r"(?P<plain>[^\\()\[\].^$*+?{}|]+)|(?P<flags>\(\?[a-z]+\))|(?P<aside>\(\?<?!)|(?P<open>\((?:\?(?:P<\w+>|<?=|[a-z-]*:))?)|(?P<close>\))|(?P<either>\|)"
    r"|(?P<maybe>[*?]\??|\{0?,\d*\}\??)|(?P<repeat>\+\??|\{\d+(?:,\d*)?\}\??)|\\(?P<escaped>[^A-Za-z0-9])|(?P<any>\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|[.^$\]{}])",
    re.DOTALL,
)


@cache
def words_of(match: str) -> tuple[str, ...]:
    """Return words in small letters of which each text that a pattern matches has one; empty where none is sure."""
    return _words(_TOKEN.finditer(match))


def _words(tokens: Iterator[re.Match[str]]) -> tuple[str, ...]:
    """Read a pattern up to the end of its group: of each alternative the part that says most."""
    either: list[tuple[str, ...]] = []
    parts: list[tuple[str, ...]] = []
    run = ""
    for token in tokens:
        kind = token.lastgroup
        if kind in {"plain", "escaped"}:
            run += (token["plain"] or token["escaped"]).lower()
            continue
        # What stands before a quantifier may be missing, a group as a single character.
        if kind == "maybe" and not run and parts:
            parts[-1] = ()
        parts.append((run[:-1] if kind == "maybe" else run,))
        run = ""
        if kind in {"open", "aside"}:
            words = _words(tokens)
            parts.append(words if kind == "open" else ())
        elif kind == "any":
            parts.append(())
        elif kind == "either":
            either.append(_longest(parts))
            parts = []
        elif kind == "close":
            break
    either.append(_longest([*parts, (run,)]))
    return tuple(word for words in either for word in words) if all(either) else ()


def _longest(parts: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the words of which the shortest is longest, as the surest sign; none shorter than two letters."""
    best = max(parts, key=lambda words: min(map(len, words), default=0), default=())
    return best if min(map(len, best), default=0) > 1 else ()


@dataclass(frozen=True, slots=True)
class Remedy:
    """One row; ``tool`` limits it to the errors of one tool, ``family`` keeps it off those of other families."""

    match: str
    say: str
    tag: str = ""
    tool: str = ""
    family: str = ""

    def says(self, problem: Problem, text: str, small: str, within: str | None = None) -> str | None:
        """Return what to do about a problem by a text of it (``small`` in small letters); None when the row is not about it.

        Where a text is given that it must begin ``within``, what the row finds must also read on into the next line.
        """
        if not any(word in small for word in words_of(self.match) or ("",)):
            return None
        if self.tool and self.tool != problem.tool:
            return None
        if self.family not in {"", GENERAL, problem.tool, _families().get(problem.tool, self.family)}:
            return None
        found = _compiled(self.match).search(text)
        if found is None:
            return None
        first, reads_on, _ = found[0].partition("\n")
        if within is not None and not (reads_on and first in within):
            return None
        named = {
            name.rstrip("0123456789"): value.strip().rstrip(".,;")
            for name, value in found.groupdict().items()
            if value
        }
        said = [named.get(name, "") for name in _GROUP.findall(self.say)]
        if not all(_NAME.fullmatch(value) and not (" " in value and is_order(value)) for value in said):
            return None
        return _GROUP.sub(lambda group: named[group[1]], self.say)


@lru_cache(maxsize=1)
def shipped() -> tuple[Remedy, ...]:
    """Return the shipped rows: those of services and the system, then those of languages, `any` and `general`."""
    return tuple(
        Remedy(
            match,
            say if isinstance(say, str) else say["say"],
            tag.strip("-"),
            "" if isinstance(say, str) else say["tool"],
            "" if family == "any" else family,
        )
        for table in ("remedies_services.yaml", "remedies.yaml")
        for family, tags in read_table(table).items()
        for tag, rows in tags.items()
        for match, say in rows.items()
    )


@lru_cache(maxsize=1)
def _families() -> dict[str, str]:
    """Return the family of each tool that has one."""
    # A tool with a matcher and no row of its own is a family alone; the package of an exception may be anybody's.
    alone = {matcher.tool: matcher.tool for matcher in matchers() if matcher and matcher.tool}
    kin = {
        tool: family
        for family, tools in read_table("programs.yaml")["kin"].items()
        for tool in (family, *tools.split())
    }
    return alone | {row.tag: row.family for row in shipped() if row.tag and row.family} | kin


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
                    item["match"],
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


def remedy_for(
    problems: Sequence[Problem], own: Sequence[Remedy] = (), *, is_one: bool = False
) -> tuple[Problem, str, str] | None:
    """Return the first problem that a row knows, what to do about it, and the row's tag; users' rows go first.

    ``is_one`` tells that the problems are the lines of one text: then what is particular in any of them goes first.
    """
    table = (*own, *shipped())
    particular = [row for row in table if row.family != GENERAL]
    general = [row for row in table if row.family == GENERAL]
    # What holds for any tool is not said of an error that says itself what to do.
    silent = [problem for problem in problems if not cures(problem.text)]
    if is_one:
        return _first(problems, particular) or _first(silent, general)
    # What holds for any tool is said of its first error alone.
    first = [problem for problem in silent if problem is problems[0]]
    return _first(problems[:1], particular) or _first(first, general) or _first(problems[1:], particular)


def _first(problems: Iterable[Problem], rows: Sequence[Remedy]) -> tuple[Problem, str, str] | None:
    for problem in problems:
        around = problem.context, problem.context.lower()
        own = problem.text, problem.text.lower()
        # The error's own line says more than what stands around it; a row may begin there and read on.
        for row in rows:
            told = row.says(problem, *own)
            if told is None and _SPANS.search(row.match):
                told = row.says(problem, *around, within=problem.text)
            if told is not None:
                return problem, told, row.tag
        for row in rows:
            if (told := row.says(problem, *around)) is not None:
                return problem, told, row.tag
    return None
