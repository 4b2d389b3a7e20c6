"""``kr search``, ``entries``, ``archive``, ``save``, ``rate`` and ``review``: what is known, and what people and agents change of it."""

from pathlib import Path
from typing import Any

import click

from kr.cli.common import (
    at_most,
    emit,
    emit_envelope,
    framework_option,
    given_request,
    identity_options,
    is_person,
    kr_command,
    kr_group,
    limit_option,
    open_app,
    question_options,
    read_request,
    readable,
    request_option,
    require_person,
    some_words,
)
from kr.errors import KrError
from kr.models import Writer, person, to_plain
from kr.schemas import finding_request
from kr.text import fenced

Row = dict[str, Any]

LISTED = "id question topic framework framework_version status confidence last_accessed"
ARCHIVED = "id question topic framework framework_version archive_id reason archived_at"
_ENTRY = click.argument("entry_id", metavar="ID")
_REPORT = click.option("--report", is_flag=True, help="Give the report's text too.")


@kr_command("search", "kr search repeatable option", "kr search --framework vue virtual scroll --limit 3")
@click.argument("words", nargs=-1, required=True)
@framework_option
@limit_option(10)
def search(ctx: click.Context, /, words: tuple[str, ...], framework: str | None, limit: int) -> None:
    """Find WORDS in topics, tags, questions, reports and lessons, the best first, each with the passage.

    What holds only some of the words comes last. kr entries show ID --report shows a whole report.
    """
    query = some_words(words)
    with open_app(ctx, may_share=True, only_reads=True) as app:
        found = app.search_all(query, framework=framework, limit=limit + 1)
    emit({name: at_most(limit, rows) for name, rows in found.items()}, ctx)


@kr_group(
    "entries",
    "kr entries list --framework vue --status stale",
    "kr entries show vue-slots --report",
    "kr entries restore vue-slots 2",
)
def command() -> None:
    """Look through the index, and change it by hand.

    An unknown id is an error that names the nearest ones.
    """


@kr_command("list", "kr entries list --framework vue --status stale --limit 20", group=command)
@framework_option
@click.option(
    "--status",
    type=click.Choice(["fresh", "stale", "withdrawn"]),
    help="Entries of this status, as of today; withdrawn: rated wrong.",
)
@limit_option()
def list_entries(ctx: click.Context, /, limit: int | None, **wanted: Any) -> None:
    """List the entries, the last accessed first."""
    with open_app(ctx, may_share=True, only_reads=True) as app:
        found = app.entries(**wanted, limit=limit and limit + 1)["entries"]
    emit(at_most(limit, found), ctx, columns=LISTED)


@kr_command("show", "kr entries show vue-slots --report", group=command)
@_ENTRY
@_REPORT
def show(ctx: click.Context, /, entry_id: str, *, report: bool) -> None:
    """Show one entry: what is known of it, and why it is stale."""
    with open_app(ctx, may_share=True, only_reads=True) as app:
        emit(app.entry(entry_id, report=report), ctx, _with_report)


def _with_report(value: Row) -> list[str]:
    """Show an entry, and its report as it stands."""
    lines = readable({name: it for name, it in value.items() if name != "report"})
    return [*lines, "", value["report"] or "Its text is lost."] if "report" in value else lines


@kr_command("remove", "kr entries remove vue-slots vue-watchers", group=command)
@click.argument("entry_ids", metavar="ID...", nargs=-1, required=True)
def remove(ctx: click.Context, /, entry_ids: tuple[str, ...]) -> None:
    """Move entries to the archive: all that are named, or none when one is unknown.

    The report's text is kept; kr archive restore ID brings the entry back.
    """
    with open_app(ctx) as app:
        emit(app.catalog.remove(entry_ids), ctx)


@kr_command("history", "kr entries history vue-slots --revision 1", group=command)
@_ENTRY
@click.option("--revision", type=int, metavar="N", help="Give the text of revision N.")
def history(ctx: click.Context, /, entry_id: str, revision: int | None) -> None:
    """List the texts that an entry's report had before, the oldest first."""
    with open_app(ctx) as app:
        catalog = app.catalog
        emit(catalog.history(entry_id) if revision is None else catalog.revision(entry_id, revision), ctx)


@kr_command("restore", "kr entries history vue-slots", "kr entries restore vue-slots 1", group=command)
@_ENTRY
@click.argument("revision", type=int)
def restore(ctx: click.Context, /, entry_id: str, revision: int) -> None:
    """Bring an earlier text of an entry back; the present one becomes a revision itself.

    To bring an archived entry back, see kr archive restore.
    """
    with open_app(ctx) as app:
        emit(app.catalog.restore_revision(entry_id, revision), ctx)


@kr_group("archive", "kr archive list --reason manual", "kr archive restore vue-slots")
def archive() -> None:
    """Look through the archive, and bring entries back."""


