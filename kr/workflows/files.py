"""The files of workflows: templates, looked for by their name, and the state file (rule 9).

A state file is rewritten atomically and synced, and run by one at a time.
"""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from itertools import islice
from pathlib import Path

from pydantic import ValidationError

from kr.errors import StoreBusy, WorkflowError
from kr.store.files import file_lock, sync_folder, write_new
from kr.text import show_path
from kr.workflows.model import ENDED, Instance

DEFAULT_NAME = "workflow_state.json"
FOLDER = Path("knowledge") / "workflow" / "templates"
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "site-packages"})
_MOST_FOLDERS = 50_000
_TEMPLATE_ID = re.compile(rb"^template_id\s*:", re.MULTILINE)


# --- templates


def find_template(name: str, cwd: Path) -> Path:
    """Find a template by name, or by path. Raises ``WorkflowError`` that lists where it looked."""
    path = cwd / name
    if "/" in name or (path.suffix and path.is_file()):
        if path.is_file():
            return path.absolute()
        raise WorkflowError(f"{path}: there is no such template")
    file_name = name if name.endswith(".md") else f"{name}.md"
    near = cwd / FOLDER / file_name
    if near.is_file():
        return near.absolute()
    for path in (*sorted(_below(cwd, file_name), key=_rank), shipped_folder() / file_name):
        # docs/deployment.md is somebody's page, and must not hide the template of that name
        if path.is_file() and (_is_in_templates(path) or _TEMPLATE_ID.search(path.read_bytes())):
            return path.absolute()
    looked = [
        str(near),
        f"{FOLDER} in the folders below {cwd}",
        f"{file_name} with a template_id anywhere below {cwd}",
        f"what kr ships: {', '.join(shipped_names())}",
    ]
    raise WorkflowError(f"there is no template {name}; looked for it in:\n  " + "\n  ".join(looked))


def shipped_folder() -> Path:
    """Give the folder of the templates that kr ships."""
    return Path(str(resources.files("kr.workflows").joinpath("templates")))


def shipped_names() -> list[str]:
    """Name the templates that kr ships."""
    return sorted(path.stem for path in shipped_folder().glob("*.md"))


def _below(top: Path, file_name: str) -> Iterator[Path]:
    """Find the files of a name, but for hidden folders and those of installed packages."""
    for folder, names, files in islice(os.walk(top), _MOST_FOLDERS):
        names[:] = [name for name in names if not name.startswith(".") and name not in _PASSED_OVER]
        if file_name in files:
            yield Path(folder, file_name)


def _is_in_templates(path: Path) -> bool:
    return path.parent.parts[-3:] == FOLDER.parts


def _rank(path: Path) -> tuple[bool, int, Path]:
    """Put folders of templates first, then what is nearest."""
    return not _is_in_templates(path), len(path.parts), path


# --- the state


def read_state(path: Path) -> Instance:
    """Read an instance. Raises ``WorkflowError`` that names what is wrong, in broken JSON by line and column."""
    try:
        return Instance.model_validate_json(path.read_bytes())
    except FileNotFoundError as exc:
        raise WorkflowError(f"{path}: there is no such state file; kr workflow start makes one") from exc
    except OSError as exc:
        raise WorkflowError(f"{path}: can't be read: {exc.strerror}") from exc
    except ValidationError as exc:
        error = exc.errors(include_url=False, include_input=False)[0]
        where = show_path(error["loc"]) or "the state is broken"
        raise WorkflowError(f"{path}: {where}: {error['msg'].removeprefix('Value error, ')}") from exc


def write_state(path: Path, instance: Instance) -> None:
    """Put the instance in the file's place in one step, synced. Raises ``WorkflowError``."""
    fresh = path.with_name(f".{path.name}.new")  # the runner alone writes it
    text = json.dumps(instance.model_dump(by_alias=True), ensure_ascii=False, indent=2)
    try:
        write_new(fresh, text.encode("utf-8", "replace") + b"\n")
        fresh.replace(path)
        sync_folder(path.parent)
    except OSError as exc:
        raise WorkflowError(f"{path}: can't be written: {exc.strerror}") from exc


@contextmanager
def only_runner(path: Path) -> Iterator[None]:
    """Be the one that changes a state file; a killed one's lock is free at once. Raises ``WorkflowError``."""
    try:
        with file_lock(path.with_name(f".{path.name}.lock"), timeout=0):
            yield
    except StoreBusy as exc:
        raise WorkflowError(f"{path}: another process runs this workflow") from exc


def make_room(path: Path) -> Path | None:
    """Move an ended instance out of the way of a new one, to a file of its ``workflow_id``; gives that file.

    Raises ``WorkflowError`` for one that has not ended, or that can't be read: nothing is overwritten.
    """
    if not path.exists():
        return None
    ended = read_state(path)
    if ended.status not in ENDED:
        raise WorkflowError(
            f"{path}: {ended.workflow_id} is {ended.status} and has not ended; go on with it (kr workflow "
            "status says how), or name another file with --state"
        )
    kept = path.with_name(f"{ended.workflow_id}.json")
    if kept.exists():
        raise WorkflowError(f"{kept}: is in the way of the ended instance of {path.name}")
    path.rename(kept)
    return kept
