"""What an item of an index file says, checked (seed 002, "Cache Index Schema"; SPEC 6.2). Pure."""

import re
from collections.abc import Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, NoReturn, get_args

from kr.documents import Tree
from kr.errors import KrError
from kr.freshness import parse_time
from kr.store.archive import ArchiveReason
from kr.store.importing import Departure, Incoming
from kr.store.times import to_text
from kr.store.wordings import Need

_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_LINE_BREAK = re.compile("[\n\r\x85\u2028\u2029]")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MAX_SEGMENT_BYTES = 255
_MAX_PATH_BYTES = 1024
_SUFFIXES = (".md", ".markdown")
_LESSONS = "lessons"
AskedKind = Literal["question", "wording"]
_KINDS: tuple[AskedKind, ...] = get_args(AskedKind)
_REASONS: tuple[ArchiveReason, ...] = get_args(ArchiveReason)


class BadItem(KrError):
    """An item that can't be taken in. The message names the field and what is allowed."""

    code = "bad_item"


def check_item(fields: Mapping[str, Tree], *, now: datetime, archived: bool) -> Incoming:
    """Check one item; its report is not looked for. ``archived``: the file holds archived items, whatever their status says.

    A time in the future is nobody's: it counts as not told. Raises ``BadItem`` for the first bad field.
    """
    if "<<" in fields:
        _refuse("<<", "a merge key is not followed: write the fields out")
    status = _status(fields)
    return Incoming(
        id=_id(fields),
        framework=_required(fields, "framework"),
        framework_version=_text(fields, "framework_version"),
        topic=_required(fields, "topic"),
        tags=_tags(fields),
        path=check_path(_required(fields, "path")),
        created=_time(fields, "created", now),
        last_accessed=_time(fields, "last_accessed", now),
        status="stale" if status == "stale" else "fresh",
        departure=_departure(fields, now) if archived or status == "archived" else None,
        report=check_path(told) if (told := _text(fields, "report")) is not None else None,
    )


class Asked(NamedTuple):
    """What an entry was asked: its own ``question``, or a ``wording`` that it served. ``entry_topic`` is the entry's."""

    id: str
    framework: str
    entry_topic: str
    kind: AskedKind
    need: Need
    at: str
    session_id: str | None


class Times(NamedTuple):
    """When an entry was made, read and researched, to the microsecond: the index has the days alone."""

    id: str
    framework: str
    entry_topic: str
    created: str | None
    last_accessed: str | None
    researched_at: str | None
    fresh_until: str | None


def check_times(fields: Mapping[str, Tree]) -> Times:
    """Check one item of ``_wordings.yaml`` of the kind ``times``. Raises ``BadItem`` for the first bad field."""

    def moment(name: str) -> str | None:
        text = _text(fields, name)
        if text is None:
            return None
        found = parse_time(text)
        if found is None:
            _refuse(name, f"must be a time such as 2026-01-20T12:00:00.000000Z, not {_shown(text)}")
        return to_text(found)

    return Times(
        *(_required(fields, name) for name in ("id", "framework", "entry_topic")),
        *(moment(name) for name in ("created", "last_accessed", "researched_at", "fresh_until")),
    )


def check_asked(fields: Mapping[str, Tree], *, now: datetime) -> Asked:
    """Check one item of ``_wordings.yaml``. Raises ``BadItem`` for the first bad field."""
    told = _required(fields, "kind")
    kind = next((known for known in _KINDS if known == told), None)
    if kind is None:
        _refuse("kind", f"must be {' or '.join(_KINDS)}, not {_shown(told)}")
    at = parse_time(_time(fields, "at", now) or "") or now
    return Asked(
        id=_required(fields, "id"),
        framework=_required(fields, "framework"),
        entry_topic=_required(fields, "entry_topic"),
        kind=kind,
        need=Need(_required(fields, "topic"), _tags(fields) or (), _required(fields, "question")),
        at=to_text(at),
        session_id=_text(fields, "session_id"),
    )


