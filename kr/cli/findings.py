"""``kr save``, ``kr rate`` and ``kr review``: what was found out goes back in, and what waits for a person."""

from pathlib import Path
from typing import Any

import click

from kr.cli.common import (
    cell,
    emit,
    facts_view,
    is_person,
    kr_command,
    kr_group,
    open_app,
    read_request,
    request_option,
    schema_option,
    wrapped,
)
from kr.errors import KrError
from kr.models import Writer, person, to_plain
from kr.schemas import finding_request
from kr.text import fenced

Row = dict[str, Any]

_SESSION = click.option("--session-id", metavar="ID", help="The session of the agent.")
_STORY = click.option("--story-key", metavar="KEY", help="The story that you work on, such as 3-1.")
_ENTRY = click.argument("entry_id", metavar="ID")


def _writer(session_id: str | None) -> Writer | None:
    """Return the person at the terminal; None for an agent, which names its session or has none."""
    return person() if session_id is None and is_person() else None


@kr_command(
    "save",
    "kr save zod \"How do I reject unknown keys?\" --file - <<'END'",
    "Use z.strictObject(…): unknown keys are errors then.",
    "END",
    "kr save --request finding.yaml",
    'kr save zod "Strict objects?" --file b.md --entry zod-reject-unknown-keys',
    'kr save zod "Strict objects?" --answer "Use z.strictObject." \\',
    '  --code-file strict.ts --verified-by "npm test" --session-id s-1',
)
@click.argument("framework", required=False)
@click.argument("question", required=False)
@click.option(
    "--file",
    "answer_file",
    metavar="FILE|-",
    help="Read the answer, or a whole report, from a file or standard input.",
)
@click.option("--answer", help="The answer, in a sentence or two.")
@click.option("--code", help="The snippet that proved it.")
@click.option("--code-file", metavar="FILE", help="Read the snippet from a file.")
@click.option("--caveats", help="What to watch out for.")
@click.option("--source", "sources", multiple=True, metavar="URL|PATH", help="Where it is from; repeatable.")
@click.option("--verified-by", help="What proved it: a test, a command, production.")
@click.option("--framework-version", help="Default: the project's.")
@click.option("--topic", help="Default: from the question.")
@click.option("--tag", "tags", multiple=True, help="May be repeated. Default: from the topic.")
@click.option("--entry", metavar="ID", help="The entry that it answers or improves.")
@_STORY
@_SESSION
@request_option
@schema_option(finding_request)
def save(
    ctx: click.Context,
    /,
    framework: str | None,
    question: str | None,
    document: str | None,
    *,
    answer_file: str | None,
    code_file: str | None,
    **given: Any,
) -> int:
    """Keep what you found out about FRAMEWORK and proved, so that whoever asks next has it.

    QUESTION is what somebody would ask. The answer is Markdown, or a whole report of kr's template; with code and
    caveats at most 1,200 tokens. An entry of the same topic, or the one that --entry names, gets it as its new text;
    the earlier text stays in its history. What gives orders to its reader, or switches a safeguard off, waits for a
    person: kr review.
    """
    if [framework, question].count(None) != (0 if document is None else 2):
        raise click.UsageError("give FRAMEWORK and QUESTION, or --request, not both.")
    if document is None and (answer_file is None) == (given["answer"] is None):
        raise click.UsageError("give the answer with --file or with --answer, one of them.")
    with open_app(ctx, may_share=True) as app:
        if document is not None:
            envelope = app.save_finding(read_request(document))
        else:
            data = {"framework": framework, "question": question, **given}
            if answer_file is not None:
                data["answer"] = _text_of(answer_file)
            if code_file is not None:
                ending = Path(code_file).suffix[1:]
                data["code"] = fenced(_text_of(code_file).strip("\n"), ending if ending.isalnum() else "")
            envelope = app.save_finding(data, _writer(given["session_id"]))
    value = to_plain(envelope)
    emit(value, ctx, _saved_view)
    return 1 if value["status"] == "failure" else 0


def _text_of(source: str) -> str:
    try:
        return read_request(source).decode()
    except UnicodeDecodeError as error:
        raise KrError(f"{source}: is not UTF-8 text: byte {error.start + 1}") from error


def _saved_view(value: Row) -> str:
    results = value["results"]
    lines = [click.style(value["status"], bold=True)]
    for it in value["errors"]:
        message = it["message"].removeprefix("Validation failed: ")
        lines.append(f"  {click.style('error', fg='red')}  {it['field']}: {message}")
    if results is None:
        return "\n".join(lines)
    lines[0] += f"  {results['id']}"
    if results["revision"] is not None:
        lines[0] += f"  revision {results['revision']}, confidence {results['confidence']}"
    for note in results["notes"]:
        lines += wrapped(f"  {click.style('note', fg='yellow')}  ", note, indent=4)
    if results["related"]:
        lines.append("  may say the same (--entry ID improves one instead):")
    for item in results["related"]:
        lines += wrapped(f"    {item['id']}  ", item["question"] or item["topic"], indent=6)
    return "\n".join(lines)


