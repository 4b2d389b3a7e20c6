"""``kr explain``: why the cache answers a question, or does not."""

from typing import IO, Any

import click

from kr.cli.forms import check_form, question_parameters
from kr.cli.options import common, common_options, open_app, schema_option
from kr.cli.render import emit
from kr.cli.table import table
from kr.cli.wrapping import wrapped
from kr.documents import LIMIT

_EPILOG = """\b
Examples:
  kr explain click "How do I make an option repeatable?"
  kr explain vue "When is a watcher better?" --topic "watch or computed" --tag reactivity
  kr explain --request request.yaml --format json
"""
_COLOURS = {"hit": "green", "stale": "yellow", "miss": "red"}
_COLUMNS = ["entry", "likely", "overlap", "shared tags", "status", "why"]
_MOST_TOLD = 2
_LEAST_TOLD = 0.05


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

    Every entry of the framework is a row: how likely it answers, how far the topics overlap, the tags that both
    have, its status, and why it answers or not, with what weighs most for and against it; --format json has all
    of the evidence. An index.yaml that the first research would import is named.
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
    """Make the readable view: the outcome, the query, then a table with an entry a row."""
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
    if value["considered"]:
        lines += ["", table(_COLUMNS, map(_row, value["considered"]), wide="why")]
    return "\n".join(lines)


def _row(row: dict[str, Any]) -> list[Any]:
    overlap = None if row["topic_overlap"] is None else f"{row['topic_overlap']:.2f}"
    likelihood = None if row["likelihood"] is None else f"{row['likelihood']:.2f}"
    return [row["id"], likelihood, overlap, row["shared_tags"], row["freshness"], _why(row)]


def _why(row: dict[str, Any]) -> str:
    """Tell the tier or the refusal, and what weighs most for and against the entry, in log odds."""
    told = [f"refused: {row['refused']}" if row["refused"] else f"answers by {row['tier']}"]
    pieces = [piece for piece in row["evidence"] if piece["name"] != "start"]
    for wanted, sign in (("for it", 1), ("against it", -1)):
        most = [piece for piece in pieces if piece["adds"] * sign > _LEAST_TOLD][:_MOST_TOLD]
        if most:
            told.append(
                f"{wanted}: "
                + ", ".join(f"{piece['name'].replace('_', ' ')} {piece['adds']:+.1f}" for piece in most)
            )
    return "; ".join(told)
