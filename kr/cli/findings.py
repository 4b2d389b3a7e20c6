"""``kr save``, ``kr rate`` and ``kr review``: what was found out goes back in, and what waits for a person (SPEC 3.10)."""

from typing import TYPE_CHECKING, Any

import click

from kr.cli.options import (
    TEXT,
    Group,
    common_options,
    completes,
    examples,
    is_person,
    open_app,
    read_request,
    request_option,
    schema_option,
    with_context,
)
from kr.cli.output import cell, emit, wrapped
from kr.errors import KrError
from kr.models import to_plain
from kr.text import counted

if TYPE_CHECKING:
    from kr.models import Writer

Row = dict[str, Any]

_MOST_LINES = 20
"""Of one text that waits; the others are seen with ``--format yaml``."""

_SESSION = click.option(
    "--session-id", type=TEXT, metavar="ID", help="The session of the agent that found it out."
)
_STORY = click.option(
    "--story-key", type=TEXT, metavar="KEY", help="The story it was found out for, such as 3-1."
)


def _writer(session_id: str | None) -> "Writer | None":
    """Return the person at the terminal; None for an agent, which names its session or has none."""
    if session_id is not None or not is_person():
        return None
    from kr.models import person

    return person()


@click.command(
    "save",
    epilog=examples(
        "kr save zod \"How do I reject unknown keys?\" --file - <<'END'",
        "Use z.strictObject(…): unknown keys are errors then.",
        "END",
        "kr save --request finding.yaml",
        'kr save zod "Strict objects?" --file b.md --entry zod-reject-unknown-keys',
        'kr save zod "Strict objects?" --answer "…" --code-file strict.ts \\',
        '  --caveats "not of version 3" --verified-by "npm test" --session-id s-1',
    ),
)
@click.argument("framework", type=TEXT, required=False, shell_complete=completes("framework"))
@click.argument("question", type=TEXT, required=False)
@click.option(
    "--file",
    "answer_file",
    type=TEXT,
    metavar="FILE|-",
    help="Read the answer, or a whole report, from a file or standard input.",
)
@click.option("--answer", type=TEXT, help="The answer, in a sentence or two.")
@click.option("--code", type=TEXT, help="The snippet that proved it.")
@click.option("--code-file", type=TEXT, metavar="FILE", help="Read the snippet from a file.")
@click.option("--caveats", type=TEXT, help="What bites.")
@click.option(
    "--source",
    "sources",
    type=TEXT,
    multiple=True,
    metavar="URL|PATH",
    help="Where it is from; may be repeated.",
)
@click.option("--verified-by", type=TEXT, help="What proved it: a test, a command, production.")
@click.option("--framework-version", type=TEXT, help="Default: the project's.")
@click.option("--topic", type=TEXT, help="Default: from the question.")
@click.option("--tag", "tags", type=TEXT, multiple=True, help="May be repeated. Default: from the topic.")
@click.option(
    "--entry",
    type=TEXT,
    metavar="ID",
    shell_complete=completes("entry_id"),
    help="The entry that it answers or improves.",
)
@_STORY
@_SESSION
@request_option
@schema_option("finding_request")
@with_context
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

    QUESTION is what somebody would ask. The answer is Markdown, or a whole report of kr's template; with code and caveats at most
    1,200 tokens. An entry of the same topic gets it as its new text, and the earlier one stays in its history; --entry names
    another one. What gives its reader orders, or switches a safeguard off, waits for a person: `kr review`.
    """
    if document is not None:
        if framework is not None:
            raise click.UsageError("give a request, or FRAMEWORK and QUESTION, not both.")
        return _save_document(ctx, document)
    if framework is None or question is None:
        raise click.UsageError("FRAMEWORK and QUESTION are needed (or --request).")
    if (answer_file is None) == (given["answer"] is None):
        raise click.UsageError("give the answer with --file or with --answer.")
    data = {"framework": framework, "question": question, **given}
    if answer_file is not None:
        data["answer"] = _text_of(answer_file)
    if code_file is not None:
        data["code"] = _text_of(code_file)
    with open_app(ctx, may_share=True) as app:
        value = to_plain(app.save_finding(data, _writer(given["session_id"])))
    emit(value, ctx, saved_view)
    return 1 if value["status"] == "failure" else 0


def _text_of(source: str) -> str:
    content = read_request(source)
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise KrError(f"{source}: is not UTF-8 text: byte {error.start + 1}") from error


def _save_document(ctx: click.Context, document: str) -> int:
    from kr.envelopes import save_failure
    from kr.errors import InvalidRequest
    from kr.fields import read_document

    with open_app(ctx, may_share=True) as app:
        try:
            read = read_document(read_request(document))
            value = to_plain(app.save_finding(read))
        except InvalidRequest as error:
            value = to_plain(save_failure(error.fields))
    emit(value, ctx, saved_view)
    return 1 if value["status"] == "failure" else 0


def saved_view(value: Row) -> str:
    results = value["results"]
    lines = [click.style(value["status"], bold=True)]
    lines += [
        f"  {click.style('error', fg='red')}  {it['field']}: {it['message'].removeprefix('Validation failed: ')}"
        for it in value["errors"]
    ]
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


@click.command(
    "rate",
    epilog=examples(
        "kr rate zod-reject-unknown-keys --worked",
        'kr rate zod-reject-unknown-keys --wrong --note "gone in version 4"',
    ),
)
@click.argument("entry_id", metavar="ID", type=TEXT, shell_complete=completes("entry_id"))
@click.option("--worked", is_flag=True, help="It worked: it is confirmed, and fresh again.")
@click.option("--wrong", is_flag=True, help="It is wrong: it is served to nobody, and shown with the note.")
@click.option("--note", type=TEXT, help="What is wrong, in a sentence.")
@_STORY
@_SESSION
@with_context
def rate(ctx: click.Context, /, entry_id: str, *, worked: bool, wrong: bool, **given: Any) -> None:
    """Say whether the report of entry ID worked.

    A session counts once for a text, by its last word. A new text begins anew.
    """
    if worked == wrong:
        raise click.UsageError("say --worked or --wrong, one of them.")
    given["outcome"] = "worked" if worked else "wrong"
    with open_app(ctx, may_share=True) as app:
        value = to_plain(app.rate_report(entry_id, given, _writer(given["session_id"])))
    emit(value, ctx, rated_view)


def rated_view(value: Row) -> str:
    said = f"{value['id']}  worked for {value['worked']}, wrong for {value['wrong']}; confidence {value['confidence']}"
    return f"{said}\n  it is served to nobody until it is improved" if value["withdrawn"] else said


@click.group(
    "review",
    cls=Group,
    invoke_without_command=True,
    epilog=examples("kr review", "kr review approve held-1f2e3d4c5b6a"),
)
@common_options
@click.pass_context
def review(ctx: click.Context) -> None:
    """Show what waits for a person: findings and lessons that were held back, reports rated wrong, candidates nobody chose from."""
    if ctx.invoked_subcommand is None:
        with open_app(ctx, only_reads=True) as app:
            value = app.review()
        emit(value, ctx, review_view)


_ID = click.argument("finding_id", metavar="ID", type=TEXT)


@review.command("approve", epilog=examples("kr review approve held-1f2e3d4c5b6a"))
@_ID
@with_context
def approve(ctx: click.Context, /, finding_id: str) -> int:
    """Save a finding, or record a lesson, that was held back. At a terminal only."""
    _require_person("approve")
    with open_app(ctx) as app:
        value = app.approve(finding_id)
    emit(value, ctx, saved_view if "results" in value else _plain_view)
    return 0


@review.command("reject", epilog=examples("kr review reject held-1f2e3d4c5b6a"))
@_ID
@with_context
def reject(ctx: click.Context, /, finding_id: str) -> int:
    """Drop a finding, or a lesson, that was held back. At a terminal only."""
    _require_person("reject")
    with open_app(ctx) as app:
        value = app.reject(finding_id)
    emit(value, ctx, _plain_view)
    return 0


def _plain_view(value: Row) -> str:
    return f"done: {value.get('id', '')}"


def _require_person(what: str) -> None:
    if not is_person():
        raise KrError(
            f"kr review {what} works at a terminal alone: what was held back is for a person to read"
        )


def review_view(value: Row) -> str:
    """Say what waits, kind by kind: what it is, why it waits, and the text itself."""
    held = [*_held_lines(value["quarantined"]), *_lesson_lines(value["lessons"])]
    if held:
        held += ["", "kr review approve ID lets one through, kr review reject ID drops it.", ""]
    lines = [*held, *_wrong_lines(value["wrong"]), *_open_lines(value["candidates"])]
    more = value["open_candidates"] - len(value["candidates"])
    if more > 0:
        lines.append(f"and {counted(more, 'more question')} for which nobody chose")
    return "\n".join(lines).rstrip() or "Nothing waits for a person."


def _held_lines(findings: list[Row]) -> list[str]:
    lines: list[str] = []
    for it in findings:
        about = f"{it['framework']}: {it['question']}"
        lines += wrapped(
            f"{click.style(it['id'], bold=True)}  finding by {it['written_by']}: ", about, indent=4
        )
        lines += wrapped("  held back: it ", "; ".join(it["reasons"]), indent=4)
        for name in ("answer", "code", "caveats", "verified_by", "sources", "topic", "tags"):
            lines += _quoted(name, it["finding"].get(name))
    return lines


def _quoted(name: str, said: Any) -> list[str]:
    text = "\n".join(said) if isinstance(said, list) else said or ""
    if not text.strip():
        return []
    shown = text.splitlines()
    lines = [f"  {name}:", *(f"  | {cell(line)}" for line in shown[:_MOST_LINES])]
    left = len(shown) - _MOST_LINES
    return [*lines, f"  | … {counted(left, 'more line')}: --format yaml"] if left > 0 else lines


def _lesson_lines(lessons: list[Row]) -> list[str]:
    lines: list[str] = []
    for it in lessons:
        lines += wrapped(
            f"{click.style(it['id'], bold=True)}  lesson for {it['phase']}: ", it["summary"], indent=4
        )
    return lines


def _wrong_lines(entries: list[Row]) -> list[str]:
    if not entries:
        return []
    lines = ["Rated wrong; served to nobody until somebody improves it (kr save … --entry ID):"]
    for it in entries:
        lines += wrapped(
            f"  {click.style(it['id'], bold=True)}  by {it['wrong']} of {it['wrong'] + it['worked']}: ",
            it["question"],
            indent=4,
        )
        for note in it["notes"]:
            lines += wrapped(f"    {note['by']}: ", note["note"] or "no note", indent=6)
    return [*lines, ""]


def _open_lines(needs: list[Row]) -> list[str]:
    if not needs:
        return []
    lines = ["Asked, and nobody chose what was offered (kr research … --use ID answers it from then on):"]
    for it in needs:
        lines += wrapped(f"  {counted(it['asked'], 'time')}  {it['framework']}: ", it["question"], indent=4)
        lines += wrapped("    offered: ", ", ".join(it["candidates"]), indent=6)
    return lines
