"""The state machine by itself: its rules one by one, and what holds for any template and any course of events."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.workflows.machine import MAX_STEPS, handle
from kr.workflows.model import Begin, Decided, Event, Finished, Instance, Job, Target
from tests.support.workflows import NOW, action, approval, condition, make, parallel, statuses


def drive(instance: Instance, *events: Event) -> tuple[Instance, tuple[Job, ...]]:
    """Take events in turn; gives the instance and the jobs of the last one."""
    jobs: tuple[Job, ...] = ()
    for event in events:
        instance, jobs = handle(instance, event, now=NOW)
    return instance, jobs


def ended(job: Job | str, *, ok: bool = True, stdout: str = "", **more: Any) -> Finished:
    target = Target(job) if isinstance(job, str) else job.target
    result = {"exit_code": 0 if ok else 1, "stdout": stdout, "stderr": "", **more}
    return Finished(target, is_success=ok, details="said", result=result)


def reread(instance: Instance) -> Instance:
    """Write it, as a state file holds it, and read it."""
    return Instance.model_validate(json.loads(json.dumps(instance.model_dump(by_alias=True))))


class TestActions:
    def test_one_after_another_to_the_end(self) -> None:
        instance, [job] = drive(make([action("a", "echo ${{ params.x }}"), action("b")], x="1 2"), Begin())
        assert (instance.status, instance.current_step) == ("running", "a")
        assert (job.command, job.env) == ('echo "$KR_VALUE_1"', {"KR_VALUE_1": "1 2"})
        instance, [job] = drive(instance, ended("a"))
        assert (statuses(instance), instance.current_step) == ({"a": "completed", "b": "running"}, "b")
        instance, jobs = drive(instance, ended("b"))
        assert (instance.status, instance.current_step, jobs) == ("completed", None, ())
        assert instance.completed_at == NOW

    def test_arguments_environment_and_folder_are_filled_unquoted(self) -> None:
        step = action("a", ["x", "${{ params.x }}"], env={"A": "<${{ params.x }}>"}, cwd="d/${{ params.x }}")
        _, [job] = drive(make([step], x="1 2"), Begin())
        assert (job.command, job.env, job.cwd) == (("x", "1 2"), {"A": "<1 2>"}, "d/1 2")

    def test_outputs_become_variables(self) -> None:
        steps = [
            action("a", outputs={"first": "stdout + '!'", "code": "exit_code", "both": "result.stdout"}),
            action("b"),
        ]
        instance, _ = drive(make(steps), Begin(), ended("a", stdout="x"))
        assert instance.variables == {"first": "x!", "code": 0, "both": "x"}
        assert instance.steps[0].result == {"exit_code": 0, "stdout": "x", "stderr": ""}

    def test_retries(self) -> None:
        instance, [job] = drive(make([action("a", retries=2)]), Begin())
        instance, [job] = drive(instance, ended(job, ok=False))
        instance, [job] = drive(instance, ended(job, ok=False))
        assert (instance.status, instance.steps[0].attempts) == ("running", 3)
        assert drive(instance, ended(job))[0].status == "completed"
        assert drive(instance, ended(job, ok=False))[0].status == "failed"

    @pytest.mark.parametrize(
        "step",
        [
            action("a", "echo ${{ params.nothing }}"),
            action("a", **{"if": "params.nothing"}),
            condition("a", {"when": "params.nothing"}),
            condition("a", {"set": {"b": "params.nothing"}}),
            approval("a", message="${{ params.nothing }}"),
            parallel("a", "params.nothing"),
        ],
    )
    def test_an_expression_that_fails_fails_its_step_with_the_expression(self, step: dict[str, Any]) -> None:
        instance, jobs = drive(make([step, action("b")]), Begin())
        assert (statuses(instance), jobs) == ({"a": "failed", "b": "pending"}, ())
        assert "`params.nothing`" in (instance.steps[0].details or "")

    def test_an_output_that_fails_fails_its_step_and_keeps_the_result(self) -> None:
        instance, _ = drive(
            make([action("a", outputs={"b": "stdout.nothing"})]), Begin(), ended("a", stdout="x")
        )
        assert instance.status == "failed"
        assert "`stdout.nothing`" in (instance.steps[0].details or "")
        assert (instance.steps[0].result or {})["stdout"] == "x"


class TestConditions:
    def test_the_first_case_that_holds_sets_and_chooses(self) -> None:
        first = {"when": "params.n > 5", "next": "end"}
        second = {"when": "params.n > 1", "set": {"a": "variables.b", "b": "variables.a"}, "next": "y"}
        steps = [condition("c", first, second, {"next": "end"}), action("x"), action("y")]
        instance, [job] = drive(make(steps, n=3, a=1, b=2), Begin())
        assert (instance.variables["a"], instance.variables["b"]) == (2, 1), "all see the values before"
        assert (statuses(instance), job.target.step_id) == (
            {"c": "completed", "x": "skipped", "y": "running"},
            "y",
        )

    def test_a_loop_that_never_ends_is_ended(self) -> None:
        steps = [condition("c", {"when": "true", "next": "d"}), condition("d", {"when": "true", "next": "c"})]
        instance, _ = drive(make(steps), Begin())
        assert (instance.status, instance.current_step, len(instance.path)) == ("failed", None, MAX_STEPS + 1)
        assert any("more than 1,000 steps" in (step.details or "") for step in instance.steps)


class TestParallel:
    @pytest.mark.parametrize("items", ["abc", 3, None])
    def test_what_is_no_list_is_told(self, items: Any) -> None:
        instance, _ = drive(make([parallel("p", "params.items")], items=items), Begin())
        assert instance.status == "failed"
        assert "`params.items`" in (instance.steps[0].details or "")


class TestSimulation:
    def test_what_hangs_on_what_a_command_gives_is_no_mistake(self) -> None:
        steps = [
            action("a", outputs={"n": "int(stdout)", "names": "result.names"}),
            action("b", "touch b", **{"if": "variables.n > 3"}),
            action("c", "echo ${{ variables.names.join(',') }}"),
            condition("d", {"set": {"m": "variables.n * 2"}}),
            parallel("p", "variables.names.map(name, name + '!')"),
            approval("q", message="${{ variables.n + 1 }} are left"),
        ]
        instance, _ = drive(make(steps, is_simulated=True), Begin())
        assert statuses(instance)["b"] == "skipped"
        assert (instance.status, instance.variables["m"]) == ("completed", None)
        assert "echo ${{ variables.names.join(',') }}" in (instance.steps[2].details or "")


# --- any template, any course of events

IDS = [f"s{number}" for number in range(7)]
OUTPUTS = st.dictionaries(
    st.sampled_from(["x", "y"]),
    st.sampled_from(["exit_code", "stdout", "variables.n", "nobody.x"]),
    max_size=2,
)


@st.composite
def templates(draw: st.DrawFn, *, cycles: bool) -> list[dict[str, Any]]:
    number = draw(st.integers(1, len(IDS)))
    return [draw(one_step(at, number, cycles=cycles)) for at in range(number)]


@st.composite
def one_step(draw: st.DrawFn, at: int, number: int, *, cycles: bool) -> dict[str, Any]:
    forward = [*IDS[at + 1 : number], "end"]
    ahead = st.none() | st.sampled_from(forward)
    kind = draw(st.sampled_from(["action", "condition", "approval", "parallel"]))
    step: dict[str, Any] = {"id": IDS[at], "name": IDS[at], "type": kind, "next": draw(ahead)}
    if kind == "condition":
        anywhere = st.none() | st.sampled_from([*IDS[:number], "end"])
        case = st.fixed_dictionaries(
            {},
            optional={
                "when": st.sampled_from(
                    ["variables.n < 3", "variables.n > 1", "params.on", "variables.x == 0"]
                ),
                "set": st.just({"n": "variables.n + 1"}),
                "next": anywhere if cycles else ahead,
            },
        )
        return step | {"cases": draw(st.lists(case, min_size=1, max_size=3))}
    if kind == "approval":
        return step
    work = {
        "run": draw(st.sampled_from(["true", "echo ${{ variables.n }}"])),
        "retries": draw(st.integers(0, 2)),
        "on_interrupt": draw(st.sampled_from(["retry", "fail"])),
        "outputs": draw(OUTPUTS),
    }
    if kind == "parallel":
        work |= {
            "foreach": draw(st.sampled_from(["[1, 2, 3]", "[]", "params.items"])),
            "max_parallel": draw(st.integers(1, 3)),
        }
    elif draw(st.booleans()):
        work["if"] = draw(st.sampled_from(["params.on", "variables.n < 2", "params.nothing"]))
    return step | work


def runs_of(instance: Instance) -> Iterator[tuple[Target, str]]:
    for step in instance.steps:
        yield Target(step.id), step.status
        yield from ((Target(step.id, at), task.status) for at, task in enumerate(step.sub_tasks))


class Course:
    """Drives an instance with random outcomes and kills, and watches what must hold on the way."""

    def __init__(self, instance: Instance, data: st.DataObject) -> None:
        self.instance = instance
        self.data = data
        self.jobs: list[Job] = []
        self.successes: Counter[Target] = Counter()

    def take(self, event: Event) -> None:
        before = self.instance.model_dump_json()
        instance, jobs = handle(self.instance, event, now=NOW)
        assert self.instance.model_dump_json() == before, "the machine changed what it was given"
        done = {target for target, status in runs_of(self.instance) if status == "completed"}
        again = [job for job in jobs if job.target in done and not self.has_cycles]
        assert again == [], "what is completed runs again"
        self.instance = instance
        self.jobs += jobs
        for step in self.instance.steps:
            limit = getattr(step.definition, "max_parallel", 1)
            assert sum(task.status == "running" for task in step.sub_tasks) <= limit

    has_cycles = False
    kills = 0

    def kill(self) -> None:
        """Lose what was under way; the state is what was saved."""
        self.jobs.clear()
        read = reread(self.instance)
        assert read == self.instance, "a state file holds all of it"
        self.instance = read
        self.take(Begin())

    def go(self) -> None:
        self.take(Begin())
        for _ in range(60):
            if self.jobs:
                self.step()
            elif self.instance.status == "waiting":
                approved = self.data.draw(st.integers(0, 4)) > 0
                self.take(Decided(self.instance.current_step or "", is_approved=approved, by="Ada"))
            else:
                return

    def step(self) -> None:
        choice = self.data.draw(st.integers(0, 11))
        if choice == 0 and self.kills < 5:
            self.kills += 1
            self.kill()
            return
        job = self.jobs.pop(choice % len(self.jobs))
        ok = choice < 10
        self.successes[job.target] += ok
        self.take(ended(job, ok=ok))


def has_ended_well(instance: Instance) -> bool:
    return instance.status in {"completed", "failed"} and instance.current_step is None


@given(templates(cycles=False), st.booleans(), st.data())
def test_any_template_ends_and_repeats_nothing(
    steps: list[dict[str, Any]], on: bool, data: st.DataObject
) -> None:
    course = Course(make(steps, n=0, on=on, items=[1]), data)
    course.go()
    assert has_ended_well(course.instance)
    assert all(number == 1 for target, number in course.successes.items() if number), "a success ran twice"
    if course.instance.status == "completed":
        assert set(statuses(course.instance).values()) <= {"completed", "skipped"}
    else:
        assert Counter(statuses(course.instance).values())["failed"] == 1
        assert "running" not in dict(runs_of(course.instance)).values()


@given(templates(cycles=True), st.booleans(), st.data())
def test_any_template_with_cycles_ends_or_waits(
    steps: list[dict[str, Any]], on: bool, data: st.DataObject
) -> None:
    course = Course(make(steps, n=0, on=on, items=[1]), data)
    course.has_cycles = True
    course.go()
    assert has_ended_well(course.instance) or course.instance.status in {"waiting", "running"}
    if course.instance.status == "running":  # a loop through actions that only many more rounds would end
        assert len(course.instance.path) > 10
    assert course.instance.steps_in_run <= MAX_STEPS + 1


@given(templates(cycles=True), st.booleans())
def test_any_template_can_be_simulated_to_its_end(steps: list[dict[str, Any]], on: bool) -> None:
    instance, jobs = drive(make(steps, is_simulated=True, n=0, on=on, items=[1, 2]), Begin())
    assert has_ended_well(instance)
    assert jobs == ()
