"""The remedy that a tool prints beside its complaint: behind a label, or as a sentence that says what to do (SPEC 4.2)."""

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from kr.lessons.distill.empty import is_informative
from kr.lessons.distill.outputs import NPM
from kr.lessons.distill.phrases import plain_order
from kr.lessons.distill.verbs import begins_with_order, is_no_noun
from kr.lessons.distill.wording import is_aimed, sentences

_LABELLED = re.compile(
    r"(?i)(?:^[ \t=>*#-]{0,20}|(?<=[.。;；!] )|(?<=[。；]))"
    r"(?:hint|help|fix|suggest(?:ion|ed fix)|recommend(?:ation|ed)|resolution|action|tip|solution|how to fix|remedy|possible solution"
    r"|建议|修复建议|修复方案|修复|解决方案|解决办法|解决方法|改进|处理方式|修改建议)\**\s{0,3}[:：]\**[ \t]*(.*)$"
)
_SPEAKING_OF_IT = re.compile(r"(?i)^(?:hint|help): (?=\S)")
_VERBOSITY = re.compile(
    r"(?i)--(?:stacktrace|info|debug|verbose|scan|explain|trace\w*|help)\b|-[eX] (?:switch|option)|backtrace|\b(?:more|further|full|complete|additional) (?:info\w*|details?|logs?|stack)"
    r"|for (?:help|details|documentation|available)|\b(?:server|debug|error|the|see) logs?\b|log file|report (?:this|the|a) (?:bug|issue|problem|error)|rerun with|re-run (?:maven|with)|npm (?:fund|audit)|\bsee (?:also )?(?:the )?(?:doc|http|above|below|caveat|help)"
    r"|visit https?:|^fix (?:this|the) (?:problem|error|issue|upstream)\b|pytest --fixtures|at your own risk|check the (?:render method|logs?|output)|contact (?:your|the|support)|try again|not ignore|follow the stack"
)
_YOU = re.compile(
    r"(?i)^(?:in this case, )?you (?:can|could|should|must|may|might|need|have)\b(?: (?:want|need|have) to| also)? (?!not\b|only\b|be\b|have\b|see\b|get\b)[a-z]+ \S"
)
_ORDERED = re.compile(r"(?i)^(?:did you mean\b|either .+ or |(?:try|consider) \w+ing\b|instead,? )")
_USE = re.compile(
    r"(?i)\b(?:(?:please )?use .{2,80} instead\b|(?:must|needs? to|ha(?:s|ve) to) be (?:made|set|used|run|called|placed|declared|defined|registered|created|added|wrapped|imported|installed|enabled|awaited|replaced|upgraded|pinned)\b|(?:should|must) be (?:replaced|changed|set|called|wrapped|updated)\b)"
)
_CODE = re.compile(
    r"[;{}]$|^\s*(?:[-+>$#]\s|\w+\(.*\)$|(?:import|from|return|raise|def|class|const|let|var) )"
)
_INDENTED = re.compile(r"^(?:\s{2,}|\t)\S")
_BROKEN = re.compile(r"[\w,`'\")]$")
_GOES_ON = re.compile(r"^\s*(?:[a-z(`'\"]|[A-Z]\w+ \d)")
_INTRODUCES = re.compile(r":$|^[Rr]un$")
_TO_RUN = re.compile(r"(?i)\brun\b.{0,60}$|, (?:please )?(?:call|execute|type|issue|use):$")
_SAID = re.compile(r"^(?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception): .*['\"`]$")
_MANY = 120


class Labelled(NamedTuple):
    """A remedy behind a label: the number of its line, what stands before it there, and the remedy."""

    line: int
    before: str
    told: str


def labelled(lines: Sequence[str]) -> Labelled | None:
    """Find the first remedy that stands behind a label such as ``hint:``."""
    for at, line in enumerate(lines):
        found = _LABELLED.search(line) if ":" in line or "：" in line else None
        if found is None:
            continue
        below = (after.strip() for after in lines[at + 1 : at + 4] if after.strip())
        told = found[1].strip() or next(below, "")
        if is_informative(told) and not _VERBOSITY.search(told):
            return Labelled(at, line[: found.start()], told)
    return None


def joined(lines: Sequence[str]) -> list[str]:
    """Join what tools break into lines under one label (``hint: …``)."""
    told: list[str] = []
    for line in lines:
        found = _SPEAKING_OF_IT.match(line)
        if found and told and told[-1].startswith(found[0]):
            told[-1] = f"{told[-1]} {line[found.end() :].strip()}"
        else:
            told.append(line)
    return told


def advised(lines: Sequence[str]) -> tuple[str, str]:
    """Return the sentence in which a tool says what to do, and the sentence before it; both may be empty."""
    for paragraph in _paragraphs(lines[:_MANY]):
        before = ""
        for sentence in sentences(paragraph):
            if _says(sentence) and not _VERBOSITY.search(sentence):
                return plain_order(sentence), before
            before = sentence
    return "", ""


def _says(sentence: str) -> bool:
    if sentence.count(" ") < 2 or len(sentence) > 400:
        return False
    is_order = begins_with_order(sentence) and is_no_noun(sentence) and not sentence[0].islower()
    told = plain_order(sentence)
    _, _, last = sentence.rpartition("; ")
    return (
        is_order
        or (last != sentence and begins_with_order(last) and is_no_noun(last) and is_informative(last))
        or is_aimed(sentence)
        or (told != sentence and begins_with_order(told))
        or any(mark.search(sentence) is not None for mark in (_YOU, _ORDERED, _USE))
    )


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    """Join the lines of which sentences are made; a command may stand below its introduction."""
    told = ""
    for line in lines:
        if not line.strip():
            if told and not _INTRODUCES.search(told):
                yield told
                told = ""
            continue
        is_command = (
            _INTRODUCES.search(told) is not None
            and _INDENTED.match(line) is not None
            and _TO_RUN.search(told) is not None
        )
        is_broken = len(told) > 30 and _BROKEN.search(told) and not _SAID.match(told)
        if told and (is_command or (is_broken and _GOES_ON.match(line))):
            told = f"{told} {NPM.sub('', line.strip())}"
            if is_command:
                yield told
                told = ""
            continue
        if told:
            yield told
        told = "" if _CODE.search(line) else line.strip()
    if told:
        yield told
