"""Reads index files that anybody may have written (SPEC 6.2): a list of items, or a mapping ``entries:``.

Item by item, so that a bad one is named by its line and the others still count. Where the YAML itself is broken
reading ends, with the line to mend.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, NoReturn

from kr.documents import Doubles, Tree
from kr.errors import IndexUnreadable, InvalidRequest
from kr.yamltext import TreeBuilder

if TYPE_CHECKING:
    import yaml

LIMIT = 64 * 1024 * 1024
_DEPTH = 8
_ENTRIES = "entries"

_OPENED = re.compile(r"quoted scalar|flow (?:sequence|mapping)")
_PLACE = re.compile(r"^line \d+, column \d+: ")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


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
    yield from _Reader(_parse(text)).read()


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
        raise IndexUnreadable(f"line {line}: broken: {error.problem or error.context or 'YAML'}") from error
    # The Python parser lets the errors of chr() through.
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        bad = _UNPRINTABLE.search(text)
        if bad is None:
            raise IndexUnreadable(f"broken: {' '.join(str(error).split())}") from error
        line = text.count("\n", 0, bad.start()) + 1
        message = f"line {line}: broken: the control character U+{ord(bad[0]):04X} is not allowed"
        raise IndexUnreadable(message) from error


class _Reader:
    """Reads the events of one document."""

    def __init__(self, events: "Iterator[yaml.Event]") -> None:
        self._events = events

    def read(self) -> Iterator[Item | Bad]:
        import yaml

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
        import yaml

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
        import yaml

        for event in self._events:
            if isinstance(event, yaml.SequenceEndEvent):
                return
            yield self._item(event)

    def _item(self, first: "yaml.Event") -> Item | Bad:
        import yaml

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

    def _skip(self, first: "yaml.Event") -> None:
        for _ in self._whole(first):
            pass

    def _whole(self, first: "yaml.Event") -> "Iterator[yaml.Event]":
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
                _refuse(f"line {self._line(event)}: broken: nested deeper than {_DEPTH}")
            yield event
            if depth == 0:
                return
            event = next(self._events)

    @staticmethod
    def _line(event: "yaml.Event") -> int:
        mark = event.start_mark
        return (mark.line if mark else 0) + 1


def _refuse(message: str) -> NoReturn:
    raise IndexUnreadable(message)
