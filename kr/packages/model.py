"""What a project depends on (SPEC 6.4), and the collector that every ecosystem fills."""

import re
from dataclasses import dataclass
from typing import Literal, NamedTuple

Ecosystem = Literal["npm", "python", "maven", "go", "cargo", "composer", "ruby"]
"""Where a package's name belongs to; Gradle builds take their packages from Maven repositories."""

UNKNOWN = "unknown"
"""The version of a dependency whose file doesn't tell one (managed elsewhere, a URL, no specifier)."""

_LONGEST_NAME = 300
_LONGEST_VERSION = 200
_MOST_DEPENDENCIES = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependency:
    """One package that the project uses.

    ``framework`` is the short name and ``package`` the full one; ``version`` is exact where a lock file
    tells it, else the range as written, else ``unknown``. ``file`` is the file that told the version,
    relative to the project folder, with forward slashes.
    """

    framework: str
    version: str
    package: str
    file: str
    direct: bool


class Found(NamedTuple):
    """All dependencies, direct ones first, and one sentence per file that could not be used."""

    dependencies: tuple[Dependency, ...]
    warnings: tuple[str, ...]


def short_name(ecosystem: Ecosystem, package: str) -> str:
    """Return what people call the package (SPEC 6.4).

    Maven: the artifact. Go: the last element of the path without ``/vN`` (or gopkg.in's ``.vN``).
    Composer: the part after the vendor, but the vendor of ``laravel/framework``. npm, PyPI, crates.io
    and RubyGems: the name itself, scope included, since ``core`` alone belongs to many scopes.
    """
    if ecosystem == "maven":
        return package.rpartition(":")[2]
    if ecosystem == "go":
        return re.sub(r"\.v\d+$", "", re.sub(r"/v\d+$", "", package)).rpartition("/")[2] or package
    if ecosystem == "composer":
        vendor, _, name = package.partition("/")
        return vendor if name in {"", "framework"} else name
    return package


def printable(text: str, *, limit: int) -> str:
    """Return ``text`` on one line, odd characters replaced by ``?``, cut at ``limit`` characters."""
    line = " ".join(text.split())
    return "".join(c if c.isprintable() else "?" for c in line)[:limit]


class Inventory:
    """Collects dependencies; the same package and version counts once, direct if it is so anywhere."""

    def __init__(self) -> None:
        self._rows: dict[tuple[str, str, str], Dependency] = {}

    def add(self, ecosystem: Ecosystem, package: str, version: object, file: str, *, direct: bool) -> None:
        """Add one. A name that no registry would take is left out; an odd version is ``unknown``."""
        if not _is_name(package) or len(self._rows) >= _MOST_DEPENDENCIES:
            return
        text = _version_text(version)
        key = (ecosystem, package, text)
        known = self._rows.get(key)
        if known is None or (direct and not known.direct):
            self._rows[key] = Dependency(
                framework=short_name(ecosystem, package),
                version=text,
                package=package,
                file=file,
                direct=direct,
            )

    def dependencies(self) -> tuple[Dependency, ...]:
        """Return the rows: direct first, then by name; several versions in the order they were found."""
        rows = self._rows.values()
        return tuple(sorted(rows, key=lambda d: (not d.direct, d.framework.casefold(), d.package)))


def _is_name(name: str) -> bool:
    return 0 < len(name) <= _LONGEST_NAME and name.isprintable() and not any(c.isspace() for c in name)


def _version_text(version: object) -> str:
    if not isinstance(version, str):
        return UNKNOWN
    text = " ".join(version.split())
    if not text or len(text) > _LONGEST_VERSION or not text.isprintable():
        return UNKNOWN
    return text
