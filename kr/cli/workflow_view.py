"""Watching a workflow, one line for each change, and the view of an instance (SPEC 9)."""

import shlex
import time
from pathlib import Path

import click

from kr.cli.layout import wrapped
from kr.text.characters import one_line
from kr.workflows.report import duration
from kr.workflows.state import Instance, StepState, SubTask, Target

_COLOURS = {"completed": "green", "failed": "red", "running": "cyan", "waiting": "yellow", "skipped": "dim"}
_MARKS = {"completed": "✓", "failed": "✗", "running": "•", "waiting": "?", "skipped": "–", "pending": " "}


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
