"""``kr versions`` and ``kr warm``: what a project depends on, and what the cache lacks of it (SPEC 6.4)."""

import sys
from pathlib import Path
from typing import Any

import click

from kr.cli.options import MOST, common, examples, open_app, with_context
from kr.cli.output import cell, emit, table
from kr.errors import KrError
from kr.text.counting import counted


class Folder(click.Path):
    """A folder that must be there. As a file that is missing, it is no wrong command line: exit status 1."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Take a folder. Raises ``KrError``."""
        folder = Path(str(super().convert(value, param, ctx)))
        if not folder.is_dir():
            why = "Not a directory" if folder.exists() else "No such file or directory"
            raise KrError(f"{value}: can't be read: {why}")
        return folder


@click.command(
    "versions",
    epilog=examples("kr versions", "kr versions ../shop --all --format json", "kr versions --mark-stale"),
)
@click.argument("project", metavar="[DIR]", required=False, type=Folder())
@click.option("--all", "everything", is_flag=True, help="Indirect dependencies too.")
@click.option("--mark-stale", is_flag=True, help="Mark entries of another major version stale.")
@with_context
def versions(ctx: click.Context, /, project: Path | None, *, everything: bool, mark_stale: bool) -> None:
    """List the frameworks and versions that a project's dependency files name, and the languages it is written in.

    The project is the nearest folder upwards with a dependency file, up to the repository's root; where there is none,
    the projects in the two levels below. Members of its workspace are read too.

    Read are package.json, pyproject.toml, requirements*.txt, pom.xml, build.gradle, go.mod, Cargo.toml,
    composer.json, and the lock files: package-lock.json, npm-shrinkwrap.json, yarn.lock, pnpm-lock.yaml, uv.lock, poetry.lock, pdm.lock, pylock.toml, gradle.lockfile,
    Cargo.lock, composer.lock and Gemfile.lock. A lock file's exact version
    wins over a range; a package without any version has the one that is installed; languages come from files such as .python-version, .nvmrc and .tool-versions, else from the
    manifest. Dependency files that kr does not read, or can't, are named on standard error.
    """
    with open_app(ctx) as app:
        rows = app.versions(project, everything=everything, mark_stale=mark_stale)
    emit(rows, common(ctx), versions_view)


def versions_view(rows: list[dict[str, Any]]) -> str:
    """Make a table, and say which entries were marked."""
    lines = [(row["framework"], row["version"], row["file"]) for row in rows]
    shown = table(("framework", "version", "found in"), lines, wide="framework") if rows else "none"
    marked = [
        f"{cell(entry_id)}: the project uses {cell(row['version'])}"
        for row in rows
        for entry_id in row.get("marked_stale", ())
    ]
    if not rows or "marked_stale" not in rows[0]:
        return shown
    return "\n".join([shown, "", "marked stale:" if marked else "no entry had to be marked stale", *marked])


_SHOWN = 10


@click.command(
    "warm",
    epilog=examples(
        "kr warm",
        "kr warm vue vue-router --research",
        "kr warm --project ../shop --research --limit 3 --max-calls 3",
    ),
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
@click.option("--limit", type=click.IntRange(1, MOST), metavar="N", help="Ask about N frameworks at most.")
@click.option("--yes", is_flag=True, help="Don't ask. Without a terminal nothing is asked anyway.")
@with_context
def warm(
    ctx: click.Context,
    /,
    names: tuple[str, ...],
    *,
    project: Path | None,
    research: bool,
    max_calls: int | None,
    limit: int | None,
    yes: bool,
) -> int:
    """List the frameworks a project depends on, with what the cache holds of each; or those that NAME names.

    What the cache lacks comes first, and of that what the code imports in most files; tools for development that it does
    not import come last. An entry counts as fresh when it would answer today for the version in use. With --research
    the frameworks without a fresh entry are asked about, one after another, until the budget of the run is spent. What is
    going to be asked is shown on standard error before; at a terminal kr waits for a yes.
    """
    if not research and (max_calls is not None or limit is not None):
        raise click.UsageError("--max-calls and --limit need --research.")
    with open_app(ctx) as app:
        if not research:
            emit(app.warm(project, names=names), common(ctx), warm_view)
            return 0
        calls = app.settings.knowledge_research.max_calls_per_story if max_calls is None else max_calls

        def may_spend(asked: list[str]) -> bool:
            _tell(f"asking about {', '.join(asked[:_SHOWN])}{', ...' if len(asked) > _SHOWN else ''}")
            _tell(f"{counted(len(asked), 'question')}, {counted(calls, 'call')} to sources at most")
            return yes or not sys.stdin.isatty() or click.confirm("Go on?", default=True, err=True)

        rows = app.warm_up(
            project, names=names, max_calls=max_calls, limit=limit, tell=_tell, may_spend=may_spend
        )
    emit(rows, common(ctx), warm_view)
    return 1 if any(row["status"] == "failure" for row in rows) else 0


def _tell(line: str) -> None:
    click.echo(line, err=True)


def warm_view(rows: list[dict[str, Any]]) -> str:
    """Make a table."""
    if not rows:
        return "The project's dependency files name nothing."
    columns = ["framework", "version", "imports", "fresh", "stale", "state"]
    if "status" in rows[0]:
        columns += ["status", "note"]
    return table(columns, [[row[name] for name in columns] for row in rows], wide="framework")
