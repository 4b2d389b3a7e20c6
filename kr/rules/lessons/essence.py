"""Finds in a trace, a log, an error body or a remark the words that tell what went wrong, and a remedy if it names one."""

import re
from collections.abc import Sequence

from kr.rules.characters import strip_invisible
from kr.rules.lessons.body import Essence, json_body, told_by
from kr.rules.lessons.empty import has_name
from kr.rules.lessons.scrub import scrub

_HINT = re.compile(
    r"(?im)(?:^[\s=>*#-]*|(?<=[.。;；!]\s)|(?<=[。；]))"
    r"(?:hint|help|fix|suggest(?:ion|ed fix)|recommend(?:ation|ed)|resolution|action|tip|solution|how to fix|remedy"
    r"|建议|修复建议|修复方案|修复|解决方案|解决办法|改进|处理方式|修改建议)\**\s*[:：]\**\s*(\S[^\n]*)"
)
_HINT_LINES = re.compile(r"(?m)(?<=\S)\n^hint: (?!\W)(\S[^\n]*)(?<!\n)")
_ACTION = re.compile(r"(?m)^Action:\s*\n\s*\n(\S[^\n]*)")
_EXCEPTION = re.compile(
    r"^(?:Exception in thread \"[^\"]*\" |Uncaught (?:\(in promise\) )?|Unhandled(?: promise)? rejection:? )?"
    r"((?:[A-Za-z_$][\w$]*\.)*[A-Z][\w$]*(?:Error|Exception|Warning|Failure|Exit|Interrupt|Timeout|Fault|Violation|DoesNotExist|NotFound|Panic))"
    r"(?: \[[\w.]+\])?(?::\s*(.*))?$"
)
_ITEM = re.compile(r"^(?:[-*•]|\(?[0-9]{1,2}[.)、])\s+")
_CAUSE = re.compile(r"^\s*(?:Caused by|\[cause\]):\s*(.+)$")
_FRAME = re.compile(
    r"^\s*(?:at\s+\S.*|at async .*|File \"[^\"]*\", line \d+.*|\.\.\. \d+ (?:more|common frames omitted)|~*\^[~^]*|\d+\s*[|│].*|>\s*\d+\s*[|│].*|\S+:\d+:\d+:?$"
    r"|\|.*|from \S+:\d+:in .*|goroutine \d+ .*|\S+\.go:\d+ \+0x.*|stack backtrace:|note: run with .*|\d+: .*::.*|Require stack:|- /.*|Traceback .*)$"
)
_BOILERPLATE = re.compile(
    r"(?i)^\s*(?:npm (?:ERR!|error)\s*$|npm (?:ERR!|error) (?:a complete log|code ELIFECYCLE|errno|syscall|path|fix the upstream|or --force|this command|while resolving|found:|node_modules"
    r"|to accept|with --force|not ok|failed at the|could not resolve dependency:?$|\s*$)"
    r"|(?:the above|during handling of the above) exception.*|process exited with.*|exit code:? \d+|command failed.*|.*exited with (?:code|status) \d+\.?$"
    r"|(?:test suites?|tests|snapshots|time|ran all)\s*:.*|=+.*=+$|-{3,}.*|_{3,}.*|FAIL\s+\S+$|\d+ (?:passed|failed).*|collected \d+ items|see .{0,40}logs?.*|\+ .*|\$ .*"
    r"|Call log:?|\s*- waiting for .*|Error occurred.*|Build failed.*|BUILD FAILURE|\[INFO\].*|Node\.js v.*|FAILED$|running \d+ tests?)$"
)
_ERRORISH = re.compile(
    r"(?i)error|exception|fail|fatal|panic|denied|not found|cannot|can't|unable|invalid|missing|(?:does not|doesn't) exist|undefined|unbound|refused|timed? ?out|timeout"
    r"|unexpected|no such|conflict|unresolved|deprecated|错误|失败|异常|超时|缺少|未|不存在|无法"
)
_STRONG = (
    re.compile(r"error TS\d+: .*"),
    re.compile(r"\S+ is not in (?:this|the npm) registry"),
    re.compile(r"^\s*(?:npm (?:ERR!|error)\s+)?peer \S+ from \S+.*"),
    re.compile(r"error\[E\d+\]: .*"),
    re.compile(r"thread '[^']*' (?:\(\d+\) )?panicked at .*"),
    re.compile(r"(?:^|\s)(?:panic|fatal): .*"),
    re.compile(r"^\S*(?:sh|bash|zsh)?: (?:line )?\d+: .*"),
    re.compile(r"^.*\b(?:command not found|unbound variable|Permission denied|No such file or directory)\b.*$"),
    re.compile(r"^\s*(?:\S+ )?ERROR\b:? .*"),
    re.compile(r"^\s*\S+_test\.go:\d+: .*"),
    re.compile(r"^\s*\d+:\d+\s+error\s+.*"),
)  # fmt: skip


