"""Lists as the database keeps them: JSON arrays of text (SPEC 5), which anybody may have written."""

import json


def texts_of(text: str | None) -> tuple[str, ...]:
    """Read a list leniently: what is no JSON is taken as words parted by commas; blank members go."""
    try:
        found = json.loads(text or "[]")
    except (ValueError, RecursionError):
        found = [word.strip() for word in (text or "").split(",")]
    if not isinstance(found, list):
        found = [found]
    return tuple(member for member in (str(item) for item in found if item is not None) if member.strip())
