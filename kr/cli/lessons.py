"""``kr lessons`` and ``kr hook``: hand lessons to agents, record what their failures teach, and look at them."""

import json
import logging
import os
import sys
import uuid
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kr.cli import common
from kr.cli.readable import problem_lines
from kr.errors import KrError
from kr.lessons.hooks import ASK_FOR_LESSONS, DEFAULT_PHASE, LOOKED_AT, HookEvent, read_hook
from kr.models import PHASES
from kr.schemas import inject_request, record_request

if TYPE_CHECKING:
    from kr.app import App
    from kr.lessons.review import Lessons
    from kr.store.lessons import LessonMark

logger = logging.getLogger(__name__)

Row = dict[str, Any]

LISTED = "id date tags summary ref status held_because injected recurred recurred_after_injection"


@common.kr_group("lessons", "kr lessons inject --phase code-review", 'kr lessons search "row height"')
def command() -> None:
    """Lessons that agents learned from failures, in an append-only Markdown file."""


@common.operation(
    "inject",
    "kr lessons inject --phase dev-execution --framework vue --query paging",
    "kr lessons inject --request request.yaml --format json",
    group=command,
    may_share=True,
)
@common.request_option(inject_request)
@click.option("--phase", help=f"{', '.join(PHASES)}, or one of your own (phases).")
@common.identity_options
@click.option("--query", help="What the agent is about to do, with languages and tools: what fits is given.")
@click.option("--framework", help="Give lessons about this framework, and of packages that it depends on.")
@click.option("--file", "files", multiple=True, help="A file that the agent works on; may be repeated.")
def inject(
    app: "App",
    *,
    document: str | None,
    phase: str | None,
    story_key: str | None,
    session_id: str | None,
    **fits: Any,
) -> common.Output:
    """Give the lessons of a phase, for an agent that is about to start."""
    if (phase is None) == (document is None):
        raise click.UsageError("Give --phase, or --request FILE that has it.")
    typed = {**_identity(story_key, session_id), "lessons_inject": {"phase": phase}}
    request = typed if document is None else common.read_request(document)
    envelope = app.research.inject(request, {name: value for name, value in fits.items() if value})
    return common.Output(value=envelope, view=injection_view)


def injection_view(value: dict[str, Any]) -> list[str]:
    """Show the block that an agent gets, or why there is none."""
    results = value["results"]
    if results and results["injected_count"]:
        return [str(results["injection_block"]).rstrip()]
    none = ["no lesson fits this task"] if results else []
    return [value["status"], *problem_lines(value), *none]


def _identity(story_key: str | None = None, session_id: str | None = None) -> dict[str, str]:
    session = session_id or f"terminal-{uuid.uuid4().hex}"
    return {"story_key": story_key or "0-0", "session_id": session}


@common.kr_command("record", "kr lessons record --request return.yaml", group=command)
@common.request_option(record_request)
def record(ctx: click.Context, /, document: str | None) -> None:
    """Record what an agent's return teaches.

    The exit status is 0 whatever becomes of it, without a request too: recording never stops its caller.
    """
    from kr.lessons.record import confirmation, skip  # heavy

    try:
        data = common.read_request(document) if document else b""
        with common.open_app(ctx, may_share=True) as app:
            envelope = app.record_lessons(data)
    except (KrError, OSError, ValueError) as error:
        logger.warning("nothing is recorded: %s", error)
        envelope = skip({}, f"Recording skipped: {error}")
    if line := confirmation(envelope):
        click.echo(line, err=True)
    common.emit(common.Output(value=envelope, status=0), ctx)


_CHANGING = {"timeout": 60.0}
"""Who changes lessons waits long for a busy database."""
_PHASE = click.option("--phase", help="Only lessons of this phase.")


def _require_phase(app: "App", phase: str | None) -> None:
    if phase not in {None, *(phases := app.settings.knowledge_research.all_phases)}:
        raise click.BadParameter(f"{phase!r} is not one of {', '.join(phases)}.", param_hint="--phase")


def _list(app: "App", phase: str | None, limit: int, query: str = "") -> common.Output:
    _require_phase(app, phase)
    with app.lessons() as lessons:
        found = lessons.lessons(phase=phase, query=query, limit=limit + 1)
    if len(found) > limit:
        logger.warning("the first %d shown; --limit N shows more", limit)
    return common.Output(value=found[:limit], columns=LISTED)


