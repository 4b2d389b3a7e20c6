"""Long passages reduced to what speaks of the question (SPEC 3.7); what is left out leaves a mark."""

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from kr.reports.passages import Ranked, Unit
from kr.reports.ranking import rarity
from kr.reports.terms import Terms
from kr.text.markdown import Block
from kr.text.sentences import items, label_of, plain

GAP = "[…]"
"""Stands between quotations where text of the source was left out. kr's own mark, never inside a quotation."""

_LONG = 1_200  # characters of prose up to which a good passage stays whole
_LONG_AND_WEAK = 500
_WEAK = 0.35  # of the best passage's score
_OF_BEST = 0.45
_OF_QUESTION = 0.2
_GROWTH = 0.1  # of what a longer passage has more
_NEARLY_ALL = 0.85
_LEAST_PARTS, _MOST_PARTS = 3, 8


@dataclass(frozen=True, slots=True)
class _Part:
    """A paragraph, a list item with those that it encloses, or a table; ``group`` is the block it comes from."""

    block: Block
    group: int
    told: float
    """The weight of the question that it holds; infinite when the summary quotes it."""


def extract(
    row: Ranked, terms: Terms, weights: Sequence[float], *, best: float, quoted: Collection[str] = ()
) -> list[tuple[Block, ...] | None]:
    """Return the prose of a unit as runs of blocks; None stands for a gap. Code is no part of it.

    A short unit stays whole. Of a long one its beginning stays, the parts with the sentences that are
    ``quoted`` in the summary, and those that hold most of the question; fewer when the unit is far behind the
    ``best`` one.
    """
    parts = list(_parts(row.unit, terms, weights, quoted))
    size = sum(len(part.block.text) for part in parts)
    room = _LONG if row.score >= _WEAK * best else _LONG_AND_WEAK
    if size <= room:
        return [row.unit.prose] if row.unit.prose else []
    kept = _kept(parts, room + int(_GROWTH * size), _OF_QUESTION * sum(weights))
    if sum(len(parts[at].block.text) for at in kept) >= _NEARLY_ALL * size:
        return [row.unit.prose]
    runs: list[tuple[Block, ...] | None] = []
    held: list[_Part] = []
    for at, part in enumerate(parts):
        if at in kept:
            held.append(part)
            continue
        if held:
            runs.append(_joined(held))
            held = []
        if not runs or runs[-1] is not None:
            runs.append(None)
    return [*runs, _joined(held)] if held else runs


def weights_of(ranked: Sequence[Ranked], terms: Terms) -> list[float]:
    """Return what each term weighs among the paragraphs of a material."""
    held = [terms.within(block.text) for row in ranked for block in row.unit.prose]
    return [scarce * term.weight for scarce, term in zip(rarity(terms, held), terms.all, strict=True)]


def _kept(parts: Sequence[_Part], room: int, enough: float) -> set[int]:
    enough = max(enough, _OF_BEST * max((p.told for p in parts if p.told < math.inf), default=0.0))
    kept, used = {0}, len(parts[0].block.text)
    for at in sorted(range(1, len(parts)), key=lambda at: -parts[at].told):
        part = parts[at]
        if part.told <= 0 or len(kept) == _MOST_PARTS or (part.told < enough and len(kept) >= _LEAST_PARTS):
            break
        if used + len(part.block.text) <= room or len(kept) == 1 or part.told == math.inf:
            kept.add(at)
            used += len(part.block.text)
    return kept


def _parts(unit: Unit, terms: Terms, weights: Sequence[float], quoted: Collection[str]) -> Iterator[_Part]:
    for group, block in enumerate(unit.prose):
        texts = _top_items(block.text) if block.kind == "list" else [block.text]
        for text in texts:
            told = sum(weights[at] for at in terms.within(plain(text)))
            told += 0.5 * sum(weights[at] for at in terms.within(label_of(text)))
            line = " ".join(text.split())
            if any(sentence in line for sentence in quoted):
                told = math.inf
            yield _Part(Block(kind=block.kind, text=text), group, told)


def _top_items(text: str) -> list[str]:
    """Part a list at its outermost items."""
    found: list[str] = []
    for item in items(text):
        if found and item.startswith(" "):
            found[-1] += f"\n{item}"
        else:
            found.append(item)
    return found


def _joined(parts: Sequence[_Part]) -> tuple[Block, ...]:
    """Put neighbouring items of one list together again."""
    blocks: list[Block] = []
    group = None
    for part in parts:
        if part.group == group and part.block.kind == "list":
            blocks[-1] = Block(kind="list", text=f"{blocks[-1].text}\n{part.block.text}")
        else:
            blocks.append(part.block)
        group = part.group
    return tuple(blocks)