def check_path(path: str) -> str:
    """Return a report's path in its plain form. Raises ``BadItem`` unless it stays below its folder."""
    relative = PurePosixPath(path)
    if "\\" in path:
        _refuse("path", "must be written with forward slashes")
    if relative.is_absolute() or ".." in relative.parts or re.match(r"[A-Za-z]:", path):
        _refuse("path", f"must be relative and stay within the knowledge base, not {_shown(path)}")
    if _LINE_BREAK.search(path) or "\t" in path:
        _refuse("path", "must be one line without control characters")
    if relative.suffix.lower() not in _SUFFIXES:
        _refuse("path", f"must name a Markdown file (.md), not {_shown(path)}")
    if any(part.startswith(".") for part in relative.parts) or relative.parts[0].casefold() == _LESSONS:
        _refuse("path", f"must not name a hidden file or the lessons, as {_shown(path)} does")
    if (
        len(path.encode()) > _MAX_PATH_BYTES
        or max(len(part.encode()) for part in relative.parts) > _MAX_SEGMENT_BYTES
    ):
        _refuse("path", f"is too long ({_MAX_SEGMENT_BYTES} bytes for each name, {_MAX_PATH_BYTES} in all)")
    return str(relative)


def _id(fields: Mapping[str, Tree]) -> str | None:
    entry_id = _text(fields, "id")
    if entry_id is not None and _LINE_BREAK.search(entry_id):
        _refuse("id", "must be one line")
    return entry_id


def _required(fields: Mapping[str, Tree], name: str) -> str:
    text = _text(fields, name)
    if text is None:
        _refuse(name, "required, but missing")
    return text


def _text(fields: Mapping[str, Tree], name: str) -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        _refuse(name, f"must be text, not a {'list' if isinstance(value, list) else 'mapping'}")
    return _checked(name, value) if value.strip() else None


def _checked(name: str, text: str) -> str:
    if bad := _CONTROL.search(text):
        _refuse(name, f"must not contain control characters (found U+{ord(bad[0]):04X})")
    return text


def _tags(fields: Mapping[str, Tree]) -> tuple[str, ...] | None:
    value = fields.get("tags")
    if value is None:
        return None
    if isinstance(value, str):
        return tuple(_checked("tags", tag.strip()) for tag in value.split(",") if tag.strip())
    if not isinstance(value, list):
        _refuse("tags", "must be a list of texts")
    return tuple(_checked("tags", tag) for tag in map(_tag, value) if tag.strip())


def _tag(value: Tree) -> str:
    if isinstance(value, dict | list):
        _refuse("tags", "must be a list of texts")
    return value or ""


def _time(fields: Mapping[str, Tree], name: str, now: datetime) -> str | None:
    text = _text(fields, name)
    if text is None:
        return None
    moment = parse_time(text)
    if moment is None:
        _refuse(name, f"must be a date such as 2026-01-20, not {_shown(text)}")
    if moment > now:
        return None
    return text.strip() if _DATE.fullmatch(text.strip()) else to_text(moment)


def _status(fields: Mapping[str, Tree]) -> str:
    text = (_text(fields, "status") or "fresh").strip().lower()
    if text not in {"fresh", "stale", "archived"}:
        _refuse("status", f"must be fresh, stale or archived, not {_shown(text)}")
    return text


def _departure(fields: Mapping[str, Tree], now: datetime) -> Departure:
    text = (_text(fields, "reason") or "").strip().lower()
    # Older tools tell none: `manual` promises nothing about capacity or age.
    reason: ArchiveReason = next((known for known in _REASONS if known == text), "manual")
    return Departure(at=_time(fields, "archived_at", now), reason=reason)


def _shown(text: str) -> str:
    cut = text if len(text) <= 60 else f"{text[:59]}…"
    return f'"{cut}"' if cut.isprintable() else ascii(cut)


def _refuse(field: str, message: str) -> NoReturn:
    raise BadItem(f"{field}: {message}")
