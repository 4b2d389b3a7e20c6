"""``kr search``, ``entries``, ``archive``, ``save``, ``rate`` and ``review``: what is known, and what people and agents change of it."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kr.cli import common
from kr.cli.readable import readable
from kr.errors import KrError
from kr.models import Writer, person
from kr.schemas import finding_request
from kr.text import fenced

if TYPE_CHECKING:
    from kr.app import App

Row = dict[str, Any]

LISTED = "id question framework_version status confidence last_accessed"
ARCHIVED = "id question framework_version archive_id reason archived_at"
"""The columns of lists for people."""
_STATUSES = ("fresh", "stale", "withdrawn")
_REASONS = ("lru", "age", "manual")
_ENTRY = click.argument("entry_id", metavar="ID")
_REPORT = click.option("--report", is_flag=True, help="Give the report's text too.")


@common.operation(
    "search",
    "kr search repeatable option",
    "kr search --framework vue virtual scroll --limit 3",
    may_share=True,
    only_reads=True,
)
@click.argument("words", nargs=-1, required=True)
@common.framework_option
@common.limit_option(10)
def search(app: "App", words: tuple[str, ...], framework: str | None, limit: int) -> Row:
    """Find WORDS in topics, tags, questions, reports and lessons, the best first, each with the passage.

    What holds only some of the words comes last. kr entries show ID --report shows a whole report.
    """
    if not any(map(str.isalnum, "".join(words))):
        raise click.UsageError("Say at least one word.")
    return app.search_all(" ".join(words), framework=framework, limit=limit)


@common.kr_group("entries", "kr entries list --status stale", "kr entries show vue-slots --report")
def command() -> None:
    """Look through the index, and change it by hand.

    An unknown id is an error that names the nearest ones.
    """


@common.operation(
    "list",
    "kr entries list --framework vue --status stale --limit 20",
    group=command,
    may_share=True,
    only_reads=True,
)
@common.framework_option
@click.option("--status", type=click.Choice(_STATUSES), help="As of today; withdrawn: rated wrong.")
@common.limit_option()
def list_entries(app: "App", **wanted: Any) -> common.Output:
    """List the entries, the last accessed first."""
    return common.Output(value=app.entries(**wanted)["entries"], columns=LISTED)


@common.operation(
    "show", "kr entries show vue-slots --report", group=command, may_share=True, only_reads=True
)
@_ENTRY
@_REPORT
def show(app: "App", entry_id: str, *, report: bool) -> common.Output:
    """Show one entry: what is known of it, and why it is stale."""
    return common.Output(value=app.entry(entry_id, report=report), view=_with_report)


def _with_report(value: Row) -> list[str]:
    """Show an entry, and its report as it stands."""
    lines = readable({name: it for name, it in value.items() if name != "report"})
    return [*lines, "", value["report"] or "Its text is lost."] if "report" in value else lines


@common.operation("remove", "kr entries remove vue-slots vue-watchers", group=command)
@click.argument("entry_ids", metavar="ID...", nargs=-1, required=True)
def remove(app: "App", entry_ids: tuple[str, ...]) -> Row:
    """Move entries to the archive: all that are named, or none when one is unknown.

    The report's text is kept; kr archive restore ID brings the entry back.
    """
    return app.catalog.remove(entry_ids)


@common.operation("history", "kr entries history vue-slots --revision 1", group=command)
@_ENTRY
@click.option("--revision", type=int, metavar="N", help="Give the text of revision N.")
def history(app: "App", entry_id: str, revision: int | None) -> Row | list[Row]:
    """List the texts that an entry's report had before, the oldest first."""
    return app.catalog.history(entry_id) if revision is None else app.catalog.revision(entry_id, revision)


@common.operation("restore", "kr entries history vue-slots", "kr entries restore vue-slots 1", group=command)
@_ENTRY
@click.argument("revision", type=int)
def restore(app: "App", entry_id: str, revision: int) -> Row:
    """Bring an earlier text of an entry back; the present one becomes a revision itself.

    To bring an archived entry back, see kr archive restore.
    """
    return app.catalog.restore_revision(entry_id, revision)


@common.kr_group("archive", "kr archive list --reason manual", "kr archive restore vue-slots")
def archive() -> None:
    """Look through the archive, and bring entries back."""


@common.operation("list", "kr archive list --framework vue --reason lru", group=archive, only_reads=True)
@common.framework_option
@click.option("--reason", type=click.Choice(_REASONS), help="Evicted for room, too old, or removed by hand.")
@common.limit_option()
def list_archive(app: "App", **wanted: Any) -> common.Output:
    """List the archived entries, the last archived first."""
    return common.Output(value=app.catalog.archive(**wanted), columns=ARCHIVED)


_NUMBER = click.option("--archive-id", type=int, help="Which one, by its number in kr archive list.")


@common.operation("show", "kr archive show vue-slots --archive-id 7 --report", group=archive)
@_ENTRY
@_NUMBER
@_REPORT
def show_archived(app: "App", entry_id: str, **wanted: Any) -> common.Output:
    """Show one archived entry: its row, when and why it left. Of several of one id the last archived."""
    return common.Output(value=app.catalog.archived(entry_id, **wanted), view=_with_report)


