"""The state machine: an instance and an event give the next instance and what is to be done (rule 9).

Pure: nothing here reads a file or a clock, or runs a command. The runner saves the instance before it does what
``Transition.jobs`` ask for, and comes back with an event for each.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from kr.errors import WorkflowError
from kr.workflows.expressions import ExpressionError, evaluate, fill, holds
from kr.workflows.model import (
    END,
    MAX_SUB_TASKS,
    ActionStep,
    ApprovalStep,
    ConditionStep,
    ParallelStep,
    WorkStep,
)
from kr.workflows.state import (
    Begin,
    Decided,
    Event,
    Finished,
    Instance,
    Job,
    Spawned,
    StepState,
    SubTask,
    Target,
    Transition,
)
from kr.workflows.work import make_job, outputs_of, result_of, scope_of, shown, simulated, told, unfilled

MAX_STEPS = 1_000
"""Steps that one run may begin: what ends a cycle whose condition never chooses the way out."""
SIMULATION = "simulation"
T = TypeVar("T")
_INTERRUPTED = "Interrupted: kr was stopped while it ran."


def handle(instance: Instance, *events: Event, now: str) -> Transition:
    """Take events at the time ``now``. Raises ``WorkflowError`` for one that the instance can't take."""
    machine = _Machine(instance.copied(), now)
    for event in events:
        machine.take(event)
    return Transition(machine.instance, tuple(machine.jobs))


