"""``kr export-yaml`` and ``kr import-yaml``: index and archive as YAML, out and in (SPEC 6.1, 6.2)."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kr.cli.options import common, examples, open_app, with_context
from kr.cli.output import complain, emit, progress_line, warn
from kr.text.counting import counted

if TYPE_CHECKING:
    from kr.transfer.import_yaml import Imported


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
        emit(app.export_yaml(output, index_only=index_only), common(ctx), exported_view)


def exported_view(value: dict[str, Any]) -> str:
    """Make the readable exported_view: how much was written, and where."""
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
        with progress_line() as show:
            result = app.import_yaml(
                sources, progress=lambda done, total: show(f"importing … line {done:,} of {total:,}")
            )
        for line in result.warnings:
            warn(_plain(line))
        for item in result.refused:
            warn(f"refused: {_plain(str(item))}")
        for file in result.unreadable:
            complain(_plain(str(file)))
        for note in _notes(result):
            warn(note)
        emit(result.plain(), common(ctx), _imported)
    return 1 if result.unreadable else 0


def _notes(result: "Imported") -> Iterator[str]:
    if result.without_text:
        yield (
            f"{counted(result.without_text, 'archived entry has', 'archived entries have')} no text: "
            "`kr archive restore` can't bring such an entry back"
        )
    if result.differing:
        yield (
            f"{counted(result.differing, 'unchanged item says', 'unchanged items say')} something else than the "
            "entry that is here, whose last_accessed is as new or newer. Where the item is right, give it the "
            f"present time and import again: last_accessed: {result.at}"
        )


def _plain(line: str) -> str:
    return "".join(char if char.isprintable() else "\ufffd" for char in line)


def _imported(value: dict[str, Any]) -> str:
    """Make the readable _imported: the counts in a line each, zeros left out."""
    names = ("imported", "updated", "unchanged", "archived", "refused", "auto_archived", "lru_evicted")
    lines = [f"{value[name]:>7}  {name.replace('_', '-')}" for name in names if value[name]]
    lines.append(f"{value['index_count']:>7}  {'entry' if value['index_count'] == 1 else 'entries'} now")
    return "\n".join(lines)
