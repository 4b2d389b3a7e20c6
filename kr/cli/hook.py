"""``kr hook``: kr as a Claude Code hook. It fails open: whatever happens, the exit status is 0."""

import json
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kr.cli.common import Command, kr_command, open_app
from kr.lessons.hooks import (
    ASK_FOR_LESSONS,
    DEFAULT_PHASE,
    LOOKED_AT,
    Failure,
    Start,
    read_hook,
)

if TYPE_CHECKING:
    from kr.app import App

_NO_STORY = "0-0"
_TIMEOUT = 1.0
"""Seconds to wait for a busy database, which only counts lessons."""
_LOCK_TIMEOUT = 2.5
"""Seconds to wait for others who record. A hook that takes longer is killed, and then says nothing."""
_SERVER = 3.0
"""Seconds for the server of ``KR_SERVER``."""

_EPILOG = """\b
Example, in .claude/settings.json, for SessionStart, SubagentStart,
PostToolUseFailure and SubagentStop:
  {"hooks": {"SubagentStart": [{"hooks":
    [{"type": "command", "command": "kr hook", "timeout": 10}]}]}}
"""


class _FailsOpen(Command):
    """A command whose wrong command line is reported, and stops nobody: status 2 would block the agent."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            _warn(error.format_message())
            ctx.exit(0)


@kr_command(
    "hook",
    cls=_FailsOpen,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    epilog=_EPILOG,
)
@click.option("--phase", envvar="KR_PHASE", help="The phase of agents whose type does not say it.")
@click.option("--story-key", envvar="KR_STORY_KEY", default=_NO_STORY, help="The story that is worked on.")
def command(ctx: click.Context, /, phase: str | None, story_key: str) -> None:
    """Answer a hook whose JSON comes on standard input.

    SessionStart and SubagentStart get the lessons of the agent's phase, those first that fit its task;
    PostToolUseFailure and SubagentStop are recorded; an agent that returns a failure without lessons is asked once
    what it learned. An agent's phase follows from its type (dev, review, e2e, story), else from --phase or KR_PHASE, else it is
    dev-execution. The project is that of the event's cwd. Whatever happens, the exit status is 0.
    """
    try:
        data = _read_event()
        event = read_hook(data, _tail)
        if event is None:
            return
        _enter(data)
        with open_app(ctx, may_share=True, server_seconds=_SERVER) as app:
            known = _known_phase(app, event.phase or phase)
            identity = {"session_id": event.session_id, "story_key": story_key or _NO_STORY}
            if isinstance(event, Start):
                answer = _inject(app, event, known, identity)
            else:
                answer = _record(app, event, known, identity)
        if answer is not None:
            # ASCII, so that no locale stands between us and the reader.
            click.echo(json.dumps(answer))
    except Exception as error:  # noqa: BLE001 - a hook that fails must not stop the agent
        _warn(str(error))


def _read_event() -> Any:
    try:
        return json.loads(b"" if sys.stdin is None else sys.stdin.buffer.read())
    except ValueError as error:
        told = f"standard input is no JSON ({error}); docs/agents.md shows what Claude Code sends"
        raise ValueError(told) from error


def _enter(data: dict[str, Any]) -> None:
    """Work in the agent's project: the hook itself may be started elsewhere."""
    cwd = data.get("cwd")
    if isinstance(cwd, str) and Path(cwd).is_absolute() and Path(cwd).is_dir():
        os.chdir(cwd)


def _known_phase(app: "App", phase: str | None) -> str:
    allowed = app.settings.knowledge_research.all_phases
    if phase and phase not in allowed:
        _warn(f"unknown phase {phase!r} passed over; allowed: {', '.join(allowed)}")
    return phase if phase in allowed else DEFAULT_PHASE


def _warn(problem: str) -> None:
    click.echo(f"kr hook: {problem}", err=True)


def _inject(app: "App", event: Start, phase: str, identity: dict[str, str]) -> dict[str, Any] | None:
    task = {"phase": phase, "query": event.query, "files": list(event.files)}
    envelope = app.research.inject({**identity, "lessons_inject": task})
    for problem in envelope.errors:
        _warn(problem.message)
    block = envelope.results["injection_block"] if envelope.status == "success" else ""
    context = {"hookEventName": event.event, "additionalContext": block.rstrip("\n")}
    return {"hookSpecificOutput": context} if block else None


def _record(app: "App", event: Failure, phase: str, identity: dict[str, str]) -> dict[str, Any] | None:
    """Record what a failure teaches. Who reports one without a lesson is asked for its words first, once."""
    returned = event.agent_return
    events = app.evident_events(phase, returned)
    has_lessons = bool(returned.get("lessons") or returned.get("lesson"))
    if events and not has_lessons and event.may_ask:
        return {"decision": "block", "reason": ASK_FOR_LESSONS}
    if events or has_lessons:
        declared = events[0] if events else "general_agent_failure"
        request = {**identity, "phase": phase, "event_type": declared, "agent_return": returned}
        data = json.dumps(request).encode()
        for problem in app.record_lessons(data, timeout=_TIMEOUT, lock_timeout=_LOCK_TIMEOUT).errors:
            _warn(problem.message)
    return None


def _tail(path: str) -> str:
    """Read the end of a transcript. A pipe or a device would keep the agent waiting: it is refused.

    A session that starts names a transcript that only its first message writes.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except FileNotFoundError:
        return ""
    with os.fdopen(file, "rb") as stream:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        stream.seek(max(status.st_size - LOOKED_AT, 0))
        return stream.read(LOOKED_AT).decode(errors="replace")
