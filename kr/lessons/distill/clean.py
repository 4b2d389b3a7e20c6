"""What of a failure is worth telling (SPEC 4.2).

Out of a text goes what means nothing on another machine or tomorrow, and what nobody else may see; whole failures teach
nothing when they were interrupted, meant to fail, or met a network that was away for a moment.
"""

import re
from collections.abc import Sequence
from functools import cache

from kr.lessons.distill import read_table
from kr.lessons.distill.secrets import without_secrets
from kr.text.characters import strip_invisible

_CLOCK = r"[0-2]?[0-9]:[0-5][0-9]:[0-5][0-9](?:[.,][0-9]{1,9})?"
_NOISE = (
    # Times: ISO, log4j, syslog and HTTP dates.
    (re.compile(rf"[\[(]?\b[0-9]{{4}}[-/][0-9]{{2}}[-/][0-9]{{2}}[T ]{_CLOCK}\s?(?:Z|UTC|[+-][0-9]{{2}}:?[0-9]{{2}})?[\])]?|\[[0-9]{{4}}-[0-9]{{2}}-[0-9]{{2}}\]"), ""),
    (re.compile(rf"\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? )?(?:[0-9]{{1,2}} )?(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* (?:[0-9]{{1,2}},? )?(?:[0-9]{{4}} )?{_CLOCK}(?: ?(?:GMT|UTC))?(?: [0-9]{{4}})?|\b{_CLOCK}\b"), ""),
    (re.compile(r"^==\d+==\s*", re.MULTILINE), ""),
    # Names that a process or a machine gave.
    (re.compile(r"\b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b", re.IGNORECASE), "<id>"),
    (re.compile(r"\s?\bat 0x[0-9a-f]{6,16}\b|\b0x[0-9a-f]{8,16}\b|(?<=\w)@sha256:[0-9a-f]{12,64}\b", re.IGNORECASE), ""),
    (re.compile(r"\[(?:main|[\w-]*(?:thread|nio|exec|worker)[\w-]*)\]\s?|\b(?:pid|tid)[ :=]+[0-9]+\b", re.IGNORECASE), ""),
    # People and accounts.
    (re.compile(r"(?<![\w./@:+-])[\w.+-]{1,64}@(?!example\.)(?:[A-Za-z0-9-]{1,63}\.){1,5}[A-Za-z]{2,12}\b(?![:/@(])"), "<e-mail>"),
    (re.compile(r"(?<=:)[0-9]{12}(?=:)|\b[0-9]{12}(?=\.dkr\.ecr\.)"), "<account>"),
)  # fmt: skip
_SEGMENT = r"[^\s/\\:*?\"'<>|()\[\]{},;，。；：（）`]+"
_UNIX = re.compile(rf"(?<![\w.~/:@}}-])(?:file://)?/{_SEGMENT}(?:/{_SEGMENT})+/?")
_WINDOWS = re.compile(
    rf"(?<![\w])(?:(?:file:///)?[A-Za-z]:[\\/]|\\\\(?=\w))(?:{_SEGMENT}(?: {_SEGMENT}(?=[\\/]))*[\\/])*{_SEGMENT}"
)
_ROUTE_BEFORE = re.compile(
    r"(?:\b(?:GET|POST|PUT|PATCH|DELETE|HEAD|OPTIONS|route|endpoint|path|url)\b[ :`'\"]*)$", re.IGNORECASE
)
_HOMES = frozenset({"home", "Users", "root", "tmp", "var", "usr", "opt"})
_EVERYWHERE = re.compile(
    r"Cargo\.toml|package\.json|pyproject\.toml|go\.mod|pom\.xml|Makefile|CMakeLists\.txt|__init__\.py|index\.\w+"
)
_PACKAGES = ("site-packages", "dist-packages", "node_modules")


@cache
def _folders(kind: str) -> frozenset[str]:
    return frozenset(read_table("words.yaml")[kind].split())


def visible(text: str) -> str:
    """Return the text without terminal escapes, invisible characters and secrets; paths stay whole."""
    return without_secrets(strip_invisible(text))


def clean(text: str) -> str:
    """Return the text also without times, machine names and absolute paths; lines stay lines."""
    return portable(visible(text))


def portable(text: str) -> str:
    """Return a ``visible`` text without times, machine names and absolute paths."""
    for pattern, replacement in _NOISE:
        text = pattern.sub(replacement, text)
    return "\n".join(_relative_paths(line) for line in text.split("\n"))


