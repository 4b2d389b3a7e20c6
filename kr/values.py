"""The frozen values that pass between the layers, and the small base that makes them (``Value``).

Times are text, ``YYYY-MM-DDTHH:MM:SS.ffffffZ`` in UTC (SPEC 5); readers of a time also accept a bare
``YYYY-MM-DD``, which people write by hand.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from operator import itemgetter
from types import MappingProxyType
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Literal,
    NoReturn,
    Self,
    TypeVar,
    dataclass_transform,
    get_args,
)

V = TypeVar("V", bound="Value")


@dataclass_transform(kw_only_default=True, frozen_default=True)
class Value:
    """A frozen value: its fields are the annotations of its class, given by keyword, and compared one by one.

    A frozen dataclass does the same and costs half a millisecond for each class that is imported; on a hit that would
    be more than all its SQL.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    _names: ClassVar[frozenset[str]] = frozenset()
    _defaults: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls) -> None:
        own = [name for name in cls.__annotations__ if not name.startswith("_")]
        cls._fields = tuple(dict.fromkeys((*cls._fields, *own)))
        cls._names = frozenset(cls._fields)
        cls._defaults = cls._defaults | {name: cls.__dict__[name] for name in own if name in cls.__dict__}

    def __init__(self, **values: Any) -> None:
        given = {**self._defaults, **values}
        if given.keys() != self._names:
            odd = sorted(given.keys() ^ self._names)
            raise TypeError(f"{type(self).__name__}: missing or unknown: {', '.join(odd)}")
        self.__dict__.update(given)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} can't be set: it is frozen")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"{type(self).__name__}.{name} can't be deleted: it is frozen")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash((type(self), *self.fields().values()))

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.fields().items())})"

    def _replace(self, **changes: Any) -> Self:
        if not changes.keys() <= self._names:
            odd = sorted(changes.keys() - self._names)
            raise TypeError(f"{type(self).__name__}: unknown: {', '.join(odd)}")
        made = object.__new__(type(self))
        # What a cached property keeps beside the fields is not the new one's.
        known = self.__dict__ if len(self.__dict__) == len(self._fields) else self.fields()
        made.__dict__.update(known, **changes)
        return made

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return cls._fields

    @classmethod
    def field_defaults(cls) -> dict[str, Any]:
        return dict(cls._defaults)

    def fields(self) -> dict[str, Any]:
        """Return the fields by their names, as they are."""
        return {name: self.__dict__[name] for name in self._fields}

    def plain(self) -> dict[str, Any]:
        """Return the fields as nested plain data: values within it as mappings, tuples as lists."""
        return {name: _plain(value) for name, value in self.fields().items()}


def _plain(value: object) -> object:
    if isinstance(value, Value):
        return value.plain()
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def replace(value: V, /, **changes: Any) -> V:
    return value._replace(**changes)


if TYPE_CHECKING:
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - exported
else:

    class NamedTuple(tuple):  # noqa: SLOT001 - of the classes below it none is kept in great numbers
        """``typing.NamedTuple`` for what a hit imports: a class is made in a tenth of the time (a tenth of a millisecond)."""

        def __init_subclass__(cls) -> None:
            """Give each field its place."""
            cls._fields = tuple(cls.__annotations__)
            cls._field_defaults = {name: cls.__dict__[name] for name in cls._fields if name in cls.__dict__}
            for at, name in enumerate(cls._fields):
                setattr(cls, name, property(itemgetter(at)))

        def __new__(cls, *placed: Any, **named: Any) -> Self:
            """Take every field that has no default, by its place or its name, and no other."""
            if named or len(placed) != len(cls._fields):
                rest = {**cls._field_defaults, **named}
                odd = {*named} - {*cls._fields[len(placed) :]}
                if odd or len(placed) > len(cls._fields) or {*cls._fields[len(placed) :]} - {*rest}:
                    raise TypeError(f"{cls.__name__} takes {', '.join(cls._fields)}")
                placed += tuple(rest[name] for name in cls._fields[len(placed) :])
            return tuple.__new__(cls, placed)

        def __getnewargs__(self) -> tuple[Any, ...]:
            """Copy by place."""
            return tuple(self)

        def __repr__(self) -> str:
            """Show the fields."""
            return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self._asdict().items())})"

        def _asdict(self) -> dict[str, Any]:
            return dict(zip(self._fields, self, strict=True))

        def _replace(self, **changes: Any) -> Self:
            return type(self)(**{**self._asdict(), **changes})


