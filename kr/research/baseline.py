"""A stale report that stands in where nothing better was found (F1, step 6.3). Pure."""

import re
from collections.abc import Sequence
from datetime import date

from kr.markdown import is_harmless, plain_line, render, split
from kr.models import Query
from kr.report import (
    ATTRIBUTION,
    CAVEATS,
    CODE,
    DETAILS,
    MAX_REPORT_BYTES,
    STALE_MARK,
    SUMMARY,
    ParsedReport,
    parse_report,
    read_date,
    read_version,
    render_report,
    title_of,
)
from kr.text import strip_invisible

_OWN_NOTES = "Notes on this copy:"
_OLD_NOTES = re.compile(rf"^{_OWN_NOTES}\n\n(?:- [^\n]*(?:\n|\Z))+\n*", re.MULTILINE)
_OLD_CONFIDENCE = re.compile(r"^- Confidence: (?:high|medium|low)\b[^\n]*\n?", re.MULTILINE)
_OLD_MARK = re.compile(rf"^(?:> ?)*{re.escape(STALE_MARK)}[ \t]*$\n*", re.MULTILINE)
_HEAD_BYTES = 16 * 1024


def carried_over(old: str, query: Query, today: date, notes: Sequence[str]) -> str:
    """Return the report of ``query`` whose body is the ``old`` report (F1, step 6.3); ``notes`` are safe lines.

    It keeps version, date and sources of when it was researched; carried over twice it is the same but for the note of
    what was asked. A report that does not follow the template, or holds what kr would not have written, is quoted whole.
    """
    old = strip_invisible(old)
    parsed = _trusted(old)
    sections = dict(parsed.sections) if parsed else _quoted_whole(old)
    version = parsed.header["Version"] if parsed else plain_line(read_version(old) or "unknown")
    when = read_date(old)
    asked = plain_line(query.framework_version, 100)
    researched = f"on {when}" if when else "at an unknown date"
    own_notes = [
        "Confidence: low, since no source answered and an older report stands in.",
        f"The text was researched {researched} for version {version}; on {today} version {asked} was asked for.",
        *notes,
    ]
    older = _OLD_CONFIDENCE.sub("", _OLD_NOTES.sub("", sections[CAVEATS])).strip("\n")
    listed = "\n".join(f"- {note}" for note in own_notes)
    sections[SUMMARY] = f"{STALE_MARK}\n\n{sections[SUMMARY].removeprefix(STALE_MARK).strip()}"
    sections[CAVEATS] = f"{_OWN_NOTES}\n\n{listed}\n\n{older}".strip("\n")
    header = {
        "Framework": plain_line(query.framework),
        "Version": version,
        "Research Date": when or "unknown",
        "Confidence": "low",
        "Sources": parsed.header["Sources"] if parsed else "none",
    }
    title = title_of(query.framework, query.topic)
    return render_report(ParsedReport(title=title, header=header, sections=sections))


def _trusted(old: str) -> ParsedReport | None:
    """Take apart a report that can stand as it is."""
    parsed = parse_report(old)
    if parsed is None or len(old.encode()) > MAX_REPORT_BYTES - _HEAD_BYTES:
        return None
    return parsed if all(map(is_harmless, (*parsed.header.values(), *parsed.sections.values()))) else None


def _quoted_whole(old: str) -> dict[str, str]:
    left = MAX_REPORT_BYTES - _HEAD_BYTES
    parts: list[str] = []
    for part in (render([block]) for block in split(_OLD_MARK.sub("", old))):
        left -= len(part.encode()) + 2
        if left < 0:
            parts.append("[Cut here: the rest of the earlier report would not fit]")
            break
        parts.append(part)
    return {
        SUMMARY: "The earlier report does not follow the template; it is quoted whole under Details.",
        DETAILS: "\n\n".join(["From the earlier report:", *parts]),
        CODE: "Code of the earlier report stands in its place under Details.",
        CAVEATS: "",
        ATTRIBUTION: "No source answered; sources of the earlier report stand in its text under Details.",
    }
