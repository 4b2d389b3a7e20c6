"""Numbers of things as a sentence says them, the size of a text in a model's tokens, and a report for a reader with little room (SPEC 8)."""

import re

from kr.text.words import wide


def counted(number: float, one: str, many: str | None = None) -> str:
    """Say how many: ``1 lease``, ``2 leases``, ``1.5 calls``; ``many`` where an ``s`` alone doesn't do."""
    return f"{number:.15g} {one if number == 1 else many or one + 's'}"


def tokens_of(text: str) -> int:
    """Estimate how many tokens a text costs a language model: its characters / 4 (SPEC 3.7), rounded up.

    A Chinese, Japanese or Korean character counts as one. Held against one vendor's real tokenizer, 44 reports had 3.65
    characters a token (2.7 where tables and signatures prevail, 4.6 in plain prose), and Chinese prose 1.2.
    """
    more = 0 if text.isascii() else len(wide().findall(text))
    return -(-(len(text) + 3 * more) // 4)


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
        after = fence_after(line, fence)
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
        fence = fence_after(line, fence)
        if found:
            found[-1][1].append(line)
    return [(heading, "".join(lines)) for heading, lines in found]


def fence_after(line: str, fence: str) -> str:
    """Return the fence that is open behind a line, before which ``fence`` was ("" for none)."""
    match = _FENCE.match(line)
    if match is None:
        return fence
    if not fence:
        # Behind backticks that open a block no backtick may stand: it is code in a line then.
        return "" if match[1][0] == "`" and "`" in line[match.end() :] else match[1]
    closes = match[1].startswith(fence) and not line[match.end() :].strip()
    return "" if closes else fence
