"""What every research source does: it takes a question, and returns passages or raises ``SourceFailure``."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol

from kr.models import LOCAL_DOCS, Confidence, Learned, Query

MAX_QUESTION = 4_000
"""Characters of a question that are sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One piece of Markdown from a source: untrusted, not yet cleaned. ``url`` is where this very piece came from."""

    text: str
    title: str | None = None
    url: str | None = None
    is_cut: bool = False
    """Whether ``text`` is only the beginning of what stands at ``url``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a source answered. Never empty: a source with nothing to say raises ``SourceFailure``."""

    source: str
    passages: tuple[Passage, ...]
    url: str | None = None
    version: str | None = None
    """The version that the documentation is of, where the source knows it."""
    is_gap: bool = False
    """The passages are the nearest that there are, but lack the rare words of the question: no answer."""


@dataclass(frozen=True, slots=True)
class SourceKind:
    """A source: ``label`` says what its text is. ``is_answer``: it answers the question itself, and gives no pages of a search.

    ``confidence`` is a report's, ``with_code`` that of one with a code example.
    """

    label: str
    is_answer: bool
    confidence: Confidence
    with_code: Confidence


SOURCES = {
    "context7": SourceKind("official documentation through Context7", True, "medium", "high"),
    "deepwiki": SourceKind(
        "an answer of DeepWiki about the framework's own repository", True, "medium", "medium"
    ),
    "web_search": SourceKind("web pages", False, "low", "low"),
    LOCAL_DOCS: SourceKind(
        "the installed package's own documentation alone, no online source", False, "low", "low"
    ),
}


def kind_of(source: str) -> SourceKind:
    """Return what is known of a source; one of the configuration's own answers the question itself."""
    return SOURCES.get(source) or SourceKind(f"{source}, a source of one's own", True, "medium", "medium")


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
