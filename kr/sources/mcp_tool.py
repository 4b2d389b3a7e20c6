"""A tool of any MCP server as a source of one's own (SPEC 3.5.5): its text is the answer."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kr.errors import SourceFailure
from kr.models import Answer, Passage
from kr.sources.base import Ask, McpSource

if TYPE_CHECKING:
    from kr.sources.mcp_client import McpSession

_MAX_QUESTION = 4_000


@dataclass(frozen=True, slots=True)
class McpTool(McpSource):
    """Asks ``tool`` with the question as ``argument``; a framework and a version go along where the tool takes them by these names."""

    name: str
    tool: str
    argument: str

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Return the tool's text. Raises ``SourceFailure`` where it is an error or empty."""
        from kr.sources.mcp_client import converse

        query = ask.query

        async def dialogue(session: "McpSession") -> Answer:
            name = session.choose(self.tool)
            arguments: dict[str, str | int] = {self.argument: query.question[:_MAX_QUESTION]}
            others = {"framework": query.framework, "framework_version": query.framework_version}
            arguments |= {
                key: value
                for key, value in others.items()
                if key in session.tools[name] and key != self.argument
            }
            reply = await session.call(name, arguments)
            if reply.is_error:
                raise SourceFailure("an error", said=reply.text.strip())
            if not reply.text.strip():
                raise SourceFailure("an empty answer", is_fault=False)
            return Answer(
                source=self.name, passages=tuple(passages(reply.text, self.name, is_cut=reply.is_cut))
            )

        return converse(self.server, dialogue, timeout=timeout)


def passages(text: str, place: str, *, is_cut: bool = False) -> list[Passage]:
    """Cut an answer's text into passages below its headings, in its own order: the tool has ranked it."""
    from kr.documents.text import markdown_sections

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
