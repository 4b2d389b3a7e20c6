"""What a template holds, what an instance of it holds in ``workflow_state.json``, and what happens to it (rule 9).

Pydantic checks both. What one value can't tell (does a ``next`` lead somewhere?) is for ``kr.workflows.template``.
"""

import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Annotated, Any, Literal, NamedTuple, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    FiniteFloat,
    JsonValue,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    field_serializer,
    field_validator,
    model_validator,
)
from pydantic_core import from_json

from kr.times import to_text
from kr.workflows.expressions import as_text

StepType = Literal["action", "condition", "approval", "parallel"]
ParameterType = Literal["string", "integer", "number", "boolean", "list", "object"]
Operation = Literal[
    "research", "save", "lessons.inject", "lessons.record", "export-yaml", "warm", "lessons.list"
]

END = "end"
"""The ``next`` that ends the workflow."""
DEFAULT_ELEMENT = "item"

_Name = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$", max_length=100)]
_StepId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_-]*$", max_length=100)]
_FileName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)]
_Line = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=500)]
_Text = Annotated[str, StringConstraints(min_length=1)]
_Arguments = Annotated[list[str], Field(min_length=1)]
_Cel = Annotated[str, StringConstraints(min_length=1), Field(description="A CEL expression.")]


# --- a template


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)


class Parameter(_Part):
    """A parameter. ``default`` and the members of ``enum`` are of the parameter's type."""

    type: ParameterType = "string"
    required: bool = False
    enum: list[Any] | None = None
    default: Any = None
    description: str = ""

    @field_validator("enum", "default")
    @classmethod
    def _of_its_type(cls, value: Any, info: ValidationInfo) -> Any:
        kind = info.data.get("type")
        if value is None or kind is None:
            return value
        if info.field_name == "enum":
            return [read_value(item, kind) for item in value]
        read, allowed = read_value(value, kind), info.data.get("enum")
        if allowed is not None and read not in allowed:
            raise ValueError(f"must be one of {', '.join(map(as_text, allowed))} (enum)")
        return read


class _Step(_Part):
    id: _StepId
    name: _Line
    next: _StepId | None = Field(None, description="The step that follows; `end` ends the workflow.")


class _Work(_Part):
    """What an action does, and a parallel step for each element."""

    run: _Text | _Arguments | None = Field(None, description="A shell command, or a list of arguments.")
    uses: Operation | None = Field(None, description="One of kr's own operations.")
    with_: dict[str, Any] = Field({}, alias="with", description="The operation's request.")
    outputs: dict[_Name, _Cel] = Field({}, description="Variable: CEL over stdout, exit_code and result.")
    timeout_seconds: Annotated[float, Field(gt=0, le=604_800)] | None = None
    retries: Annotated[int, Field(ge=0, le=100)] = 0
    env: dict[str, str] = {}
    cwd: _Text | None = None
    on_interrupt: Literal["retry", "fail"] = "retry"


class ActionStep(_Step, _Work):
    """Runs a command, or one of kr's own operations."""

    type: Literal["action"]
    if_: _Cel | None = Field(None, alias="if", description="CEL; false: the step is skipped.")


class Case(_Part):
    """One way out of a condition; without ``when`` it always holds."""

    when: _Cel | None = None
    set: dict[_Name, _Cel] = {}
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


class Template(_Part):
    """A whole template: what its two front matter blocks and its block of steps hold together."""

    template_id: _FileName
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


IS_REQUIRED = "is required"
_SENTENCES = {
    IS_REQUIRED: "missing",
    "there is no such key here": "extra_forbidden",
    "must be a text": "string_type",
    "must be a name of letters, digits and _": "string_pattern_mismatch",
    "must not be empty": "string_too_short too_short",
    "must have {max_length} characters at most": "string_too_long",
    "must be a whole number": "int_type int_parsing int_from_float int_parsing_size",
    "must be a number": "float_type float_parsing finite_number",
    "must be more than {gt}": "greater_than",
    "must be {ge} or more": "greater_than_equal",
    "must be {le} or less": "less_than_equal",
    "must be true or false": "bool_type bool_parsing",
    "must be a list": "list_type",
    "must be a mapping": "dict_type model_type model_attributes_type",
    "must be one of {expected}": "literal_error",
    "needs a type: action, condition, approval or parallel": "union_tag_not_found",
    "type must be one of {expected_tags}, not '{tag}'": "union_tag_invalid",
    "the state is broken: {error}": "json_invalid",
    "{error}": "value_error",
}
"""What is told of Pydantic's kinds of errors."""


def problems_of(error: ValidationError) -> list[tuple[tuple[str | int, ...], str]]:
    """Say what is wrong: the path of each mistake, and a sentence without a subject that says what is allowed."""
    sentences = {kind: sentence for sentence, kinds in _SENTENCES.items() for kind in kinds.split()}
    problems = []
    for one in error.errors(include_url=False, include_input=False):
        sentence = sentences.get(one["type"])
        message = one["msg"] if sentence is None else sentence.format(**one.get("ctx", {}))
        problems.append((one["loc"], message))
    return problems


# --- values of parameters

_KINDS: dict[ParameterType, TypeAdapter[Any]] = {
    "string": TypeAdapter(str),
    "integer": TypeAdapter(int),
    "number": TypeAdapter(FiniteFloat),
    "boolean": TypeAdapter(bool),
    "list": TypeAdapter(list[JsonValue]),
    "object": TypeAdapter(dict[str, JsonValue]),
}


