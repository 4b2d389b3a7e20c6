"""A passage brought to a size (SPEC 3.7): its blocks in their order, those that answer kept with what they lean on.

What is left out leaves a mark, never a sentence that points at it: a list stays with the line that introduces it, code
with the prose before it, and code is whole or not there; of an example longer than the room, whole statements are.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kr.reports.passages import Unit, is_declaration, is_example, is_import
from kr.reports.ranking import rarity
from kr.reports.terms import Terms
from kr.text.markdown import Block
from kr.text.sentences import items, label_of, leans_on, plain, points_on
from kr.text.sentences import part as text_parts

_NAMES = 160  # characters of names that a gap tells
_NAME = re.compile(r"[\w$@-][\w.$:/-]{1,39}(?:\(\))?")

_FIRST = 0.3  # what the opening of a passage counts for being the opening, of its best part
_DECLARES = 0.6  # the same of one that is a signature: how it is called at all
_OF_SIGNATURE = 0.5  # of the room: a signature that takes no more is shown in any case
_BRIEFLY = 0.3  # of the room, for the first words of items that are not kept
_SHORTEST_BRIEF, _LONGEST_BRIEF = 16, 120  # characters of one, with its name's marks
_CODE_SPANS = re.compile(r"(`+)(?!`).*?(?<!`)\1(?!`)")
_WORTH = 0.25  # of the best part: what tells less is left out
_MANY = 4  # examples of one passage: of more, those that tell most of the question are shown
_ROOM_OF_MANY = 1_500
_USES = 0.7
_DEFINED = re.compile(
    r"^(?:export |async |default )*(?:class|def|function|const|let|var) (\w{3,80})", re.MULTILINE
)
_LABELS = re.compile(r"(?:\*\*)?\w+(?: [\w-]+){0,3}(?:\*\*)?")
"""A word or some, as they stand above a list or table ("History")."""
_NAMED = re.compile(
    r"^(?:export |async |default )*(?:const |let |var |class |def |function |(?=\w+ = ))(\w{3,80})",
    re.MULTILINE,
)
_USED = re.compile(r"\b([A-Za-z_]\w{2,80})(?=[.,()\[])")
_MARGIN = re.compile(r"\n[ \t]*\n(?=[^\s)\]}])")
_MOST_PARTS = 400
_ROW = 200


@dataclass(frozen=True, slots=True)
class Part:
    """Blocks that can only stand together; ``told`` is the weight of the question that they hold.

    ``group`` is the list or table that a part was taken from, with ``head`` to be shown before the first of it.
    """

    blocks: tuple[Block, ...]
    told: float
    group: int
    head: tuple[Block, ...] = ()

    @property
    def size(self) -> int:
        """In characters."""
        return size_of(self.blocks)


Runs = list[tuple[Block, ...] | str]
"""Blocks that stand together in the source; a text is the mark of a gap, kr's own and never inside a quotation."""


def gap(names: Iterable[str] = ()) -> str:
    """Return what stands where text was left out: with the names that it tells of, so that nobody takes an option for missing."""
    told: list[str] = []
    for name in dict.fromkeys(names):
        if _NAME.fullmatch(name) and sum(map(len, told)) + len(name) <= _NAMES:
            told.append(f"`{name}`")
    return f"[… {', '.join(told)} …]" if told else "[…]"


def weights_of(units: Sequence[Unit], terms: Terms) -> list[float]:
    """Return what each term weighs among the paragraphs of some units."""
    held = [terms.within(block.text) for unit in units for block in unit.blocks]
    return [scarce * term.weight for scarce, term in zip(rarity(terms, held), terms.all, strict=True)]


def size_of(blocks: Sequence[Block]) -> int:
    """Return about how many characters blocks take."""
    return sum(len(block.text) + 4 for block in blocks)


