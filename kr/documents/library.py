"""Which files of a package or folder are documentation, and their index. Links that lead out are not followed."""

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice, starmap
from pathlib import Path

from kr.documents import code
from kr.documents.index import open_index
from kr.documents.text import Section, sections
from kr.packages.installed import InstalledPackage
from kr.text import digest

MAX_DOCUMENT = 1024 * 1024
"""Bytes of one document that are read."""
MAX_SOURCE = 1_500_000
"""Bytes of a source; a longer one is none that somebody wrote, and is not read: its tree would take hundreds of megabytes."""
MAX_BYTES = 48 * 1024 * 1024
"""Of the files that are read for one index."""
_MAX_SOURCES = 1_500
_MOST_ENTRIES = 20_000

_MARKED = (".md", ".markdown", ".rst", ".mdx")
_DOCUMENTS = (*_MARKED, ".txt")
_IN_FOLDERS = (*_DOCUMENTS, ".html", ".htm")
_DECLARATIONS = (".d.ts", ".d.mts", ".d.cts")
_SOURCES = (".py", ".pyi", *_DECLARATIONS)
_IN_DOCS = re.compile(r"(?:^|/)(?:docs?|documentation|guides?)/")
_SKIPPED_FOLDERS = frozenset({"node_modules", "__pycache__", "_build", "site-packages"})
_UNTELLING = re.compile(
    r"(?:.*/)?(?:licen[cs]e|copying|notice|change|history|news|authors|contribut|security|code_of_conduct|third|governance|sponsor"
    r"|top_level)[^/]*",
    re.IGNORECASE,
)
_TESTS = re.compile(r"(?:^|/)tests?/")
_OF_MAJOR = re.compile(r"/v(\d{1,3})(?=/)")


def package_index(
    package: InstalledPackage, types: InstalledPackage | None, cache: Path | None
) -> sqlite3.Connection:
    """Return the index of an installed package, with that of ``types`` in it; it is made where there is none of its files."""
    chosen = [(one, package_files(one)) for one in (package, types) if one is not None]
    key = f"{package.ecosystem}-{package.name}-{package.version}"
    files = [(one.root, names) for one, names in chosen]
    return open_index(key, files, lambda: chain.from_iterable(starmap(_package_sections, chosen)), cache)


def folder_index(folder: Path, cache: Path | None) -> sqlite3.Connection:
    """Return the index of a folder of documents. Raises ``OSError`` where there is no such folder."""
    root = folder.resolve(strict=True)
    files = [file for file in _walk(root) if file.lower().endswith(_IN_FOLDERS) and "/." not in f"/{file}"]
    return open_index(
        f"folder-{root.name}-{digest(str(root))[:20]}",
        [(root, files)],
        lambda: (it for file, text in _read(root, files) for it in sections(text, place=file, title=file)),
        cache,
    )


def package_files(package: InstalledPackage) -> list[str]:
    """Choose a package's documents and sources, by their names."""
    found = _walk(package.root) if package.files is None else package.files
    files = [file for file in found if not _TESTS.search(file)]
    documents = [file for file in files if _is_document(file.lower())]
    # A licence is better than nothing.
    telling = [file for file in documents if not _UNTELLING.fullmatch(file)]
    is_python = package.ecosystem == "python"
    sources = _python_sources(files) if is_python else _declaration_files(files, package.version)
    return [*(telling or documents), *sources[:_MAX_SOURCES]]


def _is_document(file: str) -> bool:
    """Tell whether a file is a README, or lies in a folder of documentation or at the top (``SFTP.md`` of ssh2)."""
    name = file.rpartition("/")[2]
    if name.partition(".")[0] == "readme":
        return name == "readme" or name.endswith(_DOCUMENTS)
    return file.endswith(_DOCUMENTS if _IN_DOCS.search(file) else () if "/" in file else _MARKED)


def _python_sources(files: Iterable[str]) -> list[str]:
    """Choose the sources, public ones first; of a source with a stub the source, which has the docstrings."""
    known = frozenset(file for file in files if not code.SKIPPED.search(file))
    chosen = [it for it in known if it.endswith(".py") or (it.endswith(".pyi") and it[:-1] not in known)]
    return sorted(chosen, key=lambda it: ("/_" in f"/{it}".replace("/__init__", ""), it.count("/"), it))


def _declaration_files(files: Iterable[str], version: str) -> list[str]:
    """Choose the declarations of a package's own major version; what it keeps of another one (``v3/`` in zod 4) would mislead."""
    majors = set(re.findall(r"\d+", version)[:1])
    of_own = [it for it in files if it.endswith(_DECLARATIONS) and {*_OF_MAJOR.findall(f"/{it}")} <= majors]
    # Of twins for two module systems one is enough.
    twins = {re.sub(r"\.d\.[mc]?ts$", "", file): file for file in sorted(of_own)}
    return sorted(twins.values(), key=lambda file: (file.count("/"), file))


def _package_sections(package: InstalledPackage, files: Sequence[str]) -> Iterator[Section]:
    """Yield all sections of a package: what it says of itself, its documents, its public names."""
    sources: list[tuple[str, str]] = []
    about = "METADATA.md" if package.is_markdown else "METADATA.rst"
    for file, text in chain([(about, package.description)], _read(package.root, files)):
        if file.endswith((".py", ".pyi")):
            sources.append((file, text))
        elif file.endswith(_DECLARATIONS):
            yield from code.declarations(text, place=file, prefix=package.name.removeprefix("@types/"))
        else:
            yield from sections(text, place=file, title="README" if file == about else file)
    yield from code.python_sections(sources)


def _walk(root: Path) -> Iterator[str]:
    """Yield the files below ``root``, relative, with forward slashes; links to folders are not followed."""

    def found() -> Iterator[str]:
        for folder, folders, files in os.walk(root):
            folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in _SKIPPED_FOLDERS)
            place = Path(folder).relative_to(root)
            yield from ((place / file).as_posix() for file in sorted(files))

    return islice(found(), _MOST_ENTRIES)


def _read(root: Path, files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield ``(file, text)`` of what can be read: of a long document its beginning.

    What is binary, too long for a source, or a link out of the folder is passed over.
    """
    left = MAX_BYTES
    for file in files:
        path = Path(os.path.realpath(root / file))
        if left <= 0 or not path.is_relative_to(root) or not path.is_file():
            continue
        is_source = file.endswith(_SOURCES)
        most = MAX_SOURCE if is_source else MAX_DOCUMENT
        try:
            with path.open("rb") as opened:
                data = opened.read(most + 1)
        except OSError:
            continue
        if b"\0" not in data and not (is_source and len(data) > most):
            left -= len(data)
            yield file, data[:most].decode("utf-8", errors="replace").removeprefix("\ufeff")
