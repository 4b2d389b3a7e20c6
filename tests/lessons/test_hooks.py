import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.lessons.hooks import (
    AgentStop,
    Start,
    ToolFailure,
    context_answer,
    last_words,
    phase_of,
    read_hook,
    task_of,
)


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
    error = "ModuleNotFoundError: No module named 'orjson'"
    assert read("PostToolUseFailure", error=f"Exit code 1\n{error}", tool_name="Bash") == ToolFailure(
        phase="code-review", session_id="s", error=error
    )
    assert read("SubagentStop", last_assistant_message="m", stop_hook_active=True) == AgentStop(
        phase="code-review", session_id="s", message="m", transcript=None, was_asked=True
    )
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


def test_a_slip_among_errors_costs_only_itself() -> None:
    error = 'Exit code 1\na.py:1:8: F401 [*] `os` imported but unused\nb.py:3:5: error: Item "None" of "Match[str] | None" has no attribute "group"  [union-attr]'
    kept = read("PostToolUseFailure", tool_name="Bash", error=error)
    assert isinstance(kept, ToolFailure)
    assert "F401" not in kept.error
    assert "union-attr" in kept.error
    assert read("PostToolUseFailure", tool_name="Bash", error=error.rpartition("\n")[0]) is None


@pytest.mark.parametrize(
    "error",
    [
        "Exit code 1\n1c1\n< 1\n---\n> 2",
        "error: pathspec 'featur/cart' did not match any file(s) known to git",
        "  File \"a.py\", line 3\n    def f(\n         ^\nSyntaxError: '(' was never closed",
        "E       assert 'one' == 'two'",
        "bash: line 1: froboz: command not found",
    ],
)
def test_what_only_its_author_need_know_is_nothing_to_do(error: str) -> None:
    assert read("PostToolUseFailure", tool_name="Bash", error=error) is None


def test_the_end_of_a_long_error_is_read() -> None:
    noise = "line compiling module ok\n" * 40_000
    task = read("PostToolUseFailure", error=f"{noise}TypeError: no key", tool_name="Bash")
    assert isinstance(task, ToolFailure)
    assert task.error.endswith("ok\nTypeError: no key")
    assert len(task.error) <= 20_000


def test_lone_surrogates_are_replaced() -> None:
    task = read_hook({"hook_event_name": "SessionStart", "session_id": "a\ud800b"}, None)
    assert task == Start(event="SessionStart", phase="dev-execution", session_id="a?b")


def test_the_answer_is_whole_lines_within_the_limit() -> None:
    answer = context_answer("SubagentStart", "\n".join(["title", *("x" * 999 for _ in range(20))]))
    context = answer["hookSpecificOutput"]["additionalContext"]
    assert answer["hookSpecificOutput"]["hookEventName"] == "SubagentStart"
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
    assert list(last_words("\n".join(lines))) == ["last", "first"]
    assert list(last_words("")) == []


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
