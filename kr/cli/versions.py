"""``kr versions``: what a project depends on, read from its dependency files (SPEC 6.4)."""

from pathlib import Path
from typing import Any

import click

from kr.cli.options import common, common_options, examples, open_app
from kr.cli.render import emit
from kr.cli.table import cell, table


@click.command(
    "versions",
    epilog=examples("kr versions", "kr versions ../shop --all --format json", "kr versions --mark-stale"),
)
@click.argument(
    "project", metavar="[DIR]", required=False, type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option("--all", "everything", is_flag=True, help="Indirect dependencies too.")
@click.option("--mark-stale", is_flag=True, help="Mark entries of another major version stale.")
@common_options
@click.pass_context
def command(ctx: click.Context, /, project: Path | None, *, everything: bool, mark_stale: bool) -> int:
    """List the frameworks and versions that a project's dependency files name, and the languages it is written in.

    The project is the nearest folder upwards with a dependency file, up to the repository's root; where there is none,
    the projects in the two levels below. Members of its workspace are read too.

    Read are package.json, pyproject.toml, Pipfile, requirements*.txt, pom.xml, build.gradle, go.mod, Cargo.toml,
    composer.json, pubspec.yaml, mix.exs and .NET projects, and the lock files: package-lock.json, npm-shrinkwrap.json,
    yarn.lock, pnpm-lock.yaml, bun.lock, uv.lock, poetry.lock, pdm.lock, pylock.toml, Pipfile.lock, gradle.lockfile,
    Cargo.lock, composer.lock, Gemfile.lock, pubspec.lock, mix.lock and packages.lock.json. A lock file's exact version
    wins over a range; languages come from files such as .python-version, .nvmrc and .tool-versions, else from the
    manifest. Dependency files that kr does not read, or can't, are named on standard error.
    """
    with open_app(ctx) as app:
        rows = app.versions(project, everything=everything, mark_stale=mark_stale)
    emit(rows, common(ctx), view)
    return 0


def view(rows: list[dict[str, Any]]) -> str:
    """Make a table, and say which entries were marked."""
    lines = [(row["framework"], row["version"], row["file"]) for row in rows]
    shown = table(("framework", "version", "told by"), lines, wide="framework") if rows else "none"
    marked = [
        f"{cell(entry_id)}: the project uses {cell(row['version'])}"
        for row in rows
        for entry_id in row.get("marked_stale", ())
    ]
    if not rows or "marked_stale" not in rows[0]:
        return shown
    return "\n".join([shown, "", "marked stale:" if marked else "no entry had to be marked stale", *marked])
