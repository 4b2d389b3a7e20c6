"""``kr workflow``: start a workflow from a template, run it, approve its steps, look at it (rule 9)."""

import shlex
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click

from kr.cli.common import (
    MOST,
    emit,
    item_lines,
    kr_command,
    kr_group,
    open_app,
    to_json,
    together,
    wrapped,
    write_out,
)
from kr.models import person
from kr.text import one_line
from kr.workflows.model import Instance, Run, template_schema
from kr.workflows.report import MARKS, duration
from kr.workflows.runner import OnChange
from kr.workflows.service import Workflows
from kr.workflows.template import Problem

_STATE = click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The state file. Default: workflow_state.json in the working directory.",
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
        value = Workflows(app).validate(template)
    emit(value, ctx, _problems)
    return 1 if value["problems"] else 0


@kr_command("start", "kr workflow start release --set version=2 --simulate", group=command)
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
@click.option("--no-run", "run", flag_value=False, default=True, help="Only write the state file.")
@click.option(
    "--simulate",
    is_flag=True,
    help="Run no command: follow the path that the values lead to, and approve every approval.",
)
def start(ctx: click.Context, /, template: str, assignments: tuple[str, ...], **how: Any) -> int:
    """Make an instance of a template, write its state file, and run it.

    An instance that has not ended is never overwritten; an ended one is kept beside it under its workflow_id.
    """
    given = _given(assignments)
    return _act(ctx, lambda it: it.start(template, given, **how))


@kr_command("run", "kr workflow run", "kr workflow run --retry --state release.json", group=command)
@click.option(
    "--retry",
    is_flag=True,
    help="Continue a failed instance; of a parallel step only the failed sub-tasks run again.",
)
@_STATE
def run(ctx: click.Context, /, **how: Any) -> int:
    """Continue an instance from its first unfinished step, whatever stopped or killed it."""
    return _act(ctx, lambda it: it.run(**how))


_deciding = together(
    click.argument("step_id", metavar="STEP"),
    click.option("--by", metavar="NAME", help="Who decides. Default: the user's name."),
    click.option("--note", default="", help="A note that is kept with the decision."),
    _STATE,
)


@kr_command("approve", 'kr workflow approve approve_deployment --note "change 4711"', group=command)
@_deciding
def approve(ctx: click.Context, /, **decision: Any) -> int:
    """Approve the step that waits, and continue."""
    return _decide(ctx, is_approved=True, **decision)


@kr_command("reject", 'kr workflow reject approve_deployment --note "not on a Friday"', group=command)
@_deciding
def reject(ctx: click.Context, /, **decision: Any) -> None:
    """Reject the step that waits: the instance fails for good."""
    _decide(ctx, is_approved=False, **decision)


@kr_command("status", "kr workflow status --state release.json", group=command)
@_STATE
def status(ctx: click.Context, /, state: Path | None) -> None:
    """Show an instance as it stands. The exit status is 0 whatever its status is."""
    with open_app(ctx) as app:
        _emit(ctx, Workflows(app).instance(state))


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
        path = Workflows(app).report(state=state, output=output)
    emit({"report": str(path)}, ctx, lambda value: str(value["report"]))


@kr_command("list", "kr workflow list --limit 5", group=command)
@click.option(
    "--limit", type=click.IntRange(1, MOST), default=50, show_default=True, help="Instances at most."
)
def list_(ctx: click.Context, /, limit: int) -> None:
    """List the instances that the knowledge base knows, the newest first."""
    with open_app(ctx) as app:
        emit(Workflows(app).rows(limit), ctx, _listing)


@kr_command("schema", "kr workflow schema > template.schema.json", group=command)
def schema(_: click.Context) -> None:
    """Print the JSON Schema of a template, for completion in editors."""
    write_out(to_json(template_schema()))


def _act(ctx: click.Context, act: Callable[[Workflows], Instance]) -> int:
    """Run something that changes an instance, watched on standard error."""
    with open_app(ctx) as app:
        instance = act(Workflows(app, _watcher()))
    _emit(ctx, instance)
    return 1 if instance.status == "failed" else 0


