"""What an instance's file says of each step, whatever happens to it (SPEC 9, seed 004)."""

from typing import Any

import pytest

from kr.errors import WorkflowError
from kr.workflows.machine import MAX_STEPS, handle
from kr.workflows.model import Begin, Decided, Event, Finished, Job, Target
from tests.support.workflows import action, approval, condition, make, parallel, statuses

APPROVED = Decided("a", is_approved=True, by="Ada")


class Course:
    """An instance that takes events, each a minute after the one before."""

    def __init__(self, *steps: dict[str, Any], **params: Any) -> None:
        self.instance = make(list(steps), **params)
        self.minute = 0
        self.jobs: tuple[Job, ...] = ()

    def take(self, *events: Event) -> "Course":
        self.minute += 1
        self.instance, self.jobs = handle(self.instance, *events, now=at(self.minute))
        return self

    def end(self, step: str, *, ok: bool = True, task: int | None = None) -> "Course":
        result = {"exit_code": int(not ok)}
        return self.take(Finished(Target(step, task), is_success=ok, details="said", result=result))

    def step(self, name: str) -> Any:
        found = self.instance.step(name)
        assert found is not None
        return found

    def told(self, name: str) -> tuple[Any, ...]:
        step = self.step(name)
        return step.status, step.started_at, step.completed_at, step.details

    def asked(self) -> list[Target]:
        return [job.target for job in self.jobs]


def at(minute: int) -> str:
    return f"2026-02-07T12:{minute:02}:00.000000Z"


def test_each_step_says_when_it_began_and_ended_and_what_came_of_it() -> None:
    course = Course(action("a"), action("b"), action("c")).take(Begin())
    assert course.told("a") == ("running", at(1), None, None)
    course.end("a").end("b", ok=False)
    assert course.told("a") == ("completed", at(1), at(2), "said")
    assert course.told("b") == ("failed", at(2), at(3), "said")
    assert course.told("c") == ("pending", None, None, None)
    assert course.step("b").result == {"exit_code": 1}
    instance = course.instance
    assert (instance.status, instance.completed_at, instance.current_step) == ("failed", at(3), None)
    assert (instance.started_at, instance.path) == (at(1), ["a", "b"])
    assert course.take(Begin()).instance == instance


def test_events_that_come_together_are_taken_in_turn() -> None:
    course = Course(parallel("p", "params.items"), action("b"), items=[1, 2]).take(Begin())
    course.take(*(Finished(target, is_success=True) for target in course.asked()))
    assert statuses(course.instance) == {"p": "completed", "b": "running"}
    assert course.asked() == [Target("b")]


@pytest.mark.parametrize(
    ("cases", "details", "result"),
    [
        (
            [{"when": "params.n > 5"}, {"when": "params.n > 1", "set": {"x": "params.n + 1"}, "next": "b"}],
            "Case 2 holds: params.n > 1; x = 4.",
            {"case": 2, "when": "params.n > 1", "set": {"x": 4}, "next": "b"},
        ),
        ([{"when": "params.n > 5"}], "No case holds.", {"case": None, "when": None, "set": {}, "next": None}),
    ],
)
def test_a_condition_says_which_case_held_and_what_it_set(
    cases: list[dict[str, Any]], details: str, result: dict[str, Any]
) -> None:
    course = Course(condition("c", *cases), action("b"), n=3).take(Begin())
    assert course.told("c") == ("completed", at(1), at(1), details)
    assert course.step("c").result == result
    assert course.told("b")[0] == "running"


def test_a_step_whose_if_is_false_says_so_and_what_is_passed_over_is_skipped() -> None:
    course = Course(action("a", **{"if": "params.on"}, next="c"), action("b"), action("c"), on=False)
    course.take(Begin())
    assert course.told("a") == ("skipped", at(1), at(1), "Skipped: params.on is false.")
    assert course.told("b") == ("skipped", None, None, None)
    assert course.asked() == [Target("c")]


# --- approvals


def test_going_back_runs_a_step_anew_and_skips_nothing() -> None:
    again = {"when": "variables.n < 1", "set": {"n": "variables.n + 1"}, "next": "a"}
    course = Course(action("a"), action("b"), condition("c", again), n=0).take(Begin())
    course.end("a").end("b")
    assert course.told("a") == ("running", at(3), None, None)
    assert (course.step("a").result, course.step("b").status) == (None, "completed")
    course.end("a").end("b")
    assert (course.instance.status, course.instance.path) == ("completed", [*"abcabc"])


