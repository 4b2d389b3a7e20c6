"""Projects made of a few files, and what is read of them."""

import json
from collections.abc import Mapping
from pathlib import Path

from kr.packages import find_dependencies

DATA = Path(__file__).parents[1] / "data" / "projects"


def write(root: Path, files: Mapping[str, str | bytes]) -> Path:
    """Write files below ``root``; return it."""
    for name, content in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return root


def versions(folder: Path, *, direct: bool = True, environ: dict[str, str] | None = None) -> dict[str, str]:
    """Return the packages of a project with their versions, languages left out."""
    rows = find_dependencies(folder, environ or {}).dependencies
    return {d.package: d.version for d in rows if d.direct is direct and d.ecosystem != "language"}


def rows(folder: Path, *, direct: bool = True) -> set[tuple[str, str, str]]:
    """Return ``(package, version, file)`` of a project's dependencies, languages left out; nothing may be wrong with it."""
    found = find_dependencies(folder, {})
    assert found.warnings == ()
    of_packages = (d for d in found.dependencies if d.direct is direct and d.ecosystem != "language")
    return {(d.package, d.version, d.file) for d in of_packages}


def language(folder: Path, name: str) -> str | None:
    found = find_dependencies(folder, {}).dependencies
    return next((d.version for d in found if (d.ecosystem, d.package) == ("language", name)), None)


def node(root: Path, name: str, version: str = "1.2.3", **fields: object) -> Path:
    """Install a package in ``node_modules`` of ``root``."""
    package = root / "node_modules" / name
    package.mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": name, "version": version, **fields}))
    return package


def environment(root: Path, python: str = "3.11") -> Path:
    """Make an empty Python environment; return its site-packages folder."""
    site = root / "lib" / f"python{python}" / "site-packages"
    site.mkdir(parents=True)
    (root / "pyvenv.cfg").write_text(f"home = /usr/bin\nversion = {python}.4\n")
    return site


def distribution(
    site: Path, name: str, files: tuple[str, ...] = (), metadata: str = "", version: str = "2.0"
) -> None:
    info = site / f"{name.replace('-', '_')}-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{metadata}")
    (info / "RECORD").write_text("".join(f"{file},,\n" for file in files))
