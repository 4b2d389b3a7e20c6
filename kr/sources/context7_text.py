"""Reading what Context7 says: lists of libraries, a framework's repository, documentation, and failures that look like success. Pure.

The server reports its backend's failures as successful text (facts on Context7), so that documentation is
recognised by its shape, never by the absence of a known failure.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

from kr.models import Passage
from kr.sources.base import one_line

FailureKind = Literal["unknown_library", "unknown_tag", "redirected", "other"]

_ID = re.compile(r"/[\w.@~+-]+(?:/[\w.@~+-]+){1,4}", re.ASCII)
_GITHUB = re.compile(r"/([A-Za-z0-9][A-Za-z0-9-]{0,38})/([A-Za-z0-9._-]{1,100})")
_NO_OWNERS = frozenset({"websites", "llmstxt", "npm", "packages", "docs"})
_VERSION = re.compile(r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?([.\w+-]*)", re.ASCII)
_WANTED = re.compile(r"(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?")
_UNKNOWN_LIBRARY = re.compile(
    r'not[ _]finalized|library_not_found|^(?:No libraries found|Library (?:".{0,200}"|\S+) not found|No documentation'
    r"|Documentation not found|The library you are trying to access does not exist)"
)
_REPUTATION = {"high": 3, "medium": 2, "low": 1}


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """One item of the answer to ``resolve-library-id``."""

    id: str
    title: str
    description: str = ""
    reputation: str = ""
    benchmark: float = 0.0
    snippets: int = 0
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Failure:
    """What a text that is no documentation means: ``said`` is one line of it, empty for an empty one; ``detail`` is a redirect's new id, ``versions`` are offered for an unknown one."""

    kind: FailureKind
    said: str
    is_fault: bool = True
    detail: str | None = None
    versions: tuple[str, ...] = ()


def parse_libraries(text: str) -> list[Library]:
    """Read the answer to ``resolve-library-id``; items without a well-formed id are left out."""
    found = []
    for item in re.split(r"(?m)^-{8,}\s*$", text):
        fields = dict(reversed(re.findall(r"(?m)^[ \t]*- ([A-Z][^:\n]{0,60}):[ \t]*(.*)$", item)))
        library_id = fields.get("Context7-compatible library ID", "").strip()
        if not is_library_id(library_id):
            continue
        found.append(
            Library(
                id=library_id,
                title=fields.get("Title", "").strip(),
                description=fields.get("Description", "").strip(),
                reputation=fields.get("Source Reputation", "").strip(),
                benchmark=_number(fields.get("Benchmark Score", "")),
                snippets=int(_number(fields.get("Code Snippets", ""))),
                versions=_versions(fields.get("Versions", "")),
            )
        )
    return found


def _versions(text: str) -> tuple[str, ...]:
    listed = (version.strip() for version in text.split(","))
    return tuple(version for version in listed if _VERSION.fullmatch(version))


def choose_library(framework: str, libraries: Iterable[Library]) -> Library | None:
    """Take the best library that is ``framework`` (SPEC 3.5): by reputation, benchmark, number of snippets, the server's order."""
    fitting = [library for library in libraries if fits(framework, library)]
    return max(
        fitting,
        key=lambda library: (
            _REPUTATION.get(library.reputation.lower(), 0),
            library.benchmark,
            library.snippets,
        ),
        default=None,
    )


def fits(framework: str, library: Library) -> bool:
    """Whether a library is the framework: case, spaces, ``-_.`` and ``.js`` are no difference, ``+`` and ``#`` are (C, C++, C#).

    ``owner/repo`` fits the same id; ``@vue/reactivity`` the same title or id, or ``reactivity`` of an owner named like the scope.
    """
    wanted = names_of(framework)
    if wanted & (names_of(library.title) | names_of(library.id) | names_of(library.id.rpartition("/")[2])):
        return True
    scoped = re.fullmatch(r"@([^/]+)/([^/]+)", framework.strip())
    if scoped is None:
        return False
    owner, last = library.id.split("/")[-2:]
    return bool(names_of(scoped[2]) & names_of(last)) and _squash(owner).startswith(_squash(scoped[1]))


def choose_version(wanted: str, versions: Sequence[str]) -> str | None:
    """Take the listed version of the wanted major (``2.x``, ``^15.1``, ``v15``): exact, else the closest minor, else the newest.

    Of these the highest, a release before a pre-release; None where none is of the major.
    """
    asked = _WANTED.search(wanted)
    if asked is None:
        return None
    major, minor, patch = (int(part) if part is not None else None for part in asked.groups())
    best: tuple[tuple[int, ...], str] | None = None
    for version in versions:
        listed = _VERSION.fullmatch(version)
        if listed is None or int(listed[1]) != major:
            continue
        its_minor, its_patch = int(listed[2] or 0), int(listed[3] or 0)
        is_release = int(not listed[4])
        is_exact = int((its_minor, its_patch, is_release) == (minor, patch, 1))
        closeness = -abs(its_minor - minor) if minor is not None else 0
        rank = (is_exact, closeness, is_release, its_minor, its_patch)
        if best is None or rank > best[0]:
            best = (rank, version)
    return best[1] if best else None


def is_library_id(text: str) -> bool:
    """Whether this can be a library id: ``/owner/name``, at most 200 plain characters."""
    return len(text) <= 200 and _ID.fullmatch(text) is not None and not re.search(r"/\.{1,2}(?:/|$)", text)


def split_version(library_id: str) -> tuple[str, str | None]:
    """Part ``/org/repo/v15.1.8`` into id and version; an id without one is left as it is."""
    parts = library_id.split("/")
    if len(parts) == 4 and repository_of("/".join(parts[:3])) and _VERSION.fullmatch(parts[3]):
        return "/".join(parts[:3]), parts[3]
    return library_id, None


