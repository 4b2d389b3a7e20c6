"""The files of workflows: templates, looked for by their name, and the state file (rule 9).

A state file is read with the place of what is wrong, rewritten atomically and synced, and run by one at a time.
"""

import json
import os
import re
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from pydantic import ValidationError
from pydantic_core import PydanticSerializationError, to_json

from kr.errors import BrokenYaml, StoreBusy, StoreError, WorkflowError
from kr.store.files import sync_folder, write_new
from kr.store.lock import file_lock
from kr.text import KeyPath, show_path
from kr.workflows.state import ENDED, Instance
from kr.workflows.template import LIMIT
from kr.yaml_io import Place, read_yaml

DEFAULT_NAME = "workflow_state.json"
_DEEPEST = 500
FOLDER = Path("knowledge") / "workflow" / "templates"
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "site-packages"})
_MOST_FOLDERS = 50_000
_HEAD = 4096
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
    anywhere, passed_over = None, []
    for folder in _folders(cwd):
        found = folder / file_name
        if not found.is_file():
            continue
        if folder.parts[-3:] == FOLDER.parts:
            return found.absolute()
        if _TEMPLATE_ID.search(read_bytes(found)[:_HEAD]):
            anywhere = anywhere or found
        else:  # docs/deployment.md is somebody's page, and must not hide the template of that name
            passed_over.append(f"{found} (no template: it has no template_id)")
    if anywhere is not None:
        return anywhere.absolute()
    shipped = shipped_folder() / file_name
    if shipped.is_file():
        return shipped
    looked = [str(near), f"{FOLDER} in the folders below {cwd}", f"{file_name} anywhere below {cwd}"]
    looked += passed_over
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


# --- the state


def read_state(path: Path) -> Instance:
    """Read an instance. Raises ``WorkflowError`` that names file, line and column of what is wrong."""
    try:
        data = path.read_bytes()
    except FileNotFoundError as exc:
        raise WorkflowError(f"{path}: there is no such state file; kr workflow start makes one") from exc
    except OSError as exc:
        raise WorkflowError(f"{path}: can't be read: {exc.strerror}") from exc
    text = _decoded(path, data)
    try:
        instance = Instance.model_validate(_parsed(path, text))
    except ValidationError as exc:
        error = exc.errors(include_url=False, include_input=False)[0]
        raise _wrong(path, text, error["loc"], error["msg"]) from exc
    for where, message in instance.mistakes():
        raise _wrong(path, text, where, message)
    return instance


def write_state(path: Path, instance: Instance) -> None:
    """Put the instance in the file's place in one step, synced. Raises ``WorkflowError``."""
    content = _as_bytes(instance.plain()) + b"\n"
    fresh = path.with_name(f".{path.name}.new")  # the runner alone writes it
    try:
        write_new(fresh, content)
        fresh.replace(path)
        sync_folder(path.parent)
    except OSError as exc:
        raise WorkflowError(f"{path}: can't be written: {exc.strerror}") from exc


@contextmanager
def only_runner(path: Path) -> Iterator[None]:
    """Be the one that changes a state file; a killed one's lock is free at once. Raises ``WorkflowError``."""
    lock = file_lock(path.with_name(f".{path.name}.lock"), timeout=0)
    try:
        lock.__enter__()
    except StoreBusy as exc:
        raise WorkflowError(f"{path}: another process runs this workflow") from exc
    except StoreError as exc:
        raise WorkflowError(str(exc)) from exc
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


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


def _as_bytes(value: Any) -> bytes:
    try:
        return to_json(value, indent=2)  # ten times as fast as json: a state is written after every change
    except PydanticSerializationError:  # half a surrogate pair, which JSON can write and UTF-8 can't
        return json.dumps(value, ensure_ascii=False, indent=2).encode("utf-8", "replace")


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        column = exc.start - (data.rfind(b"\n", 0, exc.start) + 1) + 1
        raise WorkflowError(f"{path}:{line}:{column}: no UTF-8 text") from exc


def _parsed(path: Path, text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as exc:
        raise WorkflowError(f"{path}:{exc.lineno}:{exc.colno}: the state is broken: {exc.msg}") from exc
    except (ValueError, RecursionError) as exc:
        raise WorkflowError(f"{path}:1:1: the state is broken: {exc}") from exc


def _wrong(path: Path, text: str, loc: KeyPath, message: str) -> WorkflowError:
    """Name the place of a value, or of the nearest one around it; parts of ``loc`` may name types of a union."""
    try:
        _, places = read_yaml(text, depth=_DEEPEST)
    except BrokenYaml:
        places = {}
    here: KeyPath = ()
    for step in loc:
        here = (*here, step) if (*here, step) in places else here
    place = places.get(here, Place(1, 1))
    shown = show_path(tuple(loc)) if loc else "the state"
    return WorkflowError(f"{path}:{place.line}:{place.column}: {shown}: {message}")
