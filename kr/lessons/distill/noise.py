"""Failures that teach nothing (SPEC 4.2): interrupted, meant to fail, or a network that was away for a moment."""

import re

ERROR_WORD = re.compile(
    r"(?<![A-Za-z])(?:\w*error|\w*exception|traceback|panic\w*|fatal|abort\w*|segmentation|assert\w*|expected|fail(?:ed|ure|s)?|cannot|can't|couldn't|could not|unable|not (?:found|allowed|supported|permitted|defined|installed|exist\w*|configured|recogni[sz]ed)|denied|invalid|missing|undefined|refused"
    r"|exceeded|mismatch\w*|unexpected|unsupported|conflict\w*|rejected|no (?:such|module|matching|space|route)|already (?:exists|in use|used)|wrong|bad|does(?:n't| not)|is(?:n't| not)|are(?:n't| not)|not set|no ['\w ]{1,30}(?:found|matching|given|configured|available)|must|required|deprecated|removed|timed? ?out|unavailable|killed|unknown|unresolved|illegal|overflow|unbound|duplicate\w*|did not raise|no upstream|unclosed)\b"
    r"|错误|失败|无法|不能|不支持|必须|需要|缺少|未找到|不存在|拒绝",
    re.IGNORECASE,
)
"""Words of which a line that tells an error has one."""

_INTERRUPTED = re.compile(
    r"\bKeyboardInterrupt\b|\b(?:interrupted|aborted|cancell?ed|stopped|declined|rejected) by (?:the )?user\b|^\^C|\bSIGINT\b|\bexit (?:code|status):? 130\b|\bsignal: interrupt\b"
    r"|doesn't want to (?:proceed|take this action)|\brequest interrupted\b|\boperation was cancell?ed\b|\bcontext canceled\b|^Terminated$",
    re.IGNORECASE | re.MULTILINE,
)
_MEANT = re.compile(
    r"\b(?:red phase|red-green|tdd|failing test first|test[- ]first|write (?:a|the) failing test|fails? as (?:expected|intended|planned)|(?:expected|intended|meant|supposed) to fail|xfail(?:ed)?"
    r"|expected (?:red|failure)|not yet implemented|not implemented yet|will (?:be )?implement(?:ed)? next|before (?:the )?implementation)\b|^(?:E\s+)?NotImplementedError$"
    r"|按预期失败|预期失败|尚未实现",
    re.IGNORECASE | re.MULTILINE,
)
_AWAY = re.compile(
    r"\b(?:ECONNRESET|ETIMEDOUT|EAI_AGAIN|ENETUNREACH|EHOSTUNREACH|ENOTFOUND|ESOCKETTIMEDOUT|ERR_SOCKET_TIMEOUT|ERR_NETWORK_CHANGED|ERR_INTERNET_DISCONNECTED)\b"
    r"|\b(?:temporary failure in name resolution|could not resolve host|name or service not known|connection (?:was )?reset by peer|connection timed out|operation timed out|tls handshake timeout|i/o timeout"
    r"|network is unreachable|read timed out|connect timeout|unexpected disconnect|the remote end hung up|early eof|rpc failed|remote host terminated|remote end closed connection)\b"
    r"|\b(?:HTTP(?:/[\d.]+)?|status(?: code)?:?|error:?|returned:?)\s*(?:429|502|503|504)\b|\b(?:502 bad gateway|503 service unavailable|504 gateway time-?out|429 too many requests)\b",
    re.IGNORECASE,
)
_STAYS = re.compile(
    r"\b(?:max(?:imum)? retries exceeded|retries? (?:exhausted|failed)|giving up|gave up|after \d+ (?:attempts|tries|retries)|all \d+ attempts|(?:retry|attempt|retrying).{0,20}\b(?:[3-9]|\d\d)\b(?! ?ms)|still (?:unreachable|failing|down|no)|no network|all[_ ]sources[_ ]unavailable|without network|offline|sandbox)\b",
    re.IGNORECASE,
)
_RETRIED = re.compile(r"\b(?:retry|retrying|attempt)\b", re.IGNORECASE)
_HERE = re.compile(r"\b(?:localhost|127\.0\.0\.\d+|0\.0\.0\.0|host\.docker\.internal)\b|\[?::1\]?")
_OFTEN = 3
_LOOKED_AT = 20_000
# What whoever made it mends in the next minute, and what is no failure: a look that found nothing, a difference that was asked for.
_SLIP = re.compile(
    r"^(?:E\s+)?(?:SyntaxError: (?!.* in JSON\b)(?:invalid syntax|unterminated|unmatched|'.' was never closed|expected|unexpected|Unexpected|Missing|Invalid or unexpected)|IndentationError|TabError)"
    r"|\berror TS1\d{3}:|^\S+\.go:\d+:\d+: syntax error|\bsyntax error, unexpected\b|^PHP Parse error|^error: expected .+, found"
    r"|\bwould (?:be )?reformat(?:ted)?\b|\bCode style issues\b|\bimported but unused\b|\bis (?:defined|assigned a value) but never used\b|\b(?:imported|declared) and not used\b|\bunused (?:import|variable)\b"
    r"|\btrailing whitespace\b|\bmissing newline\b|\bline too long\b|\[\*\] \d+ fixable|\bwrong-import-order\b"
    r"|^error: pathspec |^\d+(?:,\d+)?[acd]\d+(?:,\d+)?$|^(?:Only in |diff -)|^Binary files .* differ$|\bKilled\b|\bKilled: 9\b|^\S+: (?:invalid|illegal|unknown|unrecognized) (?:option|argument)s?\b|^[Uu]sage: ",
    re.MULTILINE,
)
_OUT_OF_MEMORY = re.compile(r"\b(?:OOM|out of memory|memory)\b", re.IGNORECASE)


def teaches_nothing(text: str) -> bool:
    """Tell a failure that nobody can learn from, by what was said of it and by what a tool printed."""
    text = text[:_LOOKED_AT]
    return bool(_INTERRUPTED.search(text) or _MEANT.search(text)) or _is_moment(text)


def _is_moment(text: str) -> bool:
    """Tell a network that was away for a moment from one that stays away: that was tried again and again."""
    away = _AWAY.findall(text)
    if not away or _HERE.search(text) or _STAYS.search(text):
        return False
    return len(away) < _OFTEN and len(_RETRIED.findall(text)) < _OFTEN


def is_slip(text: str) -> bool:
    """Tell what a tool's failure shows to be but a slip of whoever called it."""
    text = text[:_LOOKED_AT]
    return _SLIP.search(text) is not None and not _OUT_OF_MEMORY.search(text)