@kr_command("list", "kr archive list --framework vue --reason lru", group=archive)
@framework_option
@click.option(
    "--reason",
    type=click.Choice(["lru", "age", "manual"]),
    help="Evicted for room, not accessed for too long, or removed by hand.",
)
@limit_option()
def list_archive(ctx: click.Context, /, limit: int | None, **wanted: Any) -> None:
    """List the archived entries, the last archived first."""
    with open_app(ctx, only_reads=True) as app:
        found = app.catalog.archive(**wanted, limit=limit and limit + 1)
    emit(at_most(limit, found), ctx, columns=ARCHIVED)


_NUMBER = click.option(
    "--archive-id", type=int, metavar="N", help="Which one, by its number in kr archive list."
)


@kr_command("show", "kr archive show vue-slots --archive-id 7 --report", group=archive)
@_ENTRY
@_NUMBER
@_REPORT
def show_archived(ctx: click.Context, /, entry_id: str, **wanted: Any) -> None:
    """Show one archived entry: its row, when and why it left. Of several of one id the last archived."""
    with open_app(ctx) as app:
        emit(app.catalog.archived(entry_id, **wanted), ctx, _with_report)


@kr_command("restore", "kr archive restore vue-slots --archive-id 7 --replace", group=archive)
@_ENTRY
@_NUMBER
@click.option("--replace", "replace_live", is_flag=True, help="Archive the live entry of this id first.")
def restore_archived(ctx: click.Context, /, entry_id: str, **wanted: Any) -> None:
    """Make an archived entry live and fresh again, with its own text at its path.

    Of several of one id the last archived comes back; a placeholder comes back stale. The index stays within its
    capacity: the entry accessed longest ago may leave it.
    """
    with open_app(ctx) as app:
        emit(app.catalog.restore(entry_id, **wanted), ctx)


# --- findings


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
@question_options
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
@click.option("--entry", metavar="ID", help="The entry that it answers or improves.")
@identity_options
@request_option(finding_request)
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
    request = given_request(document, framework, question, given)
    with open_app(ctx, may_share=True) as app:
        if isinstance(request, bytes):
            return emit_envelope(app.save_finding(request), ctx)
        if (answer_file is None) == (given["answer"] is None):
            raise click.UsageError("give the answer with --file or with --answer, one of them.")
        if answer_file is not None:
            request["answer"] = _text_of(answer_file)
        if code_file is not None:
            ending = Path(code_file).suffix[1:]
            request["code"] = fenced(_text_of(code_file).strip("\n"), ending if ending.isalnum() else "")
        return emit_envelope(app.save_finding(request, _writer(given["session_id"])), ctx)


def _text_of(source: str) -> str:
    try:
        return read_request(source).decode()
    except UnicodeDecodeError as error:
        raise KrError(f"{source}: is not UTF-8 text: byte {error.start + 1}") from error


@kr_command("rate", 'kr rate zod-reject-unknown-keys --wrong --note "gone in version 4"')
@_ENTRY
@click.option("--worked", is_flag=True, help="It worked: it is confirmed, and fresh again.")
@click.option("--wrong", is_flag=True, help="It is wrong: it is served to nobody, and shown with the note.")
@click.option("--note", help="What is wrong, in a sentence.")
@identity_options
def rate(ctx: click.Context, /, entry_id: str, *, worked: bool, wrong: bool, **given: Any) -> None:
    """Say whether the report of entry ID worked.

    Of each session the last rating of a text counts. Ratings are of the text that stands now: a new one has none. A
    report that is withdrawn is served to nobody until it is improved.
    """
    if worked == wrong:
        raise click.UsageError("say --worked or --wrong, one of them.")
    given["outcome"] = "worked" if worked else "wrong"
    with open_app(ctx, may_share=True) as app:
        emit(to_plain(app.rate_report(entry_id, given, _writer(given["session_id"]))), ctx)


_REVIEW = (
    "kr review approve ID lets one through, kr review reject ID drops it; kr save … --entry ID improves one."
)


@kr_group("review", "kr review", "kr review approve held-1f2e3d4c5b6a", invoke_without_command=True)
@click.pass_context
def review(ctx: click.Context) -> None:
    """Show what waits for a person: findings and lessons that were held back, and reports rated wrong."""
    if ctx.invoked_subcommand is None:
        with open_app(ctx, only_reads=True) as app:
            value = app.review()
        emit(value, ctx, hint=_REVIEW if any(value.values()) else "Nothing waits for a person.")


@kr_command("approve", "kr review approve held-1f2e3d4c5b6a", group=review)
@_ENTRY
def approve(ctx: click.Context, /, entry_id: str) -> None:
    """Save a finding, or record a lesson, that was held back. At a terminal only."""
    _decide(ctx, entry_id, is_approved=True)


@kr_command("reject", "kr review reject held-1f2e3d4c5b6a", group=review)
@_ENTRY
def reject(ctx: click.Context, /, entry_id: str) -> None:
    """Drop a finding, or a lesson, that was held back. At a terminal only."""
    _decide(ctx, entry_id, is_approved=False)


def _decide(ctx: click.Context, entry_id: str, *, is_approved: bool) -> None:
    require_person(ctx.command_path)
    with open_app(ctx) as app:
        emit(app.decide(entry_id, is_approved=is_approved), ctx)
