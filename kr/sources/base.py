"""The protocol that every research source follows (SPEC 3.5)."""

from dataclasses import dataclass
from typing import Protocol

from kr.values import Answer, Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question to one source.

    ``library_id`` with its ``library_versions``, and ``repository``, are what an earlier request learned about the framework, or what
    the configuration says; a source that needs neither ignores them.
    """

    query: Query
    library_id: str | None = None
    library_versions: tuple[str, ...] = ()
    repository: str | None = None


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
