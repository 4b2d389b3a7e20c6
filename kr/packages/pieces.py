"""All that an installed package says, in pieces that can be ranked: sections of documents, names with their texts."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from kr.packages.declarations import Declaration, parse_declarations
from kr.packages.documented import Documented, first_sentence
from kr.packages.folder import Unreadable, read_bytes
from kr.packages.installed import CYTHON, InstalledPackage
from kr.packages.public_names import PublicNames
from kr.packages.restructured import code_span, fence
from kr.reports.terms import Terms

_MAX_DOCUMENTS = 2 * 1024 * 1024
_MAX_SOURCES = 24 * 1024 * 1024
_MAX_SOURCE = 4 * 1024 * 1024
_MAX_TEMPLATE = 32 * 1024
_MAX_INITS = 200
_MAX_FOREIGN = 60
_MAX_PARSED = 120
_LEAST_TOLD = 0.15  # of the file that mentions most of the question
_SMALL = 8 * 1024
_OF_RELATED = 0.9
_OF_TEMPLATES = 0.8
_OF_ERRORS = 0.5  # what can go wrong is named after what was meant to go right
_OF_PLUMBING = 0.7
_OF_ASYNC = 0.9  # the twin of a name that does the same for asynchronous code
_PLUMBING = re.compile(
    r"(?<![^.])(?:(testing|internals?|abc|low_?level|(?:[a-z]+_)?compat)(?=\.)|(Base|Abstract|Serialized|Normalized|Resolved|Internal)(?=[A-Z])|\w+?(Base|Mixin|Interface|Handle|Server|Normalized|Internal)(?![a-z]))"
)
"""Parts of names that stand for tests, for the far side of a connection, for what options become, or for what others are built on."""
_ASYNC = re.compile(r"(?<![^.])Async[A-Z]")
_CALLED = re.compile(r"\b([A-Za-z_$][\w$]*)\(")
_CALLED_MORE = 1.1
_HANDED_ON = re.compile(r"\bimport (\w+) as \1\b")

_FEWEST_MEMBERS, _MOST_MEMBERS, _MOST_OF_MODULE = 3, 60, 50  # of more, few have to do with one of them
_PARAMETERS, _SAID = 60, 140  # characters of a member's parameters, and of what is said about it
_PACKAGE = "package "  # before its name, which a class of it may have too
_TYPE = re.compile(r"(?:(?:export|declare|default) )*(?:interface|type|enum)\b")
"""What other names take or give, and nobody calls."""

Expired = Callable[[], bool]


@dataclass(frozen=True, slots=True)
class Piece:
    """A candidate. A docstring is turned into Markdown only when it ranks high."""

    package: InstalledPackage
    origin: str
    """Where it stands, relative to the package: ``README.md``, ``click/core.py``."""
    title: str
    documented: Documented | None = None
    """None for a section of a document, whose Markdown is ``section``."""
    section: str = ""
    weight: float = 1.0
    is_opening: bool = False
    """Whether it is a section below the first heading of a document."""

    @property
    def text(self) -> str:
        """What it is ranked by."""
        if self.documented is None:
            return self.section
        return f"{self.documented.signature}\n{self.documented.docstring}\n{self.documented.more}"

    @property
    def is_python(self) -> bool:
        """Whether its docstring is one of Python's styles rather than Markdown."""
        return self.origin.endswith((".py", ".pyi", *CYTHON))

    @property
    def language(self) -> str:
        """The language of its signature."""
        if self.is_python:
            return "python"
        return "typescript" if re.search(r"\.d\.[cm]?ts$", self.origin) else "javascript"


def read_pieces(package: InstalledPackage, terms: Terms, *, read: Expired, parse: Expired) -> Iterator[Piece]:
    """Yield what the package says, and the packages that document names which it hands on.

    ``read`` and ``parse`` tell when to stop reading documents and taking sources apart.
    """
    called: set[str] = set()
    for one in (package, *package.related):
        weight = 1.0 if one is package else _OF_RELATED
        for section in _sections(one, read, weight):
            called.update(_CALLED.findall(section.section))
            yield section
        yield from _templates(one, read)
    named = _python(package, terms, parse) if package.ecosystem == "python" else _node(package, parse)
    asks_for_errors = bool(terms.within("error exception warning"))
    for piece in named:
        # What the documents call themselves comes before its kin.
        name = piece.title.rpartition(".")[2]
        factor = _CALLED_MORE if name in called else 1.0
        if not asks_for_errors and name.endswith(("Error", "Exception", "Warning")):
            factor = _OF_ERRORS
        if (found := _PLUMBING.search(piece.title)) and not terms.within(found[found.lastindex or 0]):
            factor *= _OF_PLUMBING
        if _ASYNC.search(piece.title) and not terms.within("async await"):
            factor *= _OF_ASYNC
        yield replace(piece, weight=piece.weight * factor)


