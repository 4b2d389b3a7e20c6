"""A long text about one name cut down to what speaks of the question, code and prose together."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from kr.reports.terms import Terms

ROOM = 2_200
"""Characters that one name's documentation may take: five of them fit a report (SPEC 3.7)."""
_HEAD = 700
_LABEL = re.compile(r"\*\*[^*\n]{1,80}:?\*\*:?|#{1,6} .*")
_PLAIN_LABEL = re.compile(r"[A-Z][\w /,()`.'-]{0,79}:")
_FENCE = re.compile(r"\s{0,3}(`{3,}|~{3,})")
_ITEM = re.compile(r"(?:[-*+]|\d{1,3}[.)]) ")
_SENTENCE = re.compile(r"(?<=[a-z)`][.!?]) (?=[A-Z`])")
_NEARLY = 0.6  # of what the best block tells
_SINCE = re.compile(r"(?:Added|Changed|Deprecated) (?:in|since)\b")
_REQUIRED = re.compile(r"[(,]\s*(\w+)\s*(?::[^,=()]*)?(?=[,)])")
_NAME = re.compile(r"[*_`\s/-]*([\w.$]+)")


@dataclass(frozen=True, slots=True)
class _Block:
    text: str
    told: float
    is_code: bool = False
    is_item: bool = False

    @property
    def is_label(self) -> bool:
        return bool(_PLAIN_LABEL.fullmatch(self.text))


def focus(signature: str, markdown: str, terms: Terms, weights: Sequence[float], *, room: int = ROOM) -> str:
    """Return a signature (code without fence) and the text below it in about ``room`` characters.

    What fits stays whole. Otherwise its first paragraph stays, the parameters and paragraphs that hold most of the
    question, and the example that does; in their order, each whole, with the label they stand under.
    """
    markdown = _without_sections(markdown)
    if len(signature) + len(markdown) <= room:
        return markdown
    blocks = _blocks(markdown, terms, weights, frozenset(_REQUIRED.findall(signature)))
    kept = {at: blocks[at].text for at in _first(blocks)}
    left = room - min(len(signature), _HEAD) - sum(map(len, kept.values()))
    for at, whole in _by_worth(blocks):
        text = _brief(whole) if len(whole) > left and blocks[at].is_item else whole
        if at not in kept and len(text) <= left and not blocks[at].is_label:
            kept[at] = text
            left -= len(text)
    return _joined(blocks, kept)


def _without_sections(markdown: str) -> str:
    """Return a text whose parts are named in its prose: headings would take it apart, and it is about one name.

    ``## Example`` and ``**Parameters:**`` become ``Example:`` and ``Parameters:``; code is left alone.
    """
    out: list[str] = []
    fence = ""
    for line in markdown.splitlines():
        mark = _FENCE.match(line)
        if mark and (not fence or line.strip() == fence):
            fence = "" if fence else mark[1]
        found = None if fence else _LABEL.fullmatch(line.strip())
        ends = (
            ":" if line.startswith("#") or ":" in line[-4:] else "."
        )  # "**Added in 4.0**" names nothing below
        out.append(f"{line.strip('#*: ')}{ends}" if found else line)
    return "\n".join(out)


def _by_worth(blocks: Sequence[_Block]) -> Iterator[tuple[int, str]]:
    """Yield the example, what tells most, whole, and then the other parameters in brief.

    Their names and first sentences may say it in other words than the question does.
    """
    example = _example(blocks)
    if example is not None:
        yield example, blocks[example].text
    best = max((block.told for block in blocks), default=0.0)
    order = sorted(range(len(blocks)), key=lambda at: (-blocks[at].told, at))
    for at in order:
        block = blocks[at]
        if block.told > 0 and (not block.is_item or block.told >= _NEARLY * best):
            yield at, block.text
    for at in order:
        if blocks[at].is_item:
            yield at, _brief(blocks[at].text)


