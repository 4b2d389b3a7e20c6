"""The documentation that the installed package itself ships (SPEC 3.5.5): no network and no charge."""

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kr.errors import SourceFailure, SourceTimeout
from kr.sources.base import Ask
from kr.values import Answer, Passage

if TYPE_CHECKING:
    from kr.packages.installed_package import InstalledPackage
    from kr.reports.terms import Terms

MAX_PASSAGES = 12
MAX_TEXT = 64 * 1024
_MAX_DOCUMENTS = 2 * 1024 * 1024
_MAX_SOURCES = 16 * 1024 * 1024
_MAX_SOURCE = 512 * 1024
_SOURCE_SECONDS = 3.0
_SECONDS = 10.0
_RENDERED = 30
_MAX_INITS = 100
_PER_TITLE = 3
_ALIKE = 0.75  # of the different words of two texts that they share
_LEAST_OF_BEST = 0.2


@dataclass(frozen=True, slots=True)
class _Piece:
    """A candidate: a section of a document, or a docstring that is rendered only when it ranks high."""

    title: str
    text: str
    origin: str
    """Where it stands, relative to the package: ``README``, ``click/core.py``."""
    signature: str | None = None
    """None for a section of a document; the signature, maybe empty, for a docstring."""


class LocalDocs:
    """Answers from README and documentation files, the distribution's description and docstrings."""

    name = "local_docs"
    is_charged = False

    def __init__(self, project_dir: Path, environ: Mapping[str, str]) -> None:
        self._project_dir = project_dir
        self._environ = environ

    def prepare(self) -> None:
        """There is nothing heavy to import."""

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Return the passages that fit the question, of the version in use.

        Raises ``SourceFailure`` (no fault) when the package is not installed or says nothing about the
        question, ``SourceTimeout`` when ``timeout`` seconds were too few to look.
        """
        from kr.packages.installed import find_installed
        from kr.reports.terms import question_terms

        deadline = time.monotonic() + timeout
        query = ask.query
        packages = find_installed(
            query.framework, self._project_dir, self._environ, timeout=min(5.0, timeout)
        )
        if not packages:
            raise SourceFailure("no package of this name is installed for the project", is_fault=False)
        terms = question_terms(query.framework, query.question, query.topic)
        for package in packages:
            passages = _passages(package, terms, deadline)
            if passages:
                return Answer(
                    source=self.name,
                    passages=passages,
                    url=package.home,
                    version=package.version,
                    repository=package.repository,
                )
        if time.monotonic() >= deadline:
            raise SourceTimeout("the installed documentation could not be read in time")
        named = " and ".join(f"{p.name} {p.version} ({p.ecosystem})" for p in packages)
        raise SourceFailure(
            f"{named} is installed, but ships no documentation about the question", is_fault=False
        )


def _passages(package: "InstalledPackage", terms: "Terms", deadline: float) -> tuple[Passage, ...]:
    from kr.packages.relevance import answers
    from kr.reports.ranking import rank

    expired = _limit(deadline, _SECONDS)
    pieces = [*_sections(package, expired), *_docstrings(package, terms, deadline)]
    weigh = _standing(package)
    first, rare = rank(
        [(p.title, p.text) for p in pieces], terms, expired=expired, factors=[weigh(p) for p in pieces]
    )
    if not answers(first, terms):
        return ()
    shown: list[_Piece] = []
    for row in first[:_RENDERED]:
        if not expired():
            shown += _rendered(pieces[row.index])
    # Ranked once more: a long docstring has become several pieces, of which one answers.
    second, _ = rank([(p.title, p.text) for p in shown], terms, rare=rare, factors=[weigh(p) for p in shown])
    enough = second[0].score * _LEAST_OF_BEST if second else 0.0
    return _best([shown[row.index] for row in second if row.score >= enough], package)


def _limit(deadline: float, seconds: float) -> "Callable[[], bool]":
    """Tell when to stop: at the deadline, or after so many seconds of own work, so that load changes no answer."""
    enough = time.thread_time() + seconds
    return lambda: time.thread_time() >= enough or time.monotonic() >= deadline


def _standing(package: "InstalledPackage") -> "Callable[[_Piece], float]":
    """Tell what the package means for its users from what it keeps to itself (Python only)."""
    from kr.packages.exports import exported_names, standing
    from kr.packages.folder import Unreadable, read_bytes

    texts: list[str] = []
    for path in [path for path in package.sources if path.name == "__init__.py"][:_MAX_INITS]:
        with contextlib.suppress(Unreadable):
            texts.append((read_bytes(path, limit=_MAX_SOURCE) or b"").decode("utf-8", errors="replace"))
    exported = exported_names(texts)

    def weigh(piece: _Piece) -> float:
        is_python = piece.signature is not None and piece.origin.endswith(".py")
        return standing(piece.title, exported) if is_python else 1.0

    return weigh


def _best(ranked: list[_Piece], package: "InstalledPackage") -> tuple[Passage, ...]:
    """Take the best pieces, few of the same title and each text once, also where it varies a little."""
    taken: list[Passage] = []
    size = 0
    titles: dict[str, int] = {}
    seen: list[frozenset[str]] = []
    for piece in ranked:
        titles[piece.title] = titles.get(piece.title, 0) + 1
        if titles[piece.title] > _PER_TITLE or size + len(piece.text.encode()) > MAX_TEXT:
            continue
        words = frozenset(piece.text.split())
        if any(len(words & known) >= _ALIKE * len(words | known) for known in seen):
            continue
        seen.append(words)
        size += len(piece.text.encode())
        place = f"{package.name} {package.version}, {piece.origin}"
        last = (
            piece.title.rpartition(".")[2]
            if piece.signature is not None
            else piece.title.rpartition(" > ")[2]
        )
        taken.append(Passage(text=piece.text, title=piece.title, url=f"{place}: {last}" if last else place))
        if len(taken) == MAX_PASSAGES:
            break
    return tuple(taken)


def _sections(package: "InstalledPackage", expired: Callable[[], bool]) -> Iterator[_Piece]:
    from kr.packages.folder import Unreadable, read_bytes
    from kr.packages.sections import split_sections

    for origin, text in _documents(package, read_bytes, Unreadable):
        if expired():
            return
        for section in split_sections(text, title=""):
            yield _Piece(section.title or package.name, section.text, origin)


def _documents(
    package: "InstalledPackage",
    read_bytes: Callable[..., bytes | None],
    unreadable: type[Exception],
) -> Iterator[tuple[str, str]]:
    """Yield ``(origin, Markdown)`` of the description and of each document file."""
    from kr.packages.restructured import to_markdown

    described = package.description
    if described is not None:
        is_restructured = described.content_type in {"text/x-rst", "text/prs.fallenstein.rst"}
        text = to_markdown(described.text) if is_restructured else described.text
        yield "description", text
    room = _MAX_DOCUMENTS
    for path in package.documents:
        try:
            data = read_bytes(path, limit=_MAX_DOCUMENTS)
        except unreadable:
            continue
        if not data or len(data) > room:
            continue
        room -= len(data)
        text = data.decode("utf-8", errors="replace")
        yield path.relative_to(package.root).as_posix(), to_markdown(text) if path.suffix == ".rst" else text


def _docstrings(package: "InstalledPackage", terms: "Terms", deadline: float) -> Iterator[_Piece]:
    """Yield the docstrings of the sources that mention the terms, the most mentioning file first."""
    from kr.packages.docstrings import parse_source
    from kr.packages.jsdoc import parse_declarations
    from kr.reports.ranking import rarity

    expired = _limit(deadline, _SOURCE_SECONDS)
    found = list(_mentioning(package, terms, expired))
    rare = rarity(terms, (mentioned for mentioned, _, _ in found))
    weights = [scarce * term.weight for scarce, term in zip(rare, terms.all, strict=True)]
    found.sort(key=lambda row: -sum(weights[at] * count for at, count in row[0].items()))
    for _, origin, text in found:
        if expired():
            return
        module = _module(origin)
        parse = parse_source if origin.endswith(".py") else parse_declarations
        for entry in parse(text, module):
            yield _Piece(entry.name, f"{entry.signature}\n{entry.docstring}", origin, entry.signature)


def _mentioning(
    package: "InstalledPackage", terms: "Terms", expired: "Callable[[], bool]"
) -> Iterator[tuple[dict[int, int], str, str]]:
    """Yield ``(terms, origin, text)`` of the sources that mention any term."""
    from kr.packages.folder import Unreadable, read_bytes

    room = _MAX_SOURCES
    for path in package.sources:
        if expired():
            return
        try:
            data = read_bytes(path, limit=_MAX_SOURCE)
        except Unreadable:
            continue
        if not data or len(data) > room:
            continue
        room -= len(data)
        text = data.decode("utf-8", errors="replace")
        mentioned = terms.glimpse(text)
        if mentioned:
            yield mentioned, path.relative_to(package.root).as_posix(), text


def _module(origin: str) -> str:
    if origin.endswith(".py"):
        return origin.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
    return origin.rpartition("/")[2].partition(".")[0]


def _rendered(piece: _Piece) -> list[_Piece]:
    """Turn a docstring into Markdown, in pieces where it is long; a section is there already."""
    if piece.signature is None:
        return [piece]
    from kr.packages.docstrings import docstring_markdown
    from kr.packages.restructured import fence
    from kr.packages.sections import split_sections

    is_python = piece.origin.endswith(".py")
    language = "python" if is_python else "typescript" if piece.origin.endswith(".d.ts") else "javascript"
    docstring = piece.text[len(piece.signature) + 1 :]
    text = docstring_markdown(docstring) if is_python else docstring
    head = f"{fence(piece.signature, language)}\n\n" if piece.signature else ""
    sections = split_sections(text, title=piece.title)
    return [
        _Piece(piece.title, (head if index == 0 else "") + section.text, piece.origin, piece.signature)
        for index, section in enumerate(sections)
    ]
