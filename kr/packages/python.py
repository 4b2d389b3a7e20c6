"""Python: pyproject.toml (PEP 621, 735, Poetry, uv), setup.cfg and requirements files; uv.lock, poetry.lock, pylock.toml.

Environment markers are evaluated for the Python in use, on this machine.
"""

import configparser
import posixpath
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from packaging.markers import InvalidMarker, Marker, default_environment
from packaging.requirements import InvalidRequirement, Requirement

from kr.packages.environments import PythonEnvironment, normalised
from kr.packages.files import Folder, fits
from kr.packages.model import Declared, Dependency, Lock, dependency, resolve, satisfies

_LOCKS = ("uv.lock", "poetry.lock", "pylock.toml")
_OWN_SOURCES = frozenset({"editable", "virtual", "workspace", "directory", "path"})
_DEVELOPMENT = re.compile(r"(?:^|[-_/.])(?:dev|test|lint|doc|typing|check)", re.IGNORECASE)
_REQUIREMENTS = re.compile(r".*requirements.*\.(?:txt|in|lock)")
_MOST_FILES = 30
_MOST_LINES = 20_000
_LONGEST_REQUIREMENT = 2_000


def is_requirements_file(name: str) -> bool:
    """Tell whether pip's files are named so."""
    return _REQUIREMENTS.fullmatch(name) is not None


def read_python(folder: Folder, environment: PythonEnvironment, place: str) -> Iterator[Dependency]:
    """Yield what the Python files of a project name; what is installed wins. ``place`` names the environment."""
    project = _Project(folder, environment)
    declared = project.declared()
    lock = project.lock(declared)
    for row in resolve("python", declared, lock):
        version = environment.installed(row.package)
        yield replace(row, version=version, file=place) if version else row
    if (wanted := project.wanted_python) is not None:
        version, file = (environment.python, place) if environment.root else wanted
        yield dependency("language", "python", version, file, direct=True)


