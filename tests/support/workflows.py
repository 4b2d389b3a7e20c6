"""Templates and instances for tests."""

import textwrap
from collections.abc import Mapping, Sequence
from typing import Any

from kr.times import from_text
from kr.workflows.model import Instance, Template, new_instance
from kr.workflows.template import read_template

NOW = "2026-11-22T12:00:00.000000Z"


def template_text(steps: str, parameters: str = "", *, template_id: str = "sample") -> str:
    """Write a template; ``steps`` and ``parameters`` are YAML, indented as one likes."""
    named = textwrap.indent(textwrap.dedent(parameters).strip("\n"), "  ") if parameters else "  {}"
    listed = textwrap.indent(textwrap.dedent(steps).strip("\n"), "  ")
    head = f"---\ntemplate_id: {template_id}\nversion: 1.0\ntype: test\n---\n---\nparameters:\n{named}\n---\n"
    return f"{head}\n# A sample\n\n```yaml\nsteps:\n{listed}\n```\n"


def read(steps: str, parameters: str = "") -> Template:
    """Read a template that has no mistakes."""
    template, problems = read_template(template_text(steps, parameters).encode())
    assert template is not None, problems
    return template


def mistakes(steps: str, parameters: str = "") -> list[str]:
    """List what is wrong with a template, without its lines."""
    return [
        f"{problem.field}: {problem.message}"
        for problem in read_template(template_text(steps, parameters).encode())[1]
    ]


def make(steps: Sequence[Mapping[str, Any]], *, is_simulated: bool = False, **params: Any) -> Instance:
    """Make an instance of steps that are given as data."""
    template = Template.model_validate(
        {"template_id": "sample", "version": "1", "type": "test", "steps": [dict(step) for step in steps]}
    )
    made = new_instance(
        template, params, from_text(NOW), template_ref="/sample.md", is_simulated=is_simulated
    )
    return made.model_copy(update={"workflow_id": "sample-1"})


def action(step_id: str, run: str | list[str] = "true", **more: Any) -> dict[str, Any]:
    return {"id": step_id, "name": step_id, "type": "action", "run": run, **more}


def condition(step_id: str, *cases: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    return {"id": step_id, "name": step_id, "type": "condition", "cases": list(cases), **more}


def approval(step_id: str, **more: Any) -> dict[str, Any]:
    return {"id": step_id, "name": step_id, "type": "approval", **more}


def parallel(step_id: str, foreach: str, run: str = "true", **more: Any) -> dict[str, Any]:
    return {"id": step_id, "name": step_id, "type": "parallel", "foreach": foreach, "run": run, **more}


def statuses(instance: Instance) -> dict[str, str]:
    return {step.id: step.status for step in instance.steps}
