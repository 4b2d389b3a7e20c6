"""Reads index files that anybody may have written (SPEC 6.2): a list of items, or a mapping ``entries:``.

Item by item, so that a bad one is named by its line and the others still count. Where the YAML itself is broken
reading ends, with the line to mend.
"""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import PurePosixPath
from typing import Literal, NamedTuple, NoReturn, TypeVar, get_args

import yaml

from kr.errors import IndexUnreadable, InvalidRequest, KrError
from kr.freshness import parse_time, to_text
from kr.store.archive import ArchiveReason
from kr.store.importing import Departure, Incoming
from kr.store.requests import Need
from kr.transfer import EXACT, PROVED, STALE_MAJOR
from kr.tree import Doubles, Tree
from kr.values import Confidence, Origin
from kr.yamltext import TreeBuilder, yaml_events

T = TypeVar("T")

LIMIT = 64 * 1024 * 1024
_DEPTH = 8
_ENTRIES = "entries"

_PLACE = re.compile(r"^line \d+, column \d+: ")


class Item(NamedTuple):
    """One mapping as it was written: every scalar is text, a plain null is None. ``line`` counts from 1."""

    line: int
    fields: dict[str, Tree]
    warnings: tuple[str, ...] = ()


class Bad(NamedTuple):
    """Something that is no item. ``line`` counts from 1; ``reason`` is a clause for a person."""

    line: int
    reason: str


def read_items(data: bytes) -> Iterator[Item | Bad]:
    """Read one file of at most 64 MiB: its items in order, and what is wrong with the others.

    Raises ``IndexUnreadable`` where the YAML is broken, or no such file at all; its message doesn't name the file.
    """
    text = _decode(data)
    yield from _Reader(_events(text)).read()


def _decode(data: bytes) -> str:
    if len(data) > LIMIT:
        raise IndexUnreadable(f"larger than {LIMIT // 1024**2} MiB")
    encoding = "utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise IndexUnreadable(f"line {line}: no {error.encoding} text (byte {error.start})") from error


def _events(text: str) -> Iterator[yaml.Event]:
    try:
        yield from yaml_events(text, "the index")
    except InvalidRequest as error:
        raise IndexUnreadable(error.fields[0].message) from error


class _Reader:
    def __init__(self, events: Iterator[yaml.Event]) -> None:
        self._events = events

    def read(self) -> Iterator[Item | Bad]:
        documents = 0
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    yield Bad(self._line(event), "a second document begins here: it is not read")
                    return
            elif isinstance(event, yaml.SequenceStartEvent):
                yield from self._items()
            elif isinstance(event, yaml.MappingStartEvent):
                yield from self._mapping()
            elif isinstance(event, yaml.ScalarEvent) and event.value:
                _refuse(f"line {self._line(event)}: neither a list of entries nor a mapping with `entries:`")
            elif isinstance(event, yaml.AliasEvent):
                _refuse(f"line {self._line(event)}: aliases are not allowed")

    def _mapping(self) -> Iterator[Item | Bad]:
        is_known = False
        for key in self._events:
            if isinstance(key, yaml.MappingEndEvent):
                break
            name = key.value if isinstance(key, yaml.ScalarEvent) else None
            self._skip(key)
            value = next(self._events)
            if name != _ENTRIES:
                self._skip(value)
                continue
            is_known = True
            if isinstance(value, yaml.SequenceStartEvent):
                yield from self._items()
            elif isinstance(value, yaml.ScalarEvent) and value.value in {"", "~", "null"}:
                continue
            else:
                _refuse(f"line {self._line(value)}: `entries:` must be a list")
        if not is_known:
            _refuse("a mapping without `entries:`, so no index")

    def _items(self) -> Iterator[Item | Bad]:
        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                return
            yield self._item(event)

    def _item(self, first: yaml.Event) -> Item | Bad:
        line = self._line(first)
        if not isinstance(first, yaml.MappingStartEvent):
            self._skip(first)
            return Bad(line, "an entry must be a mapping")
        doubles = Doubles()
        builder = TreeBuilder(_DEPTH, doubles)
        problem: Bad | None = None
        for event in self._whole(first):
            if problem is None:
                try:
                    builder.feed(event)
                except InvalidRequest as error:
                    problem = Bad(self._line(event), _PLACE.sub("", error.fields[0].message))
        if problem is not None:
            return problem
        fields = builder.root if isinstance(builder.root, dict) else {}
        return Item(line, fields, doubles.warnings())

    def _skip(self, first: yaml.Event) -> None:
        for _ in self._whole(first):
            pass

    def _whole(self, first: yaml.Event) -> Iterator[yaml.Event]:
        """Yield the events of the value that begins with ``first``. Depth ends it before it can hurt."""
        depth = 0
        event = first
        while True:
            if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                depth += 1
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                depth -= 1
            if depth > _DEPTH:
                _refuse(f"line {self._line(event)}: broken: nested deeper than {_DEPTH}")
            yield event
            if depth == 0:
                return
            event = next(self._events)

    @staticmethod
    def _line(event: yaml.Event) -> int:
        mark = event.start_mark
        return (mark.line if mark else 0) + 1


