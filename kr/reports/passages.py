"""An answer taken apart into units, and the units ranked by the question (SPEC 3.7: extractive, ranked).

Ranking is deterministic: equal scores keep the order of the source.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from kr.reports.outcome import CONTEXT7, DEEPWIKI, LOCAL_DOCS
from kr.reports.ranking import rank
from kr.reports.terms import Terms
from kr.text.inline import plain_line, safe_url
from kr.text.markdown import MAX_CHARS, Block, split
from kr.values import Answer, Passage

MAX_SOURCES = 30
_MAX_TOTAL = 1_000_000  # characters of one answer that are read
_MAX_UNIT = 12_000  # characters of prose
_LATER = 0.1  # by which each further place in the installed package counts less


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

    @property
    def text(self) -> str:
        """What stands in it, code included."""
        return "\n\n".join(block.text for block in self.blocks)

    @property
    def prose(self) -> tuple[Block, ...]:
        """All but code and headings."""
        return tuple(block for block in self.blocks if block.kind not in {"code", "heading"})

    @property
    def code(self) -> tuple[Block, ...]:
        """The code blocks, whole."""
        return tuple(block for block in self.blocks if block.kind == "code")


@dataclass(frozen=True, slots=True)
class Ranked:
    """A unit and how well it answers; scores compare within one material."""

    unit: Unit
    score: float


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
        if passage.is_cut:
            self.omitted.append(f"Of Source {origin.number}, only the beginning was read.")
        elif len(text) < len(passage.text):
            self.omitted.append(f"Of a passage of Source {origin.number}, only the beginning was read.")
        self.left -= len(text)
        title = plain_line(passage.title or "", 200) or None
        for heading, blocks in _units(split(text), title):
            if (heading, blocks) not in self.seen:
                self.seen.add((heading, blocks))
                self.units.append(Unit(origin=origin, heading=heading, blocks=blocks))

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


@lru_cache(maxsize=1)
def read_answer(answer: Answer) -> Material:
    """Take an untrusted answer apart. Repeated units are kept once; sizes are bounded.

    The last answer is remembered: it is looked at once to see whether it holds anything, and then used.
    """
    reader = _Reader(answer)
    for passage in answer.passages:
        reader.read(passage)
    return Material(
        origins=tuple(reader.origins.values()),
        units=tuple(reader.units),
        omitted=tuple(dict.fromkeys(reader.omitted)),
    )


def ranked(units: Sequence[Unit], terms: Terms) -> list[Ranked]:
    """Return the units that speak of the question with their scores, the best first.

    Context7 and DeepWiki answer the question itself, so all of theirs stay; of a page, what shares no
    keyword with the question goes, unless nothing does. Installed documentation comes ranked, by how rare the
    words are in the whole package: the order of its passages stays, and the later ones count less.
    """
    scored, _ = rank([(unit.heading or "", unit.text) for unit in units], terms)
    points = {row.index: row.score for row in scored}
    if any(unit.origin.source == LOCAL_DOCS for unit in units):
        return [
            Ranked(unit, points.get(at, 0.0) / (1 + _LATER * unit.origin.number))
            for at, unit in enumerate(units)
        ]
    order = sorted(range(len(units)), key=lambda at: -points.get(at, 0.0))
    kept = [at for at in order if at in points or units[at].origin.source in {CONTEXT7, DEEPWIKI}]
    return [Ranked(units[at], points.get(at, 0.0)) for at in kept or order]


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
