"""Reads index files that anybody may have written (SPEC 6.2): a list of items, or a mapping ``entries:``.

Item by item, so that a bad one is named by its line and the others still count. Where the YAML itself is
broken, a block list is read on piece by piece, each item as a document of its own.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from kr.documents import Doubles, Tree, TreeBuilder
from kr.errors import IndexUnreadable, InvalidRequest

if TYPE_CHECKING:
    import yaml

LIMIT = 64 * 1024 * 1024
_DEPTH = 8
_ENTRIES = "entries"

_OPENED = re.compile(r"quoted scalar|flow (?:sequence|mapping)")
_PLACE = re.compile(r"^line \d+, column \d+: ")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LIST_BELOW = re.compile(rf"^{_ENTRIES}[ \t]*:[ \t]*(?:#.*)?$", re.MULTILINE)
_BEFORE_LIST = re.compile(r"(?:[ \t]*(?:#.*|---[ \t]*(?:#.*)?|%.*)?\r?(?:\n|\Z))*")
_CONFLICT = re.compile(r"^(?:<{7}|\|{7}|={7}|>{7})(?:[ \r].*)?$", re.MULTILINE)
_DASH = re.compile(r"^([ ]*)-(?=[ \t\r\n]|\Z)", re.MULTILINE)


class Item(NamedTuple):
    """One mapping as it was written: every scalar is text, a plain null is None. ``line`` counts from 1."""

    line: int
    fields: dict[str, Tree]
    warnings: tuple[str, ...] = ()


class Bad(NamedTuple):
    """Something that is no item. ``line`` counts from 1; ``reason`` is a clause for a person."""

    line: int
    reason: str


class _Broken(Exception):
    """The YAML is broken from here on. ``line`` counts from 1."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


def read_items(data: bytes) -> Iterator[Item | Bad]:
    """Read one file of at most 64 MiB: its items in order, and what is wrong with the others.

    Raises ``IndexUnreadable`` when it is no such file at all; its message doesn't name the file.
    """
    text = _decode(data)
    begins = [marker.start() for marker in _CONFLICT.finditer(text) if marker[0].startswith("<")]
    if begins:
        why = "a merge left a conflict here: the items of both sides are read"
        yield from (Bad(line, why) for line in _lines(text, begins))
        text = _CONFLICT.sub("", text)
    reader = _Reader()
    found = False
    try:
        for item in reader.read(_parse(text)):
            found = found or isinstance(item, Item)
            yield item
    except _Broken as broken:
        yield from _rest(text, broken, reader, found=found)


def _decode(data: bytes) -> str:
    if len(data) > LIMIT:
        raise IndexUnreadable(f"larger than {LIMIT // 1024**2} MiB")
    encoding = "utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise IndexUnreadable(f"line {line}: no {error.encoding} text (byte {error.start})") from error


def _parse(text: str) -> "Iterator[yaml.Event]":
    import yaml

    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    try:
        yield from yaml.parse(text, Loader=loader)
    except yaml.MarkedYAMLError as error:
        # A quote or a bracket that is never closed is noticed far below: the line where it opened is the one to mend.
        is_opened = error.context_mark is not None and _OPENED.search(error.context or "")
        mark = error.context_mark if is_opened else error.problem_mark or error.context_mark
        # What ends too early is broken below the last line, by the parser's count.
        line = min(mark.line, text.rstrip().count("\n")) + 1 if mark else 1
        raise _Broken(line, error.problem or error.context or "broken YAML") from error
    # The Python parser lets the errors of chr() through.
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        bad = _UNPRINTABLE.search(text)
        if bad is None:
            raise _Broken(1, " ".join(str(error).split())) from error
        line = text.count("\n", 0, bad.start()) + 1
        raise _Broken(line, f"the control character U+{ord(bad[0]):04X} is not allowed") from error


