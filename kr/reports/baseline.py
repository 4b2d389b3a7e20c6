"""A stale report carried over when no source answers (SPEC 3.3 and 3.7; seed 000, step 6.3).

What it says stays what was researched then: its version, date and sources stay in the header. Carrying a
report over twice gives the same as once, but for the note that tells what was asked.
"""

import re
from collections.abc import Sequence
from datetime import date

from kr.reports.template import (
    ATTRIBUTION,
    CAVEATS,
    CODE,
    DETAILS,
    MAX_REPORT_BYTES,
    SUMMARY,
    Shape,
    read_date,
    read_shape,
    read_version,
    title_of,
    write_shape,
)
from kr.text.characters import strip_invisible
from kr.text.inline import plain_line
from kr.text.markdown import is_harmless, render_all, split
from kr.values import Query

STALE_MARK = "[Based on stale cache, re-research recommended]"
SKELETON_MARK = "[No research results available, manual research required]"

_NOTES = "Notes on this copy:"
_OLD_NOTES = re.compile(rf"^{_NOTES}\n\n(?:- [^\n]*(?:\n|\Z))+\n*", re.MULTILINE)
_OLD_MARK = re.compile(rf"^(?:> ?)*{re.escape(STALE_MARK)}[ \t]*$\n*", re.MULTILINE)
_OLD_CONFIDENCE = re.compile(r"^- Confidence: (?:high|medium|low)\b[^\n]*\n?", re.MULTILINE)
_HEAD_BYTES = 16 * 1024


def carried_over(old: str, query: Query, today: date, notes: Sequence[str]) -> str:
    """Return the report of ``query`` whose body is the ``old`` report; ``notes`` are safe lines.

    A report that does not follow the template, or holds what kr would not have written, is quoted whole.
    """
    old = strip_invisible(old)
    shape = _kept(old)
    sections = dict(shape.sections) if shape else _quoted(old)
    version = shape.header["Version"] if shape else plain_line(read_version(old) or "unknown")
    when = read_date(old)
    sections[SUMMARY] = f"{STALE_MARK}\n\n{sections[SUMMARY].removeprefix(STALE_MARK).strip()}"
    sections[CAVEATS] = _with_notes(sections[CAVEATS], _own_notes(query, version, when, today, notes))
    header = {
        "Framework": plain_line(query.framework),
        "Version": version,
        "Research Date": when or "unknown",
        "Confidence": "low",
        "Sources": shape.header["Sources"] if shape else "none",
    }
    return write_shape(Shape(title=title_of(query.framework, query.topic), header=header, sections=sections))


def _kept(old: str) -> Shape | None:
    """Take apart a report that can stand as it is."""
    shape = read_shape(old)
    if shape is None or len(old.encode()) > MAX_REPORT_BYTES - _HEAD_BYTES:
        return None
    texts = (*shape.header.values(), *shape.sections.values())
    return shape if all(is_harmless(text) for text in texts) else None


def _own_notes(query: Query, version: str, when: str | None, today: date, notes: Sequence[str]) -> list[str]:
    asked = plain_line(query.framework_version, 100)
    researched = f"on {when}" if when else "at an unknown date"
    return [
        "Confidence: low, since no source answered and an older report stands in.",
        f"The text was researched {researched} for version {version}; on {today} version {asked} was asked for.",
        *notes,
    ]


def _with_notes(caveats: str, notes: Sequence[str]) -> str:
    older = _OLD_CONFIDENCE.sub("", _OLD_NOTES.sub("", caveats)).strip("\n")
    return "\n".join([_NOTES, "", *(f"- {note}" for note in notes), "", older]).strip("\n")


def _quoted(old: str) -> dict[str, str]:
    left = MAX_REPORT_BYTES - _HEAD_BYTES
    parts: list[str] = []
    cut = "[Cut here: the rest of the earlier report would not fit]"
    for part in render_all(split(_OLD_MARK.sub("", old))):
        left -= len(part.encode()) + 2
        if left < 0:
            parts.append(cut)
            break
        parts.append(part)
    return {
        SUMMARY: "The earlier report does not follow the template; it is quoted whole under Details.",
        DETAILS: "\n\n".join(["From the earlier report:", *parts]),
        CODE: "Code of the earlier report stands in its place under Details.",
        CAVEATS: "",
        ATTRIBUTION: "No source answered; sources of the earlier report stand in its text under Details.",
    }
