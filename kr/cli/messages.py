"""What kr says to a person, on standard error: ``error:`` and ``warning:``, in one style (SPEC 6)."""

import os

import click


def colour() -> bool | None:
    """Tell what click is to do about colours: None lets it see whether a terminal reads, False forbids them.

    ``NO_COLOR`` (set to anything) and ``TERM=dumb`` forbid.
    """
    return False if os.environ.get("NO_COLOR") or is_dumb() else None


def is_dumb() -> bool:
    """Tell whether the terminal knows no more than to print lines."""
    return os.environ.get("TERM") == "dumb"


def complain(message: str) -> None:
    """Say what went wrong."""
    _say("error", message, "red")


def warn(message: str) -> None:
    """Say what is odd, and did not stop anything."""
    _say("warning", message, "yellow")


def _say(kind: str, message: str, shade: str) -> None:
    click.echo(f"{click.style(f'{kind}:', fg=shade, bold=True)} {message}", err=True, color=colour())