def _brief(item: str) -> str:
    """Return a list item up to the end of its first sentence."""
    line = " ".join(item.partition("\n\n")[0].split())
    sentence = _SENTENCE.search(line)
    return line[: sentence.start()] if sentence else line


def shortened(signature: str, text: str, terms: Terms) -> str:
    """Return a signature of many lines with the parameters that the question or the ``text`` names, the rest as dots."""
    lines = signature.splitlines()
    if len(signature) <= max(_HEAD, ROOM - len(text)) or len(lines) < 6:
        return signature
    out: list[str] = []
    for at, line in enumerate(lines):
        name = _NAME.match(line)
        is_edge = at in {0, len(lines) - 1} or not line.startswith((" ", "\t"))
        if is_edge or terms.within(line) or (name and f"`{name[1]}`" in text):
            out.append(line)
        elif out[-1].strip() != "...":
            out.append("    ...")
    return "\n".join(out)


def _blocks(markdown: str, terms: Terms, weights: Sequence[float], required: frozenset[str]) -> list[_Block]:
    from markdown_it import MarkdownIt

    lines = markdown.splitlines()
    found: list[_Block] = []
    for token in MarkdownIt("commonmark").enable("table").parse(markdown):
        if token.level != 0 or token.map is None or token.nesting < 0:
            continue
        part = lines[token.map[0] : token.map[1]]
        is_list = token.type.endswith("list_open")
        for text in _items(part) if is_list else ["\n".join(part).rstrip()]:
            held = terms.within(text)
            told = sum(weights[at] for at in held)
            if is_list:
                label = text[:80].partition(":")[0]
                told += 0.5 * sum(weights[at] for at in terms.within(label))
                if (name := _NAME.match(label[2:])) and name[1] in required:
                    told += 0.3 * max(weights, default=0.0)  # without it nothing can be called
            if found and _SINCE.match(found[-1].text):
                told = 0.0  # when something came says little about how it is used
            found.append(_Block(text, told, is_code=token.type in {"fence", "code_block"}, is_item=is_list))
    return [block for block in found if block.text.strip()]


def _items(lines: Sequence[str]) -> list[str]:
    items: list[list[str]] = [[]]
    for line in lines:
        if _ITEM.match(line) and items[-1]:
            items.append([])
        items[-1].append(line)
    return ["\n".join(item).rstrip() for item in items]


def _first(blocks: Sequence[_Block]) -> set[int]:
    """Return the paragraph that says what it is."""
    at = next(
        (at for at, block in enumerate(blocks) if not (block.is_label or block.is_code or block.is_item)),
        None,
    )
    return set() if at is None or len(blocks[at].text) > ROOM // 2 else {at}


def _example(blocks: Sequence[_Block]) -> int | None:
    """Return the code that holds most of the question, the first where none holds any."""
    code = [at for at, block in enumerate(blocks) if block.is_code and len(block.text) <= ROOM // 2]
    return max(code, key=lambda at: (blocks[at].told, -at), default=None)


def _joined(blocks: Sequence[_Block], kept: Mapping[int, str]) -> str:
    """Join what is kept, with the label above it and the sentence that leads to its code."""
    chosen = dict(kept)
    for at in kept:
        before = at - 1
        if blocks[at].is_item:
            while before >= 0 and blocks[before].is_item:
                before -= 1
        if before >= 0 and (blocks[before].is_label or (blocks[at].is_code and _leads(blocks[before]))):
            chosen.setdefault(before, blocks[before].text)
    text = ""
    last: _Block | None = None
    for at in sorted(chosen):
        both_items = last is not None and last.is_item and blocks[at].is_item
        text += ("\n" if both_items else "\n\n" if text else "") + chosen[at]
        last = blocks[at]
    return text


def _leads(block: _Block) -> bool:
    return not block.is_code and block.text.rstrip().endswith(":") and len(block.text) <= 300
