"""How much a project's code uses each of its packages: the files that import it, in Python, JavaScript and Go."""

import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from kr.packages.files import read_bytes
from kr.packages.model import Dependency

_MOST_FILES = 3_000
_MOST_BYTES = 1024 * 1024
_SKIPPED = re.compile(
    r"\..*|node_modules|vendor|third_party|site-packages|dist|build|target|out|tests?|specs?|__tests__"
)
"""Folders that hold no code of the product: tests import their tools, and bundles import everything."""
_TEST_FILE = re.compile(r"(?:test_|conftest\b).*|.*(?:[._]test|[._-]spec|Tests?)\.\w+")
_IMPORTED = re.compile(
    r"""^\s*(?:from|import)\s+([A-Za-z]\w*)|(?:\bfrom|\bimport|\brequire|^\s*\w*)[\s(]*["']([^"'.\s][^"'\s]*)["']""",
    re.MULTILINE,
)
"""The name behind an import: a module of Python, or what JavaScript and Go put in quotes."""
_ENDINGS = {
    "python": (".py",),
    "npm": (".js", ".mjs", ".cjs", ".jsx", ".ts", ".mts", ".tsx", ".vue", ".svelte", ".astro"),
    "go": (".go",),
}
_ECOSYSTEMS = {ending: ecosystem for ecosystem, endings in _ENDINGS.items() for ending in endings}


def count_imports(folder: Path, dependencies: Sequence[Dependency]) -> Counter[str]:
    """Count the files of a project that import each package; keys are the packages' full names.

    At most ``_MOST_FILES`` files are looked into; tests, bundles and installed packages are not.
    """

    @cache
    def owners(ecosystem: str, name: str) -> frozenset[str]:
        return frozenset(d.package for d in dependencies if d.ecosystem == ecosystem and _belongs(name, d))

    counted: Counter[str] = Counter()
    for path in islice(_sources(folder), _MOST_FILES):
        try:
            text = read_bytes(path, limit=_MOST_BYTES).decode("utf-8", "replace")
        except (OSError, ValueError):
            continue
        names = {one or other for one, other in _IMPORTED.findall(text)}
        counted.update(frozenset().union(*(owners(_ECOSYSTEMS[path.suffix], name) for name in names)))
    return counted


def _sources(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not _SKIPPED.fullmatch(name))
        for name in sorted(files):
            if Path(name).suffix in _ECOSYSTEMS and not _TEST_FILE.fullmatch(name):
                yield Path(place, name)


def _belongs(name: str, dependency: Dependency) -> bool:
    """Tell whether an imported name belongs to the package, by the habits of its ecosystem."""
    if dependency.ecosystem != "python":
        return f"{name}/".startswith(f"{dependency.package}/")
    # PyYAML and python-dateutil are imported without what says that they are for Python.
    plain = re.sub(r"[-_.]", "", dependency.package).lower()
    return name.replace("_", "").lower() in {plain, plain.removeprefix("python"), plain.removeprefix("py")}
