"""Times as they are kept, and the major version of a version text.

A kept time is ``YYYY-MM-DDTHH:MM:SS.ffffffZ``, UTC: its width is fixed, so that text order is time order; a bare ``YYYY-MM-DD``,
as people write it, sorts at the start of its day.
"""

import re
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache

from kr.text import fold

UNKNOWN_VERSION = "unknown"
"""The version where none was detected. It goes with any major version."""

_MAX_DIGITS = 4000  # Python refuses to read longer integers


def to_text(moment: datetime) -> str:
    """Return the stored form of a moment that has a time zone."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def from_text(text: str) -> datetime:
    """Read a stored time, a bare date or other ISO 8601 forms, UTC where they name no zone. Raises ``ValueError``."""
    moment = datetime.fromisoformat(text.strip())
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def parse_time(text: str) -> datetime | None:
    """Read a time as ``from_text`` does; None where it is none."""
    try:
        return from_text(text)
    except (ValueError, OverflowError):  # the latter: an offset leads out of the years 1 to 9999
        return None


def after(now: datetime, newest: str) -> str:
    """Return ``max(now, newest + 1 us)`` in stored form, whatever the clock says; where ``newest`` is no time, ``now``."""
    latest = parse_time(newest)
    return to_text(now if latest is None else max(now, latest + timedelta(microseconds=1)))


def oldest_live(today: date, archive_after_days: int) -> date:
    """Return the day before which what was last accessed belongs into the archive."""
    try:
        return today - timedelta(days=archive_after_days)
    except OverflowError:  # nothing is that old
        return date.min


def major(version: str) -> int | None:
    """Return the first integer in a version text: 2 for ``2.x``, ``^2.7``, ``v2`` and ``>=2,<3``."""
    found = re.search(r"\d+", version)
    return int(found[0][:_MAX_DIGITS]) if found else None


@lru_cache(maxsize=128)
def major_key(version: str) -> str:
    """Name the major version of a version text: its number, or the folded text where it has no integer."""
    number = major(version)
    return fold(version) if number is None else str(number)


def same_major(one: str, other: str) -> bool:
    """Tell whether two versions are of one major; a text without an integer equals only itself, ``unknown`` goes with anything."""
    return UNKNOWN_VERSION in (fold(one), fold(other)) or major_key(one) == major_key(other)