def excerpt(unit: Unit, terms: Terms, weights: Sequence[float], room: int) -> Runs:
    """Return what of a unit fits into ``room`` characters: all of it, or what tells most of the question.

    Empty when not even its best part fits.
    """
    examples = [block for block in unit.blocks if block.kind == "code"]
    if len(examples) > _MANY:
        room = min(room, max(_ROOM_OF_MANY, size_of(unit.blocks) // 2))
    if size_of(unit.blocks) <= room:
        return [unit.blocks]
    parts = list(_parts(unit, terms, weights, room))[:_MOST_PARTS]
    briefs = {at: brief for at, one in enumerate(parts) if (brief := _brief(one)) is not None}
    reserved = min(sum(one.size for one in briefs.values()), int(_BRIEFLY * room))
    kept = _kept(parts, room - reserved) or _kept(parts, room)
    _add_briefs(parts, kept, briefs, room)
    return _runs(parts, kept)


def _add_briefs(parts: list[Part], kept: set[int], briefs: Mapping[int, Part], room: int) -> None:
    """Put the first words of items that were not kept in their places, as many as what is kept leaves room for."""
    heads: set[int] = set()
    left = room
    for at in kept:
        left -= _cost(parts[at], heads)
        heads.add(parts[at].group)
    for at in sorted(
        briefs.keys() - kept, key=lambda at: (parts[at].group not in heads, -parts[at].told, at)
    ):
        if (cost := _cost(briefs[at], heads)) <= left:
            parts[at] = briefs[at]
            heads.add(parts[at].group)
            kept.add(at)
            left -= cost


def _brief(part: Part) -> Part | None:
    """Return what an item of a list that says what a name is says first; None for any other part."""
    (block, *others) = part.blocks
    # A call that stands beside the one that is told is a line already, and one of many.
    if others or block.kind != "list" or "(" in (label_of(block.text) or "("):
        return None
    lines = block.text.split("\n")
    first = text_parts(lines[0] if len(items(block.text)) > 1 else block.text)
    told = first[0]
    if len(told) > _LONGEST_BRIEF:
        told = told[:_LONGEST_BRIEF].rpartition(" ")[0]
    bare = _CODE_SPANS.sub("", told)
    is_torn = "`" in bare or bare.count("**") % 2 or bare.count("[") != bare.count("]")
    if is_torn or len(told) < len(label_of(told)) + _SHORTEST_BRIEF:
        return None
    told = told if told == " ".join(block.text.split()) else f"{told} […]"
    return replace(part, blocks=(replace(block, text=told),))


def _kept(parts: Sequence[Part], room: int) -> set[int]:
    """Take the best part that fits, then the opening, then what stands beside or tells as much."""
    if not parts:
        return set()
    most = max(part.told for part in parts)
    opening = parts[0].blocks[0]
    first = _DECLARES if opening.kind == "code" and not is_example(opening) else _FIRST
    # The row of a table opens nothing, nor do imports: they are kept with what needs them.
    first *= not (opening.kind == "table" or (opening.kind == "code" and is_import(opening.text)))
    worth = [part.told + (first * most if at == 0 else 0.0) for at, part in enumerate(parts)]
    kept: set[int] = set()
    heads: set[int] = set()
    left = room
    if opening.kind == "code" and is_declaration(opening) and parts[0].size <= _OF_SIGNATURE * room:
        kept, heads, left = {0}, {parts[0].group}, room - parts[0].size
    defined = _definitions(parts)
    while True:
        found = max(
            (at for at in range(len(parts)) if at not in kept and _cost(parts[at], heads) <= left),
            key=lambda at: (worth[at] + _beside(at, kept, most), -at),
            default=None,
        )
        if found is None or (kept and worth[found] + _beside(found, kept, most) <= _WORTH * most):
            return kept
        for at in (found, *_needed(found, parts, defined)):
            if at not in kept and _cost(parts[at], heads) <= left:
                left -= _cost(parts[at], heads)
                kept.add(at)
                heads.add(parts[at].group)


def _definitions(parts: Sequence[Part]) -> dict[str, int]:
    """Return which part's code defines or imports a name first."""
    found: dict[str, int] = {}
    for at, one in enumerate(parts):
        for name in _NAMED.findall(_code_of(one)):
            found.setdefault(name, at)
    return found


def _needed(at: int, parts: Sequence[Part], defined: Mapping[str, int]) -> list[int]:
    """Return the parts without which nobody knows what the code of one is about: they define what it uses."""
    used = set(_USED.findall(_code_of(parts[at])))
    return sorted({defined[name] for name in used & defined.keys() if defined[name] < at})


def _code_of(part: Part) -> str:
    return "\n".join(block.text for block in part.blocks if block.kind == "code")


def _beside(at: int, kept: set[int], most: float) -> float:
    """What stands next to something kept is worth more there: it reads on, and saves a gap."""
    return 0.2 * most * ((at - 1 in kept) + 0.5 * (at + 1 in kept))


def _cost(part: Part, heads: set[int]) -> int:
    return part.size + (0 if part.group in heads else size_of(part.head))


def _runs(parts: Sequence[Part], kept: set[int]) -> Runs:
    runs: Runs = []
    held: list[Block] = []
    left_out: list[Part] = []
    last: Part | None = None

    def end() -> None:
        nonlocal held, left_out
        runs.extend([tuple(held)] if held else [])
        runs.extend([_left_out(left_out)] if left_out and kept else [])
        held, left_out = [], []

    shown: set[int] = set()
    for at, part in enumerate(parts):
        if at not in kept:
            left_out.append(part)
            continue
        # What is left out of a list of names, or of a table, is told once, below what is kept of it.
        if left_out and not all(
            _is_entry(one) and one.group == part.group for one in (*left_out, last or part)
        ):
            end()
        is_same = last is not None and last.group == part.group and bool(held)
        if part.group not in shown:
            held += part.head
        _add(held, part, is_same=is_same)
        shown.add(part.group)
        last = part
    end()
    return runs


def _is_entry(part: Part) -> bool:
    """Tell whether a part is a row of a table, or an item of a list that begins with the name that it is about."""
    block = part.blocks[0]
    return block.kind == "table" or (block.kind == "list" and label_of(block.text) != "")


def _left_out(parts: Sequence[Part]) -> str:
    """Return the mark of a gap, with the names of the items and rows that were left out there."""
    return gap(_label(part.blocks[0]) for part in parts if part.blocks[0].kind in {"list", "table"})


def _label(block: Block) -> str:
    """Return what an item or a row is about; of a longer list what the first item is."""
    if block.kind == "table":
        return re.sub(r"[`*|\\]", " ", block.text.strip("| ").partition("|")[0][:_ROW]).strip()
    return re.sub(r"\(.*\)$", "()", label_of(block.text))


def _add(held: list[Block], part: Part, *, is_same: bool) -> None:
    """Add a part's blocks; neighbouring items or rows of one list or table make one again."""
    first, *rest = part.blocks
    if held and first.kind == held[-1].kind == "code" and is_same:
        held[-1] = replace(first, text=f"{held[-1].text}\n\n{first.text}")
    elif held and first.kind in {"list", "table"} and held[-1].kind == first.kind and (is_same or part.head):
        held[-1] = Block(kind=first.kind, text=f"{held[-1].text}\n{first.text}", warns=first.warns)
    else:
        held.append(first)
    held += rest


def _parts(unit: Unit, terms: Terms, weights: Sequence[float], room: int) -> Iterator[Part]:
    number = 0
    for blocks in _groups(unit.blocks):
        number += 1
        kinds = {block.kind for block in blocks}
        if size_of(blocks) <= room // (3 if kinds & {"list", "table"} else 1 if "code" in kinds else 2):
            yield Part(tuple(blocks), _told(blocks, terms, weights), number)
            continue
        # Too much to stand together: lists and tables by their items, each with the line that introduces them.
        lead: tuple[Block, ...] = ()
        for block, following in zip(blocks, [*blocks[1:], None], strict=True):
            if block.kind in {"list", "table"} or (block.kind == "prose" and len(block.text) > room // 2):
                number += 1
                head, pieces = _taken_apart(block, room // 4)
                for piece in pieces:
                    item = Block(kind=block.kind, text=piece, warns=block.warns)
                    yield Part((item,), _told([item], terms, weights), number, (*lead, *head))
            elif block.kind == "code" and size_of([block]) > room:
                number += 1
                for code, told in _statements(block, terms, weights):
                    yield Part((code,), told, number)
            elif following and following.kind in {"list", "table"} and len(block.text) <= room // 3:
                lead = (block,)
            else:
                yield Part((block,), _told([block], terms, weights), number)


def _groups(blocks: Sequence[Block]) -> Iterator[list[Block]]:
    """Put together what can't stand alone: a line that ends with a colon and what it announces, code and its prose."""
    held: list[Block] = []
    for block in blocks:
        if held and not _goes_on(held[-1], block):
            yield held
            held = []
        held.append(block)
    if held:
        yield held


def _goes_on(before: Block, block: Block) -> bool:
    if before.text.rstrip().endswith((":", "：")) and before.kind != "code":
        return True
    if block.kind == "code":
        return before.kind in {"prose", "list"}
    if block.kind in {"list", "table"} and _LABELS.fullmatch(before.text):
        return True
    return (block.kind == "prose" and leans_on(block.text)) or points_on(before.text)


def _statements(block: Block, terms: Terms, weights: Sequence[float]) -> list[tuple[Block, float]]:
    """Part code that a report has no room for, before what begins at the margin after an empty line; with what each tells.

    What uses a name that the most telling statement defines tells half as much: it shows how that is put to work.
    """
    pieces = [replace(block, text=piece.strip("\n")) for piece in _MARGIN.split(block.text) if piece.strip()]
    told = [0.0 if is_import(piece.text) else _told([piece], terms, weights) for piece in pieces]
    best = max(range(len(pieces)), key=lambda at: told[at], default=0)
    defined = _DEFINED.findall(pieces[best].text) if pieces else []
    uses = re.compile(rf"\b(?:{'|'.join(defined)})\b") if defined else None
    return [
        (piece, max(own, _USES * told[best] if uses and uses.search(piece.text) else 0.0))
        for piece, own in zip(pieces, told, strict=True)
    ]


def _taken_apart(block: Block, room: int) -> tuple[tuple[Block, ...], list[str]]:
    """Part a list at its outermost items, a table into rows below its head, a paragraph into some sentences each."""
    if block.kind == "prose":
        pieces = [""]
        for sentence in text_parts(block.text):
            if pieces[-1] and len(pieces[-1]) + len(sentence) > room:
                pieces.append("")
            pieces[-1] = f"{pieces[-1]} {sentence}".strip()
        return (), pieces
    if block.kind == "list":
        return (), _top_items(block.text)
    head, rule, *rows = block.text.split("\n")
    return (Block(kind="table", text=f"{head}\n{rule}"),), rows


def _top_items(text: str) -> list[str]:
    found: list[str] = []
    for item in items(text):
        if found and item.startswith(" "):
            found[-1] += f"\n{item}"
        else:
            found.append(item)
    return found


def _told(blocks: Sequence[Block], terms: Terms, weights: Sequence[float]) -> float:
    text = "\n".join(plain(block.text) for block in blocks)
    told = sum(weights[at] for at in terms.within(text))
    return told + 0.5 * sum(weights[at] for at in terms.within(_label(blocks[0])))