@dataclass(slots=True)
class _Reader:
    """Reads the events of one document.

    ``begun`` is the line of the last item that was begun, ``done`` of the last that was given out; 0 before.
    """

    begun: int = 0
    done: int = 0
    offset: int = 0

    def read(self, events: "Iterator[yaml.Event]") -> Iterator[Item | Bad]:
        import yaml

        documents = 0
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    yield Bad(self._line(event), "a second document begins here: it is not read")
                    return
            elif isinstance(event, yaml.SequenceStartEvent):
                yield from self._items(events)
            elif isinstance(event, yaml.MappingStartEvent):
                yield from self._mapping(events)
            elif isinstance(event, yaml.ScalarEvent) and event.value:
                _refuse(f"line {self._line(event)}: neither a list of entries nor a mapping with `entries:`")
            elif isinstance(event, yaml.AliasEvent):
                _refuse(f"line {self._line(event)}: aliases are not allowed")

    def _mapping(self, events: "Iterator[yaml.Event]") -> Iterator[Item | Bad]:
        import yaml

        is_known = False
        for key in events:
            if isinstance(key, yaml.MappingEndEvent):
                break
            name = key.value if isinstance(key, yaml.ScalarEvent) else None
            self._skip(key, events)
            value = next(events)
            if name != _ENTRIES:
                self._skip(value, events)
                continue
            is_known = True
            if isinstance(value, yaml.SequenceStartEvent):
                yield from self._items(events)
            elif isinstance(value, yaml.ScalarEvent) and value.value in {"", "~", "null"}:
                continue
            else:
                _refuse(f"line {self._line(value)}: `entries:` must be a list")
        if not is_known:
            _refuse("a mapping without `entries:`, so no index")

    def _items(self, events: "Iterator[yaml.Event]") -> Iterator[Item | Bad]:
        import yaml

        for event in events:
            if isinstance(event, yaml.SequenceEndEvent):
                return
            self.begun = self._line(event)
            yield self._item(event, events)
            self.done = self.begun

    def _item(self, first: "yaml.Event", events: "Iterator[yaml.Event]") -> Item | Bad:
        import yaml

        line = self._line(first)
        if not isinstance(first, yaml.MappingStartEvent):
            self._skip(first, events)
            return Bad(line, "an entry must be a mapping")
        doubles = Doubles()
        builder = TreeBuilder(_DEPTH, doubles)
        problem: Bad | None = None
        for event in self._whole(first, events):
            if problem is None:
                try:
                    builder.feed(event)
                except InvalidRequest as error:
                    problem = Bad(self._line(event), _PLACE.sub("", error.fields[0].message))
        if problem is not None:
            return problem
        fields = builder.root if isinstance(builder.root, dict) else {}
        return Item(line, fields, doubles.warnings())

    def _skip(self, first: "yaml.Event", events: "Iterator[yaml.Event]") -> None:
        for _ in self._whole(first, events):
            pass

    def _whole(self, first: "yaml.Event", events: "Iterator[yaml.Event]") -> "Iterator[yaml.Event]":
        """Yield the events of the value that begins with ``first``. Depth ends it before it can hurt."""
        import yaml

        depth = 0
        event = first
        while True:
            if isinstance(event, yaml.MappingStartEvent | yaml.SequenceStartEvent):
                depth += 1
            elif isinstance(event, yaml.MappingEndEvent | yaml.SequenceEndEvent):
                depth -= 1
            if depth > _DEPTH:
                raise _Broken(self._line(event) - self.offset, f"nested deeper than {_DEPTH}")
            yield event
            if depth == 0:
                return
            event = next(events)

    def _line(self, event: "yaml.Event") -> int:
        mark = event.start_mark
        return (mark.line if mark else 0) + 1 + self.offset


def _rest(text: str, broken: _Broken, reader: _Reader, *, found: bool) -> Iterator[Item | Bad]:
    """Read a broken file on from the item that was begun last, unless that is done, item by item."""
    waiting: list[Bad] = []
    pieces = [piece for piece in _pieces(text, reader.begun) if piece.line > reader.done]
    is_told = False
    for item in _read_pieces(pieces, broken, is_between=reader.done > 0):
        is_told = is_told or isinstance(item, Bad)
        if isinstance(item, Bad) and not found:
            waiting.append(item)
            continue
        found = True
        yield from waiting
        waiting.clear()
        yield item
    if not found:
        raise IndexUnreadable(f"line {broken.line}: broken: {broken.reason}")
    if not is_told:
        yield Bad(broken.line, f"broken from here on: {broken.reason}")


def _read_pieces(pieces: "list[_Piece]", broken: _Broken, *, is_between: bool) -> Iterator[Item | Bad]:
    """Read pieces; ``is_between``: the break may stand between the first one and an item that is done."""
    for piece in pieces:
        items = list(_read_piece(piece))
        is_good = not any(isinstance(item, Bad) for item in items)
        if is_between and piece is pieces[0] and broken.line <= piece.line and is_good:
            yield Bad(min(broken.line, piece.line - 1), broken.reason)
        yield from items


class _Piece(NamedTuple):
    """The text of one item; ``line`` is the line of its dash, from 1."""

    line: int
    text: str
    is_in_mapping: bool


def _pieces(text: str, begun: int) -> Iterator[_Piece]:
    """Cut a block list at its dashes, from the item that begins at the line ``begun`` on."""
    below = _LIST_BELOW.search(text)
    start = below.end() if below else 0
    before = _BEFORE_LIST.match(text, start)
    first = _DASH.match(text, before.end() if before else start)
    if first is None:
        return
    dashes = [dash.start() for dash in _dashes_at(text, first)]
    lines = _lines(text, dashes)
    ends = [*dashes[1:], len(text)]
    following = [*lines[1:], None]
    for at, end, line, next_line in zip(dashes, ends, lines, following, strict=True):
        if next_line is None or next_line > begun:
            yield _Piece(line, text[at:end], is_in_mapping=below is not None)


def _dashes_at(text: str, first: re.Match[str]) -> Iterator[re.Match[str]]:
    same = re.compile(rf"^{first[1]}-(?=[ \t\r\n]|\Z)", re.MULTILINE)
    return same.finditer(text, first.start())


def _lines(text: str, offsets: Iterable[int]) -> list[int]:
    lines: list[int] = []
    line, at = 1, 0
    for offset in offsets:
        line += text.count("\n", at, offset)
        at = offset
        lines.append(line)
    return lines


def _read_piece(piece: _Piece) -> Iterator[Item | Bad]:
    head = f"{_ENTRIES}:\n" if piece.is_in_mapping else ""
    offset = piece.line - 1 - len(head.splitlines())
    reader = _Reader(offset=offset)
    try:
        yield from reader.read(_parse(head + piece.text))
    except _Broken as broken:
        yield Bad(max(piece.line, broken.line + offset), broken.reason)


def _refuse(message: str) -> NoReturn:
    raise IndexUnreadable(message)
