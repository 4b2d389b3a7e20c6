import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.lessons.hooks import AgentStop, Start, ToolFailure, answer, last_words, phase_of, read_hook, task_of


@pytest.mark.parametrize(
    ("agent", "phase"),
    [
        ("bso-dev-runner", "dev-execution"),
        ("developer", "dev-execution"),
        ("backendEngineer", "dev-execution"),
        ("code-reviewer", "code-review"),
        ("bso-story-reviewer", "story-review"),
        ("bso-story-creator", "story-creation"),
        ("bso-e2e-inspection", "e2e-inspection"),
        ("e2e-dev", "e2e-inspection"),
        ("story-planner", "story-creation"),
        ("fixture-writer", None),
        ("device-tester", None),
        ("inspecteur", None),
        ("general-purpose", None),
        ("Explore", None),
        ("", None),
    ],
)
def test_the_phase_of_an_agent(agent: str, phase: str | None) -> None:
    assert phase_of(agent) == phase


def read(event: str, default: str | None = "code-review", **more: Any) -> object:
    return read_hook({"hook_event_name": event, "session_id": "s", **more}, default)


def test_what_is_to_do() -> None:
    assert read("SessionStart") == Start(event="SessionStart", phase="code-review", session_id="s")
    assert read("SubagentStart", agent_type="dev") == Start(
        event="SubagentStart", phase="dev-execution", session_id="s"
    )
    assert read("PostToolUseFailure", error="no module orjson", tool_name="Bash") == ToolFailure(
        phase="code-review", session_id="s", error="no module orjson"
    )
    assert read(
        "PostToolUseFailure", error="Command timed out", tool_input={"command": "make"}
    ) == ToolFailure(phase="code-review", session_id="s", error="make: Command timed out", command="make")
    assert read("SubagentStop", last_assistant_message="m") == AgentStop(
        phase="code-review", session_id="s", message="m", transcript=None
    )


@pytest.mark.parametrize(
    "nothing",
    [
        read("PreToolUse"),
        read("PostToolUseFailure", error=" "),
        read("PostToolUseFailure", error="no module", is_interrupt=True),
        read("PostToolUseFailure", error="no module", tool_name="Read"),
        read("SubagentStop"),
        read("SubagentStop", last_assistant_message="m", stop_hook_active=True),
        read_hook([], "code-review"),
        read_hook({}, "code-review"),
    ],
)
def test_nothing_to_do(nothing: object) -> None:
    assert nothing is None


@given(
    st.dictionaries(
        st.sampled_from(["hook_event_name", "agent_type", "error", "session_id", "tool_name"]),
        st.none() | st.integers() | st.text() | st.lists(st.text()),
    )
)
def test_any_input_is_read(data: dict[str, Any]) -> None:
    read_hook(data, "code-review")


@pytest.mark.parametrize("agent", ["", "general-purpose", "Explore", "fixture-writer"])
def test_who_says_nothing_of_a_phase_develops(agent: str) -> None:
    started = read("SessionStart", None, agent_type=agent)
    assert started == Start(event="SessionStart", phase="dev-execution", session_id="s")


@pytest.mark.parametrize(
    "error", ["Exit code 1", "Exit code 127\n", "exited with code 2", "exit status 1\n\n"]
)
def test_a_bare_status_is_nothing_to_do(error: str) -> None:
    assert read("PostToolUseFailure", error=error) is None


def test_a_warning_beside_an_error_makes_it_no_slip() -> None:
    # Seen: cargo prints `warning: unused import` beside nearly each error, and 103 of 180 errors of Rust were kept by no hook.
    warned = (
        "warning: unused import: `std::fmt::Debug`\n --> src/lib.rs:1:5\n\n"
        "error[E0432]: unresolved import `crate::price`\n --> src/cart.rs:1:12\n"
    )
    slip = warned.replace("warning: ", "error: ", 1).partition("\n\n")[0]
    command = {"command": "cargo build"}
    kept, dropped = (
        read("PostToolUseFailure", tool_name="Bash", tool_input=command, error=f"Exit code 101\n{said}")
        for said in (warned, slip)
    )
    assert isinstance(kept, ToolFailure)
    assert dropped is None


def test_the_end_of_a_long_error_is_read() -> None:
    noise = "line compiling module ok\n" * 40_000
    task = read("PostToolUseFailure", error=f"{noise}TypeError: no key", tool_name="Bash")
    assert isinstance(task, ToolFailure)
    assert task.error.endswith("ok\nTypeError: no key")
    assert len(task.error) <= 20_000
    slip = "usage: x [-h]\nx: error: unrecognized arguments: --frob"
    assert read("PostToolUseFailure", error=f"{noise}{slip}", tool_name="Bash") is None


def test_lone_surrogates_are_replaced() -> None:
    task = read_hook({"hook_event_name": "SessionStart", "session_id": "a\ud800b"}, None)
    assert task == Start(event="SessionStart", phase="dev-execution", session_id="a?b")


def test_the_answer_is_whole_lines_within_the_limit() -> None:
    told = answer("SubagentStart", "\n".join(["title", *("x" * 999 for _ in range(20))]))
    context = told["hookSpecificOutput"]["additionalContext"]
    assert told["hookSpecificOutput"]["hookEventName"] == "SubagentStart"
    assert len(context) <= 10_000
    assert {len(line) for line in context.splitlines()[1:]} == {999}


def test_the_last_words_of_a_transcript() -> None:
    lines = [
        '{"half a line',
        json.dumps(
            {
                "type": "assistant",
                "message": {"role": "assistant", "content": [{"type": "text", "text": "first"}]},
            }
        ),
        json.dumps(
            {
                "type": "assistant",
                "message": {
                    "role": "assistant",
                    "content": [{"type": "text", "text": "last"}, {"type": "tool_use"}],
                },
            }
        ),
        json.dumps({"type": "user", "message": {"role": "user", "content": "thanks"}}),
        "[]",
    ]
    assert last_words("\n".join(lines)) == "last"
    assert last_words("") == ""


def test_the_task_is_read_from_the_transcript() -> None:
    lines = [
        {"message": {"role": "user", "content": "an earlier wish"}},
        {"message": {"role": "assistant", "content": [
            {"type": "tool_use", "name": "Edit", "input": {"file_path": "/home/dev/shop/src/cart.py", "new_string": "x"}},
            {"type": "tool_use", "name": "Read", "input": {"file_path": "/home/dev/shop/README.md"}},
        ]}},
        {"message": {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "text": "done"}]}},
        {"message": {"role": "assistant", "content": [
            {"type": "tool_use", "name": "Task", "input": {"subagent_type": "dev", "prompt": "Page the orders with SQLAlchemy"}}
        ]}},
        "no object",
    ]  # fmt: skip
    transcript = "\n".join([*(json.dumps(line) for line in lines), "{torn"])
    assert task_of(transcript) == ("Page the orders with SQLAlchemy", ("/home/dev/shop/src/cart.py",))
    assert task_of(json.dumps(lines[0])) == ("an earlier wish", ())
    assert task_of("") == ("", ())
