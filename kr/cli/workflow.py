"""``kr workflow``: start a workflow from a template, run it, approve its steps, look at it (rule 9)."""

import getpass
import shlex
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from kr.cli.common import (
    MOST,
    Group,
    common_options,
    emit,
    examples,
    open_app,
    to_json,
    together,
    with_context,
    wrapped,
    write_out,
)
from kr.text import one_line
from kr.workflows.model import template_schema
from kr.workflows.report import duration
from kr.workflows.service import Workflows
from kr.workflows.state import Instance, StepState, SubTask, Target

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


@click.group(
    "workflow",
    cls=Group,
    epilog=examples(
        "kr workflow validate deployment",
        "kr workflow start sprint-warmup --set max_calls=5",
        "kr workflow approve approve_deployment --note 'change 4711'",
        "kr workflow run",
        "kr workflow report",
    ),
)
@common_options
def command() -> None:
    """Workflows: templates of steps that run, stop, wait for an approval and go on.

    A template is named (deployment, sprint-warmup and retrospective are shipped) or given as a file. An instance is
    one state file; killed at any moment, `kr workflow run` goes on with it and repeats nothing that completed.
    Exit status: 0 completed or waiting for an approval, 1 failed, 2 a wrong command line.
    """


@command.command("validate", epilog=examples("kr workflow validate release.md"))
@click.argument("template")
@with_context
def validate(ctx: click.Context, /, template: str) -> int:
    """Report every mistake in a template in one run. The exit status is 1 if there is one."""
    with open_app(ctx) as app:
        value = app.workflows().validate(template)
    emit(value, ctx, _problems)
    return 1 if value["problems"] else 0


@command.command(
    "start",
    epilog=examples(
        "kr workflow start sprint-warmup --state warmup.json",
        "kr workflow start release --set version=2 --simulate",
    ),
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
@with_context
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


@command.command("run", epilog=examples("kr workflow run", "kr workflow run --retry --state release.json"))
@click.option(
    "--retry",
    is_flag=True,
    help="Continue a failed instance; of a parallel step only the failed sub-tasks run again.",
)
@_STATE
@_SIMULATE
@with_context
def run(ctx: click.Context, /, state: Path | None, *, retry: bool, simulate: bool) -> int:
    """Continue an instance from its first unfinished step, whatever stopped or killed it."""
    return _act(ctx, lambda it: it.run(state=state, retry=retry, simulate=simulate))


_deciding = together(
    click.argument("step"),
    click.option("--by", metavar="NAME", help="Who decides. Default: the user's name."),
    click.option("--note", default="", help="A note that is kept with the decision."),
    _STATE,
)


@command.command("approve", epilog=examples('kr workflow approve approve_deployment --note "change 4711"'))
@_deciding
@with_context
def approve(ctx: click.Context, /, step: str, by: str | None, note: str, state: Path | None) -> int:
    """Approve the step that waits, and continue."""
    who = by or _user()
    return _act(ctx, lambda it: it.decide(step, is_approved=True, by=who, note=note, state=state))


@command.command("reject", epilog=examples('kr workflow reject approve_deployment --note "not on a Friday"'))
@_deciding
@with_context
def reject(ctx: click.Context, /, step: str, by: str | None, note: str, state: Path | None) -> None:
    """Reject the step that waits: the instance fails for good."""
    who = by or _user()
    _act(ctx, lambda it: it.decide(step, is_approved=False, by=who, note=note, state=state))


@command.command("status", epilog=examples("kr workflow status --state release.json"))
@_STATE
@with_context
def status(ctx: click.Context, /, state: Path | None) -> None:
    """Show an instance as it stands. The exit status is 0 whatever its status is."""
    with open_app(ctx) as app:
        _emit(ctx, app.workflows().instance(state))


@command.command("report", epilog=examples("kr workflow report --output release.md"))
@click.option(
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Where it is written. Default: <template_id>_report.md beside the state file.",
)
@_STATE
@with_context
def report(ctx: click.Context, /, state: Path | None, output: Path | None) -> None:
    """Write the Markdown report: timeline, durations, approvals, sub-tasks and results."""
    with open_app(ctx) as app:
        path = app.workflows().report(state=state, output=output)
    emit({"report": str(path)}, ctx, lambda value: str(value["report"]))


@command.command("list", epilog=examples("kr workflow list --limit 5"))
@click.option(
    "--limit", type=click.IntRange(1, MOST), default=50, show_default=True, help="Instances at most."
)
@with_context
def list_(ctx: click.Context, /, limit: int) -> None:
    """List the instances that the knowledge base knows, the newest first."""
    with open_app(ctx) as app:
        rows = app.workflows().rows(limit)
    emit(rows, ctx, _table)


@command.command("schema", epilog=examples("kr workflow schema > template.schema.json"))
@common_options
def schema() -> None:
    """Print the JSON Schema of a template, for completion in editors."""
    write_out(to_json(template_schema()))


def _act(ctx: click.Context, act: Act) -> int:
    """Run something that changes an instance, watched on standard error."""
    with open_app(ctx) as app:
        workflows = app.workflows()
        workflows.on_change = LineWatcher().changed
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


_COLOURS = {"completed": "green", "failed": "red", "running": "cyan", "waiting": "yellow", "skipped": "dim"}
_MARKS = {"completed": "✓", "failed": "✗", "running": "•", "waiting": "?", "skipped": "–", "pending": " "}


def _inner_first(instance: Instance) -> list[tuple[Target, StepState | SubTask]]:
    found: list[tuple[Target, StepState | SubTask]] = []
    for step in instance.steps:
        tasks = [(Target(step.id, at), task) for at, task in enumerate(step.sub_tasks)]
        is_open = step.status in {"pending", "running"}
        found += [(Target(step.id), step), *tasks] if is_open else [*tasks, (Target(step.id), step)]
    return found


class LineWatcher:
    def __init__(self) -> None:
        self._told: dict[Target, str] = {}
        self._status = ""
        self._is_new = True

    def changed(self, instance: Instance) -> None:
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
