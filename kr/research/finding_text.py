"""A finding: what is handed over, its text as a report, what saving and rating give back (pure).

Header and sections of the report are kr's; the texts stand as they were written.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any, Literal, get_args

from kr import report
from kr.guard import clean, mask_secrets
from kr.models import Confidence, Origin, Outcome, Problem, Query, Related, Writer
from kr.requests import (
    block,
    few_lines,
    field_read_by,
    framework_name,
    one_of,
    question,
    story_key,
)
from kr.requests import (
    line as short_line,
)
from kr.text import fence_after, fenced

_HEADING = re.compile(r" {0,3}(#{1,6})(?=\s|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*$")
_HTML = re.compile(
    r"(?<![`\\])`[^`]+`(?!`)|(\\*)<(?=[A-Za-z/?!])(?![A-Za-z][\w.+-]+:[^\s<>]*>|[\w.+-]+@[\w.-]+>)"
)
"""Code in a line, or the beginning of a tag, which may hide what follows from who sees it rendered; links in ``<>`` are none."""
_CLAIM = re.compile(
    r"\W*(?:(?:written|verified|confirmed|reviewed|approved|rated)[ \t]+by\b[ \t*_]*:|confirmed in \d+ sessions?\b|source \d+[ \t*_]*:)"
    r"|.*\(via \w+\)\W*$",
    re.IGNORECASE,
)
"""A line that is kr's to write: who wrote, proved and confirmed a text, and where it is from."""
_HEADER_LINE = re.compile(rf"\s*\*\*(?:{'|'.join(report.HEADER)}):\*\*")