EntryStatus = Literal["fresh", "stale"]
ResearchStatus = Literal[
    "success", "partial", "cache-hit", "candidates", "degraded", "budget-exhausted", "timeout", "failure"
]
Confidence = Literal["high", "medium", "low"]
Tier = Literal[
    "framework+topic+tags",
    "framework+topic",
    "framework+tags",
    "framework+wording",
    "framework+keywords",
    "use",
    "llm",
]
"""Why an entry is served: the seed's three, a known wording, the same keywords, its id in the request, a model's choice."""

CacheMatch = Literal["sure", "seed"]
"""What is served without anybody's judgement: what needs none, or any tier of the seed (SPEC 3.2)."""

IfUnsure = Literal["research", "candidates"]
"""What a request wants where nothing is served and something may answer (SPEC 3.2)."""

SourceOutcome = Literal["success", "unavailable", "timeout", "skipped"]
Origin = Literal["finding", "excerpt", "placeholder", "imported"]
"""Who made a report: an agent or a person, kr from a source's passages, kr from nothing, or another knowledge base (SPEC 3.10)."""

ReportKind = Literal["researched", "installed", "baseline", "skeleton"]
"""What kr made a report from: answers of sources, installed documentation alone, an older report, or nothing."""


def origin_of_kind(kind: ReportKind, *, is_ours: bool) -> Origin:
    """Return the origin of an entry with such a report; ``is_ours``: kr made it for this knowledge base."""
    if kind == "skeleton":
        return "placeholder"
    return "excerpt" if is_ours or kind == "installed" else "imported"


Outcome = Literal["worked", "wrong"]
"""What somebody who used a report says of it (SPEC 3.10)."""

PHASES = ("story-creation", "story-review", "dev-execution", "code-review", "e2e-inspection")
"""The legal phase tags (seed 000, input schema)."""

EventType = Literal[
    "review_max_rounds",
    "dev_failure_auto_fixed",
    "high_severity_issues",
    "agent_needs_intervention",
    "knowledge_researcher_timeout",
    "e2e_verification_failure",
    "general_agent_failure",
]
"""The error events of seed 003, "Trigger Conditions", in the table's order."""

EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)
"""In the order of the table, which is the order of priority."""

TIERS: tuple[Tier, ...] = ("framework+topic+tags", "framework+topic", "framework+tags")
"""The tiers of seed 000, best first: what ``cache_match_floor`` may demand."""


class Query(Value):
    """What is asked: the ``research_query`` of a validated request. All texts are non-empty."""

    framework: str
    framework_version: str
    topic: str
    tags: tuple[str, ...]
    question: str


class Entry(Value):
    """One live row of the index. ``path`` is relative to the knowledge base, with forward slashes."""

    id: str
    framework: str
    framework_version: str
    topic: str
    tags: tuple[str, ...]
    path: str
    created: str
    last_accessed: str
    status: EntryStatus
    confidence: Confidence
    sha256: str | None = None
    """Of the report's bytes as kr wrote them, lower-case hex."""
    researched_at: str | None = None
    """When the text was researched; ``created`` stands in where a row from elsewhere has none."""
    fresh_until: str | None = None
    """A hard end of freshness (SPEC 3.3: an answer from installed docs alone is fresh for one day)."""
    origin: Origin = "excerpt"
    question: str | None = None
    """What was asked when it was written; None where nobody knows."""
    stale_major: str | None = None
    """For which major version it was marked stale (``kr.freshness.major_key``); None: for every one."""
    written_by: str | None = None
    """Of a finding: ``person:NAME``, ``agent:SESSION`` or ``file`` (SPEC 3.10)."""
    revision: int = 1
    """The number of its text among all that the id had."""

    @property
    def is_written(self) -> bool:
        """Whether an agent or a person wrote the text: research never replaces it (SPEC 3.8)."""
        return self.origin == "finding"

    @property
    def is_installed_excerpt(self) -> bool:
        """Whether kr took the text from installed documentation alone, which is fresh for a day (SPEC 3.3)."""
        return self.origin == "excerpt" and self.fresh_until is not None


