"""Python: pyproject.toml (PEP 621, 735, Poetry), setup.cfg and requirements files; uv.lock and poetry.lock.

Environment markers are evaluated for the Python in use, on this machine.
"""

import configparser
import posixpath
import re
from collections.abc import Iterator
from typing import Any

from packaging.markers import InvalidMarker, Marker
from packaging.requirements import InvalidRequirement, Requirement

from kr.packages.installed import PythonEnvironment, normalised
from kr.packages.model import REQUIREMENTS, Dependency, Folder, Lock, choose, items, satisfies, table

_MANIFEST = "pyproject.toml"
_OWN_SOURCES = frozenset({"editable", "virtual", "workspace", "directory", "path"})
_DEVELOPMENT = re.compile(r"(?:^|[-_/.])(?:dev|test|lint|doc|typing|check)", re.IGNORECASE)
_MOST_LINES = 20_000
_LONGEST_REQUIREMENT = 2_000
_IS_PATH = re.compile(r"\s*(?:[./~]|file:)|[^:\s]+\.(?:whl|zip|tar\.gz)$")


def read_python(folder: Folder, environment: PythonEnvironment) -> Iterator[Dependency]:
    """Yield what the Python files of a project name; what is installed wins."""
    root = environment.root
    folder.saw(*environment.sites, *(folder.root / name for name in (".venv", "venv")))
    # An environment outside of the project is shown by its whole path.
    shown = root.relative_to(folder.root) if root and root.is_relative_to(folder.root) else root
    place = shown.as_posix() if shown else ""
    project = _Project(folder, environment.python)

    def installed(one: Dependency) -> tuple[str, str] | None:
        if one.ecosystem == "language":
            return (environment.python, place) if root else None
        found = environment.find(one.package)
        return (found[0], place) if found else None

    declared = project.declared()
    yield from project.lock(declared).resolve(declared, installed)


