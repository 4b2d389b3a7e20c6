"""Reads a request document that a stranger wrote: YAML or JSON in, nested text out (SPEC 3.1).

Every scalar is the text that was written, so that ``framework_version: 2.10`` stays ``2.10``; which
text is a number or a boolean is for the validation of the request to decide.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, NoReturn, TypeAlias

from kr.errors import FieldError, InvalidRequest

if TYPE_CHECKING:
    import yaml

Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | None"
KeyPath: TypeAlias = tuple[str | int, ...]

LIMIT = 1024 * 1024
DEPTH = 32
_NOUN = "the request"
_SHOWN_WARNINGS = 20
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset(
    {"!", *(_TAG + name for name in ("str", "int", "float", "bool", "null", "timestamp"))}
)
_COLLECTION_TAGS = {"mapping": frozenset({"!", _TAG + "map"}), "list": frozenset({"!", _TAG + "seq"})}
_SURROGATE = re.compile("[\ud800-\udfff]")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
# Strings are swallowed whole, also one that never ends, so that the scan stays linear.
_JSON_BRACKETS = re.compile(r'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)|[][{}]', re.DOTALL)


@dataclass(frozen=True, slots=True)
class Document:
    """``data`` holds dicts, lists, texts and None; ``warnings`` are sentences for a person."""

    data: dict[str, Tree]
    warnings: tuple[str, ...] = ()


def read_document(data: bytes, *, limit: int = LIMIT, depth: int = DEPTH) -> Document:
    """Parse one request of at most ``limit`` bytes, nested at most ``depth`` deep.

    JSON is recognised by itself; everything else is YAML with the core tags, without aliases. A key that
    stands twice counts as it stands last, with a warning; merge keys (``<<``) are keys like others.

    Raises ``InvalidRequest`` with one ``FieldError`` for anything else, and nothing but that; its field is
    the path of the key where one is known (``research_query.tags``, whatever its member), otherwise ``request``.
    The error carries the texts at the document's top that were read before.
    """
    if len(data) > limit:
        _refuse(f"the request is larger than {limit} bytes")
    text = _decode(data)
    doubles = Doubles()
    tree, json_problem = _read_json(text, depth, doubles)
    if tree is None:
        tree = _read_yaml(text, depth, doubles, json_problem)
    if tree is None:
        _refuse("the request is empty; it must be a mapping in YAML or JSON")
    if not isinstance(tree, dict):
        _refuse(
            f"the request must be a mapping in YAML or JSON, not {'a list' if isinstance(tree, list) else 'plain text'}"
        )
    return Document(tree, doubles.warnings())


class Place(NamedTuple):
    """Where a key or a list's member stands, counted from 1; ``is_plain``: its value is a scalar without quotes."""

    line: int
    column: int
    is_plain: bool = False


@dataclass(frozen=True, slots=True)
class Located:
    """A tree of texts with the place of everything in it; ``repeated`` are keys that stand twice."""

    tree: Tree
    places: dict[KeyPath, Place]
    repeated: list[KeyPath]


def read_located(text: str, *, noun: str, depth: int = DEPTH) -> Located:
    """Parse one YAML document of any shape, as ``read_document`` does, and keep where everything stands.

    Raises ``InvalidRequest``; its message names line and column, and calls the document ``noun``.
    """
    places: dict[KeyPath, Place] = {}
    builder = TreeBuilder(depth, Doubles(), places=places)
    events = _yaml_events(text, None, noun)
    return Located(_build(events, builder, noun), places, builder.repeated)


def show_path(path: KeyPath) -> str:
    """Write ``("a", "b", 0)`` as ``a.b[0]``: printable and bounded whatever the keys hold; ``request`` when empty."""
    shown = ""
    for step in path:
        shown += f"[{step}]" if isinstance(step, int) else f".{_show_key(step)}"
    return shown.removeprefix(".") or "request"


def _show_key(key: str) -> str:
    cut = key if len(key) <= 60 else key[:59] + "…"
    return cut if cut.isprintable() else ascii(cut)[1:-1]


def _refuse(message: str, path: KeyPath = ()) -> NoReturn:
    # A list's members are told under the list's own name: the validation table knows no `tags[0]`.
    named = tuple(step for step in path if isinstance(step, str))
    raise InvalidRequest(FieldError(show_path(named), message))


