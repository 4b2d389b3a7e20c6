"""Documentation as older Context7 servers wrote it, and without their source lines. Pure.

Seen in collections of such answers: blocks ``TITLE:``, ``DESCRIPTION:``, ``SOURCE:``, and for each piece of code
``LANGUAGE:`` and ``CODE:`` with a fence that names no language, parted by a line of dashes.
"""

import re
from collections.abc import Sequence
from itertools import pairwise

from kr.values import Passage

_RULE = re.compile(r"[-=]{16,}[ \t]*")
_FIELD = re.compile(r"(DESCRIPTION|SOURCE|LANGUAGE|CODE):[ \t]*(.*)")
_HEADLINES = frozenset({"CODE SNIPPETS", "QUESTIONS AND ANSWERS"})
_LANGUAGE = re.compile(r"[\w+#.-]{1,30}", re.ASCII)
_ADDRESS = re.compile(r"https?://[^\s<>\"]{1,2000}")


def parse_older(lines: Sequence[str]) -> tuple[Passage, ...]:
    """Read the older form; a title without source and code below it is none."""
    starts = _starts(lines)
    passages = (_passage(lines[at:end]) for at, end in pairwise([*starts, len(lines)]))
    return tuple(passage for passage in passages if passage is not None)


def parse_bare(text: str) -> tuple[Passage, ...]:
    """Take a text that begins with a ``### Title`` and holds code as it is: nobody reports a failure so."""
    text = text.strip()
    if re.match(r"### +\S", text) and len(re.findall(r"(?m)^ {0,3}(?:```|~~~)", text)) > 1:
        return (Passage(text=text),)
    return ()


def _starts(lines: Sequence[str]) -> list[int]:
    """Where titles stand: at the beginning, or after a line of dashes or equal signs."""
    starts: list[int] = []
    before: str | None = None
    for at, line in enumerate(lines):
        if line.startswith("TITLE: ") and (before is None or _RULE.fullmatch(before)):
            starts.append(at)
        before = line if line.strip() else before
    return starts


def _passage(lines: Sequence[str]) -> Passage | None:
    body: list[str] = []
    fields: dict[str, str] = {}
    in_code = False
    for line in lines[1:]:
        if in_code:
            body.append(line)
            in_code = not line.startswith("```")
        elif line.startswith("```"):
            named = _LANGUAGE.fullmatch(fields.get("LANGUAGE", "")) if line.strip() == "```" else None
            body.append(f"```{named[0]}" if named else line)
            in_code = True
        elif field := _FIELD.fullmatch(line):
            fields[field[1]] = field[2].strip()
            if field[1] == "DESCRIPTION":
                body.append(field[2])
        elif not _RULE.fullmatch(line) and line not in _HEADLINES:
            body.append(line)
    text = "\n".join(body).strip("\n")
    if not text.strip() or fields.keys().isdisjoint({"SOURCE", "CODE"}):
        return None
    url = fields.get("SOURCE", "")
    title = lines[0].partition(":")[2].strip()
    return Passage(text=text, title=title, url=url if _ADDRESS.fullmatch(url) else None)
