""".NET: the project files with Directory.Packages.props, packages.lock.json, and packages.config."""

from collections.abc import Iterator
from itertools import islice
from pathlib import PurePosixPath
from xml.etree.ElementTree import Element

from kr.packages.folder import MAX_MEMBERS, Folder
from kr.packages.model import Declared, Inventory, Lock, collect

_PROJECTS = (".csproj", ".fsproj", ".vbproj")
_MARKS = ("*.sln", "*.slnx", "*.??proj", "Directory.*.props")
"""One of these stands at the top of every .NET solution and project; elsewhere no folder is walked for it."""
_CENTRAL = "Directory.Packages.props"


def find(folder: Folder, inventory: Inventory) -> None:
    """Add the packages of every project below the folder; a project that another one refers to is no package."""
    if not any(next(folder.root.glob(pattern), None) for pattern in _MARKS):
        return
    central = _central(folder)
    for file in islice(folder.files(*_PROJECTS), MAX_MEMBERS):
        root = folder.xml(file)
        place = PurePosixPath(file).parent
        declared = list(_declared(root, file, central)) if root is not None else []
        declared += _old_packages(folder, place)
        collect(inventory, "nuget", declared, _lock(folder, place))


def _declared(root: Element, file: str, central: dict[str, tuple[str, str]]) -> Iterator[Declared]:
    for item in root.iter("PackageReference"):
        name = item.get("Include") or item.get("Update")
        if not name or "$(" in name:
            continue
        own = item.get("Version") or item.get("VersionOverride") or (item.findtext("Version") or "").strip()
        version, told_by = (own, file) if own else central.get(name.lower(), ("", file))
        # What is referred to for the build alone (analyzers, source links) says so.
        is_private = (item.get("PrivateAssets") or item.findtext("PrivateAssets") or "").lower() == "all"
        yield Declared(name, None if "$(" in version else version or None, told_by, is_private)


def _central(folder: Folder) -> dict[str, tuple[str, str]]:
    """Map each package to the version that the nearest Directory.Packages.props gives it, and to that file."""
    for up in ("", *(up for up, _ in folder.above())):
        root = folder.xml(file := f"{up}{_CENTRAL}")
        if root is not None:
            items = [*root.iter("PackageVersion"), *root.iter("GlobalPackageReference")]
            return {i.get("Include", "").lower(): (i.get("Version", ""), file) for i in items}
    return {}


def _old_packages(folder: Folder, place: PurePosixPath) -> Iterator[Declared]:
    file = (place / "packages.config").as_posix()
    root = folder.xml(file)
    for item in root.iter("package") if root is not None else ():
        if name := item.get("id"):
            yield Declared(name, item.get("version"), file, item.get("developmentDependency") == "true")


def _lock(folder: Folder, place: PurePosixPath) -> Lock | None:
    """Read ``dependencies: {framework: {package: {type, resolved}}}``; a ``Project`` is the solution's own."""
    file = (place / "packages.lock.json").as_posix()
    data = folder.document(file)
    if data is None:
        return None
    lock = Lock(file, fold=str.lower)
    frameworks = folder.table(file, data, "dependencies")
    for framework in frameworks:
        for name, entry in folder.table(file, frameworks, framework).items():
            if isinstance(entry, dict) and entry.get("type") != "Project":
                lock.add(name, entry.get("resolved"))
    return lock
