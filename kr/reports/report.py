"""The report's text (SPEC 3.7; seed 000, step 6). Pure, and the same for equal input.

Extractive: every sentence is either quoted from a source, which is named, or a note that kr makes about its
own research. Lines of sources are quoted (``> ``) or stand in a fence; all other lines are kr's.

A report fits a context: it is made for a number of tokens, estimated as ``kr.text.counting.tokens_of`` does. The best passage
gets up to 0.3 of it, and the others share what Summary, further lines, examples and caveats leave.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise

from kr.naming import sha256_of
from kr.reports.choosing import Ranked, choose, covers, is_doubtful
from kr.reports.excerpts import Runs, excerpt, gap, weights_of
from kr.reports.passages import Material, Origin, Unit, is_declaration, is_example, read_answer
from kr.reports.persona import Synthesis
from kr.reports.summary import Quotation, Summary, caveats, gist, summarize
from kr.reports.template import (
    ATTRIBUTION,
    CAVEATS,
    CODE,
    DETAILS,
    SKELETON_MARK,
    SUMMARY,
    Shape,
    carried_over,
    read_confidence,
    title_of,
    write_shape,
)
from kr.reports.terms import Terms, is_subject, question_terms
from kr.source_kinds import SOURCES, is_answer, is_package, is_pages
from kr.text.counting import tokens_of
from kr.text.inline import as_paragraph, plain_line, safe_url
from kr.text.markdown import Block, quote, render_all, split
from kr.text.sentences import items, label_of, plain
from kr.values import Answer, Confidence, Query, ReportKind

__all__ = ["MAX_TOKENS", "SKELETON_MARK", "Report", "Synthesis", "build_report", "read_confidence"]

MAX_TOKENS = 3000
"""Of a report, where the settings say nothing else (``report_max_tokens``)."""

_DETAILS = 0.53  # of the report's characters
_SHARES = (0.55, 0.27, 0.15, 0.08, 0.06)
"""Of the room for Details: what the passages may take, the best first."""
_EXAMPLES = 0.1
_WRITTEN = 0.77  # what a model's Summary and Details and the examples beside them may take
_SENTENCES = 0.07  # for the sentences of the Summary, and for those of the caveats
_LEAST = 240  # characters: a passage that has less room is left out
_LEAST_SHOWN = 0.3  # of the question: an example that holds less is shown with its passage or not at all
_MOST_NOTES = 6
_MOST_NEAREST = 8
_MOST_UNSPOKEN = 4
_GIST = 300  # characters of sentences of each
_LINE = 80  # characters that the line of a passage's source takes, about
_MOST_FURTHER, _MOST_FURTHER_OF_PACKAGE = 10, 7
_LINE_OF_FURTHER = 260
_OF_BEST_FURTHER = 0.2  # of the best passage's score: a section of a page that has less is not told
_SIGNATURE = re.compile(r"`(?:[a-z]+ )*([\w.:$]+)\([^`]*`")
"""A name with its parameters, and what kind of thing it is before it."""
_BOLD = re.compile(r"(`[^`]*`)|\*\*")
"""Marks of bold text, and code, in which ``**kwargs`` is none."""
_NEXT_DECLARED = re.compile(
    r"\n\n(?=\w)"
)  # at the margin: what is indented, or a bracket, belongs to the one before
_MEMBERS_OF = re.compile(r"(?:Other m|M)embers of `([^`]+)`:")
_FURTHER = "Found besides, in a line each:"
_DOUBT = "Doubtful: these passages say little of what was asked for, and nearly half of such reports do not answer it."
_NO_CODE = "No code examples were found."
_NEAREST = "kr can't tell whether any of this answers the question. The nearest symbols and pages:"
_NEAREST_CODE = "What code there is stands in Details, with the nearest symbols and pages."
_NO_VERSION = "kr knows of none that the source is about"
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
) -> Report:
    """Write the report of one research; there is always one (seed 000, step 6: it cannot fail).

    Without an answer that covers the question it is the ``baseline`` (the text of the stale report) carried over, and
    without that a skeleton, which names what was found nearest. ``today`` is a UTC date, ``notes`` are the degradation notes.
    Where a model wrote a ``synthesis``, it has judged what covers, otherwise words do.
    """
    material = read_answer(answer) if answer else Material()
    terms = question_terms(query.framework, query.question, query.topic, query.tags)
    choice = choose(material.units, terms)
    is_answer = choice.covers if synthesis is None else synthesis.answers and bool(choice.taken)
    if answer and is_answer:
        room = int(max_tokens * _characters_per_token(choice.taken))
        writer = _Writer(query, answer, material, terms, today, notes, max_tokens, room, choice.rows)
        return writer.write(choice.taken, synthesis)
    if baseline and baseline.strip() and SKELETON_MARK not in baseline.splitlines():
        text = carried_over(baseline, query, today, _told(notes))
        return Report(text=text, confidence="low", origin="baseline")
    return _skeleton(query, choice.rows, terms, today, notes)


@dataclass(frozen=True, slots=True)
class _Shown:
    """A passage as far as the report shows it."""

    row: Ranked
    runs: Runs

    @property
    def blocks(self) -> list[Block]:
        return [block for run in self.runs if not isinstance(run, str) for block in run]

    def render(self) -> str:
        return "\n\n".join(run if isinstance(run, str) else "\n\n".join(render_all(run)) for run in self.runs)


class _Sources:
    """The sources that a report takes from, numbered in the order in which it does."""

    def __init__(self, units: Iterable[Unit]) -> None:
        self._origins: dict[str, Origin] = {}
        for unit in units:
            self._origins.setdefault(unit.origin.address, unit.origin)
        self._numbers = {address: number for number, address in enumerate(self._origins, start=1)}

    def line(self, unit: Unit, lead: str = "From") -> str:
        """The one line that names a passage's source, and the headings that it stands below."""
        return f"{lead} {self.number(unit)}:{' ' if unit.heading else ''}{_bold(unit)}"

    def number(self, unit: Unit) -> str:
        return f"Source {self._numbers[unit.origin.address]}"

    def attribution(self) -> str:
        return "\n".join(
            f"- Source {self._numbers[address]}: {address} (via {origin.source})"
            for address, origin in self._origins.items()
        )

    def head(self, home: str | None = None) -> list[str]:
        """What the header names: addresses, of an installed package its name and version; else ``home``."""
        found = [
            origin.url or f"{origin.address.partition(', ')[0]} (installed)"
            for origin in self._origins.values()
            if origin.url or is_package(origin.source)
        ]
        return list(dict.fromkeys(found)) or [url for url in [safe_url(home)] if url]

    def only_begun(self, cut: frozenset[str]) -> list[str]:
        return [
            f"Of Source {number}, only the beginning was read."
            for address, number in self._numbers.items()
            if address in cut
        ]


