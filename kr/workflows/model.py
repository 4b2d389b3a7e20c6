"""The template's model: metadata, parameters with their values, and steps (rule 9).

Pydantic checks it, and prints it as a JSON Schema.

What one value can't tell (does a ``next`` lead somewhere?) is for ``kr.workflows.check``.
"""

import json
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints

from kr.text import KeyPath, Tree
from kr.workflows.expressions import as_json, as_text
from kr.yaml_io import Place

StepType = Literal["action", "condition", "approval", "parallel"]
ParameterType = Literal["string", "integer", "number", "boolean", "list", "object"]
Operation = Literal[
    "research", "save", "lessons.inject", "lessons.record", "export-yaml", "warm", "lessons.list"
]

END = "end"
"""The ``next`` that ends the workflow."""
DEFAULT_ELEMENT = "item"

_KINDS: dict[ParameterType, tuple[tuple[type, ...], str]] = {
    "string": ((str,), "text"),
    "integer": ((int,), "an integer such as 3"),
    "number": ((int, float), "a number such as 0.5"),
    "boolean": ((bool,), "true or false"),
    "list": ((list,), 'a list such as ["a", "b"], or texts separated by commas'),
    "object": ((dict,), 'an object such as {"key": "value"}'),
}

_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
_StepId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=100)]
TemplateId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
_Line = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500, pattern=r"^[^\r\n]*$")
]
_Text = Annotated[str, StringConstraints(min_length=1)]
_Cel = Annotated[str, StringConstraints(min_length=1), Field(description="A CEL expression.")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Parameter(_Part):
    """A parameter. ``default`` and the members of ``enum`` are of the parameter's type."""

    type: ParameterType = "string"
    required: bool = False
    default: Any = None
    enum: list[Any] | None = None
    description: str = ""


class _Step(_Part):
    id: _StepId
    name: _Line
    next: _StepId | None = Field(
        None, description="The step that follows; `end` ends. Default: the next in the list."
    )


class _Work(_Part):
    """What an action does, and a parallel step for each element."""

    run: _Text | list[str] | None = Field(
        None, description="A shell command, or a list of arguments (no shell)."
    )
    uses: Operation | None = Field(None, description="One of kr's own operations.")
    with_: dict[str, Any] | None = Field(None, alias="with", description="The operation's request.")
    outputs: dict[_Name, _Cel] | None = Field(
        None, description="Variable: CEL over stdout, exit_code, result and outputs."
    )
    timeout_seconds: Annotated[float, Field(gt=0, le=604_800)] | None = None
    retries: Annotated[int, Field(ge=0, le=100)] = 0
    env: dict[str, str] | None = None
    cwd: _Text | None = None
    on_interrupt: Literal["retry", "fail"] = "retry"


class ActionStep(_Step, _Work):
    """Runs a command, or one of kr's own operations."""

    type: Literal["action"]
    if_: _Cel | None = Field(None, alias="if", description="CEL; false: the step is skipped.")


class Case(_Part):
    """One way out of a condition; without ``when`` it always holds."""

    when: _Cel | None = None
    set: dict[_Name, _Cel] | None = None
    next: _StepId | None = None


class ConditionStep(_Step):
    """Takes the first case that holds: sets variables, chooses the next step."""

    type: Literal["condition"]
    cases: Annotated[list[Case], Field(min_length=1)]


class ApprovalStep(_Step):
    """Waits until a person approves or rejects."""

    type: Literal["approval"]
    message: str | None = None


class ParallelStep(_Step, _Work):
    """Does the same for every element of a list, several at once."""

    type: Literal["parallel"]
    foreach: _Cel
    as_: _Name = Field(DEFAULT_ELEMENT, alias="as")
    max_parallel: Annotated[int, Field(ge=1, le=64)] = 4


Step = Annotated[ActionStep | ConditionStep | ApprovalStep | ParallelStep, Discriminator("type")]
WorkStep = ActionStep | ParallelStep
STEP_MODELS: dict[str, type[ActionStep | ConditionStep | ApprovalStep | ParallelStep]] = {
    "action": ActionStep,
    "condition": ConditionStep,
    "approval": ApprovalStep,
    "parallel": ParallelStep,
}


class Template(_Part):
    """A whole template: what its two front matter blocks and its block of steps hold together."""

    template_id: TemplateId
    version: _Line
    type: _Line
    description: Annotated[str, StringConstraints(max_length=2_000)] = ""
    parameters: dict[_Name, Parameter] = {}
    steps: Annotated[list[Step], Field(min_length=1)]


def template_schema() -> dict[str, Any]:
    """Give the JSON Schema of a template, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Template.model_json_schema(by_alias=True),
        "title": "kr workflow template",
    }


# --- values of parameters


class BadValue(ValueError):
    """A value is none of its type; ``str()`` says what is allowed."""


def read_value(text: str, kind: ParameterType) -> Any:
    """Read what was written for a parameter: as JSON, a list of texts with commas as well.

    Raises ``BadValue``.
    """
    if kind == "string":
        return text
    written = text.strip()
    if kind == "list" and not written.startswith("["):
        return [item.strip() for item in text.split(",") if item.strip()]
    value = _json(written.lower() if kind == "boolean" else written)
    types, allowed = _KINDS[kind]
    if type(value) not in types:
        raise BadValue(f"must be {allowed}, not {json.dumps(text[:80], ensure_ascii=False)}")
    return value


def read_default(value: Tree, kind: ParameterType, places: Mapping[KeyPath, Place], path: KeyPath) -> Any:
    """Read a value of the template, whose scalars are texts; within lists and objects, numbers and booleans too.

    Raises ``BadValue``.
    """
    if isinstance(value, str):
        return read_value(value, kind)
    if type(value) not in _KINDS[kind][0]:
        raise BadValue(f"must be {_KINDS[kind][1]}")
    return _resolved(value, places, path)


def _resolved(value: Tree, places: Mapping[KeyPath, Place], path: KeyPath) -> Any:
    if isinstance(value, dict):
        return {key: _resolved(item, places, (*path, key)) for key, item in value.items()}
    if isinstance(value, list):
        return [_resolved(item, places, (*path, at)) for at, item in enumerate(value)]
    if value is None or not places[path].is_plain:
        return value
    scalar = _json(value)
    return scalar if isinstance(scalar, int | float) else value


def given_values(
    parameters: Mapping[str, Parameter], given: Mapping[str, str], *, is_simulated: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Read the values of ``--set``, and fill in defaults: the values, and a sentence for each mistake.

    What is required must not be empty either. A simulation runs nothing: a text that it lacks is the parameter's name in
    angle brackets.
    """
    allowed = ", ".join(parameters) or "none"
    unknown = [name for name in given if name not in parameters]
    problems = [f"{name}: the template has no such parameter; it has: {allowed}" for name in unknown]
    values: dict[str, Any] = {}
    for name, parameter in parameters.items():
        try:
            values[name] = _given_value(name, parameter, given.get(name), is_simulated=is_simulated)
        except BadValue as error:
            problems.append(f"{name}: {error}")
    return values, problems


def _given_value(name: str, parameter: Parameter, text: str | None, *, is_simulated: bool) -> Any:
    value = parameter.default if text is None else read_value(text, parameter.type)
    is_empty = value in (None, [], {}) or (isinstance(value, str) and not value.strip())
    if parameter.required and is_empty:
        if is_simulated and parameter.type == "string" and parameter.enum is None:
            return f"<{name}>"
        about = f" ({parameter.description})" if parameter.description else ""
        raise BadValue(f"is required{about}; say --set {name}=…")
    if text is not None and parameter.enum is not None and value not in parameter.enum:
        allowed = ", ".join(map(as_text, parameter.enum))
        raise BadValue(f"{as_text(value)} is not allowed; allowed: {allowed}")
    return value


def _json(text: str) -> Any:
    """Read JSON as the state file can hold it; None for anything else."""
    try:
        return as_json(json.loads(text))
    except (ValueError, TypeError, RecursionError):
        return None