@pytest.mark.parametrize("message", [None, "Go?"])
@pytest.mark.parametrize("note", ["", "not yet"])
@pytest.mark.parametrize(("word", "status"), [("Approved", "completed"), ("Rejected", "failed")])
def test_an_approval_says_who_decided_when_and_why(
    message: str | None, note: str, word: str, status: str
) -> None:
    course = Course(approval("a", **({"message": message} if message else {})), action("b")).take(Begin())
    assert course.told("a") == ("waiting", at(1), None, message)
    assert (course.instance.status, course.instance.current_step, course.jobs) == ("waiting", "a", ())
    is_approved = word == "Approved"
    course.take(Decided("a", is_approved=is_approved, by="Ada", note=note))
    assert course.told("a") == (status, at(1), at(2), f"{word} by Ada{note and ': '}{note}.")
    said = {"approved": is_approved, "by": "Ada", "at": at(2), "note": note}
    assert course.step("a").result == (said | {"message": message} if message else said)
    assert course.instance.status == ("running" if is_approved else "failed")


def test_what_somebody_marked_in_the_file_counts() -> None:
    usual = {"completed": "Approved in the state file.", "failed": "Marked as failed in the state file."}
    for status, told in usual.items():
        for details in (None, "Ada said so"):
            course = Course(approval("a"), action("b")).take(Begin())
            course.step("a").status, course.step("a").details = status, details
            assert course.take(Begin()).told("a")[::3] == (status, details or told)
            assert course.instance.status == ("running" if status == "completed" else "failed")
    for status in ("completed", "skipped"):
        running = Course(action("a"), action("b")).take(Begin())
        running.step("a").status = status
        assert running.take(Begin()).asked() == [Target("b")]
        assert (running.step("a").status, running.step("a").result) == (status, None)


def test_waiting_for_a_person_begins_the_count_of_steps_anew() -> None:
    again = {"when": "variables.n < 700", "set": {"n": "variables.n + 1"}, "next": "c"}
    steps = condition("c", again), approval("a"), condition("d", {"set": {"n": "0"}}), condition("e", again)
    course = Course(*steps, n=0).take(Begin()).take(APPROVED)
    assert course.instance.status == "waiting"
    assert MAX_STEPS == 1_000 < len(course.instance.path) < 2_000


def test_who_may_decide_is_told_what_waits() -> None:
    with pytest.raises(WorkflowError, match="waits at q"):
        Course(approval("q"), approval("a")).take(Begin()).take(APPROVED)
    for done in (Course(action("a")).take(Begin()), Course(action("a")).take(Begin()).end("a")):
        with pytest.raises(WorkflowError, match=f"waits for no approval: it is {done.instance.status}"):
            done.take(APPROVED)


# --- again


def test_a_failed_workflow_goes_on_at_what_failed_as_if_it_had_not_run() -> None:
    course = Course(action("a"), action("b", retries=1), action("c")).take(Begin()).end("a")
    course.end("b", ok=False).end("b", ok=False).take(Begin(retry=True))
    assert course.told("b")[:3] == ("running", at(5), None)
    assert (course.step("b").attempts, course.instance.completed_at) == (1, None)
    assert (course.instance.status, course.instance.current_step) == ("running", "b")
    done: Any = course.end("b").end("c").instance
    assert (done.status, done.completed_at) == ("completed", at(7))


def test_of_a_parallel_step_what_failed_runs_again_alone() -> None:
    course = Course(parallel("p", "params.items"), items=["x", "y", "z"]).take(Begin())
    course.end("p", task=0).end("p", task=1, ok=False).end("p", task=2, ok=False)
    assert course.told("p") == ("failed", at(1), at(4), "2 of 3 failed: y, z")
    assert course.step("p").result == {"total": 3, "completed": 1, "failed": 2}
    first, *_ = course.step("p").sub_tasks
    course.take(Begin(retry=True))
    assert [target.task for target in course.asked()] == [1, 2]
    kept, *again = course.step("p").sub_tasks
    assert kept == first
    assert {(it.attempts, it.started_at, it.completed_at) for it in again} == {(1, at(5), None)}
    assert course.told("p")[:3:2] == ("running", None)