class _Machine:
    def __init__(self, instance: Instance, now: str) -> None:
        self.instance = instance
        self.jobs: list[Job] = []
        self._recovered: dict[Target, Finished] = {}
        self._now = now

    # --- events

    def take(self, event: Event) -> None:
        match event:
            case Begin():
                self.begin(event)
            case Spawned():
                run = self.instance.run_of(event.target)
                if run is not None:
                    run.process, run.record = event.process, event.record
            case Finished():
                self.finished(event)
            case Decided():
                self.decided(event)

    def begin(self, event: Begin) -> None:
        instance = self.instance
        step = instance.step(instance.current_step)
        if event.simulate and instance.status != "completed":
            instance.is_simulated = True
        if instance.status == "failed":
            step = self._to_retry() if event.retry else None
        elif instance.status == "completed":
            step = None
        if step is None or (step.status == "waiting" == instance.status and not instance.is_simulated):
            return
        instance.steps_in_run = 0
        instance.status = "running"
        instance.started_at = instance.started_at or self._now
        self._recovered = {ended.target: ended for ended in event.recovered}
        self._go(self._resume(step))

    def _to_retry(self) -> StepState:
        instance = self.instance
        step = next((step for step in instance.steps if step.status == "failed"), None)
        if step is None:
            raise WorkflowError(f"{instance.workflow_id}: no step of it failed; start it again")
        if step.type == "approval":
            by = (step.result or {}).get("by") or "somebody"
            raise WorkflowError(f"{instance.workflow_id}: {step.id} was rejected by {by}; start it again")
        step.status = "running" if step.sub_tasks else "pending"
        step.completed_at = None
        for task in step.sub_tasks:
            if task.status == "failed":
                task.status, task.attempts, task.started_at, task.completed_at = "pending", 0, None, None
        instance.current_step = step.id
        instance.completed_at = None
        return step

    def finished(self, event: Finished) -> None:
        step = self.instance.step(event.target.step_id)
        run = self.instance.run_of(event.target)
        if step is None or run is None or run.status != "running":
            return  # it was given up meanwhile
        run.process = run.record = None
        if isinstance(run, SubTask):
            self._sub_task_ended(step, run, event)
            self._go(self._schedule(step))
        else:
            self._go(self._action_ended(step, event))

    def decided(self, event: Decided) -> None:
        instance = self.instance
        step = instance.step(instance.current_step)
        if instance.status != "waiting" or step is None or step.status != "waiting":
            raise WorkflowError(f"{instance.workflow_id} waits for no approval: it is {instance.status}")
        if step.id != event.step_id:
            raise WorkflowError(
                f"{event.step_id} is not what waits: {instance.workflow_id} waits at {step.id}"
            )
        instance.status, instance.steps_in_run = "running", 0
        self._go(self._decide(step, event))

    # --- steps, one after another

    def _go(self, step: StepState | None) -> None:
        """Begin step after step, until one has to be waited for, or the workflow ends."""
        while step is not None:
            step = self._begin_step(step)

    def _begin_step(self, step: StepState) -> StepState | None:
        """Begin a step; gives the one that is to begin next, if any."""
        self.instance.current_step = step.id
        self.instance.steps_in_run += 1
        self.instance.path.append(step.id)
        step.status, step.started_at, step.completed_at = "running", self._now, None
        step.details, step.result, step.sub_tasks, step.process, step.record = None, None, [], None, None
        step.attempts, step.interruptions, step.is_simulated = 0, 0, self.instance.is_simulated
        if self.instance.steps_in_run > MAX_STEPS:
            return self._fail(step, f"more than {MAX_STEPS:,} steps in one run: a cycle that doesn't end")
        return self._guarded(step, lambda: self._act(step))

    def _act(self, step: StepState) -> StepState | None:
        match step.definition:
            case ActionStep() as action:
                if action.if_ is not None and not self._holds(action.if_, scope_of(self.instance)):
                    step.status, step.completed_at = "skipped", self._now
                    step.details = f"Skipped: {action.if_} is false."
                    return self._advance(step)
                return self._start(step)
            case ConditionStep() as condition:
                return self._choose(step, condition)
            case ApprovalStep() as approval:
                return self._ask(step, approval)
            case ParallelStep() as parallel:
                step.sub_tasks = self._sub_tasks(parallel)
                return self._schedule(step)

    def _guarded(self, step: StepState, act: Callable[[], StepState | None]) -> StepState | None:
        """An expression that fails fails its step, with the expression in the message (rule 9)."""
        try:
            return act()
        except ExpressionError as error:
            return self._fail(step, str(error))

    def _resume(self, step: StepState) -> StepState | None:
        """Go on where the run ended: at what was running, or after what is done (a person may have marked it)."""
        match step.status:
            case "completed" | "skipped":
                if step.type == "approval" and step.result is None:
                    step.details = step.details or "Approved in the state file."
                    step.result = {"approved": True, "by": None, "at": self._now, "note": ""}
                return self._advance(step)
            case "failed":
                return self._fail(step, step.details or "Marked as failed in the state file.")
            case "waiting" if self.instance.is_simulated:
                return self._decide(step, Decided(step.id, is_approved=True, by=SIMULATION))
            case "waiting":
                self.instance.status = "waiting"
                return None
            case "running":
                return self._run_again(step)
            case _:
                return step

    def _run_again(self, step: StepState) -> StepState | None:
        """Go on with a step that was running when its runner was killed."""
        work = step.definition
        if isinstance(work, ActionStep):
            if (ended := self._recovered.get(Target(step.id))) is not None:
                step.process = step.record = None
                return self._action_ended(step, ended)
            if not self._may_run_again(step, work):
                return self._fail(step, _INTERRUPTED)
            return self._guarded(step, lambda: self._start(step))
        if not isinstance(work, ParallelStep) or not step.sub_tasks:
            return step
        for number, task in enumerate(step.sub_tasks):
            ended = self._recovered.get(Target(step.id, number))
            if task.status == "running" and ended is not None:
                task.process = task.record = None
                self._sub_task_ended(step, task, ended)
            elif task.status == "running" and self._may_run_again(task, work):
                task.status = "pending"
            elif task.status == "running":
                task.status, task.completed_at, task.details = "failed", self._now, _INTERRUPTED
        return self._schedule(step)

    def _may_run_again(self, run: StepState | SubTask, work: WorkStep) -> bool:
        run.process = run.record = None
        if run.attempts == 0:  # its retry was asked for, and has not begun
            return True
        run.interruptions += 1
        run.attempts -= 1
        return work.on_interrupt == "retry"

    def _advance(self, step: StepState, chosen: str | None = None) -> StepState | None:
        """Give the step that follows; what is passed over is skipped. None: the workflow is completed."""
        steps = self.instance.steps
        at = steps.index(step)
        name = chosen or step.definition.next
        target = at + 1 if name is None else len(steps) if name == END else self._index(name)
        for passed in steps[at + 1 : target]:
            if passed.status == "pending":
                passed.status = "skipped"
        if target < len(steps):
            return steps[target]
        for left in steps:
            if left.status == "pending":
                left.status = "skipped"
        self.instance.status, self.instance.current_step = "completed", None
        self.instance.completed_at = self._now
        return None

    def _index(self, name: str) -> int:
        return next(at for at, step in enumerate(self.instance.steps) if step.id == name)

    def _done(
        self, step: StepState, details: str, result: Mapping[str, Any] | None, next_: str | None = None
    ) -> StepState | None:
        step.status, step.completed_at = "completed", self._now
        step.details, step.result = details, None if result is None else dict(result)
        return self._advance(step, next_)

    def _fail(
        self, step: StepState, details: str, result: Mapping[str, Any] | None = None
    ) -> StepState | None:
        step.status, step.completed_at, step.process, step.record = "failed", self._now, None, None
        step.details = details
        if result is not None:
            step.result = dict(result)
        self.instance.status, self.instance.current_step = "failed", None
        self.instance.completed_at = self._now
        return None

    # --- conditions and approvals

    def _choose(self, step: StepState, condition: ConditionStep) -> StepState | None:
        scope = scope_of(self.instance)
        for number, case in enumerate(condition.cases, 1):
            if case.when is not None and not self._holds(case.when, scope):
                continue
            values = {
                name: self._known(partial(evaluate, expression, scope), None)
                for name, expression in (case.set or {}).items()
            }
            self.instance.variables.update(values)
            details = f"Case {number} holds" + (f": {case.when}" if case.when else "")
            details += "".join(f"; {name} = {shown(value)}" for name, value in values.items())
            result = {"case": number, "when": case.when, "set": values, "next": case.next}
            return self._done(step, f"{details}.", result, case.next)
        return self._done(step, "No case holds.", {"case": None, "when": None, "set": {}, "next": None})

    def _holds(self, when: str, scope: Mapping[str, Any]) -> bool:
        return self._known(partial(holds, when, scope), False)

    def _known(self, value: Callable[[], T], unknown: T) -> T:
        """In a simulation, what hangs on a value that only a command could give is ``unknown`` and no mistake."""
        try:
            return value()
        except ExpressionError as error:
            if not (self.instance.is_simulated and error.hangs_on_a_run):
                raise
            return unknown

    def _ask(self, step: StepState, approval: ApprovalStep) -> StepState | None:
        message = approval.message
        if message:
            step.details = self._known(partial(fill, message, scope_of(self.instance)), message)
        if self.instance.is_simulated:
            return self._decide(step, Decided(step.id, is_approved=True, by=SIMULATION))
        step.status = self.instance.status = "waiting"
        return None

    def _decide(self, step: StepState, event: Decided) -> StepState | None:
        result = {"approved": event.is_approved, "by": event.by, "at": self._now, "note": event.note}
        if step.details:
            result["message"] = step.details
        note = f": {event.note}" if event.note else ""
        if event.is_approved:
            return self._done(step, f"Approved by {event.by}{note}.", result)
        return self._fail(step, f"Rejected by {event.by}{note}.", result)

    # --- actions

    def _start(self, step: StepState) -> StepState | None:
        """Start the command of an action; a simulated one has ended at once."""
        if not isinstance(step.definition, ActionStep):
            raise TypeError(step.type)
        step.status = "running"
        step.attempts += 1
        job = self._job(Target(step.id), step.definition, scope_of(self.instance))
        if self.instance.is_simulated:
            return self._action_ended(step, simulated(job))
        self.jobs.append(job)
        return None

    def _job(self, target: Target, work: WorkStep, scope: Mapping[str, Any]) -> Job:
        return self._known(partial(make_job, target, work, scope), unfilled(target, work))

    def _action_ended(self, step: StepState, event: Finished) -> StepState | None:
        work = step.definition
        if not isinstance(work, ActionStep):
            return None
        result = result_of(event)
        details = told(step, event.details)
        if not event.is_success:
            if step.attempts <= work.retries:
                return self._guarded(step, lambda: self._start(step))
            return self._fail(step, details, result)
        try:
            outputs = outputs_of(
                work, event, scope_of(self.instance), is_simulated=self.instance.is_simulated
            )
        except ExpressionError as error:
            return self._fail(step, str(error), result)
        self.instance.variables.update(outputs)
        return self._done(step, details, result)

    # --- parallel steps

    def _sub_tasks(self, work: ParallelStep) -> list[SubTask]:
        value = self._known(partial(evaluate, work.foreach, scope_of(self.instance)), None)
        if value is None and self.instance.is_simulated:
            value = []
        if not isinstance(value, list):
            raise ExpressionError(f"`{work.foreach}`: must give a list, not {shown(value)}")
        if len(value) > MAX_SUB_TASKS:
            raise ExpressionError(
                f"`{work.foreach}`: gives {len(value):,} elements; at most {MAX_SUB_TASKS:,}"
            )
        return [SubTask(id=str(number), name=_name(item), item=item) for number, item in enumerate(value, 1)]

    def _schedule(self, step: StepState) -> StepState | None:
        """Start sub-tasks as far as there is room; when all have ended, the step has."""
        work = step.definition
        if not isinstance(work, ParallelStep):
            return step
        running = sum(task.status == "running" for task in step.sub_tasks)
        for index, task in enumerate(step.sub_tasks):
            if running >= work.max_parallel:
                break
            if task.status == "pending":
                running += self._start_sub_task(step, work, index)
        if any(task.status in {"pending", "running"} for task in step.sub_tasks):
            return None
        return self._parallel_ended(step, work, step.sub_tasks)

    def _start_sub_task(self, step: StepState, work: ParallelStep, index: int) -> bool:
        """Start one; False when it has ended at once: its texts can't be filled in, or it is simulated."""
        task = step.sub_tasks[index]
        task.status, task.started_at = "running", task.started_at or self._now
        task.attempts += 1
        task.is_simulated = self.instance.is_simulated
        target = Target(step.id, index)
        try:
            job = self._job(target, work, {**scope_of(self.instance), work.as_: task.item})
        except ExpressionError as error:
            task.status, task.completed_at, task.details = "failed", self._now, str(error)
            return False
        if self.instance.is_simulated:
            self._sub_task_ended(step, task, simulated(job))
            return False
        self.jobs.append(job)
        return True

    def _sub_task_ended(self, step: StepState, task: SubTask, event: Finished) -> None:
        work = step.definition
        if not isinstance(work, ParallelStep):
            return
        task.result, task.details = result_of(event), told(task, event.details)
        if not event.is_success and task.attempts <= work.retries:
            self._start_sub_task(step, work, event.target.task or 0)
            return
        task.status, task.completed_at = "completed" if event.is_success else "failed", self._now
        if event.is_success:
            try:
                task.outputs = outputs_of(
                    work,
                    event,
                    {**scope_of(self.instance), work.as_: task.item},
                    is_simulated=task.is_simulated,
                )
            except ExpressionError as error:
                task.status, task.details = "failed", str(error)

    def _parallel_ended(self, step: StepState, work: ParallelStep, tasks: list[SubTask]) -> StepState | None:
        failed = [task for task in tasks if task.status == "failed"]
        result = {"total": len(tasks), "completed": len(tasks) - len(failed), "failed": len(failed)}
        if failed:
            names = ", ".join(task.name for task in failed[:10])
            return self._fail(step, f"{len(failed)} of {len(tasks)} failed: {names}", result)
        names_set = dict.fromkeys([*(work.outputs or ()), *(name for task in tasks for name in task.outputs)])
        for name in names_set:
            self.instance.variables[name] = [task.outputs.get(name) for task in tasks]
        simulated = " (simulated)" if step.is_simulated else ""
        return self._done(step, f"{len(tasks)} of {len(tasks)} completed{simulated}.", result)


def _name(item: Any) -> str:
    """Name a sub-task for people: a mapping by its ``name``, anything else by itself."""
    named = item.get("name") if isinstance(item, dict) else None
    return shown(named if isinstance(named, str) and named.strip() else item)
