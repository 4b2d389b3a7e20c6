"""A finding as a report: header and sections are kr's, the texts stand as they were written. Pure."""

import re
from dataclasses import fields, replace
from datetime import UTC, datetime

from kr.guard import clean, mask_secrets
from kr.models import Confidence, Query, Writer
from kr.report import (
    ATTRIBUTION,
    CAVEATS,
    CODE,
    DETAILS,
    HEADER,
    SUMMARY,
    ParsedReport,
    parse_report,
    plain_line,
    render_report,
    title_of,
)
from kr.requests import Finding
from kr.text import fence_after, fenced

_FENCED = re.compile(r"\s*(`{3,}|~{3,})")
_CODE = re.compile(
    r"(^ {0,3}(?:`{3,}|~{3,}).*?(?:^ {0,3}(?:`{3,}|~{3,})\s*$|\Z)|`[^`\n]*`)", re.MULTILINE | re.DOTALL
)
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
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
_CLAIMED = re.compile(
    r"^\W*(?:written|verified|confirmed|reviewed|approved|rated)[ \t]+by\b.*\n?", re.IGNORECASE | re.MULTILINE
)
_HEADER_LINE = re.compile(rf"\s*\*\*(?:{'|'.join(HEADER)}):\*\*")


def cleaned(finding: Finding) -> Finding:
    """Take secrets, hidden characters and comments out of everything that others will read."""
    changed: dict[str, object] = {}
    for name, value in ((it.name, getattr(finding, it.name)) for it in fields(finding)):
        if isinstance(value, tuple):
            changed[name] = tuple(mask_secrets(clean(without_comments(text))) for text in value)
        elif isinstance(value, str):  # code may be HTML, whose comments are part of it
            changed[name] = mask_secrets(clean(value if name == "code" else without_comments(value)))
    return replace(finding, **changed)  # type: ignore[arg-type]


def without_comments(text: str) -> str:
    """Take HTML comments out, which people don't see, until none is left: what stood around one may make another. Code keeps its own."""
    while True:
        parts = _CODE.split(text)
        left = "".join(part if at % 2 else _COMMENT.sub("", part) for at, part in enumerate(parts))
        if left == text:
            return text
        text = left


def render_finding(finding: Finding, query: Query, by: Writer, confidence: Confidence, now: datetime) -> str:
    """Write a finding as a report; an ``answer`` that is a whole report keeps its sections."""
    sections = _of_report(finding) or _of_parts(finding)
    named = [f"- Written by: {by.name}"]
    if finding.verified_by:
        named.append(f"- Verified by: {finding.verified_by}")
    named += [f"- Source: {source}" for source in finding.sources]
    # It goes along with the file, so that who gets this from git finds it by the words in which it was asked for.
    named.append(f"- Question: {plain_line(finding.question, 300)}")
    # Who wrote it and what proved it is said here, and by nobody's own words.
    given = contained(_CLAIMED.sub("", sections.pop(ATTRIBUTION, "")))
    header = {
        "Framework": query.framework,
        "Version": query.framework_version,
        "Research Date": now.astimezone(UTC).date().isoformat(),
        "Confidence": confidence,
        "Sources": ", ".join(finding.sources) or "the writer's own work",
    }
    body = {name: contained(text) or "None." for name, text in sections.items()}
    body[ATTRIBUTION] = "\n".join([*named, *([given] if given else [])])
    title = title_of(query.framework, query.topic)
    return render_report(ParsedReport(title=title, header=header, sections=body))


def _of_parts(finding: Finding) -> dict[str, str]:
    first, rest = _first_paragraph(finding.answer.strip("\n"))
    if _FENCED.match(first):
        first, rest = finding.question, finding.answer
    code = fenced(finding.code) if finding.code else ""
    return {SUMMARY: first, DETAILS: rest.strip("\n"), CODE: code, CAVEATS: finding.caveats or ""}


def _first_paragraph(text: str) -> tuple[str, str]:
    """Split behind the first paragraph; a block of code in it goes along as a whole."""
    fence, lines = "", text.splitlines()
    for at, line in enumerate(lines):
        fence = fence_after(line, fence)
        if not fence and not line.strip():
            return "\n".join(lines[:at]), "\n".join(lines[at + 1 :])
    return text, ""


def _of_report(finding: Finding) -> dict[str, str] | None:
    """Return the sections of an answer that is a whole report; what ``code`` and ``caveats`` hold goes along."""
    parsed = parse_report(finding.answer.rstrip("\n") + "\n")
    if parsed is None:
        return None
    more = _of_parts(finding)
    sections = dict(parsed.sections)
    for name in (CODE, CAVEATS):
        sections[name] = "\n\n".join(filter(None, (sections[name], more[name])))
    return sections


def contained(text: str) -> str:
    """Return a text that can't be taken for a part of a report that is kr's.

    Outside of code, headings are of the third level at most, lines like those of the header and of the attribution are quoted,
    and HTML is shown as text; an open fence is closed.
    """
    lines: list[str] = []
    fence, indent = "", 0
    for line in text.splitlines():
        open_before, fence = fence, fence_after(line, fence)
        if open_before or fence:
            if not open_before:
                indent = _indent(line)
            # A line of code that stands further left than its block would end the list that the block is in.
            missing = indent - _indent(line) if line.strip() else 0
            lines.append(" " * missing + line)
            continue
        if _UNDERLINE.match(line) and lines and lines[-1].strip():
            lines.append("")  # a rule, no heading
        lines.append(_harmless(line))
    return "\n".join([*lines, *([" " * indent + fence] if fence else [])]).strip("\n")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _harmless(line: str) -> str:
    line = _HTML.sub(_as_text, line)
    if heading := _HEADING.match(line):
        return f"{'#' * max(3, len(heading[1]))}{line[heading.end() :]}"
    return f"> {line.lstrip()}" if _HEADER_LINE.match(line) or _CLAIM.match(line) else line


def _as_text(found: re.Match[str]) -> str:
    """Escape a tag's beginning, unless it is; code stays."""
    backslashes = found[1]
    return found[0] if backslashes is None or len(backslashes) % 2 else f"{backslashes}\\<"