def test_nothing_failed_or_somebody_said_no_is_no_reason_to_try_again() -> None:
    rejected = Course(approval("a")).take(Begin()).take(Decided("a", is_approved=False, by="Ada"))
    with pytest.raises(WorkflowError, match="a was rejected by Ada; start it again"):
        rejected.take(Begin(retry=True))
    nothing = Course(action("a")).take(Begin()).end("a", ok=False)
    nothing.step("a").status = "completed"
    with pytest.raises(WorkflowError, match="no step of it failed"):
        nothing.take(Begin(retry=True))


@pytest.mark.parametrize(("times", "said"), [(1, "1 time"), (2, "2 times")])
def test_what_was_interrupted_runs_again_says_so_and_costs_no_retry(times: int, said: str) -> None:
    course = Course(action("a", retries=1)).take(Begin())
    for _ in range(times):
        assert course.take(Begin()).asked() == [Target("a")]
    assert (course.step("a").attempts, course.step("a").interruptions) == (1, times)
    assert len(course.end("a", ok=False).jobs) == 1
    course.end("a")
    assert course.told("a") == ("completed", at(1), at(times + 3), f"Interrupted {said} and run again. said")


def test_or_it_fails_where_the_step_says_so() -> None:
    course = Course(action("a", on_interrupt="fail"), action("b")).take(Begin()).take(Begin())
    assert course.told("a") == ("failed", at(1), at(2), "Interrupted: kr was stopped while it ran.")
    assert (course.instance.status, course.jobs) == ("failed", ())
    tasks = Course(parallel("p", "params.items", on_interrupt="fail", max_parallel=1), items=[1, 2])
    tasks.take(Begin()).take(Begin())
    assert [it.status for it in tasks.step("p").sub_tasks] == ["failed", "running"]
    assert tasks.end("p", task=1).told("p")[3] == "1 of 2 failed: 1"


# --- parallel


@pytest.mark.parametrize("most", [1, 2, 3, 9])
def test_never_more_run_at_once_than_are_allowed_and_each_in_its_turn(most: int) -> None:
    step = parallel("p", "params.items", max_parallel=most, outputs={"code": "exit_code"})
    course = Course(step, items=list("abcde")).take(Begin())
    waiting, begun = course.asked(), course.asked()
    while waiting:
        running = [it for it in course.step("p").sub_tasks if it.status == "running"]
        assert len(running) == len(waiting) == min(most, 5 - len(begun) + len(waiting))
        course.end("p", task=waiting.pop().task)
        waiting += course.asked()
        begun += course.asked()
    assert [target.task for target in begun] == [0, 1, 2, 3, 4]
    assert course.told("p") == ("completed", at(1), at(6), "5 of 5 completed.")
    assert course.instance.variables["code"] == [0] * 5


def test_ten_of_those_that_failed_are_named() -> None:
    course = Course(parallel("p", "params.items", max_parallel=20), items=list("abcdefghijkl")).take(Begin())
    for number in range(12):
        course.end("p", task=number, ok=False)
    assert course.step("p").details == "12 of 12 failed: a, b, c, d, e, f, g, h, i, j"


@pytest.mark.parametrize(
    ("item", "name"), [({"name": "httpx"}, "httpx"), ({"name": " "}, '{"name": " "}'), (7, "7")]
)
def test_a_run_is_named_by_its_element(item: object, name: str) -> None:
    [task] = Course(parallel("p", "params.items"), items=[item]).take(Begin()).step("p").sub_tasks
    assert (task.name, task.item) == (name, item)


def test_a_simulation_runs_nothing_gives_every_approval_and_says_so() -> None:
    steps = action("a"), parallel("p", "params.items"), approval("q", message="Go?")
    course = Course(*steps, is_simulated=True, items=[1, 2]).take(Begin())
    assert (course.instance.status, course.instance.is_simulated, course.jobs) == ("completed", True, ())
    assert course.told("a") == ("completed", at(1), at(1), "Simulated, not run: true")
    assert course.step("p").details == "2 of 2 completed."
    assert course.told("q") == ("completed", at(1), at(1), "Approved by simulation.")
