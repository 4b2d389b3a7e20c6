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
        text = to_yaml(value)
    if sys.stdout is None:  # closed by the caller: nobody wants to know
        return
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        # A C locale must not turn Chinese into a traceback.
        reconfigure(encoding="utf-8", errors="backslashreplace")
    write_out(text.rstrip("\n"))


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


def to_yaml(value: Any) -> str:
    """Render as block YAML that YAML 1.1 and 1.2 readers take alike; texts of several lines as blocks."""
    import yaml

    return yaml.dump(
        value, Dumper=_dumper(), sort_keys=False, allow_unicode=True, default_flow_style=False, width=4096
    )


def _dumper() -> type[Any]:
    import re

    import yaml

    class Dumper(yaml.SafeDumper):
        """A safe dumper that quotes what only a YAML 1.2 reader takes for a number."""

        def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - yaml's signature
            return True

    # What readers of one version or another take for a number, or for a boolean in YAML 1.1's own words.
    ambiguous = re.compile(r"[-+.0-9][0-9a-fA-FxobeE_+.:-]*|[yYnN]")
    breaks = re.compile("[\x85\u2028\u2029]")

    def text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
        if breaks.search(data):
            style: str | None = '"'
        else:
            style = "|" if "\n" in data else "'" if ambiguous.fullmatch(data) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Dumper.add_representer(str, text)
    return Dumper
