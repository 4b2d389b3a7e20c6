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
from kr.packages.files import Folder
from kr.packages.model import Declared, Dependency, Lock, dependency, resolve, satisfies

_MANIFEST = "pyproject.toml"
_LOCKS = ("uv.lock", "poetry.lock", "pylock.toml")
_OWN_SOURCES = frozenset({"editable", "virtual", "workspace", "directory", "path"})
_DEVELOPMENT = re.compile(r"(?:^|[-_/.])(?:dev|test|lint|doc|typing|check)", re.IGNORECASE)
_REQUIREMENTS = re.compile(r".*requirements.*\.(?:txt|in|lock)")
_MOST_FILES = 30
_MOST_LINES = 20_000
_LONGEST_REQUIREMENT = 2_000


def read_python(folder: Folder, environment: PythonEnvironment, place: str) -> Iterator[Dependency]:
    """Yield what the Python files of a project name; what is installed wins. ``place`` names the environment."""
    project = _Project(folder, environment)
    declared = [
        replace(one, installed=(version, place) if (version := environment.installed(one.package)) else None)
        for one in project.declared()
    ]
    yield from resolve("python", declared, project.lock(declared))
    if (wanted := project.wanted_python) is not None:
        version, file = (environment.python, place) if environment.root else wanted
        yield dependency("language", "python", version, file, manifest=wanted[1])