@common.operation("list", "kr lessons list --phase dev-execution --limit 20", group=command, only_reads=True)
@_PHASE
@common.limit_option(100)
def list_(app: "App", phase: str | None, limit: int) -> common.Output:
    """List lessons, the newest first: how often each was given, and how often its failure came back."""
    return _list(app, phase, limit)


@common.operation("search", 'kr lessons search "row height"', group=command, only_reads=True)
@click.argument("words", nargs=-1, required=True)
@_PHASE
@common.limit_option(100)
def search(app: "App", words: tuple[str, ...], phase: str | None, limit: int) -> common.Output:
    """Find lessons by WORDS, the most relevant first."""
    return _list(app, phase, limit, " ".join(words))


_ID = click.argument("lesson_id", metavar="ID")


@common.operation("show", "kr lessons show 2f1c9a7b", group=command, only_reads=True)
@_ID
def show(app: "App", lesson_id: str) -> Row:
    """Show one lesson with everything that is known of it."""
    with app.lessons() as lessons:
        return lessons.show(lesson_id)


def _marking(name: str, mark: "LessonMark", summary: str) -> None:
    """Make the command that sets a mark, and takes it off with --undo."""

    @common.operation(name, f"kr lessons {name} 2f1c9a7b", group=command, help=summary)
    @_ID
    @click.option("--undo", is_flag=True, help="Take it back.")
    def change(app: "App", lesson_id: str, *, undo: bool) -> Row:
        with app.lessons(**_CHANGING) as lessons:
            _require_person_for_held(lessons, lesson_id)
            return lessons.mark(lesson_id, mark, is_set=not undo)


def _require_person_for_held(lessons: "Lessons", lesson_id: str) -> None:
    if lessons.show(lesson_id)["status"] == "quarantined":
        common.require_person("changing what waits (kr review)")


_marking("retire", "retired_at", "Stop giving a lesson to agents. Its line stays in the file.")
_marking("pin", "pinned_at", "Give a lesson before all others of its phase.")


@common.operation(
    "add",
    'kr lessons add "Rows mix without keys" --fix "Give rows a key" --tag vue',
    group=command,
    may_share=True,
)
@click.argument("symptom")
@click.option("--fix", required=True, help="What to do: one sentence of at most 120 characters.")
@click.option("--phase", default=DEFAULT_PHASE, show_default=True, help="Whose agents are to know it.")
@click.option("--tag", "tags", multiple=True, help="A framework that it is about; may be repeated.")
@click.option("--ref", help="The file that it is about, with its line: src/app.py:12.")
def add(app: "App", *, symptom: str, fix: str, phase: str, tags: tuple[str, ...], ref: str | None) -> Any:
    """Write a lesson yourself: what one sees, in some 60 characters, and what to do. Over KR_SERVER it is an agent's."""
    if os.environ.get("KR_SERVER"):
        lesson = {"symptom": symptom, "fix": fix, "ref": ref, "tags": tags}
        return app.record_lessons(json.dumps({**_identity(), "phase": phase, "lesson": lesson}).encode())
    _require_phase(app, phase)
    with app.lessons(**_CHANGING) as lessons:
        added = lessons.add(symptom, fix, phase=phase, tags=tags, ref=ref, by_person=common.is_person())
    if added["status"] == "quarantined":
        logger.warning("it waits for a person: %s; kr review", added["held_because"])
    return added


@common.operation("edit", 'kr lessons edit 2f1c9a7b "Rows mix" --fix "Give each row a key"', group=command)
@_ID
@click.argument("symptom")
@click.option("--fix", help="What to do, as with kr lessons add. Without it SYMPTOM is the whole lesson.")
def edit(app: "App", lesson_id: str, symptom: str, fix: str | None) -> Row:
    """Reword a lesson. The new line goes to the end of the file and takes the old one's place."""
    with app.lessons(**_CHANGING) as lessons:
        _require_person_for_held(lessons, lesson_id)
        return lessons.edit(lesson_id, symptom, fix, by_person=common.is_person())


@common.operation("import", "kr lessons import ../shop/lessons/_lessons-learned.md", group=command)
@click.argument("files", nargs=-1, required=True)
def import_(app: "App", files: tuple[str, ...]) -> dict[str, int]:
    """Add the lessons of other lessons files, those that are not known yet."""
    with app.lessons(**_CHANGING) as lessons:
        return lessons.import_files([*map(Path, files)])


# --- the hook of Claude Code

_HOOK_WAITS = {"timeout": 1.0, "lock_timeout": 2.5}
"""Seconds to wait for a busy database, and for others who record. A hook that takes longer is killed, and says nothing."""
_HOOK_EPILOG = """\b
Example, in .claude/settings.json, for SessionStart, SubagentStart,
PostToolUseFailure and SubagentStop:
  {"hooks": {"SubagentStart": [{"hooks":
    [{"type": "command", "command": "kr hook", "timeout": 10}]}]}}
"""