class _Project:
    """The Python files of one folder and of its workspace's members."""

    def __init__(self, folder: Folder, environment: PythonEnvironment) -> None:
        self.folder = folder
        self.python = environment.python
        self._markers = _marker_environment(environment.python)
        self._root = folder.document("pyproject.toml")
        self._own = normalised(_name(folder, "pyproject.toml", self._root))
        self._local: set[str] = set()
        self.wanted_python: tuple[str, str] | None = None

    def declared(self) -> list[Declared]:
        """Return one statement for each package: an exact version before a range before none, then the first."""
        found = [*self._manifests(), *self._setup_cfg(), *self._requirements()]
        best: dict[str, Declared] = {}
        for one in found:
            key = normalised(one.package)
            if key not in self._local and (key not in best or _exactness(one) < _exactness(best[key])):
                best[key] = one
        return list(best.values())

    def lock(self, declared: list[Declared]) -> Lock | None:
        """Return the lock file of the tool that pyproject.toml names, else of several the one that fits best."""
        places = [""] if self._root is None else ["", *filter(None, [_top(self.folder)])]
        for up in places:
            locks = [lock for name in _LOCKS if (lock := self._lock(f"{up}{name}"))]
            tools = {"uv", "poetry"} & self.folder.table("pyproject.toml", self._root, "tool").keys()
            tool = f"{tools.pop()}.lock" if len(tools) == 1 else "?"
            named = [lock for lock in locks if lock.file.endswith(tool)]
            if locks:
                return max(named or locks, key=lambda lock: lock.fitness(declared))
        return None

    def _holds(self, marker: object) -> bool:
        """Tell whether an environment marker holds; what is none holds."""
        if isinstance(marker, dict):  # Poetry writes one for each group
            return any(map(self._holds, marker.values()))
        if not isinstance(marker, str) or not marker.strip() or len(marker) > _LONGEST_REQUIREMENT:
            return True
        try:
            return Marker(marker).evaluate({**self._markers})
        except (InvalidMarker, ValueError, KeyError, RecursionError):
            return True

    def _requirement(self, file: str, text: str, *, dev: bool = False) -> Iterator[Declared]:
        """Read one PEP 508 requirement, or a URL as pip takes it. What lies at a path is the project's own."""
        text = text[:_LONGEST_REQUIREMENT]
        if re.match(r"\s*(?:[./~]|file:)|[^:\s]+\.(?:whl|zip|tar\.gz)$", text):
            return
        try:
            read = Requirement(text)
            specifiers = list(read.specifier)
        except (InvalidRequirement, ValueError, RecursionError):
            if named := _from_url(text):
                yield Declared(*named, file, dev)
            else:
                self.folder.warn(file, f"{text[:80]!r} is no requirement")
            return
        is_extra_of_itself = read.extras and not specifiers and normalised(read.name) == self._own
        is_file = read.url is not None and read.url.startswith("file:")
        if is_extra_of_itself or is_file or (read.marker and not self._holds(str(read.marker))):
            return
        if read.url is not None:
            yield Declared(read.name, url_version(read.url), file, dev)
            return
        only = specifiers[0] if len(specifiers) == 1 else None
        if only and only.operator in {"==", "==="} and "*" not in only.version:
            yield Declared(read.name, only.version, file, dev)
            return
        ordered = sorted(specifiers, key=lambda s: (s.operator in {"!=", "<", "<="}, s.version))
        yield Declared(read.name, ",".join(map(str, ordered)) or None, file, dev)

    def _manifests(self) -> Iterator[Declared]:
        folder, file = self.folder, "pyproject.toml"
        workspace = folder.table(file, self._root, "tool", "uv", "workspace")
        excluded = [f"!{one}" for one in folder.items(file, workspace, "exclude")]
        manifests = folder.manifests(file, [*folder.items(file, workspace, "members"), *excluded])
        self._local |= {
            normalised(_name(folder, *member)) for member in manifests.items() if member[0] != file
        }
        for member, manifest in manifests.items():
            yield from self._pep_621(member, manifest)
            yield from self._poetry(member, folder.table(member, manifest, "tool", "poetry"))

    def _pep_621(self, file: str, manifest: dict[str, Any]) -> Iterator[Declared]:
        folder = self.folder
        project = folder.table(file, manifest, "project")
        extras = folder.table(file, project, "optional-dependencies")
        lists = [(folder.items(file, project, "dependencies"), False)]
        lists += [(folder.items(file, extras, name), bool(_DEVELOPMENT.search(name))) for name in extras]
        lists.append((folder.items(file, manifest, "tool", "uv", "dev-dependencies"), True))
        for keys in (("dependency-groups",), ("tool", "pdm", "dev-dependencies")):
            groups = folder.table(file, manifest, *keys)
            lists += [(folder.items(file, groups, group), True) for group in groups]
        for name, source in folder.table(file, manifest, "tool", "uv", "sources").items():
            yield from self._uv_source(file, name, source)
        for entry, dev in ((e, dev) for entries, dev in lists for e in entries):
            if isinstance(entry, str):
                yield from self._requirement(file, entry, dev=dev)
            elif not isinstance(entry, dict):  # {include-group = "..."}: that group is read on its own
                folder.warn(file, f"{str(entry)[:80]!r} is no requirement")
        self._want_python(project.get("requires-python"), file)
        if "dependencies" in folder.items(file, project, "dynamic"):
            yield from self._dynamic(file, manifest)

    def _uv_source(self, file: str, name: str, source: object) -> Iterator[Declared]:
        """Read one of uv's sources: a folder is the project's own package, a git tag is an exact version."""
        for one in source if isinstance(source, list) else [source]:
            if not isinstance(one, dict) or not self._holds(one.get("marker")):
                continue
            if one.get("workspace") is True or "path" in one:
                self._local.add(normalised(name))
            elif version := _tag_version(one):
                yield Declared(name, version, file)

    def _dynamic(self, file: str, manifest: dict[str, Any]) -> Iterator[Declared]:
        """Read the files that setuptools takes dependencies from."""
        keys = ("tool", "setuptools", "dynamic")
        extras = self.folder.table(file, manifest, *keys, "optional-dependencies")
        tables = [self.folder.table(file, manifest, *keys, "dependencies"), *extras.values()]
        found = [table["file"] for table in tables if isinstance(table, dict) and "file" in table]
        for listed in found:
            names = listed if isinstance(listed, list) else [listed]
            place = posixpath.dirname(file)
            yield from self._requirements_of(*(posixpath.join(place, str(name)) for name in names))
        is_known = found or "poetry" in self.folder.table(file, manifest, "tool")
        if not is_known and not self._setup_cfg_section("options").get("install_requires"):
            self.folder.warn(file, "its dependencies are dynamic; kr does not read where they come from")

    def _poetry(self, file: str, poetry: dict[str, Any]) -> Iterator[Declared]:
        folder = self.folder
        groups = folder.table(file, poetry, "group")
        tables = [
            (folder.table(file, poetry, "dependencies"), False),
            (folder.table(file, poetry, "dev-dependencies"), True),
            *((folder.table(file, groups, group, "dependencies"), True) for group in groups),
        ]
        for name, value, dev in (
            (name, value, dev) for table, dev in tables for name, value in table.items()
        ):
            if name.lower() == "python":
                self._want_python(value, file)
                continue
            for entry in value if isinstance(value, list) else [value]:
                fields = entry if isinstance(entry, dict) else {"version": entry}
                if self._is_for_us(fields) and "path" not in fields:
                    yield Declared(name, self._poetry_version(file, name, fields), file, dev)
                    break

    def _is_for_us(self, fields: dict[str, Any]) -> bool:
        """Tell whether an entry of a Poetry table is for the Python in use."""
        python, platform = fields.get("python"), fields.get("platform")
        is_python = not isinstance(python, str) or satisfies(self.python, python)
        is_platform = not isinstance(platform, str) or platform == self._markers["sys_platform"]
        return is_python and is_platform and self._holds(fields.get("markers"))

    def _poetry_version(self, file: str, name: str, fields: dict[str, Any]) -> str | None:
        spec = fields.get("version")
        if spec is not None and not isinstance(spec, str):
            self.folder.warn(file, f"the version of {name} is not a text")
            return None
        exact = re.fullmatch(r"==\s*([\w.+!-]+)", spec or "")
        return exact[1] if exact else spec or _tag_version(fields)

    def _want_python(self, spec: object, file: str) -> None:
        if isinstance(spec, str) and self.wanted_python is None:
            self.wanted_python = (spec, file)

    def _setup_cfg_section(self, name: str) -> dict[str, str]:
        parser = configparser.ConfigParser(interpolation=None, strict=False)
        try:
            parser.read_string(self.folder.text("setup.cfg") or "")
        except configparser.Error as exc:
            self.folder.warn("setup.cfg", f"it is not valid ({exc.message})")
            return {}
        return dict(parser.items(name)) if parser.has_section(name) else {}

    def _setup_cfg(self) -> Iterator[Declared]:
        """Read setuptools' declarative file: ``install_requires`` and ``extras_require``, as lines or ``file:``."""
        file, options = "setup.cfg", self._setup_cfg_section("options")
        lists = {"install_requires": options.get("install_requires", "")}
        for name, text in (lists | self._setup_cfg_section("options.extras_require")).items():
            dev = bool(_DEVELOPMENT.search(name))
            if text.lstrip().startswith("file:"):
                yield from self._requirements_of(*map(str.strip, text.partition(":")[2].split(",")))
                continue
            for line in re.split(r"\n" if "\n" in text else r"[;\n](?=\s*[A-Za-z])", text):
                if line.strip() and not line.lstrip().startswith("#"):
                    yield from self._requirement(file, line.strip(), dev=dev)
        self._want_python(options.get("python_requires"), file)

    def _requirements(self) -> list[Declared]:
        """Read every requirements file of the folder and of its folder ``requirements``."""
        names = [name for name in self.folder.names() if is_requirements_file(name)]
        if "requirements" in self.folder.names():
            inner = Folder(self.folder.root / "requirements", self.folder.seen).names()
            names += [f"requirements/{name}" for name in inner if name.endswith((".txt", ".in"))]
        return self._requirements_of(*names)

    def _requirements_of(self, *names: str) -> list[Declared]:
        """Read requirements files and what they include inside the project; a constraint gives a version to who has none."""
        # What is called constraints is so, also where nothing includes it.
        queue = [
            one for name in names for one in self._included("", name, is_constraint="constraint" in name)
        ]
        done: set[str] = set()
        declared: list[Declared] = []
        constraints: dict[str, Declared] = {}
        while queue and len(done) < _MOST_FILES:
            file, is_constraint = queue.pop(0)
            if file in done:
                continue
            done.add(file)
            for kind, value in _entries(self.folder.text(file) or ""):
                if kind != "requirement":
                    queue += self._included(file, value, is_constraint=is_constraint or kind == "constraint")
                    continue
                dev = bool(_DEVELOPMENT.search(file))
                for one in self._requirement(file, value, dev=dev):
                    if is_constraint:
                        constraints.setdefault(normalised(one.package), one)
                    else:
                        declared.append(one)
        return [constraints.get(normalised(d.package), d) if d.spec is None else d for d in declared]

    def _included(self, file: str, target: str, *, is_constraint: bool) -> list[tuple[str, bool]]:
        if "://" in target:
            return []
        included = posixpath.normpath(posixpath.join(posixpath.dirname(file), target))
        if included.startswith(("../", "/")):
            self.folder.warn(file or target, f"{target} lies outside the project; it is not read")
            return []
        return [(included, is_constraint)]

    def _lock(self, file: str) -> Lock | None:
        """Read the locks of uv and Poetry, or PEP 751's: arrays of tables. The project's own folders are left out."""
        data = self.folder.document(file, "toml")
        if data is None:
            return None
        lock = Lock(file, fold=normalised)
        key = "packages" if file.endswith("pylock.toml") else "package"
        for package in self.folder.items(file, data, key):
            if not isinstance(package, dict):
                continue
            source = package.get("source")
            if package.keys() & {"directory"} or (isinstance(source, dict) and source.keys() & _OWN_SOURCES):
                self._choose(lock, package.get("dependencies"))
                continue
            forks, python = package.get("resolution-markers"), package.get("python-versions")
            is_ours = not isinstance(forks, list) or any(map(self._holds, forks))
            is_ours &= not isinstance(python, str) or satisfies(self.python, python)
            if is_ours and self._holds(package.get("markers")) and self._holds(package.get("marker")):
                lock.add(package.get("name"), package.get("version"))
        return lock

    def _choose(self, lock: Lock, dependencies: object) -> None:
        """Take in what uv says of the project's own package: a version is named where several are in the file."""
        for one in dependencies if isinstance(dependencies, list) else []:
            if isinstance(one, dict) and "version" in one and self._holds(one.get("marker")):
                lock.chosen[normalised(str(one.get("name")))] = str(one["version"])