@dataclass(frozen=True, slots=True)
class Ratings:
    """What sessions say of an entry's current text; ``by_person``: a person said that it is wrong. ``note``: the last one with ``wrong``."""

    worked: int = 0
    wrong: int = 0
    by_person: bool = False
    note: str | None = None

    def withdraws(self, entry: Entry) -> bool:
        """Whether the entry is served to nobody: a person's text only once a person or two sessions say so (SPEC 3.10)."""
        if self.wrong <= self.worked:
            return False
        is_persons = (entry.written_by or "").startswith("person:")
        return not is_persons or self.by_person or self.wrong > 1


NO_RATINGS = Ratings()


class MatchRules(Value):
    """The settings that decide which entry is served (SPEC 3.2). ``floor``: the least tier of the seed; without ``fuzzy`` equal topics alone."""

    mode: CacheMatch = "sure"
    floor: Tier = "framework+tags"
    fuzzy: bool = True


class Match(Value):
    """Why an entry is served (SPEC 3.2). The overlap of the topics' keywords is 0.0 to 1.0."""

    entry: Entry
    tier: Tier
    topic_overlap: float
    shared_tags: tuple[str, ...]
    score: float | None = None


class Related(Value):
    """A live entry that may answer (SPEC 3.2). ``score`` orders, and is no probability; ``note`` is why somebody said that it is wrong."""

    id: str
    framework_version: str
    topic: str
    question: str | None
    summary: str
    origin: Origin
    confidence: Confidence
    worked: int
    wrong: int
    score: float
    note: str | None = None

    def plain(self) -> dict[str, Any]:
        """Leave ``note`` out where there is none."""
        return {name: value for name, value in super().plain().items() if name != "note" or value is not None}


class Passage(Value):
    """One piece of Markdown from a source: untrusted, not yet cleaned. ``url`` is where this very piece came from."""

    text: str
    title: str | None = None
    url: str | None = None
    is_cut: bool = False
    """Of what stands at ``url`` there was more than the source read: ``text`` is its beginning alone."""


class Answer(Value):
    """What a source answered. Never empty: a source with nothing to say raises ``SourceFailure``."""

    source: str
    passages: tuple[Passage, ...]
    url: str | None = None
    version: str | None = None
    """The version the documentation is of, when the source knows."""
    library_id: str | None = None
    """The Context7 id that was used, to be remembered for the framework."""
    library_versions: tuple[str, ...] = ()
    """The versions that the library is listed with: remembered too, so that one of them can be asked for."""
    repository: str | None = None
    """``owner/repo`` on GitHub, when this answer told it; also remembered."""
    is_gap: bool = False
    """The passages are the nearest that there are, and lack the rare words of the question (SPEC 3.5): no answer."""


class Learned(Value):
    """What a source told of a framework, to spare a later search: the versions of ``library_id``, ``owner/repo``."""

    library_id: str | None = None
    library_versions: tuple[str, ...] = ()
    repository: str | None = None


class Consulted(Value):
    """One row of ``sources_consulted``."""

    source: str
    status: SourceOutcome
    url: str | None = None


class ServerConfig(Value):
    """An MCP server over HTTP or as a process (SPEC 7), variables expanded. All but the command may hold secrets, and is not shown."""

    url: str | None = None
    headers: Mapping[str, str] = MappingProxyType({})
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = MappingProxyType({})

    def __repr__(self) -> str:
        return f"ServerConfig(command={self.command!r})"