def _sections(package: InstalledPackage, expired: Expired, weight: float) -> Iterator[Piece]:
    from kr.packages.documented import split_sections

    for origin, text in _documents(package):
        if expired():
            return
        sections = split_sections(text)
        for section in sections:
            title = section.title or package.name
            is_opening = section.title == sections[0].title
            yield Piece(package, origin, title, section=section.text, weight=weight, is_opening=is_opening)


def _documents(package: InstalledPackage) -> Iterator[tuple[str, str]]:
    """Yield ``(origin, Markdown)`` of the description and of each document file."""
    from kr.packages.restructured import to_markdown

    described = package.description
    if described is not None:
        is_restructured = described.content_type in {"text/x-rst", "text/prs.fallenstein.rst"}
        text = to_markdown(described.text) if is_restructured else described.text
        yield "description", text
    room = _MAX_DOCUMENTS
    for path in package.documents:
        text = _text(path, _MAX_DOCUMENTS)
        if not text or len(text) > room:
            continue
        room -= len(text)
        yield path.relative_to(package.root).as_posix(), to_markdown(text) if path.suffix == ".rst" else text


def _templates(package: InstalledPackage, expired: Expired) -> Iterator[Piece]:
    """Yield the templates that a package ships, in parts of paragraphs where they are long."""
    from kr.packages.documented import join_blocks

    for path in package.templates:
        text = _text(path, _MAX_TEMPLATE)
        if expired():
            return
        if not text.strip() or "\x00" in text:
            continue
        origin = path.relative_to(package.root).as_posix()
        language = {".py": "python", ".ini": "ini", ".toml": "toml", ".json": "json"}.get(path.suffix, "")
        for part in join_blocks(re.split(r"\n[ \t]*\n", text)):
            yield Piece(
                package, origin, f"template {path.name}", section=fence(part, language), weight=_OF_TEMPLATES
            )


def _python(package: InstalledPackage, terms: Terms, expired: Expired) -> Iterator[Piece]:
    """Yield what the sources say that mention the terms, the most mentioning file first, under public names."""
    from kr.packages.python_source import cython_outline, parse_options, parse_source
    from kr.reports.ranking import rarity

    names = _names(package)
    foreign = _foreign(package, names)
    found: list[tuple[dict[int, int], Path, str]] = []
    room = _MAX_SOURCES
    for path in (*package.sources, *foreign):
        if expired():
            break
        text = _text(path, min(_MAX_SOURCE, room))
        room -= len(text)
        names.add_module(text, _module(package, path))
        if mentioned := terms.glimpse(text):
            found.append((mentioned, path, text))
    rare = rarity(terms, (mentioned for mentioned, _, _ in found))
    weights = [scarce * term.weight for scarce, term in zip(rare, terms.all, strict=True)]
    told = sorted(
        (
            (sum(weights[at] * count for at, count in mentioned.items()), path, text)
            for mentioned, path, text in found
        ),
        key=lambda row: -row[0],
    )
    for worth, path, text in told[:_MAX_PARSED]:
        if expired() or worth < _LEAST_TOLD * told[0][0]:
            return
        module, origin = _module(package, path), path.relative_to(package.root).as_posix()
        is_compiled = path.suffix in CYTHON
        source = cython_outline(text) if is_compiled else text
        for entry in (*parse_source(source, module, kept=is_compiled), *parse_options(source, module)):
            named = names.named(entry.name, module)
            if path not in foreign or named.is_exported:
                # The private classes of a compiled module are what its functions give.
                known = max(named.weight, 1.0) if is_compiled else named.weight
                yield Piece(package, origin, named.path, entry, weight=known * entry.weight)


def _names(package: InstalledPackage) -> PublicNames:
    """Read what says under which names the package offers things: ``__init__`` files, and modules that hand names on."""
    inits: dict[str, str] = {}
    others: dict[str, str] = {}
    for path in package.sources:
        is_init = path.stem == "__init__"
        if len(inits) + len(others) < _MAX_INITS and (is_init or path.stat().st_size <= _SMALL):
            text = _text(path, _MAX_SOURCE)
            if is_init:
                inits[_module(package, path)] = text
            elif "__all__" in text or " import *" in text or _HANDED_ON.search(text):
                others[_module(package, path)] = text
    return PublicNames(package.name, inits, others)


def _foreign(package: InstalledPackage, names: PublicNames) -> frozenset[Path]:
    """Return the sources of other packages that this one hands names on from (``starlette`` for ``fastapi``)."""
    from kr.packages.installed import contained

    own = {path.relative_to(package.root).parts[0] for path in package.sources}
    modules = [module.split(".") for module in dict.fromkeys(names.modules())]
    stems = [
        "/".join(parts)
        for parts in modules
        if all(part.isidentifier() for part in parts) and parts[0] not in own
    ]
    candidates = (
        contained(package.root / name, package.root)
        for stem in stems[:_MAX_FOREIGN]
        for name in (f"{stem}.py", f"{stem}/__init__.py")
    )
    return frozenset(path for path in candidates if path is not None)


