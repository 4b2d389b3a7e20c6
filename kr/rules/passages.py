"""Which passages, sentences and code of an answer speak of the question (SPEC 3.7: extractive, ranked).

A keyword weighs the more the fewer passages hold it. Ranking is deterministic: equal scores keep the order
of the source.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kr.rules.corpus import words_of
from kr.rules.inline import plain_line, safe_url
from kr.rules.markdown import MAX_CHARS, Block, split
from kr.rules.outcome import CONTEXT7, DEEPWIKI, LOCAL_DOCS
from kr.values import Answer, Passage

MAX_SOURCES = 30
_MAX_TOTAL = 1_000_000  # characters of one answer that are read
_MAX_UNIT = 3000
_SENTENCE = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)\s+(?=\S)|(?<=[。！？])")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d+\\?[.)])\s+", re.MULTILINE)
_CAVEAT = re.compile(
    r"\b(?:deprecat\w*|breaking|warn\w*|caution|caveat\w*|notes?|beware|important|must not|only works|"
    r"not supported|unsupported|experimental|beta|unstable|removed|renamed|migrat\w*|since v?\d|as of|"
    r"requires?|versions?|v\d+(?:\.\d+)*|limitations?|known issues?|security)\b"
    r"|注意|警告|弃用|废弃|不支持|不兼容|版本|迁移|限制",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Where a passage came from. ``address`` is safe Markdown; ``url`` is set when it is a web address."""

    number: int
    source: str
    address: str
    url: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Blocks that belong together: a heading and what follows it, up to a few thousand characters."""

    origin: Origin
    heading: str | None
    blocks: tuple[Block, ...]
    words: frozenset[str]

    @property
    def prose(self) -> tuple[Block, ...]:
        """All but code and headings."""
        return tuple(block for block in self.blocks if block.kind not in {"code", "heading"})

    @property
    def code(self) -> tuple[Block, ...]:
        """The code blocks, whole."""
        return tuple(block for block in self.blocks if block.kind == "code")


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """An answer taken apart. ``omitted`` are sentences about what was not read."""

    origins: tuple[Origin, ...] = ()
    units: tuple[Unit, ...] = ()
    omitted: tuple[str, ...] = ()


@dataclass(slots=True)
class _Reader:
    answer: Answer
    origins: dict[str, Origin] = field(default_factory=dict)
    units: list[Unit] = field(default_factory=list)
    omitted: list[str] = field(default_factory=list)
    left: int = _MAX_TOTAL
    seen: set[tuple[str | None, tuple[Block, ...]]] = field(default_factory=set)

    def read(self, passage: Passage) -> None:
        origin = self._origin(passage)
        if origin is None or self.left <= 0:
            self.omitted.append("A passage was left out: the answer is too long.")
            return
        text = passage.text[: min(self.left, MAX_CHARS)]
        if len(text) < len(passage.text):
            self.omitted.append(f"Of a passage of Source {origin.number}, only the beginning was read.")
        self.left -= len(text)
        title = plain_line(passage.title or "", 200) or None
        for heading, blocks in _units(split(text), title):
            if (heading, blocks) not in self.seen:
                self.seen.add((heading, blocks))
                words = words_of("\n".join([heading or "", *(block.text for block in blocks)]))
                self.units.append(Unit(origin=origin, heading=heading, blocks=blocks, words=words))

    def _origin(self, passage: Passage) -> Origin | None:
        url = safe_url(passage.url)
        if self.answer.source == LOCAL_DOCS and not url:
            # The place inside the package; its home page is not where the text was read.
            address = plain_line(passage.url or passage.title or "the installed package", 300)
        else:
            url = url or safe_url(self.answer.url)
            address = url or "no address"
        if address not in self.origins:
            if len(self.origins) == MAX_SOURCES:
                return None
            number = len(self.origins) + 1
            self.origins[address] = Origin(
                number=number, source=plain_line(self.answer.source, 40), address=address, url=url
            )
        return self.origins[address]


def read_answer(answer: Answer) -> Material:
    """Take an untrusted answer apart. Repeated units are kept once; sizes are bounded."""
    reader = _Reader(answer)
    for passage in answer.passages:
        reader.read(passage)
    return Material(
        origins=tuple(reader.origins.values()),
        units=tuple(reader.units),
        omitted=tuple(dict.fromkeys(reader.omitted)),
    )


def weights(question: str, units: Sequence[Unit]) -> dict[str, float]:
    """Return the weight of each keyword of the question: the rarer among the units, the heavier."""
    asked = words_of(question)
    holding = Counter(word for unit in units for word in asked & unit.words)
    return {word: math.log(1 + (len(units) + 1) / (holding[word] + 1)) for word in sorted(asked)}


def score(words: Iterable[str], weight: Mapping[str, float]) -> float:
    """Return the summed weight of the keywords that occur."""
    return math.fsum(weight.get(word, 0.0) for word in set(words))


def ranked(units: Sequence[Unit], weight: Mapping[str, float]) -> list[Unit]:
    """Return the units that speak of the question, the best first.

    Context7 and DeepWiki answer the question itself, so all of theirs stay; of a page, what shares no
    keyword with the question goes, unless nothing does. Installed documentation comes ranked.
    """
    if any(unit.origin.source == LOCAL_DOCS for unit in units):
        return list(units)
    scored = [(score(unit.words, weight) + _in_heading(unit, weight), unit) for unit in units]
    kept = [
        (points, unit) for points, unit in scored if points > 0 or unit.origin.source in {CONTEXT7, DEEPWIKI}
    ]
    return [unit for _, unit in sorted(kept or scored, key=lambda pair: -pair[0])]


def best_sentences(
    units: Sequence[Unit], weight: Mapping[str, float], count: int
) -> list[tuple[Origin, str]]:
    """Return the sentences that hold most of the question, as clean Markdown, in their units' order."""
    scored = [
        (score(words_of(sentence), weight), at, unit.origin, sentence)
        for at, (unit, sentence) in enumerate(_sentences(units))
        if 20 <= len(sentence) <= 500
    ]
    best = sorted((item for item in scored if item[0] > 0), key=lambda item: -item[0])[:count]
    return _cleaned((origin, sentence) for _, _, origin, sentence in sorted(best, key=lambda item: item[1]))