@common.operation("restore", "kr archive restore vue-slots --archive-id 7", group=archive)
@_ENTRY
@_NUMBER
def restore_archived(app: "App", entry_id: str, **wanted: Any) -> Row:
    """Make an archived entry live and fresh again, with its own text at its path.

    Of several of one id the last archived comes back; a placeholder comes back stale. A live entry of its id or topic
    goes to the archive. The index stays within its capacity: the entry accessed longest ago may leave it.
    """
    return app.catalog.restore(entry_id, **wanted)


# --- findings


def _writer(session_id: str | None) -> Writer | None:
    """Return the person at the terminal; None for an agent, which names its session or has none."""
    return person() if session_id is None and common.is_person() else None


@common.operation(
    "save",
    "kr save zod \"How do I reject unknown keys?\" --file - <<'END'",
    "Use z.strictObject(…): unknown keys are errors then.",
    "END",
    'kr save zod "Strict objects?" --answer "Use z.strictObject." \\',
    '  --code-file strict.ts --verified-by "npm test" --session-id s-1',
    may_share=True,
)
@common.question_options
@click.option("--file", "answer_file", metavar="FILE|-", help="Read the answer, or a whole report.")
@click.option("--answer", help="The answer, in a sentence or two.")
@click.option("--code", help="The snippet that proved it.")
@click.option("--code-file", metavar="FILE", help="Read the snippet from a file.")
@click.option("--caveats", help="What to watch out for.")
@click.option("--source", "sources", multiple=True, metavar="URL|PATH", help="Where it is from; repeatable.")
@click.option("--verified-by", help="What proved it: a test, a command, production.")
@click.option("--entry", metavar="ID", help="The entry that it answers or improves.")
@common.identity_options
@common.request_option(finding_request)
def save(app: "App", *, answer_file: str | None, code_file: str | None, **given: Any) -> Any:
    """Keep what you found out about FRAMEWORK and proved, so that whoever asks next has it.

    QUESTION is what somebody would ask. The answer is Markdown, or a whole report of kr's template; with code and
    caveats at most 1,200 tokens. An entry of the same topic, or the one that --entry names, gets it as its new text;
    the earlier text stays in its history. What gives orders to its reader, or switches a safeguard off, waits for a
    person: kr review.
    """
    request = common.given_request(given)
    if isinstance(request, bytes):
        return app.save_finding(request)
    if (answer_file is None) == (given["answer"] is None):
        raise click.UsageError("give the answer with --file or with --answer, one of them.")
    if answer_file is not None:
        request["answer"] = _text_of(answer_file)
    if code_file is not None:
        ending = Path(code_file).suffix[1:]
        request["code"] = fenced(_text_of(code_file).strip("\n"), ending if ending.isalnum() else "")
    return app.save_finding(request, _writer(given["session_id"]))


def _text_of(source: str) -> str:
    try:
        return common.read_request(source).decode()
    except UnicodeDecodeError as error:
        raise KrError(f"{source}: is not UTF-8 text: byte {error.start + 1}") from error


@common.operation(
    "rate", 'kr rate zod-reject-unknown-keys --wrong --note "gone in version 4"', may_share=True
)
@_ENTRY
@click.option("--worked", is_flag=True, help="It worked: it is confirmed, and fresh again.")
@click.option("--wrong", is_flag=True, help="It is wrong: it is served to nobody, and shown with the note.")
@click.option("--note", help="What is wrong, in a sentence.")
@common.identity_options
def rate(app: "App", entry_id: str, *, worked: bool, wrong: bool, **given: Any) -> Any:
    """Say whether the report of entry ID worked.

    Of each session the last rating of a text counts. Ratings are of the text that stands now: a new one has none. A
    report that is withdrawn is served to nobody until it is improved.
    """
    if worked == wrong:
        raise click.UsageError("say --worked or --wrong, one of them.")
    outcome = {"outcome": "worked" if worked else "wrong"}
    return app.rate_report(entry_id, given | outcome, _writer(given["session_id"]))


_REVIEW = (
    "kr review approve ID lets one through, kr review reject ID drops it; kr save … --entry ID improves one."
)


@common.kr_group("review", "kr review", "kr review approve held-1f2e3d4c5b6a", invoke_without_command=True)
@click.pass_context
def review(ctx: click.Context) -> None:
    """Show what waits for a person: findings and lessons that were held back, and reports rated wrong."""
    if ctx.invoked_subcommand is None:
        with common.open_app(ctx, only_reads=True) as app:
            value = app.review()
        hint = _REVIEW if any(value.values()) else "Nothing waits for a person."
        common.emit(common.Output(value=value, hint=hint), ctx)


@common.operation("approve", "kr review approve held-1f2e3d4c5b6a", group=review)
@_ENTRY
def approve(app: "App", entry_id: str) -> Row:
    """Save a finding, or record a lesson, that was held back. At a terminal only."""
    common.require_person("kr review approve")
    return app.decide(entry_id, is_approved=True)


@common.operation("reject", "kr review reject held-1f2e3d4c5b6a", group=review)
@_ENTRY
def reject(app: "App", entry_id: str) -> Row:
    """Drop a finding, or a lesson, that was held back. At a terminal only."""
    common.require_person("kr review reject")
    return app.decide(entry_id, is_approved=False)
