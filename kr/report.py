"""The template of a report (F1, step 6.1): rendered, parsed, carried over, and what a report's own words say of it. Pure.

``kr.research.report`` makes reports; imports, the doctor and the page read them.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta

from kr.markdown import plain_line, render, split
from kr.models import PLACEHOLDER_MARK, Confidence, Query, ReportKind
from kr.text import sections as split_sections
from kr.text import strip_invisible
from kr.times import parse_time

HEADER = ("Framework", "Version", "Research Date", "Confidence", "Sources")
SECTIONS = (
    "Summary",
    "Details",
    "Code Examples",
    "Caveats & Version-Specific Notes",
    "Source Attribution",
)
SUMMARY, DETAILS, CODE, CAVEATS, ATTRIBUTION = SECTIONS

_HEADER_LINE = re.compile(rf"\*\*({'|'.join(HEADER)}):\*\* (.*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedReport:
    """A report taken apart. ``header`` has the keys of ``HEADER``, ``sections`` those of ``SECTIONS``."""

    title: str
    header: Mapping[str, str]
    sections: Mapping[str, str]


def title_of(framework: str, topic: str) -> str:
    """Return the first line. Whatever the names hold, it is one heading of harmless text."""
    return f"# {plain_line(framework)} - {plain_line(topic)}"


def render_report(report: ParsedReport) -> str:
    """Return the report's text. It ends with one newline."""
    lines = [report.title, "", *(f"**{key}:** {report.header[key]}" for key in HEADER)]
    for name in SECTIONS:
        lines += ["", f"## {name}", "", report.sections[name].strip("\n")]
    return "\n".join(lines) + "\n"


def parse_report(text: str) -> ParsedReport | None:
    """Take a report apart; ``None`` when it does not follow the template."""
    title, _, rest = text.partition("\n\n")
    parts = split_sections(rest)
    # A section that is there twice leaves a part of the text before the first one, where no header reads so.
    head = rest[: len(rest) - sum(map(len, parts.values()))]
    found = [_HEADER_LINE.fullmatch(line) for line in head.strip("\n").split("\n")]
    header = {line[1]: line[2] for line in found if line}
    is_whole = len(found) == len(header) and tuple(header) == HEADER and tuple(parts) == SECTIONS
    if not re.fullmatch(r"# \S.*", title) or not is_whole:
        return None
    sections = {name: part.partition("\n")[2].strip("\n") for name, part in parts.items()}
    return ParsedReport(title=title, header=header, sections=sections)


def read_confidence(text: str) -> Confidence | None:
    """Return the confidence that a report's header gives, in whatever spelling; ``None`` without one."""
    levels: dict[str, Confidence] = {"high": "high", "medium": "medium", "low": "low"}
    return levels.get((_header_line(text, "confidence", r":?[ \t*_]*(high|medium|low)\b") or "").lower())


def read_date(text: str) -> str | None:
    """Return the research date (``YYYY-MM-DD``) that a report's header gives."""
    return _header_line(text, "research date", r":[ \t*_]*(\d{4}-\d\d-\d\d)\b")


def _header_line(text: str, name: str, value: str) -> str | None:
    header = re.split(r"(?m)^##", text[:20_000], maxsplit=1)[0]
    found = re.search(rf"(?im)^[ \t*_-]*{name}[ \t*_]*{value}", header)
    return found[1] if found else None


STALE_MARK = "[Based on stale cache, re-research recommended]"

INSTALLED_DOCS_LAST = timedelta(days=1)
"""How long an answer from the installed documentation alone is fresh."""

_INSTALLED = "(via local_docs)"
_OWN_NOTES = "Notes on this copy:"
_OLD_CONFIDENCE = re.compile(r"^- Confidence: (?:high|medium|low)\b[^\n]*\n?", re.MULTILINE)
_LONGEST_CARRIED = 64_000
"""Characters: quoted and escaped they stay under 256 KiB."""


def origin_of(text: str) -> ReportKind:
    """Say from a report's own words what it was made from; a text of another shape counts as researched."""
    parsed = parse_report(text)
    # What is quoted in a report of the template is a source's.
    lines = [line.strip("> \t") for line in text.splitlines()]
    if parsed:
        lines = parsed.sections[SUMMARY].splitlines()
    if PLACEHOLDER_MARK in lines:
        return "skeleton"
    if STALE_MARK in lines:
        return "baseline"
    attribution = parsed.sections[ATTRIBUTION].splitlines() if parsed else []
    sources = [line for line in attribution if line.startswith("- Source ")]
    return "installed" if sources and all(line.endswith(_INSTALLED) for line in sources) else "researched"


def is_finding(text: str) -> bool:
    """Whether a text has the form of a report that somebody wrote."""
    parsed = parse_report(text)
    return parsed is not None and "- Written by:" in parsed.sections[ATTRIBUTION]


def read_question(text: str) -> str | None:
    """Return what a finding answers, as its Source Attribution says; None where it says nothing, and of another text."""
    parsed = parse_report(text) if is_finding(text) else None
    found = parsed and re.search(r"^- Question: (.*\S)", parsed.sections[ATTRIBUTION], re.MULTILINE)
    return re.sub(r"\\(?=\W)", "", found[1]) if found else None


def is_by_hand(text: str) -> bool:
    """Whether somebody wrote a text, or says so; else kr quotes its sources there."""
    return is_finding(text) or parse_report(text) is None


def fresh_until(origin: ReportKind, researched_at: str | None) -> datetime | None:
    """Return the hard end of the freshness of a text that was researched at that time; None for no end."""
    if origin != "installed":
        return None
    began = parse_time(researched_at or "")
    return began + INSTALLED_DOCS_LAST if began is not None else None


# --- a stale report that stands in where nothing better was found (F1, step 6.3)


def carried_over(old: str, query: Query, today: date, notes: Sequence[str]) -> str:
    """Return the report of ``query`` whose body is the ``old`` report (F1, step 6.3); ``notes`` are safe lines.

    It keeps version, date and sources of when it was researched; what was carried over before comes back as it is. A report
    that does not follow the template is quoted whole. It takes at most 256 KiB in UTF-8.
    """
    old = strip_invisible(old)[:_LONGEST_CARRIED]
    parsed = parse_report(old)
    if parsed and origin_of(old) == "baseline":
        return old
    sections = dict(parsed.sections) if parsed else _quoted_whole(old)
    version = parsed.header["Version"] if parsed else "unknown"
    when = read_date(old)
    asked = plain_line(query.framework_version, 100)
    researched = f"on {when}" if when else "at an unknown date"
    own_notes = [
        "Confidence: low, since no source answered and an older report stands in.",
        f"The text was researched {researched} for version {version}; on {today} version {asked} was asked for.",
        *notes,
    ]
    older = _OLD_CONFIDENCE.sub("", sections[CAVEATS]).strip("\n")
    listed = "\n".join(f"- {note}" for note in own_notes)
    sections[SUMMARY] = f"{STALE_MARK}\n\n{sections[SUMMARY]}"
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


def _quoted_whole(old: str) -> dict[str, str]:
    return {
        SUMMARY: "The earlier report does not follow the template; it is quoted whole under Details.",
        DETAILS: f"From the earlier report:\n\n{render(split(old.replace(STALE_MARK, '')))}",
        CODE: "Code of the earlier report stands in its place under Details.",
        CAVEATS: "",
        ATTRIBUTION: "No source answered; sources of the earlier report stand in its text under Details.",
    }
