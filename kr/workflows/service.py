"""The operations of ``kr workflow``: over templates, which are looked for by name, state files, and rows in the database (rule 9)."""

import logging
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from kr.errors import StoreError, WorkflowError
from kr.models import to_plain
from kr.store import ledger
from kr.store.files import write_new
from kr.times import to_text
from kr.workflows.model import (
    Begin,
    Event,
    Finished,
    Instance,
    Job,
    Template,
    given_values,
    new_instance,
)
from kr.workflows.report import render_report
from kr.workflows.runner import OnChange, Runner, make_room, only_runner, read_state, write_state
from kr.workflows.template import Problem, read_template

if TYPE_CHECKING:
    from kr.app import App

logger = logging.getLogger(__name__)

DEFAULT_NAME = "workflow_state.json"
FOLDER = Path("knowledge") / "workflow" / "templates"
_PASSED_OVER = frozenset({"node_modules", "__pycache__", "site-packages"})
_MOST_FOLDERS = 50_000
_TEMPLATE_ID = re.compile(rb"^template_id\s*:", re.MULTILINE)
_INJECT = ("phase", "framework", "query", "files")
_MOST_LESSONS = 100
_COLUMNS = {
    *("workflow_id", "template_id", "template_ref", "type", "status", "current_step"),
    *("is_simulated", "created_at", "completed_at"),
}


class BadParameters(WorkflowError):
    """The command line gives a parameter that the template doesn't have, or a value that is none of its type."""

    exit_status = 2


