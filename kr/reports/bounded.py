"""A report for a reader with little room: one section of it, or what fits a number of tokens (SPEC 8)."""

import re

CUT = "\n[… cut here]\n"
"""Stands at the end of a text that was cut."""

CHARACTERS_PER_TOKEN = 4
"""What a token is taken for (SPEC 3.7)."""

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")


def section(text: str, name: str) -> str | None:
    """Return the section of a Markdown text under ``## name``, in any case, with its heading; None where none is."""
    return {heading.casefold(): part for heading, part in _sections(text)}.get(name.strip().casefold())


def headings(text: str) -> list[str]:
    """List the names of a text's sections."""
    return [heading for heading, _ in _sections(text)]


def fit(text: str, max_tokens: int) -> tuple[str, bool]:
    """Cut a Markdown text to ``max_tokens``; returns it and whether it was cut.

    It is cut between paragraphs where that leaves at least half, else between lines or, in a line that is longer
    than all the room, within it; a block of code that is cut through is closed.
    """
    room = max_tokens * CHARACTERS_PER_TOKEN
    if len(text) <= room:
        return text, False
    room = max(room - len(CUT), 0)
    kept, fence, size, between = [], "", 0, 0
    for line in text[: room + 1].splitlines(keepends=True):
        after = _fence_after(line, fence)
        if size + len(line) + (len(after) + 1 if after else 0) > room:
            break
        fence = after
        kept.append(line)
        size += len(line)
        if not line.strip() and not fence:
            between = len(kept)
    if sum(map(len, kept[:between])) * 2 >= room:
        return "".join(kept[:between]).rstrip("\n") + "\n" + CUT, True
    if not kept:
        return text[:room] + CUT, True
    return "".join(kept) + (f"{fence}\n" if fence else "") + CUT, True


def _sections(text: str) -> list[tuple[str, str]]:
    found: list[tuple[str, list[str]]] = []
    fence = ""
    for line in text.splitlines(keepends=True):
        if not fence and line.startswith("## "):
            found.append((line[3:].strip(), []))
        fence = _fence_after(line, fence)
        if found:
            found[-1][1].append(line)
    return [(heading, "".join(lines)) for heading, lines in found]


def _fence_after(line: str, fence: str) -> str:
    """Return the fence that is open behind a line, before which ``fence`` was ("" for none)."""
    match = _FENCE.match(line)
    if match is None:
        return fence
    if not fence:
        return match[1]
    closes = match[1].startswith(fence) and not line[match.end() :].strip()
    return "" if closes else fence
