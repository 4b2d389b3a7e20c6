"""The Context7 source: find the library, then ask for its documentation (F1, step 5a).

The server reports its backend's failures as successful text, so that documentation is recognised by its shape, never by the absence
of a known failure.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar, Literal

from kr.errors import SourceFailure
from kr.models import Answer, Passage
from kr.settings.model import Server
from kr.sources.base import MAX_QUESTION, Ask
from kr.sources.mcp_client import McpSession, ToolText, converse
from kr.sources.reasons import one_line

_TOKENS = 10_000
"""What the older query tool is asked for; it has to be given a number."""
_REPUTATION = {"high": 3, "medium": 2, "low": 1}
_NO_OWNERS = frozenset({"websites", "llmstxt", "npm", "packages", "docs"})
_ID = re.compile(r"/[\w.@~+-]+(?:/[\w.@~+-]+){1,4}", re.ASCII)
_GITHUB = re.compile(r"/([A-Za-z0-9][A-Za-z0-9-]{0,38})/([A-Za-z0-9._-]{1,100})")
_VERSION = re.compile(r"v?(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?([.\w+-]*)", re.ASCII)
_WANTED = re.compile(r"(\d{1,9})(?:\.(\d{1,9}))?(?:\.(\d{1,9}))?")
_FIELD = re.compile(r"(?m)^[ \t]*- ([A-Z][^:\n]{0,60}):[ \t]*(.*)$")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_RULE = "-" * 32
"""The line between two blocks of documentation."""
_UNKNOWN_LIBRARY = re.compile(
    r'not[ _]finalized|library_not_found|^(?:No libraries found|Library (?:".{0,200}"|\S+) not found|No documentation'
    r"|Documentation not found|The library you are trying to access does not exist)"
)


@dataclass(frozen=True, slots=True)
class Context7:
    """A Context7 server, hosted or local. Resolve and query together are one call of the budget."""

    server: Server | None
    name: ClassVar[str] = "context7"
    is_charged: ClassVar[bool] = True

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Answer for the requested major where it is listed; a remembered ``library_id`` that is unknown by now is searched again."""
        chosen: list[Library] = []

        async def dialogue(session: McpSession) -> Answer:
            return await _Research(session, ask, chosen).answer()

        try:
            return converse(self.server, dialogue, timeout=timeout)
        except SourceFailure as failure:
            # The library is known now, though it did not answer: DeepWiki can ask about its repository.
            for library in chosen:
                failure.library_id, failure.library_versions = library.id, library.versions
                failure.repository = repository_of(library.id)
            raise


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """One item of the answer to ``resolve-library-id``."""

    id: str
    title: str
    reputation: str = ""
    benchmark: float = 0.0
    snippets: int = 0
    versions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Docs:
    """Documentation of a library; ``listed`` are the versions that the server offered in place of an unknown one."""

    passages: tuple[Passage, ...]
    library_id: str
    version: str | None
    listed: tuple[str, ...] = ()


class _UnknownLibrary(SourceFailure):
    """The id leads nowhere; a search may find another."""


