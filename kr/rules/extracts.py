"""Long passages reduced to what speaks of the question (SPEC 3.7); what is left out leaves a mark."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kr.rules.markdown import Block
from kr.rules.passages import Ranked, Unit
from kr.rules.ranking import rarity
from kr.rules.sentences import items, plain
from kr.rules.terms import Terms

GAP = "[…]"
"""Stands between quotations where text of the source was left out. kr's own mark, never inside a quotation."""

_LONG = 1_500  # characters of prose up to which a good passage stays whole
_LONG_AND_WEAK = 600
_WEAK = 0.35  # of the best passage's score
_OF_BEST = 0.45
_NEARLY_ALL = 0.85
_MOST_PARTS = 8


@dataclass(frozen=True, slots=True)
class _Part:
    """A paragraph, a list item with those that it encloses, or a table; ``group`` is the block it comes from."""

    block: Block
    group: int
    told: float


def extract(
    row: Ranked, terms: Terms, weights: Sequence[float], *, best: float
) -> list[tuple[Block, ...] | None]:
    """Return the prose of a unit as runs of blocks; None stands for a gap. Code is no part of it.

    A short unit stays whole. Of a long one its beginning stays and the parts that hold most of the question,
    shorter when the unit is far behind the ``best`` one.
    """
    parts = list(_parts(row.unit, terms, weights))
    size = sum(len(part.block.text) for part in parts)
    room = _LONG if row.score >= _WEAK * best else _LONG_AND_WEAK
    if size <= room:
        return [row.unit.prose] if row.unit.prose else []
    kept = _kept(parts, room)
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


def _kept(parts: Sequence[_Part], room: int) -> set[int]:
    best = max(part.told for part in parts)
    kept, used = {0}, len(parts[0].block.text)
    for at in sorted(range(1, len(parts)), key=lambda at: -parts[at].told):
        part = parts[at]
        if part.told <= 0 or part.told < _OF_BEST * best or len(kept) > _MOST_PARTS:
            break
        if used + len(part.block.text) <= room or len(kept) == 1:
            kept.add(at)
            used += len(part.block.text)
    return kept


def _parts(unit: Unit, terms: Terms, weights: Sequence[float]) -> Iterator[_Part]:
    for group, block in enumerate(unit.prose):
        texts = _top_items(block.text) if block.kind == "list" else [block.text]
        for text in texts:
            told = sum(weights[at] for at in terms.within(plain(text)))
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
