"""``kr research`` and ``kr explain``: a question in words from a person, or a request document from a program."""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, get_args

import click

from kr.cli import common
from kr.cli.readable import problem_lines, wrapped
from kr.errors import InvalidRequest, KrError
from kr.models import IfUnsure
from kr.schemas import research_request
from kr.text import section

if TYPE_CHECKING:
    from kr.app import App

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
    if results["match"]:
        yield "found by", results["match"]["tier"]
    if asked := [f"{it['source']} ({it['status']})" for it in results["sources_consulted"]]:
        yield "asked", ", ".join(asked)
    yield from (("note", note) for note in results["degradation_notes"])
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
    try:
        return app.explain(common.given_request(given))
    except InvalidRequest as error:
        problems = (f"{it.field}: {it.message.removeprefix('Validation failed: ')}" for it in error.fields)
        raise KrError("; ".join(problems)) from error
