"""The one reader of YAML that strangers wrote: events in, nested text out, with the place of everything.

It recurses nowhere, so that depth is refused before it can hurt.
"""

import re
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from kr.errors import FieldError, InvalidRequest
from kr.tree import DEPTH, Doubles, KeyPath, Tree, at_place, checked, refuse, show_key, show_path

if TYPE_CHECKING:
    import yaml

_NOUN = "the request"
_MOST_COPIES = 10_000
"""Of values, since aliases can make little text into endless trees."""
_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_TAG = "tag:yaml.org,2002:"
_SCALAR_TAGS = frozenset(
    {"!", *(_TAG + name for name in ("str", "int", "float", "bool", "null", "timestamp"))}
)
_COLLECTION_TAGS = {"mapping": frozenset({"!", _TAG + "map"}), "list": frozenset({"!", _TAG + "seq"})}


_CUT = re.compile(r"[ \t]+#\S")
_OPENED = re.compile(r"quoted scalar|flow (?:sequence|mapping)")
_UNPRINTABLE = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")

_VALUE = re.compile(r"\s*(?:- +)*(?:[\"']?[\w.-]+[\"']?:\s+)?(?P<value>.*)")
_NEEDS_QUOTES = re.compile("[@`%>|*&!,?\\]}]|- ")
"""What a text without quotes may not begin with in YAML."""


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
    """Parse one YAML document of any shape with the place of everything. Raises ``InvalidRequest`` with line and column."""
    return _located(text, TreeBuilder(depth, Doubles(), places={}), noun)


def read_sections(text: str, sections: Collection[str], *, noun: str, depth: int) -> Located:
    """Parse a file of the user's own: aliases and merge keys are read, beside these sections anything may stand."""
    return _located(text, TreeBuilder(depth, Doubles(), places={}, sections=sections), noun)


def _located(text: str, builder: "TreeBuilder", noun: str) -> Located:
    return Located(_build(yaml_events(text, noun), builder, noun), builder.places or {}, builder.repeated)


def read_yaml(text: str, depth: int, doubles: Doubles, json_problem: str | None) -> Tree:
    lines = _lines(text) if " #" in text else None
    return _build(yaml_events(text, _NOUN, json_problem), TreeBuilder(depth, doubles, lines=lines), _NOUN)


def yaml_events(text: str, noun: str, json_problem: str | None = None) -> "Iterator[yaml.Event]":
    """Give the events of a text, one by one. Raises ``InvalidRequest`` where it is broken, with the place to mend."""
    import yaml

    if bad := _UNPRINTABLE.search(text):
        line = text.count("\n", 0, bad.start())
        column = bad.start() - (text.rfind("\n", 0, bad.start()) + 1)
        refuse(f"{at_place(line, column)}: the control character U+{ord(bad[0]):04X} is not allowed")
    try:
        yield from yaml.parse(text, Loader=yaml.CSafeLoader if yaml.__with_libyaml__ else yaml.SafeLoader)
    except yaml.MarkedYAMLError as exc:
        # A quote or a bracket that is never closed is noticed far below: the place where it opened is the one to mend.
        is_opened = exc.context_mark is not None and _OPENED.search(exc.context or "")
        mark = exc.context_mark if is_opened else exc.problem_mark or exc.context_mark
        # What ends too early is broken below the last line, by the parser's count.
        last = text.rstrip().count("\n")
        place = f"{at_place(min(mark.line, last), mark.column)}: " if mark else ""
        cause = _cause(text, mark.line, exc.problem or "") if mark else None
        problem = json_problem or f"{place}{cause or exc.problem or exc.context or 'broken'}"
        raise InvalidRequest(FieldError("request", f"{noun} is broken: {problem}")) from exc
    # The Python parser lets the errors of chr() through.
    except (yaml.YAMLError, ValueError, OverflowError) as exc:
        problem = json_problem or " ".join(str(exc).split())
        raise InvalidRequest(FieldError("request", f"{noun} is broken: {problem}")) from exc


def _lines(text: str) -> list[str]:
    return re.split("\r\n|[\r\n\x85\u2028\u2029]", text)  # as YAML 1.1 counts them


def _cause(text: str, line: int, problem: str) -> str | None:
    """What those who write YAML by hand most often did wrong in a line that no parser took, and what is allowed."""
    lines = _lines(text)
    broken = lines[min(line, len(lines) - 1)]
    indent = broken[: len(broken) - len(broken.lstrip())]
    if "\t" in indent:
        return "it is indented with a tab; YAML takes spaces alone"
    if broken.lstrip().startswith("```"):
        return "a Markdown fence is no YAML; leave the ``` lines out"
    value = match["value"] if (match := _VALUE.match(broken)) else ""
    if _NEEDS_QUOTES.match(value):
        return f'a text that begins with {value[0]} needs quotes: "{value[0]}…"'
    if ": " in value and not value.startswith(("'", '"', "[", "{")):
        return 'a text with a colon and a space in it needs quotes: "…: …"'
    if value.startswith(("'", '"', "[", "{")) and "expected" in problem:
        return f"more follows what {value[0]} began, or it has no end; put all of it in quotes"
    return None


