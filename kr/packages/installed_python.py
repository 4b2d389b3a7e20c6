"""A distribution in the project's Python environment, read without importing anything of it."""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, cast

from kr.packages.installed import (
    Description,
    InstalledPackage,
    choose_documents,
    choose_sources,
    choose_templates,
    repository_of_urls,
    walk,
)
from kr.packages.model import printable
from kr.packages.witness import depends_on_more, saw_file, saw_names, saw_place

if TYPE_CHECKING:
    from email.message import Message

_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?|_[A-Za-z0-9_]+")
_MAX_LEVELS = 6
_LONGEST_DESCRIPTION = 2 * 1024 * 1024
# sys.path of an isolated interpreter: its own site folders, Debian's dist-packages among them.
_ASK = "import json, sys; print(json.dumps([p for p in sys.path if p.endswith(('site-packages', 'dist-packages'))]))"


def find_python_package(
    name: str, projects: Sequence[Path], environ: Mapping[str, str], *, timeout: float = 5.0
) -> InstalledPackage | None:
    """Return the distribution ``name`` (PEP 503), else the one that provides the import name ``name``."""
    if not _NAME.fullmatch(name):
        return None
    folders = [str(folder) for folder in site_folders(projects, environ, timeout=timeout)]
    _saw_distributions(name, folders)
    try:
        found = next(iter(metadata.distributions(name=name, path=folders)), None)
        found = found or _provider(name, folders)
        return _read(found) if found is not None else None
    except (OSError, ValueError, KeyError, UnicodeError):  # a damaged distribution documents nothing
        return None


def installed_version(name: str, folders: Sequence[Path]) -> tuple[str, Path] | None:
    """Return the version of a distribution in these site-packages folders, and which of them has it."""
    try:
        for folder in folders:
            for found in metadata.distributions(name=name, path=[str(folder)]):
                if version := cast("Message", found.metadata).get("Version"):
                    return printable(version, limit=100), folder
    except (OSError, ValueError, KeyError, UnicodeError):
        return None
    return None


def _saw_distributions(name: str, folders: list[str]) -> None:
    for folder in folders:
        saw_names(folder)
        # An editable installation is renewed in place, under the same name.
        pattern = (
            "[-_.]+".join(re.escape(part) for part in re.split("[-_.]+", name)) + r"[-.].*(?:dist|egg)-info"
        )
        for found in _names(folder):
            if re.fullmatch(pattern, found, re.IGNORECASE):
                saw_file(f"{folder}/{found}/METADATA")
                saw_file(f"{folder}/{found}/PKG-INFO")


def _names(folder: str) -> list[str]:
    try:
        return [found.name for found in Path(folder).iterdir()]
    except OSError:
        return []


def site_folders(projects: Sequence[Path], environ: Mapping[str, str], *, timeout: float = 5.0) -> list[Path]:
    """Return the site-packages folders in use: ``VIRTUAL_ENV``'s, else those of an environment in a project, else of PATH's python.

    A virtual environment is read from its layout; its interpreter is not started.
    """
    return environment_of(projects, environ)[0] or _ask_python(environ, timeout)


def environment_of(projects: Sequence[Path], environ: Mapping[str, str]) -> tuple[list[Path], str]:
    """Return the site-packages folders of the virtual environment in use, and what it is in words."""
    active = environ.get("VIRTUAL_ENV")
    if active and (folders := _layout(Path(active))):
        return folders, "the Python environment of VIRTUAL_ENV"
    for environment in (it for project in projects for it in _environments(project)):
        if folders := _layout(environment):
            return folders, f"the project's Python environment {printable(environment.name, limit=80)}"
    return [], "the python on PATH"


def _environments(project: Path) -> Iterator[Path]:
    """Yield ``.venv`` of each folder upwards, and then whatever in it says that it is an environment (``venv``, ``env``).

    Above the folder that is asked about, that counts in its repository alone: who knows whose ``/tmp/venv`` is.
    """
    places = list(_upwards(project))
    for place in places:
        yield place / ".venv"
        if place == project or os.path.lexists(places[-1] / ".git"):
            saw_names(place)
            names = sorted(_names(str(place)), key=lambda name: (name not in {"venv", "env"}, name))
            yield from (place / name for name in names if (place / name / "pyvenv.cfg").is_file())


def _upwards(project: Path) -> Iterator[Path]:
    """Yield a folder and those above it, up to the root of its repository; without one, the fifth is the last."""
    for place in [project, *project.parents][:_MAX_LEVELS]:
        yield place
        saw_place(place / ".git")
        if os.path.lexists(place / ".git"):
            return


