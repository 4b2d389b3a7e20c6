"""Times as the database keeps them: ``YYYY-MM-DDTHH:MM:SS.ffffffZ``, UTC (SPEC 5).

The form has a fixed width, so text order is time order; a bare ``YYYY-MM-DD``, as people write it, sorts
at the start of its day.
"""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

_TICK = timedelta(microseconds=1)


def to_text(moment: datetime) -> str:
    """Return the stored form. A naive ``moment`` is a programming error: ``ValueError``."""
    if moment.tzinfo is None:
        raise ValueError("a stored time needs a time zone")
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def from_text(text: str) -> datetime:
    """Read a stored time; bare dates and other ISO 8601 forms too, UTC where they name no zone.

    Anything else raises ``ValueError``.
    """
    moment = datetime.fromisoformat(text.strip())
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def after(now: datetime, newest: Iterable[str]) -> str:
    """Return ``max(now, newest + 1 us)`` in stored form: later than every text, whatever the clock says.

    A text that is no time, or the last moment there is, is passed over.
    """
    latest = now
    for text in newest:
        try:
            latest = max(latest, from_text(text) + _TICK)
        except (ValueError, OverflowError):
            continue
    return to_text(latest)
