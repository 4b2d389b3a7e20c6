"""``kr explain``: why the cache answers a question, or does not."""

from typing import IO, Any

import click

from kr.cli.forms import check_form, question_parameters
from kr.cli.options import common, common_options, open_app, schema_option
from kr.cli.render import emit
from kr.cli.wrapping import wrapped
from kr.documents import LIMIT

_EPILOG = """\b
Examples:
  kr explain click "How do I make an option repeatable?"
  kr explain vue "When is a watcher better?" --topic "watch or computed" --tag reactivity
  kr explain --request request.yaml --format json
"""
_COLOURS = {"hit": "green", "stale": "yellow", "miss": "red"}


@click.command("explain", epilog=_EPILOG)
@question_parameters
@schema_option("research_request")
@common_options
@click.pass_context
def command(
    ctx: click.Context,
    /,
    framework: str | None,
    question: str | None,
    document: IO[bytes] | None,
    **given: Any,
) -> int:
    """Tell what the cache would say to a question about FRAMEWORK, and why.

    Every entry of the framework is listed with its tier, topic overlap, shared tags and freshness, and with
    the reason why it is not the answer. An index.yaml that the first research would import is named.
    No source is asked and nothing is changed; an older kr's database is refused, not upgraded. A model of
    embeddings that kr calibrate was run for is asked, and the similarity shown among the evidence.
    """
    options = {name: value for name, value in given.items() if value is not None and value != ()}
    check_form(framework, question, document, options, command="explain")
    with open_app(ctx) as app:
        if document is not None:
            value = app.explain(document.read(LIMIT + 1))
        else:
            value = app.explain(app.requests.question_data(str(framework), str(question), **options))
        emit(value, common(ctx), view)
    return 0


def view(value: dict[str, Any]) -> str:
    """Make the readable view: the outcome, the query, then an entry per paragraph."""
    outcome, query = value["outcome"], value["query"]
    asked = f"{query['framework']} {query['framework_version']} · {query['topic']}"
    first, *more = wrapped(f"{outcome}  ", value["decision"], indent=2)
    lines = [click.style(outcome, fg=_COLOURS[outcome], bold=True) + first.removeprefix(outcome), *more]
    lines += wrapped("  asked: ", f"{asked} · tags: {', '.join(query['tags'])}", indent=4)
    if value["waiting_index"]:
        waits = f"{value['waiting_index']}: the first research imports it, and may find the answer there"
        lines += wrapped("  waiting: ", waits, indent=4)
    if value["nearest_frameworks"]:
        lines += wrapped("  written alike: ", ", ".join(value["nearest_frameworks"]), indent=4)
    for row in value["considered"]:
        lines += ["", *_entry(row)]
    return "\n".join(lines)


def _entry(row: dict[str, Any]) -> list[str]:
    overlap = "-" if row["topic_overlap"] is None else f"{row['topic_overlap']:.2f}"
    freshness = f"{row['freshness']}{''.join(f'; {reason}' for reason in row['reasons'])}"
    shared = ", ".join(row["shared_tags"]) or "none"
    is_answer = row["refused"] is None
    lines = [click.style(line, bold=is_answer) for line in wrapped("", row["id"], indent=2)]
    for label, text in (
        ("topic", f"{row['topic']} (overlap {overlap})"),
        ("tags", f"{', '.join(row['tags']) or '-'} (shared: {shared})"),
        ("tier", row["tier"] or "none"),
        ("likely", "-" if row["likelihood"] is None else f"{row['likelihood']:.2f}"),
        ("freshness", freshness),
    ):
        lines += wrapped(f"  {label:<9} ", text, indent=12)
    if row["refused"]:
        first, *more = wrapped("  refused   ", row["refused"], indent=12)
        lines += [first.replace("refused", click.style("refused", fg="yellow"), 1), *more]
    for piece in row["evidence"]:
        if piece["adds"]:
            text = f"{piece['adds']:+.2f}  {piece['value']:.2f}  {piece['meaning']}"
            lines += wrapped("            ", text, indent=26)
    return lines
