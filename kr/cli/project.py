"""``kr init``, ``trust``, ``versions``, ``warm``, ``export-yaml`` and ``import-yaml``: a project and its knowledge base."""

import logging
import os
import shlex
import sys
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kr.cli import common
from kr.errors import KrError
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

if TYPE_CHECKING:
    from kr.app import App

logger = logging.getLogger(__name__)

_DEFAULT = ".kr"
_NO_DEPENDENCIES = "No dependency file names anything here; kr versions --help lists those that are read."
_ASK = "kr warm --research asks about what is not fresh, within a budget."


@common.kr_command("init", "kr init", "kr init --kb shared/knowledge-base")
def init(ctx: click.Context) -> int:
    """Write kr.yaml and create the knowledge base.

    Nothing is overwritten, and it may be run again: where a file exists already, it says what to add. In a git checkout the
    knowledge base .kr is added to .gitignore; of another one it says what to commit. It makes the folder a project.
    """
    project, environ = _project(ctx), dict(os.environ)
    is_new = project.file is None and _write_config(project, common.options(ctx).get("kb"), environ)
    with common.open_app(ctx) as app:
        files = [_file(app.settings.config_file, is_new=is_new)]
        files.append(_file(app.store.location, is_new=not app.store.exists()))
        with app.store.write() as tx:  # one of several at once after another
            entries.count(tx)
            hints = [_version_control(app.settings, files)]
        used = next((row["framework"] for row in app.warm(app.settings.project_root)), "click")
        ask = f'kr research {shlex.quote(used)} "How do I test code that uses {used}?"'
        return common.emit({"files": files, "hints": hints, "next": [ask, "kr warm", "kr doctor"]}, ctx)


def _project(ctx: click.Context) -> Project:
    config = common.options(ctx).get("config")
    return find_project(config=Path(config) if config else None, environ=os.environ, cwd=Path.cwd())


def _file(path: object, *, is_new: bool) -> dict[str, str]:
    return {"path": str(path), "state": "created" if is_new else "exists"}


def _write_config(project: Project, kb: str | None, environ: Mapping[str, str]) -> bool:
    """Write the file that fits, and trust it; False where another process wrote one meanwhile."""
    path = project.root / CONFIG
    is_bmad = project.default.startswith("_bmad")
    text = render_config(_chosen_base(project, kb, environ), is_bmad=is_bmad)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        return False
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
        return f"Commit {CONFIG} and .gitignore, which leaves the knowledge base out: take /{folder}/ from it to share reports."
    return f"Commit {CONFIG} and {folder}/ to share reports and lessons; {folder}/.gitignore leaves the database out."