@kr_command("rate", 'kr rate zod-reject-unknown-keys --wrong --note "gone in version 4"')
@_ENTRY
@click.option("--worked", is_flag=True, help="It worked: it is confirmed, and fresh again.")
@click.option("--wrong", is_flag=True, help="It is wrong: it is served to nobody, and shown with the note.")
@click.option("--note", help="What is wrong, in a sentence.")
@_STORY
@_SESSION
def rate(ctx: click.Context, /, entry_id: str, *, worked: bool, wrong: bool, **given: Any) -> None:
    """Say whether the report of entry ID worked.

    Of each session the last rating of a text counts. Ratings are of the text that stands now: a new one has none.
    """
    if worked == wrong:
        raise click.UsageError("say --worked or --wrong, one of them.")
    given["outcome"] = "worked" if worked else "wrong"
    with open_app(ctx, may_share=True) as app:
        value = to_plain(app.rate_report(entry_id, given, _writer(given["session_id"])))
    emit(value, ctx, _rated_view)


def _rated_view(value: Row) -> str:
    counts = f"worked for {value['worked']}, wrong for {value['wrong']}"
    line = f"{value['id']}  {counts}; confidence {value['confidence']}"
    return f"{line}\n  it is served to nobody until it is improved" if value["withdrawn"] else line


@kr_group("review", "kr review", "kr review approve held-1f2e3d4c5b6a", invoke_without_command=True)
@click.pass_context
def review(ctx: click.Context) -> None:
    """Show what waits for a person: what was held back, reports rated wrong, and questions that no entry was chosen for."""
    if ctx.invoked_subcommand is None:
        with open_app(ctx, only_reads=True) as app:
            value = app.review()
        emit(value, ctx, _review_view)


@kr_command("approve", "kr review approve held-1f2e3d4c5b6a", group=review)
@_ENTRY
def approve(ctx: click.Context, /, entry_id: str) -> None:
    """Save a finding, or record a lesson, that was held back. At a terminal only."""
    _require_person("approve")
    with open_app(ctx) as app:
        value = app.decide(entry_id, is_approved=True)
    emit(value, ctx, _saved_view if "results" in value else facts_view)


@kr_command("reject", "kr review reject held-1f2e3d4c5b6a", group=review)
@_ENTRY
def reject(ctx: click.Context, /, entry_id: str) -> None:
    """Drop a finding, or a lesson, that was held back. At a terminal only."""
    _require_person("reject")
    with open_app(ctx) as app:
        value = app.decide(entry_id, is_approved=False)
    emit(value, ctx, facts_view)


def _require_person(command: str) -> None:
    if not is_person():
        raise KrError(
            f"kr review {command} works at a terminal alone: a person is to read what was held back"
        )


def _review_view(value: Row) -> str:
    """Show what waits, kind by kind: what it is, why it waits, and the text itself."""
    lines: list[str] = []
    for it in value["quarantined"]:
        lines += _held_finding(it)
    for it in value["lessons"]:
        lines += wrapped(f"{it['id']}  lesson for {it['phase']}: ", it["summary"], indent=4)
    if lines:
        lines += ["", "kr review approve ID lets one through, kr review reject ID drops it.", ""]
    if value["wrong"]:
        lines.append("Rated wrong; served to nobody until somebody improves it (kr save … --entry ID):")
    for it in value["wrong"]:
        by = f"by {it['wrong']} of {it['wrong'] + it['worked']}"
        lines += wrapped(f"  {it['id']}  {by}: ", it["question"], indent=4)
        for note in it["notes"]:
            lines += wrapped(f"    {note['by']}: ", note["note"] or "no note", indent=6)
    return "\n".join(lines).rstrip() or "Nothing waits for a person."


def _held_finding(it: Row) -> list[str]:
    about = f"{it['framework']}: {it['question']}"
    lines = wrapped(f"{it['id']}  finding by {it['written_by']}: ", about, indent=4)
    lines += wrapped("  held back: it ", "; ".join(it["reasons"]), indent=4)
    for name in ("answer", "code", "caveats", "verified_by", "sources", "topic", "tags"):
        found = it["finding"].get(name)
        text = "\n".join(found) if isinstance(found, list) else found
        if text:
            lines += [f"  {name}:", *(f"  | {cell(line)}" for line in text.strip().splitlines())]
    return lines