def _decode(data: bytes) -> str:
    encoding = "utf-16" if data[:2] in {b"\xff\xfe", b"\xfe\xff"} else "utf-8-sig"
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as exc:
        problem = (
            f"the request is not {'UTF-16' if encoding == 'utf-16' else 'UTF-8'} text (byte {exc.start})"
        )
        raise InvalidRequest(FieldError("request", problem)) from exc


def _at(line: int, column: int) -> str:
    return f"line {line + 1}, column {column + 1}"


@dataclass(slots=True)
class Doubles:
    """The keys that were given more than once."""

    paths: dict[str, None] = field(default_factory=dict)

    def note(self, path: KeyPath) -> None:
        self.paths.setdefault(show_path(path))

    def warnings(self) -> tuple[str, ...]:
        shown = [
            f"{path} is given more than once; the last one counts"
            for path in list(self.paths)[:_SHOWN_WARNINGS]
        ]
        if len(self.paths) > _SHOWN_WARNINGS:
            shown.append(f"{len(self.paths) - _SHOWN_WARNINGS} more keys are given more than once")
        return tuple(shown)


class _Pairs(list[tuple[str, object]]):
    """A JSON object as it was written, double keys included."""


def _read_json(text: str, depth: int, doubles: Doubles) -> tuple[Tree, str | None]:
    """Return the tree, or None and what the JSON reader minded (None when the text does not look like JSON)."""
    body = text.lstrip(" \t\r\n")
    if not body.startswith("{") or _is_deeper(body, depth):
        return None, None
    import json

    try:
        value = json.loads(text, object_pairs_hook=_Pairs, parse_int=str, parse_float=str, parse_constant=str)
    except json.JSONDecodeError as exc:
        looks_like_json = body[1:].lstrip().startswith('"')
        return None, f"{_at(exc.lineno - 1, exc.colno - 1)}: {exc.msg}" if looks_like_json else None
    return _from_json(value, (), doubles), None


def _is_deeper(body: str, depth: int) -> bool:
    level = 0
    for bracket in _JSON_BRACKETS.finditer(body):
        if bracket[0] in {"[", "{"}:
            level += 1
            if level > depth:
                return True
        elif bracket[0] in {"]", "}"}:
            level -= 1
    return False


def _from_json(value: object, path: KeyPath, doubles: Doubles) -> Tree:
    if isinstance(value, _Pairs):
        mapping: dict[str, Tree] = {}
        for key, item in value:
            here = (*path, _checked(key, (*path, key)))
            if key in mapping:
                doubles.note(here)
            mapping[key] = _from_json(item, here, doubles)
        return mapping
    if isinstance(value, list):
        return [_from_json(item, (*path, index), doubles) for index, item in enumerate(value)]
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else _checked(str(value), path)


def _checked(text: str, path: KeyPath) -> str:
    if _SURROGATE.search(text):
        _refuse("a lone surrogate (\\ud800 to \\udfff) is no character", path)
    return text


def _read_yaml(text: str, depth: int, doubles: Doubles, json_problem: str | None) -> Tree:
    return _build(_yaml_events(text, json_problem, _NOUN), TreeBuilder(depth, doubles), _NOUN)


def _yaml_events(text: str, json_problem: str | None, noun: str) -> "Iterator[yaml.Event]":
    import yaml

    if bad := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, bad.start())
        column = bad.start() - (text.rfind("\n", 0, bad.start()) + 1)
        _refuse(f"{_at(line, column)}: the control character U+{ord(bad[0]):04X} is not allowed")
    loader = yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader
    return _events(yaml.parse(text, Loader=loader), json_problem, noun)


def _events(events: "Iterable[yaml.Event]", json_problem: str | None, noun: str) -> "Iterator[yaml.Event]":
    import yaml

    try:
        yield from events
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        place = f"{_at(mark.line, mark.column)}: " if mark else ""
        problem = json_problem or f"{place}{exc.problem or exc.context or 'broken'}"
        raise InvalidRequest(FieldError("request", f"{noun} is broken: {problem}")) from exc
    # The Python parser lets the errors of chr() through.
    except (yaml.YAMLError, ValueError, OverflowError) as exc:
        problem = json_problem or " ".join(str(exc).split())
        raise InvalidRequest(FieldError("request", f"{noun} is broken: {problem}")) from exc


@dataclass(slots=True)
class _Frame:
    """An open mapping or list, and the key or index of the value that is being read (None: a key comes)."""

    container: dict[str, Tree] | list[Tree]
    step: str | int | None

    def put(self, value: Tree) -> None:
        if isinstance(self.container, list):
            self.container.append(value)
        elif isinstance(self.step, str):
            self.container[self.step] = value

    def advance(self) -> None:
        self.step = len(self.container) if isinstance(self.container, list) else None


