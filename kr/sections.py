"""The sections of a report's Markdown, and cutting a text to a number of tokens."""

import re

from kr.text import CHARACTERS_PER_TOKEN

CUT = "\n[… cut here]\n"
PLACEHOLDER_MARK = "[No research results available, manual research required]"

_OUR_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def fence_after(line: str, opened: str) -> str:
    """Return the fence that is open behind a line, before which ``opened`` was ("" for none)."""
    match = _OUR_FENCE.match(line)
    if match is None:
        return opened
    if not opened:
        # Behind backticks that open a block no backtick may stand: it is code in a line then.
        return "" if match[1][0] == "`" and "`" in line[match.end() :] else match[1]
    closes = match[1].startswith(opened) and not line[match.end() :].strip()
    return "" if closes else opened


def sections(text: str) -> dict[str, str]:
    """Return the parts of a text under ``## name`` by their names, each with its heading."""
    found: dict[str, str] = {}
    opened = name = ""
    for line in text.splitlines(keepends=True):
        if not opened and line.startswith("## "):
            name = line[3:].strip()
            found[name] = ""
        opened = fence_after(line, opened)
        if name in found:
            found[name] += line
    return found


def section(text: str, name: str) -> str | None:
    """Return the section of that name, in any case; None where there is none."""
    folded = {heading.casefold(): part for heading, part in sections(text).items()}
    return folded.get(name.strip().casefold())


def fit(text: str, max_tokens: int) -> tuple[str, bool]:
    """Cut a text to ``max_tokens``, at a line's end or within a longer line; returns it and whether it was cut.

    A block of code that is cut through is closed.
    """
    room = max_tokens * CHARACTERS_PER_TOKEN
    if len(text) <= room:
        return text, False
    room = max(room - len(CUT), 0)
    kept, opened, size = "", "", 0
    for line in text[: room + 1].splitlines(keepends=True):
        after = fence_after(line, opened)
        if size + len(line) + (len(after) + 1 if after else 0) > room:
            break
        opened = after
        kept += line
        size += len(line)
    closed = kept + (f"{opened}\n" if opened else "")
    return (closed or text[:room]) + CUT, True
