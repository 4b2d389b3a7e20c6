"""Which repository is a framework's own, by what Context7 says of it (facts on repositories). Pure.

Descriptions and source lines are strangers' text: an address counts only when it is one of a repository and its
owner or its name is the framework's.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence

from kr.sources.context7_text import Library, choose_library, names_of, repository_of, split_version

_ADDRESS = re.compile(r"(?i:https?://(?:www\.)?github\.com)(/[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100})")
_NO_OWNERS = frozenset({
    "about", "apps", "collections", "customer-stories", "enterprise", "explore", "features", "issues", "login",
    "marketplace", "orgs", "search", "settings", "site", "sponsors", "stars", "topics", "trending", "users",
})  # fmt: skip
"""First parts of GitHub's own pages."""

_MAX_TEXT = 20_000


def repository_among(framework: str, chosen: Library, libraries: Sequence[Library]) -> str | None:
    """Return the ``owner/repo`` of the chosen library, of another that fits, or one that its description names."""
    own = repository_of(split_version(chosen.id)[0])
    if own is not None:
        return own
    on_github = [library for library in libraries if repository_of(split_version(library.id)[0])]
    other = choose_library(framework, on_github)
    if other is not None:
        return repository_of(split_version(other.id)[0])
    return repository_named(framework, [chosen.description])


def repository_named(framework: str, texts: Iterable[str | None]) -> str | None:
    """Return the repository of ``framework`` that is named most often in ``texts``, the first among equals."""
    found: Counter[str] = Counter()
    spelling: dict[str, str] = {}
    for text in texts:
        for address in _ADDRESS.finditer((text or "")[:_MAX_TEXT]):
            repository = repository_of(address[1].rstrip(".").removesuffix(".git"))
            if repository is not None and _is_of(framework, repository):
                found[spelling.setdefault(repository.lower(), repository)] += 1
    return found.most_common(1)[0][0] if found else None


def _is_of(framework: str, repository: str) -> bool:
    """Whether owner or name is the framework's; of a scoped package (``@vue/reactivity``), the scope's."""
    owner, name = repository.split("/")
    if owner.lower() in _NO_OWNERS:
        return False
    scoped = re.fullmatch(r"@([^/]+)/[^/]+", framework.strip())
    wanted = names_of(scoped[1] if scoped else framework)
    return bool(wanted & (names_of(owner) | names_of(name) | names_of(repository)))
