"""What a step hands to the runner, and what is made of what comes back: texts filled in, variables set (rule 9).

A value reaches a shell command through an environment variable that the command expands as one quoted word. The shell
never reads the value itself as code, so none can become a command. Inside quotes, a here-document or arithmetic the word
would not be one word, or would reach a second shell; there a ``${{ … }}`` is a mistake.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from kr.workflows.expressions import ExpressionError, as_text, evaluate, fill, fill_tree, part
from kr.workflows.model import WorkStep
from kr.workflows.state import Finished, Instance, Job, StepState, Target

_HERE_DOCUMENT = re.compile(r"(?<!<)<<(?!<)")
_ENDED_HERE_DOCUMENT = re.compile(
    r"""(?<!<)<<-?[ \t]*(['"]?)(\w+)\1[^\n]*\n(?:.*?\n)?[ \t]*\2(?=\n)""", re.DOTALL
)
# What the shell reads as one piece, so that a quote in it opens nothing; the group is a quote that stays open.
_SHELL_PIECES = re.compile(
    r"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|(?<![^\s;&|()<>])\#[^\n]*|(?P<open>['"])""", re.DOTALL
)


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
    values: dict[str, str] = {}
    if isinstance(work.run, str):
        command, values = fill_shell(work.run, scope)
    elif work.run is not None:
        command = tuple(fill(argument, scope) for argument in work.run)
    return Job(
        target,
        command=command,
        env={name: fill(value, scope) for name, value in (work.env or {}).items()} | values,
        cwd=None if work.cwd is None else fill(work.cwd, scope),
        timeout_seconds=work.timeout_seconds,
        operation=work.uses,
        request=fill_tree(work.with_ or {}, scope),
    )


def outputs_of(
    work: WorkStep, event: Finished, scope: Mapping[str, Any], *, is_simulated: bool
) -> dict[str, Any]:
    """Give the variables that an ended command sets. Raises ``ExpressionError``.

    In a simulation a value that only the command could have given is null.
    """
    given = {"stdout": "", "exit_code": 0, "outputs": {}, **event.result}
    seen = {
        **scope,
        **{name: given[name] for name in ("stdout", "exit_code", "outputs")},
        "result": event.result,
    }
    values: dict[str, Any] = dict(given["outputs"])
    for name, expression in (work.outputs or {}).items():
        try:
            values[name] = evaluate(expression, seen)
        except ExpressionError:
            if not is_simulated:
                raise
            values[name] = None
    return values


def simulated(target: Target, work: WorkStep) -> Finished:
    """Give what a simulation says of something that it doesn't do, as the template words it."""
    what = " ".join(work.run) if isinstance(work.run, list) else work.run or work.uses
    result: dict[str, Any] = {} if work.uses else {"exit_code": 0, "stdout": "", "stderr": ""}
    return Finished(target, is_success=True, details=f"Simulated, not run: {shown(what)}", result=result)


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


# --- values in shell commands


def fill_shell(text: str, values: Mapping[str, Any]) -> tuple[str, dict[str, str]]:
    """Give a shell command and the environment variables that hold the values of its expressions.

    Raises ``ExpressionError``.
    """
    for expression, where in misplaced(text):  # a state file that a person edited was never validated
        raise ExpressionError(f"`{expression}` stands {where}")
    command, variables = "", {}
    for at, piece in enumerate(part(text)):
        if at % 2 == 0:
            command += piece
            continue
        name = f"KR_VALUE_{at // 2 + 1}"
        variables[name] = as_text(evaluate(piece, values))
        command += _word(name)
    return command, variables


def _word(name: str) -> str:
    return f'"${name}"'


def misplaced(text: str) -> list[tuple[str, str]]:
    """List the expressions of a shell command that stand where no quoted word can: with where that is."""
    parts = part(text)
    found = []
    before = ""
    for at, piece in enumerate(parts):
        if at % 2 == 0:
            before += piece
        else:
            if where := _why_no_word(before):
                found.append((piece, where))
            before += "x"
    return found


def _why_no_word(before: str) -> str | None:
    """Say where a shell stands after a text, unless a quoted word may follow. In doubt it may not."""
    before = _ENDED_HERE_DOCUMENT.sub("", before)
    pieces = list(_SHELL_PIECES.finditer(before))
    if any(found["open"] for found in pieces):
        return "inside quotes; end them before it"
    if pieces and pieces[-1][0].startswith("#") and pieces[-1].end() == len(before):
        return "in a comment"
    if _HERE_DOCUMENT.search(before):
        return "behind the start of a here-document; hand it over in env"
    if before.rfind("$((") > before.rfind("))"):
        return "in arithmetic $((…)); hand it over in env"
    if before.endswith("$") or (len(before) - len(before.rstrip("\\"))) % 2:
        return f"behind a {before[-1]}"
    return None
