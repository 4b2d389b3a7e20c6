"""``kr research`` and ``kr explain``: a question in words from a person, or a request document from a program."""

from functools import partial
from typing import Any, get_args

import click

from kr.cli.common import (
    MOST,
    answer_request,
    common,
    emit,
    kr_command,
    open_app,
    read_request,
    request_option,
    schema_option,
    together,
    wants_text,
    wrapped,
)
from kr.errors import InvalidRequest, KrError
from kr.models import LOCAL_DOCS, PLACEHOLDER_MARK, IfUnsure, to_plain
from kr.schemas import research_request
from kr.text import counted, section

_question_parameters = together(
    click.argument("framework", required=False),
    click.argument("question", required=False),
    request_option,
    click.option(
        "--framework-version", help="Version in use. Default: read from the project's dependency files."
    ),
    click.option("--topic", help="What it is about, in a few words. Default: from the question."),
    click.option("--tag", "tags", multiple=True, help="A tag to match other requests by; may be repeated."),
)


def _options(
    framework: str | None, question: str | None, document: str | None, **given: Any
) -> dict[str, Any]:
    """Return the options that were given. Raises ``UsageError`` for a mix of both forms, and half of one."""
    options = {name: value for name, value in given.items() if value is not None and value != ()}
    if document is None and (framework is None or question is None):
        raise click.UsageError('Give FRAMEWORK and QUESTION (click "How do I …?"), or --request FILE.')
    if document is not None and framework is not None:
        raise click.UsageError("--request holds the whole question: leave FRAMEWORK and QUESTION out.")
    if document is not None and options:
        raise click.UsageError(
            f"{', '.join(options)} cannot be combined with --request: put it into the document."
        )
    return options


@kr_command(
    "research",
    'kr research click "How do I make an option repeatable?"',
    'kr research vue "When do I need a watcher?" --framework-version 3 --tag ref',
    'kr research vue "Should I watch a ref?" --if-unsure candidates',
    'kr research vue "Should I watch a ref?" --use vue-need-watcher',
    "kr research --request request.yaml",
    "kr research --request - --format json < request.yaml",
)
@_question_parameters
@click.option("--story-key", help="The story whose budget pays for it, such as 3-1.")
@click.option("--session-id", help="The session that the story belongs to. Default: a new one.")
@click.option("--max-calls", type=click.IntRange(min=0), help="Calls to sources at most; 0 asks none.")
@click.option(
    "--timeout",
    "timeout_seconds",
    type=click.IntRange(min=1),
    metavar="SECONDS",
    help="Time that one source may take.",
)
@click.option("--refresh", is_flag=True, help="Research again, whatever the cache holds.")
@click.option("--use", metavar="ID", help="Answer with this entry; the question is kept with it.")
@click.option(
    "--if-unsure",
    type=click.Choice(get_args(IfUnsure)),
    help="Where nothing is served by itself: research (the default), or list the candidates at once.",
)
@click.option("--include-report", is_flag=True, help="Put the report's text into the answer.")
@click.option("--max-tokens", type=click.IntRange(1, MOST), help="The most tokens of the report's text.")
@schema_option(research_request)
def command(
    ctx: click.Context,
    /,
    framework: str | None,
    question: str | None,
    document: str | None,
    *,
    include_report: bool,
    max_tokens: int | None,
    refresh: bool,
    use: str | None,
    if_unsure: IfUnsure | None,
    **given: Any,
) -> int:
    """Answer a question about FRAMEWORK from the cache, or research it once for everyone.

    Sources are asked in order (Context7, DeepWiki, web search) until one answers, within the budget of the
    story; without a network the documentation of the installed package answers. The answer is a Markdown
    report in the knowledge base.

    Entries that may answer are listed as related: --use takes one of them. A story is a piece of work with a budget of
    its own, a session is one run of an agent; both may be left out. A request document says all of it; only --refresh,
    --use, --if-unsure and what is printed can be said beside it.
    """
    options = _options(framework, question, document, **given)
    if refresh and use is not None:
        raise click.UsageError("--use takes an entry, --refresh researches again: give only one of them.")
    overrides = {"refresh": refresh or None, "use": use, "if_unsure": if_unsure}
    is_whole = include_report or use is not None  # who chose an entry wants to read it
    answer: dict[str, Any] = {
        "include_report": is_whole or wants_text(common(ctx)),
        "max_tokens": max_tokens,
        "overrides": {name: value for name, value in overrides.items() if value is not None},
    }
    with open_app(ctx, may_share=True) as app:
        if document is not None:
            envelope = answer_request(document, partial(app.research.document, **answer))
        else:
            envelope = app.research.document(
                {"framework": framework, "question": question, **options}, **answer
            )
    value = to_plain(envelope)
    emit(value, ctx, partial(research_view, is_whole=is_whole))
    return 1 if value["status"] == "failure" else 0


def research_view(value: dict[str, Any], *, is_whole: bool) -> str:
    """Make the readable view: what happened, then the report or its summary."""
    results = value["results"]
    errors = [f"  {click.style('error', fg='red')}  {_problem(it)}" for it in value["errors"]]
    if results is None:
        return "\n".join([click.style(value["status"], bold=True), *errors])
    lines = [f"{click.style(value['status'], bold=True)}  {_outcome(results)}", *errors]
    lines += [f"  {click.style('note', fg='yellow')}  {note}" for note in results["degradation_notes"]]
    for name, field in (("entry", "cache_entry_id"), ("report", "report_file")):
        if results[field] and results["index_updated"]:
            lines.append(f"  {click.style(name, fg='cyan')}  {results[field]}")
    lines += _related(results)
    lines += [f"  {click.style('lesson', fg='yellow')}  {it['summary']}" for it in results["lessons"]]
    if results["candidate_report"]:
        lines += ["", results["candidate_report"]["text"].rstrip()]
    if results["report"]:
        lines += ["", results["report"] if is_whole else _summary(results)]
    return "\n".join(lines)