@dataclass(frozen=True, slots=True)
class _Writer:
    """Writes the report of one answer in ``max_tokens``, which are about ``room`` characters of it."""

    query: Query
    answer: Answer
    material: Material
    terms: Terms
    today: date
    notes: Sequence[str]
    max_tokens: int
    room: int
    rows: Sequence[Ranked]

    def write(self, taken: Sequence[Ranked], synthesis: Synthesis | None) -> Report:
        """Show as many of the passages as fit, at least the best."""
        shown = _fitted(taken, self.terms, int(_DETAILS * self.room))
        level = self._confidence(taken)
        while True:
            text = self._text(shown, level, synthesis)
            if tokens_of(text) <= self.max_tokens or len(shown) == 1:
                origin: ReportKind = "installed" if is_package(self.answer.source) else "researched"
                return Report(text=text, confidence=level, origin=origin)
            shown.pop()

    def _text(self, shown: Sequence[_Shown], level: Confidence, synthesis: Synthesis | None) -> str:
        further = _further(self.rows, shown, self.terms)
        told = [*(one.row.unit for one in shown), *(one.unit for one in further)]
        # A model refers to all that it was given, by the numbers that these had.
        sources = _Sources(self.material.units if synthesis else told)
        passages = [(one.row.unit, one.blocks) for one in shown]
        summaries = summarize(passages, self.terms, int(_SENTENCES * self.room))
        # Where a model wrote the text it has told what to mind.
        warned = [] if synthesis else caveats([one.row for one in shown], self.terms, summaries[0].sentences)
        sections = {
            SUMMARY: "\n\n".join(_summary(summaries, sources)),
            DETAILS: "\n\n".join(f"{sources.line(one.row.unit)}\n\n{one.render()}" for one in shown)
            + _listed(further, sources),
            CODE: _examples(shown, self.terms, summaries[0], sources, int(_EXAMPLES * self.room)),
            CAVEATS: _noted(self._own_notes(level, shown, sources, synthesis))
            + _warnings(warned, sources, int(_SENTENCES * self.room)),
            ATTRIBUTION: sources.attribution(),
        }
        if synthesis:
            summary = _written(synthesis.summary, self.room // 5)
            details = _written(synthesis.details, self.room // 2)
            left = int(_WRITTEN * self.room) - len(summary) - len(details)
            sections[SUMMARY] = summary or "No summary was written."
            sections[DETAILS] = details or "No details were written."
            sections[CODE] = _unwritten(
                shown, self.terms, f"{summary}\n\n{details}", sources, max(left, int(_EXAMPLES * self.room))
            )
        return write_shape(_shape(self.query, self.today, level, sources.head(self.answer.url), sections))

    def _own_notes(
        self, level: Confidence, shown: Sequence[_Shown], sources: _Sources, synthesis: Synthesis | None
    ) -> list[str]:
        found = [
            _asked(self.query),
            self._confidence_note(level, shown),
            *([] if synthesis else self._doubt([one.row.unit for one in shown])),
            *([] if synthesis else _unspoken([one.row.unit for one in shown], self.terms)),
            _version_note(self.query, self.answer),
            *sources.only_begun(self.material.cut),
        ]
        if synthesis:
            found.append(
                f"Summary and Details were written by {plain_line(synthesis.model, 100)} from the sources."
            )
        return [*found, *_told(self.notes)]

    def _confidence(self, taken: Sequence[Ranked]) -> Confidence:
        has_code = any(block.kind == "code" for row in taken for block in row.unit.blocks)
        return confidence(self.answer.source, has_code=has_code, agreeing=self._agreeing(taken))

    def _agreeing(self, taken: Sequence[Ranked]) -> int:
        """Count the distinct pages whose taken passages cover the question."""
        if not is_pages(self.answer.source):
            return 0
        pages: dict[str | None, list[Unit]] = {}
        for row in taken:
            pages.setdefault(row.unit.origin.url, []).append(row.unit)
        known = copies(self.answer)
        return len({known.get(url) for url, units in pages.items() if covers(units, self.terms)})

    def _doubt(self, units: Sequence[Unit]) -> list[str]:
        is_doubt = not is_answer(self.answer.source) and is_doubtful(units, self.terms)
        return [_DOUBT] if is_doubt else []

    def _confidence_note(self, level: Confidence, shown: Sequence[_Shown]) -> str:
        kind = SOURCES[self.answer.source]
        why = kind.label
        if kind.with_code != kind.confidence:
            why += ", with code examples" if level == kind.with_code else ", without code examples"
        elif kind.form == "pages":
            pages = len({one.row.unit.origin.address for one in shown})
            why = (
                f"{why} that agree" if level == "medium"
                else "one web page" if pages == 1
                else f"{why} that do not confirm one another"
            )  # fmt: skip
        return f"Confidence: {level}, from {why}."


def _unspoken(units: Sequence[Unit], terms: Terms) -> list[str]:
    """Say which words of topic, tags and question that texts are about no passage has, where the passages were not written for it."""
    if not units or is_answer(units[0].origin.source):
        return []
    said = terms.within("\n".join(f"{unit.title}\n{unit.text}" for unit in units))
    asked = terms.parts[0] if terms.parts else {}
    sought = [*terms.need, *(at for at, light in asked.items() if light >= 1.0)]
    missing = dict.fromkeys(terms.all[at].word for at in sought if at not in said)
    words = [as_paragraph(word) for word in missing if is_subject(word)][:_MOST_UNSPOKEN]
    return [f"The passages do not speak of: {', '.join(words)}."] if words else []


def _characters_per_token(taken: Sequence[Ranked]) -> float:
    text = "".join(row.unit.text for row in taken)
    return len(text) / tokens_of(text) if text else 1.0


def _fitted(taken: Sequence[Ranked], terms: Terms, room: int) -> list[_Shown]:
    """Bring the passages to their sizes: the best first, the others from what it leaves."""
    weights = weights_of([row.unit for row in taken], terms)
    shown: list[_Shown] = []
    left = room
    declared: set[str] = set()
    for row in (replace(one, unit=_once(one.unit, declared)) for one in taken):
        one = _sized(row, terms, weights, min(left, int(_SHARES[len(shown)] * room)))
        if one is None:
            continue
        shown.append(one)
        left -= len(one.render()) + _LINE
        if left < _LEAST:
            break
    return shown or [_Shown(taken[0], [gap()])]


def _once(unit: Unit, declared: set[str]) -> Unit:
    """Return a passage without the declarations that one before it has shown, of what both take; and remember its own."""

    def without(block: Block) -> Block:
        if not (is_package(unit.origin.source) and is_declaration(block)):
            return block
        own, *others = _NEXT_DECLARED.split(block.text)
        kept = [own, *(one for one in others if one not in declared)]
        declared.update([own, *others])
        return replace(block, text="\n\n".join(kept))

    return replace(unit, blocks=tuple(map(without, unit.blocks)))


def _sized(row: Ranked, terms: Terms, weights: Sequence[float], room: int) -> _Shown | None:
    """Cut a passage until it fits as it is rendered: quotation marks take room too."""
    aim = room
    for _ in range(4):
        one = _Shown(row, excerpt(row.unit, terms, weights, aim))
        if one.blocks and len(one.render()) <= room:
            return one
        aim = int(0.8 * aim)
    return None


def _further(rows: Sequence[Ranked], shown: Sequence[_Shown], terms: Terms) -> list[Quotation]:
    """Return what was found besides, a line each: a member beside the one shown."""
    named = {one.row.unit.heading for one in shown}
    listed = {name for one in shown for name in _members(one.blocks)}
    found: dict[str, Quotation] = {}
    least = _OF_BEST_FURTHER * max((row.score for row in rows), default=0.0)
    is_of_package = bool(rows) and is_package(rows[0].unit.origin.source)
    most = _MOST_FURTHER_OF_PACKAGE if is_of_package else _MOST_FURTHER
    for row in rows:
        if is_pages(row.unit.origin.source) and row.score < least:
            continue
        heading = row.unit.heading
        if len(found) == most or is_answer(row.unit.origin.source):
            break
        if not heading or heading in named or heading in found or row.is_warned_off:
            continue
        if _last_two(heading) in listed:
            continue
        if line := gist(row.unit, terms, _LINE_OF_FURTHER):
            found[heading] = Quotation(row.unit, line)
    return list(found.values())


def _members(blocks: Sequence[Block]) -> Iterator[str]:
    """Yield what a passage lists of its class or module (``Siblings`` of ``kr.packages.pieces``): ``Process.kill``, ``kill`` of a package."""
    for lead, block in pairwise(blocks):
        owner = _MEMBERS_OF.fullmatch(lead.text)
        for item in items(block.text) if owner and block.kind == "list" else ():
            name = label_of(item).partition("(")[0]
            yield from (f"{owner[1]}.{name}", name) if owner else ()


def _last_two(heading: str) -> str:
    return ".".join(heading.strip("`").split(".")[-2:])


def _listed(further: Sequence[Quotation], sources: _Sources) -> str:
    if not further:
        return ""
    lines = (f"- {sources.number(one.unit)}, {_bold(one.unit)}: {one.text}" for one in further)
    return f"\n\n{_FURTHER}\n\n" + quote("\n".join(lines))


def _skeleton(
    query: Query, nearest: Sequence[Ranked], terms: Terms, today: date, notes: Sequence[str]
) -> Report:
    """Tell a gap as a gap, with what comes nearest in a few lines each (SPEC 3.7)."""
    units = list({row.unit.heading: row.unit for row in reversed(nearest) if row.unit.heading}.values())[::-1]
    units = units[:_MOST_NEAREST]
    sources = _Sources(units)
    told = [summarize([(unit, unit.blocks)], terms, _GIST)[0] for unit in units]
    why = "what was found does not cover the question" if units else "no source answered"
    found = "\n\n".join([_NEAREST, *_summary(told, sources, "From")])
    sections = {
        SUMMARY: SKELETON_MARK,
        DETAILS: found if units else "No details were found.",
        CODE: _NEAREST_CODE if any(one.code for one in told) else _NO_CODE,
        CAVEATS: _noted(
            [_asked(query), f"Confidence: low, since {why}.", *_unspoken(units, terms), *_told(notes)]
        ),
        ATTRIBUTION: sources.attribution() or "No source answered.",
    }
    shape = _shape(query, today, "low", sources.head(), sections)
    return Report(text=write_shape(shape), confidence="low", origin="skeleton")


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


def _bold(unit: Unit) -> str:
    """Return the headings of a passage on one line, the last one whole, of the others that are signatures the names."""
    *above, last = unit.path[-3:] or ("",)
    told = " > ".join([*(_SIGNATURE.sub(r"`\1`", part) for part in above), last])
    return f"**{_BOLD.sub(lambda found: found[1] or '', plain(told))}**" if told else ""


def _summary(
    summaries: Sequence[Summary], sources: _Sources, others: str = "Less likely, from"
) -> Iterator[str]:
    """Tell the answer of the first passage, then what of others answers nearly as well."""
    for at, summary in enumerate(summaries):
        yield sources.line(summary.unit, others if at else "From")
        if summary.sentences:
            yield quote("\n".join(summary.sentences))
        yield from render_all(summary.code)


def _examples(shown: Sequence[_Shown], terms: Terms, summary: Summary, sources: _Sources, room: int) -> str:
    """The example that tells most of the question, whole, where Details had no room for it: a second time it would be ballast."""
    code = [(at, b) for at, one in enumerate(shown) for b in one.row.unit.blocks if is_example(b)]
    held = {block.text for one in shown for block in one.blocks}
    shows = [terms.coverage(terms.within(block.text)) for _, block in code]
    for rank in sorted(range(len(code)), key=lambda rank: 0.1 * code[rank][0] - shows[rank]):
        at, block = code[rank]
        text = f"{sources.line(shown[at].row.unit)}\n\n{render_all([block])[0]}"
        if block.text in held or shows[rank] < _LEAST_SHOWN:
            break
        if len(text) <= room:
            return text
    told = {block.text.strip() for block in summary.code}
    if any(block.text in held and block.text.strip() not in told for _, block in code):
        return "The examples stand in Details, with their passages."
    return "The example stands in the Summary." if any(b.text.strip() in told for _, b in code) else _NO_CODE


def _unwritten(shown: Sequence[_Shown], terms: Terms, written: str, sources: _Sources, room: int) -> str:
    """The examples of the sources where a model's text, which stands in place of the passages, holds none.

    Those that tell most of the question go first; as many as fit, and where none does whole, what the passages' excerpts keep.
    """
    if any(map(is_example, split(written))):
        return "The examples stand above, as the model took them."
    for passages in ([one.row.unit.blocks for one in shown], [one.blocks for one in shown]):
        code = [(at, b) for at, blocks in enumerate(passages) for b in blocks if b.kind == "code"]
        code = [(at, b) for at, b in code if is_example(b)] or code
        code.sort(key=lambda pair: 0.1 * pair[0] - terms.coverage(terms.within(pair[1].text)))
        found: list[str] = []
        left = room
        for at, block in code:
            text = f"{sources.line(shown[at].row.unit)}\n\n{render_all([block])[0]}"
            if len(text) <= left:
                found.append(text)
                left -= len(text) + 2
        if found:
            return "\n\n".join(found)
    has_code = any(block.kind == "code" for one in shown for block in one.row.unit.blocks)
    return "The examples of the sources are longer than this report may be." if has_code else _NO_CODE


def _noted(notes: Sequence[str]) -> str:
    return "Notes by kr:\n\n" + "\n".join(f"- {note}" for note in notes)


def _warnings(found: Sequence[Quotation], sources: _Sources, room: int) -> str:
    """Quote what warns, by its source."""
    by_source: dict[str, list[str]] = {}
    for quotation in found:
        room -= len(quotation.text) + 4
        if room >= 0:
            by_source.setdefault(sources.number(quotation.unit), []).append(quotation.text)
    return "".join(
        f"\n\nFrom {number}:\n\n" + quote("\n\n".join(texts)) for number, texts in by_source.items()
    )


def _asked(query: Query) -> str:
    return f"Question: {as_paragraph(plain_line(query.question, 300))}"


def _written(markdown: str, room: int) -> str:
    """Return a model's text as blocks that fit, whole."""
    kept: list[Block] = []
    for block in split(markdown):
        room -= len(block.text) + 8
        if room < 0:
            break
        kept.append(block)
    return "\n\n".join(render_all(kept))


def _told(notes: Sequence[str]) -> list[str]:
    """Tell the notes, of the sources that did not answer the names alone: why concerns one machine, and a report is everybody's."""
    silent = dict.fromkeys(name for note in notes if (name := note.partition(":")[0]) in SOURCES)
    others = [
        note
        for note in notes
        if note.strip() and not note.startswith(_PERSONA_NOTE) and note.partition(":")[0] not in SOURCES
    ]
    told = [f"No answer came from: {', '.join(silent)}."] if silent else []
    return [*told, *(as_paragraph(plain_line(note, 200)) for note in others)][:_MOST_NOTES]


def _version_note(query: Query, answer: Answer) -> str:
    asked = plain_line(query.framework_version, 100)
    if asked == "unknown":
        told = f"the source names {plain_line(answer.version, 100)}" if answer.version else _NO_VERSION
        return f"Version: none was asked for; {told}."
    if not answer.version:
        return f"Version: the request is about {asked}; {_NO_VERSION}."
    told = plain_line(answer.version, 100)
    if is_package(answer.source):
        other = "" if told == asked else f", and the request is about {asked}"
        return f"Version: {told} is installed{other}."
    return f"Version: the request is about {asked}, the source about {told}."


_READ_FOR_COPIES = 1_000_000  # characters of a page
_COMPARED = 100_000
# A link's target, which differs between copies: relative ones are made absolute.
_ADDRESS = r"\]\([^()\s]*\)|https?://[^\s<>()]+"
_WORD = r"[^\W_]+"


def confidence(source: str, *, has_code: bool = False, agreeing: int = 0) -> Confidence:
    """Return the confidence of a report that was made from one source's answer (SPEC 3.7's table).

    ``has_code`` tells whether the answer holds at least one code example, ``agreeing`` how many distinct web pages
    have taken passages that cover the question.
    """
    kind = SOURCES.get(source)
    if kind is None:
        return "low"
    if is_pages(source) and agreeing > 1:
        return "medium"
    return kind.with_code if has_code else kind.confidence


def copies(answer: Answer) -> dict[str | None, str]:
    """Return a digest of each page's words by its address: addresses with equal digests hold one page.

    Passages of one address are one page, and a page confirms itself as little as a copy does. Links differ between
    copies, so they don't count.
    """
    from kr.text.inline import safe_url

    texts: dict[str | None, str] = {}
    for passage in answer.passages:
        url = safe_url(passage.url) or safe_url(answer.url)
        texts[url] = f"{texts.get(url, '')}\n{passage.text}"[:_READ_FOR_COPIES]
    return {url: _words_digest(text) for url, text in texts.items()}


def _words_digest(text: str) -> str:
    words = " ".join(re.findall(_WORD, re.sub(_ADDRESS, " ", text).casefold()))
    return sha256_of(words[:_COMPARED].encode("utf-8", "replace"))
