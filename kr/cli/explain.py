"""``kr explain``: why the cache answers a question, or does not."""

from typing import Any

import click

from kr.cli.forms import check_form, question_parameters
from kr.cli.layout import wrapped
from kr.cli.options import common, examples, open_app, read_request, schema_option, with_context
from kr.cli.render import emit

_COLOURS = {"hit": "green", "stale": "yellow", "miss": "red"}
_MOST_ENTRIES = 5
_MOST_TOLD = 2
_LEAST_TOLD = 0.05


@click.command(
    "explain",
    epilog=examples(
        'kr explain click "How do I ask for a password without showing it?"',
        'kr explain vue "When do I need a watcher?" --topic watchers --tag reactivity',
        "kr explain --request request.yaml --format json",
    ),
)
@question_parameters
@schema_option("research_request")
@with_context
def command(
    ctx: click.Context,
    /,
    framework: str | None,
    question: str | None,
    document: str | None,
    **given: Any,
) -> None:
    """Show what the cache would answer to a question about FRAMEWORK, and why.

    Of every entry of the framework: how likely it answers, its status, how far the topics overlap, the tags that
    both have, and why it answers or not, with what weighs most for and against it; --format json has all of the
    evidence that weighs anything. An index.yaml that the first research would import is named.
    No source is asked and nothing is changed; an older kr's database is refused, not upgraded. A model of
    embeddings that kr calibrate was run for is asked, and the similarity shown among the evidence.
    """
    options = {name: value for name, value in given.items() if value is not None and value != ()}
    check_form(framework, question, document, options, command="explain")
    with open_app(ctx, only_reads=True) as app:
        if document is not None:
            value = app.explain(read_request(document))
        else:
            value = app.explain(app.requests.question_data(str(framework), str(question), **options))
        emit(value, common(ctx), view)


def view(value: dict[str, Any]) -> str:
    """Make the readable view: the outcome, the query, then the entries, each with its reasons."""
    outcome, query = value["outcome"], value["query"]
    asked = f"{query['framework']} {query['framework_version']} · {query['topic']}"
    first, *more = wrapped(f"{outcome}  ", value["decision"], indent=2)
    lines = [click.style(outcome, fg=_COLOURS[outcome], bold=True) + first.removeprefix(outcome), *more]
    lines += wrapped("  asked: ", f"{asked} · tags: {', '.join(query['tags'])}", indent=4)
    if value["waiting_index"]:
        waits = f"{value['waiting_index']}: the first research imports it, and may find the answer there"
        lines += wrapped("  waiting: ", waits, indent=4)
    if value["nearest_frameworks"]:
        lines += wrapped("  similar names: ", ", ".join(value["nearest_frameworks"]), indent=4)
    for row in value["considered"][:_MOST_ENTRIES]:
        lines += ["", *_entry(row)]
    if (left := len(value["considered"]) - _MOST_ENTRIES) > 0:
        lines += ["", f"{left} more, which are less likely: --format json lists them."]
    if value["considered"]:
        lines += ["", "Figures behind evidence are log odds: what each adds to the likelihood."]
    return "\n".join(lines)


def _entry(row: dict[str, Any]) -> list[str]:
    """Tell of one entry how likely it answers, why it does or not, and what weighs most for and against it."""
    likelihood = "no" if row["likelihood"] is None else f"{row['likelihood']:.0%}"
    told = [f"{likelihood} likelihood", row["freshness"]]
    if row["topic_overlap"] is not None:
        told.append(f"topic overlap {row['topic_overlap']:.0%}")
    if row["shared_tags"]:
        told.append(f"shared tags: {', '.join(row['shared_tags'])}")
    why = f"refused: {row['refused']}" if row["refused"] else f"answers by {row['tier']}"
    lines = [*wrapped("", f"{row['id']}  {'; '.join(told)}", indent=2), *wrapped("  ", why, indent=4)]
    pieces = [piece for piece in row["evidence"] if piece["name"] != "start"]
    for wanted, sign in (("for it: ", 1), ("against it: ", -1)):
        most = [piece for piece in pieces if piece["adds"] * sign > _LEAST_TOLD][:_MOST_TOLD]
        if most:
            evidence = ", ".join(f"{piece['name'].replace('_', ' ')} {piece['adds']:+.1f}" for piece in most)
            lines += wrapped(f"  {wanted}", evidence, indent=4)
    return lines
