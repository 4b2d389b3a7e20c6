"""``kr workflow``: start a workflow from a template, run it, approve its steps, look at it (rule 9)."""

import shlex
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kr.cli import common
from kr.cli.readable import readable
from kr.models import person
from kr.text import one_line
from kr.workflows.model import Begin, Decided, Instance, template_schema
from kr.workflows.report import masked
from kr.workflows.runner import OnChange
from kr.workflows.service import Workflows
from kr.workflows.template import Problem

if TYPE_CHECKING:
    from kr.app import App

_LISTED = "workflow_id status current_step updated_at state_file"
_SHOWN = ("name", "status", "details", "started_at", "completed_at")

_FILE = click.Path(dir_okay=False, path_type=Path)
_STATE = click.option("--state", type=_FILE, metavar="FILE", help="Default: workflow_state.json, here.")


@common.kr_group("workflow", "kr workflow start sprint-warmup --set max_calls=5", "kr workflow report")
def command() -> None:
    """Workflows: templates of steps that run, stop, wait for an approval and go on.

    A template is named (deployment, sprint-warmup and retrospective are shipped) or given as a file. An instance is
    one state file; killed at any moment, `kr workflow run` goes on with it and repeats nothing that completed.
    Secrets in it are masked in what is printed and in the report, not in the file.
    Exit status: 0 completed or waiting for an approval, 1 failed, 2 a wrong command line.
    """


@common.operation("validate", "kr workflow validate release.md", group=command)
@click.argument("template")
def validate(app: "App", template: str) -> common.Output:
    """Report every mistake in a template in one run. The exit status is 1 if there is one."""
    value = Workflows(app).validate(template)
    return common.Output(value=value, view=_problems, status=int(bool(value["problems"])))


def _assigned(_: click.Context, __: click.Parameter, assignments: tuple[str, ...]) -> dict[str, str]:
    given = {}
    for assignment in assignments:
        name, sign, value = assignment.partition("=")
        if not (name and sign):
            raise click.BadParameter(f"{assignment}: must be NAME=VALUE.")
        given[name] = value
    return given


_SET_HELP = "A parameter's value, read by its type: lists and objects as JSON. Repeatable."


@common.operation("start", "kr workflow start release --set version=2 --simulate", group=command)
@click.argument("template")
@click.option("--set", "given", multiple=True, metavar="NAME=VALUE", callback=_assigned, help=_SET_HELP)
@_STATE
@click.option("--no-run", "run", flag_value=False, default=True, help="Only write the state file.")
@click.option("--simulate", is_flag=True, help="Run no command, and approve every approval.")
def start(app: "App", template: str, given: dict[str, str], **how: Any) -> common.Output:
    """Make an instance of a template, write its state file, and run it.

    An instance that has not ended is never overwritten; an ended one is kept beside it under its workflow_id.
    """
    return _shown(Workflows(app, _watcher()).start(template, given, **how), how["state"])


@common.operation("run", "kr workflow run", "kr workflow run --retry --state release.json", group=command)
@click.option("--retry", is_flag=True, help="Continue a failed one: what failed runs again.")
@_STATE
def run(app: "App", *, retry: bool, state: Path | None) -> common.Output:
    """Continue an instance from its first unfinished step, whatever stopped or killed it."""
    return _shown(Workflows(app, _watcher()).take(state, Begin(retry=retry)), state)


_deciding = common.together(
    click.argument("step_id", metavar="STEP"),
    click.option("--by", metavar="NAME", help="Who decides. Default: the user's name."),
    click.option("--note", default="", help="A note that is kept with the decision."),
    _STATE,
)


@common.operation("approve", 'kr workflow approve approve_deployment --note "change 4711"', group=command)
@_deciding
def approve(app: "App", **decision: Any) -> common.Output:
    """Approve the step that waits, and continue. Without --by it is noted where it came from a pipe, not a terminal."""
    return _decided(app, is_approved=True, **decision)


