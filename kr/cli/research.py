"""``kr research``, ``search``, ``explain``, ``save``, ``rate`` and ``review``: what is asked, and what is given back."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from kr.cli import common
from kr.cli.readable import problem_lines, wrapped
from kr.errors import KrError, UnknownEntry
from kr.models import IfUnsure, Writer, person
from kr.schemas import finding_request, research_request
from kr.text import fenced, one_line, section

if TYPE_CHECKING:
    from kr.app import App

Row = dict[str, Any]

_ENTRY = click.argument("entry_id", metavar="ID")
_LONGEST_NOTE = 90
_IF_UNSURE = click.Choice(get_args(IfUnsure))


@common.operation(
    "research",
    'kr research click "How do I make an option repeatable?"',
    'kr research vue "When do I need a watcher?" --framework-version 3 --tag ref',
    'kr research vue "Should I watch a ref?" --use vue-need-watcher',
    "kr research --request - --format json < request.yaml",
    may_share=True,
)
@common.question_options
@common.request_option(research_request)
@common.identity_options
@click.option("--max-calls", type=click.IntRange(min=0), help="Calls to sources at most; 0 asks none.")
@click.option(
    "--timeout", "timeout_seconds", type=click.IntRange(min=1), help="Seconds that a source may take."
)
@click.option("--refresh", is_flag=True, help="Research again, whatever the cache holds.")
@click.option("--use", metavar="ID", help="Answer with this entry; the question is kept with it.")
@click.option("--if-unsure", type=_IF_UNSURE, help="Where nothing is served by itself. Default: research.")
@click.option("--include-report", is_flag=True, help="Put the report's text into the answer.")
@click.option("--max-tokens", type=click.IntRange(min=1), help="The most tokens of the report's text.")
def command(
    app: "App", *, include_report: bool, max_tokens: int | None, refresh: bool, **given: Any
) -> common.Output:
    """Answer a question about FRAMEWORK from the cache, or research it once for everyone.

    Sources are asked in order (Context7, DeepWiki, web search) until one answers, within the budget of the
    story; without a network the documentation of the installed package answers. The answer is a Markdown
    report in the knowledge base.

    Entries that may answer are listed as related: --use takes one of them. A story is a piece of work with a budget of
    its own, a session is one run of an agent; both may be left out. A request document says all of it; only --refresh,
    --use, --if-unsure and what is printed can be said beside it.
    """
    overrides = {"refresh": refresh or None, "use": given.pop("use"), "if_unsure": given.pop("if_unsure")}
    overrides = {name: value for name, value in overrides.items() if value is not None}
    if {"refresh", "use"} <= overrides.keys():
        raise click.UsageError("--use takes an entry, --refresh researches again: give only one of them.")
    is_whole = include_report or "use" in overrides  # who chose an entry wants to read it
    envelope = app.research.document(
        common.given_request(given),
        include_report=is_whole or common.wants_text(),
        max_tokens=max_tokens,
        overrides=overrides,
    )
    return common.Output(value=envelope, view=partial(research_view, is_whole=is_whole))


def research_view(value: dict[str, Any], *, is_whole: bool) -> list[str]:
    """Make the readable view: what happened, then the report or its summary."""
    results = value["results"]
    if results is None:
        return [value["status"], *problem_lines(value)]
    report = results["report"] or (results["candidate_report"] or {}).get("text")
    if results["report"] and not is_whole and results["report_file"]:  # else it stands nowhere else
        report = _summary(results)
    facts = [line for name, text in _facts(results) for line in wrapped(f"  {name}  ", text, "    ")]
    return [value["status"], *problem_lines(value), *facts, *(["", report.rstrip()] if report else [])]


def _facts(results: dict[str, Any]) -> Iterator[tuple[str, str]]:
    if results["match"] and results["cache_hit"]:
        yield "found by", results["match"]["tier"]
    notes = results["degradation_notes"]
    for it in results["sources_consulted"]:
        why = "".join(
            note.removeprefix(it["source"]) for note in notes if note.startswith(f"{it['source']}:")
        )
        yield "asked", f"{it['source']} ({it['status']}{one_line(why, _LONGEST_NOTE)})"
    names = tuple(f"{it['source']}:" for it in results["sources_consulted"])
    yield from (("note", note) for note in notes if not note.startswith(names))
    if results["cache_entry_id"]:
        yield "entry", f"{results['cache_entry_id']}, confidence {results['confidence']}"
    if results["report_file"] and results["index_updated"]:
        yield "report", results["report_file"]
    for it in results["related"]:
        rated = f"worked for {it['worked']}, wrong for {it['wrong']}" if it["worked"] or it["wrong"] else ""
        note = f"RATED WRONG: {it['note']}" if it.get("note") else ""
        about = f"version {it['framework_version']}", it["origin"], rated, note
        named = f"{it['id']}  {it['question'] or it['topic']}"
        yield "may answer", f"{named} ({', '.join(filter(None, about))})"
    if results["related"]:
        yield "then", "the same question with --use ID, or with --if-unsure research where none answers"
    yield from (("lesson", it["summary"]) for it in results["lessons"])


def _summary(results: dict[str, Any]) -> str:
    title, _, rest = str(results["report"]).partition("\n")
    summary = (section(results["report"], "Summary") or rest).strip()
    return f"{title}\n\n{summary}\n\nThe whole report: kr entries show {results['cache_entry_id']} --report"


@common.operation("explain", 'kr explain vue "When do I need a watcher?" --tag reactivity', only_reads=True)
@common.question_options
@common.request_option(research_request)
def explain(app: "App", **given: Any) -> dict[str, Any]:
    """Show what the cache would answer to a question about FRAMEWORK, and why.

    What would be served or offered is listed with its score, whether it is fresh, and why it is served or not. No
    source is asked and nothing is changed.
    """
    return app.explain(common.given_request(given))


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


def _decide(app: "App", entry_id: str, *, is_approved: bool) -> Row:
    common.require_person(f"kr review {'approve' if is_approved else 'reject'}")
    try:
        return app.decide(entry_id, is_approved=is_approved)
    except UnknownEntry as error:
        raise UnknownEntry(f"nothing waits under the id {entry_id}; `kr review` lists what does") from error


@common.operation("approve", "kr review approve held-1f2e3d4c5b6a", group=review)
@_ENTRY
def approve(app: "App", entry_id: str) -> Row:
    """Save a finding, or record a lesson, that was held back. At a terminal only."""
    return _decide(app, entry_id, is_approved=True)


@common.operation("reject", "kr review reject held-1f2e3d4c5b6a", group=review)
@_ENTRY
def reject(app: "App", entry_id: str) -> Row:
    """Drop a finding, or a lesson, that was held back. At a terminal only."""
    return _decide(app, entry_id, is_approved=False)