def _relative_paths(line: str) -> str:
    line = _UNIX.sub(lambda found: _shortened(found, line), line)
    return _WINDOWS.sub(lambda found: relative_path(found[0]), line)


def _shortened(found: re.Match[str], line: str) -> str:
    """Shorten a machine's path; a route of the program stays: ``GET /api/users``."""
    first = found[0].removeprefix("file://").strip("/").partition("/")[0]
    before = _ROUTE_BEFORE.search(line[max(0, found.start() - 24) : found.start()])
    # What is called a path is a route only where no machine has such a folder.
    is_route = before is not None and not (first in _HOMES and before[0].lower().startswith("path"))
    if first not in _folders("machine") or is_route:
        return found[0]
    path = relative_path(found[0])
    # Each folder has one of these: in a sentence its name alone says nothing.
    folder = found[0].rstrip("/").rpartition("/")[0].rpartition("/")[2]
    return f"{folder}/{path}" if _EVERYWHERE.fullmatch(path) else path


def relative_path(path: str) -> str:
    """Make a machine's path relative to the last folder that projects have; slashes become forward ones."""
    plain = path.strip().removeprefix("file://").replace("\\", "/")
    if not plain.startswith(("/", "~/")) and not re.match(r"[A-Za-z]:/", plain):
        return plain.removeprefix("./")
    parts = [part for part in plain.split("/") if part]
    for package in _PACKAGES:
        if package in parts[:-1]:
            return "/".join(parts[len(parts) - parts[::-1].index(package) :])
    start = next((at for at, part in enumerate(parts[1:-1], start=1) if part in _folders("project")), -1)
    if start < 0:
        start = _within_project(parts)
    return "/".join(parts[start:])


def _within_project(parts: Sequence[str]) -> int:
    """Return where in a machine's path a project's own part begins: behind the folder that a home keeps it in."""
    last = len(parts) - 1
    project = next((at for at in range(2, last) if parts[at] not in _folders("machine")), last)
    # What is hidden, or an environment, holds programs and is no project.
    is_project = parts[0] in {"home", "Users"} and not parts[project].startswith((".", "venv"))
    return min(project + 1, last) if is_project else last


ERROR_WORD = re.compile(
    r"(?<![A-Za-z])(?:\w*error|\w*exception|traceback|panic\w*|fatal|abort\w*|segmentation|assert\w*|expected|fail(?:ed|ure|s)?|cannot|can't|couldn't|could not|unable|not (?:found|allowed|supported|permitted|defined|installed|exist\w*|configured|recogni[sz]ed)|denied|invalid|missing|undefined|refused"
    r"|exceeded|mismatch\w*|unexpected|unsupported|conflict\w*|rejected|no (?:such|module|matching|space|route)|already (?:exists|in use|used)|wrong|bad|does(?:n't| not)|is(?:n't| not)|are(?:n't| not)|not set|no ['\w ]{1,30}(?:found|matching|given|configured|available)|must|required|deprecated|removed|timed? ?out|unavailable|killed|unknown|unresolved|illegal|overflow|unbound|duplicate\w*|did not raise|no upstream|unclosed)\b"
    r"|错误|失败|无法|不能|不支持|必须|需要|缺少|未找到|不存在|拒绝",
    re.IGNORECASE,
)
"""Words of which a line that tells an error has one."""

