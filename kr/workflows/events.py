"""What happens to an instance, and what it asks for: the words between the state machine and the runner."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from kr.workflows.state import Instance, Target


@dataclass(frozen=True, slots=True)
class Begin:
    """A run begins: of a new instance, of one that was interrupted, or with ``retry`` of one that failed."""

    retry: bool = False
    simulate: bool = False
    recovered: tuple["Finished", ...] = ()
    """What came of commands that went on to their end after their runner was killed."""


@dataclass(frozen=True, slots=True)
class Spawned:
    """The command of ``target`` has a process, which waits for the word to start."""

    target: Target
    process: str
    record: str | None = None


@dataclass(frozen=True, slots=True)
class Finished:
    """A command or an operation ended. ``outputs`` is what it handed over in ``$KR_OUTPUT``."""

    target: Target
    is_success: bool
    details: str = ""
    result: Mapping[str, Any] = field(default_factory=dict)
    outputs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decided:
    """A person approved the step that waits, or rejected it."""

    step_id: str
    is_approved: bool
    by: str
    note: str = ""


Event = Begin | Spawned | Finished | Decided


@dataclass(frozen=True, slots=True)
class Job:
    """What the runner is to do for ``target``: a command (text: for the shell) or an operation with its request."""

    target: Target
    command: str | tuple[str, ...] | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    cwd: str | None = None
    timeout_seconds: float | None = None
    operation: str | None = None
    request: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Transition:
    """The instance after an event, and what is to be done now."""

    instance: Instance
    jobs: tuple[Job, ...]