def repository_of(library_id: str) -> str | None:
    """``owner/repo`` when the id is a GitHub path; ``/websites/``, ``/llmstxt/`` and their like are none."""
    found = _GITHUB.fullmatch(library_id)
    if found is None or found[1].lower() in _NO_OWNERS or found[2] in {".", ".."}:
        return None
    return f"{found[1]}/{found[2]}"


def parse_documentation(text: str) -> tuple[Passage, ...]:
    """Read documentation: blocks of ``### Title``, ``Source: URL``, prose and fenced code.

    Without a block, a text that begins with a title and holds code is taken as it is: nobody reports a failure so.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    passages = []
    for start, end in _chunks(lines):
        starts = [at for at in range(start, end) if _is_start(lines, at)]
        fenced = _fenced_lines(lines[start:end]) if len(starts) > 1 else frozenset[int]()
        starts = [at for at in starts if at - start not in fenced]
        for at, stop in pairwise([*starts, end]):
            passage = _passage(lines[at:stop])
            if passage is not None:
                passages.append(passage)
    return tuple(passages) or _bare(text)


def _bare(text: str) -> tuple[Passage, ...]:
    text = text.strip()
    if re.match(r"### +\S", text) and len(re.findall(r"(?m)^ {0,3}(?:```|~~~)", text)) > 1:
        return (Passage(text=text),)
    return ()


def read_failure(text: str) -> Failure:
    line = one_line(text)
    if not line:
        return Failure("other", "")
    if found := re.search(r"has been redirected to this library: (/\S+)", line):
        target = found[1].rstrip(".,;")
        return Failure("redirected", line, detail=target if is_library_id(target) else None)
    if re.match(r'Tag ".{0,200}" not found', line):
        offered = re.search(r"Available tags: ([^\n]{1,4000})", text)
        return Failure("unknown_tag", line, is_fault=False, versions=_versions(offered[1] if offered else ""))
    if _UNKNOWN_LIBRARY.search(line):
        return Failure("unknown_library", _json_message(text) or line, is_fault=False)
    return Failure("other", _json_message(text) or line)


def _json_message(text: str) -> str | None:
    found = re.search(r'"message"\s*:\s*"((?:[^"\\]|\\.){1,400})"', text)
    return one_line(found[1]) if found else None


def _chunks(lines: list[str]) -> Iterable[tuple[int, int]]:
    """Part at the lines of 32 dashes that stand before a block, or at the end; others may be code."""
    start = 0
    for at, line in enumerate(lines):
        if line.rstrip() != "-" * 32:
            continue
        following = next((index for index in range(at + 1, len(lines)) if lines[index].strip()), len(lines))
        if following == len(lines) or _is_start(lines, following):
            yield start, at
            start = at + 1
    yield start, len(lines)


def _is_start(lines: list[str], at: int) -> bool:
    if not re.match(r"### +\S", lines[at]):
        return False
    following = next((line for line in lines[at + 1 : at + 4] if line.strip()), "")
    return following.startswith("Source: ")


def _fenced_lines(lines: list[str]) -> frozenset[int]:
    from markdown_it import MarkdownIt

    fenced: set[int] = set()
    for token in MarkdownIt("commonmark").parse("\n".join(lines)):
        if token.type == "fence" and token.map is not None:
            fenced.update(range(*token.map))
    return frozenset(fenced)


def _passage(lines: list[str]) -> Passage | None:
    source_at = next(index for index in range(1, len(lines)) if lines[index].strip())
    body = "\n".join(lines[source_at + 1 :]).strip("\n").rstrip()
    if not body.strip():
        return None
    source = lines[source_at].removeprefix("Source: ").strip()
    url = source if re.fullmatch(r"https?://[^\s<>\"]{1,2000}", source) else None
    return Passage(text=body, title=lines[0].lstrip("#").strip(), url=url)


def names_of(name: str) -> frozenset[str]:
    """Return the spellings under which a name is known: without separators, and without a suffix ``.js``."""
    squashed = _squash(name)
    bare = unicodedata.normalize("NFKC", name).casefold().strip()
    found = {squashed}
    if bare.endswith(".js"):
        found.add(_squash(bare[:-3]))
    if squashed.endswith("js") and len(squashed) > 4:
        found.add(squashed[:-2])
    return frozenset(found - {""})


def _squash(name: str) -> str:
    return re.sub(r"[\s._-]+", "", unicodedata.normalize("NFKC", name).casefold()).strip("/@")


def _number(text: str) -> float:
    found = re.match(r"\s*(\d{1,9}(?:\.\d{1,9})?)", text)
    return float(found[1]) if found else 0.0


_REPOSITORY_URL = re.compile(
    r"(?i:https?://(?:www\.)?github\.com)(/[A-Za-z0-9-]{1,39}/[A-Za-z0-9._-]{1,100})"
)
_GITHUB_PAGES = frozenset({
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
        for address in _REPOSITORY_URL.finditer((text or "")[:_MAX_TEXT]):
            repository = repository_of(address[1].rstrip(".").removesuffix(".git"))
            if repository is not None and _is_of(framework, repository):
                found[spelling.setdefault(repository.lower(), repository)] += 1
    return found.most_common(1)[0][0] if found else None


def _is_of(framework: str, repository: str) -> bool:
    """Whether owner or name is the framework's; of a scoped package (``@vue/reactivity``), the scope's."""
    owner, name = repository.split("/")
    if owner.lower() in _GITHUB_PAGES:
        return False
    scoped = re.fullmatch(r"@([^/]+)/[^/]+", framework.strip())
    wanted = names_of(scoped[1] if scoped else framework)
    return bool(wanted & (names_of(owner) | names_of(name) | names_of(repository)))
