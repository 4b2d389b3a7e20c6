import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.lessons.hooks import (
    LOOKED_AT,
    HookEvent,
    phase_of,
    read_hook,
    read_last_return,
    returned_documents,
    task_of,
)


@pytest.mark.parametrize(
    ("agent", "phase"),
    [
        ("bso-dev-runner", "dev-execution"),
        ("developer", "dev-execution"),
        ("code-reviewer", "code-review"),
        ("bso-story-reviewer", "story-review"),
        ("bso-story-creator", "story-creation"),
        ("e2e-dev", "e2e-inspection"),
        ("fixture-writer", None),
        ("inspecteur", None),
        ("general-purpose", None),
        ("", None),
    ],
)
def test_the_phase_of_an_agent(agent: str, phase: str | None) -> None:
    assert phase_of(agent) == phase


def read(event: str, transcript: str = "", **more: Any) -> object:
    return read_hook({"hook_event_name": event, "session_id": "s", **more}, lambda _path: transcript)


def test_what_is_to_do() -> None:
    assert read("SessionStart") == HookEvent(name="SessionStart", phase=None, session_id="s")
    assert read("SubagentStart", agent_type="dev", prompt="Page the orders") == HookEvent(
        name="SubagentStart", phase="dev-execution", session_id="s", query="Page the orders"
    )
    error = "ModuleNotFoundError: No module named 'orjson'"
    failed = read("PostToolUseFailure", error=f"Exit code 1\n{error}", tool_name="Bash")
    assert failed == HookEvent(
        name="PostToolUseFailure",
        phase=None,
        session_id="s",
        agent_return={"status": "failure", "errors": [{"message": error}]},
    )
    said = '{"status": "failure"}'
    for is_again in (False, True):
        stopped = read("SubagentStop", last_assistant_message=said, stop_hook_active=is_again)
        assert isinstance(stopped, HookEvent)
        assert (stopped.agent_return, stopped.may_ask) == ({"status": "failure"}, not is_again)


@pytest.mark.parametrize(
    "nothing",
    [
        read("PreToolUse"),
        read("PostToolUseFailure", error=" "),
        read("PostToolUseFailure", error="no module", is_interrupt=True),
        read("PostToolUseFailure", error="no module", tool_name="Read"),
        read("SubagentStop"),
        read("SubagentStop", last_assistant_message="All is well."),
        read_hook({}, str),
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
    read_hook(data, str)


def test_a_slip_among_errors_costs_only_itself() -> None:
    error = 'Exit code 1\na.py:1:8: F401 [*] `os` imported but unused\nb.py:3:5: error: Item "None" of "Match[str] | None" has no attribute "group"  [union-attr]'
    kept = read("PostToolUseFailure", tool_name="Bash", error=error)
    assert isinstance(kept, HookEvent)
    assert "F401" not in str(kept.agent_return)
    assert "union-attr" in str(kept.agent_return)
    assert read("PostToolUseFailure", tool_name="Bash", error=error.rpartition("\n")[0]) is None


@pytest.mark.parametrize(
    "error",
    [
        "Exit code 1\n1c1\n< 1\n---\n> 2",
        "  File \"a.py\", line 3\n    def f(\n         ^\nSyntaxError: '(' was never closed",
        "E       assert 'one' == 'two'",
        "Exit code 2\ncp: cannot stat 'build/app.tar': No such file or directory",
    ],
)
def test_what_only_its_author_need_know_is_nothing_to_do(error: str) -> None:
    assert read("PostToolUseFailure", tool_name="Bash", error=error) is None


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


# --- the return in an agent's last words ---

RETURN = {"story_key": "3-1", "status": "failure", "errors": ["Use Foo.bar() instead of Foo.baz()"]}
LINE = json.dumps(RETURN)
PRETTY = json.dumps(RETURN, indent=2)
YAML = "story_key: 3-1\nstatus: failure\nerrors:\n- Use Foo.bar() instead of Foo.baz()\n"


@pytest.mark.parametrize(
    "body", [LINE, PRETTY, YAML, json.dumps({"return": RETURN}), "return:\n  " + YAML.replace("\n", "\n  ")]
)
@pytest.mark.parametrize(
    "around",
    [
        "{}",
        "{}\n",
        "I tried this.\n{}",
        "I tried this:\n\n{}\n\nThat is all: it failed: twice.",
        "```\n{}\n```",
        "Done.\n```json\n{}\n```\nBye.",
        "~~~ yaml title=x\n{}\n~~~",
        "```yaml\n{}\n",
        "```sh\ngit status: none\n```\nprose\n```\n{}\n```",
        '```json\n{{"status": "failure", "errors": []}}\n```\nAnd then:\n```\n{}\n```',
    ],
)
@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_a_return_is_found(body: str, around: str, ending: str) -> None:
    assert read_last_return(around.format(body).replace("\n", ending)) == RETURN


@pytest.mark.parametrize(
    "message",
    [
        "",
        "{}",
        '{"state": "failure"}',
        "```\nls\n```",
        '{"status',
    ],
)
def test_no_return_is_none(message: str) -> None:
    assert returned_documents(message) == []


def test_the_last_return_counts() -> None:
    assert read_last_return(f'{{"status": "success"}}\nand now\n{LINE}') == RETURN
    assert read_last_return(f"```yaml\nstatus: success\n```\nand now\n{LINE}") == RETURN


@pytest.mark.parametrize(
    "message",
    [
        '{"status": [1,' * 100_000,
        '{"status": [' + "1," * 100_000 + '{"k": [' * 3000,
        "```\nstatus:\n" * 30_000,
        "status: x\n\n" * 30_000,
        "{" + " " * 250_000 + "status",
    ],
    ids=lambda message: repr(message[:12]),
)
def test_a_hostile_message_costs_little(message: str) -> None:
    began = time.process_time()
    found = returned_documents(message)
    assert len(found) <= 8
    assert all(len(text) <= LOOKED_AT for text in found)
    assert time.process_time() - began < 3