def _problem(problem: dict[str, Any]) -> str:
    """Say what is wrong with a request; a field by the last part of its name, as its option is called."""
    field, message = problem["field"], problem["message"].removeprefix("Validation failed: ")
    return f"{field.rpartition('.')[2]}: {message}" if field else message


def _outcome(results: dict[str, Any]) -> str:
    confidence = f"confidence {results['confidence']}"
    if results["cache_hit"]:
        tier = results["match"]["tier"] if results["match"] else "framework"
        found = {"llm": "chosen by the language model", "use": "found by its id"}.get(tier)
        return f"{found or 'found by its ' + tier.removeprefix('framework+').replace('+', ' and ')}; {confidence}"
    if _is_offer(results):
        return f"{counted(len(results['related']), 'entry', 'entries')} may answer; no source asked"
    asked = [row for row in results["sources_consulted"] if row["status"] != "skipped"]
    answered = [row["source"] for row in asked if row["status"] == "success"]
    if answered:
        names = "installed documentation" if answered == [LOCAL_DOCS] else ", ".join(answered)
        return f"from {names}; {confidence}"
    silent = ", ".join(row["source"] for row in asked)
    told = f"no answer from {silent}" if silent else "no source asked"
    if PLACEHOLDER_MARK in (results["report"] or "").splitlines():
        return f"nothing was found; {told}"
    return f"{told}; {confidence}"


def _is_offer(results: dict[str, Any]) -> bool:
    return results["cache_entry_id"] is None and bool(results["related"]) and not results["sources_consulted"]


def _summary(results: dict[str, Any]) -> str:
    """Give the title and the summary of a report that stands in a file; another one whole."""
    report = str(results["report"])
    summary = section(report, "Summary")
    if summary is None or results["report_file"] is None:  # it is nowhere else
        return report
    title, _, _ = report.partition("\n")
    whole = f"kr entries show {results['cache_entry_id']} --report"
    return f"{title}\n\n{summary.rstrip()}\n\nThe whole report: {whole}"


def _related(results: dict[str, Any]) -> list[str]:
    related, is_offer = results["related"], _is_offer(results)
    if not related:
        return []
    lines = ["  entries that may answer:"]
    for item in related:
        facts = f"{item['question'] or item['topic']} (version {item['framework_version']}, {item['origin']})"
        if item["worked"]:
            facts += f" worked for {item['worked']}"
        if item["wrong"]:
            facts += f" RATED WRONG{': ' + item['note'] if item.get('note') else ''}"
        lines += wrapped(f"    {item['id']}  ", facts, indent=6)
        if is_offer and (item is not related[0] or not results["candidate_report"]):
            lines += wrapped("      ", item["summary"], indent=6)
    shown = f"kr entries show {related[0]['id']} --report"
    advice = f"read one: {shown}; take it: the same question with --use ID"
    if is_offer:
        advice += "; none answers: with --if-unsure research"
    return [*lines, *wrapped("  ", advice, indent=4)]


_COLOURS = {"hit": "green", "stale": "yellow", "candidates": "yellow", "miss": "red"}
_MOST_ENTRIES = 5


@kr_command("explain", 'kr explain vue "When do I need a watcher?" --tag reactivity')
@_question_parameters
@schema_option(research_request)
def explain(
    ctx: click.Context, /, framework: str | None, question: str | None, document: str | None, **given: Any
) -> None:
    """Show what the cache would answer to a question about FRAMEWORK, and why.

    Each entry of the framework is listed with its score, whether it is fresh, and why it is served or not. No source is
    asked and nothing is changed.
    """
    options = _options(framework, question, document, **given)
    with open_app(ctx, only_reads=True) as app:
        try:
            typed = {"framework": framework, "question": question, **options}
            value = app.explain(typed if document is None else read_request(document))
        except InvalidRequest as error:
            told = "; ".join(_problem(to_plain(it)) for it in error.fields)
            raise KrError(told if document is None else f"{document}: {told}") from error
    emit(value, ctx, explained_view)


def explained_view(value: dict[str, Any]) -> str:
    outcome, query = value["outcome"], value["query"]
    asked = f"{query['framework']} {query['framework_version']} · {query['topic']}"
    first, *more = wrapped(f"{outcome}  ", value["decision"], indent=2)
    lines = [click.style(outcome, fg=_COLOURS[outcome], bold=True) + first.removeprefix(outcome), *more]
    lines += wrapped("  asked: ", f"{asked} · tags: {', '.join(query['tags'])}", indent=4)
    for row in value["considered"][:_MOST_ENTRIES]:
        lines += ["", *_considered(row)]
    if (left := len(value["considered"]) - _MOST_ENTRIES) > 0:
        lines += ["", f"{left} more: --format json lists them."]
    return "\n".join(lines)


def _considered(row: dict[str, Any]) -> list[str]:
    """Tell of one entry how it ranks, how old it is, and by what it is served or why it is not."""
    facts = [f"score {row['score']:g}"] if row.get("score") is not None else []
    facts += [row["freshness"], row["origin"]]
    if row.get("shared_tags"):
        facts.append(f"shared tags: {', '.join(row['shared_tags'])}")
    if row.get("worked") or row.get("wrong"):
        facts.append(f"worked {row['worked']}, wrong {row['wrong']}")
    why = f"not served: {row['refused']}" if row["refused"] else f"served: {row['tier']}"
    return [*wrapped("", f"{row['id']}: {'; '.join(facts)}", indent=2), *wrapped("  ", why, indent=4)]
