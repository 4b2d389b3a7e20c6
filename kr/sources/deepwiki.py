"""The DeepWiki source: a question about the framework's repository (F1, step 5b)."""

import re
from dataclasses import dataclass
from typing import ClassVar

from kr.errors import SourceFailure, SourceNotAsked
from kr.models import Answer
from kr.settings.model import REPOSITORY_NAME, Server
from kr.sources.base import MAX_QUESTION, Ask
from kr.sources.mcp_client import McpSession, converse
from kr.sources.mcp_tool import passages
from kr.sources.reasons import one_line

_VIEW = re.compile(
    r"View this search on DeepWiki:\W*(https://(?:www\.)?deepwiki\.com/[^\s<>*]+?)[*_>]*\s*$", re.MULTILINE
)
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
            name = one_line(ask.query.framework, limit=80)
            raise SourceNotAsked(f"no repository known for {name}; `repositories` in kr.yaml names it")

        async def dialogue(session: McpSession) -> Answer:
            tool = session.choose("ask_wiki_question", "ask_question")
            question = ask.query.question[:MAX_QUESTION]
            reply = await session.call(tool, {"repoName": repository, "question": question})
            return read_answer(reply.text, repository, is_error=reply.is_error, is_cut=reply.is_cut)

        return converse(self.server, dialogue, timeout=timeout)


def repository_for(ask: Ask) -> str | None:
    """Return ``owner/repo`` as configured, installed or learned, else the framework's own name, when it is well formed."""
    for candidate in (ask.own_repository(), ask.known.repository, ask.query.framework):
        if candidate is not None and re.fullmatch(REPOSITORY_NAME, candidate.strip()):
            return candidate.strip()
    return None


def read_answer(text: str, repository: str, *, is_error: bool, is_cut: bool = False) -> Answer:
    """Make an answer of the tool's text. Raises ``SourceFailure`` for an error, flagged or not: older servers flag none."""
    stripped = text.strip()
    if is_error or _ERROR.match(stripped):
        is_unknown = re.search(r"repository not found", stripped, re.IGNORECASE) is not None
        raise SourceFailure("an error", said=stripped, is_fault=not is_unknown)
    # The list of pages and the link at its end are no part of it.
    body, view = _NAVIGATION.split(stripped, maxsplit=1)[0].rstrip(), _VIEW.search(stripped)
    if not body:
        raise SourceFailure("an empty answer")
    url = view[1] if view else f"https://deepwiki.com/{repository}"
    return Answer(source=DeepWiki.name, passages=tuple(passages(body, url, is_cut=is_cut)), url=url)