class _Project:
    """The Python files of one folder and of its workspace's members."""

    def __init__(self, folder: Folder, environment: PythonEnvironment) -> None:
        self.folder = folder
        self.python = environment.python
        self.wanted_python: tuple[str, str] | None = None
        full = self.python if self.python.count(".") > 1 else f"{self.python}.0"
        short = ".".join(self.python.split(".")[:2])
        values = {name: str(value) for name, value in default_environment().items()}
        self._markers = values | {"python_version": short, "python_full_version": full}
        self._root = folder.document(_MANIFEST)
        self._own = normalised(self._name(_MANIFEST, self._root))
        self._local: set[str] = set()

    def declared(self) -> list[Declared]:
        """Return one statement for each package: an exact version before a range before none, then the first."""
        best: dict[str, Declared] = {}
        for one in [*self._manifests(), *self._setup_cfg(), *self._requirements()]:
            known = best.setdefault(normalised(one.package), one)
            if _exactness(one) < _exactness(known):
                best[normalised(one.package)] = one
        return [one for name, one in best.items() if name not in self._local]

    def lock(self, declared: list[Declared]) -> Lock | None:
        """Return the lock file of the tool that pyproject.toml names, else of several the one that fits best."""
        locks = [lock for file in _LOCKS if (lock := self._lock(file))]
        tools = {"uv", "poetry"} & self.folder.table(_MANIFEST, self._root, "tool").keys()
        named = [lock for lock in locks if len(tools) == 1 and lock.file.removesuffix(".lock") in tools]
        return max(named or locks, key=lambda lock: lock.fitness(declared), default=None)

    def _lock(self, file: str) -> Lock | None:
        """Read a lock file: an array of tables. The project's own folders are left out, but say what they take."""
        data = self.folder.document(file, "toml")
        if data is None:
            return None
        lock = Lock(file, fold=normalised)
        for package in self.folder.tables(file, data, "packages" if file == "pylock.toml" else "package"):
            source = package.get("source")
            if "directory" in package or (isinstance(source, dict) and source.keys() & _OWN_SOURCES):
                taken = package.get("dependencies")
                for one in taken if isinstance(taken, list) else []:
                    if isinstance(one, dict) and "version" in one and self._holds(one.get("marker")):
                        lock.chosen["", normalised(str(one.get("name")))] = str(one["version"])
                continue
            python, forks = package.get("python-versions"), package.get("resolution-markers")
            is_ours = not isinstance(python, str) or satisfies(self.python, python)
            markers = [package.get("markers"), package.get("marker")]
            is_fork = not isinstance(forks, list) or any(map(self._holds, forks))
            if is_ours and is_fork and all(map(self._holds, markers)):
                lock.add(package.get("name"), package.get("version"))
        return lock

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
        except (InvalidRequirement, ValueError, RecursionError):
            if named := _from_url(text):
                yield Declared(package=named[0], spec=named[1], file=file, dev=dev)
            else:
                self.folder.warn(file, f"{text[:80]!r} is no requirement")
            return
        specifiers = sorted(read.specifier, key=lambda s: (s.operator in {"!=", "<", "<="}, s.version))
        is_own_extra = read.extras and not specifiers and normalised(read.name) == self._own
        is_file = read.url is not None and read.url.startswith("file:")
        if is_own_extra or is_file or (read.marker and not self._holds(str(read.marker))):
            return
        spec = ",".join(map(str, specifiers)) or None
        exact = re.fullmatch(r"={2,3}([^*,]+)", spec or "")
        spec = url_version(read.url) if read.url else exact[1] if exact else spec
        yield Declared(package=read.name, spec=spec, file=file, dev=dev)

    def _name(self, file: str, manifest: dict[str, Any] | None) -> str:
        tables = [self.folder.table(file, manifest, *keys) for keys in (("project",), ("tool", "poetry"))]
        return next((name for one in tables if isinstance(name := one.get("name"), str)), "")

    def _manifests(self) -> Iterator[Declared]:
        folder = self.folder
        workspace = folder.table(_MANIFEST, self._root, "tool", "uv", "workspace")
        excluded = [f"!{one}" for one in folder.items(_MANIFEST, workspace, "exclude")]
        patterns = [*folder.items(_MANIFEST, workspace, "members"), *excluded]
        for member, manifest in folder.manifests("python", _MANIFEST, patterns).items():
            if member != _MANIFEST:
                self._local.add(normalised(self._name(member, manifest)))
            yield from self._pep_621(member, manifest)
            yield from self._poetry(member, folder.table(member, manifest, "tool", "poetry"))

    def _pep_621(self, file: str, manifest: dict[str, Any]) -> Iterator[Declared]:
        folder = self.folder
        for name, source in folder.table(file, manifest, "tool", "uv", "sources").items():
            yield from self._uv_source(file, name, source)
        project = folder.table(file, manifest, "project")
        extras = folder.table(file, project, "optional-dependencies")
        groups = folder.table(file, manifest, "dependency-groups")
        lists = [(folder.items(file, project, "dependencies"), False)]
        lists += [(folder.items(file, extras, name), bool(_DEVELOPMENT.search(name))) for name in extras]
        lists += [(folder.items(file, groups, name), True) for name in groups]
        lists.append((folder.items(file, manifest, "tool", "uv", "dev-dependencies"), True))
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
                yield Declared(package=name, spec=version, file=file)

    def _dynamic(self, file: str, manifest: dict[str, Any]) -> Iterator[Declared]:
        """Read the files that setuptools takes dependencies from."""
        dynamic = self.folder.table(file, manifest, "tool", "setuptools", "dynamic")
        tables = [
            dynamic.get("dependencies"),
            *self.folder.table(file, dynamic, "optional-dependencies").values(),
        ]
        found = [one["file"] for one in tables if isinstance(one, dict) and "file" in one]
        for listed in found:
            names = listed if isinstance(listed, list) else [listed]
            yield from self._requirements_of(
                *(posixpath.join(posixpath.dirname(file), str(n)) for n in names)
            )
        is_poetry = "poetry" in self.folder.table(file, manifest, "tool")
        if not found and not is_poetry and not self._setup_cfg_section("options").get("install_requires"):
            self.folder.warn(file, "its dependencies are dynamic; kr does not read where they come from")

    def _poetry(self, file: str, poetry: dict[str, Any]) -> Iterator[Declared]:
        folder = self.folder
        groups = folder.table(file, poetry, "group")
        tables = [(folder.table(file, poetry, "dependencies"), False)]
        tables.append((folder.table(file, poetry, "dev-dependencies"), True))
        tables += [(folder.table(file, groups, group, "dependencies"), True) for group in groups]
        for name, value, dev in ((n, value, dev) for table, dev in tables for n, value in table.items()):
            if name.lower() == "python":
                self._want_python(value, file)
                continue
            entries = value if isinstance(value, list) else [value]
            rows = [entry if isinstance(entry, dict) else {"version": entry} for entry in entries]
            ours = (row for row in rows if self._is_for_us(row) and "path" not in row)
            if (fields := next(ours, None)) is not None:
                yield Declared(
                    package=name, spec=self._poetry_version(file, name, fields), file=file, dev=dev
                )

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
            parser.read_string(self.folder.text("setup.cfg"))
        except configparser.Error as exc:
            self.folder.warn("setup.cfg", f"it is not valid ({exc.message})")
            return {}
        return dict(parser.items(name)) if parser.has_section(name) else {}

    def _setup_cfg(self) -> Iterator[Declared]:
        """Read setuptools' declarative file: ``install_requires`` and ``extras_require``, as lines or ``file:``."""
        file, options = "setup.cfg", self._setup_cfg_section("options")
        lists = {"install_requires": options.get("install_requires", "")}
        for name, text in (lists | self._setup_cfg_section("options.extras_require")).items():
            if text.lstrip().startswith("file:"):
                yield from self._requirements_of(*map(str.strip, text.partition(":")[2].split(",")))
                continue
            for line in re.split(r"\n" if "\n" in text else r";(?=\s*[A-Za-z])", text):
                if line.strip() and not line.lstrip().startswith("#"):
                    yield from self._requirement(file, line.strip(), dev=bool(_DEVELOPMENT.search(name)))
        self._want_python(options.get("python_requires"), file)

    def _requirements(self) -> list[Declared]:
        """Read every requirements file of the folder and of its folder ``requirements``."""
        names = [name for name in self.folder.names() if _REQUIREMENTS.fullmatch(name)]
        if "requirements" in self.folder.names():
            inner = self.folder.names("requirements")
            names += [f"requirements/{name}" for name in inner if name.endswith((".txt", ".in"))]
        return self._requirements_of(*names)

    def _requirements_of(self, *names: str) -> list[Declared]:
        """Read requirements files and what they include inside the project; a constraint gives a version to who has none."""
        # What is called constraints is so, also where nothing includes it.
        queue = [("", name, "constraint" in name) for name in names]
        done: set[str] = set()
        declared: list[Declared] = []
        constraints: dict[str, Declared] = {}
        while queue and len(done) < _MOST_FILES:
            includer, target, is_constraint = queue.pop(0)
            file = posixpath.normpath(posixpath.join(posixpath.dirname(includer), target))
            if file.startswith(("../", "/")):
                self.folder.warn(includer or target, f"{target} lies outside the project; it is not read")
            elif file not in done and "://" not in target:
                done.add(file)
                if includer and self.folder.data(file) is None:
                    self.folder.warn(includer, f"{target}, which it names, is not there")
                for kind, value in _entries(self.folder.text(file)):
                    if kind != "requirement":
                        queue.append((file, value, is_constraint or kind == "constraint"))
                        continue
                    found = list(self._requirement(file, value, dev=bool(_DEVELOPMENT.search(file))))
                    declared += [] if is_constraint else found
                    constraints |= {normalised(one.package): one for one in found if is_constraint}
        return [
            constraints.get(normalised(one.package), one) if one.spec is None else one for one in declared
        ]


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
    last = path.rpartition("/")[2]
    stem = re.sub(r"\.(?:whl|zip|tar\.\w+|tgz)$", "", last)
    tag = re.search(r"@(?:[\w./-]*?[/_-])?v?(\d+(?:\.\w+)+)$", path)
    file = (
        re.search(r"(?:^|-)v?(\d+(?:\.\w+)+)(?:-(?:\d\w*-)?\w+-\w+-[\w.]+)?$", stem) if stem != last else None
    )
    found = tag or file
    return found[1] if found else None


