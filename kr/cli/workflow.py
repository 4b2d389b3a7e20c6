"""``kr workflow``: start a workflow from a template, run it, approve its steps, look at it (rule 9)."""

import getpass
import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from kr.cli.common import MOST, emit, kr_command, kr_group, open_app, to_json, together, wrapped, write_out
from kr.text import one_line
from kr.workflows.model import template_schema
from kr.workflows.report import duration
from kr.workflows.service import Workflows
from kr.workflows.state import Instance, StepState, SubTask

Act = Callable[[Workflows], Instance]

_STATE = click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The state file. Default: workflow_state.json in the working directory.",
)
_SIMULATE = click.option(
    "--simulate",
    is_flag=True,
    help="Run no command: follow the path that the values lead to, and approve every approval.",
)


@kr_group(
    "workflow",
    "kr workflow validate deployment",
    "kr workflow start sprint-warmup --set max_calls=5",
    "kr workflow approve approve_deployment --note 'change 4711'",
    "kr workflow run",
    "kr workflow report",
)
def command() -> None:
    """Workflows: templates of steps that run, stop, wait for an approval and go on.

    A template is named (deployment, sprint-warmup and retrospective are shipped) or given as a file. An instance is
    one state file; killed at any moment, `kr workflow run` goes on with it and repeats nothing that completed.
    Exit status: 0 completed or waiting for an approval, 1 failed, 2 a wrong command line.
    """


@kr_command("validate", "kr workflow validate release.md", group=command)
@click.argument("template")
def validate(ctx: click.Context, /, template: str) -> int:
    """Report every mistake in a template in one run. The exit status is 1 if there is one."""
    with open_app(ctx) as app:
        value = app.workflows().validate(template)
    emit(value, ctx, _problems)
    return 1 if value["problems"] else 0


@kr_command(
    "start",
    "kr workflow start sprint-warmup --state warmup.json",
    "kr workflow start release --set version=2 --simulate",
    group=command,
)
@click.argument("template")
@click.option(
    "--set",
    "assignments",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter's value, read by its type: lists and objects as JSON, a list of texts with commas too. "
    "Repeatable.",
)
@_STATE
@click.option("--no-run", is_flag=True, help="Only write the state file.")
@_SIMULATE
def start(
    ctx: click.Context,
    /,
    template: str,
    assignments: tuple[str, ...],
    state: Path | None,
    *,
    no_run: bool,
    simulate: bool,
) -> int:
    """Make an instance of a template, write its state file, and run it.

    An instance that has not ended is never overwritten; an ended one is kept beside it under its workflow_id.
    """
    given = _given(assignments)
    return _act(ctx, lambda it: it.start(template, given, state=state, simulate=simulate, run=not no_run))


@kr_command("run", "kr workflow run", "kr workflow run --retry --state release.json", group=command)
@click.option(
    "--retry",
    is_flag=True,
    help="Continue a failed instance; of a parallel step only the failed sub-tasks run again.",
)
@_STATE
@_SIMULATE
def run(ctx: click.Context, /, state: Path | None, *, retry: bool, simulate: bool) -> int:
    """Continue an instance from its first unfinished step, whatever stopped or killed it."""
    return _act(ctx, lambda it: it.run(state=state, retry=retry, simulate=simulate))


_deciding = together(
    click.argument("step"),
    click.option("--by", metavar="NAME", help="Who decides. Default: the user's name."),
    click.option("--note", default="", help="A note that is kept with the decision."),
    _STATE,
)


@kr_command("approve", 'kr workflow approve approve_deployment --note "change 4711"', group=command)
@_deciding
def approve(ctx: click.Context, /, step: str, by: str | None, note: str, state: Path | None) -> int:
    """Approve the step that waits, and continue."""
    who = by or _user()
    return _act(ctx, lambda it: it.decide(step, is_approved=True, by=who, note=note, state=state))


@kr_command("reject", 'kr workflow reject approve_deployment --note "not on a Friday"', group=command)
@_deciding
def reject(ctx: click.Context, /, step: str, by: str | None, note: str, state: Path | None) -> None:
    """Reject the step that waits: the instance fails for good."""
    who = by or _user()
    _act(ctx, lambda it: it.decide(step, is_approved=False, by=who, note=note, state=state))


@kr_command("status", "kr workflow status --state release.json", group=command)
@_STATE
def status(ctx: click.Context, /, state: Path | None) -> None:
    """Show an instance as it stands. The exit status is 0 whatever its status is."""
    with open_app(ctx) as app:
        _emit(ctx, app.workflows().instance(state))


