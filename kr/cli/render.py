"""The one renderer: a command returns a value, and this prints it (SPEC 6).

An agent on a pipe sees YAML or JSON and nothing else; a person sees a readable view, made by the command's
own ``view``, and text that a terminal can't be tricked with.
"""

import sys
from collections.abc import Callable
from typing import Any

import click

from kr.cli.options import Common

View = Callable[[Any], str]


def wants_text(common: Common) -> bool:
    """Tell whether a person reads the answer: asked for, or at a terminal."""
    return common.format == "text" or (common.format is None and sys.stdout.isatty())


def emit(value: Any, common: Common, view: View) -> None:
    """Print ``value`` (nested plain data) to standard output in the format that is wanted."""
    if wants_text(common):
        text = view(value)
    elif common.format == "json":
        text = to_json(value)
    else:
        text = to_yaml(value)
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        # A C locale must not turn Chinese into a traceback.
        reconfigure(encoding="utf-8", errors="backslashreplace")
    click.echo(text.rstrip("\n"))


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

    number = re.compile(r"[-+.0-9][0-9a-fA-FxobeE_+.:-]*")

    def text(dumper: yaml.SafeDumper, data: str) -> yaml.ScalarNode:
        style = "|" if "\n" in data else "'" if number.fullmatch(data) else None
        return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)

    Dumper.add_representer(str, text)
    return Dumper
