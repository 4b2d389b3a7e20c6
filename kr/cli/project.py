"""``kr versions``, ``kr warm``, ``kr export-yaml`` and ``kr import-yaml``."""

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
from kr.errors import KrError

_NO_DEPENDENCIES = "No dependency file names anything here; kr versions --help lists those that are read."


class Folder(click.Path):
    """A folder that must be there. As a file that is missing, it is no wrong command line: exit status 1."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the folder. Raises ``KrError``."""
        folder = Path(str(super().convert(value, param, ctx)))
        if not folder.is_dir():
            why = "Not a directory" if folder.exists() else "No such file or directory"
            raise KrError(f"{value}: can't be read: {why}")
        return folder


@kr_command("versions", "kr versions", "kr versions ../shop --all --format json", "kr versions --mark-stale")
@click.argument("project", metavar="[DIR]", required=False, type=Folder())
@click.option("--all", "everything", is_flag=True, help="Indirect dependencies too.")
@click.option("--mark-stale", is_flag=True, help="Mark entries of another major version stale.")
def versions(ctx: click.Context, /, project: Path | None, *, everything: bool, mark_stale: bool) -> None:
    """List the frameworks and versions that a project's dependency files name.

    The project is the nearest folder upwards with a dependency file, up to the repository's root; where there is none,
    the projects in the two levels below. Members of its workspace are read too.

    Read are package.json (package-lock.json, npm-shrinkwrap.json, yarn.lock, pnpm-lock.yaml, pnpm-workspace.yaml),
    pyproject.toml (uv.lock, poetry.lock, pylock.toml), setup.cfg, requirements*.txt, pom.xml, build.gradle and
    settings.gradle (also .kts, with version catalogs), go.mod and go.work, Cargo.toml (Cargo.lock), composer.json
    (composer.lock), Gemfile.lock. What is installed (node_modules, VIRTUAL_ENV, .venv, venv) wins over a lock file, a
    lock file over a range. Dependency files that kr does not read, or can't, are named on standard error and in the answer.
    """
    with open_app(ctx) as app:
        rows = app.versions(project, everything=everything, mark_stale=mark_stale)
    emit(rows, ctx, versions_view)


def versions_view(rows: list[dict[str, Any]]) -> str:
    unread = [f"not read: {cell(row['file'])}: {cell(row['note'])}" for row in rows if "note" in row]
    rows = [row for row in rows if "note" not in row]
    lines = list(dict.fromkeys((row["framework"], row["version"], row["file"]) for row in rows))
    shown = table(("framework", "version", "found in"), lines, wide="framework") if rows else _NO_DEPENDENCIES
    shown = "\n".join([shown, *unread])
    if not rows or "marked_stale" not in rows[0]:
        return shown
    marked = [
        f"{cell(entry_id)}: the project uses {cell(row['version'])}"
        for row in rows
        for entry_id in row["marked_stale"]
    ]
    return "\n".join([shown, "", "marked stale:" if marked else "no entry had to be marked stale", *marked])


@kr_command(
    "warm",
    "kr warm",
    "kr warm vue vue-router --research",
    "kr warm --project ../shop --research --limit 3 --max-calls 3",
)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--project", metavar="DIR", type=Folder(), help="The project. Default: that of the working directory."
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
    names: tuple[str, ...],
    *,
    project: Path | None,
    research: bool,
    max_calls: int | None,
    limit: int | None,
) -> int:
    """List the frameworks a project depends on, with what the cache holds of each; or those that NAME names.

    What the cache lacks comes first, tools of development last. An entry counts as fresh when it
    would answer today for the version in use. With --research the frameworks without a fresh entry are asked about,
    one after another, until the budget of the run is spent.
    """
    if not research and (max_calls is not None or limit is not None):
        raise click.UsageError("--max-calls and --limit need --research.")
    with open_app(ctx) as app:
        if not research:
            emit(app.warm(project, names=names), ctx, warm_view)
            return 0
        calls = app.settings.knowledge_research.max_calls_per_story if max_calls is None else max_calls
        rows = app.warm_up(project, names=names, max_calls=calls, limit=limit, tell=_print)
    emit(rows, ctx, warm_view)
    return 1 if any(row["status"] == "failure" for row in rows) else 0


def _print(line: str) -> None:
    click.echo(line, err=True)


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


@kr_command(
    "export-yaml",
    "kr export-yaml",
    "kr export-yaml --output moved/",
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder to write to. Default: the knowledge base.",
)
def export_yaml(ctx: click.Context, output: Path | None) -> None:
    """Write index.yaml and _archived-index.yaml.

    An export into another folder has the reports too, also those of archived entries, and the questions, wordings,
    writers and exact times of the entries (_wordings.yaml): kr import-yaml of that folder makes the same index,
    archive and reports elsewhere.

    Not exported: lessons (`kr lessons import` takes their file), which of them are pinned, retired or approved and their
    counts; earlier texts of reports; ratings; findings that wait for `kr review`; the record of requests, calls and
    workflows. `kr db backup` has everything. The same state gives the same bytes. Of a file that kr did not
    write a copy is first kept beside it, its name ending with .bak.
    """
    with open_app(ctx, only_reads=True) as app:
        emit(app.export_yaml(output), ctx, facts_view)


@kr_command(
    "import-yaml",
    "kr import-yaml ../old-project/_bmad-output/knowledge-base",
    "kr import-yaml index.yaml _archived-index.yaml",
)
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
            warn(f"refused: {_printable(str(item))}")
        for file in result.unreadable:
            complain(_printable(str(file)))
        emit(result.plain(), ctx, facts_view)
    return 1 if result.unreadable else 0


def _printable(line: str) -> str:
    return "".join(char if char.isprintable() else "\ufffd" for char in line)