def read_value(value: Any, kind: ParameterType) -> Any:
    """Read a value by its parameter's type: lists and objects of a text as JSON, a list of texts with commas too.

    Raises ``ValueError`` that says what is allowed.
    """
    if kind == "list" and isinstance(value, str) and not value.lstrip().startswith("["):
        return [item.strip() for item in value.split(",") if item.strip()]
    try:
        if kind in {"list", "object"} and isinstance(value, str):
            value = from_json(value, allow_inf_nan=False)
        return _KINDS[kind].validate_python(value)
    except ValidationError as exc:
        raise ValueError(problems_of(exc)[0][1]) from exc


def given_values(
    parameters: Mapping[str, Parameter], given: Mapping[str, str], *, is_simulated: bool = False
) -> tuple[dict[str, Any], list[str]]:
    """Read the values of ``--set``, and fill in defaults: the values, and a sentence for each mistake.

    What is required must not be empty either. A simulation runs nothing: a text that it lacks is the parameter's name in
    angle brackets, unless only certain values are allowed.
    """
    allowed = ", ".join(parameters) or "none"
    unknown = [name for name in given if name not in parameters]
    problems = [f"{name}: the template has no such parameter; it has: {allowed}" for name in unknown]
    values: dict[str, Any] = {}
    for name, parameter in parameters.items():
        written = {"default": given[name]} if name in given else {}
        try:
            value = Parameter(**parameter.model_dump() | written).default
        except ValidationError as exc:
            problems.append(f"{name} ({parameter.type}): {problems_of(exc)[0][1]}")
            continue
        if parameter.required and (value in (None, [], {}) or not str(value).strip()):
            is_free = parameter.type == "string" and not parameter.enum
            value = f"<{name}>"
            if not (is_simulated and is_free):
                about = f" ({parameter.description})" if parameter.description else ""
                problems.append(f"{name}: is required{about}; say --set {name}=…")
        values[name] = value
    return values, problems


# --- an instance

InstanceStatus = Literal["pending", "running", "waiting", "completed", "failed"]
StepStatus = Literal["pending", "running", "waiting", "completed", "failed", "skipped"]
ENDED = frozenset({"completed", "failed"})


class Target(NamedTuple):
    """What a command belongs to: a step, or the sub-task of a parallel step at ``task`` (from 0)."""

    step_id: str
    task: int | None = None


class _State(BaseModel):
    model_config = ConfigDict(extra="allow")  # what others noted in the file stays in it


class Run(_State):
    """What a step and a sub-task have in common. Times are UTC texts, ``YYYY-MM-DDTHH:MM:SS.ffffffZ``."""

    id: str
    name: str
    type: str = "sub_task"
    status: StepStatus = "pending"
    started_at: str | None = None
    completed_at: str | None = None
    details: str | None = None
    result: dict[str, Any] | None = None
    attempts: int = 0
    interruptions: int = 0


class SubTask(Run):
    """What a parallel step does for one element."""

    item: Any = None
    outputs: dict[str, Any] = {}


class StepState(Run):
    """A step of an instance. With its definition it goes on whatever becomes of its template."""

    type: StepType
    sub_tasks: list[SubTask] = []
    definition: Step

    @field_serializer("definition")
    def _as_written(self, definition: BaseModel) -> dict[str, Any]:
        return definition.model_dump(by_alias=True, exclude_defaults=True)


class Instance(_State):
    """A workflow instance, the older system's fields first. ``path`` are the ids of the steps that were begun, in order."""

    workflow_id: _FileName
    template_ref: str
    template_id: _FileName
    type: str
    status: InstanceStatus
    current_step: str | None
    variables: dict[str, Any]
    steps: list[StepState] = Field(min_length=1)
    template_version: str = ""
    params: dict[str, Any] = {}
    is_simulated: bool = False
    created_at: str
    started_at: str | None = None
    completed_at: str | None = None
    path: list[str] = []
    steps_in_run: int = 0

    def step(self, step_id: str | None) -> StepState | None:
        """Find a step by its id."""
        return next((step for step in self.steps if step.id == step_id), None)

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        """Refuse what no single value tells; a person may have edited the file."""
        if self.current_step is None and self.status not in ENDED:
            raise ValueError(f"current_step must name a step while the status is {self.status}")
        if self.current_step is not None and self.step(self.current_step) is None:
            raise ValueError(f"current_step: there is no step {self.current_step}")
        return self


def new_instance(
    template: Template, params: Mapping[str, Any], now: datetime, *, template_ref: str, is_simulated: bool
) -> Instance:
    """Make the instance of a template with these parameters; a parameter is a variable from the start."""
    return Instance(
        workflow_id=f"{template.template_id}-{now:%Y%m%d-%H%M%S}-{uuid.uuid4().hex[:6]}",
        template_ref=template_ref,
        template_id=template.template_id,
        type=template.type,
        status="pending",
        current_step=template.steps[0].id,
        variables=dict(params),
        steps=[
            StepState(id=step.id, name=step.name, type=step.type, definition=step) for step in template.steps
        ],
        template_version=template.version,
        params=dict(params),
        is_simulated=is_simulated,
        created_at=to_text(now),
    )


# --- what happens to an instance, and what it asks for


@dataclass(frozen=True, slots=True)
class Begin:
    """A run begins: of a new instance, of one that was interrupted, or with ``retry`` of one that failed."""

    retry: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """A command or an operation ended."""

    target: Target
    is_success: bool
    details: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decided:
    """A person approved the step that waits, or rejected it."""

    step_id: str
    is_approved: bool
    by: str
    note: str = ""


Event = Begin | Finished | Decided


@dataclass(frozen=True, slots=True)
class Job:
    """What the runner is to do for ``target``: a command (text: for the shell) or an operation with its request."""

    target: Target
    command: str | tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    """With the values of ``${{ … }}``, which the command's text expands."""
    cwd: str | None = None
    timeout_seconds: float | None = None
    operation: str | None = None
    request: Mapping[str, Any] = field(default_factory=dict)
