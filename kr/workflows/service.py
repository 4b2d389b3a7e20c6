"""The operations of ``kr workflow``: over templates, state files, and the rows in the database (rule 9)."""

import logging
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kr.errors import StoreError, WorkflowError
from kr.store import ledger
from kr.store.files import write_new
from kr.store.ledger import WorkflowRow
from kr.times import to_text
from kr.workflows.expressions import require_cel
from kr.workflows.files import (
    DEFAULT_NAME,
    find_template,
    make_room,
    only_runner,
    read_bytes,
    read_state,
    shipped_folder,
    shipped_names,
    write_state,
)
from kr.workflows.model import given_values
from kr.workflows.report import render_report
from kr.workflows.runner import OnChange, Runner
from kr.workflows.state import Begin, Decided, Event, Instance, new_instance
from kr.workflows.template import read_template

if TYPE_CHECKING:
    from kr.store.engine import Store
    from kr.workflows.operations import Operations

logger = logging.getLogger(__name__)


class BadParameters(WorkflowError):
    """The command line gives a parameter that the template doesn't have, or a value that is none of its type."""

    exit_status = 2


@dataclass(slots=True)
class Workflows:
    """The operations over one project. Paths are relative to ``cwd``."""

    store: "Store"
    operations: "Operations"
    cwd: Path
    environ: Mapping[str, str]
    clock: Callable[[], datetime]
    on_change: OnChange | None = None
    _recorded: tuple[str, str, str | None] | None = field(default=None, init=False)
    _is_store_away: bool = field(default=False, init=False)

    def validate(self, name: str) -> dict[str, Any]:
        """Tell every mistake of a template: ``{template, template_id, problems: [{line, field, message}]}``."""
        require_cel()
        path = find_template(name, self.cwd)
        reading = read_template(read_bytes(path))
        return {
            "template": str(path),
            "template_id": reading.template.template_id if reading.template else None,
            "problems": [asdict(problem) for problem in reading.problems],
        }

    def start(
        self,
        name: str,
        given: Mapping[str, str],
        *,
        state: Path | None,
        simulate: bool = False,
        run: bool = True,
    ) -> Instance:
        """Make an instance of a template, and run it. Raises ``WorkflowError``."""
        require_cel()
        path = find_template(name, self.cwd)
        reading = read_template(read_bytes(path))
        template = reading.template
        if template is None:
            lines = "\n".join(problem.sentence(path.name) for problem in reading.problems)
            raise WorkflowError(f"{path}: the template has mistakes:\n{lines}")
        if "/" not in name and path.stem in shipped_names() and path.parent != shipped_folder():
            logger.warning("%s stands in the place of the template that kr ships under this name", path)
        values, problems = given_values(template.parameters, given, is_simulated=simulate)
        if problems:
            raise BadParameters("\n".join(f"{path.name}: {problem}" for problem in problems))
        now = self.clock()
        instance = new_instance(
            template,
            workflow_id=f"{template.template_id}-{now:%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:6]}",
            template_ref=str(path),
            params=values,
            now=to_text(now),
            is_simulated=simulate,
        )
        file = self._file(state)
        if not file.parent.is_dir():
            raise WorkflowError(f"{file.parent}: there is no such folder")
        with only_runner(file):
            kept = make_room(file)
            if kept is not None:
                logger.warning("%s: the ended instance was kept as %s", file, kept.name)
                self._changed(kept, read_state(kept))
            write_state(file, instance)
            self._changed(file, instance)
            return self._run(file, instance, Begin(simulate=simulate)) if run else instance

    def run(self, *, state: Path | None, retry: bool = False, simulate: bool = False) -> Instance:
        """Go on with an instance where it ended, was stopped or killed. Raises ``WorkflowError``."""
        with self._held(state) as (file, instance):
            return self._run(file, instance, Begin(retry=retry, simulate=simulate))

    def decide(self, step_id: str, *, is_approved: bool, by: str, note: str, state: Path | None) -> Instance:
        """Approve the step that waits, and go on; or reject it. Raises ``WorkflowError``."""
        with self._held(state) as (file, instance):
            return self._run(file, instance, Decided(step_id, is_approved=is_approved, by=by, note=note))

    def instance(self, state: Path | None) -> Instance:
        """Read an instance as it stands. Raises ``WorkflowError``."""
        return read_state(self._file(state))

    def report(self, *, state: Path | None, output: Path | None) -> Path:
        """Write the report; by default beside the state, named for the template. Raises ``WorkflowError``."""
        file = self._file(state)
        instance = read_state(file)
        content = render_report(instance).encode(errors="replace")
        target = file.with_name(f"{instance.template_id}_report.md")
        try:
            if output is None:
                write_new(target, content)
            else:
                target = self.cwd / output
                target.write_bytes(content)
        except OSError as exc:
            raise WorkflowError(f"{target}: can't be written: {exc.strerror}") from exc
        self._changed(file, instance)  # who was killed behind the last state has left its row as it was
        return target

    def rows(self, limit: int | None = None) -> list[dict[str, Any]]:
        """List the instances that the database knows, the newest first."""
        if not self.store.exists():
            return []
        with self.store.read() as tx:
            return [asdict(row) for row in ledger.workflows(tx, limit)]

    def _run(self, file: Path, instance: Instance, event: Event) -> Instance:
        require_cel()
        runner = Runner(
            file,
            environ=self.environ,
            clock=self.clock,
            perform=partial(self.operations.perform, folder=file.parent),
            on_change=partial(self._changed, file),
        )
        return runner.run(instance, event)

    @contextmanager
    def _held(self, state: Path | None) -> Iterator[tuple[Path, Instance]]:
        """Be the one that changes an instance."""
        file = self._file(state)
        read_state(file)  # a lock file would be left where there is nothing to lock
        with only_runner(file):
            yield file, read_state(file)

    def _changed(self, file: Path, instance: Instance) -> None:
        if self.on_change is not None:
            self.on_change(instance)
        seen = (instance.workflow_id, instance.status, instance.current_step)
        if seen == self._recorded or self._is_store_away:
            return
        self._recorded = seen
        row = WorkflowRow(
            workflow_id=instance.workflow_id,
            template_id=instance.template_id,
            template_ref=instance.template_ref,
            type=instance.type,
            status=instance.status,
            current_step=instance.current_step,
            state_file=str(file),
            is_simulated=instance.is_simulated,
            created_at=instance.created_at,
            updated_at=to_text(self.clock()),
            completed_at=instance.completed_at,
        )
        try:
            self.store.change(lambda tx: ledger.record_workflow(tx, row), scope=None)
        except StoreError as error:
            self._is_store_away = True
            logger.warning("the workflow is not listed: %s", error)

    def _file(self, state: Path | None) -> Path:
        path = self.cwd / (state or DEFAULT_NAME)
        return path.parent.resolve() / path.name  # what is written takes the place of a link
