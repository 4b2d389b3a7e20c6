"""The runner with real processes: what they say, hand over and leave behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kr import cancellation
from kr.errors import WorkflowError
from kr.workflows.model import Begin, Event, Finished, Instance, Job, StepState
from kr.workflows.runner import KEPT, Runner, read_state, write_state
from tests.support.stores import ROOT
from tests.support.workflows import action, make, parallel, statuses


def perform(job: Job, instance: Instance) -> Finished:
    """Stand where kr's own operations stand."""
    if job.operation == "research":
        (Path(str(job.request["folder"])) / "begun").write_text("yes")
        try:
            cancellation.sleep(1000)
        except cancellation.Cancelled:
            (Path(str(job.request["folder"])) / "given_back").touch()
            raise
    if job.operation == "export-yaml":
        raise WorkflowError("no export today")
    result = {"asked": dict(job.request), "workflow": instance.workflow_id}
    return Finished(job.target, is_success=True, details="done", result=result)


def run(folder: Path, instance: Instance, event: Event | None = None, **environ: str) -> Instance:
    path = folder / "workflow_state.json"
    seen: list[str] = []

    def changed(instance: Instance) -> None:
        assert read_state(path) == instance, "it is on the disk before anybody hears of it"
        seen.append(instance.status)

    runner = Runner(
        path,
        environ={"PATH": os.environ["PATH"], **environ},
        clock=lambda: datetime.now(UTC),
        perform=perform,
        on_change=changed,
    )
    ended = runner.run(instance, event or Begin())
    assert seen
    assert read_state(path) == ended
    return ended


def one(folder: Path, command: str | list[str], **more: Any) -> StepState:
    """Run a single action."""
    return run(folder, make([action("a", command, **more)])).steps[0]


def result(step: StepState) -> dict[str, Any]:
    assert step.result is not None
    return step.result


def test_a_command_runs_in_the_folder_of_the_state_with_what_it_is_given(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    step = one(tmp_path, 'pwd; echo "$A"; cat', env={"A": "b c"})
    assert result(step)["stdout"].split("\n") == [str(tmp_path), "b c"]
    assert step.details == "b c"
    assert result(one(tmp_path, ["pwd"], cwd="sub"))["stdout"] == str(tmp_path / "sub")
    assert result(one(tmp_path, ["printf", "%s|", "a b", "$A"]))["stdout"] == "a b|$A|"
    assert result(one(tmp_path, ["echo", r"a\tb"]))["stdout"] == r"a\tb", "dash's own echo would write a tab"


def test_a_shell_command_stops_at_its_first_failure(tmp_path: Path) -> None:
    step = one(tmp_path, "echo one\nfalse\necho two")
    assert (step.status, result(step)["stdout"], result(step)["exit_code"]) == ("failed", "one", 1)


@pytest.mark.parametrize(
    ("command", "told"),
    [
        ("echo no good >&2; exit 3", "Exit status 3. no good"),
        ("kill -9 $$", "Exit status 137."),
        (["no-such-program"], "Exit status 127."),
        (["eval", "echo a list is run by no shell"], "Exit status 127."),
        (["echo", "a\0b"], "The command can't be started: embedded null byte."),
    ],
)
def test_failures_are_told(tmp_path: Path, command: str | list[str], told: str) -> None:
    step = one(tmp_path, command)
    assert step.status == "failed"
    assert told in (step.details or "")


def test_output_is_bounded_to_its_end(tmp_path: Path) -> None:
    step = one(tmp_path, "yes 0123456789 | head -c 3000000; echo; echo end")
    assert result(step)["stdout"].endswith("\nend")
    assert len(result(step)["stdout"]) <= KEPT
    assert (tmp_path / "workflow_state.json").stat().st_size < 3 * KEPT


def test_what_is_no_text_is_no_trouble(tmp_path: Path) -> None:
    step = one(tmp_path, r"printf '\377\000\033[2J\n'; exit 1")
    assert (step.status, result(step)["stdout"]) == ("failed", "\ufffd\0\x1b[2J")
    assert "\x1b" not in (step.details or "")


def test_a_command_that_takes_too_long_is_ended_with_all_it_started(tmp_path: Path) -> None:
    began = time.monotonic()
    step = one(tmp_path, "sleep 1000 & echo $! > pid; wait", timeout_seconds=0.3)
    assert time.monotonic() - began < 60
    assert (step.status, step.details) == ("failed", "It took longer than 0.3 s and was ended.")
    assert is_gone(int((tmp_path / "pid").read_text()))


def test_what_ignores_a_polite_end_is_ended_too(tmp_path: Path) -> None:
    command = "(trap '' TERM; echo > ready; sleep 1000 & echo $! > pid; wait) & sleep 1000"
    step = one(tmp_path, command, timeout_seconds=1)
    assert step.status == "failed"
    if (tmp_path / "ready").exists():  # a slow machine may not have come so far
        assert is_gone(int((tmp_path / "pid").read_text()))


def test_what_a_command_leaves_in_the_background_is_not_waited_for(tmp_path: Path) -> None:
    began = time.monotonic()
    step = one(tmp_path, "sleep 1000 & echo $! > pid; echo started")
    assert time.monotonic() - began < 60
    assert (step.status, step.details) == ("completed", "started")
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_sub_tasks_run_side_by_side(tmp_path: Path) -> None:
    # Each waits for the other: one after another they would never end.
    command = "touch ${{ item }}; until [ -e a ] && [ -e b ]; do sleep 0.02; done; echo ${{ item }}"
    step = parallel("p", "params.items", command, outputs={"said": "stdout"}, timeout_seconds=60)
    instance = run(tmp_path, make([step], items=["a", "b"]))
    assert (instance.status, instance.variables["said"]) == ("completed", ["a", "b"])


@pytest.mark.parametrize("kind", ["action", "parallel"])
def test_an_operation_that_takes_too_long_is_broken_off(tmp_path: Path, kind: str) -> None:
    more = {"foreach": "[1, 2]"} if kind == "parallel" else {}
    step = {
        "id": "a",
        "name": "a",
        "type": kind,
        "uses": "research",
        "with": {"folder": str(tmp_path)},
        **more,
    }
    began = time.monotonic()
    ended = run(tmp_path, make([{**step, "timeout_seconds": 0.2}])).steps[0]
    assert time.monotonic() - began < 60
    told = [task.details for task in ended.sub_tasks] or [ended.details]
    assert set(told) == {"It took longer than 0.2 s and was ended."}
    assert (tmp_path / "given_back").exists()


RUNNER = """
import sys
from pathlib import Path
from tests.workflows.test_runner import run
from kr.workflows.runner import read_state
run(Path(sys.argv[1]), read_state(Path(sys.argv[1]) / "workflow_state.json"))
"""


def killed_while(folder: Path, instance: Instance, *, number: int, until: Sequence[str]) -> None:
    """Run an instance in a process of its own, and kill that when its commands have written these files."""
    write_state(folder / "workflow_state.json", instance)
    with subprocess.Popen([sys.executable, "-c", RUNNER, str(folder)], cwd=ROOT) as process:
        deadline = time.monotonic() + 60
        while not all((folder / name).exists() and (folder / name).read_text() for name in until):
            assert process.poll() is None
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        process.wait()


def is_gone(pid: int) -> bool:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.02)
    return False