_INTERRUPTED = re.compile(
    r"\bKeyboardInterrupt\b|\bKeyboard interrupt received\b|\b(?:interrupted|aborted|cancell?ed|stopped|declined|rejected) by (?:the )?user\b|^\^C|\bSIGINT\b|\bexit (?:code|status):? 130\b|\bsignal: interrupt\b"
    r"|doesn't want to (?:proceed|take this action)|\brequest interrupted\b|\boperation was cancell?ed\b|\bcontext canceled\b|^Terminated$",
    re.IGNORECASE | re.MULTILINE,
)
_MEANT = re.compile(
    r"\b(?:red phase|red-green|tdd|failing test first|test[- ]first|write (?:a|the) failing test|fails? as (?:expected|intended|planned)|(?:expected|intended|meant|supposed) to fail|xfail(?:ed)?"
    r"|expected (?:red|failure)|not yet implemented|not implemented yet|will (?:be )?implement(?:ed)? next|before (?:the )?implementation)\b|^(?:E\s+)?NotImplementedError$|^[ \t]*(?:\w*error: )?['\"]?not implemented['\"]?$"
    r"|按预期失败|预期失败|尚未实现",
    re.IGNORECASE | re.MULTILINE,
)
# Only of what is said about a call: in an output it may be a test's name.
_MEANT_CALL = re.compile(
    r"\b(?:should|must|expect(?:ed|ing)?(?: \w+){0,3} to|supposed to|ha(?:s|ve) to) (?:now |still |first )?fail\b|\bfail(?:s|ing)? first\b|\bexpect(?:ed|ing)? (?:a |the )?(?:red|failures?)\b|\bred (?:step|state|test)s?\b"
    r"|\b(?:check|confirm|ensure|see|verify|watch)(?: that)? (?:it|they|(?:the |new )*tests?) (?:now |still |really )?fails?\b(?! (?:because|with|on|in|at)\b)",
    re.IGNORECASE,
)
_AWAY = re.compile(
    r"\b(?:ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|ENOTFOUND|ESOCKETTIMEDOUT|ERR_SOCKET_TIMEOUT|ERR_NETWORK_CHANGED|ERR_INTERNET_DISCONNECTED)\b"
    r"|\b(?:temporary failure in name resolution|could not resolve host|name or service not known|connection (?:was )?reset by peer|connection timed out|operation timed out|tls handshake timeout|i/o timeout"
    r"|network is unreachable|read timed out|connect timeout|unexpected disconnect|the remote end hung up|early eof|rpc failed|remote host terminated|remote end closed connection)\b"
    r"|\b(?:HTTP(?:/[\d.]+)?|status(?: code)?:?|error:?|returned:?)\s*(?:429|502|503|504)\b|\b(?:502 bad gateway|503 service unavailable|504 gateway time-?out|429 too many requests)\b",
    re.IGNORECASE,
)
_STAYS = re.compile(
    r"\b(?:max(?:imum)? retries exceeded|retries? (?:exhausted|failed)|giving up|gave up|after \d+ (?:attempts|tries|retries)|all \d+ attempts|(?:retry|attempt|retrying).{0,20}\b(?:[3-9]|\d\d)\b(?! ?ms)|still (?:unreachable|failing|down|no)|no network|_WrappedReferencingError|request to \S+/\S*engine\S* failed|all[_ ]sources[_ ]unavailable|without network|offline|sandbox)\b",
    re.IGNORECASE,
)
_RETRIED = re.compile(r"\b(?:retry|retrying|attempt)\b", re.IGNORECASE)
_HERE = re.compile(
    r"\b(?:localhost|127\.0\.0\.\d+|0\.0\.0\.0|host\.docker\.internal)\b|\[?::1\]?|\bresolve host(?:name)?:? [\"']?[\w-]+(?:\.(?:local|internal|invalid))?(?![\w.-])"
    r"|getaddrinfo \w+ [\w-]+(?![\w.-])"
)
# A package manager's own requests: what they reach is no server of the project's, wherever the mirror stands.
_FETCHED = re.compile(r"^npm (?:ERR!|error) network .*$", re.MULTILINE)
_SAID_AGAIN = re.compile(r"^npm (?:ERR!|error) (?:code|errno) .*$", re.MULTILINE)
_OFTEN = 3
_LOOKED_AT = 20_000
# What whoever made it mends in the next minute, and what is no failure: a look that found nothing, a difference that was asked for.
_SLIP = re.compile(
    r"^(?:E\s+)?(?:SyntaxError: (?!.*\b(?:JSON|assert|export|import)\b)(?:invalid syntax|unterminated|unmatched|'.' was never closed|expected|unexpected|Unexpected|Missing|Invalid or unexpected)|IndentationError|TabError)"
    r"|\berror TS1(?:0(?!64)\d|1[0-8]\d|43[4-9])\d*:|^\S+\.go:\d+:\d+: syntax error|\bsyntax error, unexpected\b|^PHP Parse error|^error: expected .+, found"
    r"|\bwould (?:be )?reformat(?:ted)?\b|\bCode style issues\b|\bimported but unused\b|\bis (?:defined|assigned a value) but never used\b|\b(?:imported|declared) and not used\b|\bunused (?:import|variable)\b"
    r"|\btrailing whitespace\b|\bmissing newline\b|\bline too long\b|\[\*\] \d+ fixable|\bwrong-import-order\b"
    r"|^error: pathspec |^\d+(?:,\d+)?[acd]\d+(?:,\d+)?$|^(?:Only in |diff -)|^Binary files .* differ$|\bKilled\b|\bKilled: 9\b|^\S+: (?:invalid|illegal|unknown|unrecognized) (?:option|argument)s?\b|^(?:\S+: )?[Nn]o such option: ",
    re.MULTILINE,
)
_USAGE = re.compile(r"^[Uu]sage: |^Try ['`‘][\w.-]+ --help['’]", re.MULTILINE)
# What Node says of code that still works.
_OUTDATED = re.compile(
    r"^\(node:\d+\) (?:\[\w+\] )?(?:Deprecation|Experimental)Warning: .*$|^\(Use `node --trace-.*$",
    re.MULTILINE,
)
# A linter's sum that counts warnings alone; a limit on them is a rule.
_WARNED = re.compile(
    r"\b0 errors?(?:,| and) [1-9]\d* warnings?\b|\bAll checks passed!|\bSuccess: no issues found\b|\b[0-9]+ passed\b[^\n]* in [0-9.]+s[ =]*\Z"
)
_MORE_THAN_WARNED = re.compile(
    r"error\b|exception|traceback|fail|fatal|panic|abort|killed|cannot|can't|could not|unable|not found|denied|refused|missing|\bmaximum\b|\btoo many\b|\brequired\b|\b[1-9][0-9]* errors\b",
    re.IGNORECASE,
)
# Shell's ways of looking for what is not there.
_LOOKERS = r"cat|bat|ls|cd|pushd|head|tail|less|more|e?grep|rg|find|wc|stat|tree|du|diff"
_LOOKS = re.compile(rf"\b(?:{_LOOKERS})[:-]")
_READS = re.compile(rf"\b(?:{_LOOKERS}|sed|awk|cp|mv|rm|rmdir|mkdir|ln)[:-]")
_ABSENT = re.compile(r"no such file|not a directory|is a directory|cannot access|file exists", re.IGNORECASE)
# An error that tells a rule, whatever is shown of the usage beside it.
_RULE = re.compile(
    r"^(?![Uu]sage:)\S.{0,600}\b(?:must (?:not )?(?:be|have|contain|start|begin|end|match)|(?:is|are) not allowed|(?:version|release|format|platform|architecture)\b.{0,60}\bnot supported)\b",
    re.MULTILINE,
)
_OUT_OF_MEMORY = re.compile(r"\b(?:OOM|out of memory|memory)\b", re.IGNORECASE)


