"""An instance of a workflow: what ``workflow_state.json`` holds, and what happens to it (rule 9).

The older system's fields come first, under their names. Beyond them the file holds what an instance needs to go on by
itself, whatever becomes of its template: the values it was started with and each step's definition.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from kr.workflows.model import Step, StepType, Template, TemplateId

InstanceStatus = Literal["pending", "running", "waiting", "completed", "failed"]
StepStatus = Literal["pending", "running", "waiting", "completed", "failed", "skipped"]
ENDED = frozenset({"completed", "failed"})


class Target(NamedTuple):
    """What a command belongs to: a step, or the sub-task of a parallel step at ``task`` (from 0)."""

    step_id: str
    task: int | None = None


class _State(BaseModel):
    model_config = ConfigDict(extra="allow")  # what others noted in the file stays in it


class _Run(_State):
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
    is_simulated: bool = False


class SubTask(_Run):
    """What a parallel step does for one element."""

    item: Any = None
    outputs: dict[str, Any] = {}


class StepState(_Run):
    """A step of an instance."""

    type: StepType
    sub_tasks: list[SubTask] = []
    definition: Step


class Instance(_State):
    """A workflow instance. ``path`` are the ids of the steps that were begun, in order."""

    workflow_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=200)
    template_ref: str
    template_id: TemplateId
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

    def run_of(self, target: Target) -> StepState | SubTask | None:
        """Find what a command belongs to."""
        step = self.step(target.step_id)
        if step is None or target.task is None:
            return step
        tasks = step.sub_tasks
        return tasks[target.task] if 0 <= target.task < len(tasks) else None

    def copied(self) -> Self:
        """Copy what changes; values are never changed in place, and are shared."""
        steps = [
            step.model_copy(update={"sub_tasks": [task.model_copy() for task in step.sub_tasks]})
            for step in self.steps
        ]
        return self.model_copy(
            update={"steps": steps, "variables": dict(self.variables), "path": list(self.path)}
        )

    def plain(self, *, definitions: bool = True) -> dict[str, Any]:
        """Give it as nested plain data, in the order of the file. ``sub_tasks`` stand in parallel steps alone."""
        data = self.model_dump(mode="json", by_alias=True)
        for step in data["steps"]:
            definition = step.pop("definition")
            if step["type"] != "parallel":
                del step["sub_tasks"]
            if definitions:
                step["definition"] = {key: value for key, value in definition.items() if value is not None}
        return data

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        """Refuse what no single value tells; a person may have edited the file."""
        ids = [step.id for step in self.steps]
        if self.current_step is None and self.status not in ENDED:
            raise ValueError(f"current_step must name a step while the status is {self.status}")
        if self.current_step is not None and self.current_step not in ids:
            raise ValueError(f"there is no step {self.current_step}; steps: {', '.join(ids)}")
        return self


def new_instance(
    template: Template,
    *,
    workflow_id: str,
    template_ref: str,
    params: Mapping[str, Any],
    now: str,
    is_simulated: bool = False,
) -> Instance:
    """Make the instance of a template with these parameters; a parameter is a variable from the start."""
    return Instance(
        workflow_id=workflow_id,
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
        created_at=now,
    )


# --- events, and what they ask for


@dataclass(frozen=True, slots=True)
class Begin:
    """A run begins: of a new instance, of one that was interrupted, or with ``retry`` of one that failed."""

    retry: bool = False
    simulate: bool = False


@dataclass(frozen=True, slots=True)
class Finished:
    """A command or an operation ended. ``result["outputs"]`` is what it handed over in ``$KR_OUTPUT``."""

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
