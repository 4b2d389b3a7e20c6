"""Reads what compilers, linters, test runners and runtimes print: which of its lines tell, by the form of each (SPEC 4.2)."""

import re
from collections.abc import Sequence

_EXCEPTION = re.compile(
    r"^(?:Exception in thread \"[^\"]*\" |Unhandled exception\.? |Uncaught (?:\(in promise\) )?|Unhandled(?: promise)? rejection:? )?"
    r"((?:[A-Za-z_$][\w$]*\.)*[A-Z][\w$]*(?:Error|Exception|Warning|Failure|Exit|Interrupt|Timeout|Fault|Violation|DoesNotExist|NotFound|Panic))"
    r"(?: \[[\w.]+\])?(?::\s*(.*))?$"
)
NPM = re.compile(r"^npm (?:ERR!|error)\s+")
"""What stands before each line that npm prints."""
_CAUSE = re.compile(r"^\s*(?:Caused by|\[cause\]):\s*(.+)$")
FRAME = re.compile(
    r"^\s*(?:at\s+\S.*|at async .*|File \"[^\"]*\", line \d+.*|\.\.\. \d+ (?:more|common frames omitted)|~*\^[~^]*|\d+\s*[|│].*|>\s*\d+\s*[|│].*|\S+:\d+:\d+:?$"
    r"|\|.*|(?:from|#)?\s*\S+:\d+:in .*|goroutine \d+ .*|\S+\.go:\d+ \+0x.*|stack backtrace:|note: run with .*|\d+: .*::.*|Require stack:|- /.*|Traceback .*)$"
)
BOILERPLATE = re.compile(
    r"(?i)^\s*(?:npm (?:ERR!|error)\s*$|npm (?:ERR!|error) (?:code \w+$|notsup Actual|engine Unsupported engine|a complete log|code ELIFECYCLE|errno|syscall|path|fix the upstream|or --force|this command|while resolving|found:|node_modules"
    r"|to accept|with --force|not ok|failed at the|could not resolve dependency:?$|\s*$)"
    r"|(?:the above|during handling of the above) exception.*|process exited with.*|exit code:? \d+|command failed.*|.*exited with (?:code|status) \d+\.?$"
    r"|(?:test suites?|tests|snapshots|time|ran all)\s*:.*|=+.*=+$|-{3,}.*|_{3,}.*|FAIL\s+\S+$|\d+ (?:passed|failed).*|collected \d+ items|see .{0,40}logs?.*|\+ .*|\$ .*"
    r"|FAIL\s+\S+\s+(?:[\d.]+s|\[[\w ]+\]|\(cached\))|(?:DETAIL|CONTEXT|STATEMENT|QUERY|LINE \d+):.*|Back-off .*|={2,}|\*{2,}.*|FAILURES!|Failures:|failures:|Tests: .*|.*\(no error message\)"
    r"|- (?:hook id|exit code|duration|files were modified).*|[\w -]+\.{5,}(?:Failed|Passed|Skipped)|\[?\*?\]? ?\d+ (?:fixable|potentially fixable|problems?|errors?|warnings?|examples?)\b.*|Found \d+ errors?.*|Your code has been rated.*"
    r"|make(?:\[\d+\])?: \*\*\* \[.*|Aborted.*|\S+ \|\s*$|Call log:?|\s*- waiting for .*|Error occurred.*|Build failed.*|BUILD FAILURE|\[INFO\].*|Node\.js v.*|FAILED$|running \d+ tests?)$"
)
_STRONG = (
    re.compile(r"^\S+ \S+ requires .+, but you have .+ incompatible\.?$"),
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


def told_by_form(lines: Sequence[str]) -> str:
    """Return what an output of a known form tells; empty where its form is none that is known."""
    readers = _READERS if len(lines) > 1 else (_of_pytest,)
    return next(filter(None, (read(lines) for read in readers)), "")


_PYTEST_LINE = re.compile(
    r"(?:(?:FAILED|ERROR) )?(\S+\.py(?:::\S+)?)(?: - (.+))?$|(?:FAILED|ERROR) (\S+)(?: - (.+))?$"
)
_DETAIL = re.compile(
    r"[-+?]|(?:Omitting|Differing|Full diff|Use -v|At index|Left contains|Right contains|where )"
)


def _of_pytest(lines: Sequence[str]) -> str:
    marked = [line[1:].strip() for line in lines if re.match(r"E\s{2,}", line)]
    found = next(filter(None, (_PYTEST_LINE.match(line.strip()) for line in lines)), None)
    test, failure = (found[1] or found[3], found[2] or found[4] or "") if found else ("", "")
    told = without_package(marked[0]) if marked else failure
    for more in marked[1:3]:
        if len(told) > 70 or _DETAIL.match(more) or "assert " in told:
            break
        told = f"{told} {more}"
    compared = re.fullmatch(r"(?:AssertionError: )?assert (.+?) == (.+)", told)
    if test and compared:
        return f"{test.rpartition('::')[2]}: expected {compared[2]}, received {compared[1]}"
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
    if "(no error message)" in cause:
        cause = f"{told[0].rstrip('.')}: {without_package(cause.replace('(no error message)', '').strip())}"
    return "" if "failing tests" in cause else cause


def _of_assertion(lines: Sequence[str]) -> str:
    """An assertion that says but two values is named by the test's own frame."""
    told = next(
        (line.strip() for line in lines if re.search(r"Assertion\w*Error|ComparisonFailure", line)), ""
    )
    frames = (re.match(r"\s*at (?:[a-z_]\w*\.)*(\w*(?:Tests?|IT|Spec)\w*\.\w+)\(", line) for line in lines)
    frame = next(filter(None, frames), None)
    compared = re.search(
        r"(?:Error|Failure): (.*?)(?: ==> )?expected: ?<\[?(.+?)\]?> but was: ?<\[?(.+?)\]?>", told
    )
    if frame is None or compared is None:
        return ""
    told = compared[1].strip(" :")
    about = f"{frame[1]} ({told})" if told else frame[1]
    return f"{about}: expected {compared[2]}, received {compared[3]}"


_FACT = re.compile(
    r"\s*(Locator|Expected(?: [a-z ]{1,30})?|Received(?: [a-z ]{1,30})?|Actual|got|left|right)\s*:\s+(\S.*)",
    re.IGNORECASE,
)
_COMPARED = (
    re.compile(r"Assertion\w*(?: \[\w+\])?: expected (?P<got>.+?) to (?:be|equal|deeply equal|deep equal|strictly equal|eql|eq) (?P<due>.+?)(?: // .*)?$"),
    re.compile(r"^Expected (?:[a-z]+ ){0,4}\[?(?P<due>[^\s\]]+)\]?,? but (?:received|got|was) \[?(?P<got>[^\s\]]+?)\]?\.?$"),
    re.compile(r"^AssertionError: (?P<got>[^:]+?) != (?P<due>[^:]+?)(?: : .*)?$"),
    re.compile(r"^Failed asserting that (?P<got>.+?) (?:matches expected|is identical to|equals) (?P<due>.+?)\.?$"),
)  # fmt: skip


def _of_expectation(lines: Sequence[str]) -> str:
    """What a test expected and what came, under the test's name or its locator."""
    facts: dict[str, str] = {}
    for line in lines:
        found = _FACT.match(line)
        if found:
            facts.setdefault(found[1].split(" ")[0].casefold(), found[2].strip().rstrip(":"))
        compared = next(filter(None, (form.search(line.strip()) for form in _COMPARED)), None)
        if compared:
            facts.setdefault("expected", compared["due"])
            facts.setdefault("received", compared["got"])
    is_rust = any("assertion `left == right` failed" in line for line in lines)
    due = facts.get("right") if is_rust else facts.get("expected")
    received = (
        facts.get("left") if is_rust else facts.get("received") or facts.get("actual") or facts.get("got")
    )
    if due is None or received is None:
        return ""
    about = facts.get("locator") or _failed_test(lines)
    return f"{about + ': ' if about else ''}expected {due}, received {received}"


_TESTS = (
    re.compile(r"^(?:FAILED|ERROR) \S*::(\w+)"),
    re.compile(r"^\s*●\s+(?:.* › )?(.+)$"),
    re.compile(r"^\s*(?:FAIL|×|✗|✘)\s+\S+ > (?:.* > )?(.+)$"),
    re.compile(r"^\s*[×✗✘⨯✕]\s+(?!\S+\.\w+$)(.+)$"),
    re.compile(r"^FAIL: (\w+) \("),
    re.compile(r"^---- (\S+) stdout ----"),
    re.compile(r"^thread '([\w:]+)' .*panicked"),
    re.compile(r"^\s*Test:\s+(\S+)"),
    re.compile(r"^\s*--- FAIL: (\S+)"),
)  # fmt: skip
_NUMBERED = re.compile(r"^\s*\d+\) (.+)$")


def _failed_test(lines: Sequence[str]) -> str:
    for at, line in enumerate(lines):
        found = next(filter(None, (form.match(line) for form in _TESTS)), None)
        if found:
            return found[1].strip()
        numbered = _NUMBERED.match(line)
        # Mocha puts the test's own name on the line below its suite's.
        below = lines[at + 1].strip() if at + 1 < len(lines) else ""
        if numbered:
            return below.rstrip(":") if below.endswith(":") else numbered[1].strip().rsplit("\\", 1)[-1]
    return ""


def _of_race(lines: Sequence[str]) -> str:
    """Go's race detector names the two functions below "Write at" and "Previous read"."""
    start = next((at for at, line in enumerate(lines) if "DATA RACE" in line), None)
    if start is None:
        return ""
    told = [
        below.strip().removesuffix("()")
        for line, below in zip(lines[start:], lines[start + 1 :], strict=False)
        if re.match(r"\s*(?:Previous )?(?:[Ww]rite|[Rr]ead) (?:at|by)\b", line)
    ]
    return f"DATA RACE: {' and '.join(dict.fromkeys(told))}" if told else "DATA RACE"


def _of_spring(lines: Sequence[str]) -> str:
    """Spring Boot's failure analysis: what is below "Description:"."""
    start = next((at for at, line in enumerate(lines) if line.strip() == "Description:"), None)
    return next((line for line in lines[start + 1 :] if line.strip()), "") if start is not None else ""


def _of_hook(lines: Sequence[str]) -> str:
    """A pre-commit hook that changed files says no more than that."""
    name = next(filter(None, (re.match(r"([\w -]+?)\.{5,}Failed$", line.strip()) for line in lines)), None)
    is_changed = any("files were modified by this hook" in line for line in lines)
    return f"hook {name[1]}: files were modified by this hook" if name and is_changed else ""


def _of_kubernetes(lines: Sequence[str]) -> str:
    """Why a container ended says more than that it was started again."""
    reason = next(
        filter(None, (re.match(r"\s*Reason:\s+(OOMKilled|\w+Error)$", line.rstrip()) for line in lines)), None
    )
    container = next(filter(None, (re.search(r"\bcontainer (\S+)", line) for line in lines)), None)
    return f"{reason[1]}: {container[0] if container else 'container'}" if reason else ""


def _of_postgres(lines: Sequence[str]) -> str:
    """A database says the complaint first, and in what relation it happened below."""
    start = next((at for at, line in enumerate(lines) if re.match(r"\s*(?:DETAIL|CONTEXT):", line)), 0)
    if not start:
        return ""
    told = without_package(lines[start - 1].strip())
    relation = re.search(r"\brelation (\"\w+\")", "\n".join(lines[start : start + 4]))
    return f"{told} in relation {relation[1]}" if relation and relation[1] not in told else told


_LINT = re.compile(
    r"^\s*(?:\[?(?:ERROR|WARN(?:ING)?)\]? )?(?:\./)?[\w@./\\+-]+\.\w{1,6}(?::\d+(?::\d+)?|[:(]\[?\d+(?:,\d+)?[\])]):?(?: -)?\s+(?P<told>\S+ \S.*)$"
)
_SHELLCHECK = re.compile(r"^\s*\^[-^]*\s+(?P<told>SC\d+(?: \(\w+\))?: .+)$")
_CODED = re.compile(r"^(?P<code>[A-Z]{1,4}\d{2,5})(?: \(\w+\))?:? (?:\[\*\] )?(?P<told>.+)$")
_RULED = re.compile(r"\.?\s+\[(?P<rule>[\w./-]+)\]$")


def _of_lint(lines: Sequence[str]) -> str:
    """A compiler's or linter's own line, ``file:line:column: message``; what is merely unused says least."""
    told = [found["told"] for found in map(_lint, lines) if found]
    return ruled(min(told, key=lambda text: "unused" in text or "not used" in text)) if told else ""


def _lint(line: str) -> re.Match[str] | None:
    found = _SHELLCHECK.match(line) or _LINT.match(line)
    return None if found is None or re.match(r"(?:in|at|\w+Error|\+0x)\b", found["told"]) else found


def ruled(told: str) -> str:
    """Put the code or rule of a linter behind its message: ``message (F401)``."""
    told = re.sub(r"^(?:fatal )?(?:error|warning|note)(?:\[\w+\])?:\s+(?=\S)", "", told.strip())
    told = _RULED.sub(r" (\g<rule>)", told)
    coded = _CODED.match(told)
    return f"{coded['told'].rstrip('.')} ({coded['code']})" if coded else told


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
        if line.strip() and not line.startswith((" ", "\t")) and not FRAME.match(line):
            told = [part for part in after[at : at + 4] if not BOILERPLATE.match(part)]
            return " ".join(part.strip() for part in told if part.strip())
    return ""


def _of_exception(lines: Sequence[str]) -> str:
    for at, line in enumerate(lines):
        found = _EXCEPTION.match(line.strip())
        if found:
            return _with_following(lines, at) if _is_headline(line) or not found[2] else line.strip()
    return ""


def _is_headline(line: str) -> bool:
    return re.search(r"(?::|\binvocation)$", line.strip()) is not None


def _with_following(lines: Sequence[str], at: int) -> str:
    """A headline tells nothing without the line below it."""
    told = lines[at].strip()
    for line in lines[at + 1 : at + 8]:
        if not line.strip():
            continue
        if FRAME.match(line):
            break
        is_broken = not _is_headline(told) and told != lines[at].strip()
        if is_broken and not re.match(r"\s*[a-z]", line):
            break
        told = f"{told} {line.strip()}" if is_broken else f"{told.removesuffix(':')}: {line.strip()}"
        if re.search(r"[.!?]$", line.rstrip()):
            break
    return told


def _strong(lines: Sequence[str]) -> str:
    for pattern in _STRONG:
        for at, line in enumerate(lines):
            found = pattern.search(line)
            if found and not BOILERPLATE.match(line):
                told = found[0].strip()
                # Rust and Go put the message of a panic on the next line.
                is_headed = told.endswith(":") and at + 1 < len(lines)
                return f"{told} {lines[at + 1].strip()}" if is_headed else told
    return ""


def without_package(text: str) -> str:
    """Name an exception by its class alone, and by the innermost where they are nested in one line."""
    wrapped = re.fullmatch(r"(?:Error: )?Uncaught \[(.+)\]", text)
    text = wrapped[1] if wrapped else text
    text = re.sub(
        r"^Exception in thread \"[^\"]*\" |^Uncaught (?:\(in promise\) )?|^Unhandled exception\.? ", "", text
    )
    nested = text.rpartition("; nested exception is ")[2]
    text = nested or text
    return re.sub(
        r"^(?:[a-z_][\w]*\.|[A-Z]\w+\.(?=[A-Z]\w*(?:Error|Exception)\b))+(?=[A-Z][\w$]*:\s|[A-Z][\w$]*(?:Error|Exception)\b)",
        "",
        text,
    )


_READERS = (
    _of_pytest,
    _of_gradle,
    _of_spring,
    _of_race,
    _of_wait,
    _of_expectation,
    _of_compiler,
    _of_assertion,
    _of_cause,
    _of_python,
    _of_exception,
    _of_hook,
    _of_kubernetes,
    _of_postgres,
    _strong,
    _of_lint,
)
