"""The template's model: metadata, parameters and steps (SPEC 9). Pydantic checks it, and prints it as a JSON Schema.

What one value can't tell (does a ``next`` lead somewhere?) is for ``kr.workflows.check``.
"""

import re
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Discriminator, Field, StringConstraints

StepType = Literal["action", "condition", "approval", "parallel"]
STEP_TYPES: tuple[StepType, ...] = ("action", "condition", "approval", "parallel")
ParameterType = Literal["string", "integer", "number", "boolean", "list", "object"]
Operation = Literal[
    "research", "lessons.inject", "lessons.record", "export-yaml", "warm", "lessons.list", "stats"
]

END = "end"
"""The ``next`` that ends the workflow."""
STEP_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
MAX_SUB_TASKS = 1_000
DEFAULT_ELEMENT = "item"

_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
_StepId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=100)]
_Line = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500, pattern=r"^[^\r\n]*$")
]
_Text = Annotated[str, StringConstraints(min_length=1)]
_Cel = Annotated[str, StringConstraints(min_length=1), Field(description="A CEL expression.")]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Metadata(_Part):
    """The first front matter block."""

    template_id: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=100)]
    version: _Line
    type: _Line
    description: Annotated[str, StringConstraints(max_length=2_000)] = ""


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


class Template(Metadata):
    """A whole template: what its two front matter blocks and its block of steps hold together."""

    parameters: dict[_Name, Parameter] = {}
    steps: Annotated[list[Step], Field(min_length=1)]


def template_schema() -> dict[str, Any]:
    """Give the JSON Schema of a template, for editors."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **Template.model_json_schema(by_alias=True),
        "title": "kr workflow template",
    }