MOST_TOKENS = 1200
"""The longest that a finding may be: others pay for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What was found out and proved. ``answer`` may be a whole report that follows the template."""

    framework: str = field_read_by(framework_name)
    question: str = field_read_by(question)
    answer: str = field_read_by(block)
    code: str | None = field_read_by(block, None)
    caveats: str | None = field_read_by(block, None)
    sources: tuple[str, ...] = field_read_by(few_lines, ())
    verified_by: str | None = field_read_by(short_line, None)
    framework_version: str | None = field_read_by(short_line, None)
    topic: str | None = field_read_by(short_line, None)
    tags: tuple[str, ...] = field_read_by(few_lines, ())
    entry: str | None = field_read_by(short_line, None)
    story_key: str = field_read_by(story_key, "0-0")
    session_id: str | None = field_read_by(short_line, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A rating of an entry's text: how it went for who used it."""

    outcome: Outcome = field_read_by(one_of("outcome", get_args(Outcome)))  # noqa: RUF009 - a dataclass field
    note: str | None = field_read_by(short_line, None)
    session_id: str | None = field_read_by(short_line, None)
    story_key: str | None = field_read_by(story_key, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveResults:
    """``revision`` is the number that ``kr entries restore ID N`` takes, ``replaced`` that of the text it took over from.

    ``id`` of a quarantined finding is what ``kr review`` takes. ``related`` may say the same.
    """

    id: str
    path: str | None = None
    revision: int | None = None
    replaced: int | None = None
    confidence: Confidence | None = None
    index_count: int | None = None
    related: Sequence[Related] = ()
    notes: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveEnvelope:
    """What saving a finding gives back."""

    status: Literal["saved", "quarantined", "failure"]
    results: SaveResults | None
    errors: list[Problem]


@dataclass(frozen=True, slots=True, kw_only=True)
class RateResults:
    """How many sessions say of an entry's text that it worked or is wrong; ``withdrawn``: it is served to nobody.

    ``note`` says why a rating confirms nothing.
    """

    id: str
    worked: int
    wrong: int
    revision: int
    confidence: Confidence
    origin: Origin
    withdrawn: bool
    note: str | None = None


def cleaned(finding: Finding) -> Finding:
    """Take secrets and hidden characters out of everything that others will read."""

    def clear(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(map(clear, value))
        return mask_secrets(clean(value)) if isinstance(value, str) else value

    return replace(finding, **{it.name: clear(getattr(finding, it.name)) for it in fields(finding)})


def render_finding(finding: Finding, query: Query, by: Writer, confidence: Confidence, now: datetime) -> str:
    """Write a finding as a report; an ``answer`` that is a whole report keeps its sections."""
    sections = _of_report(finding) or _of_parts(finding)
    named = [f"- Written by: {by.name}"]
    named += [f"- Verified by: {finding.verified_by}"] if finding.verified_by else []
    named += [f"- Source: {source}" for source in finding.sources]
    # It goes along with the file, so that who gets this from git finds it by the words in which it was asked for.
    named.append(f"- Question: {report.plain_line(finding.question, 300)}")
    # Who wrote it and what proved it is said here, and by nobody's own words.
    lines = sections.pop(report.ATTRIBUTION, "").splitlines()
    given = contained("\n".join(line for line in lines if not _CLAIM.match(line)))
    header = {
        "Framework": query.framework,
        "Version": query.framework_version,
        "Research Date": now.astimezone(UTC).date().isoformat(),
        "Confidence": confidence,
        "Sources": ", ".join(finding.sources) or "the writer's own work",
    }
    body = {name: contained(text) or "None." for name, text in sections.items()}
    body[report.ATTRIBUTION] = "\n".join(filter(None, [*named, given]))
    title = report.title_of(query.framework, query.topic)
    return report.render_report(report.ParsedReport(title=title, header=header, sections=body))


def _of_parts(finding: Finding) -> dict[str, str]:
    first, *rest = re.split(r"\n\n|\n(?= *(?:```|~~~))", finding.answer.strip("\n"), maxsplit=1)
    if first.lstrip().startswith(("```", "~~~")):  # a block of code stays whole
        first, rest = finding.question, [finding.answer]
    return {
        report.SUMMARY: first,
        report.DETAILS: "".join(rest).strip("\n"),
        report.CODE: fenced(finding.code) if finding.code else "",
        report.CAVEATS: finding.caveats or "",
    }


def _of_report(finding: Finding) -> dict[str, str] | None:
    """Return the sections of an answer that is a whole report; what ``code`` and ``caveats`` hold goes along."""
    parsed = report.parse_report(finding.answer.rstrip("\n") + "\n")
    if parsed is None:
        return None
    more, sections = _of_parts(finding), dict(parsed.sections)
    for name in (report.CODE, report.CAVEATS):
        sections[name] = "\n\n".join(filter(None, (sections[name], more[name])))
    return sections


def contained(text: str) -> str:
    """Return a text that can't be taken for a part of a report that is kr's.

    Outside of code, headings are of the third level at most, lines like those of the header and of the attribution are quoted, and HTML is shown as text,
    comments too; an open fence is closed.
    """
    lines: list[str] = []
    fence, indent = "", 0
    for line in text.splitlines():
        open_before, fence = fence, fence_after(line, fence)
        if open_before or fence:
            indent = indent if open_before else len(line) - len(line.lstrip(" "))
            # A line of code that stands further left than its block would end the list that the block is in.
            missing = indent - (len(line) - len(line.lstrip(" "))) if line.strip() else 0
            lines.append(" " * missing + line)
            continue
        if _UNDERLINE.match(line) and lines and lines[-1].strip():
            lines.append("")  # a rule, no heading
        # A tag's beginning is escaped, unless it is; code stays.
        shown = _HTML.sub(lambda it: it[0] if it[1] is None or len(it[1]) % 2 else f"{it[1]}\\<", line)
        if heading := _HEADING.match(shown):
            shown = f"{'#' * max(3, len(heading[1]))}{shown[heading.end() :]}"
        is_ours = _HEADER_LINE.match(shown) or _CLAIM.match(shown)
        lines.append(f"> {shown.lstrip()}" if is_ours else shown)
    return "\n".join([*lines, *([" " * indent + fence] if fence else [])]).strip("\n")