def test_the_commands_of_a_killed_runner_are_ended_with_it_and_run_again(tmp_path: Path) -> None:
    """Deaf to every signal but SIGKILL, each with a process of its own."""
    command = "trap '' TERM HUP INT; sleep 1000 & echo $! $$ >> ${{ item }}; [ $(wc -l < ${{ item }}) -gt 1 ] || wait"
    instance = make([parallel("p", "params.items", command)], items=["a", "b"])
    killed_while(tmp_path, instance, number=signal.SIGKILL, until=["a", "b"])
    first = [int(pid) for name in "ab" for pid in (tmp_path / name).read_text().split()]
    assert all(map(is_gone, first))
    instance = run(tmp_path, read_state(tmp_path / "workflow_state.json"))
    assert instance.status == "completed"
    assert all((task.details or "").startswith("Interrupted 1 time") for task in instance.steps[0].sub_tasks)
    assert len((tmp_path / "a").read_text().splitlines()) == 2
    for name in "ab":  # what a command leaves behind on purpose goes on
        left = int((tmp_path / name).read_text().split()[2])
        os.kill(left, signal.SIGKILL)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_runner_that_is_asked_to_end_takes_its_commands_with_it(tmp_path: Path, number: int) -> None:
    # SIGTERM's default would end a bare interpreter at once; the program turns it into an exception, as SIGINT is.
    program = RUNNER.replace(
        "import sys", "import signal, sys\nsignal.signal(signal.SIGTERM, signal.default_int_handler)", 1
    )
    write_state(tmp_path / "workflow_state.json", make([action("a", "echo $$ > pid; sleep 1000")]))
    interrupt(program, tmp_path, number, when=tmp_path / "pid")
    assert is_gone(int((tmp_path / "pid").read_text()))
    assert statuses(read_state(tmp_path / "workflow_state.json")) == {"a": "running"}


def test_a_runner_that_is_asked_to_end_lets_operations_give_back_what_they_hold(tmp_path: Path) -> None:
    step = {"id": "a", "name": "a", "type": "parallel", "foreach": "[1, 2]", "uses": "research"}
    write_state(tmp_path / "workflow_state.json", make([{**step, "with": {"folder": str(tmp_path)}}]))
    interrupt(RUNNER, tmp_path, signal.SIGINT, when=tmp_path / "begun")
    assert (tmp_path / "given_back").exists()


def interrupt(program: str, folder: Path, number: int, *, when: Path) -> None:
    """Run a program on a folder, and send it a signal when a file is there and says something."""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(folder)], cwd=ROOT, stderr=subprocess.DEVNULL
    ) as process:
        deadline = time.monotonic() + 60
        while not (when.exists() and when.read_text()):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        process.send_signal(number)
        process.wait(60)
