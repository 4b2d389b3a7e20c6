"""Clean Markdown parted into sentences, and whether one can be understood on its own."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from kr.text.keywords import FUNCTION_WORDS
from kr.text.markdown import Block, begins_caveat

SHORTEST, LONGEST = 20, 500
_LINKS = 0.6  # of a sentence: with more it is a row of links

_CODE_SPAN = re.compile(r"(?<!`)(`+)(?!`).*?(?<!`)\1(?!`)", re.DOTALL)
_LINK = re.compile(r"\[([^\[\]]*)\]\([^()\s]*\)|<https?:[^<>\s]*>")
_END = re.compile(
    r"(?<=[.!?])(?<!\be\.g\.)(?<!\bi\.e\.)(?<!\betc\.)(?<!\bvs\.)(?<!\bcf\.)(?<!\.\.\.)[)\"'”’*_]{0,3}\s+(?=[^\sa-z…])"
    r"|(?<=[。！？])[”’」』）]?"
)
_ITEM = re.compile(r"^[ ]*(?:[-*+]|\d+\\?[.)])[ ]+", re.MULTILINE)
_LABEL = re.compile(r"(?:`([^`\n]{1,80})`|\*\*([^*\n]{1,80})\*\*)(?=\s*[:(–—-]|\s*$)")
_FIRST_WORD = re.compile(r"[*_(\"'“‘\[]*([^\W\d_]+)")
_LEANING = re.compile(
    r"(?:this|it|its|they|their|them|these|those|that|he|she|such|both|here|there|also|however|then|thus|so|but|and|or|"
    r"otherwise|instead|therefore|hence|likewise|similarly|additionally|furthermore|moreover|again|besides|for example|"
    r"for instance|in (?:this|that|such|these|both) (?:case|way|example)s?|the (?:above|following|latter|former)|"
    r"see|as (?:above|before|such))\b",
    re.IGNORECASE,
)
_THING = r"(?:example|code|snippet|listing|figure|table|output|diagram|section|query|command|script)s?"
_POINTS_BACK = re.compile(
    rf"\b(?:the (?:above|previous|preceding|former|latter|last)\b|(?:in|from|with) (?:this|that|these|those) {_THING}\b|{_THING} above\b"
    r"|(?:shown|seen|described|defined|mentioned|listed|given|discussed|as) (?:above|before|earlier)\b|(?:in )?the (?:first|second|third) (?:case|example)\b)",
    re.IGNORECASE,
)
_POINTS_ON = re.compile(
    rf"\b(?:(?:the|this|these) following\b|{_THING} below\b|(?:shown|see|seen|described|listed|given) below\b|as follows\b|below[.:]|(?:here is|here['’]s|here are) )",
    re.IGNORECASE,
)
_ENDS = re.compile(r"[.!?。！？…][)\]\"'”’」』）*_`]*$")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, or an item of a list as far as its first sentence goes; what follows in it are further ones.

    ``place`` tells the paragraph or item that it stands in. ``label`` is the name that an item is about
    (``- `multiple`: if this is set to ...``). ``warns``: it stands in a note or warning that is set apart.
    """

    text: str
    place: int
    is_item: bool = False
    label: str | None = None
    warns: bool = False


def sentences_of(blocks: Iterable[Block]) -> Iterator[Sentence]:
    """Yield the sentences of prose and lists, in order; code, headings and tables have none."""
    place = 0
    for block in blocks:
        place += 1
        if block.kind == "prose":
            for text in part(block.text):
                yield Sentence(text, place, warns=block.warns)
        elif block.kind == "list":
            for item in items(block.text):
                place += 1
                yield from _of_item(item, place, warns=block.warns)


def _of_item(item: str, place: int, *, warns: bool) -> Iterator[Sentence]:
    warns = warns or begins_caveat(_ITEM.sub("", item, count=1))
    for at, text in enumerate(part(_ITEM.sub("", item, count=1))):
        label = label_of(text) if at == 0 else ""
        yield Sentence(text, place, is_item=at == 0, label=label or None, warns=warns)