_LINES = 60
_LONG_PART = 16_000
_LONG_LINE = 1000
"""Characters of a line that are looked at: what an expression over it costs must stay bounded."""


def essence(text: str) -> Essence:
    """Read a text of any of the forms that agents send; what comes out is scrubbed."""
    text = strip_invisible(_bounded(text))
    # Before anything is taken out of it, or it is no JSON any more.
    body = json_body(text)
    if body is not None:
        before, found = body
        told = told_by(found)
        lead = before.strip(" :\n\t-")
        complaint = ": ".join(part for part in (lead if len(lead) < 80 else "", told.complaint) if part)
        return Essence(scrub(complaint[:_LONG_LINE]), scrub(told.remedy[:_LONG_LINE]))
    if "\n" not in text and text.count(r"\n") > 1:
        text = text.replace(r"\n", "\n").replace(r"\t", "\t")
    text = scrub("\n".join(line[:_LONG_LINE] for line in text.split("\n")))
    text = _HINT_LINES.sub(r" \1", text)
    hint = _ACTION.search(text) or _HINT.search(text)
    rest = text
    if hint is not None:
        rest = text[: hint.start()] or text[hint.end() :]
    return Essence(_complaint(rest), hint[1].strip() if hint else "")


def _bounded(text: str) -> str:
    """Keep both ends of a long text: traces end with what happened, logs begin with it."""
    if len(text) <= 2 * _LONG_PART:
        return text
    return f"{text[:_LONG_PART]}\n{text[-_LONG_PART:]}"


def _complaint(text: str) -> str:
    lines = text.split("\n")
    if len(lines) == 1:
        return _of_pytest(lines) or _without_package(text.strip())
    for find in (
        _of_pytest,
        _of_gradle,
        _of_expectation,
        _of_wait,
        _of_compiler,
        _of_assertion,
        _of_cause,
        _of_python,
        _of_exception,
        _strong,
    ):
        found = find(lines)
        if found:
            return _without_package(found.strip())
    told = [
        line for line in lines if line.strip() and not _FRAME.match(line) and not _BOILERPLATE.match(line)
    ]
    return _most_telling([_ITEM.sub("", line.strip()) for line in told[:_LINES]])


def _most_telling(lines: Sequence[str]) -> str:
    """Choose the line that names something and says what is wrong with it; of equal ones the first."""
    if not lines:
        return ""
    best = max(range(len(lines)), key=lambda at: (_rank(lines[at]), -at))
    # A sentence may be broken into lines; a heading such as "Error:" tells nothing without its next lines.
    begin = best
    while begin and _is_continued(lines[begin - 1], lines[begin]):
        begin -= 1
    told, end = lines[begin], begin + 1
    while (
        end < len(lines)
        and end < begin + 6
        and (
            end <= best
            or _is_continued(lines[end - 1], lines[end])
            or (len(told) < 40 and not has_name(told))
        )
    ):
        told, end = f"{told} {lines[end]}", end + 1
    return told


def _rank(line: str) -> int:
    is_wrong = _ERRORISH.search(line) is not None
    return (
        2 * is_wrong
        + (has_name(line) or re.search(r"['\"`][\w./@:-]+['\"`]", line) is not None)
        - 2 * (re.search(r"(?::| (?:in|at|by|for|from|to|with|of))$", line) is not None)
    )


def _is_continued(line: str, following: str) -> bool:
    return (
        bool(re.search(r"[a-z,]$", line))
        and bool(re.match(r"[a-z(]|[A-Z]\w+ \d", following))
        and " " in line
        and len(line) > 30
    )


def _of_pytest(lines: Sequence[str]) -> str:
    marked = [line[1:].strip() for line in lines if re.match(r"E\s{2,}", line)]
    failed = next(
        filter(None, (re.match(r"(?:FAILED|ERROR) (\S+)(?: - (.+))?", line.strip()) for line in lines)), None
    )
    told = marked[0] if marked else (failed[2] or "") if failed else ""
    if len(marked) > 1 and len(told) < 60 and not marked[1].startswith("+") and "assert " not in told:
        told = f"{told} {marked[1]}"
    compared = re.fullmatch(r"(?:AssertionError: )?assert (.+?) == (.+)", told)
    if failed and compared:
        return f"{failed[1].rpartition('::')[2]}: expected {compared[2]}, received {compared[1]}"
    return told


def _of_gradle(lines: Sequence[str]) -> str:
    """Gradle names the cause last, under a heading, marked with ``>``; what failed in a test stands below."""
    start = next((at for at, line in enumerate(lines) if line.strip() == "* What went wrong:"), None)
    if start is None:
        return ""
    told: list[str] = []
    for line in lines[start + 1 :]:
        if not line.strip():
            break
        told.append(line.strip().lstrip("> "))
    cause = told[-1] if told else ""
    return "" if "failing tests" in cause else cause