def _marker_environment(python: str) -> dict[str, str]:
    """Return the values of this machine's markers, for the Python in use."""
    environment = {name: str(value) for name, value in default_environment().items()}
    full = python if python.count(".") > 1 else f"{python}.0"
    return environment | {"python_version": ".".join(python.split(".")[:2]), "python_full_version": full}


def _name(folder: Folder, file: str, manifest: dict[str, Any] | None) -> str:
    names = (folder.table(file, manifest, *keys).get("name") for keys in (("project",), ("tool", "poetry")))
    return next((name for name in names if isinstance(name, str)), "")


def _top(folder: Folder) -> str:
    """Return the way to the nearest uv workspace that has this folder; empty when there is none."""
    for up, here in folder.above():
        file = f"{up}pyproject.toml"
        workspace = folder.table(file, folder.document(file), "tool", "uv", "workspace")
        excluded = [f"!{one}" for one in folder.items(file, workspace, "exclude")]
        if fits(here, [*folder.items(file, workspace, "members"), *excluded]):
            return up
    return ""


def _exactness(declared: Declared) -> int:
    if declared.spec is None:
        return 2
    return 0 if re.fullmatch(r"v?\d[\w.+!-]*", declared.spec) else 1


def _tag_version(fields: dict[str, Any]) -> str | None:
    """Return the version of a package from git or a URL, as uv and Poetry write it."""
    named = fields.get("tag") or fields.get("rev") or fields.get("url") or ""
    return url_version(f"@{named}" if "git" in fields else str(named))


