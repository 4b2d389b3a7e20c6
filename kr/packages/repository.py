"""The GitHub repository that a package's own metadata names (SPEC 3.5.2)."""

import re
from collections.abc import Iterable

_OWNER_REPO = r"([A-Za-z0-9](?:[A-Za-z0-9-]{0,38}))/([A-Za-z0-9._-]{1,100})"
_SHORTHAND = re.compile(rf"(?:github:)?{_OWNER_REPO}")
_URL = re.compile(
    rf"(?:git\+)?(?:https?|ssh|git)://(?:[\w.-]+@)?(?:www\.)?github\.com[:/]{_OWNER_REPO}(?:[/#?].*)?",
    re.IGNORECASE,
)
_SCP = re.compile(rf"(?:git\+)?git@github\.com:{_OWNER_REPO}(?:[/#?].*)?", re.IGNORECASE)
_LABELS = ("source", "sourcecode", "repository", "homepage")
_NO_OWNERS = frozenset({"sponsors", "orgs", "topics", "apps", "marketplace", "features", "settings"})


def github_repository(reference: str, *, shorthand: bool = False) -> str | None:
    """Return ``owner/repo`` of a GitHub URL; with ``shorthand`` also of npm's ``owner/repo``. Else None."""
    text = reference.strip()
    if len(text) > 500 or not text.isprintable():
        return None
    found = _URL.fullmatch(text) or _SCP.fullmatch(text)
    if found is None and shorthand:
        found = _SHORTHAND.fullmatch(text)
    if found is None:
        return None
    owner, repo = found[1], found[2].removesuffix(".git")
    if repo in {"", ".", ".."} or owner.casefold() in _NO_OWNERS or owner.endswith("-"):
        return None
    return f"{owner}/{repo}"


def repository_of_urls(urls: Iterable[tuple[str, str]]) -> str | None:
    """Return the repository of Python's ``(label, URL)`` pairs; labels compare without case, dash and space."""
    folded = [(re.sub(r"[^a-z]", "", label.lower()), url) for label, url in urls]
    for wanted in _LABELS:
        for label, url in folded:
            if label == wanted and (found := github_repository(url)):
                return found
    return None


def repository_of_npm(value: object) -> str | None:
    """Return the repository of package.json's ``repository``: a text or a mapping with ``url``."""
    reference = value.get("url") if isinstance(value, dict) else value
    return github_repository(reference, shorthand=True) if isinstance(reference, str) else None