def _refuse(message: str) -> NoReturn:
    raise IndexUnreadable(message)


_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f\ud800-\udfff]")
_LINE_BREAK = re.compile("[\n\r\x85\u2028\u2029]")
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_MAX_SEGMENT_BYTES = 255
_MAX_PATH_BYTES = 1024
_SUFFIXES = (".md", ".markdown")
_LESSONS = "lessons"
AskedKind = Literal["question", "wording"]
_KINDS: tuple[AskedKind, ...] = get_args(AskedKind)
_ORIGINS: tuple[Origin, ...] = get_args(Origin)
_CONFIDENCES: tuple[Confidence, ...] = get_args(Confidence)
_SHA256 = re.compile("[0-9a-f]{64}")
_WRITER = re.compile("(person|agent):.|file$")
_REASONS: tuple[ArchiveReason, ...] = get_args(ArchiveReason)


class BadItem(KrError):
    """An item that can't be taken in. The message names the field and what is allowed."""

    code = "bad_item"


def check_item(fields: Mapping[str, Tree], *, now: datetime, archived: bool) -> Incoming:
    """Check one item; its report is not looked for. ``archived``: the file holds archived items, whatever their status says.

    A time in the future is nobody's: it counts as not told. Raises ``BadItem`` for the first bad field.
    """
    if "<<" in fields:
        _bad("<<", "a merge key is not followed: write the fields out")
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


class Whose(NamedTuple):
    """The entry that an item of ``_wordings.yaml`` is about."""

    id: str
    framework: str
    entry_topic: str


class Asked(NamedTuple):
    """What an entry was asked: its own ``question``, or a ``wording`` that it served."""

    whose: Whose
    kind: AskedKind
    need: Need
    at: str
    session_id: str | None
    proved: bool = False
    """Whether a wording serves by itself."""


class Written(NamedTuple):
    """Who wrote the text of this hash, which an entry has or had."""

    whose: Whose
    sha256: str
    origin: Origin
    confidence: Confidence
    written_by: str | None


def check_writer(fields: Mapping[str, Tree]) -> Written:
    """Check one item of the kind ``writer``. Raises ``BadItem``."""
    sha256 = _required(fields, "sha256").lower()
    if not _SHA256.fullmatch(sha256):
        _bad("sha256", f"must be the hash of a text, not {_shown(sha256)}")
    written_by = _text(fields, "written_by")
    if written_by is not None and (_LINE_BREAK.search(written_by) or not _WRITER.match(written_by)):
        _bad("written_by", f"must be person:NAME, agent:SESSION or file, not {_shown(written_by)}")
    return Written(
        whose=_whose(fields),
        sha256=sha256,
        origin=_one_of(fields, "origin", _ORIGINS),
        confidence=_one_of(fields, "confidence", _CONFIDENCES),
        written_by=written_by,
    )


def _one_of(fields: Mapping[str, Tree], name: str, allowed: tuple[T, ...]) -> T:
    told = _required(fields, name)
    found = next((known for known in allowed if known == told), None)
    if found is None:
        _bad(name, f"must be {' or '.join(map(str, allowed))}, not {_shown(told)}")
    return found


def check_times(fields: Mapping[str, Tree]) -> tuple[Whose, dict[str, str | None], str | None]:
    """Check one item of the kind ``times``: whose they are, those of ``EXACT``, and ``STALE_MAJOR``. Raises ``BadItem``."""

    def moment(name: str) -> str | None:
        text = _text(fields, name)
        if text is None:
            return None
        found = parse_time(text)
        if found is None:
            _bad(name, f"must be a time such as 2026-01-20T12:00:00.000000Z, not {_shown(text)}")
        return to_text(found)

    return _whose(fields), {name: moment(name) for name in EXACT}, _text(fields, STALE_MAJOR)


def _whose(fields: Mapping[str, Tree]) -> Whose:
    return Whose(*(_required(fields, name) for name in Whose._fields))


