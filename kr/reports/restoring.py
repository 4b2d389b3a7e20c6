"""What an entry counts as once it is brought back (SPEC 3.3, 3.8 and 6.3).

Bringing back makes fresh, with one exception: what was not researched is never served as researched. A
skeleton and a report on a stale baseline come back stale, and so does what was fresh for a while only.
"""

from datetime import datetime, timedelta

from kr.freshness import parse_time
from kr.reports.baseline import SKELETON_MARK, STALE_MARK
from kr.reports.template import ATTRIBUTION, SUMMARY, read_shape
from kr.values import Entry, Origin

INSTALLED_DOCS_LAST = timedelta(days=1)
"""How long an answer from the installed documentation alone is fresh (SPEC 3.3)."""

_NOT_RESEARCHED = {
    "skeleton": "it is a skeleton: nothing was found when it was researched",
    "baseline": "it was made from a stale report: no source answered when it was researched",
}
_INSTALLED = "(via local_docs)"


def why_stale(entry: Entry, now: datetime) -> str | None:
    """Return why an entry that is brought back at ``now`` may not be served as fresh, or None when it may."""
    if entry.origin in _NOT_RESEARCHED:
        return _NOT_RESEARCHED[entry.origin]
    if entry.fresh_until is None:
        return None
    end = parse_time(entry.fresh_until)
    return None if end is not None and now < end else f"it was fresh until {entry.fresh_until} only"


def origin_of(text: str) -> Origin:
    """Tell from a report's own words what it was made from; a text of another shape counts as researched."""
    shape = read_shape(text)
    if shape is None:
        lines = {line.strip("> \t") for line in text.splitlines()}
        return "skeleton" if SKELETON_MARK in lines else "baseline" if STALE_MARK in lines else "researched"
    summary = shape.sections[SUMMARY]
    if SKELETON_MARK in summary.splitlines():
        return "skeleton"
    if summary.startswith(STALE_MARK):
        return "baseline"
    sources = [line for line in shape.sections[ATTRIBUTION].splitlines() if line.startswith("- Source ")]
    return "installed" if sources and all(line.endswith(_INSTALLED) for line in sources) else "researched"


def fresh_until(origin: Origin, researched_at: str | None) -> datetime | None:
    """Return the hard end of the freshness of a text that was researched at that time; None for no end."""
    if origin != "installed":
        return None
    began = parse_time(researched_at or "")
    return began + INSTALLED_DOCS_LAST if began is not None else None
