"""``kr explain``: why the cache answers a question, or does not."""

from typing import IO, Any

import click

from kr.cli.forms import check_form, question_parameters
from kr.cli.options import common, common_options, open_app
from kr.cli.render import emit
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
    the reason why it is not the answer. Nothing is asked on the network and nothing is changed.
    """
    options = {name: value for name, value in given.items() if value is not None and value != ()}
    check_form(framework, question, document, options, command="explain")
    with open_app(ctx) as app:
        if document is not None:
            value = app.explain(document.read(LIMIT + 1))
        else:
            value = app.explain(app.question_data(str(framework), str(question), **options))
        emit(value, common(ctx), view)
    return 0


def view(value: dict[str, Any]) -> str:
    """Make the readable view: the outcome, the query, then an entry per paragraph."""
    outcome, query = value["outcome"], value["query"]
    asked = f"{query['framework']} {query['framework_version']} · {query['topic']}"
    lines = [
        f"{click.style(outcome, fg=_COLOURS[outcome], bold=True)}  {value['decision']}",
        f"  asked: {asked} · tags: {', '.join(query['tags'])}",
    ]
    if value["nearest_frameworks"]:
        lines.append(f"  written alike: {', '.join(value['nearest_frameworks'])}")
    for row in value["considered"]:
        lines += ["", *_entry(row)]
    return "\n".join(lines)


def _entry(row: dict[str, Any]) -> list[str]:
    overlap = "-" if row["topic_overlap"] is None else f"{row['topic_overlap']:.2f}"
    is_answer = row["refused"] is None
    lines = [
        click.style(row["id"], bold=is_answer),
        f"  topic     {row['topic']} (overlap {overlap})",
        f"  tags      {', '.join(row['tags']) or '-'} (shared: {', '.join(row['shared_tags']) or 'none'})",
        f"  tier      {row['tier'] or 'none'}",
        f"  freshness {row['freshness']}{''.join(f'; {reason}' for reason in row['reasons'])}",
    ]
    if row["refused"]:
        lines.append(f"  {click.style('refused', fg='yellow')}   {row['refused']}")
    return lines