def check_asked(fields: Mapping[str, Tree], *, now: datetime) -> Asked:
    kind = _one_of(fields, "kind", _KINDS)
    at = parse_time(_time(fields, "at", now) or "") or now
    return Asked(
        whose=_whose(fields),
        kind=kind,
        need=Need(_required(fields, "topic"), _tags(fields) or (), _required(fields, "question")),
        at=to_text(at),
        session_id=_text(fields, "session_id"),
        proved=_text(fields, PROVED) == "true",
    )


def check_path(path: str) -> str:
    """Return a report's path in its plain form. Raises ``BadItem`` unless it stays below its folder."""
    relative = PurePosixPath(path)
    if "\\" in path:
        _bad("path", "must be written with forward slashes")
    if relative.is_absolute() or ".." in relative.parts or re.match(r"[A-Za-z]:", path):
        _bad("path", f"must be relative and stay within the knowledge base, not {_shown(path)}")
    if _LINE_BREAK.search(path) or "\t" in path:
        _bad("path", "must be one line without control characters")
    if relative.suffix.lower() not in _SUFFIXES:
        _bad("path", f"must name a Markdown file (.md), not {_shown(path)}")
    if any(part.startswith(".") for part in relative.parts) or relative.parts[0].casefold() == _LESSONS:
        _bad("path", f"must not name a hidden file or the lessons, as {_shown(path)} does")
    if (
        len(path.encode()) > _MAX_PATH_BYTES
        or max(len(part.encode()) for part in relative.parts) > _MAX_SEGMENT_BYTES
    ):
        _bad("path", f"is too long ({_MAX_SEGMENT_BYTES} bytes for each name, {_MAX_PATH_BYTES} in all)")
    return str(relative)


def _id(fields: Mapping[str, Tree]) -> str | None:
    entry_id = _text(fields, "id")
    if entry_id is not None and _LINE_BREAK.search(entry_id):
        _bad("id", "must be one line")
    return entry_id


def _required(fields: Mapping[str, Tree], name: str) -> str:
    text = _text(fields, name)
    if text is None:
        _bad(name, "required, but missing")
    return text


def _text(fields: Mapping[str, Tree], name: str) -> str | None:
    value = fields.get(name)
    if value is None:
        return None
    if not isinstance(value, str):
        _bad(name, f"must be text, not a {'list' if isinstance(value, list) else 'mapping'}")
    return _checked(name, value) if value.strip() else None


def _checked(name: str, text: str) -> str:
    if bad := _CONTROL.search(text):
        _bad(name, f"must not contain control characters (found U+{ord(bad[0]):04X})")
    return text


def _tags(fields: Mapping[str, Tree]) -> tuple[str, ...] | None:
    value = fields.get("tags")
    if value is None:
        return None
    if isinstance(value, str):
        return tuple(_checked("tags", tag.strip()) for tag in value.split(",") if tag.strip())
    if not isinstance(value, list):
        _bad("tags", "must be a list of texts")
    return tuple(_checked("tags", tag) for tag in map(_tag, value) if tag.strip())


def _tag(value: Tree) -> str:
    if isinstance(value, dict | list):
        _bad("tags", "must be a list of texts")
    return value or ""


def _time(fields: Mapping[str, Tree], name: str, now: datetime) -> str | None:
    text = _text(fields, name)
    if text is None:
        return None
    moment = parse_time(text)
    if moment is None:
        _bad(name, f"must be a date such as 2026-01-20, not {_shown(text)}")
    if moment > now:
        return None
    return text.strip() if _DATE.fullmatch(text.strip()) else to_text(moment)


def _status(fields: Mapping[str, Tree]) -> str:
    text = (_text(fields, "status") or "fresh").strip().lower()
    if text not in {"fresh", "stale", "archived"}:
        _bad("status", f"must be fresh, stale or archived, not {_shown(text)}")
    return text


def _departure(fields: Mapping[str, Tree], now: datetime) -> Departure:
    text = (_text(fields, "reason") or "").strip().lower()
    # Older tools tell none: `manual` promises nothing about capacity or age.
    reason: ArchiveReason = next((known for known in _REASONS if known == text), "manual")
    return Departure(at=_time(fields, "archived_at", now), reason=reason)


def _shown(text: str) -> str:
    cut = text if len(text) <= 60 else f"{text[:59]}…"
    return f'"{cut}"' if cut.isprintable() else ascii(cut)


def _bad(field: str, message: str) -> NoReturn:
    raise BadItem(f"{field}: {message}")
