"""The report of one research (SPEC 3.7; seed 000, step 6): an excerpt of passages, a model's text, a baseline or a placeholder. Pure.

An excerpt holds nothing that kr made up: lines of sources are quoted (``> ``) or stand in a fence, and every other line names a source
or is a note about the research. It is written for a number of tokens.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date

from kr.documents.rank import question_of
from kr.markdown import Block, fence, plain_line, render, safe_url, split
from kr.report import (
    ATTRIBUTION,
    CAVEATS,
    CODE,
    DETAILS,
    PLACEHOLDER_MARK,
    SUMMARY,
    Shape,
    carried_over,
    title_of,
    write_shape,
)
from kr.research.synthesis import Synthesis, address_of
from kr.source_kinds import SOURCES, is_package, is_pages, kind_of
from kr.text import tokens_of
from kr.values import Answer, Confidence, Passage, Query, ReportKind

MAX_TOKENS = 1_500
"""Of a report, where the settings say nothing else (``report_max_tokens``)."""

# How the room is shared was measured: two passages at length and many in a few lines have more of all answers than all alike.
_AT_LENGTH = 2
_LONG, _SHORT, _SIGNATURE = 1_000, 400, 600  # characters of a passage, and of the signature above its text
_SUMMARY = 320
_EXAMPLES = 0.25  # of the room, for whole examples
_EXAMPLES_FROM = 6  # passages
_LEAST = 120  # characters: a passage that has less room says nothing
_STEM = 5
_MOST_NEAREST = 8
_MOST_NOTES = 6
_NO_CODE = "No code examples were found."
_NEAREST = "Nothing that was found has the rare words of the question. The nearest symbols and pages:"
_NAME = re.compile(r"[\w.@/$:-]+")
_COMMAND = re.compile(
    r"\s*(?:[$>#] )?(?:sudo )?(?:python3? -m )?(?:npm|npx|yarn|pnpm|bun|pip3?|uv|poetry|conda|brew|apt(?:-get)?) "
)
_PERSONA_NOTE = "persona_load_failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """``text`` ends with a newline; it is at most 256 KiB in UTF-8 where an older report is carried over."""

    text: str
    confidence: Confidence
    origin: ReportKind


def build_report(
    query: Query,
    *,
    answer: Answer | None,
    baseline: str | None = None,
    today: date,
    notes: Sequence[str] = (),
    synthesis: Synthesis | None = None,
    max_tokens: int = MAX_TOKENS,
    sources: Collection[str] = SOURCES,
) -> Report:
    """Write the report of one research; there is always one (seed 000, step 6: it cannot fail).

    Without an answer, or with one that is a gap, it is the ``baseline`` (the text of the stale report) carried over, and without
    that a placeholder. ``today`` is a UTC date, ``notes`` are the degradation notes, those of ``sources`` begin with a source's name.
    A model's ``synthesis`` says itself what a gap is.
    """
    told = _told(notes, sources)
    is_answered = answer is not None and (not answer.is_gap if synthesis is None else synthesis.answers)
    if answer is not None and is_answered:
        return _Excerpt(query, answer, today, told, max_tokens).write(synthesis)
    if baseline and baseline.strip() and PLACEHOLDER_MARK not in baseline.splitlines():
        return Report(text=carried_over(baseline, query, today, told), confidence="low", origin="baseline")
    return _placeholder(query, answer, today, told)


def confidence(source: str, *, has_code: bool = False, pages: int = 0) -> Confidence:
    """Return the confidence of a report of one source's answer (SPEC 3.7); ``pages``: how many web pages say something of their own."""
    kind = kind_of(source)
    if is_pages(source) and pages > 1:
        return "medium"
    return kind.with_code if has_code else kind.confidence


@dataclass(frozen=True, slots=True)
class _Piece:
    """A passage in its blocks; ``signature``: the code that declares the name that it is about."""

    passage: Passage
    number: int
    signature: Block | None
    blocks: tuple[Block, ...]

    @property
    def line(self) -> str:
        """Name the passage, and its source where it is not the first one."""
        title = self.passage.title or ""
        name = f"`{title}`" if _NAME.fullmatch(title) else f"**{plain_line(title, 160)}**" if title else ""
        source = f"Source {self.number}" if self.number > 1 or not name else ""
        return f"{name} ({source}):" if name and source else f"{name or source}:"


