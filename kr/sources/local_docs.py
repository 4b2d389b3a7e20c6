"""Documentation on this machine: what installed packages ship, and folders of one's own. No network and no charge."""

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from kr.documents.index import Index, Ranking, cache_folder, markdown
from kr.documents.index import ask as rank
from kr.documents.library import folder_index, package_index
from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.frameworks import same_framework
from kr.guard import mask_secrets
from kr.models import LOCAL_DOCS, Query
from kr.packages.installed import (
    InstalledPackage,
    find_installed,
    find_node_package,
    find_python_package,
    types_package,
)
from kr.sources.base import Answer, Ask, Passage

MAX_PASSAGES = 40
_MOST_DEPENDENCIES = 8
_DEPENDENCY_SECONDS = 10.0
"""After so long no further dependency is opened: an index that is not made yet takes seconds, and is there for the next question."""


class LocalDocs:
    """Answers from README and documentation files, docstrings and declarations, those of direct dependencies included."""

    name = LOCAL_DOCS
    is_charged = False

    def __init__(self, projects: Sequence[Path], environ: Mapping[str, str]) -> None:
        """Take the folders whose projects count, the working directory first, and the environment's variables."""
        self._projects = projects
        self._environ = environ

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Return passages of the version in use. Raises ``SourceTimeout``, and ``SourceFailure`` (no fault) where nothing is installed or fits."""
        deadline = time.monotonic() + timeout
        ranking, package = self.rank(ask.query, deadline)
        if time.monotonic() >= deadline:
            raise SourceTimeout("the installed documentation could not be read in time")
        if not ranking.passages:
            named = f"{package.name} {package.version} ({package.ecosystem})"
            reason = f"{named} is installed, but ships no documentation about the question"
            raise SourceFailure(reason, is_fault=False)
        passages = _passages(ranking, str)
        return Answer(source=self.name, passages=passages, version=package.version, is_gap=ranking.is_gap)

    def rank(self, query: Query, deadline: float) -> tuple[Ranking, InstalledPackage]:
        """Rank the passages of the installed package that a query means; of two with the same name the one that fits it better."""
        packages = find_installed(query.framework, self._projects, self._environ)
        if not packages:
            places = "node_modules of the working directory and above, VIRTUAL_ENV, .venv, venv"
            raise SourceFailure(f"no package of this name is installed; looked in {places}", is_fault=False)
        ranked = [(self._rank(package, query, deadline), package) for package in packages]
        return min(ranked, key=lambda row: row[0].rarest)

    def _rank(self, package: InstalledPackage, query: Query, deadline: float) -> Ranking:
        last = min(deadline, time.monotonic() + _DEPENDENCY_SECONDS)
        with closing(self._index(package)) as own:
            return rank(own, query, self._dependencies(package, last))

    def _index(self, package: InstalledPackage) -> Index:
        types = self._find(package, types_package(package.name)) if package.ecosystem == "npm" else None
        connection = package_index(package, types, cache_folder(self._environ))
        return Index(f"{package.name} {package.version}", connection)

    def _dependencies(self, package: InstalledPackage, deadline: float) -> Iterator[Index]:
        for name in package.requires[:_MOST_DEPENDENCIES]:
            found = self._find(package, name) if time.monotonic() < deadline else None
            if found is not None and found.name != package.name:
                with closing(self._index(found)) as index:
                    yield index

    def _find(self, package: InstalledPackage, name: str) -> InstalledPackage | None:
        if package.ecosystem == "python":
            return find_python_package(name, self._projects, self._environ)
        # A package of node finds its own dependencies beside or below itself (pnpm).
        places = (package.root, *self._projects)
        return next((found for place in places if (found := find_node_package(name, place))), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder of one's own: Markdown, reStructuredText, text and HTML about ``framework``, or about any where it is None."""

    name: str
    folder: Path
    framework: str | None
    environ: Mapping[str, str]
    is_charged: ClassVar[bool] = False

    def ask(self, ask: Ask, *, timeout: float) -> Answer:  # noqa: ARG002 - the index of a folder is made in seconds
        """Return the best passages, secrets masked.

        Raises ``SourceFailure``, which is no fault where no document has a word of the question, and ``SourceNotAsked`` where the folder
        is about something else.
        """
        if self.framework is not None and not same_framework(self.framework, ask.query.framework):
            raise SourceNotAsked(f"it is about {self.framework}")
        with closing(self._index()) as index:
            ranking = rank(index, ask.query)
        if not ranking.passages:
            raise SourceFailure("no document has a word of the question", is_fault=False)
        # One's own documents may hold secrets, which must not come into a report.
        return Answer(source=self.name, passages=_passages(ranking, mask_secrets), is_gap=ranking.is_gap)

    def check(self) -> None:
        """Read the folder, as a question does. Raises ``SourceFailure`` where it can't be read or holds no document."""
        with closing(self._index()) as index:
            if not index.size():
                raise SourceFailure(f"the folder {self.folder.name} holds no document")

    def _index(self) -> Index:
        try:
            return Index(self.name, folder_index(self.folder, cache_folder(self.environ)))
        except OSError as error:
            reason = f"the folder {self.folder.name} can't be read ({type(error).__name__})"
            raise SourceFailure(reason) from error


def _passages(ranking: Ranking, clean: Callable[[str], str]) -> tuple[Passage, ...]:
    """Return the best passages, each by its name or headings and the package that it is of: no place of the machine."""
    return tuple(
        Passage(text=clean(markdown(it.section)), title=clean(it.section.name), url=it.package)
        for it in ranking.passages[:MAX_PASSAGES]
    )