def url_version(url: str) -> str | None:
    """Return the version that a URL names: a git tag behind ``@``, a tag in its path, or that of a wheel or archive."""
    path, _, _ = url[:_LONGEST_REQUIREMENT].partition("#")
    tag = re.search(r"@(?:[\w./-]*?[/_-])?v?(\d+(?:\.\w+)+)$", path)
    last = re.sub(r"\.(?:whl|zip|tar\.\w+|tgz)$", "", path.rpartition("/")[2])
    file = re.search(r"(?:^|-)v?(\d+(?:\.\w+)+)(?:-(?:\d\w*-)?\w+-\w+-[\w.]+)?$", last)
    found = tag or (file if last != path.rpartition("/")[2] else None)
    return found[1] if found else None


def _from_url(text: str) -> tuple[str, str | None] | None:
    """Return name and version of a bare URL: by ``#egg=``, by the name of an archive, or by the repository's."""
    if not re.match(r"(?:\w+\+)?\w+://|\w+\+git@", text):
        return None
    url = text.split(" ", 1)[0]
    egg = re.search(r"#(?:.*&)?egg=([A-Za-z0-9][\w.-]*)", url)
    path = url.partition("#")[0]
    last = path.rpartition("/")[2]
    archive = re.match(r"([A-Za-z0-9][\w.]*(?:-[A-Za-z_][\w.]*)*)-v?\d", last)
    is_git = re.match(r"(?:git|hg|svn|bzr)\+", url)
    repository = re.match(r"([A-Za-z0-9][\w.-]*?)(?:\.git)?(?:@|$)", last) if is_git else None
    of_branch = re.match(r".*/([A-Za-z0-9][\w.-]*?)(?:\.git)?@", path) if is_git else None
    named = egg or (of_branch or repository if is_git else archive)
    return (named[1], url_version(url)) if named else None


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Yield ``("requirement" | "include" | "constraint", text)`` of each logical line of a requirements file."""
    joined = ""
    for line in text.splitlines()[:_MOST_LINES]:
        if line.rstrip().endswith("\\") and len(joined) < 50_000:
            joined += line.rstrip()[:-1] + " "
            continue
        entry = re.sub(r"(^|\s)#.*$", "", joined + line).strip()
        joined = ""
        option = re.match(
            r"(-r|--requirement|-c|--constraint|-e|--editable)(?:[\s=]+|(?<=-[rce]))(.+)", entry
        )
        if option and option[1] not in {"-e", "--editable"}:
            yield "include" if "r" in option[1][:3] else "constraint", option[2].strip()
        elif option or (entry and not entry.startswith("-")):
            # Behind it may stand options of its own, such as --hash.
            yield (
                "requirement",
                re.split(r"\s--?[a-z]", option[2] if option else entry, maxsplit=1)[0].strip(),
            )
