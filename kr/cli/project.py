"""``kr versions``, ``kr warm``, ``kr export-yaml`` and ``kr import-yaml``."""

import os
from functools import partial
from pathlib import Path
from typing import Any

import click

from kr.cli.common import (
    MOST,
    cell,
    complain,
    emit,
    facts_view,
    kr_command,
    limit_option,
    open_app,
    table,
    warn,
)

_NO_DEPENDENCIES = "No dependency file names anything here; kr versions --help lists those that are read."


def _is_there(_: click.Context, __: click.Parameter, folder: Path | None) -> Path | None:
    """Raise ``OSError`` for a folder that is not there: as of any file, that is no wrong command line."""
    if folder is not None:
        os.scandir(folder).close()
    return folder


_FOLDER = click.Path(path_type=Path)


@kr_command("versions", "kr versions", "kr versions ../shop --all --format json", "kr versions --mark-stale")
@click.argument("project", metavar="[DIR]", required=False, type=_FOLDER, callback=_is_there)
@click.option("--all", "everything", is_flag=True, help="Indirect dependencies too.")
@click.option("--mark-stale", is_flag=True, help="Mark entries of another major version stale.")
def versions(ctx: click.Context, /, project: Path | None, *, everything: bool, mark_stale: bool) -> None:
    """List the frameworks and versions that a project's dependency files name.

    The project is the nearest folder upwards with a dependency file, up to the repository's root; where there is none,
    the projects in the two levels below. Members of its workspace are read too.

    Read are package.json (package-lock.json, npm-shrinkwrap.json, yarn.lock, pnpm-lock.yaml, pnpm-workspace.yaml),
    pyproject.toml (uv.lock, poetry.lock), setup.cfg, requirements*.txt, pom.xml, build.gradle and
    settings.gradle (also .kts, with gradle/libs.versions.toml), go.mod, Cargo.toml (Cargo.lock), composer.json
    (composer.lock), Gemfile.lock. What is installed (node_modules, VIRTUAL_ENV, .venv, venv) wins over a lock file, a
    lock file over a range. Dependency files that kr does not read, or can't, are named on standard error and in the answer.
    """
    with open_app(ctx) as app:
        rows = app.versions(project, everything=everything, mark_stale=mark_stale)
    emit(rows, ctx, versions_view)


def versions_view(rows: list[dict[str, Any]]) -> str:
    unread = [f"not read: {cell(row['file'])}: {cell(row['note'])}" for row in rows if "note" in row]
    rows = [row for row in rows if "note" not in row]
    found = list(dict.fromkeys((row["framework"], row["version"], row["file"]) for row in rows))
    shown = table(("framework", "version", "found in"), found, wide="framework") if rows else _NO_DEPENDENCIES
    lines = [shown, *unread]
    if rows and "marked_stale" in rows[0]:
        marked = [(it, row["version"]) for row in rows for it in row["marked_stale"]]
        lines += ["", "marked stale:" if marked else "no entry had to be marked stale"]
        lines += [f"{cell(entry_id)}: the project uses {cell(version)}" for entry_id, version in marked]
    return "\n".join(lines)


@kr_command("warm", "kr warm vue vue-router --research", "kr warm --research --limit 3 --max-calls 3")
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--project",
    metavar="DIR",
    type=_FOLDER,
    callback=_is_there,
    help="The project. Default: that of the working directory.",
)
@click.option("--research", is_flag=True, help="Ask a general question about each framework it lacks.")
@click.option(
    "--max-calls",
    type=click.IntRange(0, MOST),
    metavar="N",
    help="Calls to sources that the whole run may cost. Default: max_calls_per_story.",
)
@limit_option
def warm(
    ctx: click.Context,
    /,
    project: Path | None,
    *,
    names: tuple[str, ...],
    research: bool,
    **bounds: int | None,
) -> int:
    """List the frameworks a project depends on, with what the cache holds of each; or those that NAME names.

    What the cache lacks comes first, tools of development last. An entry counts as fresh when it
    would answer today for the version in use. With --research the frameworks without a fresh entry are asked about,
    one after another, until the budget of the run is spent.
    """
    if not research and any(value is not None for value in bounds.values()):
        raise click.UsageError("--max-calls and --limit need --research.")
    with open_app(ctx) as app:
        if not research:
            emit(app.warm(project, names=names), ctx, warm_view)
            return 0
        if bounds["max_calls"] is None:
            bounds["max_calls"] = app.settings.knowledge_research.max_calls_per_story
        rows = app.warm_up(project, names=names, **bounds, tell=partial(click.echo, err=True))
    emit(rows, ctx, warm_view)
    return 1 if any(row["status"] == "failure" for row in rows) else 0


def warm_view(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return _NO_DEPENDENCIES
    columns = ["framework", "version", "fresh", "stale", "state"]
    was_asked = "status" in rows[0]
    columns += ["status", "note"] if was_asked else []
    shown = table(columns, [[row[name] for name in columns] for row in rows], wide="framework")
    if was_asked or all(row["state"] == "fresh" for row in rows):
        return shown
    return f"{shown}\n\nkr warm --research asks about what is not fresh, within a budget"


@kr_command("export-yaml", "kr export-yaml", "kr export-yaml --output moved/")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder to write to. Default: the knowledge base.",
)
def export_yaml(ctx: click.Context, output: Path | None) -> None:
    """Write index.yaml and _archived-index.yaml.

    An export into another folder has the reports too, also those of archived entries, and the questions, wordings
    and writers of the entries (_wordings.yaml): kr import-yaml of that folder makes the same index, archive and
    reports elsewhere.

    Not exported: times of day; lessons (`kr lessons import` takes their file), which of them are pinned, retired or approved and their
    counts; earlier texts of reports; ratings; findings that wait for `kr review`; the record of requests, calls and
    workflows. `kr db backup` has everything. The same state gives the same bytes. Of a file that kr did not
    write a copy is first kept beside it, its name ending with .bak.
    """
    with open_app(ctx, only_reads=True) as app:
        emit(app.export_yaml(output), ctx, facts_view)


@kr_command("import-yaml", "kr import-yaml ../old-project/_bmad-output/knowledge-base")
@click.argument("sources", metavar="DIR|FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
def import_yaml(ctx: click.Context, sources: tuple[Path, ...]) -> int:
    """Import index.yaml and _archived-index.yaml, from folders or as single files, with the _wordings.yaml beside them.

    Reports that stand elsewhere are copied into the knowledge base, never over another. An entry that is here
    already is updated when the imported one was accessed later; importing twice changes nothing. Bad items are
    named on standard error with file and line, and skipped. The exit status is 1 only when a file can't be read at all.
    """
    with open_app(ctx) as app:
        result = app.import_yaml(sources)
        for item in result.refused:
            warn(f"refused: {item}")
        for file in result.unreadable:
            complain(str(file))
        emit(result.plain(), ctx, facts_view)
    return 1 if result.unreadable else 0
