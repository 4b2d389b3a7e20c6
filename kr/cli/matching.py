"""``kr explain`` and ``kr calibrate``: why the cache answers a question, and what a model of embeddings adds to it."""

from typing import Any

import click

from kr.cli.options import common, examples, open_app, read_request, schema_option, with_context
from kr.cli.output import emit, progress_line, table, wrapped
from kr.cli.research import check_form, question_parameters

_COLOURS = {"hit": "green", "stale": "yellow", "miss": "red"}
_LEAST_ENTRIES, _MOST_ENTRIES = 2, 5
_LEAST_LIKELY = 0.005
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
def explain(
    ctx: click.Context, /, framework: str | None, question: str | None, document: str | None, **given: Any
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
        emit(value, common(ctx), explained)


def explained(value: dict[str, Any]) -> str:
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
    considered = value["considered"]
    likely = sum((row["likelihood"] or 0) >= _LEAST_LIKELY for row in considered)
    shown = considered[: min(max(likely, _LEAST_ENTRIES), _MOST_ENTRIES)]
    for row in shown:
        lines += ["", *_entry(row)]
    if left := len(considered) - len(shown):
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
    lines = [*wrapped("", f"{row['id']}: {'; '.join(told)}", indent=2), *wrapped("  ", why, indent=4)]
    pieces = [piece for piece in row["evidence"] if piece["name"] != "start"]
    for wanted, sign in (("for it: ", 1), ("against it: ", -1)):
        most = [piece for piece in pieces if piece["adds"] * sign > _LEAST_TOLD][:_MOST_TOLD]
        if most:
            evidence = ", ".join(f"{piece['name'].replace('_', ' ')} {piece['adds']:+.1f}" for piece in most)
            lines += wrapped(f"  {wanted}", evidence, indent=4)
    return lines


@click.command("calibrate", epilog=examples("kr calibrate", "kr calibrate --format json"))
@with_context
def calibrate(ctx: click.Context) -> None:
    """Learn what the similarity by your model of embeddings says of an entry, and keep the weights.

    The server of the setting embeddings is asked for the vectors of the labelled questions that kr ships, some
    480 short texts. The weights are kept in the database of the knowledge base, for this model; from then on the
    similarity counts when no entry has the very topic that is asked for. Run it again after a change of the model
    or an upgrade of kr. The figures shown were reached on questions that the weights were not learned from: each
    of two files is judged by weights learned from the other.
    """
    with open_app(ctx) as app, progress_line() as show:
        value = app.calibrate(
            progress=lambda done, total: show(
                f"asked for {done} of {total} vectors …" if done < total else "learning …"
            )
        )
    emit(value, common(ctx), calibrated)


_ROWS = (
    ("first", "right entry first"),
    ("recall_balanced", "answered, balanced"),
    ("wrong_balanced", "near misses answered, balanced"),
    ("recall_strict", "answered, strict"),
    ("wrong_strict", "near misses answered, strict"),
)


def calibrated(value: dict[str, Any]) -> str:
    """Make the readable view: a table of what was reached, and where the weights are."""
    without, reached = value["without"], value["reached"]
    rows = [[label, f"{without[key]:.1%}", f"{reached[key]:.1%}"] for key, label in _ROWS]
    told = f"{value['model']} on {value['questions']} labelled questions, judged on what was not learned from"
    return "\n".join(
        [
            *wrapped("", told, indent=0),
            "",
            table(["", "without", "with the model"], rows),
            "",
            *wrapped("", f"The weights are kept in {value['kept_in']}.", indent=0),
        ]
    )