@common.operation("reject", 'kr workflow reject approve_deployment --note "not on a Friday"', group=command)
@_deciding
def reject(app: "App", **decision: Any) -> common.Output:
    """Reject the step that waits: the instance fails for good."""
    return replace(_decided(app, is_approved=False, **decision), status=0)


@common.operation("status", "kr workflow status --state release.json", group=command)
@_STATE
def status(app: "App", state: Path | None) -> common.Output:
    """Show an instance as it stands. The exit status is 0 whatever its status is."""
    return replace(_shown(Workflows(app).instance(state), state), status=0)


@common.operation("report", "kr workflow report --state release.json", group=command)
@_STATE
def report(app: "App", state: Path | None) -> dict[str, str]:
    """Write the Markdown report: timeline, durations, approvals, sub-tasks and results.

    It stands beside the state as TEMPLATE_ID_report.md; for --state release.json as release_report.md.
    """
    return {"report": str(Workflows(app).report(state))}


@common.operation("list", "kr workflow list --limit 5", group=command)
@common.limit_option(50)
def list_(app: "App", limit: int) -> common.Output:
    """List the instances that the knowledge base knows, the newest first."""
    return common.Output(value=Workflows(app).rows(limit), columns=_LISTED)


@common.kr_command("schema", "kr workflow schema > template.schema.json", group=command)
def schema(_: click.Context) -> None:
    """Print the JSON Schema of a template, for completion in editors."""
    common.write_out(common.to_json(template_schema()))


def _decided(app: "App", *, by: str | None, state: Path | None, **decision: Any) -> common.Output:
    user = person().session.removeprefix("person:")
    who = by or (user if common.is_person() else f"{user} (not at a terminal)")
    return _shown(Workflows(app, _watcher()).take(state, Decided(by=who, **decision)), state)


def _shown(instance: Instance, state: Path | None) -> common.Output:
    named = f" --state {shlex.quote(str(state))}" if state else ""
    after = {
        "waiting": f"approve {instance.current_step}{named}, or reject it",
        "failed": f"run --retry{named}",
        "completed": f"report{named}",
    }
    hint = f"Go on: kr workflow {after.get(instance.status, f'run{named}')}"
    if any(step.type == "approval" and step.status == "failed" for step in instance.steps):
        hint = "It was rejected, and stays failed: kr workflow start makes a new one."
    value = masked(instance.model_dump(exclude={"steps": {"__all__": {"definition"}}}))
    return common.Output(value=value, view=_view, hint=hint, status=int(instance.status == "failed"))


def _problems(value: dict[str, Any]) -> list[str]:
    lines = [Problem(**problem).sentence(value["template"]) for problem in value["problems"]]
    return lines or [f"{value['template']}: no mistakes"]


def _watcher() -> OnChange:
    """Tell on standard error how steps and sub-tasks change from how they first stand."""
    told: dict[tuple[str, str], str] = {}

    def changed(instance: Instance) -> None:
        is_first = not told
        for step in instance.steps:
            tasks = [(f"{step.id}: {task.name}", task) for task in step.sub_tasks]
            for name, run in [*tasks, (step.id, step)]:
                line = f"{name}: {run.status}" + (f": {run.details}" if run.details else "")
                if not is_first and run.status != "pending" and line != told.get((step.id, run.id)):
                    click.echo(f"{time.strftime('%H:%M:%S')} {one_line(masked(line), 200)}", err=True)
                told[step.id, run.id] = line

    return changed


def _view(value: dict[str, Any]) -> list[str]:
    simulated = " (simulated)" if value["is_simulated"] else ""
    lines = [f"{value['workflow_id']}  {value['status']}{simulated}"]
    for step in value["steps"]:
        lines += readable([{name: step[name] for name in _SHOWN}], "  ")
        tasks = [{name: task[name] for name in _SHOWN} for task in step["sub_tasks"]]
        lines += readable(tasks, "    ") if step["status"] != "completed" else []
    return lines