@dataclass(slots=True)
class Workflows:
    """The operations over one project. Paths are relative to the app's working directory."""

    app: "App"
    on_change: OnChange = lambda _: None
    _is_store_away: bool = field(default=False, init=False)

    def validate(self, name: str) -> dict[str, Any]:
        """Tell every mistake of a template: ``{template, template_id, problems: [{line, field, message}]}``."""
        path, template, problems = self._read(name)
        return {
            "template": str(path),
            "template_id": template.template_id if template else None,
            "problems": [asdict(problem) for problem in problems],
        }

    def start(
        self, name: str, given: Mapping[str, str], *, state: Path | None, simulate: bool, run: bool
    ) -> Instance:
        """Make an instance of a template, and run it. Raises ``WorkflowError``."""
        path, template, mistakes = self._read(name)
        if template is None:
            lines = "\n".join(problem.sentence(path.name) for problem in mistakes)
            raise WorkflowError(f"{path}: the template has mistakes:\n{lines}")
        if "/" not in name and path.stem in shipped_names() and path.parent != shipped_folder():
            logger.warning("%s stands in the place of the template that kr ships under this name", path)
        values, problems = given_values(template.parameters, given, is_simulated=simulate)
        if problems:
            raise BadParameters("\n".join(f"{path.name}: {problem}" for problem in problems))
        now = self.app.clock()
        instance = new_instance(template, values, now, template_ref=str(path), is_simulated=simulate)
        file = self._file(state)
        if not file.parent.is_dir():
            raise WorkflowError(f"{file.parent}: there is no such folder")
        with only_runner(file):
            kept = make_room(file)
            if kept is not None:
                logger.warning("%s: the ended instance was kept as %s", file, kept.name)
                self._list(kept, read_state(kept))
            write_state(file, instance)
            self._changed(file, instance)
            return self._run(file, instance, Begin()) if run else instance

    def take(self, state: Path | None, event: Event) -> Instance:
        """Go on with an instance (``Begin``), or decide on its step that waits (``Decided``). Raises ``WorkflowError``."""
        file = self._file(state)
        read_state(file)  # a lock file would be left where there is nothing to lock
        with only_runner(file):
            instance = read_state(file)
            self.on_change(instance)
            return self._run(file, instance, event)

    def instance(self, state: Path | None) -> Instance:
        """Read an instance as it stands. Raises ``WorkflowError``."""
        return read_state(self._file(state))

    def report(self, state: Path | None) -> Path:
        """Write the report beside the state, named for the template, or for a state file of another name.

        Raises ``WorkflowError``.
        """
        file = self._file(state)
        instance = read_state(file)
        name = instance.template_id if file.name == DEFAULT_NAME else file.stem
        target = file.with_name(f"{name}_report.md")
        try:
            write_new(target, render_report(instance).encode(errors="replace"))
        except OSError as exc:
            raise WorkflowError(f"{target}: can't be written: {exc.strerror}") from exc
        self._changed(file, instance)  # who was killed behind the last state has left its row as it was
        return target

    def rows(self, limit: int) -> list[dict[str, Any]]:
        """List the instances that the database knows, the newest first."""
        with self.app.store.read() as tx:
            return ledger.workflows(tx, limit)

    def _read(self, name: str) -> tuple[Path, Template | None, list[Problem]]:
        path = find_template(name, self.app.cwd)
        try:
            return path, *read_template(path.read_bytes())
        except OSError as exc:
            raise WorkflowError(f"{path}: can't be read: {exc.strerror}") from exc

    def _file(self, state: Path | None) -> Path:
        path = self.app.cwd / (state or DEFAULT_NAME)
        return path.parent.resolve() / path.name  # what is written takes the place of a link

    def _run(self, file: Path, instance: Instance, event: Event) -> Instance:
        runner = Runner(
            file,
            environ=self.app.environ,
            clock=self.app.clock,
            perform=partial(self._perform, folder=file.parent),
            on_change=partial(self._changed, file),
        )
        return runner.run(instance, event)

    def _changed(self, file: Path, instance: Instance) -> None:
        self.on_change(instance)
        self._list(file, instance)

    def _list(self, file: Path, instance: Instance) -> None:
        if self._is_store_away:
            return
        columns = instance.model_dump(include=_COLUMNS)
        row = columns | {"state_file": str(file), "updated_at": to_text(self.app.clock())}
        try:
            self.app.store.change(lambda tx: ledger.record_workflow(tx, row), scope=None)
        except StoreError as error:
            self._is_store_away = True
            logger.warning("the workflow is not listed: %s", error)

    # --- kr's own operations as steps: ``with`` becomes a request, the envelope becomes the ``result``

    def _perform(self, job: Job, instance: Instance, *, folder: Path) -> Finished:
        """Do the operation of a job. Raises ``KrError``."""
        request = {"story_key": "0-0", "session_id": instance.workflow_id, **job.request}
        result = self._operate(str(job.operation), request, folder)
        if result.get("status") == "failure":
            details = "; ".join(problem["message"] for problem in result["errors"]) or "failure"
            return Finished(job.target, is_success=False, details=details, result=result)
        path = (result.get("results") or {}).get("report_path")
        details = str(result.get("status", "done")) + (f": {path}" if path else "")
        return Finished(job.target, is_success=True, details=details, result=result)

    def _operate(self, operation: str, request: dict[str, Any], folder: Path) -> dict[str, Any]:
        app = self.app
        match operation:
            case "research":
                return to_plain(app.research.document({"mode": "research", **request}))
            case "save":
                return to_plain(app.save_finding(request))
            case "lessons.inject":
                if "lessons_inject" not in request:
                    request["lessons_inject"] = {key: request.pop(key) for key in _INJECT if key in request}
                return to_plain(app.research.inject(request))
            case "lessons.record":
                return to_plain(app.record_lessons(to_json(request)))
            case "export-yaml":
                output = request.get("output")
                return app.export_yaml(None if output is None else folder / str(output))
            case "warm":
                needs = app.warm()
                lacking = [need for need in needs if need["state"] != "fresh"]
                limit = _limit(request, len(needs))
                return {"needs": needs, "lacking": lacking[:limit], "left_out": lacking[limit:]}
            case _:  # lessons.list
                with app.lessons() as service:
                    listed = service.lessons(phase=request.get("phase"), limit=_limit(request, _MOST_LESSONS))
                came_back = sum(lesson["recurred"] for lesson in listed)
                return {"lessons": listed, "total": len(listed), "recurred": came_back}


def _limit(request: Mapping[str, Any], default: int) -> int:
    value = str(request.get("limit", default))
    if not value.isdecimal():
        raise WorkflowError(f"with.limit: must be a whole number, not {value}")
    return int(value)


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
