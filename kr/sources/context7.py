"""The Context7 source: find the library, then ask for its documentation (F1, step 5a).

The server reports its backend's failures as successful text, so that documentation is recognised by its shape, never by the absence
of a known failure.
"""

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import ClassVar

from kr.errors import SourceFailure
from kr.frameworks import same_framework
from kr.models import Learned
from kr.settings.model import REPOSITORY_NAME, Server
from kr.sources.base import MAX_QUESTION, Answer, Ask, Passage
from kr.sources.mcp_client import McpSession, ToolText, converse
from kr.text import fold
from kr.times import major

_TOKENS = 10_000
"""What the older query tool is asked for; it has to be given a number."""
_NO_OWNERS = frozenset({"websites", "llmstxt", "npm", "packages", "docs"})
_ID = re.compile(r"/[\w.@~+-]+(?:/[\w.@~+-]+){1,4}", re.ASCII)
_VERSION = re.compile(r"v?\d{1,9}[.\w+-]*", re.ASCII)
_RELEASE = re.compile(r"v?[\d.]+")
_FIELD = re.compile(r"(?m)^[ \t]*- ([A-Z][^:\n]{0,60}):[ \t]*(.*)$")
_BLOCK = re.compile(r"^### +(\S.*)\n(?:[ \t]*\n){0,2}Source: (\S+)[ \t]*$", re.MULTILINE)
"""How a block of documentation begins: its title, and where it is from."""
_RULE = "-" * 32
"""The line between two blocks."""
_UNKNOWN_TAG = re.compile(r'Tag ".{0,200}" not found')
_UNKNOWN_LIBRARY = re.compile(
    r'has been redirected|not[ _]finalized|library_not_found|^(?:No libraries found|Library (?:".{0,200}"|\S+) not found|No documentation'
    r"|Documentation not found|The library you are trying to access does not exist)"
)


