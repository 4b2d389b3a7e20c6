"""Which files of a package or folder are documentation, and their index. Links that lead out are not followed."""

import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, filterfalse, starmap
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

_MOST_ENTRIES = 20_000
MAX_SOURCES = 1_500
MAX_BYTES = 48 * 1024 * 1024
"""Of the files that are read for one index."""

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
_OF_MAJOR = re.compile(r"/v(\d{1,3})(?=/)")


def package_index(
    package: InstalledPackage, types: InstalledPackage | None, cache: Path | None
) -> sqlite3.Connection:
    """Return the index of an installed package, with that of ``types`` in it; it is made where there is none that is new enough."""
    chosen = [(one, package_files(one)) for one in (package, types) if one is not None]
    key = f"{package.ecosystem}-{package.name}-{package.version}"
    files = [(one.root, names) for one, names in chosen]
    return open_index(key, files, lambda: chain.from_iterable(starmap(package_sections, chosen)), cache)


def folder_index(folder: Path, cache: Path | None) -> sqlite3.Connection:
    """Return the index of a folder of documents. Raises ``OSError`` where there is no such folder."""
    root = folder.resolve(strict=True)
    found = walk(root, skipped=_SKIPPED_FOLDERS)
    files = [it for it in found if it.lower().endswith(_IN_FOLDERS) and not f"/{it}".rpartition("/.")[1]]
    return open_index(
        f"folder-{root.name}-{digest(str(root))[:20]}",
        [(root, files)],
        lambda: (it for file, text in _read(root, files) for it in sections(text, place=file, title=file)),
        cache,
    )


def package_files(package: InstalledPackage) -> list[str]:
    """Choose a package's documents and sources, by their names."""
    skipped = frozenset({"node_modules", "test", "tests"})
    files = [*walk(package.root, skipped=skipped)] if package.files is None else package.files
    documents = [file for file in files if _is_document(file.lower())]
    # A licence is better than nothing.
    telling = [file for file in documents if not _UNTELLING.fullmatch(file)]
    is_python = package.ecosystem == "python"
    sources = _python_sources(files) if is_python else _declaration_files(files, package.version)
    return [*(telling or documents), *sources[:MAX_SOURCES]]


def package_sections(package: InstalledPackage, files: Sequence[str]) -> Iterator[Section]:
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


def _is_document(file: str) -> bool:
    """Tell whether a file is a README, or lies in a folder of documentation or at the top (``SFTP.md`` of ssh2)."""
    name = file.rpartition("/")[2]
    if name.partition(".")[0] == "readme":
        return name == "readme" or name.endswith(_DOCUMENTS)
    return file.endswith(_DOCUMENTS if _IN_DOCS.search(file) else () if "/" in file else _MARKED)


def _python_sources(files: Iterable[str]) -> list[str]:
    chosen = _without_twins(filterfalse(code.SKIPPED.search, files), (".py", ".pyi"))
    return sorted(
        chosen, key=lambda file: ("/_" in f"/{file}".replace("/__init__", ""), file.count("/"), file)
    )


def _declaration_files(files: Iterable[str], version: str) -> list[str]:
    """Choose the declarations of a package's own major version; what it keeps of another one (``v3/`` in zod 4) would mislead."""
    majors = set(re.findall(r"\d+", version)[:1])
    of_own = [file for file in files if {*_OF_MAJOR.findall(f"/{file}")} <= majors]
    # Of twins for two module systems one is enough.
    return sorted(_without_twins(of_own, _DECLARATIONS), key=lambda file: (file.count("/"), file))


def _without_twins(files: Iterable[str], endings: Iterable[str]) -> Iterable[str]:
    """Return the files with one of the endings; of those that only differ by it the one whose ending comes first."""
    found: dict[str, str] = {}
    known = list(files)
    for ending in endings:
        found = {file.removesuffix(ending): file for file in known if file.endswith(ending)} | found
    return found.values()


def walk(root: Path, *, skipped: frozenset[str]) -> Iterator[str]:
    """Yield the files below ``root``, relative, with forward slashes; links to folders are not followed."""
    count = 0
    for folder, folders, files in os.walk(root, followlinks=False):
        folders[:] = sorted(f for f in folders if not f.startswith(".") and f not in skipped)
        place = Path(folder).relative_to(root)
        for file in sorted(files):
            count += 1
            if count > _MOST_ENTRIES:
                return
            yield (place / file).as_posix()


def contained(path: Path, root: Path) -> Path | None:
    """Return the real path of the regular file ``path`` when it lies in ``root`` (a real path), else None."""
    real = Path(os.path.realpath(path))
    return real if real.is_relative_to(root) and real.is_file() else None


def _read(root: Path, files: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield ``(file, text)`` of what can be read: of a long document its beginning.

    What is binary, too long for a source, or a link out of the folder is passed over.
    """
    left = MAX_BYTES
    for file in files:
        path = contained(root / file, root)
        if path is None or left <= 0:
            continue
        most = MAX_SOURCE if file.endswith(_SOURCES) else MAX_DOCUMENT
        try:
            with path.open("rb") as opened:
                data = opened.read(most + 1)
        except OSError:
            continue
        is_long_source = len(data) > most and file.endswith(_SOURCES)
        if b"\0" not in data and not is_long_source:
            left -= len(data)
            yield file, data[:most].decode("utf-8", errors="replace").removeprefix("\ufeff")
