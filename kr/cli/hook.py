"""``kr hook``: kr as a Claude Code hook. It fails open: whatever happens, the exit status is 0 (SPEC 8)."""

import json
import os
import re
import stat
import subprocess
import sys
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kr.cli.options import common, open_app, with_context
from kr.lessons.embedded import returned_documents
from kr.lessons.hooks import (
    AgentStop,
    Event,
    Start,
    ToolFailure,
    ask_answer,
    context_answer,
    last_words,
    read_hook,
    task_of,
)
from kr.values import PHASES

if TYPE_CHECKING:
    from kr.app import App

_INPUT_LIMIT = 8 * 1024 * 1024
_TRANSCRIPT_TAIL = 256 * 1024
_MANY_FILES = 50
_NO_STORY = "0-0"
_PATIENCE = 2.0
"""Seconds to wait for a busy database, which only counts lessons."""
_QUEUE = 5.0
"""Seconds to wait for others who record. A hook that takes longer is killed, and then says nothing."""
_GIT = 1.0
"""Seconds to ask git which files are changed."""
_SERVER = 3.0
"""Seconds for the server of ``KR_SERVER``; behind one that gave no answer, what is waited for has half its time."""

_EPILOG = """\b
Example, in .claude/settings.json, for SessionStart, SubagentStart,
PostToolUseFailure and SubagentStop:
  {"hooks": {"SubagentStart": [{"hooks":
    [{"type": "command", "command": "kr hook", "timeout": 10}]}]}}
"""


class _FailsOpen(click.Command):
    """A command whose wrong command line is told, and stops nobody: status 2 would block the agent."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except click.UsageError as error:
            click.echo(f"kr hook: {error.format_message()}", err=True)
            ctx.exit(0)


@click.command(
    "hook",
    cls=_FailsOpen,
    epilog=_EPILOG,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
)
@click.option("--phase", envvar="KR_PHASE", help="The phase of agents whose type does not say it.")
@click.option("--story-key", envvar="KR_STORY_KEY", default="0-0", help="The story that is worked on.")
@with_context
def command(ctx: click.Context, /, phase: str | None, story_key: str) -> None:
    """Answer a hook whose JSON comes on standard input.

    SessionStart and SubagentStart get the lessons of the agent's phase, those first that fit its task and the
    changed files; PostToolUseFailure and SubagentStop are recorded; an agent that
    returns a failure without lessons is asked once for its words. An agent's phase follows from its type (dev, review, e2e, story), else from --phase or
    KR_PHASE, else it is dev-execution. Whatever happens, the exit status is 0.
    """
    try:
        task = read_hook(_event(), _known_phase(ctx, phase))
        told = None if task is None else _do(ctx, task, _known_story(story_key))
        if told is not None:
            # ASCII, so that no locale stands between us and the reader.
            click.echo(json.dumps(told))
    except Exception as error:  # noqa: BLE001 - a hook that fails must not stop the agent
        _tell(str(error))


def _event() -> Any:
    if sys.stdin is not None and sys.stdin.isatty():
        _tell("an event is read here as JSON, which Claude Code sends; Ctrl-C ends it")
    data = b"" if sys.stdin is None else sys.stdin.buffer.read(_INPUT_LIMIT + 1)
    if len(data) > _INPUT_LIMIT:
        raise ValueError(f"the input is longer than {_INPUT_LIMIT // 1024**2} MiB; nothing is done")
    try:
        return json.loads(data)
    except ValueError as error:
        what = f"not JSON ({error})" if data.strip() else "empty"
        raise ValueError(
            f"standard input is {what}. Claude Code sends an event as JSON here; docs/agents.md shows one"
        ) from error


def _known_phase(ctx: click.Context, phase: str | None) -> str | None:
    if not phase or phase in PHASES:
        return phase or None
    with open_app(ctx) as app:
        phases = app.settings.knowledge_research.all_phases
    if phase in phases:
        return phase
    _tell(f"unknown phase {phase!r} passed over; allowed: {', '.join(phases)}")
    return None


def _known_story(story_key: str) -> str:
    if re.fullmatch(r"[0-9]+-[0-9]+", story_key, re.ASCII):
        return story_key
    if story_key:
        _tell(f"story key {story_key!r} passed over: it must read like 3-1")
    return _NO_STORY


def _tell(problem: str) -> None:
    click.echo(f"kr hook: {problem}", err=True)


def _do(ctx: click.Context, event: Event, story_key: str) -> dict[str, Any] | None:
    """Do what is to do. The app is opened last: mostly there is nothing to do, and that must cost nothing."""
    match event:
        case Start():
            if os.environ.get("KR_SERVER") or _has_lessons(ctx):
                with open_app(ctx, may_share=True, hurry=_SERVER) as app:
                    return _lessons(app, event, story_key)
        case ToolFailure():
            with open_app(ctx, may_share=True, hurry=_SERVER) as app:
                _record_tool(app, event, story_key)
        case AgentStop():
            returned = _returned(event)
            if returned is not None:
                with open_app(ctx, may_share=True, hurry=_SERVER) as app:
                    return _record_agent(app, event, returned, story_key)
    return None


def _has_lessons(ctx: click.Context) -> bool:
    """Tell whether there is a lessons file."""
    from kr.settings import load_settings

    given = common(ctx)
    settings = load_settings(config=given.config, knowledge_base=given.kb, environ=os.environ, cwd=Path.cwd())
    return settings.lessons_file.exists()


def _lessons(app: "App", task: Start, story_key: str) -> dict[str, Any] | None:
    query, files = _task(task)
    identity = {"story_key": story_key, "session_id": task.session_id}
    need = {"phase": task.phase, "query": query, "files": list(files)}
    envelope = app.requests.inject_lessons({**identity, "lessons_inject": need})
    for problem in envelope.errors:
        _tell(problem.message)
    block = envelope.results["injection_block"] if envelope.status == "success" else ""
    return context_answer(task.event, block) if block else None


def _task(task: Start) -> tuple[str, tuple[str, ...]]:
    """Tell what the agent is to do, and which files are in work: by its transcript, and by git."""
    query = task.prompt
    files: tuple[str, ...] = ()
    if task.transcript:
        try:
            said, files = task_of(_tail(Path(task.transcript)))
        except OSError:
            said = ""
        query = query or said
    return query, files or _changed(task.cwd)


def _changed(folder: str | None) -> tuple[str, ...]:
    try:
        done = subprocess.run(
            ["git", "-c", "core.fsmonitor=false", "status", "--porcelain", "-z", "--untracked-files=normal"],  # noqa: S607
            cwd=folder,
            capture_output=True,
            timeout=_GIT,
            check=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, "GIT_OPTIONAL_LOCKS": "0"},
        )
    except (OSError, subprocess.SubprocessError):
        return ()
    lines = done.stdout.decode(errors="replace").split("\0")
    return tuple(line[3:] for line in lines[:_MANY_FILES] if len(line) > 3)


def _record_tool(app: "App", task: ToolFailure, story_key: str) -> None:
    request = {
        "session_id": task.session_id,
        "story_key": story_key,
        "phase": task.phase,
        "event_type": "general_agent_failure",
        "agent_return": {
            "status": "failure",
            "errors": [{"message": task.error}],
        },
    }
    _record(app, request)


def _returned(event: AgentStop) -> dict[str, Any] | None:
    """Return what the agent returned, with its lessons. Raises ``InvalidRequest`` when something is there and can't be read.

    Who was asked for lessons may word them alone: the return then stands in what it said before.
    """
    texts = [event.message] if event.message else []
    if event.transcript and (event.was_asked or not texts):
        texts += islice(last_words(_tail(Path(event.transcript))), 2 if event.was_asked else 1)
    found = [data for text in texts if (data := _first_document(returned_documents(text)))]
    if not found:
        return None
    whole = next((data for data in found if data.get("status")), {"status": "failure"})
    lessons = next((data[name] for data in found for name in ("lessons", "lesson") if data.get(name)), None)
    return {**whole, "lessons": lessons} if lessons else whole


def _first_document(texts: Sequence[str]) -> dict[str, Any] | None:
    """Return the first of the texts that reads as an agent's return. Raises ``InvalidRequest`` when none reads at all."""
    if not texts:
        return None
    from kr.errors import InvalidRequest
    from kr.tree import read_document

    problem: InvalidRequest | None = None
    for text in texts:
        try:
            data: Any = read_document(text.encode(errors="replace")).data
        except InvalidRequest as error:
            problem = problem or error
            continue
        data = data.get("return") or data
        if isinstance(data, dict) and any(data.get(name) for name in ("status", "lessons", "lesson")):
            return data
    if problem is not None:
        raise problem
    return None


