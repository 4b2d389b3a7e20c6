"""What a step hands to the runner, and what is made of what comes back: texts filled in, variables set (SPEC 9)."""

import json
from collections.abc import Mapping
from typing import Any

from kr.workflows.expressions import ExpressionError, evaluate, fill, fill_tree
from kr.workflows.model import WorkStep
from kr.workflows.shell import fill_shell
from kr.workflows.state import Finished, Instance, Job, StepState, SubTask, Target


def scope_of(instance: Instance) -> dict[str, Any]:
    """Give what every expression sees: ``params``, ``variables`` and ``steps``."""
    return {
        "params": instance.params,
        "variables": instance.variables,
        "steps": {step.id: _step_view(step) for step in instance.steps},
    }


def make_job(target: Target, work: WorkStep, scope: Mapping[str, Any]) -> Job:
    """Fill in the texts of what is to be done. Raises ``ExpressionError``."""
    command: str | tuple[str, ...] | None = None
    if isinstance(work.run, str):
        command = fill_shell(work.run, scope)
    elif work.run is not None:
        command = tuple(fill(argument, scope) for argument in work.run)
    return Job(
        target,
        command=command,
        env={name: fill(value, scope) for name, value in (work.env or {}).items()},
        cwd=None if work.cwd is None else fill(work.cwd, scope),
        timeout_seconds=work.timeout_seconds,
        operation=work.uses,
        request=fill_tree(work.with_ or {}, scope),
    )


def unfilled(target: Target, work: WorkStep) -> Job:
    """Give a job as the template words it, for a simulation that doesn't know its values."""
    return Job(
        target,
        command=tuple(work.run) if isinstance(work.run, list) else work.run,
        operation=work.uses,
    )


def outputs_of(
    work: WorkStep, event: Finished, scope: Mapping[str, Any], *, is_simulated: bool
) -> dict[str, Any]:
    """Give the variables that an ended command sets. Raises ``ExpressionError``.

    In a simulation a value that only the command could have given is null.
    """
    result = result_of(event)
    seen = {
        **scope,
        "stdout": result.get("stdout", ""),
        "exit_code": result.get("exit_code", 0),
        "result": result,
        "outputs": dict(event.outputs),
    }
    values: dict[str, Any] = dict(event.outputs)
    for name, expression in (work.outputs or {}).items():
        try:
            values[name] = evaluate(expression, seen)
        except ExpressionError:
            if not is_simulated:
                raise
            values[name] = None
    return values


def simulated(job: Job) -> Finished:
    """Give what a simulation says of a command that it doesn't run."""
    what = job.operation or (job.command if isinstance(job.command, str) else " ".join(job.command or ()))
    result: dict[str, Any] = {} if job.operation else {"exit_code": 0, "stdout": "", "stderr": ""}
    return Finished(job.target, is_success=True, details=f"Simulated, not run: {shown(what)}", result=result)


def result_of(event: Finished) -> dict[str, Any]:
    """Give the result as it is kept: with what was handed over in ``$KR_OUTPUT``."""
    return {**event.result, "outputs": dict(event.outputs)} if event.outputs else dict(event.result)


def told(run: StepState | SubTask, details: str) -> str:
    """Say before the details of what ran that it was interrupted (SPEC 9)."""
    if not run.interruptions:
        return details
    times = "once" if run.interruptions == 1 else f"{run.interruptions} times"
    return f"Interrupted {times} and run again. {details}".rstrip()


def shown(value: Any) -> str:
    """Show a value in a sentence: one line of at most 100 characters."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    line = " ".join(text.split())
    return line if len(line) <= 100 else line[:99] + "…"


def _step_view(step: StepState) -> dict[str, Any]:
    view: dict[str, Any] = {"status": step.status, "result": step.result}
    if step.type == "parallel":
        view["sub_tasks"] = [
            {"name": task.name, "item": task.item, "status": task.status, "result": task.result}
            for task in step.sub_tasks
        ]
    return view
