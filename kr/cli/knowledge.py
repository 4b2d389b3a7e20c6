"""``kr versions``, ``warm``, ``export-yaml``, ``import-yaml`` and ``explain`` (SPEC 3.2, 6)."""

import sys
from pathlib import Path
from typing import Any

import click

from kr.cli.options import MOST, examples, open_app, read_request, schema_option, with_context
from kr.cli.output import cell, complain, emit, table, warn, wrapped
from kr.cli.research import check_form, question_parameters
from kr.errors import InvalidRequest, KrError
from kr.text import counted


class Folder(click.Path):
    """A folder that must be there. As a file that is missing, it is no wrong command line: exit status 1."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
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
    """List the frameworks and versions that a project's dependency files name.

    The project is the nearest folder upwards with a dependency file, up to the repository's root; where there is none,
    the projects in the two levels below. Members of its workspace are read too.

    Read are package.json (package-lock.json, npm-shrinkwrap.json, yarn.lock, pnpm-lock.yaml, pnpm-workspace.yaml),
    pyproject.toml (uv.lock, poetry.lock, pylock.toml), setup.cfg, requirements*.txt, pom.xml, build.gradle and
    settings.gradle (also .kts, with version catalogs), go.mod and go.work, Cargo.toml (Cargo.lock), composer.json
    (composer.lock), Gemfile.lock. What is installed (node_modules, VIRTUAL_ENV, .venv, venv) wins over a lock file, a lock
    file over a range. Dependency files that kr does not read, or can't, are named on standard error and in the answer.
    """
    with open_app(ctx) as app:
        rows = app.versions(project, everything=everything, mark_stale=mark_stale)
    emit(rows, ctx, versions_view)


_NO_DEPENDENCIES = "No dependency file names anything here; kr versions --help lists those that are read."


def versions_view(rows: list[dict[str, Any]]) -> str:
    unread = [f"not read: {cell(row['file'])}: {cell(row['note'])}" for row in rows if "note" in row]
    rows = [row for row in rows if "note" not in row]
    lines = [(row["framework"], row["version"], row["file"]) for row in rows]
    shown = table(("framework", "version", "found in"), lines, wide="framework") if rows else _NO_DEPENDENCIES
    shown = "\n".join([shown, *unread])
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
            emit(app.warm(project, names=names), ctx, warm_view)
            return 0
        calls = app.settings.knowledge_research.max_calls_per_story if max_calls is None else max_calls

        def may_spend(asked: list[str]) -> bool:
            _tell(f"asking about {', '.join(asked[:_SHOWN])}{', ...' if len(asked) > _SHOWN else ''}")
            _tell(f"{counted(len(asked), 'question')}, {counted(calls, 'call')} to sources at most")
            return yes or not sys.stdin.isatty() or click.confirm("Go on?", default=True, err=True)

        rows = app.warm_up(
            project, names=names, max_calls=max_calls, limit=limit, tell=_tell, may_spend=may_spend
        )
    emit(rows, ctx, warm_view)
    return 1 if any(row["status"] == "failure" for row in rows) else 0


def _tell(line: str) -> None:
    click.echo(line, err=True)


def warm_view(rows: list[dict[str, Any]]) -> str:
    if not rows:
        return _NO_DEPENDENCIES
    columns = ["framework", "version", "imports", "fresh", "stale", "state"]
    if "status" in rows[0]:
        columns += ["status", "note"]
    shown = table(columns, [[row[name] for name in columns] for row in rows], wide="framework")
    is_plan = "status" not in rows[0] and any(row["state"] != "fresh" for row in rows)
    return (
        f"{shown}\n\nkr warm --research asks about what is not fresh, within a budget" if is_plan else shown
    )


@click.command(
    "export-yaml",
    epilog=examples(
        "kr export-yaml", "kr export-yaml --output moved/", "kr export-yaml --output index/ --index-only"
    ),
)
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder to write to. Default: the knowledge base.",
)
@click.option("--index-only", is_flag=True, help="In an export into another folder leave the reports out.")
@with_context
def export_yaml(ctx: click.Context, output: Path | None, *, index_only: bool) -> None:
    """Write index.yaml and _archived-index.yaml.

    An export into another folder has the reports too, also those of archived entries, and the questions and exact
    times of the entries (_wordings.yaml): kr import-yaml of that folder makes the same index, archive and reports
    elsewhere. Lessons, earlier texts of reports and the record of requests are not exported: `kr lessons import` takes
    lessons, `kr db backup` everything. The same state gives the same bytes. A file that kr did not write is first
    kept beside it as .bak.
    """
    with open_app(ctx, only_reads=True) as app:
        emit(app.export_yaml(output, index_only=index_only), ctx, exported_view)


def exported_view(value: dict[str, Any]) -> str:
    index, archive, *more = value["files"]
    if value["reports"]:
        more.append(counted(value["reports"], "report"))
    told = (counted(value["entries"], "entry", "entries"), f"{value['archived']} archived")
    width = max(map(len, told))
    return f"{told[0]:<{width}}  {index}\n{told[1]:<{width}}  {archive}" + "".join(
        f"\n{'':<{width}}  {file}" for file in more
    )


@click.command(
    "import-yaml",
    epilog=examples(
        "kr import-yaml ../old-project/_bmad-output/knowledge-base",
        "kr import-yaml index.yaml _archived-index.yaml",
    ),
)
@click.argument("sources", metavar="DIR|FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@with_context
def import_yaml(ctx: click.Context, sources: tuple[Path, ...]) -> int:
    """Import index.yaml and _archived-index.yaml, from folders or as single files.

    The questions of the entries, in a folder's _wordings.yaml, are imported too.

    Reports that stand elsewhere are copied into the knowledge base, never over another. An entry that is here
    already is updated when the imported one was accessed later; importing twice changes nothing. An item that you
    edited needs a later last_accessed, up to the present time; kr says how many differ and have none. Bad items are
    named on standard error with file and line, and skipped. Archived items go to the archive, with the reason
    `manual` where none is given; the file at an item's path is the text of the live entry, if one names it, else of
    the one that was archived last. The exit status is 1 only when a file can't be read at all.
    """
    with open_app(ctx) as app:
        result = app.import_yaml(sources)
        for line in result.warnings:
            warn(_plain(line))
        for item in result.refused:
            warn(f"refused: {_plain(str(item))}")
        for file in result.unreadable:
            complain(_plain(str(file)))
        emit(result.plain(), ctx, _imported)
    return 1 if result.unreadable else 0


def _plain(line: str) -> str:
    return "".join(char if char.isprintable() else "\ufffd" for char in line)


def _imported(value: dict[str, Any]) -> str:
    names = ("imported", "updated", "unchanged", "archived", "refused", "auto_archived", "lru_evicted")
    lines = [f"{value[name]:>7}  {name.replace('_', '-')}" for name in names if value[name]]
    lines.append(f"{value['index_count']:>7}  {'entry' if value['index_count'] == 1 else 'entries'} now")
    return "\n".join(lines)


_COLOURS = {"hit": "green", "stale": "yellow", "candidates": "yellow", "miss": "red"}
_MOST_ENTRIES = 5


@click.command(
    "explain",
    epilog=examples(
        'kr explain click "How do I ask for a password without showing it?"',
        'kr explain vue "When do I need a watcher?" --topic watchers --tag reactivity',
        "kr explain --request request.yaml --format json",
    ),
)
@question_parameters
@schema_option("research_request")
@with_context
def explain(
    ctx: click.Context, /, framework: str | None, question: str | None, document: str | None, **given: Any
) -> None:
    """Show what the cache would answer to a question about FRAMEWORK, and why.

    Of every entry of the framework: its score, its freshness, by what it is served, or why it is not. No source is asked
    and nothing is changed.
    """
    options = {name: value for name, value in given.items() if value is not None and value != ()}
    check_form(framework, question, document, options, command="explain")
    with open_app(ctx, only_reads=True) as app:
        if document is not None:
            try:
                value = app.explain(read_request(document))
            except InvalidRequest as error:
                where = "" if document == "-" else f"{document}: "
                raise KrError(f"{where}{str(error).removeprefix('request: ')}") from error
        else:
            value = app.explain(app.research.question_data(str(framework), str(question), **options))
        emit(value, ctx, explained)


def explained(value: dict[str, Any]) -> str:
    outcome, query = value["outcome"], value["query"]
    asked = f"{query['framework']} {query['framework_version']} · {query['topic']}"
    first, *more = wrapped(f"{outcome}  ", value["decision"], indent=2)
    lines = [click.style(outcome, fg=_COLOURS[outcome], bold=True) + first.removeprefix(outcome), *more]
    lines += wrapped("  asked: ", f"{asked} · tags: {', '.join(query['tags'])}", indent=4)
    for row in value["considered"][:_MOST_ENTRIES]:
        lines += ["", *_entry(row)]
    if (left := len(value["considered"]) - _MOST_ENTRIES) > 0:
        lines += ["", f"{left} more: --format json lists them."]
    return "\n".join(lines)


def _entry(row: dict[str, Any]) -> list[str]:
    """Tell of one entry how it ranks, how old it is, and by what it is served or why it is not."""
    told = [f"score {row['score']:g}"] if row.get("score") is not None else []
    told += [row["freshness"], row["origin"]]
    if row.get("shared_tags"):
        told.append(f"shared tags: {', '.join(row['shared_tags'])}")
    if row.get("worked") or row.get("wrong"):
        told.append(f"worked {row['worked']}, wrong {row['wrong']}")
    why = f"not served: {row['refused']}" if row["refused"] else f"served: {row['tier']}"
    return [*wrapped("", f"{row['id']}: {'; '.join(told)}", indent=2), *wrapped("  ", why, indent=4)]
