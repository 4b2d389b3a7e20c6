"""Keywords of long texts: pages and passages, where ``keywords`` looks at the beginning alone."""

_CHUNK = 4000  # less than what keywords() looks at


def words_of(text: str) -> frozenset[str]:
    """Return the keywords of a text of any length."""
    from kr.text.keywords import keywords

    found: set[str] = set()
    start = 0
    while start < len(text):
        end = start + _CHUNK
        if end < len(text):
            end = max(text.rfind(" ", start, end), text.rfind("\n", start, end)) + 1 or end
        found.update(keywords(text[start:end], limit=_CHUNK))
        start = end
    return frozenset(found)
