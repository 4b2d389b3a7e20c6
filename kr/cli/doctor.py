"""``kr doctor``: what is wrong with the knowledge base, and its repair."""

from typing import TYPE_CHECKING, Any

import click

from kr.cli.layout import wrapped
from kr.cli.options import common, examples, open_app, with_context
from kr.cli.render import emit
from kr.text.counting import counted

if TYPE_CHECKING:
    from kr.maintenance.findings import Finding

_COLOURS = {"error": "red", "warning": "yellow", "information": "cyan"}


@click.command(
    "doctor",
    epilog=examples(
        "kr doctor",
        "kr doctor --repair",
        "kr doctor --online",
        "kr doctor --format json",
    ),
)
@click.option(
    "--repair", is_flag=True, help="Do what the findings announce; nothing is ever deleted for good."
)
@click.option("--online", is_flag=True, help="Also ask each configured source and model one cheap question.")
@click.option(
    "--reset-circuits", is_flag=True, help="Ask sources again that were paused because they failed."
)
@with_context
def command(ctx: click.Context, /, *, repair: bool, online: bool, reset_circuits: bool) -> int:
    """Find what is wrong: database, indexes, reports, exports, leases, permissions, file system.

    Each finding says what --repair would do. A repair loses nothing: a lost report is written back where its
    text is kept, and its entry goes to the archive where it is not; a damaged database is kept beside the new
    one; what the exports know and an older copy of the database doesn't is imported. Files that may not be read are
    left alone. --online says whether each server answers and accepts its key. Exit status 1 while a problem remains.
    """
    from kr.maintenance import doctor

    with open_app(ctx) as app:
        for source in app.reset_circuits() if reset_circuits else ():
            click.echo(f"{source} is asked again from now on", err=True)
        base = app.knowledge_base()
        if repair:
            listed = [finding for finding in doctor.examine(base) if finding.fix]
            for finding in listed:
                _announce(finding)
            value = doctor.repair(base, lambda it: None if it in listed else _announce(it))
        else:
            value = doctor.report(base)
        if online:
            found = list(app.check_sources())
            value["findings"] += [finding.plain() for finding in found]
            value["problems"] += sum(finding.is_problem for finding in found)
        emit(value, common(ctx), view)
    return 1 if value["problems"] else 0


def _announce(finding: "Finding") -> None:
    """Say what will be done, before anything is done; what a repair brings to light, before that is repaired."""
    click.echo(f"{finding.check}: {finding.subject}: {finding.message}. Repair: {finding.repair}", err=True)


def view(value: dict[str, Any]) -> str:
    """Make the readable view: what was done, what is left, how many problems."""
    lines = [
        f"{click.style('repaired', fg='green')} {row['check']}: {row['subject']}\n  {row['done']}"
        for row in value["repaired"]
    ]
    for row in value["findings"]:
        severity = click.style(row["severity"], fg=_COLOURS[row["severity"]])
        lines.append(f"{severity} {row['check']}: {row['subject']}")
        lines += wrapped("  ", row["message"], indent=2)
        if row["repair"]:
            lines += wrapped("  --repair would: ", row["repair"], indent=4)
    number = value["problems"]
    told = counted(number, "problem") if number else "no problem"
    lines.append(click.style(f"{told} in {value['knowledge_base']}", bold=True))
    return "\n".join(lines)
