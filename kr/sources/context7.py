"""The Context7 source: find the library, then ask for its documentation (SPEC 3.5, seed 000 step 5a)."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from kr import values
from kr.errors import SourceFailure
from kr.models import Answer, Passage
from kr.sources.base import Ask, McpSource, Source, with_server
from kr.sources.context7_text import (
    Failure,
    choose_library,
    choose_version,
    is_library_id,
    parse_documentation,
    parse_libraries,
    read_failure,
    repository_among,
    repository_named,
    repository_of,
    split_version,
)

if TYPE_CHECKING:
    from kr.settings.model import KnowledgeResearch
    from kr.sources.mcp_client import McpSession, ToolText

_MAX_QUESTION = 4000
_TOKENS = 10_000
"""What the older query tool was asked for; it had to be told."""


def build(config: "KnowledgeResearch", environ: Mapping[str, str]) -> Source:  # noqa: ARG001 - every source's form
    return with_server(Context7.name, config, Context7)


@dataclass(frozen=True, slots=True)
class Context7(McpSource):
    """A Context7 server, hosted or local. Resolve and query together are one call of the budget."""

    name: ClassVar[str] = "context7"

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Answer for the requested major where it is listed; a remembered ``library_id`` that is unknown by now is searched again."""
        from kr.sources.mcp_client import converse

        chosen: list[_Chosen] = []

        async def dialogue(session: "McpSession") -> Answer:
            return await _Research(session, ask, chosen).answer()

        try:
            return converse(self.server, dialogue, timeout=timeout)
        except SourceFailure as failure:
            # The library is known now, though it did not answer: DeepWiki can ask about its repository.
            if chosen:
                failure.library_id, failure.library_versions, failure.repository = chosen[-1]
            raise


class _Chosen(NamedTuple):
    id: str
    versions: tuple[str, ...]
    repository: str | None


@dataclass(frozen=True, slots=True)
class _Docs:
    passages: tuple[Passage, ...]
    library_id: str
    version: str | None
    listed: tuple[str, ...] = ()
    repository: str | None = None


class _UnknownLibrary(SourceFailure):
    """The id leads nowhere; a search may find another."""


def _failed(failure: Failure, kind: type[SourceFailure] = SourceFailure) -> SourceFailure:
    reason = "no documentation" if failure.said else "an empty answer"
    return kind(reason, said=failure.said, is_fault=failure.is_fault)


class _Research:
    """One question in one session; ``chosen`` takes the library that a search chose."""

    def __init__(self, session: "McpSession", ask: Ask, chosen: list[_Chosen]) -> None:
        self._session = session
        self._ask = ask
        self._chosen = chosen

    async def answer(self) -> Answer:
        docs = await self._remembered() or await self._searched()
        repository = repository_of(docs.library_id) or docs.repository
        if repository is None:
            repository = repository_named(self._ask.query.framework, (one.url for one in docs.passages))
        return Answer(
            source="context7",
            passages=docs.passages,
            url=f"https://context7.com{docs.library_id}",
            version=docs.version,
            library_id=docs.library_id,
            library_versions=docs.listed,
            repository=repository,
        )

    async def _remembered(self) -> _Docs | None:
        known = self._ask.library_id
        if known is None or not is_library_id(known):
            return None
        library_id, version = split_version(known)
        listed = self._ask.library_versions
        version = version or choose_version(self._ask.query.framework_version, listed)
        try:
            docs = await self._fetch(library_id, version)
        except _UnknownLibrary:
            return None
        return replace(docs, listed=docs.listed or listed)

    async def _searched(self) -> _Docs:
        query = self._ask.query
        tool = self._session.choose("resolve-library-id")
        arguments = {"query": query.question[:_MAX_QUESTION], "libraryName": query.framework}
        reply = await self._session.call(tool, self._known(tool, arguments))
        libraries = [] if reply.is_error else parse_libraries(reply.text)
        if not libraries:
            failure = read_failure(reply.text)
            raise _failed(failure)
        library = choose_library(query.framework, libraries)
        if library is None:
            raise SourceFailure(f"no library fits {query.framework}", is_fault=False)
        chosen = _Chosen(
            split_version(library.id)[0],
            library.versions,
            repository_among(query.framework, library, libraries),
        )
        self._chosen.append(chosen)
        docs = await self._fetch(chosen.id, choose_version(query.framework_version, chosen.versions))
        return replace(docs, listed=docs.listed or chosen.versions, repository=chosen.repository)

    async def _fetch(self, library_id: str, version: str | None) -> _Docs:
        """Ask for documentation. For a missing version one on offer is taken, then none; a redirect is followed once."""
        may_follow = True
        offered: tuple[str, ...] = ()
        while True:
            reply = await self._query(f"{library_id}/{version}" if version else library_id)
            passages = () if reply.is_error else parse_documentation(reply.text)
            if passages:
                last = values.replace(passages[-1], is_cut=reply.is_cut)
                return _Docs((*passages[:-1], last), library_id, version, offered)
            failure = read_failure(reply.text)
            if failure.kind == "unknown_tag" and version:
                # The list that came with the id is out of date; what is offered now takes its place.
                is_first, offered = not offered, failure.versions or offered
                wanted = choose_version(self._ask.query.framework_version, offered)
                version = wanted if is_first and wanted != version else None
            elif failure.kind == "redirected" and may_follow and failure.detail:
                library_id, its_version = split_version(failure.detail)
                version = its_version or version
                may_follow = False
            elif failure.kind in {"unknown_library", "redirected"}:
                raise _failed(failure, _UnknownLibrary)
            else:
                raise _failed(failure)

    async def _query(self, library_id: str) -> "ToolText":
        tool = self._session.choose("query-docs", "get-library-docs")
        question = self._ask.query.question[:_MAX_QUESTION]
        if "context7CompatibleLibraryID" in self._session.tools[tool]:
            arguments: Mapping[str, str | int] = {
                "context7CompatibleLibraryID": library_id,
                "topic": question,
                "tokens": _TOKENS,
            }
        else:
            arguments = {"libraryId": library_id, "query": question}
        return await self._session.call(tool, self._known(tool, arguments))

    def _known(self, tool: str, arguments: Mapping[str, str | int]) -> dict[str, str | int]:
        taken = self._session.tools[tool]
        return {name: value for name, value in arguments.items() if not taken or name in taken}
