"""Where a template is looked for by its name (seed 004, SPEC 9): in the project first, then among those that kr ships."""

import os
from collections import deque
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from kr.errors import WorkflowError
from kr.workflows.template import LIMIT

FOLDER = Path("knowledge") / "workflow" / "templates"
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "site-packages"})
_MOST_FOLDERS = 50_000


def find_template(name: str, cwd: Path) -> Path:
    """Find a template by name, or by path. Raises ``WorkflowError`` that lists where it looked."""
    if "/" in name or (cwd / name).is_file():
        path = cwd / name
        if path.is_file():
            return path.absolute()
        raise WorkflowError(f"{path}: there is no such template")
    file_name = name if name.endswith(".md") else f"{name}.md"
    near = cwd / FOLDER / file_name
    if near.is_file():
        return near.absolute()
    anywhere = None
    for folder in _folders(cwd):
        found = folder / file_name
        if not found.is_file():
            continue
        if folder.parts[-3:] == FOLDER.parts:
            return found.absolute()
        anywhere = anywhere or found
    if anywhere is not None:
        return anywhere.absolute()
    shipped = shipped_folder() / file_name
    if shipped.is_file():
        return shipped
    looked = [str(near), f"{FOLDER} in the folders below {cwd}", f"{file_name} anywhere below {cwd}"]
    looked.append(f"what kr ships: {', '.join(shipped_names())}")
    raise WorkflowError(f"there is no template {name}; looked for it in:\n  " + "\n  ".join(looked))


def shipped_folder() -> Path:
    """Give the folder of the templates that kr ships."""
    return Path(str(resources.files("kr.workflows").joinpath("templates")))


def shipped_names() -> list[str]:
    """Name the templates that kr ships."""
    return sorted(path.stem for path in shipped_folder().glob("*.md"))


def read_bytes(path: Path) -> bytes:
    """Read a template's bytes, no more than one too many. Raises ``WorkflowError``."""
    try:
        with path.open("rb") as file:
            return file.read(LIMIT + 1)
    except OSError as exc:
        raise WorkflowError(f"{path}: can't be read: {exc.strerror}") from exc


def _folders(top: Path) -> Iterator[Path]:
    """Yield the folders below, the nearest first, without hidden ones and those of installed packages."""
    ahead = deque([top])
    for _ in range(_MOST_FOLDERS):
        if not ahead:
            return
        folder = ahead.popleft()
        yield folder
        try:
            with os.scandir(folder) as items:
                names = sorted(item.name for item in items if item.is_dir(follow_symlinks=False))
        except OSError:
            continue  # one that can't be looked into holds nothing for us
        ahead.extend(folder / name for name in names if not name.startswith(".") and name not in _PASSED_OVER)
