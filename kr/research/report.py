"""The report that kr makes of a research (F1, step 6): an excerpt, a stale baseline or a placeholder. Pure.

An excerpt holds nothing that kr made up: lines of sources are quoted (``> ``) or stand in a fence, and every other line
names a source or is a note about the research. It fits a number of tokens.
"""

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from kr.models import LOCAL_DOCS, PLACEHOLDER_MARK, Confidence, Query, ReportKind
from kr.report import (
    ATTRIBUTION,
    CAVEATS,
    CODE,
    DETAILS,
    SUMMARY,
    Block,
    ParsedReport,
    carried_over,
    fence,
    plain_line,
    render,
    render_report,
    safe_url,
    split,
    title_of,
)
from kr.sources.base import SOURCES, Answer, Passage, kind_of
from kr.text import beginning, search_words, tokens_of

# How the room is shared was measured: two passages at length and many in a few lines hold more answers than all alike.
_AT_LENGTH = 2
_LONG, _SHORT = 1_000, 400  # characters of a passage
_SUMMARY = 320
_EXAMPLES = 0.25  # of the room, for whole examples
_NAMES = 300  # characters, for the names of further symbols
_BESIDES = "Named besides: "
_EXAMPLES_FROM = 6  # passages
_LEAST = 120  # characters: a passage that has less room says nothing
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesis:
    """Summary and Details as a model wrote them from the sources: untrusted Markdown."""

    summary: str
    details: str
    model: str


