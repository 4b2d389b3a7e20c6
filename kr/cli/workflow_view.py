"""Watching a workflow: a live view of its steps at a terminal, one line for each change on a pipe (SPEC 9)."""

import shlex
import sys
import time
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

import click

from kr.cli.layout import wrapped
from kr.text.characters import one_line
from kr.workflows.report import duration
from kr.workflows.state import Instance, StepState, SubTask, Target

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

_MOST_SUB_TASKS = 20
_COLOURS = {"completed": "green", "failed": "red", "running": "cyan", "waiting": "yellow", "skipped": "dim"}
_MARKS = {"completed": "✓", "failed": "✗", "running": "•", "waiting": "?", "skipped": "–", "pending": " "}


class Watcher(Protocol):
    """Shows an instance while it changes; a context manager around its run."""

    def __enter__(self) -> Self:
        """Begin to show."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leave the screen as it is."""

    def changed(self, instance: Instance) -> None:
        """Take the instance as it stands now."""


def _inner_first(instance: Instance) -> list[tuple[Target, StepState | SubTask]]:
    """List steps and sub-tasks in the order in which their changes happen: a parallel step ends after its sub-tasks."""
    found: list[tuple[Target, StepState | SubTask]] = []
    for step in instance.steps:
        tasks = [(Target(step.id, at), task) for at, task in enumerate(step.sub_tasks)]
        is_open = step.status in {"pending", "running"}
        found += [(Target(step.id), step), *tasks] if is_open else [*tasks, (Target(step.id), step)]
    return found


class LineWatcher:
    """Tells every change of a status in a line of its own."""

    def __init__(self) -> None:
        self._told: dict[tuple[str, int | None], str] = {}
        self._status = ""
        self._is_new = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Nothing stands open."""

    def changed(self, instance: Instance) -> None:
        """Tell what is another than the last time; of a run's beginning, what is under way."""
        for target, run in _inner_first(instance):
            known = self._told.get(target, "pending")
            shown = (
                run.status
                if run.attempts < 2 or run.status != "running"
                else f"running, attempt {run.attempts}"
            )
            if shown != known and not (self._is_new and run.status in {"completed", "skipped"}):
                self._tell(
                    target.step_id if target.task is None else f"{target.step_id}: {run.name}", shown, run
                )
            self._told[target] = shown
        if instance.status != self._status and instance.status in {"completed", "failed", "waiting"}:
            self._tell(instance.workflow_id, instance.status, None)
        self._status, self._is_new = instance.status, False

    def _tell(self, name: str, status: str, run: StepState | SubTask | None) -> None:
        told = run is not None and run.status not in {"running", "pending"} and run.details
        line = one_line(f"{name}: {status}" + (f": {run.details}" if run is not None and told else ""), 200)
        click.echo(f"{time.strftime('%H:%M:%S')} {line}", err=True)


class LiveWatcher:
    """Keeps a table of steps and sub-tasks up to date."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        self._instance: Instance | None = None
        self._began: dict[tuple[str, int | None], float] = {}
        self._live = Live(self, console=Console(stderr=True), refresh_per_second=4, transient=True)

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def changed(self, instance: Instance) -> None:
        """Show it from the next refresh on."""
        for target, run in instance.runs():
            if run.status == "running":
                self._began.setdefault(target, time.monotonic())
            else:
                self._began.pop(target, None)
        self._instance = instance
        self._live.refresh()

    def __rich_console__(self, console: "Console", options: "ConsoleOptions") -> "RenderResult":
        """Draw the table; rich asks for it at every refresh."""
        if self._instance is not None:
            yield self._table(self._instance, options.max_height)

    def _table(self, instance: Instance, height: int) -> "Table":
        from rich.table import Table
        from rich.text import Text

        laid = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        rows = [row for step in instance.steps for row in self._rows(step)]
        under_way = next((at for at, row in enumerate(rows) if row[2] in {"running", "waiting"}), 0)
        first = max(min(under_way - 2, len(rows) - height + 2), 0)
        for mark, name, status, told in rows[first : first + max(height - 2, 3)]:
            style = _COLOURS.get(status, "")
            laid.add_row(
                Text(mark, style),
                Text(name),
                Text(status, style),
                Text(one_line(told, 80), "dim"),
            )
        return laid

    def _rows(self, step: StepState) -> list[tuple[str, str, str, str]]:
        rows = [self._row(step.name, step, (step.id, None))]
        tasks = step.sub_tasks if step.status in {"running", "failed"} else []
        # Of many, those that say something first.
        order = {"running": 0, "failed": 1, "pending": 2}
        chosen = sorted(range(len(tasks)), key=lambda at: order.get(tasks[at].status, 3))[:_MOST_SUB_TASKS]
        rows += [self._row(tasks[at].name, tasks[at], (step.id, at), indent="  ") for at in sorted(chosen)]
        return rows

    def _row(
        self, name: str, run: StepState | SubTask, key: tuple[str, int | None], indent: str = ""
    ) -> tuple[str, str, str, str]:
        began = self._began.get(key)
        told = f"{time.monotonic() - began:.0f} s" if began is not None else (run.details or "")
        return _MARKS[run.status], indent + one_line(name, 60), run.status, told


def make_watcher() -> Watcher:
    """Choose by whether standard error is a terminal."""
    return LiveWatcher() if sys.stderr is not None and sys.stderr.isatty() else LineWatcher()


def view(instance: Instance, state: Path | None = None) -> str:
    """Make the readable view of an instance: its steps, and what to do next with its ``state`` file."""
    status = click.style(instance.status, fg=_colour(instance.status), bold=True)
    simulated = " (simulated)" if instance.is_simulated else ""
    lines = [f"{instance.workflow_id}  {status}{simulated}"]
    for step in instance.steps:
        lines.append(_line("", step.name, step))
        lines += [_line("  ", task.name, task) for task in step.sub_tasks if step.status != "completed"]
        if step.details and step.status not in {"pending", "running"}:
            lines += wrapped("      ", step.details, indent=6)
    if after := _next(instance):
        named = f" --state {shlex.quote(str(state))}" if state else ""
        lines.append(
            f"Go on: kr workflow {after}{named}" + ", or reject it." * (instance.status == "waiting")
        )
    return "\n".join(lines)


def _line(indent: str, name: str, run: StepState | SubTask) -> str:
    took = duration(run.started_at, run.completed_at) if run.completed_at else ""
    mark = click.style(_MARKS[run.status], fg=_colour(run.status))
    return f"{indent}  {mark} {one_line(name, 60)}  {run.status}  {took}".rstrip()


def _colour(status: str) -> str | None:
    colour = _COLOURS.get(status)
    return None if colour == "dim" else colour


def _next(instance: Instance) -> str | None:
    if instance.status == "waiting":
        return f"approve {instance.current_step}"
    is_rejected = any(step.type == "approval" and step.status == "failed" for step in instance.steps)
    if instance.status == "failed" and not is_rejected:
        return "run --retry"
    return "run" if instance.status in {"pending", "running"} else None
