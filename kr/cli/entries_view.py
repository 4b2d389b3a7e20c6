"""Readable views of entries, of the archive, and of what was done to them."""

import re
from typing import Any

import click

from kr.cli.layout import cell, table, wrapped
from kr.text.characters import strip_invisible
from kr.text.counting import counted

Row = dict[str, Any]

_NONE = "none"


def entries_view(rows: list[Row]) -> str:
    """List entries: an id in a line of its own, so that it can be copied, and below it what it is about."""
    facts = "{topic}; {framework} {framework_version}; {status}, confidence {confidence}, used {last_accessed:.10}"
    return _listed(rows, facts)


def search_view(rows: list[Row]) -> str:
    """Show what a search found: id, topic and status, and below them the passage."""
    plain = [{**row, "passage": _without_marks(row["passage"])} for row in rows]
    return _listed(plain, "{topic} ({status})", "{passage}")


def _without_marks(passage: str) -> str:
    """Take the marks of Markdown out of a passage, which stands in one line here."""
    return " ".join(re.sub(r"```\w*|[*`]|(?<!\S)(?:[>|]|#+)(?!\S)", " ", passage).split())


def archive_view(rows: list[Row]) -> str:
    """List archived entries."""
    return _listed(
        rows, "{topic}; {framework} {framework_version}; no {archive_id}, {reason}, {archived_at:.16}"
    )


def _listed(rows: list[Row], *facts: str) -> str:
    lines = []
    for row in rows:
        lines += wrapped("", row["id"], indent=0)
        lines += [line for told in facts for line in wrapped("    ", told.format(**row), indent=4)]
    return "\n".join(lines) or _NONE


def history_view(rows: list[Row]) -> str:
    """Make a table of revisions."""
    lines = [
        (
            row["revision"],
            row["framework_version"],
            row["confidence"],
            (row["researched_at"] or "")[:19] or None,
            row["replaced_at"][:19],
        )
        for row in rows
    ]
    columns = ("no", "version", "confidence", "researched at", "replaced at")
    return table(columns, lines, wide="version") if rows else "no earlier text"


def revision_view(row: Row) -> str:
    """Show a revision's text under a line that says which it is."""
    return f"{history_view([row])}\n\n{strip_invisible(row['text'])}"


def entry_view(row: Row) -> str:
    """Show one entry, a line for each of its facts, then the report."""
    facts = {name: value for name, value in row.items() if name != "report"}
    width = max(map(len, facts))
    lines: list[str] = []
    for name, value in facts.items():
        lines += wrapped(f"{name.replace('_', ' '):<{width}}  ", cell(value), indent=width + 2)
    if "report" in row:
        lines += ["", strip_invisible(row["report"]) if row["report"] else "Its text is lost."]
    return "\n".join(lines)


def removed_view(value: Row) -> str:
    """Say what was removed, and how it comes back."""
    lines = [
        f"{click.style('archived', bold=True)}  {cell(row['id'])}  (kr archive restore {cell(row['id'])} brings it back)"
        for row in value["removed"]
    ]
    return "\n".join([*lines, *_notes(value), _live(value["index_count"])])


def restored_view(value: Row) -> str:
    """Say what came back, and what left the index for it."""
    entry = value["entry"]
    lines = [
        f"{click.style('restored', bold=True)}  {cell(entry['id'])}, {entry['status']}: {cell(entry['path'])}"
    ]
    lines += [
        f"archived  {cell(row['id'])}, which was live (archive id {row['archive_id']})"
        for row in value["replaced"]
    ]
    moved = max(value["lru_evicted"], 0) + value["auto_archived"]
    lines += (
        [f"{counted(moved, 'other entry', 'other entries')} went to the archive, to keep within capacity"]
        if moved
        else []
    )
    return "\n".join([*lines, *_notes(value), _live(value["index_count"])])


def _live(number: int) -> str:
    return f"{counted(number, 'entry is', 'entries are')} live"


def _notes(value: Row) -> list[str]:
    return [f"{click.style('note', fg='yellow')}  {cell(note)}" for note in value["warnings"]]