def caveats(units: Sequence[Unit], weight: Mapping[str, float], count: int) -> list[tuple[Origin, str]]:
    """Return the sentences that speak of versions, deprecation, limits and warnings, as clean Markdown."""
    found = [
        (score(words_of(sentence), weight), at, unit.origin, sentence)
        for at, (unit, sentence) in enumerate(_sentences(units))
        if len(sentence) <= 600 and _CAVEAT.search(sentence)
    ]
    best = sorted(found, key=lambda item: -item[0])[:count]
    return _cleaned((origin, sentence) for _, _, origin, sentence in sorted(best, key=lambda item: item[1]))


def _units(blocks: Iterable[Block], title: str | None) -> Iterator[tuple[str | None, tuple[Block, ...]]]:
    heading, held, size = title, list[Block](), 0
    for block in blocks:
        prose = 0 if block.kind == "code" else len(block.text)
        if held and (block.kind == "heading" or size + prose > _MAX_UNIT):
            yield heading, tuple(held)
            held, size = [], 0
        if block.kind == "heading":
            heading = block.text
            continue
        held.append(block)
        size += prose
    if held:
        yield heading, tuple(held)


def _in_heading(unit: Unit, weight: Mapping[str, float]) -> float:
    return 0.5 * score(words_of(unit.heading or ""), weight)


def _sentences(units: Sequence[Unit]) -> Iterator[tuple[Unit, str]]:
    for unit in units:
        for block in unit.prose:
            if block.kind == "table":
                continue
            texts = _ITEM.split(block.text) if block.kind == "list" else [block.text]
            for text in texts:
                for sentence in _SENTENCE.split(" ".join(text.split())):
                    if sentence:
                        yield unit, sentence


def _cleaned(found: Iterable[tuple[Origin, str]]) -> list[tuple[Origin, str]]:
    # A sentence cut out of clean Markdown need not be clean: half a code span shows what it held.
    once = dict.fromkeys(
        (origin, " ".join(block.text for block in split(sentence) if block.kind != "code").replace("\n", " "))
        for origin, sentence in found
    )
    return [(origin, sentence) for origin, sentence in once if sentence.strip()]