def _decide(ctx: click.Context, *, by: str | None, **decision: Any) -> int:
    who = by or person().session.removeprefix("person:")
    return _act(ctx, lambda it: it.decide(by=who, **decision))


def _emit(ctx: click.Context, instance: Instance) -> None:
    shown = instance.model_dump(exclude={"steps": {"__all__": {"definition"}}})
    emit(shown, ctx, lambda _: _view(instance, ctx.params.get("state")))


def _given(assignments: tuple[str, ...]) -> dict[str, str]:
    given: dict[str, str] = {}
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        if not sign or not name:
            raise click.BadParameter(f"{assignment}: must be NAME=VALUE.", param_hint="--set")
        given[name] = value
    return given


def _problems(value: dict[str, Any]) -> str:
    lines = [Problem(**problem).sentence(value["template"]) for problem in value["problems"]]
    return "\n".join(lines) or f"{value['template']}: no mistakes"


def _listing(rows: list[dict[str, Any]]) -> str:
    lines: list[str] = []
    for row in rows:
        at = f", at {row['current_step']}" if row["current_step"] else ""
        facts = f"{row['status']}{at}; {row['updated_at']:.16}; {row['state_file']}"
        lines += item_lines(row["workflow_id"], facts)
    return "\n".join(lines) or "No workflows."


def _watcher() -> OnChange:
    """Tell on standard error how steps and sub-tasks change; what had ended before is not told."""
    told: dict[str, str] = {}

    def changed(instance: Instance) -> None:
        is_first = not told
        for name, state in _states(instance):
            is_old = is_first and state.startswith(("completed", "skipped"))
            if state != told.get(name, "pending") and not is_old:
                click.echo(f"{time.strftime('%H:%M:%S')} {one_line(f'{name}: {state}', 200)}", err=True)
        told.update(_states(instance))

    return changed


def _states(instance: Instance) -> Iterator[tuple[str, str]]:
    """Yield each sub-task, step, and the instance once it rests, with what is to be told of it."""
    for step in instance.steps:
        yield from ((f"{step.id}: {task.name}", _state(task)) for task in step.sub_tasks)
        yield step.id, _state(step)
    if instance.status in {"completed", "failed", "waiting"}:
        yield instance.workflow_id, instance.status


def _state(run: Run) -> str:
    if run.status in {"running", "pending"}:
        return f"running, attempt {run.attempts}" if run.attempts > 1 else run.status
    return f"{run.status}: {run.details}" if run.details else run.status


def _view(instance: Instance, state: Path | None) -> str:
    simulated = " (simulated)" if instance.is_simulated else ""
    lines = [f"{instance.workflow_id}  {click.style(instance.status, bold=True)}{simulated}"]
    for step in instance.steps:
        lines.append(_line("", step))
        lines += [_line("  ", task) for task in step.sub_tasks if step.status != "completed"]
        if step.details and step.status not in {"pending", "running"}:
            lines += wrapped("      ", step.details, indent=6)
    if after := _next(instance):
        named = f" --state {shlex.quote(str(state))}" if state else ""
        other = ", or reject it." if instance.status == "waiting" else ""
        lines.append(f"Go on: kr workflow {after}{named}{other}")
    return "\n".join(lines)


def _line(indent: str, run: Run) -> str:
    took = duration(run.started_at, run.completed_at) if run.completed_at else ""
    return f"{indent}  {MARKS[run.status]} {one_line(run.name, 60)}  {run.status}  {took}".rstrip()


def _next(instance: Instance) -> str | None:
    """Give the command that goes on; None where there is none."""
    if instance.status == "waiting":
        return f"approve {instance.current_step}"
    if instance.status == "failed":
        is_rejected = any(step.type == "approval" and step.status == "failed" for step in instance.steps)
        return None if is_rejected else "run --retry"
    return None if instance.status == "completed" else "run"
