"""Reads index files that anybody may have written: a YAML list, item by item, so that a bad item costs only itself.

Every scalar is taken as it was written (``2.10`` stays ``2.10``). Where the YAML itself is broken reading ends, with the line to mend.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from pathlib import PurePosixPath
from typing import BinaryIO, TypeAlias, TypeVar

import yaml

from kr.errors import IndexUnreadable, KrError
from kr.models import EntryStatus
from kr.store.archive import ArchiveReason
from kr.times import parse_time, to_text
from kr.yaml_io import broken_yaml

Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | None"
Fields = Mapping[str, Tree]
T = TypeVar("T")

_DEPTH = 8
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_LINE_BREAK = re.compile("[\n\r\x85\u2028\u2029]")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_REASONS: dict[str, ArchiveReason] = {"lru": "lru", "age": "age", "manual": "manual"}
_LOADER = getattr(yaml, "CBaseLoader", yaml.BaseLoader)


class BadItem(KrError):
    """An item that can't be imported. The message names the field and what is allowed."""

    code = "bad_item"


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """An item of an index, checked; what it does not tell is None. Texts are not blank.

    ``line`` counts from 1. ``path`` and ``report`` are relative and stay below their folder. Times are stored text or a bare
    ``YYYY-MM-DD``, none of them in the future. ``reason`` is None for a live entry. ``report`` is where the text of an archived entry
    stands that is not at its path.
    """

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


def read_items(file: BinaryIO) -> Iterator[tuple[int, Fields | BadItem]]:
    """Yield each item's line (from 1) with its fields, or with what is wrong with it.

    Raises ``IndexUnreadable`` where the YAML is broken or is no list; its message does not name the file.
    """
    documents = 0
    try:
        events = yaml.parse(file, Loader=_LOADER)
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    raise IndexUnreadable(f"line {_line(event)}: a second document begins here")
            elif isinstance(event, yaml.SequenceStartEvent):
                yield from _items(events)
            elif isinstance(event, yaml.NodeEvent) and getattr(event, "value", None) != "":
                raise IndexUnreadable(f"line {_line(event)}: is no list of entries")
    except yaml.reader.ReaderError as exc:
        file.seek(0)
        line = file.read(exc.position).count(b"\n") + 1
        raise IndexUnreadable(f"line {line}: no text: {exc.reason}") from exc
    except yaml.MarkedYAMLError as exc:
        file.seek(0)
        wrong = broken_yaml(exc, file.read().decode(errors="replace"))
        place = f"line {wrong.line}, column {wrong.column}"
        raise IndexUnreadable(f"{place}: broken YAML: {wrong.problem}") from exc


def _items(events: Iterator[yaml.Event]) -> Iterator[tuple[int, Fields | BadItem]]:
    for first in events:
        if isinstance(first, yaml.SequenceEndEvent):
            return
        rest = _rest(first, events)
        try:
            if not isinstance(first, yaml.MappingStartEvent):
                yield _line(first), BadItem("an entry must be a mapping")
            else:
                yield _line(first), _mapping(iter(rest))
        except BadItem as error:
            yield _line(first), error


def _rest(first: yaml.Event, events: Iterator[yaml.Event]) -> list[yaml.Event]:
    """Take the events of the value that began with ``first``. Depth ends it: the parser takes quadratic time."""
    rest: list[yaml.Event] = []
    depth = int(isinstance(first, yaml.CollectionStartEvent))
    while depth:
        rest.append(event := next(events))
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > _DEPTH:
            raise IndexUnreadable(f"line {_line(event)}: nested deeper than {_DEPTH}")
    return rest


def _mapping(events: Iterator[yaml.Event]) -> dict[str, Tree]:
    fields: dict[str, Tree] = {}
    for event in events:
        if isinstance(event, yaml.MappingEndEvent):
            break
        if not isinstance(event, yaml.ScalarEvent):
            raise BadItem("a key must be text")
        if event.value in fields:
            raise BadItem(f"{event.value}: is given twice")
        fields[event.value] = _value(next(events), events)
    return fields


def _value(event: yaml.Event, events: Iterator[yaml.Event]) -> Tree:
    if isinstance(event, yaml.MappingStartEvent):
        return _mapping(events)
    if isinstance(event, yaml.SequenceStartEvent):
        members = takewhile(lambda event: not isinstance(event, yaml.SequenceEndEvent), events)
        return [_value(member, events) for member in members]
    if isinstance(event, yaml.ScalarEvent):
        return None if event.implicit[0] and event.value in _NULLS else event.value
    raise BadItem("aliases are not allowed")


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1