def _node(package: InstalledPackage, expired: Expired) -> Iterator[Piece]:
    """Yield what the declarations of the package and of its related ones say, else the comments of its scripts."""
    from kr.packages.declarations import parse_comments
    from kr.packages.typescript import Declared

    for one in (package, *package.related):
        read: list[tuple[str, Sequence[Declaration]]] = []
        for path in (*one.sources, *one.by_path):
            if expired():
                break
            origin, text = path.relative_to(one.root).as_posix(), _text(path, _MAX_SOURCE)
            if re.search(r"\.d\.[cm]?ts$", origin):
                read.append((origin, parse_declarations(text)))
                continue
            for entry in parse_comments(text, path.name.partition(".")[0]):
                yield Piece(one, origin, entry.name, entry, weight=entry.weight)
        by_path = {
            (origin := path.relative_to(one.root).as_posix()): f"{one.name}/{origin.partition('.d.')[0]}"
            for path in one.by_path
        }
        for origin, entry in Declared(read, one.offered).documented():
            told = replace(entry, more=f"Comes with `{by_path[origin]}`.") if origin in by_path else entry
            yield Piece(one, origin, entry.name, told, weight=entry.weight)


def _module(package: InstalledPackage, path: Path) -> str:
    place = _including(path.parent).get(path.name, path) if path.suffix == ".pxi" else path
    origin = place.relative_to(package.root).as_posix()
    return re.sub(r"(?:/__init__)?\.(?:pyi?|pyx|pxi)$", "", origin).replace("/", ".")


@lru_cache(maxsize=16)
def _including(folder: Path) -> dict[str, Path]:
    """Return the Cython source that includes each file of a folder, by the file's name."""
    return {
        name: path
        for path in sorted(folder.glob("*.pyx"))
        for name in re.findall(r"^include [\"']([\w.]+)", _text(path, _MAX_SOURCE), re.MULTILINE)
    }


def _text(path: Path, limit: int) -> str:
    try:
        return (read_bytes(path, limit=limit) or b"").decode("utf-8", errors="replace")
    except Unreadable:
        return ""


class Siblings:
    """What the classes and modules of a package offer, a line each; where nothing has a container, the package itself."""

    def __init__(self, pieces: Sequence[Piece], terms: Terms) -> None:
        """Take all that the package says, in the order of its sources."""
        self._members: dict[str, list[Piece]] = {}
        self._told: set[str] = set()
        self._asks_for_errors = bool(terms.within("error exception warning"))
        for piece in pieces:
            if piece.documented is not None:
                self._members.setdefault(_container(piece), []).append(piece)

    def listed(self, piece: Piece) -> str:
        """Return, as Markdown, the members of what a piece is about, else of where it stands; empty for those that were told already."""
        if piece.documented is None:
            return ""
        is_own = len(self._members.get(piece.title, ())) >= _FEWEST_MEMBERS
        owner = piece.title if is_own else _container(piece)
        if owner in self._told:
            return ""
        self._told.add(owner)
        lines: dict[str, str] = {}
        for one in self._members.get(owner, ()):
            name = one.title.rpartition(".")[2]
            if one.title != piece.title and self._is_worth_telling(one, name):
                lines.setdefault(name, _member(one, name))
        is_module = piece.is_python and not owner.rpartition(".")[2][:1].isupper()
        if not _FEWEST_MEMBERS <= len(lines) <= (_MOST_OF_MODULE if is_module else _MOST_MEMBERS):
            return ""
        lead = "Members" if is_own else "Other members"
        shown = owner.removeprefix(_PACKAGE) if owner.startswith(_PACKAGE) else owner.rpartition(".")[2]
        return f"{lead} of {code_span(shown)}:\n\n" + "\n".join(lines.values())

    def _is_worth_telling(self, piece: Piece, name: str) -> bool:
        entry = piece.documented
        if entry is None or not name.isidentifier() or name == "constructor" or name.startswith("_"):
            return False
        if name.endswith(("Error", "Exception", "Warning")) and not self._asks_for_errors:
            return False
        return "." in piece.title or _TYPE.match(entry.signature) is None


def _container(piece: Piece) -> str:
    return piece.title.rpartition(".")[0] or f"{_PACKAGE}{piece.package.name}"


def _member(piece: Piece, name: str) -> str:
    """Return an item: how it is called, and the first sentence about it."""
    entry = piece.documented or Documented(name, "", "")
    takes = re.search(rf"\b{re.escape(name)}\??(?:<[^()<>]*>)?\((?:([^()]*)(\):?))?", entry.signature)
    is_base = takes is not None and takes[2] == "):" and entry.signature.startswith("class ")
    call = name
    if takes and not is_base:
        parameters = " ".join((takes[1] if takes[2] else "...").split()).removesuffix(",")
        call = f"{name}({parameters if len(parameters) <= _PARAMETERS else '...'})"
    said = first_sentence(entry.docstring)
    if len(said) > _SAID:
        said = f"{said[:_SAID].rpartition(' ')[0]} ..."
    return f"- {code_span(call)}: {said}".rstrip(": ")
