"""``kr hook``: kr as a Claude Code hook. It fails open: whatever happens, the exit status is 0 (SPEC 8)."""

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kr.cli.options import common_options, open_app
from kr.rules.lessons.hooks import (
    AgentStop,
    Start,
    Task,
    ToolFailure,
    answer,
    last_words,
    read_hook,
    returned_document,
)
from kr.values import PHASES

if TYPE_CHECKING:
    from kr.app import App

_INPUT_LIMIT = 8 * 1024 * 1024
_TRANSCRIPT_TAIL = 256 * 1024

_EPILOG = """\b
Example, in .claude/settings.json (SessionStart, SubagentStart, PostToolUseFailure, SubagentStop):
  {"hooks": {"SubagentStart": [{"hooks": [{"type": "command", "command": "kr hook", "timeout": 10}]}]}}
"""


@click.command(
    "hook", epilog=_EPILOG, context_settings={"ignore_unknown_options": True, "allow_extra_args": True}
)
@click.option("--phase", envvar="KR_PHASE", help="The phase of agents whose type does not tell it.")
@click.option("--story-key", envvar="KR_STORY_KEY", default="0-0", help="The story that is worked on.")
@common_options
@click.pass_context
def command(ctx: click.Context, /, phase: str | None, story_key: str) -> int:
    """Answer a hook whose JSON comes on standard input.

    SessionStart and SubagentStart get the lessons of the agent's phase; PostToolUseFailure and SubagentStop
    are recorded. An agent's phase follows from its type (dev, review, e2e, story), else from KR_PHASE.
    """
    try:
        task = read_hook(json.loads(sys.stdin.buffer.read(_INPUT_LIMIT)), phase if phase in PHASES else None)
        if task is not None:
            with open_app(ctx) as app:
                told = _do(app, task, story_key)
            if told is not None:
                # ASCII, so that no locale stands between us and the reader.
                click.echo(json.dumps(told))
    except Exception as error:  # noqa: BLE001 - a hook that fails must not stop the agent
        click.echo(f"kr hook: {error}", err=True)
    return 0


def _do(app: "App", task: Task, story_key: str) -> dict[str, Any] | None:
    match task:
        case Start():
            return _lessons(app, task, story_key)
        case ToolFailure():
            _record_tool(app, task, story_key)
        case AgentStop():
            _record_agent(app, task, story_key)
    return None


def _lessons(app: "App", task: Start, story_key: str) -> dict[str, Any] | None:
    if not app.lessons_file.exists():
        return None
    identity = {"story_key": story_key, "session_id": task.session_id}
    envelope = app.inject_lessons({**identity, "lessons_inject": {"phase": task.phase}})
    block = envelope.results["injection_block"] if envelope.status == "success" else ""
    return answer(task.event, block) if block else None


def _record_tool(app: "App", task: ToolFailure, story_key: str) -> None:
    from kr.rules.lessons.distill import is_worth_keeping

    if not is_worth_keeping(task.error):
        return
    with app.lessons() as book:
        book.record(
            {
                "session_id": task.session_id,
                "story_key": story_key,
                "phase": task.phase,
                "event_type": "general_agent_failure",
                "agent_return": {"status": "failure", "errors": [task.error]},
            }
        )


def _record_agent(app: "App", task: AgentStop, story_key: str) -> None:
    from kr.documents import read_document

    message = task.message or last_words(_tail(Path(task.transcript or "")))
    text = returned_document(message)
    if text is None:
        return
    data: Any = read_document(text.encode()).data
    data = data.get("return", data)
    if isinstance(data, dict) and data.get("status"):
        with app.lessons() as book:
            book.record_shown(task.phase, data, session_id=task.session_id, story_key=story_key)


def _tail(path: Path) -> str:
    with path.open("rb") as stream:
        size = stream.seek(0, 2)
        stream.seek(max(size - _TRANSCRIPT_TAIL, 0))
        return stream.read(_TRANSCRIPT_TAIL).decode(errors="replace")