def part(text: str) -> list[str]:
    """Part a paragraph at the ends of its sentences; code spans stay whole."""
    line = " ".join(text.split())
    # Seen as capitals of equal number, code can't end a sentence and may begin one.
    masked = _CODE_SPAN.sub(lambda found: "X" * len(found[0]), line)
    found, start = [], 0
    for end in _END.finditer(masked):
        if end.end() > start:
            found.append(line[start : end.end()].strip())
            start = end.end()
    found.append(line[start:].strip())
    return [sentence for sentence in found if sentence]


def items(text: str) -> list[str]:
    """Part a list into its items, each without those that it encloses."""
    cuts = [0, *(found.start() for found in _ITEM.finditer(text) if found.start()), len(text)]
    return [text[start:end].strip("\n") for start, end in pairwise(cuts)]


def label_of(item: str) -> str:
    """Return the name that a list item, with or without its mark, is about; empty when it begins with none."""
    found = _LABEL.match(_ITEM.sub("", item, count=1))
    return (found[1] or found[2]).strip() if found else ""


def plain(text: str) -> str:
    """Return what a reader sees of a text: without the addresses of its links."""
    return _LINK.sub(lambda found: found[1] or "", text)


def linked_share(text: str) -> float:
    """Return which part of what a reader sees of a text are links; marks of lists and spaces don't count."""
    linked = sum(len("".join((found[1] or found[0]).split())) for found in _LINK.finditer(text))
    return linked / (len("".join(_ITEM.sub("", plain(text)).split())) or 1)


def is_of_length(text: str) -> bool:
    """Tell whether a text is neither too short nor too long to be quoted as a sentence."""
    # In bytes, so that a Chinese sentence, which says as much in a third of the characters, is long enough.
    return len(text.encode()) >= SHORTEST and len(text) <= LONGEST


def understandable(sentence: Sentence) -> float:
    """Return how well a sentence stands alone, 0 (not at all: a fragment, a row of links) to 1."""
    text = sentence.text
    if not is_of_length(text) or text.count("`") % 2:
        return 0.0
    if linked_share(text) > _LINKS:
        return 0.0
    shown = plain(text)
    return _beginning(sentence, shown) * _ending(sentence, shown)


def leans(sentence: Sentence) -> bool:
    """Tell whether a sentence points back at the one before it ("This is ...")."""
    return not sentence.label and _LEANING.match(plain(sentence.text)) is not None


def leans_on(text: str) -> bool:
    """Tell whether a paragraph leans on what stands before it, by how it begins or what it points at."""
    first = part(text)[:1]
    return bool(first) and (_LEANING.match(plain(first[0])) is not None or points_back(first[0]))


def points_back(sentence: str) -> bool:
    """Tell whether a sentence points at an example or text before it ("in the above example")."""
    return _POINTS_BACK.search(plain(sentence)) is not None


def points_on(paragraph: str) -> bool:
    """Tell whether a paragraph ends by announcing what comes next ("the following example", a colon)."""
    last = part(paragraph)[-1:]
    return bool(last) and (last[0].endswith((":", "：")) or _POINTS_ON.search(plain(last[0])) is not None)


def _beginning(sentence: Sentence, shown: str) -> float:
    if sentence.label:
        return 1.0
    first = _FIRST_WORD.match(shown)
    if first and first[1][0].islower():
        # An item may go on where its list's introduction stopped; a sentence that does so is none.
        if first[1] in FUNCTION_WORDS:
            return 0.4 if sentence.is_item else 0.0
        return 0.85
    return 0.75 if leans(sentence) else 1.0


def _ending(sentence: Sentence, shown: str) -> float:
    if shown.endswith((":", "：")):
        return 0.6
    if shown.endswith(("?", "？")):
        return 0.4
    return 1.0 if sentence.is_item or _ENDS.search(shown) else 0.6
