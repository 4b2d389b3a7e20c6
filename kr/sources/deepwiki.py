"""The DeepWiki source: a question about the framework's repository (F1, step 5b)."""

import re
from dataclasses import dataclass
from typing import ClassVar
from urllib.parse import urlsplit

from kr.errors import SourceFailure, SourceNotAsked
from kr.models import Answer
from kr.settings.model import Server
from kr.sources.base import MAX_QUESTION, Ask
from kr.sources.mcp_client import McpSession, converse
from kr.sources.mcp_tool import passages
from kr.sources.reasons import one_line

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_VIEW = re.compile(r"[\s*_>-]*View this search on DeepWiki:\**\s*<?(\S+?)>?[\s*_]*", re.IGNORECASE)
_PAGES = re.compile(r"[\s#*_]*Wiki pages you might want to explore:?[\s*_]*", re.IGNORECASE)
_ITEM = re.compile(r"\s*(?:[-*+]|\d+\.)\s.*")
_ERROR = re.compile(
    r"(?:Error(?: (?:processing|fetching|calling|executing|asking)\b[^\n:]{0,80})?:|Repository not found\b)"
)
_BRIEF_ERROR = re.compile(
    r"(?:rate limit|too many requests|unauthorized|forbidden|not found|internal server error|service unavailable"
    r"|bad gateway|gateway time-?out|an error occurred|timed? ?out)",
    re.IGNORECASE,
)
_BRIEF = 200
"""Characters of a line that may be an error without a flag."""


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
        if candidate is not None and _REPOSITORY.fullmatch(candidate.strip()):
            return candidate.strip()
    return None


def read_answer(text: str, repository: str, *, is_error: bool, is_cut: bool = False) -> Answer:
    """Make an answer of the tool's text. Raises ``SourceFailure`` for an error, flagged or not: older servers flag none."""
    stripped = text.strip()
    is_brief = len(stripped) < _BRIEF and "\n" not in stripped
    if is_error or _ERROR.match(stripped) or (is_brief and _BRIEF_ERROR.match(stripped)):
        is_unknown = re.search(r"repository not found", stripped, re.IGNORECASE) is not None
        raise SourceFailure("an error", said=stripped, is_fault=not is_unknown)
    body, url = split_navigation(stripped)
    if not body:
        raise SourceFailure("an empty answer")
    url = url or f"https://deepwiki.com/{repository}"
    return Answer(source=DeepWiki.name, passages=tuple(passages(body, url, is_cut=is_cut)), url=url)


def split_navigation(text: str) -> tuple[str, str | None]:
    """Take the list of pages and the link off the end of an answer; return the rest, and the link where it is DeepWiki's own."""
    lines = text.rstrip().split("\n")
    end, url = len(lines), None
    for at in range(len(lines) - 1, -1, -1):
        line = lines[at]
        if view := _VIEW.fullmatch(line):
            url = url or _own_url(view[1])
            end = at
        elif _PAGES.fullmatch(line):
            end = at
        elif line.strip() and not _ITEM.fullmatch(line):
            break
    return "\n".join(lines[:end]).rstrip(), url


def _own_url(text: str) -> str | None:
    try:
        parts = urlsplit(text)
    except ValueError:
        return None
    is_own = parts.scheme == "https" and parts.netloc in {"deepwiki.com", "www.deepwiki.com"}
    return text if is_own else None
