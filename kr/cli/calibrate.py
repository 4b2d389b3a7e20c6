"""``kr calibrate``: what one's own model of embeddings is worth as evidence."""

import sys
from typing import Any

import click

from kr.cli.layout import table, wrapped
from kr.cli.options import common, examples, open_app, with_context
from kr.cli.render import emit


@click.command("calibrate", epilog=examples("kr calibrate", "kr calibrate --format json"))
@with_context
def command(ctx: click.Context) -> None:
    """Learn what the similarity by your model of embeddings says of an entry, and keep the weights.

    The server of the setting embeddings is asked for the vectors of the labelled questions that kr ships, some
    480 short texts. The weights are kept in the database of the knowledge base, for this model; from then on the
    similarity counts when no entry has the very topic that is asked for. Run it again after a change of the model
    or an upgrade of kr. The figures shown were reached on questions that the weights were not learned from: each
    of two files is judged by weights learned from the other.
    """
    with open_app(ctx) as app:
        try:
            value = app.calibrate(progress=_tell if sys.stderr.isatty() else _stay_silent)
        finally:
            if sys.stderr.isatty():
                _clear()
    emit(value, common(ctx), view)


def _tell(done: int, total: int) -> None:
    text = f"asked for {done} of {total} vectors" if done < total else "learning"
    sys.stderr.write(f"\r\x1b[K{text} …")
    sys.stderr.flush()


def _clear() -> None:
    sys.stderr.write("\r\x1b[K")
    sys.stderr.flush()


def _stay_silent(done: int, total: int) -> None:
    """Nobody watches."""


_ROWS = (
    ("first", "right entry first"),
    ("recall_balanced", "answered, balanced"),
    ("wrong_balanced", "near misses answered, balanced"),
    ("recall_strict", "answered, strict"),
    ("wrong_strict", "near misses answered, strict"),
)


def view(value: dict[str, Any]) -> str:
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
