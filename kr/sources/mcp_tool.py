"""A tool of any MCP server as a source of one's own: its text is the answer."""

from dataclasses import dataclass
from typing import ClassVar

from kr.documents.text import markdown_sections
from kr.errors import SourceFailure
from kr.guard import mask_secrets
from kr.models import Answer, Passage
from kr.settings.model import Server
from kr.sources.base import MAX_QUESTION, Ask
from kr.sources.mcp_client import McpSession, converse


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
            name = session.choose(self.tool)
            others = {"framework": query.framework, "framework_version": query.framework_version}
            known = {key: value for key, value in others.items() if key in session.tools[name]}
            reply = await session.call(name, {**known, self.argument: query.question[:MAX_QUESTION]})
            if reply.is_error:
                raise SourceFailure("an error", said=reply.text.strip())
            if not reply.text.strip():
                raise SourceFailure("an empty answer", is_fault=False)
            found = passages(mask_secrets(reply.text), self.name, is_cut=reply.is_cut)
            return Answer(source=self.name, passages=tuple(found))

        return converse(self.server, dialogue, timeout=timeout)


def passages(text: str, place: str, *, is_cut: bool = False) -> list[Passage]:
    """Cut an answer's text into passages below its headings, in its own order: the tool has ranked it."""
    found = list(markdown_sections(text, place=place, title=""))
    return [
        Passage(
            text=one.text,
            title=one.name.removeprefix(": ") or None,
            url=place,
            is_cut=is_cut and one is found[-1],
        )
        for one in found
    ]
