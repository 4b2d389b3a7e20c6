"""The protocol that every research source follows (SPEC 3.5), and the way from a source's name to what asks it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Protocol

from kr.errors import SourceNotAsked
from kr.values import Answer, Query, ServerConfig

if TYPE_CHECKING:
    from kr.settings.model import KnowledgeResearch


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question to one source.

    ``library_id`` with its ``library_versions``, and ``repository``, are what an earlier request learned about the
    framework; ``own_repository`` finds what the configuration or the installed package says, which may start the
    project's Python: only a source that needs it calls it.
    """

    query: Query
    library_id: str | None = None
    library_versions: tuple[str, ...] = ()
    repository: str | None = None
    own_repository: Callable[[], str | None] = lambda: None


class Source(Protocol):
    """A place that answers questions.

    ``ask`` blocks for at most about ``timeout`` seconds, importing what it needs when it is first called.
    It returns an answer with at least one passage of real documentation, or raises ``SourceFailure``
    (``SourceTimeout`` when it gave none in time); nothing else leaves it. It leaves no process, socket or
    file behind, whatever ends it.
    """

    @property
    def name(self) -> str:
        """The name in ``sources``, ``sources_consulted`` and the ledger."""

    @property
    def is_charged(self) -> bool:
        """Whether an answer costs a call of the story's budget."""

    def prepare(self) -> None:
        """Import what asking needs: that takes a while, and is no part of a call's own time."""

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Answer, or raise ``SourceFailure``. ``timeout`` is in seconds and positive."""


class NotConfigured:
    """Stands in the chain for a source that has no server: it says so when it is asked."""

    is_charged = True

    def __init__(self, name: str, *, hint: str) -> None:
        self.name = name
        self._hint = hint

    def prepare(self) -> None:
        """There is nothing to import."""

    def ask(self, ask: Ask, *, timeout: float) -> Answer:  # noqa: ARG002 - the protocol's parameters
        """Refuse, with a hint at the setting that is missing."""
        raise SourceNotAsked(f"not configured ({self._hint})")


def with_server(name: str, config: "KnowledgeResearch", make: Callable[[ServerConfig], Source]) -> Source:
    """Make a source of the MCP server that the settings have under its name, or what says that there is none."""
    server = config.servers.get(name)
    if server is None:
        return NotConfigured(name, hint=f"knowledge_research.servers.{name}")
    return make(
        ServerConfig(
            url=server.url,
            headers=server.headers,
            command=server.command,
            args=tuple(server.args),
            env=server.env,
        )
    )


def build_source(name: str, config: "KnowledgeResearch", environ: Mapping[str, str]) -> Source:
    """Build a source of the chain with its module's ``build(config, environ)``. Nothing is asked yet."""
    source: Source = import_module(f"kr.sources.{name}").build(config, environ)
    return source
