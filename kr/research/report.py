"""The report that kr makes of a research (F1, step 6): an excerpt, a stale baseline or a placeholder. Pure.

An excerpt holds nothing that kr made up: lines of sources are quoted (``> ``) or stand in a fence, and every other line
names a source or is a note about the research. It fits a number of tokens.
"""

import re
from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import accumulate, groupby
from operator import itemgetter

from kr.models import LOCAL_DOCS, PLACEHOLDER_MARK, Confidence, Query, ReportKind
from kr.report import (
    ATTRIBUTION,
    CAVEATS,
    CODE,
    DETAILS,
    STALE_MARK,
    SUMMARY,
    Block,
    ParsedReport,
    fence,
    parse_report,
    plain_line,
    render,
    render_report,
    safe_url,
    split,
    title_of,
)
from kr.sources.base import Answer, Passage, kind_of
from kr.text import beginning, fit, search_words, strip_invisible, tokens_of

# How the room is shared was measured: two passages at length and many in a few lines hold more answers than all alike.
_AT_LENGTH = 2
_LONG, _SHORT = 1_000, 400  # characters of a passage
_SUMMARY = 320
_NAMES = 280  # characters, for the names of further symbols
_EXAMPLES = 0.25  # of the room, for whole examples
_EXAMPLES_FROM = 6  # passages
_LEAST = 120  # characters: a passage that has less room says nothing
_MOST_NEAREST = 8
_LONGEST_CARRIED = 64_000
"""Characters of an older report: with its marks it stays under 256 KiB."""
_NO_CODE = "No code examples were found."
_NEAREST = "Nothing that was found has the rare words of the question. The nearest symbols and pages:"
_NAME = re.compile(r"[\w.@/$:-]+")
_OLD_CONFIDENCE = re.compile(r"^- Confidence: (?:high|medium|low)\b[^\n]*\n?", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What is saved and answered; ``text`` ends with a newline."""

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
    synthesis: Synthesis | None = None,
    max_tokens: int = 1_500,
) -> Report:
    """Write the report of one research; there is always one (F1, step 6: it can't fail).

    Without an answer, or with one that is a gap, it is the ``baseline`` (the text of the stale report) carried over, and
    without that a placeholder. ``today`` is a UTC date.
    """
    if answer is not None and not answer.is_gap:
        return _Excerpt(query, answer, today, max_tokens).write(synthesis)
    if baseline and baseline.strip() and PLACEHOLDER_MARK not in baseline.splitlines():
        return Report(text=_carried_over(baseline, query, today), confidence="low", origin="baseline")
    return _placeholder(query, answer, today)


@dataclass(frozen=True, slots=True)
class _Piece:
    """A passage in its blocks. ``number`` is its source's."""

    title: str
    number: int
    blocks: tuple[Block, ...]

    @property
    def is_symbol(self) -> bool:
        return _NAME.fullmatch(self.title) is not None

    @property
    def line(self) -> str:
        """Name the passage, and its source where it is not the first one."""
        name = f"**{plain_line(self.title, 160)}**" if self.title else ""
        name = f"`{self.title}`" if self.is_symbol else name
        source = f"Source {self.number}" if self.number > 1 or not name else ""
        return f"{name} ({source}):" if name and source else f"{name or source}:"


class _Excerpt:
    def __init__(self, query: Query, answer: Answer, today: date, max_tokens: int) -> None:
        self._query = query
        self._answer = answer
        self._today = today
        self._max_tokens = max_tokens
        self._stems = [beginning(word) for word in search_words(query.topic, query.question, *query.tags)]
        self._addresses: list[str] = []
        self._pieces = list(self._read())

    def _read(self) -> Iterator[_Piece]:
        seen: set[tuple[Block, ...]] = set()
        for passage in self._answer.passages:
            blocks = tuple(split(passage.text))
            if blocks in seen or not blocks:
                continue
            seen.add(blocks)
            address = address_of(passage, self._answer)
            if address not in self._addresses:
                self._addresses.append(address)
            yield _Piece(passage.title or "", self._addresses.index(address) + 1, blocks)

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
        best = self._pieces[0]
        prose = next((at for at, block in enumerate(best.blocks) if not block.is_code), 0)
        start = 0 if best.is_symbol else prose  # a symbol begins with its declaration
        begun = best.blocks[start : prose + 1]
        first = [_head(block, _SUMMARY) for block in begun]
        left = [
            replace(it, text=it.text[len(head.text) :].strip("\n"))
            for it, head in zip(begun, first, strict=True)
        ]
        rest = [*best.blocks[:start], *left, *best.blocks[prose + 1 :]]
        summary = f"{best.line}\n\n{render(first)}"
        examples = self._examples(int(room * _EXAMPLES), without=first)
        code = _rendered(examples)
        done = {*first, *(block for _, block in examples)}
        numbers = {piece.number for piece in (best, *(piece for piece, _ in examples))}
        room -= len(summary) + len(code) + _NAMES
        besides: dict[str, None] = {}
        details: list[str] = []
        for at, piece in enumerate(self._pieces):
            blocks = [it for it in (rest if piece is best else piece.blocks) if it.text and it not in done]
            if not blocks or room < _LEAST:
                besides |= {f"`{piece.title}`": None} if blocks and piece.is_symbol else {}
                continue
            shown = self._window(blocks, min(room, _LONG if at < _AT_LENGTH else _SHORT))
            done.update(shown)  # overloads and re-exports declare a name again
            details.append(f"{piece.line}\n\n{render(shown)}")
            numbers.add(piece.number)
            room -= len(details[-1]) + 2
        # Often the name alone is what was missing.
        names = ", ".join([*besides, ""])[:_NAMES].rpartition(", ")[0]
        details += [f"Named besides: {names}."] if names else []
        elsewhere = "What code there is stands in Summary and Details." if self._has_code else _NO_CODE
        return {
            SUMMARY: summary,
            DETAILS: "\n\n".join(details) or "All that was found stands in Summary and Code Examples.",
            CODE: code or elsewhere,
            CAVEATS: _noted(self._notes()),
            ATTRIBUTION: self._attribution(numbers),
        }

    def _examples(self, room: int, without: Collection[Block] = ()) -> list[tuple[_Piece, Block]]:
        """Return the one or two whole examples that hold most of the question's words, of two passages."""
        found = [
            (self._held(block.text) - 0.5 * at, piece, block)
            for at, piece in enumerate(self._pieces[:_EXAMPLES_FROM])
            for block in piece.blocks[piece.is_symbol :]  # what declares a name is no example of its use
            if block.is_code and block not in without
        ]
        taken: list[tuple[_Piece, Block]] = []
        for score, piece, block in sorted(found, key=lambda row: -row[0]):
            is_other = all(piece is not one and block != other for one, other in taken)
            if is_other and len(block.text) <= room and (not taken or score >= 1):
                taken.append((piece, block))
                room -= len(block.text)
        return taken[:2]

    def _window(self, blocks: Sequence[Block], room: int) -> list[Block]:
        """Return the lines next to one another that fit and hold most of the question's words; the first of equals."""
        lines = [(block, line) for block in blocks for line in [*block.text.split("\n"), ""]]
        ends = [0, *accumulate(len(line) + 1 for _, line in lines)]

        def fitting(start: int) -> list[tuple[Block, str]]:
            return lines[start : max(bisect_right(ends, ends[start] + room) - 1, start + 1)]

        starts = [at for at, (_, line) in enumerate(lines) if line.strip()]
        best = max(starts, key=lambda at: self._held("\n".join(line for _, line in fitting(at))))
        parts = (
            (block, "\n".join(line for _, line in part))
            for block, part in groupby(fitting(best), itemgetter(0))
        )
        return [replace(block, text=text.strip("\n")[:room]) for block, text in parts if text.strip()]

    def _held(self, text: str) -> int:
        folded = text.casefold()
        return sum(stem in folded for stem in self._stems)

    def _written(self, synthesis: Synthesis, room: int) -> dict[str, str]:
        """Put a model's text in place of the passages, beside whole examples of theirs."""
        summary = render(split(fit(synthesis.summary, room // 16)[0]))
        details = render(split(fit(synthesis.details, room // 8)[0]))
        code = _rendered(self._examples(int(0.8 * room) - len(summary) - len(details)))
        note = f"Summary and Details were written by {plain_line(synthesis.model, 100)} from the sources."
        return {
            SUMMARY: summary or "No summary was written.",
            DETAILS: details or "No details were written.",
            CODE: code or _NO_CODE,
            CAVEATS: _noted([*self._notes(), note]),
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

    def _notes(self) -> list[str]:
        cut = [plain_line(p.url or "", 300) for p in self._answer.passages if p.is_cut]
        found = plain_line(self._answer.version or "none", 100)
        names = "is installed" if self._answer.source == LOCAL_DOCS else "is what the source names"
        return [
            _question(self._query),
            f"Confidence: {self._confidence}, from {kind_of(self._answer.source).label}.",
            f"Version: {found} {names}; the request is about {plain_line(self._query.framework_version, 100)}.",
            *([f"Of {cut[0]}, only the beginning was read."] if cut else []),
        ]


def _head(block: Block, room: int) -> Block:
    """Return the first lines of a block that fit; of a line that is longer than the room its first words."""
    if len(block.text) <= room:
        return block
    lines = block.text.split("\n")
    kept = sum(size <= room for size in accumulate(len(line) + 1 for line in lines))
    words = block.text[:room].rpartition(" ")[0] or block.text[:room]
    return replace(block, text="\n".join(lines[:kept]) or words)


def address_of(passage: Passage, answer: Answer) -> str:
    """Return where a passage was read: a web address, or the place inside of a package or folder."""
    own = safe_url(passage.url) or (plain_line(passage.url, 300) if passage.url else None)
    return own or safe_url(answer.url) or "no address"


def _rendered(examples: Sequence[tuple[_Piece, Block]]) -> str:
    return "\n\n".join(f"{piece.line}\n\n{fence(block.text, block.language)}" for piece, block in examples)


def _placeholder(query: Query, answer: Answer | None, today: date) -> Report:
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
        CAVEATS: _noted([_question(query), f"Confidence: low, since {why}."]),
        ATTRIBUTION: "Nothing was taken from a source." if nearest else "No source answered.",
    }
    return Report(text=_report(query, today, "low", [], sections), confidence="low", origin="placeholder")


def _carried_over(old: str, query: Query, today: date) -> str:
    """Return the report of ``query`` whose body is the ``old`` report (F1, step 6.3).

    It keeps version, date and sources of when it was researched. What was carried over before comes back as it is; what somebody
    wrote in a form of his own has the mark before it.
    """
    old = strip_invisible(old)[:_LONGEST_CARRIED]
    report = parse_report(old)
    if report is None:
        return old if old.startswith(STALE_MARK) else f"{STALE_MARK}\n\n{old}"
    if report.sections[SUMMARY].startswith(STALE_MARK):
        return old
    version, when = report.header["Version"], report.header["Research Date"]
    asked = plain_line(query.framework_version, 100)
    notes = [
        "Confidence: low, since no source answered and an older report stands in.",
        f"The text was researched for version {version} ({when}); on {today} version {asked} was asked for.",
    ]
    listed = "\n".join(f"- {note}" for note in notes)
    older = _OLD_CONFIDENCE.sub("", report.sections[CAVEATS]).strip("\n")
    sections = {
        **report.sections,
        SUMMARY: f"{STALE_MARK}\n\n{report.sections[SUMMARY]}",
        CAVEATS: f"Notes on this copy:\n\n{listed}\n\n{older}".strip("\n"),
    }
    header = {**report.header, "Framework": plain_line(query.framework), "Confidence": "low"}
    title = title_of(query.framework, query.topic)
    return render_report(ParsedReport(title=title, header=header, sections=sections))


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


def _noted(notes: Sequence[str]) -> str:
    return "Notes by kr:\n\n" + "\n".join(f"- {note}" for note in notes)


def _question(query: Query) -> str:
    return f"Question: {plain_line(query.question, 300)}"