def check_item(fields: Fields, line: int, *, now: datetime, is_archive: bool) -> Item:
    """Check one item; ``is_archive``: its file holds archived entries, whatever their status says. Raises ``BadItem``."""
    status = (text_of(fields, "status") or "fresh").strip().lower()
    if status not in {"fresh", "stale", "archived"}:
        raise BadItem(f"status: must be fresh, stale or archived, not {_shown(status)}")
    is_archived = is_archive or status == "archived"
    report = text_of(fields, "report")
    # Older tools give no reason; `manual` promises nothing about capacity or age.
    reason = _REASONS.get((text_of(fields, "reason") or "").strip().lower(), "manual")
    return Item(
        line=line,
        id=text_of(fields, "id"),
        framework=required(fields, "framework"),
        framework_version=text_of(fields, "framework_version"),
        topic=required(fields, "topic"),
        tags=tags_of(fields),
        path=check_path(required(fields, "path")),
        created=_past(fields, "created", now),
        last_accessed=_past(fields, "last_accessed", now),
        status="stale" if status == "stale" else "fresh",
        archived_at=_past(fields, "archived_at", now),
        reason=reason if is_archived else None,
        report=check_path(report) if report is not None else None,
    )


def required(fields: Fields, name: str, *, lines: bool = False) -> str:
    """Return a text that must be there. Raises ``BadItem``."""
    text = text_of(fields, name, lines=lines)
    if text is None:
        raise BadItem(f"{name}: required, but missing")
    return text


def text_of(fields: Fields, name: str, *, lines: bool = False) -> str | None:
    """Return a text, None where it is absent or blank; ``lines``: it may have several. Raises ``BadItem``."""
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        raise BadItem(f"{name}: must be text, not a {'list' if isinstance(value, list) else 'mapping'}")
    return _checked(name, value, lines=lines) if value.strip() else None


def one_of(fields: Fields, name: str, allowed: tuple[T, ...]) -> T:
    """Return a word that must be one of these. Raises ``BadItem``."""
    text = required(fields, name)
    found = next((known for known in allowed if known == text), None)
    if found is None:
        raise BadItem(f"{name}: must be {' or '.join(map(str, allowed))}, not {_shown(text)}")
    return found


def tags_of(fields: Fields) -> tuple[str, ...] | None:
    """Return tags, also of a text that has commas between them; None where they are absent. Raises ``BadItem``."""
    value = fields.get("tags")
    if value is None:
        return None
    members = value.split(",") if isinstance(value, str) else value
    if not isinstance(members, list) or any(isinstance(member, dict | list) for member in members):
        raise BadItem("tags: must be a list of texts")
    texts = [str(member).strip() if isinstance(value, str) else str(member) for member in members if member]
    return tuple(_checked("tags", text) for text in texts if text.strip())


def time_of(fields: Fields, name: str) -> str | None:
    """Return a time in stored form. Raises ``BadItem``."""
    text = text_of(fields, name)
    if text is None:
        return None
    moment = parse_time(text)
    if moment is None:
        raise BadItem(f"{name}: must be a date such as 2026-01-20, not {_shown(text)}")
    return to_text(moment)


def check_path(path: str) -> str:
    """Return a report's path in its plain form. Raises ``BadItem`` unless it is a visible Markdown file below its folder."""
    relative = PurePosixPath(path)
    parts = relative.parts
    if "\\" in path or re.match("[A-Za-z]:", path):
        problem = "must be written with forward slashes, without a drive"
    elif relative.is_absolute() or ".." in parts:
        problem = "must be relative and stay within the knowledge base"
    elif relative.suffix.lower() not in {".md", ".markdown"}:
        problem = "must name a Markdown file (.md)"
    elif "\t" in path or parts[0].casefold() == "lessons" or any(part.startswith(".") for part in parts):
        problem = "must not name a hidden file, nor one of the lessons"
    elif len(path.encode()) > 1024 or max(len(part.encode()) for part in parts) > 255:
        problem = "is too long (255 bytes for a name, 1024 in all)"
    else:
        return str(relative)
    raise BadItem(f"path: {problem}: {_shown(path)}")


def _checked(name: str, text: str, *, lines: bool = False) -> str:
    if bad := _CONTROL.search(text):
        raise BadItem(f"{name}: must not contain control characters (found U+{ord(bad[0]):04X})")
    if not lines and _LINE_BREAK.search(text):
        raise BadItem(f"{name}: must be one line")
    return text


def _past(fields: Fields, name: str, now: datetime) -> str | None:
    """Return a time as ``time_of``, or a bare date as it is; one in the future counts as absent."""
    moment = time_of(fields, name)
    if moment is None or moment > to_text(now):
        return None
    text = str(fields[name]).strip()
    return text if _DATE.fullmatch(text) else moment


def _shown(text: str) -> str:
    cut = text if len(text) <= 60 else f"{text[:59]}…"
    return f'"{cut}"' if cut.isprintable() else ascii(cut)
