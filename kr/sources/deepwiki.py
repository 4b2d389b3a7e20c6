"""The DeepWiki source: a question about the framework's repository (SPEC 3.5, seed 000 step 5b)."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar
from urllib.parse import urlsplit

from kr.errors import SourceFailure, SourceNotAsked
from kr.models import Answer
from kr.sources.base import Ask, McpSource, Source, one_line, with_server
from kr.sources.mcp_tool import passages

if TYPE_CHECKING:
    from kr.settings.model import KnowledgeResearch
    from kr.sources.mcp_client import McpSession

_REPOSITORY = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}")
_MAX_QUESTION = 4000
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


def build(config: "KnowledgeResearch", environ: Mapping[str, str]) -> Source:  # noqa: ARG001 - every source's form
    return with_server(DeepWiki.name, config, DeepWiki)


@dataclass(frozen=True, slots=True)
class DeepWiki(McpSource):
    name: ClassVar[str] = "deepwiki"

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Answer from the wiki of the framework's repository, or of a framework that is given as ``owner/repo``."""
        repository = repository_for(ask)
        if repository is None:
            name = one_line(ask.query.framework, limit=80)
            raise SourceNotAsked(f"no repository known for {name}; `repositories` in kr.yaml names it")
        from kr.sources.mcp_client import converse

        question = ask.query.question[:_MAX_QUESTION]

        async def dialogue(session: "McpSession") -> Answer:
            tool = session.choose("ask_wiki_question", "ask_question")
            reply = await session.call(tool, {"repoName": repository, "question": question})
            return read_answer(reply.text, repository, is_error=reply.is_error, is_cut=reply.is_cut)

        return converse(self.server, dialogue, timeout=timeout)


def repository_for(ask: Ask) -> str | None:
    """``owner/repo`` from the ask, else from the framework's own name, when it is well formed."""
    for candidate in (ask.own_repository(), ask.repository, ask.query.framework):
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
    return Answer(source="deepwiki", passages=tuple(passages(body, url, is_cut=is_cut)), url=url)


def split_navigation(text: str) -> tuple[str, str | None]:
    """Take pages and link, where "Wiki pages you might want to explore:" introduces them, off the end; the link is returned."""
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
