"""What every research source does: it takes a question, and returns passages or raises ``SourceFailure``."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from kr.models import Answer, Learned, Query

MAX_QUESTION = 4_000
"""Characters of a question that are sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question to one source, with what is ``known`` about the framework; ``learn`` takes what the source learns, answer or not.

    ``own_repository`` looks the framework's repository up in the settings and the project: only a source that needs it calls it.
    """

    query: Query
    known: Learned = field(default_factory=Learned)
    learn: Callable[[Learned], None] = lambda _: None
    own_repository: Callable[[], str | None] = lambda: None


class Source(Protocol):
    """A place that answers questions."""

    @property
    def name(self) -> str:
        """The name in ``sources``, ``sources_consulted`` and the ledger."""

    @property
    def is_charged(self) -> bool:
        """Whether an answer costs a call of the story's budget."""

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Answer within about ``timeout`` seconds, with at least one passage.

        Raises ``SourceFailure`` (``SourceTimeout`` where no answer came in time), and nothing else. Whatever ends it, no process, socket
        or file is left behind.
        """
