"""A lesson for a failure whose author worded none, and the table of remedies: what to do about an error that many make. Matching is pure.

Nothing is rephrased. First that holds: the issue's own remedy behind its message; a remark that says what to do, in its own words; a row of the
table; a remark; the error's own line with the hint beside it. ``remedies/<tool>.yaml`` holds the rows of one tool, and ``tests/data/remedies`` a
real output of the tool for each. Users' own rows stand in ``remedies.yaml`` beside the lessons file.
"""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from itertools import islice
from pathlib import Path

import yaml

from kr.guard import may_match, required_texts
from kr.lessons.line import FIX_COLUMNS, SUMMARY_COLUMNS, cut, word_lesson
from kr.requests import scalars
from kr.text import columns, one_line

logger = logging.getLogger(__name__)

# What is particular goes first: a tool before the language it is written in, and what may be any tool's last.
_LAST = "java c rust go ruby php perl node typescript javascript python bash system general".split()
_PLACEHOLDER = re.compile(r"\{(\w+)\}")
_NAME = re.compile(r"[\w@$./:+<>#()\[\]*=, -]{1,60}")
_MOST_WORDS = 4
_MOST_PLACES = 5
# Advice must not be turned round by the name in it: `leave out verify_ssl`.
_SAFEGUARD = re.compile(r"verif|check_?host|insecure|unauthorized|strict.?ssl|sandbox|csrf", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Remedy:
    """One row: a pattern (searched with ``re.MULTILINE``), what to do with the pattern's groups in it, and tags."""

    match: str
    fix: str
    tags: tuple[str, ...] = ()
    required: Sequence[Sequence[Sequence[str]]] = field(default=((),), compare=False)
    """What the pattern needs: ``kr.guard.required_texts``."""


def find_remedy(output: str, own: Sequence[Remedy] = ()) -> tuple[Remedy, str, list[str]] | None:
    """Return the first row that matches, what it says to do, and the lines that it is about; users' own rows go first."""
    lowered = output.lower()
    for row in (*own, *shipped()):
        if not may_match(lowered, row.required):
            continue
        for found in islice(re.finditer(row.match, output, re.MULTILINE), _MOST_PLACES):
            if fix := _filled(row.fix, found):
                start, end = output.rfind("\n", 0, found.start()) + 1, output.find("\n", found.end())
                lines = output[start : end if end >= 0 else None].strip("\n").split("\n")
                return row, fix, lines
    return None


def _filled(fix: str, found: re.Match[str]) -> str | None:
    """Put the names of the output into a fix; ``None`` where one is no plain name, or one of a safeguard."""
    # name, name2 … are one, for the alternatives of a pattern.
    names = {name.rstrip("0123456789"): value for name, value in found.groupdict().items() if value}
    filled = {name: names.get(name, "").strip().rstrip(".,;") for name in _PLACEHOLDER.findall(fix)}
    is_plain = all(
        _NAME.fullmatch(name) and len(name.split()) <= _MOST_WORDS and not _SAFEGUARD.search(name)
        for name in filled.values()
    )
    return _PLACEHOLDER.sub(lambda group: filled[group[1]], fix) if is_plain else None


@cache
def shipped() -> tuple[Remedy, ...]:
    """Return the shipped rows, in the order in which they are tried."""
    folder = files("kr.lessons").joinpath("remedies")
    tables = {it.name.removesuffix(".yaml"): it for it in folder.iterdir() if it.name.endswith(".yaml")}
    rows: list[Remedy] = []
    for name in sorted(tables, key=lambda name: (_LAST.index(name) if name in _LAST else -1, name)):
        data = yaml.load(tables[name].read_text(encoding="utf-8"), yaml.CBaseLoader)  # noqa: S506 - makes texts, lists and mappings alone
        tags = tuple(data["tags"])
        rows += (Remedy(it["match"], it["fix"], tags, required_texts(it["match"])) for it in data["rows"])
    return tuple(rows)


def read_own(path: Path) -> list[Remedy]:
    """Read users' own rows: a list of ``match``, ``fix`` and ``tags``. A file with a row that is none is logged, and passed over."""
    try:
        data = yaml.load(path.read_bytes(), yaml.CBaseLoader)  # noqa: S506 - makes texts, lists and mappings alone
        for row in data or []:
            re.compile(row["match"])
        return [Remedy(row["match"], str(row["fix"]), scalars(row.get("tags"))) for row in data or []]
    except FileNotFoundError:
        return []
    except (OSError, yaml.YAMLError, ValueError, RecursionError, TypeError, KeyError, re.error) as error:
        why = " ".join(f"{type(error).__name__}: {error}".split())
        logger.warning("%s: no list of rows with match and fix: %s; passed over", path, why)
        return []


# --- a lesson's words ---

_MOST_REMARK_LINES = 4

_ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_TOOL_OUTPUT = re.compile(
    r"^(?:\S+?:\d+(?::\d+)?[:,]? |\s*\d+:\d+ |\S+\(\d+,\d+\): |/\S+$|\S+: line \d+: |[a-z][\w.-]*: [A-Z\"'`]|\s*at \S+ \(|E   |\d+[acd]\d+$"
    r"|Traceback \(|Exit code|error(?:\[\w+\])?: |fatal: |panic: |npm (?:ERR!|error)|\[?(?:ERROR|FAIL|FAILED|FATAL)\]?[: ]"
    r"|[\w.$]*(?:Error|Exception)\b[^ ]*: |[A-Z]+\d{3,4} )|\bat \S+ line \d+[.,]|\bBEGIN failed",
    re.MULTILINE,
)
_EXCEPTION = re.compile(
    r"(?:E\s+)?(?:Uncaught )?(?:[\w.]+[.:])?\w*(?:Error|Exception|Warning|Failed|NotFound|Mismatch)\b:? \S"
)
_ERROR_WORD = re.compile(
    r"\b(?:error|fatal|panic(?:ked)?|fail(?:ed|ure|s)?|cannot|can't|could not|couldn't|unable|undefined|unknown|not found|no such|denied"
    r"|invalid|unexpected|missing|unbound|refused|tim(?:ed |e)out|unsupported|conflict\w*|must|deprecated|not allowed|unresolved"
    r"|expected|required|does not|doesn't|is not)\b|错误|失败|无法|未找到",
    re.IGNORECASE,
)
_VERDICT = re.compile(
    r"(?i)^\W*(?:found )?\d+ (?:\w+ )?(?:failed|passed|errors?|problems?|issues?|tests?|warnings?)\b|^\W*(?:exit (?:code|status)|process exited|command failed"
    r"|(?:E\s+)?(?:AssertionError:? *)?assert\b|AssertionError:? *$|(?:AssertionError: )?expected .{0,80} to (?:be|equal|deep|strict|have length)\b"
    r"|build failed|tests? (?:failed|suites?)|FAILED |=+|_{3,} |short test summary|make: \*\*\*|elifecycle|error: process|subprocess-exited|"
    r"(?:error|failed|failure|failures|errors?|failed examples):?$|could not compile|aborting due to|for more information|see (?:https?|the)|this error originates)"
)
_PLACE = re.compile(
    r"^(?:/\S+:|\S+: line \d+:|in `[^`']+':|\[[\w.]+\]|\d{4}[/-]\d\d[/-]\d\d [\d:.,]+|\S*[/\\.]\S*?:\d+(?::\d+)?[:,]?|\S+\(\d+,\d+\):|E  +|>+|[-*•✖×│|]+)\s*"
)
_LEVEL = re.compile(
    r"^(?:npm (?:ERR!|error)(?: code)?|\[?(?:error|fatal|ERROR|FATAL|E)\]?)(?:\[(\w+)\])?:?\s+"
)
_HINT = re.compile(
    r"(?i)^\W*(?:hint|help|note|tip|fix|suggestion|did you mean|detail|consider|try|use|please)\b[:\s]"
)
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`'\"(\u00c0-\u024f])|(?<=[。！？])\s*|\n+")
_ADVICE = re.compile(
    r"(?i)^(?:please |then |so |better |instead,? |fixed by |solution: |fix: |suggestion: )?(?:use|using|add|set|give|assert|check|make|pass|call|move|wrap|remove|replace"
    r"|return|run|put|keep|do not|don't|never|always|avoid|ensure|validate|test|read|write|rename|declare|handle|compare|reset|close|await|bind"
    r"|escape|log|catch|throw|raise|import|install|update|upgrade|configure|enable|mock|extract|split|store|load|limit|cache|lock|create|drop|mark|start|stop|free"
    r"|wait|take|let|prefer|guard|require|scope|filter|sort|round|parse|reject|switch)\b"
    r"|\b(?:should|must|needs? (?:to|a|an|the|its)|have to|has to|ought to|instead(?: of)?|rather than|fix(?:ed)? (?:it )?by|solved by|works (?:with|when|if|after)|helps?)\b"
    r"|需要|应该|应当|必须|请|改用|使用|不要|避免|建议|务必"
)
_EMPTY_WORDS = frozenset(
    """
    a after agent all an and are at be been but by cases check checks code critical did done end ended
    ends error errors fail failed failing fails failure failures few finding findings finished fix fixed
    for found fully had has have high i in incomplete info intervention is issue issues it low major
    many max maximum medium minor more n na needs no none not of on one only open or out over please
    problem problems reached remain remaining remains review round rounds see several some still stopped
    story task test tests that the there this three to two unknown was were with work wrong
    """.split()
)


@dataclass(frozen=True, slots=True)
class Worded:
    """The text of a lesson, who worded it (``agent``, ``table`` or ``tool``), and the tool that it is about."""

    summary: str
    source: str
    tags: tuple[str, ...] = ()
    has_fix: bool = False


def word_fault(message: str, fix: str = "", own: Sequence[Remedy] = ()) -> Worded | None:
    """Word the lesson of one error, issue or summary; ``None`` where it teaches nothing. ``fix`` is its author's, ``own`` are users' remedies."""
    message = _ESCAPES.sub("", message).replace("\r\n", "\n")
    fix = one_line(fix)
    is_short = message.count("\n") < _MOST_REMARK_LINES and " " in message.strip()
    is_said = is_short and not _TOOL_OUTPUT.search(message)  # by somebody, not by a tool
    sentences = _sentences(message) if is_said else []
    line = "" if is_said else own_line(message)
    if not is_vague(fix):
        return Worded(word_lesson(sentences[0] if sentences else line, fix), "agent", has_fix=True)
    if any(map(_ADVICE.search, sentences)):
        return Worded(_remark(sentences), "agent", has_fix=True)
    if found := find_remedy(message, own):
        row, fix, matched = found
        own_error = _error_line(message)[0]  # where the row is about that, it tells most
        is_about = own_error in map(str.strip, matched) or re.search(row.match, own_error, re.MULTILINE)
        symptom = _stripped(own_error if is_about else matched[0].strip())
        has_room = columns(fix) + 26 <= SUMMARY_COLUMNS  # for less a symptom says nothing
        summary = word_lesson(symptom if has_room and not is_vague(symptom) else "", fix)
        return Worded(summary, "table", row.tags, has_fix=True)
    if sentences:
        return Worded(_remark(sentences), "agent")
    return Worded(line, "tool") if line else None


def is_vague(text: str) -> bool:
    """Tell a text that only says that something failed, or nothing: ``N/A``, ``2 tests failed``."""
    words = re.findall(r"[a-z']+|[^\W\d_a-z]+", text.casefold())
    return all(word in _EMPTY_WORDS for word in words)


def _remark(sentences: Sequence[str]) -> str:
    """Return a remark whole where it fits two lines, or else its first sentence and its last advice, or else its beginning."""
    whole = " ".join(sentences)
    advice = next(filter(_ADVICE.search, reversed(sentences)), None)
    if columns(whole) <= SUMMARY_COLUMNS or advice is None:
        return cut(whole, SUMMARY_COLUMNS)
    complaint = next((one for one in sentences if one is not advice), "")
    return word_lesson(complaint, cut(advice, FIX_COLUMNS))


def _sentences(text: str) -> list[str]:
    """Return the sentences of a remark, without those that only say that something failed."""
    parts = (part.strip(" -*•\t") for part in _SENTENCE.split(text))
    return [one_line(part) for part in parts if part and not is_vague(part)]


def _error_line(output: str) -> tuple[str, list[str]]:
    """Return the error's own line of what a tool printed and those behind it; an empty one where nothing is taught.

    It is the last exception of a traceback, else the first line that speaks of an error.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    found = [at for at, line in enumerate(lines) if _EXCEPTION.match(line) and not _VERDICT.match(line)]
    if any("Traceback" in line for line in lines):
        found.reverse()
    if not found:
        usable = [at for at, line in enumerate(lines) if not _says_nothing(line)]
        is_short = len(usable) == 1 and len(lines) <= _MOST_REMARK_LINES
        spoken = [at for at in usable if _ERROR_WORD.search(lines[at])]
        found = spoken or (usable if is_short else [])
    return (lines[found[0]], lines[found[0] + 1 :]) if found else ("", [])


def own_line(output: str) -> str:
    """Return the error's own line without its place, with the hint beside it."""
    error, others = _error_line(output)
    line = _stripped(error)
    if is_vague(line):
        return ""
    hint = one_line(next(filter(_HINT.match, others[:6]), "")).strip("|=│ ")
    if hint and columns(line) + columns(hint) + 2 <= SUMMARY_COLUMNS:
        return f"{line.rstrip(' .:;')}; {hint}"
    return cut(line, SUMMARY_COLUMNS)


def _says_nothing(line: str) -> bool:
    bare = _stripped(line)
    return bool(_VERDICT.match(line) or _VERDICT.match(bare)) or is_vague(bare)


def _stripped(line: str) -> str:
    """Return a line without its place, its level and the marks before it."""
    text = one_line(line)
    for _ in range(3):
        text = _PLACE.sub("", _LEVEL.sub(lambda level: f"{level[1]}: " if level[1] else "", text))
    # Of an exception the name of its class is enough.
    return re.sub(r"^(?:[\w$]+\.)+(?=\w+(?:Error|Exception|Warning)\b)", "", text).strip(" |│")
