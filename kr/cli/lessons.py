"""``kr lessons``: hand lessons to agents, record what their failures teach, and look at them."""

import json
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kr.cli.common import (
    answer_request,
    at_most,
    emit,
    facts_view,
    is_person,
    kr_command,
    kr_group,
    open_app,
    read_request,
    request_option,
    schema_option,
    some_words,
    together,
    warn,
    wrapped,
)
from kr.errors import KrError
from kr.models import to_plain
from kr.schemas import inject_request, record_request
from kr.text import counted

if TYPE_CHECKING:
    from kr.lessons.review import Lessons
    from kr.store.lessons import LessonMark

_CHANGE_TIMEOUT = 60.0
"""Seconds that a change waits for a busy database."""


@kr_group(
    "lessons",
    "kr lessons inject --phase code-review --framework vue --query paging",
    "kr lessons record --request return.yaml",
    'kr lessons add "Rows stay blank" --fix "Set the row height" --tag vue',
    'kr lessons search "row height"',
)
def command() -> None:
    """Lessons that agents learned from failures, in an append-only Markdown file."""


@kr_command(
    "inject",
    "kr lessons inject --phase dev-execution --framework vue --query paging",
    "kr lessons inject --request request.yaml --format json",
    group=command,
)
@request_option
@click.option(
    "--phase",
    help="story-creation, story-review, dev-execution, code-review, e2e-inspection, or one of your own (phases).",
)
@click.option("--story-key", help="The story that the agent works on. Default: 0-0.")
@click.option("--session-id", help="The session that the story belongs to. Default: a new one.")
@click.option(
    "--query",
    help="What the agent is about to do, and every language, framework and tool it touches: only lessons that fit are given.",
)
@click.option("--framework", help="Give lessons about this framework, and of packages that it depends on.")
@click.option("--file", "files", multiple=True, help="A file that the agent works on; may be repeated.")
@schema_option(inject_request)
def inject(
    ctx: click.Context,
    /,
    *,
    document: str | None,
    phase: str | None,
    story_key: str | None,
    session_id: str | None,
    **task: Any,
) -> int:
    """Give the lessons of a phase, for an agent that is about to start."""
    if not phase if document is None else (phase or story_key or session_id):
        raise click.UsageError("Give --phase, or --request FILE that has it.")
    need = {name: value for name, value in task.items() if value}
    with open_app(ctx, may_share=True) as app:
        if document is not None:
            envelope = answer_request(document, lambda data: app.research.inject(data, need))
        else:
            identity = _identity(story_key, session_id)
            envelope = app.research.inject({**identity, "lessons_inject": {"phase": phase, **need}})
    value = to_plain(envelope)
    emit(value, ctx, injection_view)
    return 1 if value["status"] == "failure" else 0


def _identity(story_key: str | None = None, session_id: str | None = None) -> dict[str, str]:
    session = session_id or f"terminal-{uuid.uuid4().hex}"
    return {"story_key": story_key or "0-0", "session_id": session}


@kr_command("record", "kr lessons record --request return.yaml", group=command)
@request_option
@schema_option(record_request)
def record(ctx: click.Context, /, document: str | None) -> None:
    """Record what an agent's return teaches.

    The exit status is 0 whatever becomes of it, without a request too: recording never stops its caller.
    """
    from kr.lessons.record import confirmation, skip  # heavy

    try:
        data = read_request(document) if document else b""
        with open_app(ctx, may_share=True) as app:
            envelope = app.record_lessons(data)
    except (KrError, OSError, ValueError) as error:
        warn(f"nothing is recorded: {error}")
        envelope = skip({}, f"Recording skipped: {error}")
    if line := confirmation(envelope):
        click.echo(line, err=True)
    emit(to_plain(envelope), ctx, _recording)


@contextmanager
def _open(ctx: click.Context, *, phase: str | None = None, is_change: bool = False) -> Iterator["Lessons"]:
    """Open the project's lessons, to look at or to change them; ``phase`` must be one of the project's."""
    waits = {"timeout": _CHANGE_TIMEOUT} if is_change else {}
    with open_app(ctx, only_reads=not is_change) as app, app.lessons(**waits) as lessons:
        phases = app.settings.knowledge_research.all_phases
        if phase not in {None, *phases}:
            raise click.BadParameter(f"{phase!r} is not one of {', '.join(phases)}.", param_hint="--phase")
        yield lessons


_listing = together(
    click.option("--phase", help="Only lessons of this phase."),
    click.option(
        "--limit", type=click.IntRange(min=1), default=100, show_default=True, help="Lessons at most."
    ),
)


def _list(ctx: click.Context, phase: str | None, limit: int, query: str = "") -> None:
    with _open(ctx, phase=phase) as lessons:
        found = lessons.lessons(phase=phase, query=query, limit=limit + 1)
    emit(at_most(limit, found), ctx, listing_view)


@kr_command("list", "kr lessons list --phase dev-execution --limit 20", group=command)
@_listing
def list_(ctx: click.Context, /, phase: str | None, limit: int) -> None:
    """List lessons, the newest first: how often each was given, and how often its failure came back."""
    _list(ctx, phase, limit)


@kr_command("search", 'kr lessons search "row height"', group=command)
@click.argument("words", nargs=-1, required=True)
@_listing
def search(ctx: click.Context, /, words: tuple[str, ...], phase: str | None, limit: int) -> None:
    """Find lessons by WORDS, the most relevant first."""
    _list(ctx, phase, limit, some_words(words))


_ID = click.argument("lesson_id", metavar="ID")


