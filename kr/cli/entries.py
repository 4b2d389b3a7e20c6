"""``kr entries``, ``archive``, ``versions``, ``warm``, ``export-yaml`` and ``import-yaml``: looking after the knowledge."""

import logging
import os
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kr.cli import common
from kr.cli.readable import readable

if TYPE_CHECKING:
    from kr.app import App

logger = logging.getLogger(__name__)

Row = dict[str, Any]

LISTED = "id question framework_version origin status confidence last_accessed"
ARCHIVED = "id question framework_version archive_id reason archived_at"
"""The columns of lists for people."""
_STATUSES = ("fresh", "stale", "withdrawn")
_REASONS = ("lru", "age", "manual")
_ENTRY = click.argument("entry_id", metavar="ID")
_REPORT = click.option("--report", is_flag=True, help="Give the report's text too.")
_NO_DEPENDENCIES = "No dependency file names anything here; kr versions --help lists those that are read."
_ASK = "kr warm --research asks about what is not fresh, within a budget."


@common.kr_group("entries", "kr entries list --status stale", "kr entries show vue-slots --report")
def command() -> None:
    """Look through the index, and change it by hand.

    An unknown id is an error that names the nearest ones.
    """


@common.operation(
    "list",
    "kr entries list --framework vue --status stale --limit 20",
    group=command,
    may_share=True,
    only_reads=True,
)
@common.framework_option
@click.option("--status", type=click.Choice(_STATUSES), help="As of today; withdrawn: rated wrong.")
@common.limit_option()
def list_entries(app: "App", **wanted: Any) -> common.Output:
    """List the entries, the last accessed first."""
    return common.Output(value=app.entries(**wanted)["entries"], columns=LISTED)


@common.operation(
    "show", "kr entries show vue-slots --report", group=command, may_share=True, only_reads=True
)
@_ENTRY
@_REPORT
def show(app: "App", entry_id: str, *, report: bool) -> common.Output:
    """Show one entry: what is known of it, and why it is stale."""
    return common.Output(value=app.entry(entry_id, report=report), view=_with_report)


def _with_report(value: Row) -> list[str]:
    """Show an entry, and its report as it stands."""
    lines = readable({name: it for name, it in value.items() if name != "report"})
    return [*lines, "", value["report"] or "Its text is lost."] if "report" in value else lines


@common.operation("remove", "kr entries remove vue-slots vue-watchers", group=command)
@click.argument("entry_ids", metavar="ID...", nargs=-1, required=True)
def remove(app: "App", entry_ids: tuple[str, ...]) -> Row:
    """Move entries to the archive: all that are named, or none when one is unknown.

    The report's text is kept; kr archive restore ID brings the entry back.
    """
    return app.catalog.remove(entry_ids)


@common.operation("history", "kr entries history vue-slots --revision 1", group=command)
@_ENTRY
@click.option("--revision", type=int, metavar="N", help="Give the text of revision N.")
def history(app: "App", entry_id: str, revision: int | None) -> Row | list[Row]:
    """List the texts that an entry's report had before, the oldest first."""
    return app.catalog.history(entry_id) if revision is None else app.catalog.revision(entry_id, revision)


@common.operation("restore", "kr entries history vue-slots", "kr entries restore vue-slots 1", group=command)
@_ENTRY
@click.argument("revision", type=int)
def restore(app: "App", entry_id: str, revision: int) -> Row:
    """Bring an earlier text of an entry back; the present one becomes a revision itself.

    To bring an archived entry back, see kr archive restore.
    """
    return app.catalog.restore_revision(entry_id, revision)


@common.kr_group("archive", "kr archive list --reason manual", "kr archive restore vue-slots")
def archive() -> None:
    """Look through the archive, and bring entries back."""


@common.operation("list", "kr archive list --framework vue --reason lru", group=archive, only_reads=True)
@common.framework_option
@click.option("--reason", type=click.Choice(_REASONS), help="Evicted for room, too old, or removed by hand.")
@common.limit_option()
def list_archive(app: "App", **wanted: Any) -> common.Output:
    """List the archived entries, the last archived first."""
    return common.Output(value=app.catalog.archive(**wanted), columns=ARCHIVED)


_NUMBER = click.option("--archive-id", type=int, help="Which one, by its number in kr archive list.")


@common.operation("show", "kr archive show vue-slots --archive-id 7 --report", group=archive)
@_ENTRY
@_NUMBER
@_REPORT
def show_archived(app: "App", entry_id: str, **wanted: Any) -> common.Output:
    """Show one archived entry: its row, when and why it left. Of several of one id the last archived."""
    return common.Output(value=app.catalog.archived(entry_id, **wanted), view=_with_report)


@common.operation("restore", "kr archive restore vue-slots --archive-id 7", group=archive)
@_ENTRY
@_NUMBER
def restore_archived(app: "App", entry_id: str, **wanted: Any) -> Row:
    """Make an archived entry live and fresh again, with its own text at its path.

    Of several of one id the last archived comes back; a placeholder comes back stale. A live entry of its id or topic
    goes to the archive. The index stays within its capacity: the entry accessed longest ago may leave it.
    """
    return app.catalog.restore(entry_id, **wanted)


# --- what a project uses, and YAML


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

    The project is the nearest folder upwards with a dependency file, up to the repository's root, with the members of
    its workspace; where there is none, the projects in the two levels below.

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
@click.option(
    "--max-calls", type=click.IntRange(min=0), help="Of the whole run. Default: max_calls_per_story."
)
@common.limit_option()
def warm(
    app: "App", project: Path | None, *, names: tuple[str, ...], research: bool, **bounds: int | None
) -> common.Output:
    """List the frameworks a project depends on, with what the cache holds of each; or those that NAME names.

    What the cache lacks comes first, tools of development last. An entry is fresh when it would answer today for the
    version in use. --research asks about the frameworks without a fresh entry, until the budget of the run is spent.
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
    """Write index.yaml and _archived-index.yaml; into another folder the reports and _wordings.yaml too.

    kr import-yaml of that folder makes the same index, archive and reports elsewhere. The same state gives the same
    bytes. Not exported: lessons (`kr lessons import` takes their file), earlier texts, ratings, what waits for
    `kr review`, times of day, and the record of requests, calls and workflows; `kr db backup` has everything. A file
    that kr did not write is first copied to a name that ends with .bak.
    """
    return app.export_yaml(output)


@common.operation("import-yaml", "kr import-yaml ../old-project/_bmad-output/knowledge-base")
@click.argument("sources", metavar="DIR|FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
def import_yaml(app: "App", sources: tuple[Path, ...]) -> common.Output:
    """Import index.yaml and _archived-index.yaml, from folders or as single files, with the _wordings.yaml beside them.

    Reports that stand elsewhere are copied, never over another. An entry that is here already is updated when the
    imported one was accessed later; importing twice changes nothing. Bad items are named on standard error with file
    and line, and skipped. The exit status is 1 only when a file can't be read at all.
    """
    result = app.import_yaml(sources)
    for item in result.refused:
        logger.warning("refused: %s", item)
    for file in result.unreadable:
        logger.error("%s", file)
    where = {"knowledge_base": str(app.settings.knowledge_base)}
    return common.Output(value={**where, **result.plain()}, status=int(bool(result.unreadable)))
