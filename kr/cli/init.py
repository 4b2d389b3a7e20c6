"""``kr init`` and ``kr trust``: the configuration that fits a project, its knowledge base, and what it may start and call."""

import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from kr.app import App
from kr.cli.common import common, emit, facts_view, kr_command, open_app
from kr.errors import ConfigError, KrError
from kr.settings import Settings, load_settings
from kr.settings.model import render_config
from kr.settings.project import (
    CONFIG,
    Project,
    find_project,
    guarded,
    is_trusted,
    main_checkout,
    read_config,
    shown,
)
from kr.settings.project import trust as trust_file
from kr.store import entries
from kr.store.files import open_own, refuse_link
from kr.text import strip_invisible

_DEFAULT = ".kr"
_LOCKS = "*.json.lock"
"""What workflows leave beside their state files."""


@kr_command("init", "kr init", "kr init --kb shared/knowledge-base")
def init(ctx: click.Context) -> None:
    """Write kr.yaml and create the knowledge base.

    Nothing is overwritten, and it may be run again: where a file exists already, it says what to add. In a git checkout the
    knowledge base .kr is added to .gitignore; of another one it says what to commit. It makes the folder a project.
    """
    given, environ = common(ctx), dict(os.environ)
    config = Path(given.config) if given.config else None
    project = find_project(config=config, environ=environ, cwd=Path.cwd())
    is_new = project.file is None and _write_config(project, given.kb, environ)
    with open_app(ctx) as app:
        files = [_file(app.settings.config_file, is_new=is_new)]
        files.append(_file(app.store.location, is_new=not app.store.exists()))
        with app.store.write() as tx:  # one of several at once after another
            entries.count(tx)
            hints = [_version_control(app.settings, files)]
        emit({"files": files, "hints": hints, "next": _next(app)}, ctx, _initialized)


def _file(path: object, *, is_new: bool) -> dict[str, str]:
    return {"path": str(path), "state": "created" if is_new else "exists"}


def _write_config(project: Project, kb: str | None, environ: Mapping[str, str]) -> bool:
    """Write the file that fits, and trust it; False where another process wrote one meanwhile. Raises ``ConfigError``."""
    path = project.root / CONFIG
    text = render_config(_chosen_base(project, kb, environ))
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        if path.is_file():
            return False
        raise ConfigError(f"{path}: exists and is not a file; move it away and run kr init again") from None
    except OSError as error:
        raise ConfigError(f"{path}: can't be written: {error.strerror}") from error
    trust_file(replace(project, file=read_config(path)), environ)
    return True


def _chosen_base(project: Project, kb: str | None, environ: Mapping[str, str]) -> str | None:
    """Return the path to write; None where the user's own file names the knowledge base.

    Teams commit the file: what lies within the project is named from there.
    """
    base = load_settings(config=None, knowledge_base=kb, environ=environ, cwd=Path.cwd()).knowledge_base
    if project.base is not None and base == (project.base / project.default).resolve():
        return _DEFAULT if project.default == "." else project.default
    if base.is_relative_to(project.root):
        return base.relative_to(project.root).as_posix()
    return str(base) if kb or environ.get("KR_KNOWLEDGE_BASE_PATH") else None


def _version_control(settings: Settings, files: list[dict[str, str]]) -> str:
    """Leave ``.kr`` out of git, and say what a team commits: what is text, not the database."""
    root = settings.project_root
    shared = main_checkout(root)
    if not settings.knowledge_base.is_relative_to(shared):
        return f"Commit {CONFIG}. The knowledge base lies outside of the project."
    folder = settings.knowledge_base.relative_to(shared).as_posix()
    is_checkout = any((above / ".git").exists() for above in (root, *root.parents))
    if folder == _DEFAULT and is_checkout:
        files.append(_ignore(root / ".gitignore", f"/{folder}/"))
        return (
            f"Commit {CONFIG} and .gitignore, which leaves the knowledge base out. To share reports and lessons\n"
            f"by git, commit {folder}/ too, with this line in the place of /{folder}/: {_LOCKS}"
        )
    return (
        f"Commit {CONFIG} and {folder}/,\nso that reports and lessons go with the project; {folder}/.gitignore\n"
        f"leaves the database out. A line for your own .gitignore: {_LOCKS}"
    )


def _ignore(file: Path, line: str) -> dict[str, str]:
    """Add a line to .gitignore where none names the folder yet. Raises ``ConfigError``."""
    try:
        refuse_link(file)
        text = file.read_text(encoding="utf-8", errors="surrogateescape") if file.exists() else ""
        if any(known.strip().strip("/") == line.strip("/") for known in text.splitlines()):
            return {"path": str(file), "state": "exists"}
        descriptor = open_own(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        with os.fdopen(descriptor, "a", encoding="utf-8") as stream:
            stream.write(f"\n{line}\n" if text and not text.endswith("\n") else f"{line}\n")
    except OSError as error:
        raise ConfigError(f"{file}: can't be changed: {error.strerror}") from error
    return {"path": str(file), "state": "changed" if text else "created"}


def _next(app: App) -> list[str]:
    """Suggest a question about what the project uses most, and what else to try."""
    used = next((row["framework"] for row in app.warm(app.settings.project_root)), "click")
    return [f'kr research {shlex.quote(used)} "How do I test code that uses {used}?"', "kr warm", "kr doctor"]


def _initialized(value: dict[str, Any]) -> str:
    lines = [f"{click.style(item['state'], bold=True):<8}  {item['path']}" for item in value["files"]]
    lines += [f"\n{hint}" for hint in value["hints"]]
    lines += ["\nNext:", *(f"  {command}" for command in value["next"])]
    return "\n".join(lines)


@kr_command("trust", "kr trust", "kr trust --yes")
@click.option("--yes", "-y", is_flag=True, help="Don't ask; needed where no terminal is there to answer.")
def trust(ctx: click.Context, /, *, yes: bool) -> int:
    """Let what a project's kr.yaml starts, expands and calls take effect.

    Programs to start, variables to expand, keys, endpoints, private addresses and places outside of the project in a
    project's configuration are left out until you trust the file: whoever wrote the repository wrote them. This shows them and remembers the file as it
    is; after a change it asks again. Your own kr.yaml in ~/.config/kr and a file that --config or KR_CONFIG names need
    no trust. Exit status 1 where you say no.
    """
    environ, config = dict(os.environ), common(ctx).config
    project = find_project(config=Path(config) if config else None, environ=environ, cwd=Path.cwd())
    file = project.file
    if file is None:
        raise KrError("there is no kr.yaml here or above: nothing needs to be trusted")
    settings = [shown(path, one) for path, one in guarded(project, environ)]
    value: dict[str, Any] = {"file": str(file.path), "settings": settings, "trusted": True}
    if settings and not is_trusted(project, environ):
        value["trusted"] = yes or _agrees(file.path, settings)
        if value["trusted"]:
            trust_file(project, environ)
    emit(value, ctx, facts_view)
    return 0 if value["trusted"] else 1


def _agrees(file: Path, settings: list[str]) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        click.echo(f"{file} is not trusted: read it, then say `kr trust --yes`", err=True)
        return False
    click.echo("\n".join([f"{file} says:", *(f"  {strip_invisible(line)}" for line in settings)]), err=True)
    return click.confirm("Trust this file, as it is now?", err=True)
