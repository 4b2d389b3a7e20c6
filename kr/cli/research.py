"""``kr research``: a question in words from a person, or a request document from an agent (SPEC 3.1)."""

from functools import partial
from typing import Any, get_args

import click

from kr.cli.options import (
    MOST,
    TEXT,
    answer_request,
    common,
    completes,
    examples,
    open_app,
    request_option,
    schema_option,
    together,
    with_context,
)
from kr.cli.output import emit, wants_text
from kr.models import IfUnsure, to_plain
from kr.text import counted

question_parameters = together(
    click.argument("framework", type=TEXT, required=False, shell_complete=completes("framework")),
    click.argument("question", type=TEXT, required=False),
    request_option,
    click.option(
        "--framework-version",
        type=TEXT,
        help="Version in use. Default: read from the project's dependency files.",
    ),
    click.option("--topic", type=TEXT, help="What it is about, in a few words. Default: from the question."),
    click.option(
        "--tag",
        type=TEXT,
        multiple=True,
        help="A tag to match other requests by; may be given several times.",
    ),
)


def check_form(
    framework: str | None, question: str | None, document: object, options: dict[str, object], *, command: str
) -> None:
    """Refuse a mix of both forms, and half of one. ``options`` are those that were given."""
    if document is None:
        if framework is None or question is None:
            raise click.UsageError(
                f'Give FRAMEWORK and QUESTION (kr {command} click "How do I …?"), or --request FILE.'
            )
        return
    if framework is not None:
        raise click.UsageError("--request holds the whole question: leave FRAMEWORK and QUESTION out.")
    if options:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in options)
        raise click.UsageError(f"{names} cannot be combined with --request: put it into the document.")


