"""``kr trust``: what a project's configuration may start, expand and call."""

import os
import sys
from pathlib import Path
from typing import Any

import click

from kr.cli.common import common, emit, kr_command
from kr.errors import KrError
from kr.settings.project import find_project
from kr.settings.trust import guarded, is_trusted, shown
from kr.settings.trust import trust as remember
from kr.text import strip_invisible


@kr_command("trust", "kr trust", "kr trust --yes")
@click.option("--yes", "-y", is_flag=True, help="Don't ask; needed where no terminal is there to answer.")
def trust(ctx: click.Context, /, *, yes: bool) -> int:
    """Let what a project's kr.yaml starts, expands and calls take effect.

    Programs to start, variables to expand, keys, endpoints, private addresses and places outside of the project in a
    project's configuration are left out until you trust the file: whoever wrote the repository wrote them. This shows them and remembers the file as it
    is; after a change it asks again. Your own kr.yaml in ~/.config/kr and a file that --config or KR_CONFIG names need
    no trust. Exit status 1 where you say no.
    """
    environ = dict(os.environ)
    said = common(ctx)
    named = Path(said.config) if said.config else None
    project = find_project(config=named, environ=environ, cwd=Path.cwd())
    file = project.file
    if file is None:
        raise KrError("there is no kr.yaml here or above: nothing needs to be trusted")
    settings = [shown(path, one) for path, one in guarded(project, environ)]
    value: dict[str, Any] = {"file": str(file.path), "settings": settings, "trusted": True}
    if settings and not is_trusted(project, environ):
        value["trusted"] = yes or _agrees(file.path, settings)
        if value["trusted"]:
            remember(project, environ)
    emit(value, ctx, trusted)
    return 0 if value["trusted"] else 1


def _agrees(file: Path, settings: list[str]) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        click.echo(f"{file} is not trusted: read it, then say `kr trust --yes`", err=True)
        return False
    click.echo("\n".join([f"{file} says:", *(f"  {strip_invisible(line)}" for line in settings)]), err=True)
    return click.confirm("Trust this file, as it is now?", err=True)


def trusted(value: dict[str, Any]) -> str:
    if not value["settings"]:
        return f"nothing in {value['file']} needs to be trusted"
    state = "is trusted until it changes" if value["trusted"] else "is not trusted; left out"
    return "\n".join([f"{value['file']} {state}:", *(f"  {line}" for line in value["settings"])])