def _layout(environment: Path) -> list[Path]:
    saw_names(environment / "lib")
    saw_names(environment / "Lib")
    try:
        found = [*environment.glob("lib/python3*/site-packages"), *environment.glob("Lib/site-packages")]
        return sorted(f for f in found if f.is_dir())
    except (OSError, ValueError):
        return []


def _ask_python(environ: Mapping[str, str], timeout: float) -> list[Path]:
    path = environ.get("PATH", "")
    for command in ("python", "python3"):
        program = shutil.which(command, path=path) if path else None
        for folder in path.split(os.pathsep):
            saw_file(Path(folder, command))
        if program is None:
            continue
        _saw_program(Path(program))
        try:
            answer = subprocess.run(  # noqa: S603 - the user's own interpreter, a fixed program
                [program, "-I", "-c", _ASK],
                capture_output=True,
                timeout=timeout,
                check=True,
                stdin=subprocess.DEVNULL,
                env=dict(environ),
            ).stdout
            folders = json.loads(answer)
        except (OSError, ValueError, subprocess.SubprocessError):
            continue
        if isinstance(folders, list):
            return [Path(f) for f in folders if isinstance(f, str) and Path(f).is_dir()]
    return []


def _saw_program(program: Path) -> None:
    saw_file(program.parent.parent / "pyvenv.cfg")
    try:
        with program.open("rb") as file:
            is_script = file.read(2) == b"#!"
    except OSError:
        is_script = True
    if is_script:  # a version manager's, which starts another Python for each folder
        depends_on_more()


def _provider(name: str, folders: list[str]) -> metadata.Distribution | None:
    """Return the distribution that installed the import package ``name`` (``yaml`` comes from PyYAML)."""
    present = [
        folder
        for folder in folders
        if name.isidentifier() and ((Path(folder) / name).is_dir() or (Path(folder) / f"{name}.py").is_file())
    ]
    for distribution in metadata.distributions(path=present):
        if name in _top_level(distribution):
            return distribution
    return None


def _top_level(distribution: metadata.Distribution) -> set[str]:
    listed = distribution.read_text("top_level.txt")
    if listed:
        return set(listed.split())
    return {parts[0].removesuffix(".py") for parts in _parts(distribution) if parts[-1].endswith(".py")}


def _parts(distribution: metadata.Distribution) -> Iterator[tuple[str, ...]]:
    for file in distribution.files or ():
        if file.parts and ".." not in file.parts and not file.is_absolute():
            yield file.parts


def _read(distribution: metadata.Distribution) -> InstalledPackage | None:
    # An email message in fact, whose ``get`` is silent about what is missing on every Python.
    about = cast("Message", distribution.metadata)
    name, version = about.get("Name"), about.get("Version")
    root = Path(str(distribution.locate_file(""))).resolve()
    if not name or not version or not _NAME.fullmatch(name) or not root.is_dir():
        return None
    files = [("/".join(parts)) for parts in _parts(distribution)] or list(_walk_top_level(distribution, root))
    own = [f for f in files if not re.match(r"[^/]+\.(?:dist|egg)-info/", f)]
    urls = tuple(
        (label.strip(), url.strip())
        for label, _, url in (entry.partition(",") for entry in about.get_all("Project-URL") or ())
    )
    if about.get("Home-page"):
        urls += (("Homepage", about.get("Home-page", "")),)
    return InstalledPackage(
        name=name,
        version=printable(version, limit=100),
        ecosystem="python",
        root=root,
        documents=choose_documents(own, root),
        sources=choose_sources(own, root, ".py", ".pyi"),
        templates=choose_templates(own, root),
        description=_description(about),
        repository=repository_of_urls(urls),
    )


def _walk_top_level(distribution: metadata.Distribution, root: Path) -> Iterator[str]:
    """Yield the files of a distribution without a record of them."""
    for name in sorted(_top_level(distribution)):
        if name.isidentifier():
            yield f"{name}.py"
            yield from (f"{name}/{file}" for file in walk(root / name))


def _description(about: "Message") -> Description | None:
    body = about.get("Description") or about.get_payload()
    if not isinstance(body, str) or not body.strip():
        return None
    content_type = (
        str(about.get("Description-Content-Type") or "text/x-rst").partition(";")[0].strip().lower()
    )
    return Description(text=body[:_LONGEST_DESCRIPTION], content_type=content_type)