@dataclass(frozen=True, slots=True)
class Context7:
    """A Context7 server, hosted or local. Resolve and query together are one call of the budget."""

    server: Server | None
    name: ClassVar[str] = "context7"
    is_charged: ClassVar[bool] = True

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Answer for the requested major where it is listed; a remembered library that is unknown by now is searched again."""

        async def dialogue(session: McpSession) -> Answer:
            known = ask.known
            if known.library_id is not None:
                with suppress(UnknownLibrary):
                    return await _documentation(session, ask, known.library_id, known.versions)
            library = await _search(session, ask)
            # Though it may not answer, DeepWiki can ask about its repository.
            library_id, _ = split_version(library.id)
            repository = repository_of(library_id)
            ask.learn(Learned(library_id=library_id, versions=library.versions, repository=repository))
            return await _documentation(session, ask, library.id, library.versions)

        return converse(self.server, dialogue, timeout=timeout)


@dataclass(frozen=True, slots=True, kw_only=True)
class Library:
    """One item of the answer to ``resolve-library-id``."""

    id: str
    title: str
    versions: tuple[str, ...] = ()


class UnknownLibrary(SourceFailure):
    """The id leads nowhere; a search may find another."""


async def _search(session: McpSession, ask: Ask) -> Library:
    query = ask.query
    arguments = {"query": query.question[:MAX_QUESTION], "libraryName": query.framework}
    reply = await session.call(session.choose("resolve-library-id"), arguments)
    libraries = [] if reply.is_error else parse_libraries(reply.text)
    if not libraries:
        raise failure_of(reply.text)
    for library in libraries:
        if fits(query.framework, library):
            return library
    raise SourceFailure(f"no library fits {query.framework}", is_fault=False)


async def _documentation(session: McpSession, ask: Ask, library_id: str, listed: tuple[str, ...]) -> Answer:
    """Ask for documentation: of a version that is gone without one."""
    library_id, version = split_version(library_id)
    version = version or choose_version(ask.query.framework_version, listed)
    reply = await _query(session, ask, f"{library_id}/{version}" if version else library_id)
    if version and _UNKNOWN_TAG.match(reply.text.strip()):
        version = None
        reply = await _query(session, ask, library_id)
    passages = () if reply.is_error else parse_documentation(reply.text)
    if not passages:
        raise failure_of(reply.text)
    last = replace(passages[-1], is_cut=reply.is_cut)
    url = f"https://context7.com{library_id}"
    return Answer(source=Context7.name, passages=(*passages[:-1], last), url=url, version=version)


async def _query(session: McpSession, ask: Ask, library_id: str) -> ToolText:
    """Ask the tool of either name, by the arguments that it has."""
    question = ask.query.question[:MAX_QUESTION]
    tool = session.choose("query-docs", "get-library-docs")
    new: dict[str, str | int] = {"libraryId": library_id, "query": question}
    old: dict[str, str | int] = {
        "context7CompatibleLibraryID": library_id,
        "topic": question,
        "tokens": _TOKENS,
    }
    return await session.call(tool, new | old)


# --- what the server says


def parse_libraries(text: str) -> list[Library]:
    """Read the answer to ``resolve-library-id``; items without a well-formed id are left out."""
    found = []
    for item in re.split(r"(?m)^-{8,}\s*$", text):
        fields = dict(reversed(_FIELD.findall(item)))
        library_id = fields.get("Context7-compatible library ID", "").strip()
        versions = filter(_VERSION.fullmatch, re.split(r"[,\s]+", fields.get("Versions", "")))
        if is_library_id(library_id):
            title = fields.get("Title", "").strip()
            found.append(Library(id=library_id, title=title, versions=tuple(versions)))
    return found


def fits(framework: str, library: Library) -> bool:
    """Whether a library is the framework by its title, its id, or the last part of that.

    ``@vue/reactivity`` fits ``reactivity`` of an owner whose name begins like the scope.
    """
    last, owner = library.id.split("/")[:-3:-1]
    if library.id.strip("/") == framework.strip() or same_framework(framework, library.title):
        return True
    scope, is_scoped, name = framework.strip().rpartition("/")
    if is_scoped:
        return fold(owner).startswith(fold(scope.removeprefix("@"))) and same_framework(name, last)
    return same_framework(framework, last)


def choose_version(wanted: str, versions: Sequence[str]) -> str | None:
    """Take the listed version of the wanted major (``2.x``, ``^15.1``, ``v15``): the exact one, else the newest.

    A release goes before a pre-release; None where none is of the major.
    """

    def rank(listed: str) -> tuple[bool, bool, list[int]]:
        numbers = [int(number) for number in re.findall(r"\d{1,9}", listed)]
        return listed.removeprefix("v") == wanted.removeprefix("v"), bool(_RELEASE.fullmatch(listed)), numbers

    asked = major(wanted)
    return max((it for it in versions if asked is not None and major(it) == asked), key=rank, default=None)


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
    name = library_id.removeprefix("/")
    is_shelf = name.partition("/")[0].lower() in _NO_OWNERS
    return name if re.fullmatch(REPOSITORY_NAME, name) and not is_shelf else None


def parse_documentation(text: str) -> tuple[Passage, ...]:
    """Read documentation: blocks of ``### Title``, ``Source: URL``, prose and fenced code."""
    _, *parts = _BLOCK.split(text.replace("\r\n", "\n"))
    found = []
    for title, source, block in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        body = block.strip("\n").rstrip().removesuffix(_RULE).rstrip()
        url = source if re.fullmatch(r"https?://[^\s<>\"]{1,2000}", source) else None
        if body.strip():
            found.append(Passage(text=body, title=title.strip(), url=url))
    return tuple(found)


def failure_of(text: str) -> SourceFailure:
    """Return what a text that is no documentation means."""
    text = text.strip()
    message = re.search(r'"message"\s*:\s*"([^"\\]{1,400})', text)
    said = message[1] if message else text
    if _UNKNOWN_LIBRARY.search(text):
        return UnknownLibrary("no documentation", said=said, is_fault=False)
    reason = "no documentation" if text else "an empty answer"
    return SourceFailure(reason, said=said, is_fault=_UNKNOWN_TAG.match(text) is None)