@kr_command("show", "kr lessons show 2f1c9a7b", group=command)
@_ID
def show(ctx: click.Context, /, lesson_id: str) -> None:
    """Show one lesson with everything that is known of it."""
    with _open(ctx) as lessons:
        _emit_one(lessons.show(lesson_id), ctx)


def _emit_one(lesson: dict[str, Any], ctx: click.Context) -> None:
    emit(lesson, ctx, lambda it: listing_view([it]))


def _marking(name: str, mark: "LessonMark", summary: str) -> None:
    """Make the command that sets a mark, and takes it off with --undo."""

    @kr_command(name, f"kr lessons {name} 2f1c9a7b", group=command, help=summary)
    @_ID
    @click.option("--undo", is_flag=True, help="Take it back.")
    def change(ctx: click.Context, /, lesson_id: str, *, undo: bool) -> None:
        with _open(ctx, is_change=True) as lessons:
            _require_person_for_held(lessons, lesson_id)
            _emit_one(lessons.mark(lesson_id, mark, is_set=not undo), ctx)


def _require_person_for_held(lessons: "Lessons", lesson_id: str) -> None:
    if not is_person() and lessons.show(lesson_id)["status"] == "quarantined":
        raise KrError("it was held back, and waits for a person at a terminal: kr review")


_marking("retire", "retired_at", "Stop giving a lesson to agents. Its line stays in the file.")
_marking("pin", "pinned_at", "Give a lesson before all others of its phase.")


@kr_command("add", 'kr lessons add "Rows mix without keys" --fix "Give rows a key" --tag vue', group=command)
@click.argument("symptom")
@click.option("--fix", required=True, help="What to do: one sentence of at most 120 characters.")
@click.option(
    "--phase", default="dev-execution", show_default=True, help="The phase whose agents are to know it."
)
@click.option("--tag", "tags", multiple=True, help="A framework that it is about; may be repeated.")
@click.option("--ref", help="The file that it is about, with its line: src/app.py:12.")
def add(
    ctx: click.Context, /, *, symptom: str, fix: str, phase: str, tags: tuple[str, ...], ref: str | None
) -> None:
    """Write a lesson yourself: what one sees, in some 60 characters, and what to do. KR_SERVER takes it as a session's."""
    if os.environ.get("KR_SERVER"):
        lesson = {"symptom": symptom, "fix": fix, "ref": ref, "tags": tags}
        request = {**_identity(), "phase": phase, "lesson": lesson}
        with open_app(ctx, may_share=True) as app:
            envelope = app.record_lessons(json.dumps(request).encode())
        emit(to_plain(envelope), ctx, _recording)
        return
    with _open(ctx, phase=phase, is_change=True) as lessons:
        added = lessons.add(symptom, fix, phase=phase, tags=tags, ref=ref, by_person=is_person())
    if added["status"] == "quarantined":
        warn(f"it waits for a person: {added['held_because']}; kr review")
    _emit_one(added, ctx)


@kr_command("edit", 'kr lessons edit 2f1c9a7b "Rows mix" --fix "Give each row a key"', group=command)
@_ID
@click.argument("symptom")
@click.option("--fix", help="What to do, as with kr lessons add. Without it SYMPTOM is the whole lesson.")
def edit(ctx: click.Context, /, lesson_id: str, symptom: str, fix: str | None) -> None:
    """Reword a lesson. The new line goes to the end of the file and takes the old one's place."""
    with _open(ctx, is_change=True) as lessons:
        _require_person_for_held(lessons, lesson_id)
        _emit_one(lessons.edit(lesson_id, symptom, fix, by_person=is_person()), ctx)


@kr_command("import", "kr lessons import ../shop/lessons/_lessons-learned.md", group=command)
@click.argument("files", nargs=-1, required=True)
def import_(ctx: click.Context, /, files: tuple[str, ...]) -> None:
    """Add the lessons of other lessons files, those that are not known yet."""
    with _open(ctx, is_change=True) as lessons:
        emit(lessons.import_files([*map(Path, files)]), ctx, facts_view)


def injection_view(value: dict[str, Any]) -> str:
    results = value["results"]
    if results is None:
        return "\n".join([click.style(value["status"], bold=True), *_problems(value)])
    if not results["injected_count"]:
        of_phase = counted(results["phase_filtered_count"], "lesson")
        return f"None is given: {of_phase} of {results['phase']}, {results['total_lessons_found']} in all, and none fits this task."
    return str(results["injection_block"])


def _recording(value: dict[str, Any]) -> str:
    results = value["results"]
    lines = [f"{click.style(value['status'], bold=True)}  {results.get('message', results['file_path'])}"]
    lines += [f"  [{entry['phase']}] {entry['summary']}" for entry in results["recorded_entries"]]
    return "\n".join([*lines, *_problems(value)])


def _problems(value: dict[str, Any]) -> list[str]:
    return [f"{click.style('error', fg='red')} {problem['message']}" for problem in value["errors"]]


def listing_view(lessons: list[dict[str, Any]]) -> str:
    lines: list[str] = []
    for lesson in lessons:
        ref = f". Ref: {lesson['ref']}" if lesson["ref"] else ""
        text = f"[{', '.join(lesson['tags'])}] {lesson['summary']}{ref}"
        lines += wrapped(f"{lesson['id']}  {lesson['date']} ", text, indent=4)
        held = f": {lesson['held_because']}" if lesson["status"] == "quarantined" else ""
        given, back = (counted(lesson[name], "time") for name in ("injected", "recurred"))
        although = f"{lesson['recurred_after_injection']} although given"
        proof = f"{lesson['status']}{held}; given {given}; came back {back}, {although}"
        lines += wrapped("    ", proof, indent=4)
    return "\n".join(lines) or "No lessons."
