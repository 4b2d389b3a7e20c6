"""The report's text (SPEC 3.7; seed 000, step 6). Pure, and the same for equal input.

Extractive: every sentence is either quoted from a source, which is named, or a note that kr makes about its
own research. Lines of sources are quoted (``> ``) or stand in a fence; all other lines are kr's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from kr.reports.baseline import SKELETON_MARK, carried_over
from kr.reports.extracts import GAP, extract, weights_of
from kr.reports.outcome import CONTEXT7, DEEPWIKI, LOCAL_DOCS, WEB_SEARCH, confidence, distinct_pages
from kr.reports.passages import Material, Origin, Ranked, Unit, ranked, read_answer
from kr.reports.persona import Persona
from kr.reports.summary import Quotation, Summary, caveats, summarize
from kr.reports.template import (
    ATTRIBUTION,
    CAVEATS,
    CODE,
    DETAILS,
    SUMMARY,
    Shape,
    read_confidence,
    title_of,
    write_shape,
)
from kr.reports.terms import Terms, question_terms
from kr.text.inline import as_paragraph, plain_line, safe_url
from kr.text.markdown import quote, render_all, split
from kr.values import Answer, Confidence, Query
from kr.values import Origin as ReportOrigin

__all__ = ["SKELETON_MARK", "Report", "Synthesis", "build_report", "read_confidence"]

_DETAILS_BYTES = 72 * 1024
_CODE_BYTES = 88 * 1024
_SENTENCES_BYTES = 12 * 1024
_SUMMARY_SENTENCES = 5
_CAVEAT_SENTENCES = 14
_MAX_NOTES = 40
_NO_SENTENCE = "No single sentence of the sources answers the question. From the passage that comes nearest:"

_WHY: dict[str, str] = {
    CONTEXT7: "official documentation through Context7",
    DEEPWIKI: "an answer of DeepWiki about the framework's own repository",
    WEB_SEARCH: "web pages",
    LOCAL_DOCS: "the installed package's own documentation alone, no online source",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """``text`` is at most 256 KiB in UTF-8 and ends with a newline."""

    text: str
    confidence: Confidence
    origin: ReportOrigin


@dataclass(frozen=True, slots=True, kw_only=True)
class Synthesis:
    """Summary and Details as a language model wrote them from the sources: untrusted Markdown."""

    summary: str
    details: str
    model: str


def build_report(
    query: Query,
    *,
    answer: Answer | None,
    baseline: str | None = None,
    today: date,
    persona: Persona,
    notes: Sequence[str] = (),
    synthesis: Synthesis | None = None,
) -> Report:
    """Write the report of one research; there is always one (seed 000, step 6: it cannot fail).

    Without an answer it is the ``baseline`` (the text of the stale report) carried over, and without that
    a skeleton. ``today`` is a UTC date, ``notes`` are the degradation notes.
    """
    material = read_answer(answer) if answer else Material()
    if answer and material.units:
        told = [*_persona_note(persona), *_told(notes)]
        return _researched(query, answer, material, today=today, notes=told, synthesis=synthesis)
    if baseline and baseline.strip() and SKELETON_MARK not in baseline.splitlines():
        text = carried_over(baseline, query, today, _told(notes))
        return Report(text=text, confidence="low", origin="baseline")
    return _skeleton(query, today, [*_persona_note(persona), *_told(notes)])


def _researched(
    query: Query,
    answer: Answer,
    material: Material,
    *,
    today: date,
    notes: Sequence[str],
    synthesis: Synthesis | None,
) -> Report:
    terms = question_terms(query.framework, query.question, query.topic)
    rows = ranked(material.units, terms)
    units = [row.unit for row in rows]
    code = _code(units)
    if synthesis:
        told = _written(synthesis.summary, "No summary was written.")
        details = _written(synthesis.details, "No details were written.")
    else:
        summary = summarize(rows, terms, _SUMMARY_SENTENCES)
        told, details = _summary(summary), _details(rows, terms, summary)
    level = confidence([answer], query.question, has_code=any(unit.code for unit in units))
    own = [
        _confidence_note(level, answer, has_code=bool(code)),
        _version_note(query, answer),
        *material.omitted,
        *notes,
    ]
    if synthesis:
        own.append(
            f"Summary and Details were written by {plain_line(synthesis.model, 100)} from the sources."
        )
    sections = {
        SUMMARY: _question(query) + told,
        DETAILS: details,
        CODE: code or "No code examples were found.",
        CAVEATS: _caveats(own, caveats(_with_the_rest(rows, material.units), terms, _CAVEAT_SENTENCES)),
        ATTRIBUTION: "\n".join(
            f"- Source {origin.number}: {origin.address} (via {origin.source})" for origin in material.origins
        ),
    }
    urls = [origin.url for origin in material.origins if origin.url]
    home = safe_url(answer.url)
    if home and not urls:
        urls = [home]
    shape = _shape(query, today, level, urls, sections)
    origin: ReportOrigin = "installed" if answer.source == LOCAL_DOCS else "researched"
    return Report(text=write_shape(shape), confidence=level, origin=origin)


def _with_the_rest(rows: Sequence[Ranked], units: Sequence[Unit]) -> list[Ranked]:
    """Add the passages that share no word with the question: those below "Known issues" may concern it."""
    held = {id(row.unit) for row in rows}
    return [*rows, *(Ranked(unit, 0.0) for unit in units if id(unit) not in held)]


def _skeleton(query: Query, today: date, notes: Sequence[str]) -> Report:
    sections = {
        SUMMARY: f"{_question(query)}{SKELETON_MARK}",
        DETAILS: "No details were found.",
        CODE: "No code examples were found.",
        CAVEATS: _caveats(["Confidence: low, since no source answered.", *notes], []),
        ATTRIBUTION: "No source answered.",
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


def _question(query: Query) -> str:
    return f"Question:\n\n{quote(as_paragraph(plain_line(query.question, 2000)))}\n\n"


def _summary(found: Summary) -> str:
    told = _sentences(found.quotations)
    if not told:
        return "The sources answer in code and tables; see Details and Code Examples."
    return told if found.is_answer else f"{_NO_SENTENCE}\n\n{told}"


def _details(rows: Sequence[Ranked], terms: Terms, summary: Summary) -> str:
    weights = weights_of(rows, terms)
    best = max((row.score for row in rows), default=0.0)
    parts: list[str] = []
    place: tuple[Origin, str | None] | None = None
    for row in rows:
        if not row.unit.prose:
            continue
        quoted = [quotation.original for quotation in summary.quotations if quotation.unit is row.unit]
        runs = extract(row, terms, weights, best=best, quoted=quoted)
        told = [GAP if blocks is None else "\n\n".join(render_all(blocks)) for blocks in runs]
        before, place = place, (row.unit.origin, row.unit.heading)
        above = "" if before == place else _from(row.unit.origin) + _heading(row.unit, "\n>\n")
        if not above and told[0] != GAP and not parts[-1].endswith(GAP):
            above = f"{GAP}\n\n"
        parts.append(above + "\n\n".join(told))
    return _within(_DETAILS_BYTES, parts, "passage") or "The sources hold code only."


def _code(units: Sequence[Unit]) -> str:
    parts: dict[str, str] = {}
    for unit in units:
        above = _from(unit.origin) + _heading(unit, "\n\n")
        for block in unit.code:
            parts.setdefault(block.text, above + render_all([block])[0])
    return _within(_CODE_BYTES, list(parts.values()), "code example")


def _caveats(notes: Sequence[str], sentences: Sequence[Quotation]) -> str:
    quoted = _sentences(sentences)
    return "Notes by kr:\n\n" + "\n".join(f"- {note}" for note in notes) + (f"\n\n{quoted}" if quoted else "")


def _sentences(found: Sequence[Quotation]) -> str:
    """Quote sentences under the heading that they stand below, without which few can be understood."""
    by_place: dict[tuple[int, str | None], list[Quotation]] = {}
    for quotation in found:
        place = (quotation.unit.origin.number, quotation.unit.heading)
        by_place.setdefault(place, []).append(quotation)
    parts = [
        _from(group[0].unit.origin) + _heading(group[0].unit, "\n>\n") + _in_a_row(group)
        for group in by_place.values()
    ]
    return _within(_SENTENCES_BYTES, parts, "quotation")


def _in_a_row(group: Sequence[Quotation]) -> str:
    text = ""
    for quotation, before in zip(group, [None, *group], strict=False):
        between = "" if before is None else f"\n\n{GAP}\n\n" if before.is_cut else "\n>\n"
        text += between + quote(quotation.text)
    return f"{text}\n\n{GAP}" if group[-1].is_cut else text


def _heading(unit: Unit, end: str) -> str:
    return quote(f"**{unit.heading}**") + end if unit.heading else ""


def _from(origin: Origin) -> str:
    return f"From Source {origin.number} ({origin.source}):\n\n"


def _written(markdown: str, nothing: str) -> str:
    return _within(_DETAILS_BYTES // 2, render_all(split(markdown)), "passage") or nothing


def _within(limit: int, parts: Sequence[str], what: str) -> str:
    """Join the parts that fit into ``limit`` bytes; a part is taken whole or not at all."""
    kept: list[str] = []
    left = limit
    for part in parts:
        size = len(part.encode()) + 2
        if size <= left:
            kept.append(part)
            left -= size
    omitted = len(parts) - len(kept)
    if omitted:
        kept.append(f"[Cut here: {omitted} more {what}{'s' if omitted > 1 else ''} would not fit]")
    return "\n\n".join(kept)


def _told(notes: Sequence[str]) -> list[str]:
    return [as_paragraph(plain_line(note, 300)) for note in notes if note.strip()][:_MAX_NOTES]


def _persona_note(persona: Persona) -> list[str]:
    principles = plain_line("; ".join(persona.principles), 400)
    name = plain_line(persona.name, 80)
    return [f"Evaluated under the principles of {name}: {principles}"] if principles else []


def _confidence_note(level: Confidence, answer: Answer, *, has_code: bool) -> str:
    why = _WHY.get(answer.source, plain_line(answer.source, 40))
    if answer.source == CONTEXT7:
        why += ", with code examples" if has_code else ", without code examples"
    elif answer.source == WEB_SEARCH:
        if level == "medium":
            why += " that agree"
        elif len(distinct_pages(answer)) == 1:
            why = "one web page"
        else:
            why += " that do not confirm one another"
    return f"Confidence: {level}, from {why}."


def _version_note(query: Query, answer: Answer) -> str:
    asked = plain_line(query.framework_version, 100)
    if not answer.version:
        return f"Version: {asked} was asked for; the source names no version."
    return f"Version: {asked} was asked for; the source speaks of {plain_line(answer.version, 100)}."
