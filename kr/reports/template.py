"""The shape of a report: title, five header lines, five sections (seed 000, step 6.1)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from kr.text.inline import plain_line
from kr.values import Confidence

HEADER = ("Framework", "Version", "Research Date", "Confidence", "Sources")
SECTIONS = (
    "Summary",
    "Details",
    "Code Examples",
    "Caveats & Version-Specific Notes",
    "Source Attribution",
)
SUMMARY, DETAILS, CODE, CAVEATS, ATTRIBUTION = SECTIONS
MAX_REPORT_BYTES = 256 * 1024

_HEADER_LINE = re.compile(rf"\*\*({'|'.join(HEADER)}):\*\* (.*)")
_CONFIDENCE = re.compile(r"^[ \t*_-]*confidence[ \t*_:]*(high|medium|low)\b", re.IGNORECASE | re.MULTILINE)
_VERSION = re.compile(r"^[ \t*_-]*version[*_]*:[ \t*_]*(\S.*)$", re.IGNORECASE | re.MULTILINE)
_DATE = re.compile(r"^[ \t*_-]*research date[*_]*:[ \t*_]*(\d{4}-\d\d-\d\d)\b", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A report taken apart. ``header`` has the keys of ``HEADER``, ``sections`` those of ``SECTIONS``."""

    title: str
    header: Mapping[str, str]
    sections: Mapping[str, str]


def title_of(framework: str, topic: str) -> str:
    """Return the first line. Whatever the names hold, it is one heading of harmless text."""
    line = f"# {plain_line(framework)} - {plain_line(topic)}"
    return re.sub(r"(?<=\s)(#+)$", r"\\\1", line)


def write_shape(shape: Shape) -> str:
    """Return the report's text. It ends with one newline."""
    lines = [shape.title, "", *(f"**{key}:** {shape.header[key]}" for key in HEADER)]
    for name in SECTIONS:
        lines += ["", f"## {name}", "", shape.sections[name].strip("\n")]
    return "\n".join(lines) + "\n"


def read_shape(text: str) -> Shape | None:
    """Take a report apart; ``None`` when it does not follow the template to the letter."""
    title, _, rest = text.partition("\n\n")
    # A line with one `#` may be a comment in code, which stands there unquoted.
    head, *bodies = re.split(r"^(?=## )", rest, flags=re.MULTILINE)
    found = [_HEADER_LINE.fullmatch(line) for line in head.strip("\n").split("\n")]
    header = {line[1]: line[2] for line in found if line}
    names = [body.partition("\n")[0] for body in bodies]
    if (
        not re.fullmatch(r"# \S.*", title)
        or len(found) != len(header)
        or tuple(header) != HEADER
        or names != [f"## {name}" for name in SECTIONS]
    ):
        return None
    sections = {
        name: body.partition("\n")[2].strip("\n") for name, body in zip(SECTIONS, bodies, strict=True)
    }
    return Shape(title=title, header=header, sections=sections)


def read_confidence(text: str) -> Confidence | None:
    """Return the confidence that a report's header tells, in whatever spelling; ``None`` without one."""
    found = _CONFIDENCE.search(_header(text))
    levels: dict[str, Confidence] = {"high": "high", "medium": "medium", "low": "low"}
    return levels[found[1].lower()] if found else None


def read_version(text: str) -> str | None:
    """Return the version that a report's header tells, as it stands there."""
    found = _VERSION.search(_header(text))
    return found[1].strip(" *_") or None if found else None


def read_date(text: str) -> str | None:
    """Return the research date (``YYYY-MM-DD``) that a report's header tells."""
    found = _DATE.search(_header(text))
    return found[1] if found else None


def _header(text: str) -> str:
    return re.split(r"^##", text[:20_000], maxsplit=1, flags=re.MULTILINE)[0]