class _Project:
    """The Python files of one folder and of its workspace's members."""

    def __init__(self, folder: Folder, python: str) -> None:
        self.folder = folder
        self._python = python
        self._markers = {
            "python_version": ".".join(python.split(".")[:2]),
            "python_full_version": python if python.count(".") > 1 else f"{python}.0",
        }
        self._root = folder.document(_MANIFEST)
        self._own: set[str] = set()

    def declared(self) -> list[Dependency]:
        """Return one statement for each package: one with a version before one without, that of requirements first."""
        manifests = [*self._manifests()]
        stated = [*self._requirements(), *self._setup_cfg(), *manifests]
        stated.sort(key=lambda one: not one.version)
        return list({normalised(one.package): one for one in reversed(stated)}.values())

    def lock(self, declared: list[Dependency]) -> Lock:
        """Return the lock file of the tool that pyproject.toml names, else of several the one that fits best."""
        locks = {tool: self._lock(f"{tool}.lock") for tool in ("uv", "poetry")}
        there = {tool: lock for tool, lock in locks.items() if lock.packages}
        none = Lock("python", fold=normalised, local=self._own)
        return choose(there, table(self._root, "tool"), declared, none)

    def _lock(self, file: str) -> Lock:
        """Read a lock file; the project's own folders are left out."""
        lock = Lock("python", file, fold=normalised, local=set(self._own))
        for package in map(table, items(self.folder.document(file, "toml"), "package")):
            forks = items(package, "resolution-markers")
            if table(package, "source").keys() & _OWN_SOURCES:
                lock.local.add(normalised(str(package.get("name"))))
            elif self._is_for_us(package) and (not forks or any(map(self._holds, forks))):
                lock.add(package.get("name"), package.get("version"))
        return lock

    def _is_for_us(self, fields: dict[str, Any]) -> bool:
        """Tell whether a table of a lock file or of Poetry's dependencies is for the Python in use, on this machine."""
        pythons = (fields.get(key) for key in ("python", "python-versions"))
        is_python = all(satisfies(self._python, one) for one in pythons if isinstance(one, str))
        return is_python and self._holds(fields.get("markers"))

    def _holds(self, marker: object) -> bool:
        """Tell whether an environment marker holds; what is none holds."""
        if isinstance(marker, dict):  # Poetry writes one for each group
            return any(map(self._holds, marker.values()))
        try:
            return not marker or Marker(str(marker)[:_LONGEST_REQUIREMENT]).evaluate({**self._markers})
        except (InvalidMarker, ValueError, KeyError, RecursionError):
            return True

    def _requirement(self, file: str, text: str, *, dev: bool = False) -> Iterator[Dependency]:
        """Read one PEP 508 requirement. What lies at a path is the project's own."""
        text = text[:_LONGEST_REQUIREMENT]
        if _IS_PATH.match(text):
            return
        try:
            read = Requirement(text)
        except (InvalidRequirement, ValueError, RecursionError):
            self.folder.warn(file, f"{text[:80]!r} is no requirement")
            return
        is_own_extra = read.extras and normalised(read.name) in self._own
        if not is_own_extra and not (read.marker and not self._holds(read.marker)):
            specifiers = sorted(read.specifier, key=lambda s: (s.operator in {"!=", "<", "<="}, s.version))
            yield Dependency("python", read.name, _bare(",".join(map(str, specifiers))), file, dev=dev)

    def _manifests(self) -> Iterator[Dependency]:
        workspace = table(self._root, "tool", "uv", "workspace")
        patterns = [*items(workspace, "members"), *(f"!{one}" for one in items(workspace, "exclude"))]
        manifests = self.folder.manifests(_MANIFEST, patterns)
        names = (table(manifest, "project").get("name") for manifest in manifests.values())
        self._own = {normalised(str(name)) for name in names if name}
        for file, manifest in manifests.items():
            yield from self._pep_621(file, manifest)
            yield from self._poetry(file, manifest)

    def _pep_621(self, file: str, manifest: dict[str, Any]) -> Iterator[Dependency]:
        project, groups = table(manifest, "project"), table(manifest, "dependency-groups")
        extras = table(project, "optional-dependencies")
        lists = [(items(project, "dependencies"), False)]
        lists += [(items(extras, name), bool(_DEVELOPMENT.search(name))) for name in extras]
        lists += [(items(groups, name), True) for name in groups]
        lists.append((items(manifest, "tool", "uv", "dev-dependencies"), True))
        for entry, dev in ((entry, dev) for entries, dev in lists for entry in entries):
            if not isinstance(entry, dict):  # {include-group = "..."}: that group is read on its own
                yield from self._requirement(file, str(entry), dev=dev)
        if isinstance(python := project.get("requires-python"), str):
            yield Dependency("language", "python", python, file)
        others = " ".join([*table(manifest, "tool"), self.folder.text("setup.cfg")])
        is_elsewhere = re.search("poetry|install_requires", others)
        if "dependencies" in items(project, "dynamic") and not is_elsewhere:
            self.folder.warn(file, "its dependencies are dynamic; kr does not read where they come from")

    def _poetry(self, file: str, manifest: dict[str, Any]) -> Iterator[Dependency]:
        poetry = table(manifest, "tool", "poetry")
        groups = table(poetry, "group")
        tables = [(table(poetry, "dependencies"), False), (table(poetry, "dev-dependencies"), True)]
        tables += [(table(groups, group, "dependencies"), True) for group in groups]
        for name, value, dev in ((n, value, dev) for listed, dev in tables for n, value in listed.items()):
            if name.lower() == "python":
                yield Dependency("language", "python", str(value), file)
                continue
            entries = value if isinstance(value, list) else [value]
            rows = [entry if isinstance(entry, dict) else {"version": entry} for entry in entries]
            ours = (row for row in rows if self._is_for_us(row) and "path" not in row)
            if (fields := next(ours, None)) is not None:
                yield Dependency("python", name, _bare(str(fields.get("version", ""))), file, dev=dev)

    def _setup_cfg(self) -> Iterator[Dependency]:
        """Read setuptools' declarative file: ``install_requires`` and ``extras_require``."""
        file, parser = "setup.cfg", configparser.ConfigParser(interpolation=None, strict=False)
        parser.read_dict({"options": {}, "options.extras_require": {}})
        try:
            parser.read_string(self.folder.text(file))
        except configparser.Error as exc:
            self.folder.warn(file, f"it is not valid: {exc.message}")
        options = parser["options"]
        if python := options.get("python_requires"):
            yield Dependency("language", "python", python, file)
        texts = {"": options.get("install_requires", ""), **parser["options.extras_require"]}
        for name, text in texts.items():
            for _, line in _entries(text):
                yield from self._requirement(file, line, dev=bool(_DEVELOPMENT.search(name)))

    def _requirements(self) -> Iterator[Dependency]:
        """Read the requirements files of the folder and of its folder ``requirements``; what else they include is named."""
        names = self.folder.names()
        files = [name for name in names if re.fullmatch(REQUIREMENTS, name)]
        if "requirements" in names:
            inner = self.folder.names("requirements")
            files += [f"requirements/{name}" for name in inner if name.endswith((".txt", ".in"))]
        for file in files:
            is_constraint = "constraint" in file
            for option, value in _entries(self.folder.text(file)):
                target = posixpath.normpath(posixpath.join(posixpath.dirname(file), value))
                if not option and not is_constraint:
                    yield from self._requirement(file, value, dev=bool(_DEVELOPMENT.search(file)))
                elif option and target not in files:
                    self.folder.warn(file, f"kr does not read {value}, which it names")


def _bare(spec: str) -> str:
    """Return the version of an exact specifier, any other as it is."""
    return re.sub(r"^={2,3}\s*([^*,]+)$", r"\1", spec)


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield each requirement of a requirements file, and each file that it includes, behind ``-r`` or ``-c``."""
    for line in re.sub(r"\\[ \t]*\r?\n", " ", text).splitlines()[:_MOST_LINES]:
        entry = re.sub(r"(^|\s)#.*$|^(-e|--editable)[\s=]+", "", line.strip()).strip()
        if included := re.match(r"(-r|--requirement|-c|--constraint)[\s=]*(.+)", entry):
            yield included[1], included[2].strip()
        elif entry and not entry.startswith("-"):
            # Behind it may stand options of its own, such as --hash.
            yield "", re.split(r"\s--?[a-z]", entry, maxsplit=1)[0].strip()
