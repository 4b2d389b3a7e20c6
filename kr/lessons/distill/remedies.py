"""What to do about a problem: rows of a table, shipped and the users' own (SPEC 4.2)."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from kr.lessons.distill import phrases, read_table
from kr.lessons.distill.complaint import says_to_do
from kr.lessons.distill.problems import Problem, matchers
from kr.lessons.distill.trust import cures, defused, without_urls

_NAME = re.compile(r"[\w@$./:+<>#()\[\]*=, -]{1,60}")
_HOST = re.compile(r"\b[\w-]+\.[a-z]{2,10}/|//")
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

    def named(self, problem: Problem, text: str, within: str | None = None) -> dict[str, str] | None:
        """Return the names that the row takes of a text of a problem; None when the row is not about it.

        Where a text is given that it must begin ``within``, what the row finds must also read on into the next line.
        """
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
        if self.family == GENERAL and "kind" in named:
            # A sentence of the tool may have begun with it.
            named["kind"] = named["kind"][0].lower() + named["kind"][1:]
        named = {name: without_urls(value) for name, value in named.items()}
        said = [named.get(name, "") for name in _GROUP.findall(self.say)]
        is_plain = all(map(_is_plain, said))
        # What any tool may have printed names no host.
        is_host = self.family == GENERAL and any(map(_HOST.search, said))
        return named if is_plain and not is_host else None

    def said(self, named: Mapping[str, str], say: str = "") -> str:
        """Return what to do, with these names."""
        return _GROUP.sub(lambda group: named[group[1]], say or self.say)


def _is_plain(value: str) -> bool:
    """Tell a name that kr may say in its own words: one that is no sentence, and switches no safeguard off."""
    if not _NAME.fullmatch(value) or (" " in value and says_to_do(value)):
        return False
    return phrases("unsafe_name").search(value) is None


class Known(NamedTuple):
    """A problem that a row knows, the names that the row takes of it, and what to do about it.

    ``same`` are all findings that this is said of.
    """

    problem: Problem
    row: Remedy
    named: Mapping[str, str]
    say: str
    same: Sequence[Problem]


@cache
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


@cache
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


_Row = tuple[tuple[str, ...], bool, Remedy]
_MOST_NAMES = 3
# A row that goes on in the singular is said of one name.
_SUBJECT = re.compile(r"\} (?:\w+s)\b")


def remedy_for(
    problems: Sequence[Problem], own: Sequence[Remedy] = (), *, is_one: bool = False
) -> Known | None:
    """Return the first problem that a row knows, with what to do about it; users' rows go first.

    ``is_one`` tells that the problems are the lines of one text: then what is particular in any of them goes first.
    """
    rows = _by_words(tuple(own))
    particular, general = ([row for row in rows if (row[-1].family == GENERAL) is it] for it in (False, True))
    if is_one:
        return _first(problems, particular) or _first(_silent(problems), general)
    # What holds for any tool is said of its first error alone.
    known = (
        _first(problems[:1], particular)
        or _first(_silent(problems[:1]), general)
        or _first(problems[1:], particular)
    )
    return known and _of_all(known, problems)


def _silent(problems: Iterable[Problem]) -> Iterator[Problem]:
    """Yield what a general row may be about: no error that says itself what to do, in words that may go on."""
    return (problem for problem in problems if not cures(defused(problem.text)))


@lru_cache(maxsize=8)
def _by_words(own: tuple[Remedy, ...]) -> tuple[_Row, ...]:
    """Return the rows, each with the words of which a text that it is about has one, and whether it spans lines."""
    return tuple(
        (words_of(row.match) or ("",), _SPANS.search(row.match) is not None, row)
        for row in (*own, *shipped())
    )


def _first(problems: Iterable[Problem], rows: Sequence[_Row]) -> Known | None:
    for problem in problems:
        own, around = problem.text.lower(), problem.context.lower()
        # The error's own line says more than what stands around it; a row may begin there and read on.
        for words, reads_on, row in rows:
            named = row.named(problem, problem.text) if any(word in own for word in words) else None
            if named is None and reads_on and any(word in around for word in words):
                named = row.named(problem, problem.context, within=problem.text)
            if named is not None:
                return Known(problem, row, named, row.said(named), (problem,))
        for words, _, row in rows:
            if any(word in around for word in words):
                named = row.named(problem, problem.context)
                if named is not None:
                    return Known(problem, row, named, row.said(named), (problem,))
    return None


def _of_all(known: Known, problems: Sequence[Problem]) -> Known:
    """Say a row once of all findings that it is about: with the names of each, where they differ in one name."""
    group = "" if _SUBJECT.search(known.row.say) else next(iter(_GROUP.findall(known.row.say)), "")
    names, same = [known.named.get(group, "")], [known.problem]
    for other in problems:
        named = known.row.named(other, other.text) if other.is_beside(known.problem) else None
        if named is not None and known.row.said({**named, group: names[0]}) == known.say:
            names += [named[group]] if group and named[group] not in names else []
            same.append(other)
    more = len(names) - _MOST_NAMES
    told = [*names[:_MOST_NAMES], f"{more} more"] if more > 0 else names
    joined = " and ".join(filter(None, [", ".join(told[:-1]), told[-1]]))
    template = known.row.say.replace(f"{{{group}}}", joined, 1) if group else ""
    say = known.row.said(known.named, template)
    return known._replace(say=say, same=tuple(same)) if len(say) <= LONGEST else known
