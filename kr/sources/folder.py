"""A folder of documents of one's own (SPEC 3.5.5): no network, no charge. What changes on disk is found anew."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kr.errors import SourceFailure, SourceNotAsked
from kr.models import Answer
from kr.sources.base import Ask

if TYPE_CHECKING:
    from kr.documents.rank import Index


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """Answers questions about ``framework``, or about any where it is None, from Markdown, reStructuredText, text and HTML."""

    name: str
    folder: Path
    framework: str | None
    environ: Mapping[str, str]

    @property
    def is_charged(self) -> bool:
        """Whether an answer costs a call."""
        return False

    def prepare(self) -> None:
        """There is nothing heavy to import."""

    def ask(self, ask: Ask, *, timeout: float) -> Answer:  # noqa: ARG002 - the index of a folder is made in seconds
        """Return the best passages. Raises ``SourceFailure``: no fault where the folder has nothing, and ``SourceNotAsked`` where it is about something else."""
        from kr.documents.rank import ask as rank
        from kr.documents.rank import question_of
        from kr.frameworks import same_framework
        from kr.sources.local_docs import passages_of

        if self.framework is not None and not same_framework(self.framework, ask.query.framework):
            raise SourceNotAsked(f"it is about {self.framework}")
        index = self._index()
        try:
            ranking = rank(index, question_of(ask.query))
        finally:
            index.close()
        if not ranking.passages:
            raise SourceFailure(
                "no document has a word of the question (those over 1 MiB are not read)", is_fault=False
            )
        return Answer(source=self.name, passages=passages_of(ranking), is_gap=ranking.is_gap)

    def check(self) -> None:
        """Read the folder, as a question does. Raises ``SourceFailure`` where it can't be read or holds no document."""
        index = self._index()
        try:
            if not index.size():
                raise SourceFailure(f"the folder {self.folder.name} holds no document")
        finally:
            index.close()

    def _index(self) -> "Index":
        from kr.documents.index import cache_folder
        from kr.documents.library import folder_index
        from kr.documents.rank import Index

        try:
            return Index(self.name, folder_index(self.folder, cache_folder(self.environ)))
        except OSError as error:
            raise SourceFailure(
                f"the folder {self.folder.name} can't be read ({type(error).__name__})"
            ) from error