def _record_agent(
    app: "App", event: AgentStop, returned: dict[str, Any], story_key: str
) -> dict[str, Any] | None:
    """Record an agent's return. One that reports a failure without a lesson is asked for its words first, once."""
    with app.lessons() as lessons:
        events = lessons.evident_events(event.phase, returned)
    has_lessons = bool(returned.get("lessons") or returned.get("lesson"))
    if events and not has_lessons and not event.was_asked:
        return ask_answer()
    if events or has_lessons:
        identity = {"session_id": event.session_id, "story_key": story_key, "phase": event.phase}
        declared = events[0] if events else "general_agent_failure"
        _record(app, {**identity, "event_type": declared, "agent_return": returned})
    return None


def _record(app: "App", request: dict[str, Any]) -> None:
    data = json.dumps(request).encode()
    part = 0.5 if os.environ.get("KR_SERVER") else 1.0
    waits = {"patience": _PATIENCE * part, "queue": _QUEUE * part}
    for problem in app.record_lessons(data, **waits).errors:
        _tell(problem.message)


def _tail(path: Path) -> str:
    return _read_regular(path, from_end=_TRANSCRIPT_TAIL).decode(errors="replace")


def _read_regular(path: Path, *, from_end: int | None) -> bytes:
    """Read a file, or the last bytes of it. A pipe or a device would keep the agent waiting: it is refused."""
    file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    with os.fdopen(file, "rb") as stream:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(f"{path} is not a regular file")
        if from_end is None:
            return stream.read()
        stream.seek(max(status.st_size - from_end, 0))
        return stream.read(from_end)
