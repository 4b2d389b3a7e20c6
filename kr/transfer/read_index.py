"""Reads index files that anybody may have written, item by item, so that a bad item costs only itself.

Every scalar is taken as it was written (``2.10`` stays ``2.10``). Where the YAML itself is broken reading ends, with the line to mend.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, get_args

from kr.errors import BrokenYaml, IndexUnreadable, KrError
from kr.models import Confidence, EntryStatus, Origin
from kr.requests import Fields, bad, line, lines, one_of, optional, read_fields, shown, text, yes_no
from kr.store.entries import ArchiveReason
from kr.text import Tree
from kr.times import from_text, parse_time, to_text
from kr.transfer import EXACT_TIMES
from kr.yaml_io import read_list

_DATE = re.compile(r"\d{4}-\d\d-\d\d")


class BadItem(KrError):
    """An item that can't be imported. The message names each bad field and what is allowed."""

    code = "bad_item"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item of an index ``file``, checked; what it does not tell is None. Texts are not blank.

    ``line`` counts from 1. ``path`` and ``report`` are relative and stay below their folder. Times are stored text or a bare
    ``YYYY-MM-DD``, none of them in the future. ``reason`` is None for a live entry. ``report`` is where the text of an archived entry
    stands that is not at its path. ``has_text``: the file there is its text.
    """

    file: Path
    line: int
    id: str | None = None
    framework: str
    framework_version: str | None = None
    topic: str
    tags: tuple[str, ...] | None = None
    path: str
    created: str | None = None
    last_accessed: str | None = None
    status: EntryStatus = "fresh"
    archived_at: str | None = None
    reason: ArchiveReason | None = None
    report: str | None = None
    has_text: bool = True


def read_items(path: Path) -> Iterator[tuple[int, Tree]]:
    """Yield each item of a file with its line, from 1. Raises ``IndexUnreadable``; its message does not name the file."""
    try:
        if path.exists() and not path.is_file():
            raise IndexUnreadable("is not a regular file")
        with path.open("rb") as file:
            yield from read_list(file)
    except OSError as exc:
        raise IndexUnreadable(f"can't be read: {exc.strerror}") from exc
    except BrokenYaml as exc:
        raise IndexUnreadable(str(exc)) from exc


def check_item(data: Tree, file: Path, line: int, *, now: datetime, is_archive: bool) -> Item:
    """Check one item; ``is_archive``: its file holds archived entries, whatever their status says. Raises ``BadItem``."""
    values = _checked(_ITEM, data)
    status, reason = values.pop("status"), values.pop("reason")
    for name in ("created", "last_accessed", "archived_at"):
        if values[name] is not None and from_text(values[name]) > now:
            values[name] = None
    is_archived = is_archive or status == "archived"
    return Item(
        file=file,
        line=line,
        **values,
        status="stale" if status == "stale" else "fresh",
        reason=reason if is_archived else None,
    )


def check_wording(data: Tree) -> dict[str, Any]:
    """Check an item of ``WORDINGS``: whose it is, its ``kind``, and the fields of that kind. Raises ``BadItem``."""
    whose = _checked(_WHOSE, data)
    return {**whose, **_checked(_OF_KIND[whose["kind"]], data)}


def _checked(readers: Fields, data: Tree) -> dict[str, Any]:
    if not isinstance(data, dict):
        raise BadItem("an item must be a mapping")
    values, errors = read_fields(readers, data)
    if errors:
        told = (f"{error.field}: {error.message.removeprefix('Validation failed: ')}" for error in errors)
        raise BadItem("; ".join(told))
    return values


def _read_path(value: object) -> str:
    """Take a report's path in its plain form: a visible Markdown file below its folder."""
    path = line(value)
    relative = PurePosixPath(path)
    parts = relative.parts
    if "\\" in path or re.match("[A-Za-z]:", path):
        problem = "must be written with forward slashes, without a drive"
    elif relative.is_absolute() or ".." in parts:
        problem = "must be relative and stay within the knowledge base"
    elif relative.suffix.lower() not in {".md", ".markdown"}:
        problem = "must name a Markdown file (.md)"
    elif parts[0].casefold() == "lessons" or any(part.startswith(".") for part in parts):
        problem = "must not name a hidden file, nor one of the lessons"
    elif len(path.encode()) > 1024 or max(len(part.encode()) for part in parts) > 255:
        problem = "is too long (255 bytes for a name, 1024 in all)"
    else:
        return str(relative)
    raise bad(f"{problem}: {shown(path)}")


def _read_tags(value: object) -> tuple[str, ...]:
    members = value.split(",") if isinstance(value, str) else value
    if not isinstance(members, list):
        raise bad("must be a list of texts")
    return lines(members)


def _read_time(value: object) -> str:
    """Take a time in stored form, or a bare date as it is."""
    written = text(value).strip()
    moment = parse_time(written)
    if moment is None:
        raise bad(f"must be a date such as 2026-01-20, not {shown(written)}")
    return written if _DATE.fullmatch(written) else to_text(moment)


def _read_status(value: object) -> str:
    status: str = one_of("status", ("fresh", "stale", "archived"))(text(value).strip().lower())
    return status


def _read_reason(value: object) -> str:
    """Take why an entry was archived. Older tools give other reasons; ``manual`` promises nothing about capacity or age."""
    reason = str(value).strip().lower()
    return reason if reason in get_args(ArchiveReason) else "manual"


_ITEM: Fields = {
    "id": optional(line),
    "framework": line,
    "framework_version": optional(line),
    "topic": line,
    "tags": lambda value: None if value is None else _read_tags(value),
    "path": _read_path,
    "created": optional(_read_time),
    "last_accessed": optional(_read_time),
    "status": optional(_read_status, "fresh"),
    "archived_at": optional(_read_time),
    "reason": _read_reason,
    "report": optional(_read_path),
}
_WHOSE: Fields = {
    "id": line,
    "framework": line,
    "entry_topic": line,
    "kind": one_of("kind", ("times", "writer", "question", "wording")),
}
_WORDING: Fields = {
    "topic": text,
    "tags": optional(_read_tags, ()),
    "question": text,
    "at": optional(_read_time),
    "session_id": optional(line),
    "proved": optional(yes_no, default=False),
}
_OF_KIND: dict[str, Fields] = {
    "times": {**dict.fromkeys(EXACT_TIMES, optional(_read_time)), "stale_major": optional(line)},
    "writer": {
        "sha256": line,
        "origin": one_of("origin", get_args(Origin)),
        "confidence": one_of("confidence", get_args(Confidence)),
        "written_by": optional(line),
    },
    "question": _WORDING,
    "wording": _WORDING,
}
