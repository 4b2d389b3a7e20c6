"""How much a project's code uses each of its packages: the files that import it."""

import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import islice
from pathlib import Path

from kr.frameworks import canonical
from kr.packages.files import Unreadable, read_bytes
from kr.packages.model import Dependency

_MOST_FILES = 3_000
_MOST_BYTES = 1024 * 1024
_SKIPPED = re.compile(
    r"\..*|node_modules|vendor|third_party|site-packages|dist|build|target|out|tests?|specs?|__tests__"
)
"""Folders that hold no code of the product: tests import their tools, and bundles import everything."""
_TEST_FILE = re.compile(r"(?:test_|conftest\b).*|.*(?:[._]test|[._-]spec|Tests?)\.\w+")
_SCRIPT = r"""(?:\bfrom|\bimport|\brequire\(|\bimport\()\s*["']([^"'.\s][^"'\s]*)["']"""
_LANGUAGES = (
    ("python", ".py", r"^\s*(?:from|import)\s+([A-Za-z]\w*)"),
    ("npm", ".js .mjs .cjs .jsx .ts .mts .tsx .vue .svelte .astro", _SCRIPT),
    ("go", ".go", r"""^\s*(?:import\s+)?(?:[\w.]+\s+)?"([\w.-]+\.[\w.-]+/[^"\s]+)"$"""),
    ("cargo", ".rs", r"^\s*(?:pub\s+)?(?:use|extern\s+crate)\s+(?:::)?(\w+)"),
    ("maven", ".java .kt .kts .scala .groovy", r"^\s*import\s+(?:static\s+)?([a-z][\w.]+)"),
    ("composer", ".php", r"^use\s+\\?(\w+)"),
    ("ruby", ".rb", r"""^\s*require\s+["']([\w-]+)"""),
)
_STATEMENTS = {
    suffix: (ecosystem, re.compile(pattern, re.MULTILINE))
    for ecosystem, suffixes, pattern in _LANGUAGES
    for suffix in suffixes.split()
}
_BROAD = frozenset({"com.google", "com.github", "org.apache", "io.github", "com.amazonaws", "com.microsoft"})
"""Maven groups whose first two parts name only the company or host."""


def count_imports(folder: Path, dependencies: Sequence[Dependency]) -> Counter[str]:
    """Count the files of a project that import each package; keys are the packages' full names.

    At most ``_MOST_FILES`` files are looked into; tests, bundles and installed packages are not.
    """
    tests = [(d, _test(d)) for d in dependencies]

    @cache
    def owners(ecosystem: str, name: str) -> frozenset[str]:
        return frozenset(d.package for d, fits in tests if d.ecosystem == ecosystem and fits(name))

    counted: Counter[str] = Counter()
    for path in islice(_sources(folder), _MOST_FILES):
        ecosystem, statement = _STATEMENTS[path.suffix]
        try:
            text = (read_bytes(path, limit=_MOST_BYTES) or b"").decode("utf-8", "replace")
        except Unreadable:
            continue
        names = set(statement.findall(text))
        counted.update(frozenset().union(*(owners(ecosystem, name) for name in names)))
    return counted


def _sources(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder, followlinks=False):
        folders[:] = sorted(name for name in folders if not _SKIPPED.fullmatch(name))
        for name in sorted(files):
            if Path(name).suffix in _STATEMENTS and not _TEST_FILE.fullmatch(name):
                yield Path(place, name)


def _test(dependency: Dependency) -> Callable[[str], bool]:
    """Return what tells whether an imported name belongs to the package, by the habits of its ecosystem."""
    package = dependency.package
    if dependency.ecosystem in {"npm", "go"}:
        return lambda name: name == package or name.startswith(f"{package}/")
    if dependency.ecosystem == "maven":
        parts = package.partition(":")[0].split(".")
        group = ".".join(parts[: 3 if ".".join(parts[:2]) in _BROAD else 2])
        return lambda name: name == group or name.startswith(f"{group}.")
    if dependency.ecosystem == "composer":
        own = {canonical(part) for part in package.split("/")}
        return lambda name: canonical(name) in own
    key, plain = canonical(package), _plain(package)
    # PyYAML and python-dateutil are imported without what says that they are for Python.
    spellings = {plain, plain.removeprefix("python"), plain.removeprefix("py")}
    return lambda name: _plain(name) in spellings or canonical(name) == key


def _plain(name: str) -> str:
    return re.sub(r"[-_.]", "", name).lower()
