"""Finds in a trace, a log, an error body or a remark the words that tell what went wrong, and a remedy if it names one."""

import re
from collections.abc import Sequence

from kr.lessons.distill.body import Essence, json_body, told_by
from kr.lessons.distill.empty import first_name, has_name
from kr.lessons.distill.outputs import BOILERPLATE, FRAME, NPM, told_by_form, without_package
from kr.lessons.distill.printed import advised, joined, labelled
from kr.lessons.distill.scrub import scrub
from kr.text.characters import strip_invisible

_ITEM = re.compile(r"^(?:[-*•]|\(?[0-9]{1,2}[.)、])\s+")
_ERRORISH = re.compile(
    r"(?i)error|exception|fail|fatal|panic|denied|not found|cannot|can't|unable|invalid|missing|(?:does not|doesn't) exist|undefined|unbound|refused|timed? ?out|timeout"
    r"|unexpected|not allowed|not permitted|no such|conflict|unresolved|deprecated|错误|失败|异常|超时|缺少|未|不存在|无法"
)


_GUTTER = re.compile(r"^(?:[│╷╵┃▏]\s?)+(?!\s*$)|^[│╷╵┃▏ ]+$")
_LINES = 60
_LONG_PART = 16_000
_MANY_LINES = 200
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
    text = scrub("\n".join(_bounded_lines(text)))
    lines = joined(text.split("\n"))
    hint = labelled(lines)
    if hint is not None:
        rest = [*lines[: hint.line], hint.before]
        rest = rest if any(map(str.strip, rest)) else lines[hint.line + 1 :]
        return Essence(_complaint(rest)[:_LONG_LINE], hint.told)
    prose = ["" if FRAME.match(line) or BOILERPLATE.match(line) else line for line in lines]
    remedy, before = advised(prose) if len(lines) > 1 else ("", "")
    complaint = _complaint(lines)[:_LONG_LINE]
    names_more = has_name(before) and not has_name(complaint)
    is_replaced = remedy.endswith("instead") and first_name(before)
    return Essence(before if remedy and (names_more or is_replaced) else complaint, remedy)


def _bounded(text: str) -> str:
    """Keep both ends of a long text: traces end with what happened, logs begin with it."""
    if len(text) <= 2 * _LONG_PART:
        return text
    return f"{text[:_LONG_PART]}\n{text[-_LONG_PART:]}"


def _bounded_lines(text: str) -> list[str]:
    lines = text.split("\n")
    kept = lines if len(lines) <= 2 * _MANY_LINES else [*lines[:_MANY_LINES], *lines[-_MANY_LINES:]]
    return [_GUTTER.sub("", line[:_LONG_LINE]) for line in kept]


def _complaint(lines: Sequence[str]) -> str:
    found = told_by_form(lines)
    if found:
        return without_package(found.strip())
    if len(lines) == 1:
        return without_package(lines[0].strip())
    told = [line for line in lines if line.strip() and not FRAME.match(line) and not BOILERPLATE.match(line)]
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
        told, end = f"{told} {NPM.sub('', lines[end])}", end + 1
    return told


def _rank(line: str) -> int:
    is_wrong = _ERRORISH.search(line) is not None
    return (
        (is_wrong and re.search(r"\.\w{1,5}:\d+", line) is not None)
        + 2 * is_wrong
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