def build_report(
    query: Query,
    *,
    answer: Answer | None,
    baseline: str | None = None,
    today: date,
    notes: Sequence[str] = (),
    synthesis: Synthesis | None = None,
    max_tokens: int = 1_500,
    sources: Collection[str] = SOURCES,
) -> Report:
    """Write the report of one research; there is always one (F1, step 6: it can't fail).

    Without an answer, or with one that is a gap, it is the ``baseline`` (the text of the stale report) carried over, and
    without that a placeholder. ``today`` is a UTC date; degradation ``notes`` of ``sources`` begin with a source's name.
    """
    shown = _notes(notes, sources)
    if answer is not None and not answer.is_gap:
        return _Excerpt(query, answer, today, shown, max_tokens).write(synthesis)
    if baseline and baseline.strip() and PLACEHOLDER_MARK not in baseline.splitlines():
        return Report(text=carried_over(baseline, query, today, shown), confidence="low", origin="baseline")
    return _placeholder(query, answer, today, shown)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A passage in its blocks. ``number`` is its source's."""

    passage: Passage
    number: int
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
        self._stems = [beginning(word) for word in search_words(query.topic, query.question, *query.tags)]
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
            yield _Piece(passage, self._addresses.index(address) + 1, tuple(blocks))

    def write(self, synthesis: Synthesis | None) -> Report:
        """Show the best passages, as many as fit; a model's text takes their place."""
        room = 4 * self._max_tokens
        while True:
            text = self._text(self._written(synthesis, room) if synthesis else self._quoted(room))
            over = tokens_of(text) - self._max_tokens
            if over <= 0 or room <= 0:
                break
            room -= 4 * over + 40  # what stands around the passages
        origin: ReportKind = "installed" if self._answer.source == LOCAL_DOCS else "researched"
        return Report(text=text, confidence=self._confidence, origin=origin)

    def _quoted(self, room: int) -> dict[str, str]:
        """Make Summary of the best passage's first lines, Code Examples of whole examples, Details of the other lines."""
        summary, shown = self._summary()
        examples = self._examples(
            int(room * _EXAMPLES), {block for block, text in shown.items() if block == text}
        )
        code = _rendered(examples)
        taken = {block.text: block.text for _, block in examples} | shown
        numbers = {piece.number for piece in (self._pieces[0], *(piece for piece, _ in examples))}
        left = room - len(code) - len(summary) - _NAMES
        details: list[str] = []
        for at, piece in enumerate(self._pieces):
            if left < _LEAST:
                details += self._named_besides(at)
                break
            text = self._passage(piece, taken, min(left, _LONG if at < _AT_LENGTH else _SHORT))
            if text:
                details.append(f"{piece.line}\n\n{text}")
                numbers.add(piece.number)
                left -= len(details[-1]) + 2
        elsewhere = "What code there is stands in Summary and Details." if self._has_code else _NO_CODE
        return {
            SUMMARY: summary,
            DETAILS: "\n\n".join(details) or "All that was found stands in Summary and Code Examples.",
            CODE: code or elsewhere,
            CAVEATS: _noted([*self._own_notes(), *self._notes]),
            ATTRIBUTION: self._attribution(numbers),
        }

    def _named_besides(self, shown: int) -> list[str]:
        """Return a line of the symbols for whose passages there is no room: often the name alone is what was missing."""
        lines = dict.fromkeys(one.line for one in self._pieces if _NAME.fullmatch(one.passage.title or ""))
        known = {one.line for one in self._pieces[:shown]}
        names = [line.rstrip(":") for line in lines if line not in known]
        fitting = ", ".join([*names, ""])[: _NAMES - len(_BESIDES)].rpartition(", ")[0]
        return [f"{_BESIDES}{fitting}."] if fitting else []

    def _summary(self) -> tuple[str, dict[str, str]]:
        """Return the first lines of the best passage, and by its blocks what they show of each."""
        best = self._pieces[0]
        first = [best.blocks[0]]
        if first[0].is_code and len(best.blocks) > 1:
            is_named = _NAME.fullmatch(best.passage.title or "") is not None
            prose = next((block for block in best.blocks if not block.is_code), None)
            first = [*(first if is_named or prose is None else []), *([prose] if prose else [])]
        shown = {block.text: _within(block.text, _SUMMARY) for block in first}
        parts = [render([replace(block, text=shown[block.text])]) for block in first]
        return "\n\n".join([best.line, *parts]), shown

    def _examples(self, room: int, shown: Collection[str] = ()) -> list[tuple[_Piece, Block]]:
        """Return the one or two whole examples that hold most of the question's words, of two passages; not what is ``shown``."""
        found = [
            (self._held(block.text) - 0.5 * at, piece, block)
            for at, piece in enumerate(self._pieces[:_EXAMPLES_FROM])
            for number, block in enumerate(piece.blocks)
            if block.is_code
            and len(block.text) <= room
            and block.text not in shown
            and not _COMMAND.match(block.text)
            # What declares a name is no example of its use.
            and not (number == 0 and _NAME.fullmatch(piece.passage.title or ""))
        ]
        taken: list[tuple[_Piece, Block]] = []
        for score, piece, block in sorted(found, key=lambda row: -row[0]):
            is_other = all(piece is not one and block.text != other.text for one, other in taken)
            if is_other and len(block.text) <= room and (not taken or score >= 1):
                taken.append((piece, block))
                room -= len(block.text)
            if len(taken) == 2:
                break
        return taken

    def _passage(self, piece: _Piece, shown: dict[str, str], room: int) -> str:
        """Return as much of a passage as fits, without what was shown of its blocks before.

        Blocks stand whole where they fit; else the lines next to one another that hold most of the question's words.
        """
        left = [
            replace(block, text=block.text.removeprefix(shown.get(block.text, "")).strip("\n"))
            for block in piece.blocks
        ]
        left = [block for block in left if block.text]
        if piece.blocks[0].is_code:  # overloads and re-exports declare a name again
            shown.setdefault(piece.blocks[0].text, piece.blocks[0].text)
        if sum(len(block.text) + 2 for block in left) <= room:
            return render(left)
        lines = [(line, block) for block in left for line in [*block.text.split("\n"), ""]]
        start, stop = self._best([line for line, _ in lines], room)
        parts: list[tuple[Block, list[str]]] = []
        for line, block in lines[start:stop]:
            if not parts or parts[-1][0] is not block:
                parts.append((block, []))
            parts[-1][1].append(line)
        kept = [replace(block, text="\n".join(held).strip("\n")[:room]) for block, held in parts]
        return render([block for block in kept if block.text.strip()])

    def _best(self, lines: Sequence[str], room: int) -> tuple[int, int]:
        """Return from where to where lines fit into the room and hold most of the question's words; the first of equals."""
        best = (-1, 0, 1)
        for start, line in enumerate(lines):
            if not line.strip():
                continue
            stop, size = start, 0
            while stop < len(lines) and (stop == start or size + len(lines[stop]) < room):
                size += len(lines[stop]) + 1
                stop += 1
            held = self._held("\n".join(lines[start:stop]))
            if held > best[0]:
                best = (held, start, stop)
            if stop == len(lines):
                break
        return best[1], best[2]

    def _held(self, text: str) -> int:
        folded = text.casefold()
        return sum(stem in folded for stem in self._stems)

    def _written(self, synthesis: Synthesis, room: int) -> dict[str, str]:
        """Put a model's text in place of the passages, beside whole examples of theirs."""
        summary, details = _fitting(synthesis.summary, room // 4), _fitting(synthesis.details, room // 2)
        code = _rendered(self._examples(int(0.8 * room) - len(summary) - len(details))) or _NO_CODE
        note = f"Summary and Details were written by {plain_line(synthesis.model, 100)} from the sources."
        return {
            SUMMARY: summary or "No summary was written.",
            DETAILS: details or "No details were written.",
            CODE: code,
            CAVEATS: _noted([*self._own_notes(), note, *self._notes]),
            ATTRIBUTION: self._attribution({piece.number for piece in self._pieces}),
        }

    def _text(self, sections: dict[str, str]) -> str:
        urls = [url for url in map(safe_url, self._addresses) if url]
        where = " (installed)" if self._answer.source == LOCAL_DOCS else ""
        urls = urls or [f"{address}{where}" for address in self._addresses]
        return _report(self._query, self._today, self._confidence, urls[:5], sections)

    def _attribution(self, numbers: set[int]) -> str:
        via = plain_line(self._answer.source, 40)
        return "\n".join(f"- Source {n}: {self._addresses[n - 1]} (via {via})" for n in sorted(numbers))

    @property
    def _has_code(self) -> bool:
        return any(block.is_code for piece in self._pieces for block in piece.blocks)

    @property
    def _confidence(self) -> Confidence:
        kind = kind_of(self._answer.source)
        # A copy of a page adds no passage: each stands here once.
        if self._answer.source == "web_search" and len({piece.number for piece in self._pieces}) > 1:
            return "medium"
        return kind.with_code if self._has_code else kind.confidence

    def _own_notes(self) -> list[str]:
        cut = [plain_line(p.url or "", 300) for p in self._answer.passages if p.is_cut]
        found = plain_line(self._answer.version or "none", 100)
        names = "is installed" if self._answer.source == LOCAL_DOCS else "is what the source names"
        return [
            _question(self._query),
            f"Confidence: {self._confidence}, from {kind_of(self._answer.source).label}.",
            f"Version: {found} {names}; the request is about {plain_line(self._query.framework_version, 100)}.",
            *([f"Of {cut[0]}, only the beginning was read."] if cut else []),
        ]


def address_of(passage: Passage, answer: Answer) -> str:
    """Return where a passage was read: a web address, or the place inside of a package or folder."""
    own = safe_url(passage.url) or (plain_line(passage.url, 300) if passage.url else None)
    return own or safe_url(answer.url) or "no address"


def _rendered(examples: Sequence[tuple[_Piece, Block]]) -> str:
    return "\n\n".join(f"{piece.line}\n\n{fence(block.text, block.language)}" for piece, block in examples)


def _placeholder(query: Query, answer: Answer | None, today: date, notes: Sequence[str]) -> Report:
    """Say that nothing was found, with the names of what comes nearest."""
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
        CAVEATS: _noted([_question(query), f"Confidence: low, since {why}.", *notes]),
        ATTRIBUTION: "Nothing was taken from a source." if nearest else "No source answered.",
    }
    return Report(text=_report(query, today, "low", [], sections), confidence="low", origin="placeholder")


