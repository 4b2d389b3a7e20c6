"""Which files of a package are documentation, found without leaving the package's folder."""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

MAX_DOCUMENTS = 60
MAX_SOURCES = 1_200
MAX_TEMPLATES = 40
_MOST_ENTRIES = 20_000
_SUFFIXES = frozenset({".md", ".markdown", ".rst", ".txt"})
_DOC_FOLDERS = frozenset({"doc", "docs", "documentation", "guide", "guides"})
_TEMPLATE = re.compile(r"\.(?:mako|j2|jinja2?|tmpl|tpl|ejs|hbs)$|-tpl$")
_LAST_RESORT = re.compile(
    r"(licen[cs]e|copying|notice|change|history|news|authors|contribut|security|code_of_conduct|third)",
    re.IGNORECASE,
)


def contained(path: Path, root: Path) -> Path | None:
    """Return the real path of the regular file ``path`` when it lies in ``root`` (a real path), else None."""
    try:
        real = path.resolve(strict=True)
    except (OSError, ValueError, RuntimeError):
        return None
    return real if real.is_relative_to(root) and real.is_file() else None


def walk(root: Path, *, skipped: frozenset[str] = frozenset()) -> Iterator[str]:
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


def choose_documents(files: Iterable[str], root: Path) -> tuple[Path, ...]:
    """Choose README files first, then what lies in a folder of documentation.

    Licences, change logs and the like only where there is nothing else.
    """
    ranked: list[tuple[int, str]] = []
    for file in files:
        *folders, name = file.split("/")
        stem, dot, ending = name.lower().rpartition(".")
        stem, suffix = (stem, dot + ending) if stem else (ending, "")
        if suffix not in _SUFFIXES and stem != "readme":
            continue
        is_documentation = any(f.lower() in _DOC_FOLDERS for f in folders)
        if _LAST_RESORT.match(stem):
            ranked.append((3, file))
        elif stem.startswith("readme"):
            # README.de.md and the like after README.md
            ranked.append((0 if not folders and stem == "readme" else 2, file))
        elif is_documentation:
            ranked.append((1, file))
    useful = [row for row in ranked if row[0] < 3] or ranked
    chosen = (contained(root / file, root) for _, file in sorted(useful)[: 2 * MAX_DOCUMENTS])
    return tuple(dict.fromkeys(path for path in chosen if path))[:MAX_DOCUMENTS]


def choose_sources(files: Iterable[str], root: Path, *suffixes: str) -> tuple[Path, ...]:
    """Choose the source files of the first suffix that there is, those nearest to the top first; no tests.

    A stub file (``.pyi``) counts where there is no source beside it, as is so for compiled modules.
    """
    listed = [f for f in files if not f.endswith((".min.js", ".umd.js"))]
    suffix = next((s for s in suffixes if any(f.endswith(s) for f in listed)), None)
    known = set(listed)
    names = [
        file
        for file in listed
        if suffix
        and (file.endswith(suffix) or (suffix == ".py" and file.endswith(".pyi") and file[:-1] not in known))
        and not any(
            re.fullmatch(r"_?tests?|testing_?data|_vendor|vendor", part) for part in file.split("/")[:-1]
        )
    ]
    # Private modules last: what they document is mostly shown again by a public one.
    names.sort(key=lambda f: (any(re.match(r"_[^_]", part) for part in f.split("/")), f.count("/"), f))
    return _existing(names, root, MAX_SOURCES)


def choose_templates(files: Iterable[str], root: Path) -> tuple[Path, ...]:
    """Choose the templates that a package ships for its users' projects: they show which options there are."""
    names = [
        file
        for file in files
        if (_TEMPLATE.search(file) or any(part in {"templates", "template"} for part in file.split("/")[:-1]))
        and not file.endswith((".pyc", "/__init__.py", ".html", ".css", ".js", ".png", ".svg", ".map"))
    ]
    return _existing(sorted(names, key=lambda f: (f.count("/"), f)), root, MAX_TEMPLATES)


def _existing(names: list[str], root: Path, most: int) -> tuple[Path, ...]:
    chosen = (contained(root / file, root) for file in names[: 2 * most])
    return tuple(dict.fromkeys(path for path in chosen if path))[:most]