class _Research:
    """One question in one session; ``chosen`` takes the library that a search chose."""

    def __init__(self, session: McpSession, ask: Ask, chosen: list[Library]) -> None:
        self._session = session
        self._ask = ask
        self._chosen = chosen

    async def answer(self) -> Answer:
        docs = await self._remembered() or await self._searched()
        return Answer(
            source=Context7.name,
            passages=docs.passages,
            url=f"https://context7.com{docs.library_id}",
            version=docs.version,
            library_id=docs.library_id,
            library_versions=docs.listed,
            repository=repository_of(docs.library_id),
        )

    async def _remembered(self) -> _Docs | None:
        known = self._ask.library_id
        if known is None or not is_library_id(known):
            return None
        library_id, version = split_version(known)
        listed = self._ask.library_versions
        try:
            docs = await self._fetch(library_id, version or self._version_among(listed))
        except _UnknownLibrary:
            return None
        return replace(docs, listed=docs.listed or listed)

    async def _searched(self) -> _Docs:
        query = self._ask.query
        reply = await self._call(
            self._session.choose("resolve-library-id"),
            {"query": query.question[:MAX_QUESTION], "libraryName": query.framework},
        )
        libraries = [] if reply.is_error else parse_libraries(reply.text)
        if not libraries:
            raise _failed(read_failure(reply.text))
        library = choose_library(query.framework, libraries)
        if library is None:
            raise SourceFailure(f"no library fits {query.framework}", is_fault=False)
        library = replace(library, id=split_version(library.id)[0])
        self._chosen.append(library)
        docs = await self._fetch(library.id, self._version_among(library.versions))
        return replace(docs, listed=docs.listed or library.versions)

    async def _fetch(self, library_id: str, version: str | None) -> _Docs:
        """Ask for documentation. For a missing version one on offer is taken, then none; a redirect is followed once."""
        may_follow = True
        offered: tuple[str, ...] = ()
        while True:
            reply = await self._query(f"{library_id}/{version}" if version else library_id)
            passages = () if reply.is_error else parse_documentation(reply.text)
            if passages:
                last = replace(passages[-1], is_cut=reply.is_cut)
                return _Docs((*passages[:-1], last), library_id, version, offered)
            failure = read_failure(reply.text)
            if failure.kind == "unknown_tag" and version:
                # The list that came with the id is out of date; what is offered now takes its place.
                is_first, offered = not offered, failure.versions or offered
                wanted = self._version_among(offered)
                version = wanted if is_first and wanted != version else None
            elif failure.kind == "redirected" and may_follow and failure.target:
                library_id, its_version = split_version(failure.target)
                version = its_version or version
                may_follow = False
            else:
                raise _failed(failure)

    async def _query(self, library_id: str) -> ToolText:
        tool = self._session.choose("query-docs", "get-library-docs")
        question = self._ask.query.question[:MAX_QUESTION]
        arguments: dict[str, str | int] = {"libraryId": library_id, "query": question}
        if "context7CompatibleLibraryID" in self._session.tools[tool]:
            arguments = {
                "context7CompatibleLibraryID": library_id,
                "topic": question,
                "tokens": _TOKENS,
            }
        return await self._call(tool, arguments)

    async def _call(self, tool: str, arguments: Mapping[str, str | int]) -> ToolText:
        taken = self._session.tools[tool]
        known = {name: value for name, value in arguments.items() if not taken or name in taken}
        return await self._session.call(tool, known)

    def _version_among(self, listed: Sequence[str]) -> str | None:
        return choose_version(self._ask.query.framework_version, listed)


# --- libraries ---


def parse_libraries(text: str) -> list[Library]:
    """Read the answer to ``resolve-library-id``; items without a well-formed id are left out."""
    found = []
    for item in re.split(r"(?m)^-{8,}\s*$", text):
        fields = dict(reversed(_FIELD.findall(item)))
        library_id = fields.get("Context7-compatible library ID", "").strip()
        if is_library_id(library_id):
            found.append(
                Library(
                    id=library_id,
                    title=fields.get("Title", "").strip(),
                    reputation=fields.get("Source Reputation", "").strip().lower(),
                    benchmark=_number(fields.get("Benchmark Score", "")),
                    snippets=int(_number(fields.get("Code Snippets", ""))),
                    versions=_versions(fields.get("Versions", "")),
                )
            )
    return found


def _versions(text: str) -> tuple[str, ...]:
    listed = (version.strip() for version in text.split(","))
    return tuple(version for version in listed if _VERSION.fullmatch(version))


def _number(text: str) -> float:
    found = re.match(r"\s*(\d{1,9}(?:\.\d{1,9})?)", text)
    return float(found[1]) if found else 0.0


def choose_library(framework: str, libraries: Iterable[Library]) -> Library | None:
    """Take the best library that is ``framework``: by reputation, benchmark, number of snippets, the server's order."""
    fitting = [library for library in libraries if fits(framework, library)]
    return max(
        fitting,
        key=lambda one: (_REPUTATION.get(one.reputation, 0), one.benchmark, one.snippets),
        default=None,
    )


def fits(framework: str, library: Library) -> bool:
    """Whether a library is the framework: case, spaces, ``-_.`` and ``.js`` are no difference, ``+`` and ``#`` are (C, C++, C#).

    ``owner/repo`` fits the same id; ``@vue/reactivity`` the same title or id, or ``reactivity`` of an owner named like the scope.
    """
    wanted = _names_of(framework)
    if wanted & (_names_of(library.title) | _names_of(library.id) | _names_of(library.id.rpartition("/")[2])):
        return True
    scoped = re.fullmatch(r"@([^/]+)/([^/]+)", framework.strip())
    if scoped is None:
        return False
    owner, last = library.id.split("/")[-2:]
    return bool(_names_of(scoped[2]) & _names_of(last)) and _squash(owner).startswith(_squash(scoped[1]))


def _names_of(name: str) -> frozenset[str]:
    """Return the spellings under which a name is known: without separators, and without a suffix ``.js``."""
    squashed = _squash(name)
    found = {squashed}
    if squashed.endswith("js") and len(squashed) > 4:
        found.add(squashed[:-2])
    return frozenset(found - {""})


def _squash(name: str) -> str:
    return re.sub(r"[\s._-]+", "", unicodedata.normalize("NFKC", name).casefold()).strip("/@")


