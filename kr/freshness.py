"""Whether a cached entry may still be served (SPEC 3.3; seed 000, step 2, actions 3 and 4).

Pure: the clock is an argument. Ages are whole days between UTC dates, and every limit means "more than".
"""

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal, NamedTuple

from kr.naming import fold
from kr.values import Entry

Freshness = Literal["fresh", "stale", "archived"]

UNKNOWN_VERSION = "unknown"
"""What the terminal form says where no version was detected. It goes with any major version."""

_FIRST_INTEGER = re.compile(r"\d+")
_MAX_DIGITS = 4000  # Python refuses to read longer integers
_NEVER_RESEARCHED = {"baseline": "made from a stale baseline", "skeleton": "a skeleton, nothing was found"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ages in days. ``max_age_days`` limits the age of the research itself; ``None`` is no limit."""

    ttl_days: int = 30
    archive_after_days: int = 60
    max_age_days: int | None = None


class Verdict(NamedTuple):
    """``archived`` is a miss; ``reasons`` are short texts, none when ``fresh``."""

    status: Freshness
    reasons: tuple[str, ...]


def parse_time(text: str) -> datetime | None:
    """Read an ISO 8601 date, or date and time, as UTC; ``None`` when it is neither.

    A date alone is its midnight; a time without an offset is UTC.
    """
    try:
        moment = datetime.fromisoformat(text.strip())
        return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):  # the latter: an offset leads out of the years 1 to 9999
        return None


def major(version: str) -> int | None:
    """Return the first integer in a version text: 2 for ``2.x``, ``^2.7``, ``v2`` and ``>=2,<3``."""
    found = _FIRST_INTEGER.search(version)
    return int(found[0][:_MAX_DIGITS]) if found else None


def same_major(one: str, other: str) -> bool:
    """Tell whether two version texts speak of one major version.

    A text without an integer (``latest``) equals only the same text; ``unknown`` goes with anything.
    """
    folded = (fold(one), fold(other))
    if UNKNOWN_VERSION in folded:
        return True
    majors = (major(one), major(other))
    if majors == (None, None):
        return folded[0] == folded[1]
    return majors[0] == majors[1]


def judge(entry: Entry, version: str, limits: Limits, now: datetime) -> Verdict:
    """Judge an entry for a request that asks for ``version`` at ``now``, which must carry a time zone.

    An entry with a date that can't be read is stale: researching again is safer than trusting it.
    Raises ``ValueError`` for a ``now`` without a time zone.
    """
    if now.tzinfo is None:
        raise ValueError("now must carry a time zone")
    now = now.astimezone(UTC)
    reasons = [
        reason
        for reason in (
            _mark(entry),
            _version(entry, version),
            _since_access(entry, limits, now.date()),
            _since_research(entry, limits, now.date()),
            _hard_end(entry, now),
        )
        if reason
    ]
    accessed = parse_time(entry.last_accessed)
    if accessed and (now.date() - accessed.date()).days > limits.archive_after_days:
        return Verdict("archived", tuple(reasons))
    return Verdict("stale" if reasons else "fresh", tuple(reasons))


def _mark(entry: Entry) -> str | None:
    if entry.status == "fresh":
        return None
    return _NEVER_RESEARCHED.get(entry.origin, "marked stale")


def _version(entry: Entry, version: str) -> str | None:
    if same_major(entry.framework_version, version):
        return None
    return f"version {entry.framework_version}, asked for {version}"


def _since_access(entry: Entry, limits: Limits, today: date) -> str | None:
    limit = min(limits.ttl_days, limits.archive_after_days)
    return _over("last accessed", entry.last_accessed, limit, today)


def _since_research(entry: Entry, limits: Limits, today: date) -> str | None:
    if limits.max_age_days is None:
        return None
    return _over("researched", entry.researched_at or entry.created, limits.max_age_days, today)


def _over(what: str, when: str, limit: int, today: date) -> str | None:
    moment = parse_time(when)
    if moment is None:
        return f"{what} at an unreadable date"
    age = (today - moment.date()).days
    return f"{what} {age} days ago, more than {limit}" if age > limit else None


def _hard_end(entry: Entry, now: datetime) -> str | None:
    if entry.fresh_until is None:
        return None
    end = parse_time(entry.fresh_until)
    if end is None:
        return "fresh until an unreadable date"
    return f"fresh until {entry.fresh_until} only" if now >= end else None