def _report(
    query: Query, today: date, level: Confidence, urls: Sequence[str], sections: dict[str, str]
) -> str:
    header = {
        "Framework": plain_line(query.framework),
        "Version": plain_line(query.framework_version),
        "Research Date": today.isoformat(),
        "Confidence": level,
        "Sources": ", ".join(urls) or "none",
    }
    title = title_of(query.framework, query.topic)
    return render_report(ParsedReport(title=title, header=header, sections=sections))


def _within(text: str, room: int) -> str:
    """Return the first lines that fit, at least one; of a line that is longer than the room its first words."""
    kept: list[str] = []
    for line in text.split("\n"):
        if kept and sum(map(len, kept)) + len(line) > room:
            break
        kept.append(line)
    lines = "\n".join(kept).rstrip()
    return lines[: 2 * room].rpartition(" ")[0] + " …" if len(lines) > 2 * room else lines


def _fitting(markdown: str, room: int) -> str:
    """Return a model's text, cleaned, as far as whole blocks fit."""
    kept: list[Block] = []
    for block in split(markdown):
        room -= len(block.text) + 8
        if room < 0:
            kept += [] if kept else [replace(block, text=block.text[: room + len(block.text)])]
            break
        kept.append(block)
    return render(kept)


def _noted(notes: Sequence[str]) -> str:
    return "Notes by kr:\n\n" + "\n".join(f"- {note}" for note in notes)


def _question(query: Query) -> str:
    return f"Question: {plain_line(query.question, 300)}"


def _notes(notes: Sequence[str], sources: Collection[str]) -> list[str]:
    """Return the notes for a report; of sources that did not answer the names alone: why concerns one machine."""
    silent = dict.fromkeys(name for note in notes if (name := note.partition(":")[0]) in sources)
    others = [
        note for note in notes if note.strip() and note.partition(":")[0] not in {*silent, _PERSONA_NOTE}
    ]
    first = [f"No answer came from: {', '.join(silent)}."] if silent else []
    return [*first, *(plain_line(note, 200) for note in others)][:_MOST_NOTES]