def _from_url(text: str) -> tuple[str, str | None] | None:
    """Return name and version of a bare URL: by ``#egg=``, by the name of an archive, or by the repository's."""
    found = re.match(
        r"((?:\w+\+)?\w+)(?:://[^/]+/|\+git@)([^#\s]*)(?:#(?:.*&)?egg=([A-Za-z0-9][\w.-]*))?", text
    )
    if found is None:
        return None
    if found[3]:
        return found[3], url_version(text.split(maxsplit=1)[0])
    is_git = found[1].startswith(("git+", "hg+", "svn+", "bzr+"))
    last = (found[2].partition("@")[0] if is_git else found[2]).rpartition("/")[2]
    of_archive = r"([A-Za-z0-9][\w.]*(?:-[A-Za-z_][\w.]*)*)-v?\d"
    name = re.match(r"([A-Za-z0-9][\w.-]*?)(?:\.git)?$" if is_git else of_archive, last)
    return (name[1], url_version(text.split(maxsplit=1)[0])) if name else None


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
            yield "include" if option[1] in {"-r", "--requirement"} else "constraint", option[2].strip()
        elif option or (entry and not entry.startswith("-")):
            # Behind it may stand options of its own, such as --hash.
            own = option[2] if option else entry
            yield "requirement", re.split(r"\s--?[a-z]", own, maxsplit=1)[0].strip()