@kr_command("report", "kr workflow report --output release.md", group=command)
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where it is written. Default: <template_id>_report.md beside the state file.",
)
@_STATE
def report(ctx: click.Context, /, state: Path | None, output: Path | None) -> None:
    """Write the Markdown report: timeline, durations, approvals, sub-tasks and results."""
    with open_app(ctx) as app:
        path = app.workflows().report(state=state, output=output)
    emit({"report": str(path)}, ctx, lambda value: str(value["report"]))


@kr_command("list", "kr workflow list --limit 5", group=command)
@click.option(
    "--limit", type=click.IntRange(1, MOST), default=50, show_default=True, help="Instances at most."
)
def list_(ctx: click.Context, /, limit: int) -> None:
    """List the instances that the knowledge base knows, the newest first."""
    with open_app(ctx) as app:
        rows = app.workflows().rows(limit)
    emit(rows, ctx, _table)


@kr_command("schema", "kr workflow schema > template.schema.json", group=command)
def schema(_: click.Context) -> None:
    """Print the JSON Schema of a template, for completion in editors."""
    write_out(to_json(template_schema()))


def _act(ctx: click.Context, act: Act) -> int:
    """Run something that changes an instance, watched on standard error."""
    with open_app(ctx) as app:
        workflows = app.workflows()
        workflows.on_change = StepWatcher().changed
        instance = act(workflows)
    _emit(ctx, instance)
    return 1 if instance.status == "failed" else 0


def _emit(ctx: click.Context, instance: Instance) -> None:
    emit(instance.plain(definitions=False), ctx, lambda _: view(instance, ctx.params.get("state")))


def _given(assignments: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        if not sign or not name:
            raise click.BadParameter(f"{assignment}: must be NAME=VALUE.", param_hint="--set")
        if name in given:
            raise click.BadParameter(f"{name} is given twice.", param_hint="--set")
        given[name] = value
    return given


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no name for this user id, as in some containers
        return "unknown"


def _problems(value: dict[str, Any]) -> str:
    if not value["problems"]:
        return f"{value['template']}: no mistakes"
    lines = [
        f"{value['template']}:{it['line']}: {it['field'] + ': ' if it['field'] else ''}{it['message']}"
        for it in value["problems"]
    ]
    return "\n".join(lines)


def _table(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return "No workflows."
    lines = []
    for row in rows:
        at = f", at {row['current_step']}" if row["current_step"] else ""
        facts = f"{row['status']}{at}; {row['updated_at']:.16}; {row['state_file']}"
        lines.append([row["workflow_id"], *wrapped("    ", facts, indent=4)])
    return "\n".join(line for told in lines for line in told)


_COLOURS = {"completed": "green", "failed": "red", "running": "cyan", "waiting": "yellow"}
_MARKS = {"completed": "✓", "failed": "✗", "running": "•", "waiting": "?", "skipped": "–", "pending": " "}


class StepWatcher:
    """Tells on standard error how steps and sub-tasks change; what had ended before is not told."""

    def __init__(self) -> None:
        self._told: dict[str, str] = {}

    def changed(self, instance: Instance) -> None:
        states = dict(_states(instance))
        is_first = not self._told
        for name, state in states.items():
            is_old = is_first and state.startswith(("completed", "skipped"))
            if state != self._told.get(name, "pending") and not is_old:
                click.echo(f"{time.strftime('%H:%M:%S')} {one_line(f'{name}: {state}', 200)}", err=True)
        self._told = states


def _states(instance: Instance) -> Iterator[tuple[str, str]]:
    """Yield each sub-task, step, and the instance once it rests, with what is to be told of it."""
    for step in instance.steps:
        yield from ((f"{step.id}: {task.name}", _state(task)) for task in step.sub_tasks)
        yield step.id, _state(step)
    if instance.status in {"completed", "failed", "waiting"}:
        yield instance.workflow_id, instance.status


def _state(run: StepState | SubTask) -> str:
    if run.status in {"running", "pending"}:
        return f"running, attempt {run.attempts}" if run.attempts > 1 else run.status
    return f"{run.status}: {run.details}" if run.details else run.status


def view(instance: Instance, state: Path | None = None) -> str:
    status = click.style(instance.status, fg=_COLOURS.get(instance.status), bold=True)
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
    mark = click.style(_MARKS[run.status], fg=_COLOURS.get(run.status))
    return f"{indent}  {mark} {one_line(name, 60)}  {run.status}  {took}".rstrip()


def _next(instance: Instance) -> str | None:
    if instance.status == "waiting":
        return f"approve {instance.current_step}"
    is_rejected = any(step.type == "approval" and step.status == "failed" for step in instance.steps)
    if instance.status == "failed" and not is_rejected:
        return "run --retry"
    return "run" if instance.status in {"pending", "running"} else None