@common.kr_command(
    "hook",
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    epilog=_HOOK_EPILOG,
)
@click.option("--phase", envvar="KR_PHASE", help="The phase of agents whose type does not say it.")
@click.option("--story-key", envvar="KR_STORY_KEY", default="0-0", help="The story that is worked on.")
def hook(ctx: click.Context, /, phase: str | None, story_key: str) -> None:
    """Answer a Claude Code hook whose JSON comes on standard input. It fails open: the exit status is 0 whatever happens.

    SessionStart and SubagentStart get the lessons of the agent's phase, those that fit what the transcript says of its task;
    PostToolUseFailure and SubagentStop are recorded; an agent that returns a failure without lessons is asked once
    what it learned. An agent's phase follows from its type (dev, review, e2e, story), else from --phase or KR_PHASE, else it is
    dev-execution. The project is that of the event's cwd.
    """
    try:
        data = _read_event()
        event = read_hook(data, _tail)
        if event is None:
            return
        cwd = data.get("cwd")  # the hook itself may be started elsewhere
        if isinstance(cwd, str) and Path(cwd).is_absolute() and Path(cwd).is_dir():
            os.chdir(cwd)
        with common.open_app(ctx, may_share=True) as app:
            app.server_timeout = 3.0
            phase, allowed = event.phase or phase, app.settings.knowledge_research.all_phases
            if phase and phase not in allowed:
                _tell(f"unknown phase {phase!r} passed over; allowed: {', '.join(allowed)}")
            known = phase if phase in allowed else DEFAULT_PHASE
            identity = {"session_id": event.session_id, "story_key": story_key or "0-0"}
            answer = (_record if event.agent_return else _give)(app, event, known, identity)
        if answer is not None:
            click.echo(json.dumps(answer))  # ASCII, so that no locale stands between us and the reader
    except Exception as error:  # noqa: BLE001 - a hook that fails must not stop the agent
        _tell(str(error))


def _read_event() -> dict[str, Any]:
    try:
        data = json.loads(b"" if sys.stdin is None else sys.stdin.buffer.read())
    except (ValueError, RecursionError) as error:
        raise ValueError(f"standard input is no JSON: {error}") from error
    if not isinstance(data, dict):
        raise ValueError("standard input is no JSON object")  # noqa: TRY004 - like one that is broken
    return data


def _tell(problem: str) -> None:
    click.echo(f"kr hook: {problem}", err=True)


def _give(app: "App", event: HookEvent, phase: str, identity: dict[str, str]) -> dict[str, Any] | None:
    task = {"phase": phase, "query": event.query, "files": [*event.files]}
    envelope = app.research.inject({**identity, "lessons_inject": task})
    for problem in envelope.errors:
        _tell(problem.message)
    block = envelope.results["injection_block"] if envelope.status == "success" else ""
    context = {"hookEventName": event.name, "additionalContext": block.rstrip("\n")}
    return {"hookSpecificOutput": context} if block else None


def _record(app: "App", event: HookEvent, phase: str, identity: dict[str, str]) -> dict[str, Any] | None:
    """Record what a failure teaches. Who reports one without a lesson is asked for its words first, once."""
    from kr.lessons.record import evident_events, read_return  # heavy

    returned = event.agent_return or {}
    events = evident_events(phase, read_return(returned), app.settings)
    has_lessons = bool(returned.get("lessons") or returned.get("lesson"))
    if events and not has_lessons and event.may_ask:
        return {"decision": "block", "reason": ASK_FOR_LESSONS}
    if events or has_lessons:
        declared = events[0] if events else "general_agent_failure"
        request = {**identity, "phase": phase, "event_type": declared, "agent_return": returned}
        for problem in app.record_lessons(json.dumps(request).encode(), **_HOOK_WAITS).errors:
            _tell(problem.message)
    return None


def _tail(path: str) -> str:
    """Read the end of a transcript. A pipe or a device would keep the agent waiting: it is refused.

    A session that starts names a transcript that only its first message writes.
    """
    file = Path(path)
    if not file.exists():
        return ""
    if not file.is_file():
        raise OSError(f"{path} is not a regular file")
    with file.open("rb") as stream:
        stream.seek(max(file.stat().st_size - LOOKED_AT, 0))
        return stream.read(LOOKED_AT).decode(errors="replace")
