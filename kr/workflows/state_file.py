"""The state file: read with the place of what is wrong, rewritten atomically and synced, run by one at a time (SPEC 9)."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kr.documents import KeyPath, read_located, show_path
from kr.errors import InvalidRequest, StoreBusy, StoreError, WorkflowError
from kr.workflows.state import ENDED, Instance

DEFAULT_NAME = "workflow_state.json"
_DEEPEST = 500


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
    content = json.dumps(instance.plain(), ensure_ascii=False, indent=2) + "\n"
    fresh = path.with_name(f".{path.name}.new")  # the runner alone writes it
    try:
        with fresh.open("wb") as file:
            file.write(content.encode("utf-8", "replace"))
            file.flush()
            os.fsync(file.fileno())
        fresh.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as exc:
        raise WorkflowError(f"{path}: can't be written: {exc.strerror}") from exc


@contextmanager
def only_runner(path: Path) -> Iterator[None]:
    """Be the one that changes a state file; a killed one's lock is free at once. Raises ``WorkflowError``."""
    from kr.store.lock import exclusive

    lock = exclusive(path.with_name(f".{path.name}.lock"), timeout=0)
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
            f"{path}: {ended.workflow_id} is {ended.status} and has not ended; go on with kr workflow run, "
            "or name another file with --state"
        )
    kept = path.with_name(f"{ended.workflow_id}.json")
    if kept.exists():
        raise WorkflowError(f"{kept}: is in the way of the ended instance of {path.name}")
    path.rename(kept)
    return kept


def _decoded(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = data.count(b"\n", 0, exc.start) + 1
        column = exc.start - (data.rfind(b"\n", 0, exc.start) + 1) + 1
        raise WorkflowError(f"{path}:{line}:{column}: no UTF-8 text") from exc


def _parsed(path: Path, text: str) -> Any:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is no JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except json.JSONDecodeError as exc:
        raise WorkflowError(f"{path}:{exc.lineno}:{exc.colno}: the state is broken: {exc.msg}") from exc
    except (ValueError, RecursionError) as exc:
        raise WorkflowError(f"{path}:1:1: the state is broken: {exc}") from exc


def _wrong(path: Path, text: str, loc: KeyPath, message: str) -> WorkflowError:
    """Name the place of a value, or of the nearest one around it; parts of ``loc`` may name types of a union."""
    try:
        places = read_located(text, noun="the state", depth=_DEEPEST).places
    except InvalidRequest:
        places = {}
    here: KeyPath = ()
    for step in loc:
        here = (*here, step) if (*here, step) in places else here
    line, column = places[here][:2] if here in places else (1, 1)
    shown = show_path(tuple(loc)) if loc else "the state"
    return WorkflowError(f"{path}:{line}:{column}: {shown}: {message}")