@click.command(
    "research",
    epilog=examples(
        'kr research click "How do I make an option repeatable?"',
        'kr research vue "When do I need a watcher?" --framework-version 3 --tag ref',
        'kr research vue "Should I watch a ref?" --if-unsure candidates',
        'kr research vue "Should I watch a ref?" --use vue-need-watcher',
        "kr research --request request.yaml",
        'echo \'{"mode": "research", ...}\' | kr research --request - --format json',
    ),
)
@question_parameters
@click.option("--story-key", type=TEXT, help="The story that pays for it, such as 3-1.")
@click.option("--session-id", type=TEXT, help="The session that the story belongs to. Default: a new one.")
@click.option(
    "--max-calls",
    type=click.IntRange(min=0),
    help="Calls to sources that this request may cost; 0 asks none.",
)
@click.option(
    "--timeout", type=click.IntRange(min=1), metavar="SECONDS", help="Time that one source may take."
)
@click.option(
    "--refresh",
    is_flag=True,
    help="Research again whatever the cache holds; the entry of that topic is renewed.",
)
@click.option(
    "--use",
    type=TEXT,
    metavar="ID",
    shell_complete=completes("entry_id"),
    help="Take this entry, with its report; its wording is kept with it.",
)
@click.option(
    "--if-unsure",
    type=click.Choice(get_args(IfUnsure)),
    help="Where nothing is served by itself: research (the default), or list the candidates at once.",
)
@click.option(
    "--include-report",
    is_flag=True,
    help="Put the report's text into the answer; else a person sees its summary.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1, max=MOST),
    help="The most tokens of the report's text that --include-report gives.",
)
@schema_option("research_request")
@with_context
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

    Entries that may answer are listed as related: --use takes one of them. --refresh, --use and --if-unsure go with
    both forms, and win over what a document says.
    """
    options = {name: value for name, value in given.items() if value is not None and value != ()}
    check_form(framework, question, document, options, command="research")
    if refresh and use is not None:
        raise click.UsageError(
            "--use takes an entry as it is, and --refresh researches again: give only one of them."
        )
    said = {"refresh": refresh or None, "use": use, "if_unsure": if_unsure}
    overrides = {name: value for name, value in said.items() if value is not None}
    is_whole = include_report or use is not None  # who chose an entry wants to read it
    shown = is_whole or wants_text(common(ctx))
    with open_app(ctx, may_share=True) as app:
        if document is not None:
            research = partial(
                app.research.document,
                include_report=shown,
                max_tokens=max_tokens,
                overrides=overrides,
            )
            envelope = answer_request(document, research)
        else:
            envelope = app.research.question(
                str(framework),
                str(question),
                include_report=shown,
                max_tokens=max_tokens,
                overrides=overrides,
                **options,
            )
        value = to_plain(envelope)
        emit(value, ctx, partial(view, is_whole=is_whole, is_typed=document is None))
    return 1 if value["status"] == "failure" else 0


def view(value: dict[str, Any], *, is_whole: bool = True, is_typed: bool = True) -> str:
    """Make the readable view: what happened, then the report or its summary. ``is_typed``: errors are told by their option."""
    results = value["results"]
    lines = [f"{click.style(value['status'], bold=True)}  {_summary(results)}"]
    lines += [
        f"  {click.style('error', fg='red')}  {_told(problem, is_typed)}" for problem in value["errors"]
    ]
    if results is not None:
        lines += [f"  {click.style('note', fg='yellow')}  {note}" for note in _notes(results)]
        if results["cache_entry_id"] and results["index_updated"]:
            lines.append(f"  {click.style('entry', fg='cyan')}  {results['cache_entry_id']}")
        if results["report_file"] and results["index_updated"]:
            lines.append(f"  {click.style('report', fg='cyan')} {results['report_file']}")
        lines += _related(results)
        lines += [f"  {click.style('lesson', fg='yellow')} {it['summary']}" for it in results["lessons"]]
        if results["candidate_report"]:
            lines += ["", results["candidate_report"]["text"].rstrip()]
        if results["report"]:
            lines += ["", results["report"] if is_whole else _shortened(results)]
    return "\n".join(lines)


def _shortened(results: dict[str, Any]) -> str:
    """Give the summary of a report that stands in a file, with the title; of a skeleton what was found nearest."""
    from kr.markdown import section

    report = results["report"]
    title, _, _ = report.partition("\n")
    summary, details = section(report, "Summary"), section(report, "Details")
    if _is_empty(results):
        nearest = details if details and "\n- " in details else summary
        return f"{title}\n\n{(nearest or '').rstrip()}"
    if summary is None or results["report_file"] is None:  # it is nowhere else
        return str(report)
    whole = f"kr entries show {results['cache_entry_id']} --report"
    return f"{title}\n\n{summary.rstrip()}\n\nThe whole report: {whole}"


def _answered(results: dict[str, Any]) -> list[str]:
    return [row["source"] for row in results["sources_consulted"] if row["status"] == "success"]


def _related(results: dict[str, Any]) -> list[str]:
    from kr.cli.output import wrapped

    related = results["related"]
    if not related:
        return []
    lines = ["  entries that may answer:"]
    for item in related:
        said = f"{item['question'] or item['topic']} (version {item['framework_version']}, {item['origin']})"
        rated = f" worked for {item['worked']}" if item["worked"] else ""
        rated += f" RATED WRONG{': ' + item['note'] if item.get('note') else ''}" if item["wrong"] else ""
        lines += wrapped(f"    {item['id']}  ", f"{said}{rated}", indent=6)
        if _is_offer(results) and (item is not related[0] or not results["candidate_report"]):
            lines += wrapped("      ", item["summary"], indent=6)
    read = f"read one: kr entries show {related[0]['id']} --report"
    if _is_offer(results):
        where = "the first one's report is below" if results["candidate_report"] else read
        take = f"{where}; one answers: the same question with --use ID; none does: with --if-unsure research"
    else:
        take = f"{read}; take it: the same question with --use ID"
    return [*lines, *wrapped("  ", take, indent=4)]


def _is_offer(results: dict[str, Any]) -> bool:
    return results["cache_entry_id"] is None and bool(results["related"]) and not results["sources_consulted"]


def _summary(results: dict[str, Any] | None) -> str:
    if results is None:
        return ""
    if results["cache_hit"]:
        match = results["match"]
        how = f"found by its {_FOUND_BY[match['tier']]}" if match else "from another agent's research"
        return f"{how}; confidence {results['confidence']}"
    if _is_offer(results):
        return f"{counted(len(results['related']), 'entry', 'entries')} may answer; no source asked"
    asked = [row["source"] for row in results["sources_consulted"] if row["status"] != "skipped"]
    told = f"no answer from {', '.join(asked)}" if asked else "no source asked"
    if _is_empty(results):
        return f"nothing was found; {told}"
    if answered := _answered(results):
        from kr.source_kinds import LOCAL_DOCS

        told = f"from {'installed documentation' if answered == [LOCAL_DOCS] else ', '.join(answered)}"
    elif results["match"] and results["match"]["entry_status"] == "stale":
        told = f"from an older report; {told}"
    return f"{told}; confidence {results['confidence']}"


def _is_empty(results: dict[str, Any]) -> bool:
    from kr.report import PLACEHOLDER_MARK

    return PLACEHOLDER_MARK in (results["report"] or "").splitlines()


_CODES = {
    "all_sources_unavailable": "no source answered",
    "question_not_covered": "what was found does not cover the question",
}
_CANNOT_CONNECT, _INSTALL = ": cannot connect: ", ". This installs it: "
_SAID = (
    "all_sources_unavailable: using installed documentation",
    "all_sources_unavailable: no cached content available",
    "candidates: ",
)
"""How notes begin that other lines of the view say."""


def _notes(results: dict[str, Any]) -> list[str]:
    """Tell the notes as to a person: some begin with a word for programs (seed 000)."""
    told = [note for note in results["degradation_notes"] if not note.startswith(_SAID)]
    unreachable = [note.partition(": ")[0] for note in told if _CANNOT_CONNECT in note]
    notes = [note.partition(_INSTALL)[0].partition(": ") for note in told if _CANNOT_CONNECT not in note]
    gone = [f"not reachable: {', '.join(unreachable)}"] if unreachable else []
    return gone + [
        f"{code}: not asked, since it kept failing; kr stats says until when"
        if rest == "circuit open"
        else f"{_CODES.get(code, code)}{colon}{rest}"
        for code, colon, rest in notes
    ]


_FOUND_BY = {
    "framework+topic+tags": "topic and tags",
    "framework+topic": "topic",
    "framework+tags": "tags",
    "framework+wording": "wording",
    "framework+keywords": "keywords",
    "use": "id",
    "llm": "language model",
}
_SAID_AS = {
    "research_query.framework": "FRAMEWORK",
    "research_query.framework_version": "--framework-version",
    "research_query.question": "QUESTION",
    "research_query.tags": "--tag",
    "config_overrides.timeout_seconds": "--timeout",
}
"""Fields of a request whose option on the command line is called otherwise."""


def _told(problem: dict[str, Any], is_typed: bool) -> str:
    message = str(problem["message"]).removeprefix("Validation failed: ")
    if "field" not in problem:
        return message
    field = str(problem["field"])
    if is_typed:
        field = _SAID_AS.get(field) or f"--{field.rpartition('.')[2].replace('_', '-')}"
    return f"{field}: {message}"
