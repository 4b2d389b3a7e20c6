"""The state machine: an instance and an event give the next instance and what is to be done (rule 9).

Pure: nothing here reads a file or a clock, or runs a command. The runner saves the instance before it does what
the jobs ask for, and comes back with an event for each.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from kr.errors import WorkflowError
from kr.text import counted, one_line
from kr.workflows import expressions as cel
from kr.workflows.expressions import ExpressionError, as_text
from kr.workflows.model import (
    END,
    ActionStep,
    ApprovalStep,
    Begin,
    ConditionStep,
    Decided,
    Event,
    Finished,
    Instance,
    Job,
    ParallelStep,
    Run,
    StepState,
    SubTask,
    Target,
    WorkStep,
)

MAX_STEPS = 1_000
"""Steps that one run may begin: what ends a cycle whose condition never chooses the way out."""


def handle(instance: Instance, *events: Event, now: str) -> tuple[Instance, tuple[Job, ...]]:
    """Take events at the time ``now``: the instance after them, and what is to be done.

    Raises ``WorkflowError`` for one that the instance can't take.
    """
    machine = _Machine(instance.model_copy(deep=True), now)
    for event in events:
        machine.take(event)
    return machine.instance, tuple(machine.jobs)


class _Machine:
    def __init__(self, instance: Instance, now: str) -> None:
        self.instance = instance
        self.jobs: list[Job] = []
        self._now = now

    # --- events

    def take(self, event: Event) -> None:
        """Take an event; then begin step after step, until one has to be waited for, or the workflow ends."""
        match event:
            case Begin():
                step = self._begin(event)
            case Finished():
                step = self._finished(event)
            case _:
                step = self._decided(event)
        while step is not None:
            step = self._begin_step(step)

    def _begin(self, event: Begin) -> StepState | None:
        instance = self.instance
        step = instance.step(instance.current_step)
        if instance.status == "failed" and event.retry:
            step = self._to_retry()
        if step is None or step.status == "waiting" == instance.status:
            return None
        instance.steps_in_run = 0
        instance.status = "running"
        instance.started_at = instance.started_at or self._now
        return self._resume(step)

    def _to_retry(self) -> StepState:
        instance = self.instance
        step = next((step for step in instance.steps if step.status == "failed"), None)
        if step is None:
            raise WorkflowError(f"{instance.workflow_id}: no step of it failed; start it again")
        if step.type == "approval":
            by = (step.result or {}).get("by") or "somebody"
            raise WorkflowError(f"{instance.workflow_id}: {step.id} was rejected by {by}; start it again")
        step.status, step.completed_at = ("running" if step.sub_tasks else "pending"), None
        for task in step.sub_tasks:
            if task.status == "failed":
                task.status, task.attempts, task.started_at, task.completed_at = "pending", 0, None, None
        instance.current_step, instance.completed_at = step.id, None
        return step

    def _finished(self, event: Finished) -> StepState | None:
        step = self.instance.step(event.target.step_id)
        if step is None:
            return None
        self._run_ended(step, event)
        return self._after_run(step)

    def _decided(self, event: Decided) -> StepState | None:
        instance = self.instance
        step = instance.step(instance.current_step)
        if instance.status != "waiting" or step is None or step.status != "waiting":
            raise WorkflowError(f"{instance.workflow_id} waits for no approval: it is {instance.status}")
        if step.id != event.step_id:
            raise WorkflowError(f"{event.step_id} does not wait; {instance.workflow_id} waits at {step.id}")
        instance.status, instance.steps_in_run = "running", 0
        return self._decide(step, event)

    # --- steps: each method gives the step that is to begin next, if any

    def _begin_step(self, step: StepState) -> StepState | None:
        self.instance.current_step = step.id
        self.instance.steps_in_run += 1
        self.instance.path.append(step.id)
        step.status, step.started_at, step.completed_at = "running", self._now, None
        step.details, step.result, step.sub_tasks = None, None, []
        step.attempts, step.interruptions = 0, 0
        if self.instance.steps_in_run > MAX_STEPS:
            return self._fail(step, f"more than {MAX_STEPS:,} steps in one run: a cycle that doesn't end")
        try:
            return self._act(step)
        except ExpressionError as error:
            return self._fail(step, str(error))

    def _act(self, step: StepState) -> StepState | None:
        match step.definition:
            case ActionStep() as action:
                if action.if_ is not None and not self._known(cel.holds, action.if_):
                    step.status, step.completed_at = "skipped", self._now
                    step.details = f"Skipped: {action.if_} is false."
                    return self._advance(step)
                self._start(step, action)
            case ConditionStep() as condition:
                return self._choose(step, condition)
            case ApprovalStep() as approval:
                return self._ask(step, approval)
            case ParallelStep() as parallel:
                step.sub_tasks = self._sub_tasks(parallel)
        return self._after_run(step)

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
            case "waiting":
                self.instance.status = "waiting"
                return None
            case "running":
                return self._run_again(step)
        return step

    def _run_again(self, step: StepState) -> StepState | None:
        """Go on with a step that was running when its runner was killed."""
        work = step.definition
        runs = [step] if isinstance(work, ActionStep) else step.sub_tasks
        if not isinstance(work, WorkStep) or not runs:
            return step
        for run in (run for run in runs if run.status == "running"):
            run.interruptions += 1
            run.attempts -= 1
            run.status = "pending"
            if work.on_interrupt == "fail":
                run.status, run.completed_at = "failed", self._now
                run.details = "Interrupted: kr was stopped while it ran."
        if step.status == "pending":
            self._start(step, work)
        return self._after_run(step)

    def _advance(self, step: StepState, chosen: str | None = None) -> StepState | None:
        """Skip what is passed over on the way to the step that follows. None: the workflow has ended."""
        steps = self.instance.steps
        at = steps.index(step)
        name = chosen or step.definition.next
        ids = [step.id for step in steps] + [END]
        if name is not None and name not in ids:  # a state file can be edited
            return self._fail(step, f"next leads nowhere: there is no step {name}")
        target = at + 1 if name is None else ids.index(name)
        has_ended = target >= len(steps)
        for passed in steps if has_ended else steps[at + 1 : target]:
            if passed.status == "pending":
                passed.status = "skipped"
        if not has_ended:
            return steps[target]
        self._end("completed")
        return None

    def _end(self, status: Literal["completed", "failed"]) -> None:
        self.instance.status, self.instance.current_step = status, None
        self.instance.completed_at = self._now

    def _done(
        self, step: StepState, details: str, result: dict[str, Any], chosen: str | None = None
    ) -> StepState | None:
        step.status, step.completed_at = "completed", self._now
        step.details, step.result = details, result
        return self._advance(step, chosen)

    def _fail(self, step: StepState, details: str, result: dict[str, Any] | None = None) -> StepState | None:
        step.status, step.completed_at = "failed", self._now
        step.details, step.result = details, result or step.result
        self._end("failed")
        return None

    # --- conditions and approvals

    def _choose(self, step: StepState, condition: ConditionStep) -> StepState | None:
        for number, case in enumerate(condition.cases, 1):
            if case.when is not None and not self._known(cel.holds, case.when):
                continue
            values = self._values(case.set, self._scope())
            self.instance.variables.update(values)
            details = f"Case {number} holds" + (f": {case.when}" if case.when else "")
            details += "".join(f"; {name} = {_shown(value)}" for name, value in values.items())
            result = {"case": number, "when": case.when, "set": values, "next": case.next}
            return self._done(step, f"{details}.", result, case.next)
        return self._done(step, "No case holds.", {"case": None, "when": None, "set": {}, "next": None})

    def _known(self, find: Callable[..., Any], text: str, scope: dict[str, Any] | None = None) -> Any:
        """Evaluate a text; in a simulation None where it can't be: it may hang on what a command gives."""
        try:
            return find(text, scope or self._scope())
        except ExpressionError:
            if not self.instance.is_simulated:
                raise
            return None

    def _values(self, expressions: Mapping[str, str], scope: dict[str, Any]) -> dict[str, Any]:
        return {name: self._known(cel.evaluate, text, scope) for name, text in expressions.items()}

    def _ask(self, step: StepState, approval: ApprovalStep) -> StepState | None:
        if approval.message:
            step.details = self._known(cel.fill, approval.message) or approval.message
        if self.instance.is_simulated:
            return self._decide(step, Decided(step.id, is_approved=True, by="simulation"))
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

    # --- what runs: an action itself, and each sub-task of a parallel step

    def _start(self, step: StepState, work: WorkStep, task: int | None = None) -> bool:
        """Start a run; False where it has ended at once: its texts can't be filled in, or it is simulated."""
        run, target = _run(step, task), Target(step.id, task)
        run.status, run.attempts = "running", run.attempts + 1
        run.started_at = run.started_at or self._now
        if self.instance.is_simulated:
            what = " ".join(work.run) if isinstance(work.run, list) else work.run or work.uses
            result: dict[str, Any] = {} if work.uses else {"exit_code": 0, "stdout": "", "stderr": ""}
            details = f"Simulated, not run: {_shown(what)}"
            self._run_ended(step, Finished(target, is_success=True, details=details, result=result))
            return False
        try:
            self.jobs.append(_job(target, work, self._scope(run, work)))
        except ExpressionError as error:
            run.status, run.completed_at, run.details = "failed", self._now, str(error)
            return False
        return True

    def _run_ended(self, step: StepState, event: Finished) -> None:
        work, run = step.definition, _run(step, event.target.task)
        if not isinstance(work, WorkStep):
            return
        run.result, run.details = dict(event.result), event.details
        if run.interruptions:
            run.details = f"Interrupted {counted(run.interruptions, 'time')} and run again. {run.details}"
        if not event.is_success and run.attempts <= work.retries:
            self._start(step, work, event.target.task)
            return
        run.status, run.completed_at = "failed", self._now
        if not event.is_success:
            return
        output = {"stdout": "", "exit_code": 0, **event.result, "result": event.result}
        scope = self._scope(run, work) | {name: output[name] for name in cel.OUTPUT_SCOPE}
        try:
            outputs = self._values(work.outputs, scope)
        except ExpressionError as error:
            run.details = str(error)
            return
        run.status = "completed"
        (run.outputs if isinstance(run, SubTask) else self.instance.variables).update(outputs)

    def _after_run(self, step: StepState) -> StepState | None:
        """Go on where all runs of a step have ended, and start those of its sub-tasks for which there is room."""
        work = step.definition
        if isinstance(work, ParallelStep):
            return self._schedule(step, work)
        if step.status == "running":
            return None
        return self._advance(step) if step.status == "completed" else self._fail(step, step.details or "")

    def _sub_tasks(self, work: ParallelStep) -> list[SubTask]:
        value = self._known(cel.evaluate, work.foreach)
        if value is None and self.instance.is_simulated:
            value = []
        if not isinstance(value, list):
            raise ExpressionError(work.foreach, f"must give a list, not {_shown(value)}")
        return [SubTask(id=str(number), name=_name(item), item=item) for number, item in enumerate(value, 1)]

    def _schedule(self, step: StepState, work: ParallelStep) -> StepState | None:
        tasks = step.sub_tasks
        running = sum(task.status == "running" for task in tasks)
        for index, task in enumerate(tasks):
            if task.status == "pending" and running < work.max_parallel:
                running += self._start(step, work, index)
        if any(task.status in {"pending", "running"} for task in tasks):
            return None
        failed = [task.name for task in tasks if task.status == "failed"]
        result = {"total": len(tasks), "completed": len(tasks) - len(failed), "failed": len(failed)}
        if failed:
            names = ", ".join(failed[:10])
            return self._fail(step, f"{len(failed)} of {len(tasks)} failed: {names}", result)
        for name in work.outputs:
            self.instance.variables[name] = [task.outputs.get(name) for task in tasks]
        return self._done(step, f"{len(tasks)} of {len(tasks)} completed.", result)

    def _scope(self, run: Run | None = None, work: WorkStep | None = None) -> dict[str, Any]:
        """Give what an expression sees: ``params``, ``variables`` and ``steps``, and a sub-task's element."""
        steps = {step.id: {"status": step.status, "result": step.result} for step in self.instance.steps}
        scope = {"params": self.instance.params, "variables": self.instance.variables, "steps": steps}
        if isinstance(run, SubTask) and isinstance(work, ParallelStep):
            scope[work.as_] = run.item
        return scope


def _run(step: StepState, task: int | None) -> Run:
    return step if task is None else step.sub_tasks[task]


def _job(target: Target, work: WorkStep, scope: dict[str, Any]) -> Job:
    """Fill in the texts of what is to be done. Raises ``ExpressionError``."""
    command: str | tuple[str, ...] | None = None
    values: dict[str, str] = {}
    if isinstance(work.run, str):
        command, values = cel.fill_shell(work.run, scope)
    elif work.run is not None:
        command = tuple(cel.fill(argument, scope) for argument in work.run)
    return Job(
        target,
        command=command,
        env={name: cel.fill(value, scope) for name, value in work.env.items()} | values,
        cwd=None if work.cwd is None else cel.fill(work.cwd, scope),
        timeout_seconds=work.timeout_seconds,
        operation=work.uses,
        request=cel.fill_tree(work.with_, scope),
    )


def _name(item: Any) -> str:
    """Name a sub-task for people: a mapping by its ``name``, anything else by itself."""
    named = item.get("name") if isinstance(item, dict) else None
    return _shown(named if isinstance(named, str) and named.strip() else item)


def _shown(value: Any) -> str:
    return "null" if value is None else one_line(as_text(value), 100)
