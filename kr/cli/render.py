"""The one renderer: a command returns a value, and this prints it (SPEC 6).

An agent on a pipe sees YAML or JSON and nothing else; a person sees a readable view, made by the command's
own ``view``, and text that a terminal can't be tricked with.
"""

import sys
from collections.abc import Callable
from typing import Any

import click

from kr.cli.options import Common
from kr.errors import OutputFailed

View = Callable[[Any], str]


def wants_text(common: Common) -> bool:
    """Tell whether a person reads the answer: asked for, or at a terminal."""
    return common.format == "text" or (
        common.format is None and sys.stdout is not None and sys.stdout.isatty()
    )


def emit(value: Any, common: Common, view: View) -> None:
    """Print ``value`` (nested plain data) to standard output in the format that is wanted."""
    if wants_text(common):
        text = view(_shown(value))
    elif common.format == "json":
        text = to_json(value)
    else:
        from kr.cli.yaml_writer import to_yaml

        text = to_yaml(value)
    if sys.stdout is None:  # closed by the caller: nobody wants to know
        return
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        # A C locale must not turn Chinese into a traceback.
        reconfigure(encoding="utf-8", errors="backslashreplace")
    write_out(text.rstrip("\n"))


def at_most(limit: int | None, rows: list[Any]) -> list[Any]:
    """Cut a list that was asked for with one more than its limit, and say so (SPEC 6)."""
    if limit is not None and len(rows) > limit:
        tell_cut(str(limit))
    return rows[:limit]


def tell_cut(shown: str) -> None:
    """Say that a list goes on, where it is no part of the output."""
    click.echo(f"the first {shown} shown; --limit N shows more", err=True)


def write_out(text: str) -> None:
    """Write to standard output. A reader who has gone has seen enough; anything else is ``OutputFailed``."""
    try:
        # Not through click.echo's caller: click answers a closed pipe with exit status 1.
        click.echo(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # What the command did, and its exit status, stand.
        _forget_stdout()
    except OSError as error:
        _forget_stdout()
        raise OutputFailed(f"standard output can't be written: {error.strerror}") from error


def _forget_stdout() -> None:
    """Let go of standard output, so that what is still buffered does not raise at shutdown."""
    import os

    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _shown(value: Any) -> Any:
    """Take out of all texts what would command the terminal, or show it in another order than it stands."""
    from kr.text.characters import strip_invisible

    if isinstance(value, str):
        return strip_invisible(value)
    if isinstance(value, dict):
        return {key: _shown(item) for key, item in value.items()}
    return [_shown(item) for item in value] if isinstance(value, list) else value


def to_json(value: Any) -> str:
    """Render as indented JSON, letters as they are."""
    import json

    return json.dumps(value, ensure_ascii=False, indent=2)