def teaches_nothing(text: str) -> bool:
    """Tell a failure that nobody can learn from, by what was said of it and by what a tool printed."""
    text = text[:_LOOKED_AT]
    return bool(_INTERRUPTED.search(text) or _MEANT.search(text)) or _is_moment(text)


def is_no_failure(text: str) -> bool:
    """Tell an output that only warns, or that only says that what was looked for is not there."""
    text = text[:_LOOKED_AT].strip()
    is_warned = _WARNED.search(text) is not None and _MORE_THAN_WARNED.search(text) is None
    rest = _OUTDATED.sub("", text)
    is_outdated = rest != text and ERROR_WORD.search(rest) is None
    return is_warned or is_outdated or all(_is_in_vain(line, _LOOKS) for line in text.split("\n"))


def is_meant(said: str) -> bool:
    """Tell by an agent's own words about its call that it is to fail: the red phase of test-first work."""
    return _MEANT.search(said) is not None or _MEANT_CALL.search(said) is not None


def without_vain_looks(text: str) -> str:
    """Return a text without the lines in which a shell's program says that what it looked for is not there."""
    return "\n".join(line for line in text.splitlines() if not _is_in_vain(line, _READS))


def _is_in_vain(line: str, programs: re.Pattern[str]) -> bool:
    found = programs.search(line)
    return found is not None and _ABSENT.search(line, found.end()) is not None


def _is_moment(text: str) -> bool:
    """Tell a network that was away for a moment from one that stays away: that was tried again and again."""
    if not _AWAY.search(text) or _HERE.search(_FETCHED.sub("", text)) or _STAYS.search(text):
        return False
    return len(_AWAY.findall(_SAID_AGAIN.sub("", text))) < _OFTEN and len(_RETRIED.findall(text)) < _OFTEN


def is_slip(text: str) -> bool:
    """Tell what a tool's failure shows to be but a slip of whoever called it."""
    text = text[:_LOOKED_AT]
    is_usage = _USAGE.search(text) is not None and not _RULE.search(text)
    return (is_usage or _SLIP.search(text) is not None) and not _OUT_OF_MEMORY.search(text)