def _build(events: "Iterable[yaml.Event]", builder: "TreeBuilder", noun: str) -> Tree:
    """One document's tree from its events: no recursion, so that depth is refused before it can hurt."""
    import yaml

    documents = 0
    try:
        for event in events:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    _refuse(f"{_place(event)}: a second document begins here; {noun} is one")
            else:
                builder.feed(event)
    except InvalidRequest as error:
        top = builder.root if isinstance(builder.root, dict) else {}
        error.read = {key: value for key, value in top.items() if isinstance(value, str)}
        raise
    return builder.root


def _place(event: "yaml.Event") -> str:
    mark = event.start_mark
    return _at(mark.line, mark.column) if mark else "somewhere"


@dataclass(slots=True)
class TreeBuilder:
    """Makes nested text of YAML events, fed one by one. Raises ``InvalidRequest`` for what is not allowed."""

    depth: int
    doubles: Doubles
    frames: list[_Frame] = field(default_factory=list)
    root: Tree = None
    places: dict[KeyPath, Place] | None = None
    repeated: list[KeyPath] = field(default_factory=list)

    def feed(self, event: "yaml.Event") -> None:
        """Take the next event; those of streams and documents say nothing here."""
        import yaml

        match event:
            case yaml.ScalarEvent():
                self._locate(event)
                self.scalar(event, _place(event))
            case yaml.AliasEvent():
                message = f"{_place(event)}: aliases (*{_show_key(event.anchor or '')}) are not allowed"
                _refuse(message, self.path())
            case yaml.MappingStartEvent():
                self._locate(event)
                self.open({}, event.tag, _place(event))
            case yaml.SequenceStartEvent():
                self._locate(event)
                self.open([], event.tag, _place(event))
            case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                self.close()

    def path(self) -> KeyPath:
        return tuple(frame.step for frame in self.frames if frame.step is not None)

    def _locate(self, event: "yaml.Event") -> None:
        """Remember where a key stands, or a member of a list; the value of a key stands with its key."""
        import yaml

        if self.places is None or event.start_mark is None:
            return
        scalar = event if isinstance(event, yaml.ScalarEvent) else None
        is_key = bool(self.frames) and self.frames[-1].step is None
        path = (*self.path(), scalar.value) if is_key and scalar else self.path()
        if is_key and path in self.places:
            self.repeated.append(path)
        known = None if is_key else self.places.get(path)
        mark = event.start_mark
        line, column = known[:2] if known else (mark.line + 1, mark.column + 1)
        is_plain = not is_key and scalar is not None and scalar.tag is None and bool(scalar.implicit[0])
        self.places[path] = Place(line, column, is_plain)

    def scalar(self, event: "yaml.ScalarEvent", place: str) -> None:
        tag, text = event.tag, event.value
        if tag is not None and tag not in _SCALAR_TAGS:
            _refuse(f"{place}: the tag {_show_key(tag)} is not allowed", self.path())
        frame = self.frames[-1] if self.frames else None
        if frame is not None and frame.step is None:
            frame.step = _checked(text, (*self.path(), text))
            if frame.step in frame.container:
                self.doubles.note(self.path())
            return
        is_null = (tag == _TAG + "null" or (tag is None and event.implicit[0])) and text in _NULLS
        self._put(None if is_null else _checked(text, self.path()))
        self._advance()

    def open(self, container: dict[str, Tree] | list[Tree], tag: str | None, place: str) -> None:
        kind = "mapping" if isinstance(container, dict) else "list"
        if tag is not None and tag not in _COLLECTION_TAGS[kind]:
            _refuse(f"{place}: the tag {_show_key(tag)} is not allowed", self.path())
        if len(self.frames) >= self.depth:
            _refuse(f"{place}: it is nested deeper than {self.depth}")
        if self.frames and self.frames[-1].step is None:
            _refuse(f"{place}: a key must be text, not a {kind}", self.path())
        self._put(container)
        self.frames.append(_Frame(container, None if isinstance(container, dict) else 0))

    def close(self) -> None:
        self.frames.pop()
        self._advance()

    def _put(self, value: Tree) -> None:
        if self.frames:
            self.frames[-1].put(value)
        else:
            self.root = value

    def _advance(self) -> None:
        if self.frames:
            self.frames[-1].advance()
