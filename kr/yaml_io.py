"""The one reader of YAML that strangers wrote, and the one writer of YAML that kr prints.

The reader gives every scalar as the text that was written, so that ``framework_version: 2.10`` stays ``2.10``; which text
is a number or a boolean is for whoever checks the document to decide.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, BinaryIO, NoReturn

import yaml

from kr.errors import BrokenYaml
from kr.text import DEPTH, KeyPath, Tree, shown_key

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TAGS = frozenset({None, "!", *(f"tag:yaml.org,2002:{name}" for name in ("str", "seq", "map"))})


@dataclass(frozen=True, slots=True)
class Place:
    """Where a key or a member of a list stands, counted from 1."""

    line: int
    column: int


def read_yaml(text: str, *, depth: int = DEPTH) -> tuple[Tree, dict[KeyPath, Place]]:
    """Read one YAML document: the nested text, and the place of everything in it.

    Raises ``BrokenYaml`` for what is no YAML, aliases, tags, repeated keys, keys that are no text, a second document,
    and more than ``depth`` levels.
    """
    reader = _Reader(text, depth)
    try:
        return reader.read(), reader.places
    except (BrokenYaml, yaml.YAMLError) as exc:
        error = exc if isinstance(exc, BrokenYaml) else _broken(exc, text)
        error.read = {key: value for key, value in reader.top.items() if isinstance(value, str)}
        raise error from exc.__cause__ or exc


def read_list(file: BinaryIO) -> Iterator[tuple[int, Tree]]:
    """Yield the items of a YAML list one by one, each with its line from 1, so that a long file is never whole in memory.

    Raises ``BrokenYaml`` as ``read_yaml`` where the file is broken or no list, after the items that stand before.
    """
    try:
        yield from _Reader(file, DEPTH).items()
    except yaml.YAMLError as exc:
        file.seek(0)
        raise _broken(exc, file.read().decode(errors="replace")) from exc


def _broken(error: yaml.YAMLError, text: str) -> BrokenYaml:
    """Say what PyYAML found wrong with a text, and where."""
    if isinstance(error, yaml.reader.ReaderError):
        before = text.encode()[: error.position].decode(errors="ignore")
        line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
        return BrokenYaml(line, column, f"the character U+{error.character:04X} is not allowed")
    if not isinstance(error, yaml.MarkedYAMLError):
        return BrokenYaml(1, 1, str(error))
    mark = error.problem_mark or error.context_mark
    problem = f"{error.problem or error.context or 'broken'}; a text with special characters needs quotes"
    last = text.rstrip("\n").count("\n")  # what is open at the end is not wrong behind the last line
    return (
        BrokenYaml(min(mark.line, last) + 1, mark.column + 1, problem) if mark else BrokenYaml(1, 1, problem)
    )


class _Reader:
    """Makes nested text of PyYAML's events. Its recursion ends at ``depth``."""

    def __init__(self, source: str | BinaryIO, depth: int) -> None:
        self._events: Iterator[yaml.Event] = yaml.parse(source, Loader=yaml.CBaseLoader)
        self._depth = depth
        self.places: dict[KeyPath, Place] = {}
        self.top: dict[str, Tree] = {}

    def read(self) -> Tree:
        tree: Tree = None
        for event in self._top_events():
            tree = self._value(event, ())
        return tree

    def items(self) -> Iterator[tuple[int, Tree]]:
        for event in self._top_events():
            if isinstance(event, yaml.SequenceStartEvent):
                for number, member in enumerate(self._until(yaml.SequenceEndEvent)):
                    yield _place(member).line, self._value(member, (number,))
                    self.places.clear()
            elif not isinstance(event, yaml.ScalarEvent) or self._value(event, ()) is not None:
                self._refuse(event, (), "it must be a list")

    def _top_events(self) -> Iterator[yaml.Event]:
        """Yield the event that begins the one document's value, whose events the caller takes."""
        is_begun = False
        for event in self._events:
            if isinstance(event, yaml.DocumentStartEvent):
                if is_begun:
                    self._refuse(event, (), "a second document begins here")
                is_begun = True
            elif isinstance(event, yaml.NodeEvent):
                yield event

    def _value(self, event: yaml.Event, path: KeyPath) -> Tree:
        self._check(event, path)
        self.places.setdefault(path, _place(event))
        if isinstance(event, yaml.ScalarEvent):
            is_plain = event.tag is None and event.implicit[0]
            return None if is_plain and event.value in _NULLS else str(event.value)
        if len(path) >= self._depth:
            self._refuse(event, path[:1], f"nested deeper than {self._depth}")
        if isinstance(event, yaml.SequenceStartEvent):
            members = enumerate(self._until(yaml.SequenceEndEvent))
            return [self._value(member, (*path, index)) for index, member in members]
        return self._mapping(path)

    def _mapping(self, path: KeyPath) -> dict[str, Tree]:
        mapping: dict[str, Tree] = {} if path else self.top
        for key in self._until(yaml.MappingEndEvent):
            self._check(key, path)
            if not isinstance(key, yaml.ScalarEvent):
                self._refuse(key, path, "a key must be text")
            here = (*path, str(key.value))
            if key.value in mapping:
                self._refuse(key, here, "this key is given twice")
            self.places[here] = _place(key)
            mapping[key.value] = self._value(next(self._events), here)
        return mapping

    def _until(self, end: type[yaml.Event]) -> Iterator[yaml.Event]:
        return takewhile(lambda event: not isinstance(event, end), self._events)

    def _check(self, event: yaml.Event, path: KeyPath) -> None:
        if isinstance(event, yaml.AliasEvent):
            self._refuse(event, path, "aliases are not allowed; a text that begins with * needs quotes")
        tag = getattr(event, "tag", None)
        if tag not in _TAGS:
            self._refuse(event, path, f"the tag {shown_key(str(tag))} is not allowed")

    def _refuse(self, event: yaml.Event, path: KeyPath, problem: str) -> NoReturn:
        place = _place(event)
        raise BrokenYaml(place.line, place.column, problem, path=path)


def _place(event: yaml.Event) -> Place:
    mark = event.start_mark
    return Place(mark.line + 1, mark.column + 1) if mark else Place(1, 1)


class _Dumper(yaml.CSafeDumper):
    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 - of PyYAML
        return True


_NUMBER = re.compile(r"[-+]?(0o[0-7]+|0x[0-9a-fA-F]+|(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?)")
"""What YAML 1.2 reads as a number, and PyYAML, which speaks 1.1, would partly write without quotes."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text else "'" if _NUMBER.fullmatch(text) else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def write_yaml(value: Any) -> str:
    """Write nested plain data as YAML that readers of 1.1 and 1.2 take alike. Raises ``yaml.YAMLError`` for other data."""
    written: str = yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=10**6)
    return written.removesuffix("...\n")