def _ignore(file: Path, line: str) -> dict[str, str]:
    """Add a line to .gitignore where none names the folder yet."""
    refuse_link(file)
    text = file.read_text(encoding="utf-8", errors="surrogateescape") if file.exists() else ""
    if any(known.strip().strip("/") == line.strip("/") for known in text.splitlines()):
        return {"path": str(file), "state": "exists"}
    descriptor = open_own(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    with os.fdopen(descriptor, "a", encoding="utf-8") as stream:
        stream.write(f"\n{line}\n" if text and not text.endswith("\n") else f"{line}\n")
    return {"path": str(file), "state": "changed" if text else "created"}


@common.kr_command("trust", "kr trust", "kr trust --yes")
@click.option("--yes", "-y", is_flag=True, help="Don't ask; needed where no terminal is there to answer.")
def trust(ctx: click.Context, /, *, yes: bool) -> int:
    """Let what a project's kr.yaml starts, expands and calls take effect.

    Programs to start, variables to expand, keys, endpoints, private addresses and places outside of the project in a
    project's configuration are left out until you trust the file: whoever wrote the repository wrote them. This shows them and remembers the file as it
    is; after a change it asks again. Your own kr.yaml in ~/.config/kr and a file that --config or KR_CONFIG names need
    no trust. Exit status 1 where you say no.
    """
    project, environ = _project(ctx), dict(os.environ)
    file = project.file
    if file is None:
        raise KrError("there is no kr.yaml here or above: nothing needs to be trusted")
    settings = [shown(path, one) for path, one in guarded(project, environ)]
    value: dict[str, Any] = {"file": str(file.path), "settings": settings, "trusted": True}
    if settings and not is_trusted(project, environ):
        value["trusted"] = yes or _agrees(file.path, settings)
        if value["trusted"]:
            trust_file(project, environ)
    return common.emit(common.Output(value=value, status=int(not value["trusted"])), ctx)


def _agrees(file: Path, settings: list[str]) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        click.echo(f"{file} is not trusted: read it, then say `kr trust --yes`", err=True)
        return False
    click.echo("\n".join([f"{file} says:", *(f"  {strip_invisible(line)}" for line in settings)]), err=True)
    return click.confirm("Trust this file, as it is now?", err=True)


def _is_there(_: click.Context, __: click.Parameter, folder: Path | None) -> Path | None:
    """Raise ``OSError`` for a folder that is not there: as of any file, that is no wrong command line."""
    if folder is not None:
        os.scandir(folder).close()
    return folder


_FOLDER = click.Path(path_type=Path)


@common.operation(
    "versions", "kr versions", "kr versions ../shop --all --format json", "kr versions --mark-stale"
)
@click.argument("project", metavar="[DIR]", required=False, type=_FOLDER, callback=_is_there)
@click.option("--all", "everything", is_flag=True, help="Indirect dependencies too.")
@click.option("--mark-stale", is_flag=True, help="Mark entries of another major version stale.")
def versions(app: "App", project: Path | None, **wanted: bool) -> common.Output:
    """List the frameworks and versions that a project's dependency files name.

    The project is the nearest folder upwards with a dependency file, up to the repository's root; where there is none,
    the projects in the two levels below. Members of its workspace are read too.

    Read are package.json (package-lock.json, npm-shrinkwrap.json, yarn.lock, pnpm-lock.yaml, pnpm-workspace.yaml),
    pyproject.toml (uv.lock, poetry.lock), setup.cfg, requirements*.txt, pom.xml, build.gradle and
    settings.gradle (also .kts, with gradle/libs.versions.toml), go.mod, Cargo.toml (Cargo.lock), composer.json
    (composer.lock), Gemfile.lock. What is installed (node_modules, VIRTUAL_ENV, .venv, venv) wins over a lock file, a
    lock file over a range. Dependency files that kr does not read, or can't, are named on standard error and in the answer.
    """
    rows = app.versions(project, **wanted)
    return common.Output(value=rows, hint="" if rows else _NO_DEPENDENCIES)


@common.operation("warm", "kr warm vue vue-router --research", "kr warm --research --limit 3 --max-calls 3")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--project", metavar="DIR", type=_FOLDER, callback=_is_there, help="Default: the one here.")
@click.option("--research", is_flag=True, help="Ask a general question about each framework it lacks.")
@click.option("--max-calls", type=click.IntRange(min=0), help="Of the run. Default: max_calls_per_story.")
@common.limit_option()
def warm(
    app: "App", project: Path | None, *, names: tuple[str, ...], research: bool, **bounds: int | None
) -> common.Output:
    """List the frameworks a project depends on, with what the cache holds of each; or those that NAME names.

    What the cache lacks comes first, tools of development last. An entry counts as fresh when it
    would answer today for the version in use. With --research the frameworks without a fresh entry are asked about,
    one after another, until the budget of the run is spent.
    """
    if not research:
        if any(value is not None for value in bounds.values()):
            raise click.UsageError("--max-calls and --limit need --research.")
        rows = app.warm(project, names=names)
        return common.Output(value=rows, hint=_ASK if rows else _NO_DEPENDENCIES)
    if bounds["max_calls"] is None:
        bounds["max_calls"] = app.settings.knowledge_research.max_calls_per_story
    rows = app.warm_up(project, names=names, **bounds, tell=partial(click.echo, err=True))
    return common.Output(value=rows, status=int(any(row["status"] == "failure" for row in rows)))


@common.operation("export-yaml", "kr export-yaml", "kr export-yaml --output moved/", only_reads=True)
@click.option("--output", type=_FOLDER, metavar="DIR", help="Default: the knowledge base.")
def export_yaml(app: "App", output: Path | None) -> dict[str, Any]:
    """Write index.yaml and _archived-index.yaml.

    An export into another folder has the reports too, also those of archived entries, and the questions, wordings
    and writers of the entries (_wordings.yaml): kr import-yaml of that folder makes the same index, archive and
    reports elsewhere.

    Not exported: times of day; lessons (`kr lessons import` takes their file), which of them are pinned, retired or approved and their
    counts; earlier texts of reports; ratings; findings that wait for `kr review`; the record of requests, calls and
    workflows. `kr db backup` has everything. The same state gives the same bytes. Of a file that kr did not
    write a copy is first kept beside it, its name ending with .bak.
    """
    return app.export_yaml(output)


@common.operation("import-yaml", "kr import-yaml ../old-project/_bmad-output/knowledge-base")
@click.argument("sources", metavar="DIR|FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
def import_yaml(app: "App", sources: tuple[Path, ...]) -> common.Output:
    """Import index.yaml and _archived-index.yaml, from folders or as single files, with the _wordings.yaml beside them.

    Reports that stand elsewhere are copied into the knowledge base, never over another. An entry that is here
    already is updated when the imported one was accessed later; importing twice changes nothing. Bad items are
    named on standard error with file and line, and skipped. The exit status is 1 only when a file can't be read at all.
    """
    result = app.import_yaml(sources)
    for item in result.refused:
        logger.warning("refused: %s", item)
    for file in result.unreadable:
        logger.error("%s", file)
    where = {"knowledge_base": str(app.settings.knowledge_base)}
    return common.Output(value={**where, **result.plain()}, status=int(bool(result.unreadable)))