@dataclass(slots=True)
class _Frame:
    """An open mapping or list, and the key or index of the value that is being read (None: a key comes)."""

    container: dict[str, Tree] | list[Tree]
    step: str | int | None
    anchor: str | None = None

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
    for event in events:
        if isinstance(event, yaml.DocumentStartEvent):
            documents += 1
            if documents > 1:
                refuse(f"{_place(event)}: a second document begins here; {noun} is one")
        else:
            builder.feed(event)
    return builder.root


def _place(event: "yaml.Event") -> str:
    mark = event.start_mark
    return at_place(mark.line, mark.column) if mark else "somewhere"


@dataclass(slots=True)
class TreeBuilder:
    """Makes nested text of YAML events; ``sections`` as in ``read_sections``. Raises ``InvalidRequest`` for what is not allowed."""

    depth: int
    doubles: Doubles
    frames: list[_Frame] = field(default_factory=list)
    root: Tree = None
    places: dict[KeyPath, Place] | None = None
    repeated: list[KeyPath] = field(default_factory=list)
    sections: Collection[str] | None = None
    anchors: dict[str, Tree] = field(default_factory=dict)
    copies: int = 0
    lines: list[str] | None = None
    """Of a text in which a comment may have cut a value short."""

    def feed(self, event: "yaml.Event") -> None:
        import yaml

        match event:
            case yaml.ScalarEvent():
                self._locate(event)
                self.scalar(event, _place(event))
            case yaml.AliasEvent():
                self.alias(event.anchor or "", _place(event))
            case yaml.MappingStartEvent():
                self._locate(event)
                self.open({}, event, _place(event))
            case yaml.SequenceStartEvent():
                self._locate(event)
                self.open([], event, _place(event))
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
            self._refuse(f"{place}: the tag {show_key(tag)} is not allowed")
        frame = self.frames[-1] if self.frames else None
        if frame is not None and frame.step is None:
            frame.step = checked(text, (*self.path(), text))
            if frame.step in frame.container:
                self.doubles.note(self.path())
            return
        if self.lines and not event.style and event.end_mark is not None:
            end = event.end_mark
            if _CUT.match(self.lines[end.line][end.column :]):
                self.doubles.cut.setdefault(show_path(self.path()), end.line + 1)
        is_null = (tag == _TAG + "null" or (tag is None and event.implicit[0])) and text in _NULLS
        value = None if is_null else checked(text, self.path())
        self._put(value, event.anchor)
        self._advance()

    def alias(self, name: str, place: str) -> None:
        if self.sections is None:
            refuse(
                f"{place}: aliases (*{show_key(name)}) are not allowed; a text that begins with * needs quotes",
                self.path(),
            )
        if name not in self.anchors:  # what holds itself has no end yet
            self._refuse(
                f"{place}: aliases of nothing, or of what holds them (*{show_key(name)}), are not allowed"
            )
        self._put(self._copy(self.anchors.get(name), place))
        self._advance()

    def _copy(self, tree: Tree, place: str) -> Tree:
        self.copies += 1
        if self.copies > _MOST_COPIES:
            refuse(f"{place}: it is too large once its aliases are expanded")
        if isinstance(tree, dict):
            return {key: self._copy(value, place) for key, value in tree.items()}
        return [self._copy(value, place) for value in tree] if isinstance(tree, list) else tree

    def open(
        self,
        container: dict[str, Tree] | list[Tree],
        event: "yaml.MappingStartEvent | yaml.SequenceStartEvent",
        place: str,
    ) -> None:
        kind = "mapping" if isinstance(container, dict) else "list"
        if event.tag is not None and event.tag not in _COLLECTION_TAGS[kind]:
            self._refuse(f"{place}: the tag {show_key(event.tag)} is not allowed")
        if len(self.frames) >= self.depth:
            refuse(f"{place}: it is nested deeper than {self.depth}")
        if self.frames and self.frames[-1].step is None:
            self._refuse(f"{place}: a key must be text, not a {kind}")
        self._put(container)
        self.frames.append(_Frame(container, None if isinstance(container, dict) else 0, event.anchor))

    def close(self) -> None:
        frame = self.frames.pop()
        if self.sections is not None and isinstance(frame.container, dict) and "<<" in frame.container:
            self._merge(frame.container)
        if frame.anchor:
            self.anchors[frame.anchor] = frame.container
        self._advance()

    def _merge(self, mapping: dict[str, Tree]) -> None:
        """Put what stands under a merge key into its mapping, whose own keys count before it."""
        merged = mapping.pop("<<")
        for item in merged if isinstance(merged, list) else [merged]:
            if not isinstance(item, dict):
                place = (self.places or {})[*self.path(), "<<"]
                self._refuse(f"{at_place(place.line - 1, place.column - 1)}: << takes mappings only")
                return
            for key, value in item.items():
                mapping.setdefault(key, value)

    def _refuse(self, message: str) -> None:
        """Refuse what is not allowed; beside the sections that are read everything is."""
        path = self.path()
        if self.sections is None or (path and path[0] in self.sections):
            refuse(message, path)

    def _put(self, value: Tree, anchor: str | None = None) -> None:
        if anchor:
            self.anchors[anchor] = value
        if self.frames:
            self.frames[-1].put(value)
        else:
            self.root = value

    def _advance(self) -> None:
        if self.frames:
            self.frames[-1].advance()
