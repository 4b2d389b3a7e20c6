"""The documentation that the installed package itself ships (SPEC 3.5.6): no network and no charge."""

import itertools
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from kr.errors import SourceFailure, SourceTimeout
from kr.sources.base import Ask
from kr.values import Answer, Passage, Query

if TYPE_CHECKING:
    from kr.documents.rank import Index, Ranking
    from kr.packages.installed import InstalledPackage

MAX_PASSAGES = 40
_MOST_DEPENDENCIES = 8
_DEPENDENCY_SECONDS = 10.0
"""After so long no further dependency is opened: an index that is not made yet takes seconds, and is there for the next question."""


class LocalDocs:
    """Answers from README and documentation files, docstrings and declarations, those of direct dependencies included."""

    name = "local_docs"
    is_charged = False

    def __init__(self, projects: Sequence[Path], environ: Mapping[str, str]) -> None:
        """Take the folders whose projects count, the working directory first, and the environment's variables."""
        self._projects = projects
        self._environ = environ

    def prepare(self) -> None:
        """There is nothing heavy to import."""

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Return passages of the version in use. Raises ``SourceTimeout``, and ``SourceFailure`` (no fault) where nothing is installed or fits."""
        from kr.packages.installed import find_installed, places_searched

        deadline = time.monotonic() + timeout
        packages = find_installed(ask.query.framework, self._projects, self._environ)
        if not packages:
            where = places_searched(self._projects, self._environ)
            raise SourceFailure(f"no package of this name is installed; looked in {where}", is_fault=False)
        ranked = [(self._rank(package, ask.query, deadline), package) for package in packages]
        ranking, package = min(ranked, key=lambda row: row[0].gap)
        if time.monotonic() >= deadline:
            raise SourceTimeout("the installed documentation could not be read in time")
        if not ranking.passages:
            named = " and ".join(f"{p.name} {p.version} ({p.ecosystem})" for p in packages)
            raise SourceFailure(
                f"{named} is installed, but ships no documentation about the question", is_fault=False
            )
        return Answer(
            source=self.name,
            passages=passages_of(ranking),
            version=package.version,
            repository=package.repository,
            is_gap=ranking.is_gap,
        )

    def _rank(self, package: "InstalledPackage", query: Query, deadline: float) -> "Ranking":
        from kr.documents.rank import ask, question_of

        own = self._index(package)
        dependencies = self._dependencies(package, min(deadline, time.monotonic() + _DEPENDENCY_SECONDS))
        try:
            return ask(own, question_of(query), dependencies)
        finally:
            own.close()
            dependencies.close()

    def _index(self, package: "InstalledPackage") -> "Index":
        from kr.documents.index import cache_folder
        from kr.documents.library import package_index
        from kr.documents.rank import Index
        from kr.packages.installed import types_package

        types = self._find(package, types_package(package.name)) if package.ecosystem == "npm" else None
        connection = package_index(package, types, cache_folder(self._environ))
        return Index(f"{package.name} {package.version}", connection)

    def _dependencies(self, package: "InstalledPackage", deadline: float) -> "Generator[Index, None, None]":
        for name in package.requires[:_MOST_DEPENDENCIES]:
            found = self._find(package, name) if time.monotonic() < deadline else None
            if found is None or found.name == package.name:
                continue
            index = self._index(found)
            try:
                yield index
            finally:
                index.close()

    def _find(self, package: "InstalledPackage", name: str) -> "InstalledPackage | None":
        from kr.packages.installed import find_node_package, find_python_package

        if package.ecosystem == "python":
            return find_python_package(name, self._projects, self._environ)
        # A package of node finds its own dependencies beside or below itself (pnpm).
        places = (package.root, *self._projects)
        return next((found for place in places if (found := find_node_package(name, place))), None)


def passages_of(ranking: "Ranking") -> tuple[Passage, ...]:
    """Return the best passages, each by its name or headings and the package that it is of: no place of the machine."""
    from kr.documents.rank import markdown

    best = itertools.islice(ranking.passages, MAX_PASSAGES)
    return tuple(Passage(text=markdown(one.section), title=one.section.name, url=one.package) for one in best)