def choose_version(wanted: str, versions: Sequence[str]) -> str | None:
    """Take the listed version of the wanted major (``2.x``, ``^15.1``, ``v15``): the exact one, else the newest.

    A release goes before a pre-release; None where none is of the major.
    """
    asked = _WANTED.search(wanted)
    if asked is None:
        return None
    exact = tuple(int(part or 0) for part in asked.groups())

    def rank(listed: re.Match[str]) -> tuple[bool, bool, int, int]:
        minor, patch = int(listed[2] or 0), int(listed[3] or 0)
        is_release = not listed[4]
        return is_release and (exact[0], minor, patch) == exact, is_release, minor, patch

    found = [listed for version in versions if (listed := _VERSION.fullmatch(version))]
    of_major = [listed for listed in found if int(listed[1]) == exact[0]]
    return max(of_major, key=rank)[0] if of_major else None


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
    """Return ``owner/repo`` when the id is a GitHub path; ``/websites/``, ``/llmstxt/`` and their like are none."""
    found = _GITHUB.fullmatch(library_id)
    if found is None or found[1].lower() in _NO_OWNERS or found[2] in {".", ".."}:
        return None
    return f"{found[1]}/{found[2]}"


# --- documentation ---


def parse_documentation(text: str) -> tuple[Passage, ...]:
    """Read documentation: blocks of ``### Title``, ``Source: URL``, prose and fenced code.

    Without a block, a text that begins with a title and holds code is taken as it is: nobody reports a failure so.
    """
    lines = text.replace("\r\n", "\n").split("\n")
    starts = list(_starts(lines))
    passages = (_passage(lines[at:stop]) for at, stop in pairwise([*starts, len(lines)]))
    found = tuple(passage for passage in passages if passage is not None)
    bare = text.strip()
    is_bare = re.match(r"### +\S", bare) and len(re.findall(r"(?m)^ {0,3}(?:```|~~~)", bare)) > 1
    return found or ((Passage(text=bare),) if is_bare else ())


def _starts(lines: Sequence[str]) -> Iterator[int]:
    """Yield where blocks start: at a title with a source below it, outside of code. A rule above it ends code that nobody closed."""
    fence, is_below_rule = "", False
    for at, line in enumerate(lines):
        if (not fence or is_below_rule) and _is_start(lines, at):
            fence = ""
            yield at
        elif mark := _FENCE.match(line):
            if not fence:
                fence = mark[1]
            elif mark[1].startswith(fence) and not line[mark.end() :].strip():
                fence = ""
        is_below_rule = line.rstrip() == _RULE or (is_below_rule and not line.strip())


def _is_start(lines: Sequence[str], at: int) -> bool:
    if not re.match(r"### +\S", lines[at]):
        return False
    following = next((line for line in lines[at + 1 : at + 4] if line.strip()), "")
    return following.startswith("Source: ")


def _passage(lines: Sequence[str]) -> Passage | None:
    source_at = next(at for at in range(1, len(lines)) if lines[at].strip())
    body = "\n".join(lines[source_at + 1 :]).strip("\n").rstrip().removesuffix(_RULE).rstrip()
    if not body.strip():
        return None
    source = lines[source_at].removeprefix("Source: ").strip()
    url = source if re.fullmatch(r"https?://[^\s<>\"]{1,2000}", source) else None
    return Passage(text=body, title=lines[0].lstrip("#").strip(), url=url)


# --- failures ---


@dataclass(frozen=True, slots=True)
class Failure:
    """What a text that is no documentation means. ``target`` is a redirect's new id, ``versions`` are offered for an unknown one."""

    kind: Literal["unknown_library", "unknown_tag", "redirected", "other"]
    said: str
    target: str | None = None
    versions: tuple[str, ...] = ()


def read_failure(text: str) -> Failure:
    line = one_line(text)
    if found := re.search(r"has been redirected to this library: (/\S+)", line):
        target = found[1].rstrip(".,;")
        return Failure("redirected", line, target=target if is_library_id(target) else None)
    if re.match(r'Tag ".{0,200}" not found', line):
        offered = re.search(r"Available tags: ([^\n]{1,4000})", text)
        return Failure("unknown_tag", line, versions=_versions(offered[1] if offered else ""))
    said = re.search(r'"message"\s*:\s*"((?:[^"\\]|\\.){1,400})"', text)
    is_unknown = _UNKNOWN_LIBRARY.search(line) is not None
    return Failure("unknown_library" if is_unknown else "other", one_line(said[1]) if said else line)


def _failed(failure: Failure) -> SourceFailure:
    kind = _UnknownLibrary if failure.kind in {"unknown_library", "redirected"} else SourceFailure
    reason = "no documentation" if failure.said else "an empty answer"
    return kind(reason, said=failure.said, is_fault=failure.kind not in {"unknown_library", "unknown_tag"})
