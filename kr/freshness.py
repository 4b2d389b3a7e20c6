"""Whether a cached entry may still be served (F1, step 2, actions 3 and 4).

Pure: the clock is an argument. Ages are whole days between UTC dates, and every limit means "more than".
"""

from dataclasses import dataclass
from datetime import UTC, date, datetime
from typing import Literal

from kr.models import Entry
from kr.times import major_key, oldest_live, parse_time, same_major

Freshness = Literal["fresh", "stale", "archived"]

CACHE_TTL_DAYS, ARCHIVE_AFTER_DAYS = 30, 60
"""The defaults of the settings of these names (rule 3.3)."""

MARKED = "marked stale"
PLACEHOLDER = "a placeholder: nothing was found"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Ages in days; None: no limit."""

    ttl_days: int = CACHE_TTL_DAYS
    archive_after_days: int = ARCHIVE_AFTER_DAYS
    max_age_days: int | None = None


@dataclass(frozen=True, slots=True)
class Verdict:
    """``archived`` is a miss. ``for_major``: only the major that was asked for speaks against it, so that its own may be served.

    ``is_news``: the entry's row does not have this mark yet.
    """

    status: Freshness
    reasons: tuple[str, ...]
    for_major: str | None = None
    is_news: bool = False


def judge(entry: Entry, version: str, limits: Limits, now: datetime) -> Verdict:
    """Judge an entry for a request for ``version`` at ``now``, which must carry a time zone. An unreadable date makes it stale."""
    if now.tzinfo is None:
        raise ValueError("now must carry a time zone")
    now = now.astimezone(UTC)
    mark, of_version = _mark(entry), _version(entry, version)
    of_itself = [
        _since_access(entry, limits, now.date()),
        _since_research(entry, limits, now.date()),
        _hard_end(entry, now),
    ]
    reasons = tuple(reason for reason in (mark, of_version, *of_itself) if reason)
    accessed = parse_time(entry.last_accessed)
    if accessed and accessed.date() < oldest_live(now.date(), limits.archive_after_days):
        return Verdict("archived", reasons)
    if not reasons:
        return Verdict("fresh", reasons)
    is_of_version = of_version is not None and len(reasons) == 1
    is_news = entry.status == "fresh" or (not is_of_version and entry.stale_major is not None)
    return Verdict("stale", reasons, major_key(version) if is_of_version else None, is_news)


def _mark(entry: Entry) -> str | None:
    # What was marked for another major version is judged by the versions themselves.
    if entry.status == "fresh" or entry.stale_major is not None:
        return None
    return PLACEHOLDER if entry.origin == "placeholder" else MARKED


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