class _Excerpt:
    def __init__(
        self, query: Query, answer: Answer, today: date, notes: Sequence[str], max_tokens: int
    ) -> None:
        self._query = query
        self._answer = answer
        self._today = today
        self._notes = notes
        self._max_tokens = max_tokens
        self._stems = [word[:_STEM] for word in question_of(query).words]
        self._addresses: list[str] = []
        self._pieces = list(self._read())

    def _read(self) -> Iterator[_Piece]:
        seen: set[str] = set()
        for passage in self._answer.passages:
            blocks = split(passage.text)
            whole = render(blocks)
            if whole in seen or not whole:
                continue
            seen.add(whole)
            address = address_of(passage, self._answer)
            if address not in self._addresses:
                self._addresses.append(address)
            is_named = blocks[0].is_code and _NAME.fullmatch(passage.title or "") is not None
            yield _Piece(
                passage,
                self._addresses.index(address) + 1,
                blocks[0] if is_named else None,
                tuple(blocks[1:] if is_named else blocks),
            )

    def write(self, synthesis: Synthesis | None) -> Report:
        """Show the best passages, as many as fit; a model's text takes their place."""
        room = 4 * self._max_tokens
        level = self._confidence(self._pieces)
        while True:
            sections = self._written(synthesis, room) if synthesis else self._sections(room)
            text = self._text(sections, level)
            over = tokens_of(text) - self._max_tokens
            if over <= 0 or room <= 0:
                break
            room -= 4 * over + 40  # what stands around the passages
        origin: ReportKind = "installed" if is_package(self._answer.source) else "researched"
        return Report(text=text, confidence=level, origin=origin)

    def _sections(self, room: int) -> dict[str, str]:
        examples = self._examples(int(room * _EXAMPLES))
        taken = {block.text for _, block in examples}
        code = "\n\n".join(
            f"{piece.line}\n\n{fence(block.text, block.language)}" for piece, block in examples
        )
        summary, said = self._summary()
        signatures = {text for text, first in said.items() if text == first}
        left = room - len(code) - len(summary)
        details: list[str] = []
        shown: list[_Piece] = [piece for piece, _ in examples]
        for at, piece in enumerate(self._pieces):
            if left < _LEAST:
                break
            most = min(left, _LONG if at < _AT_LENGTH else _SHORT)
            text = self._passage(piece, taken, said, signatures, most)
            if text:
                details.append(f"{piece.line}\n\n{text}")
                shown.append(piece)
                left -= len(details[-1]) + 2
        shown.append(self._pieces[0])
        return {
            SUMMARY: summary,
            DETAILS: "\n\n".join(details) or "All that was found stands in Summary and Code Examples.",
            CODE: code
            or (_NO_CODE if not self._has_code(shown) else "What code there is stands in Details."),
            CAVEATS: _noted([*self._own_notes(), *self._notes]),
            ATTRIBUTION: self._attribution({piece.number for piece in shown}),
        }

    def _summary(self) -> tuple[str, dict[str, str]]:
        """Return the first lines of the best passage, and by its blocks what they hold of each."""
        best = self._pieces[0]
        prose = next((block for block in best.blocks if not block.is_code), None)
        shown = [best.signature] if best.signature else []
        shown += [prose] if prose else [] if best.signature else [best.blocks[0]]
        parts, said = [best.line], dict[str, str]()
        for block in shown:
            said[block.text] = _within(block.text, _SUMMARY)
            parts.append(render([_with(block, said[block.text])]))
        return "\n\n".join(parts), said

    def _examples(self, room: int) -> list[tuple[_Piece, Block]]:
        """Return the one or two whole examples that hold most of the question's words, of two passages."""
        found = [
            (self._held(block.text) - 0.5 * at, piece, block)
            for at, piece in enumerate(self._pieces[:_EXAMPLES_FROM])
            for block in piece.blocks
            if block.is_code and len(block.text) <= room and not _COMMAND.match(block.text)
        ]
        found.sort(key=lambda row: -row[0])
        taken: list[tuple[_Piece, Block]] = []
        for score, piece, block in found:
            is_other = all(piece is not one and block.text != other.text for one, other in taken)
            if is_other and len(block.text) <= room and (not taken or score >= 1):
                taken.append((piece, block))
                room -= len(block.text)
            if len(taken) == 2:
                break
        return taken

    def _passage(
        self, piece: _Piece, taken: set[str], said: dict[str, str], signatures: set[str], room: int
    ) -> str:
        """Return as much of a passage as fits, without what the Summary ``said`` and what was ``taken`` as an example.

        A signature that was shown before is not shown again.
        """
        parts: list[str] = []
        signature = piece.signature
        if signature is not None and signature.text not in signatures:
            signatures.add(signature.text)
            most = min(room, _SIGNATURE if piece.blocks else room)
            rest = signature.text.removeprefix(said.get(signature.text, "")).strip("\n")
            parts.append(fence(self._window(rest, most), signature.language))
        left = [
            _with(block, block.text.removeprefix(said.get(block.text, "")).strip("\n"))
            for block in piece.blocks
        ]
        return "\n\n".join(
            [*parts, *self._cut([one for one in left if one.text and one.text not in taken], room)]
        )

    def _cut(self, blocks: Sequence[Block], room: int) -> list[str]:
        """Return blocks whole where they fit, else the lines next to one another that hold most of the question's words."""
        size = sum(len(block.text) + 2 for block in blocks)
        if size <= room:
            return [render([block]) for block in blocks]
        lines = [(line, block) for block in blocks for line in [*block.text.split("\n"), ""]]
        start, stop = self._best([line for line, _ in lines], room)
        parts: list[tuple[Block, list[str]]] = []
        for line, block in lines[start:stop]:
            if not parts or parts[-1][0] is not block:
                parts.append((block, []))
            parts[-1][1].append(line)
        kept = [
            Block(text="\n".join(held).strip("\n")[:room], is_code=block.is_code, language=block.language)
            for block, held in parts
        ]
        return [render([block]) for block in kept if block.text.strip()]

    def _window(self, text: str, room: int) -> str:
        if len(text) <= room:
            return text
        lines = text.split("\n")
        start, stop = self._best(lines, room)
        return "\n".join(lines[start:stop])[: max(room, 0)]

    def _best(self, lines: Sequence[str], room: int) -> tuple[int, int]:
        """Return from where to where lines fit into the room and hold most of the question's words; the first of equals."""
        best = (-1, 0, 1)
        folded = [line.casefold() for line in lines]
        for start in range(len(lines)):
            if not lines[start].strip():
                continue
            stop, size = start, 0
            while stop < len(lines) and (stop == start or size + len(lines[stop]) < room):
                size += len(lines[stop]) + 1
                stop += 1
            held = self._held("\n".join(folded[start:stop]))
            if held > best[0]:
                best = (held, start, stop)
            if stop == len(lines):
                break
        return best[1], best[2]

    def _held(self, text: str) -> int:
        folded = text.casefold()
        return sum(stem in folded for stem in self._stems)

    def _written(self, synthesis: Synthesis, room: int) -> dict[str, str]:
        """Put a model's text in place of the passages, with an example of theirs where it has none."""
        summary, details = _fitting(synthesis.summary, room // 4), _fitting(synthesis.details, room // 2)
        code = "The examples stand above, as the model took them."
        if not any(block.is_code for block in split(synthesis.details + "\n\n" + synthesis.summary)):
            left = int(0.8 * room) - len(summary) - len(details)
            examples = self._examples(left)
            code = (
                "\n\n".join(f"{piece.line}\n\n{fence(b.text, b.language)}" for piece, b in examples)
                or _NO_CODE
            )
        note = f"Summary and Details were written by {plain_line(synthesis.model, 100)} from the sources."
        return {
            SUMMARY: summary or "No summary was written.",
            DETAILS: details or "No details were written.",
            CODE: code,
            CAVEATS: _noted([*self._own_notes(), note, *self._notes]),
            ATTRIBUTION: self._attribution({piece.number for piece in self._pieces}),
        }

    def _text(self, sections: dict[str, str], level: Confidence) -> str:
        urls = [url for url in map(safe_url, self._addresses) if url]
        if not urls:
            urls = [
                f"{one} (installed)" if is_package(self._answer.source) else one for one in self._addresses
            ]
        return write_shape(_shape(self._query, self._today, level, urls[:5], sections))

    def _attribution(self, numbers: set[int]) -> str:
        via = plain_line(self._answer.source, 40)
        return "\n".join(f"- Source {n}: {self._addresses[n - 1]} (via {via})" for n in sorted(numbers))

    def _has_code(self, pieces: Iterable[_Piece]) -> bool:
        return any(block.is_code for piece in pieces for block in piece.blocks) or any(
            p.signature for p in pieces
        )

    def _confidence(self, pieces: Sequence[_Piece]) -> Confidence:
        has_code = any(block.is_code for piece in pieces for block in piece.blocks)
        # A copy of a page adds no passage: each stands here once.
        return confidence(
            self._answer.source, has_code=has_code, pages=len({piece.number for piece in pieces})
        )

    def _own_notes(self) -> list[str]:
        level = self._confidence(self._pieces)
        cut = [plain_line(p.url or "", 300) for p in self._answer.passages if p.is_cut]
        return [
            _asked(self._query),
            f"Confidence: {level}, from {kind_of(self._answer.source).label}.",
            _version_note(self._query, self._answer),
            *([f"Of {cut[0]}, only the beginning was read."] if cut else []),
        ]


def _placeholder(query: Query, answer: Answer | None, today: date, notes: Sequence[str]) -> Report:
    """Tell a gap as a gap, with the names of what comes nearest (SPEC 3.7)."""
    nearest = dict.fromkeys(
        f"- {plain_line(passage.title or '', 160)}, {address_of(passage, answer)}"
        for passage in (answer.passages if answer else ())
        if answer and passage.title
    )
    listed = "\n".join([*nearest][:_MOST_NEAREST])
    why = "what was found does not cover the question" if nearest else "no source answered"
    sections = {
        SUMMARY: PLACEHOLDER_MARK,
        DETAILS: f"{_NEAREST}\n\n{listed}" if nearest else "No details were found.",
        CODE: _NO_CODE,
        CAVEATS: _noted([_asked(query), f"Confidence: low, since {why}.", *notes]),
        ATTRIBUTION: "Nothing was taken from a source." if nearest else "No source answered.",
    }
    return Report(
        text=write_shape(_shape(query, today, "low", [], sections)), confidence="low", origin="skeleton"
    )


def _shape(
    query: Query, today: date, level: Confidence, urls: Sequence[str], sections: dict[str, str]
) -> Shape:
    header = {
        "Framework": plain_line(query.framework),
        "Version": plain_line(query.framework_version),
        "Research Date": today.isoformat(),
        "Confidence": level,
        "Sources": ", ".join(urls) or "none",
    }
    return Shape(title=title_of(query.framework, query.topic), header=header, sections=sections)


def _with(block: Block, text: str) -> Block:
    return Block(text=text, is_code=block.is_code, language=block.language)


def _within(text: str, room: int) -> str:
    """Return the first lines that fit, at least one; of a line that is longer than the room its first sentences."""
    kept: list[str] = []
    for line in text.split("\n"):
        if kept and sum(map(len, kept)) + len(line) > room:
            break
        kept.append(line)
    told = "\n".join(kept).rstrip()
    if len(told) > 2 * room:
        told = told[: 2 * room].rpartition(" ")[0] + " …"
    return told


def _fitting(markdown: str, room: int) -> str:
    """Return a model's text, cleaned, as far as whole blocks fit."""
    kept: list[Block] = []
    for block in split(markdown):
        room -= len(block.text) + 8
        if room < 0:
            kept += [] if kept else [Block(text=block.text[: room + len(block.text)])]
            break
        kept.append(block)
    return render(kept)


def _noted(notes: Sequence[str]) -> str:
    return "Notes by kr:\n\n" + "\n".join(f"- {note}" for note in notes)


def _asked(query: Query) -> str:
    return f"Question: {plain_line(query.question, 300)}"


def _told(notes: Sequence[str], sources: Collection[str]) -> list[str]:
    """Tell the notes; of sources that did not answer the names alone: why concerns one machine, and a report is everybody's."""
    silent = dict.fromkeys(name for note in notes if (name := note.partition(":")[0]) in sources)
    others = [
        note for note in notes if note.strip() and note.partition(":")[0] not in {*silent, _PERSONA_NOTE}
    ]
    told = [f"No answer came from: {', '.join(silent)}."] if silent else []
    return [*told, *(plain_line(note, 200) for note in others)][:_MOST_NOTES]


def _version_note(query: Query, answer: Answer) -> str:
    asked, told = plain_line(query.framework_version, 100), plain_line(answer.version or "", 100)
    if asked == "unknown":
        return f"Version: none was asked for; the source names {told or 'none'}."
    if not told:
        return f"Version: the request is about {asked}; the source names none."
    kind = "is installed" if is_package(answer.source) else "is what the source is about"
    return (
        f"Version: {told} {kind}."
        if told == asked
        else f"Version: {told} {kind}, and the request is about {asked}."
    )
