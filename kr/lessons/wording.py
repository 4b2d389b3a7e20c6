"""A lesson for a failure whose author worded none. Pure, and modest: nothing is rephrased.

First that holds: the issue's own remedy behind its message; a remark that says what to do, in its own words; a row of the
table of remedies; a remark; the error's own line with the hint beside it.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kr.lessons.events import Finding
from kr.lessons.line import FIX_COLUMNS, SUMMARY_COLUMNS, cut, word_lesson
from kr.lessons.remedies import Remedy, find_remedy
from kr.text import columns, one_line

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


def word_finding(finding: Finding, own: Sequence[Remedy] = ()) -> Worded | None:
    """Word the lesson of one error, issue or summary; ``None`` where it teaches nothing. ``own`` are users' remedies."""
    message = _ESCAPES.sub("", finding.message).replace("\r\n", "\n")
    fix = one_line(finding.fix)
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
        symptom = _stripped(matched)
        summary = word_lesson("" if is_vague(symptom) else symptom, fix)
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


def own_line(output: str) -> str:
    """Return the error's own line of what a tool printed, with the hint beside it; nothing where nothing is taught.

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
    line = _stripped(lines[found[0]]) if found else ""
    if is_vague(line):
        return ""
    hint = one_line(next(filter(_HINT.match, lines[found[0] + 1 : found[0] + 7]), "")).strip("|=│ ")
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
