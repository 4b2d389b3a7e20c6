"""Sources that are one tool of an MCP server, asked one question: DeepWiki (F1, step 5b), and any server's as a source of one's own."""

import re
from dataclasses import dataclass, replace
from typing import ClassVar

from kr.documents.text import markdown_sections
from kr.errors import SourceFailure, SourceNotAsked
from kr.guard import mask_secrets
from kr.settings.model import REPOSITORY_NAME, Server
from kr.sources.base import MAX_QUESTION, Answer, Ask, Passage
from kr.sources.mcp_client import McpSession, ToolText, converse

_NAVIGATION = re.compile(
    r"^[ \t#*_>-]*(?:Wiki pages you might want to explore|View this search on DeepWiki)\b", re.MULTILINE
)
_ERROR = re.compile(
    r"(?:Error(?: (?:processing|fetching|calling|executing|asking)\b[^\n:]{0,80})?:|Repository not found\b)"
    r"|(?=.{0,199}\Z)(?:rate limit|too many requests|unauthorized|forbidden|not found|internal server error"
    r"|service unavailable|bad gateway|gateway time-?out|an error occurred|timed? ?out)",
    re.IGNORECASE,
)
"""An error without a flag: by its first words, or one short line that begins like one."""


@dataclass(frozen=True, slots=True)
class DeepWiki:
    """DeepWiki's question tool, by either of the names that it had."""

    server: Server | None
    name: ClassVar[str] = "deepwiki"
    is_charged: ClassVar[bool] = True

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Answer from the wiki of the framework's repository, or of a framework that is given as ``owner/repo``."""
        repository = repository_for(ask)
        if repository is None:
            reason = f"no repository known for {ask.query.framework}; `repositories` in kr.yaml names it"
            raise SourceNotAsked(reason)

        async def dialogue(session: McpSession) -> Answer:
            tool = session.choose("ask_wiki_question", "ask_question")
            arguments = {"repoName": repository, "question": ask.query.question[:MAX_QUESTION]}
            return read_answer(await session.call(tool, arguments), repository)

        return converse(self.server, dialogue, timeout=timeout)


def repository_for(ask: Ask) -> str | None:
    """Return ``owner/repo`` as configured, installed or learned, else the framework's own name, when it is well formed."""
    for candidate in (ask.own_repository(), ask.known.repository, ask.query.framework):
        if candidate is not None and re.fullmatch(REPOSITORY_NAME, candidate.strip()):
            return candidate.strip()
    return None


def read_answer(reply: ToolText, repository: str) -> Answer:
    """Make an answer of DeepWiki's text. Raises ``SourceFailure`` for an error, flagged or not: older servers flag none."""
    text = reply.text.strip()
    if reply.is_error or _ERROR.match(text):
        is_unknown = re.search(r"repository not found", text, re.IGNORECASE) is not None
        raise SourceFailure("an error", said=text, is_fault=not is_unknown)
    # The list of pages and the link at its end are no part of it.
    body = _NAVIGATION.split(text, maxsplit=1)[0].rstrip()
    if not body:
        raise SourceFailure("an empty answer")
    url = f"https://deepwiki.com/{repository}"
    return Answer(source=DeepWiki.name, passages=_passages(body, url, is_cut=reply.is_cut), url=url)


@dataclass(frozen=True, slots=True)
class McpTool:
    """Asks ``tool`` with the question as ``argument``; a framework and a version go along where the tool takes them by these names."""

    server: Server | None
    name: str
    tool: str
    argument: str
    is_charged: ClassVar[bool] = True

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Return the tool's text, secrets masked. Raises ``SourceFailure`` where it is an error or empty."""
        query = ask.query

        async def dialogue(session: McpSession) -> Answer:
            about = {"framework": query.framework, "framework_version": query.framework_version}
            arguments = {**about, self.argument: query.question[:MAX_QUESTION]}
            reply = await session.call(session.choose(self.tool), arguments)
            if reply.is_error:
                raise SourceFailure("an error", said=reply.text.strip())
            if not reply.text.strip():
                raise SourceFailure("an empty answer", is_fault=False)
            found = _passages(mask_secrets(reply.text), self.name, is_cut=reply.is_cut)
            return Answer(source=self.name, passages=found)

        return converse(self.server, dialogue, timeout=timeout)


def _passages(text: str, place: str, *, is_cut: bool) -> tuple[Passage, ...]:
    """Cut an answer's text into passages below its headings, in its own order: the tool has ranked it."""
    *found, last = (
        Passage(text=one.text, title=one.name or None, url=place)
        for one in markdown_sections(text, place=place, title="")
    )
    return (*found, replace(last, is_cut=is_cut))