def _of_assertion(lines: Sequence[str]) -> str:
    """An assertion that says but two values is named by the test's own frame."""
    told = next(
        (line.strip() for line in lines if re.search(r"Assertion\w*Error|ComparisonFailure", line)), ""
    )
    frames = (re.match(r"\s*at (?:[a-z_]\w*\.)*(\w*(?:Tests?|IT|Spec)\w*\.\w+)\(", line) for line in lines)
    frame = next(filter(None, frames), None)
    compared = re.search(r"Error: (.*?)(?: ==> )?expected: ?<(.+?)> but was: ?<(.+?)>", told)
    if frame is None or compared is None:
        return ""
    about = f"{frame[1]} ({compared[1]})" if compared[1] else frame[1]
    return f"{about}: expected {compared[2]}, received {compared[3]}"


def _of_expectation(lines: Sequence[str]) -> str:
    """Jest, Vitest, JUnit, Playwright: what was expected and what came, under the test's name or locator."""
    facts: dict[str, str] = {}
    for line in lines:
        found = re.match(
            r"\s*(●|Locator|Expected(?: string| substring| pattern| value)?|Received(?: string| value)?|Actual)\s*:?\s+(\S.*)",
            line,
        )
        if found:
            facts.setdefault(found[1].split(" ")[0].casefold(), found[2].strip().rstrip(":"))
    received = facts.get("received") or facts.get("actual")
    if "expected" not in facts or received is None:
        return ""
    about = facts.get("locator") or facts.get("●", "").split("›")[-1].strip()
    return f"{about + ': ' if about else ''}expected {facts['expected']}, received {received}"


def _of_wait(lines: Sequence[str]) -> str:
    """Playwright's own timeouts: what was waited for stands in the call log."""
    if not any("Timeout" in line or "Timed out" in line for line in lines[:3]):
        return ""
    waited = next(filter(None, (re.match(r"\s*- (waiting for .+)", line) for line in lines)), None)
    return f"{lines[0].strip().rstrip('.')} {waited[1]}" if waited else ""


def _of_compiler(lines: Sequence[str]) -> str:
    """Maven spreads one complaint of javac over several lines."""
    for at, line in enumerate(lines):
        if "cannot find symbol" in line:
            more = (re.sub(r"^\[ERROR\]", "", after).strip() for after in lines[at + 1 : at + 3])
            return " ".join(("cannot find symbol", *more))
    return ""


def _of_cause(lines: Sequence[str]) -> str:
    causes = [found[1] for found in map(_CAUSE.match, lines) if found]
    return causes[-1] if causes else ""


def _of_python(lines: Sequence[str]) -> str:
    starts = [
        at for at, line in enumerate(lines) if line.strip().startswith("Traceback (most recent call last)")
    ]
    if not starts:
        return ""
    after = lines[starts[-1] + 1 :]
    for at, line in enumerate(after):
        if line.strip() and not line.startswith((" ", "\t")) and not _FRAME.match(line):
            return " ".join(part.strip() for part in after[at : at + 4] if part.strip())
    return ""


def _of_exception(lines: Sequence[str]) -> str:
    for at, line in enumerate(lines):
        found = _EXCEPTION.match(line.strip())
        if found:
            more = lines[at + 1].strip() if at + 1 < len(lines) else ""
            is_continued = not found[2] and more and not _FRAME.match(lines[at + 1])
            return f"{line.strip().removesuffix(':')}: {more}" if is_continued else line.strip()
    return ""


def _strong(lines: Sequence[str]) -> str:
    for pattern in _STRONG:
        for at, line in enumerate(lines):
            found = pattern.search(line)
            if found and not _BOILERPLATE.match(line):
                told = found[0].strip()
                # Rust and Go put the message of a panic on the next line.
                is_headed = told.endswith(":") and at + 1 < len(lines)
                return f"{told} {lines[at + 1].strip()}" if is_headed else told
    return ""


def _without_package(text: str) -> str:
    """Name an exception by its class alone, and by the innermost where they are nested in one line."""
    wrapped = re.fullmatch(r"(?:Error: )?Uncaught \[(.+)\]", text)
    text = wrapped[1] if wrapped else text
    text = re.sub(r"^Exception in thread \"[^\"]*\" |^Uncaught (?:\(in promise\) )?", "", text)
    nested = text.rpartition("; nested exception is ")[2]
    text = nested or text
    return re.sub(r"^(?:[a-z_][\w]*\.)+(?=[A-Z][\w$]*:\s|[A-Z][\w$]*(?:Error|Exception)\b)", "", text)
