"""The records that pass between the layers: queries, entries, what sources answer, and what the operations return.

All are frozen dataclasses. Times are text, ``YYYY-MM-DDTHH:MM:SS.ffffffZ`` in UTC, or a bare ``YYYY-MM-DD`` that people wrote.
"""

import getpass
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal, get_args

from kr.errors import FieldError
from kr.text import digest

EntryStatus = Literal["fresh", "stale"]
ShownStatus = Literal["fresh", "stale", "withdrawn"]
"""Of an entry as it is listed; ``withdrawn``: rated wrong, and served to nobody."""
ResearchStatus = Literal[
    "success", "partial", "cache-hit", "candidates", "degraded", "budget-exhausted", "timeout", "failure"
]
Confidence = Literal["high", "medium", "low"]
SeedTier = Literal["framework+topic+tags", "framework+topic", "framework+tags"]
Tier = SeedTier | Literal["framework+wording", "framework+keywords", "use", "llm"]
"""Why an entry is served: F1's three, a known wording, equal keywords, its id in the request, a model's choice."""

TIERS: tuple[SeedTier, ...] = get_args(SeedTier)
"""The tiers of F1, best first: what ``cache_match_floor`` may demand."""

IfUnsure = Literal["research", "candidates"]
"""What a request wants where nothing is served and something may answer."""

SourceOutcome = Literal["success", "unavailable", "timeout", "skipped"]
Origin = Literal["finding", "excerpt", "placeholder", "imported"]
"""Who made a report: an agent or a person, kr from passages of sources, kr from nothing, another knowledge base."""

ReportKind = Literal["researched", "installed", "baseline", "placeholder"]
"""What kr made a report from: answers of sources, installed documentation alone, an older report, or nothing."""

Outcome = Literal["worked", "wrong"]
"""What somebody who used a report says of it."""

PHASES = ("story-creation", "story-review", "dev-execution", "code-review", "e2e-inspection")
"""The legal phase tags (F1, request)."""

PLACEHOLDER = "a placeholder: nothing was found"
"""Why a placeholder is stale."""
PLACEHOLDER_MARK = "[No research results available, manual research required]"
"""The Summary of a placeholder (F1, step 6)."""

EventType = Literal[
    "review_max_rounds",
    "dev_failure_auto_fixed",
    "high_severity_issues",
    "agent_needs_intervention",
    "knowledge_researcher_timeout",
    "e2e_verification_failure",
    "general_agent_failure",
]
"""The error events of U5, "Trigger Conditions", in the table's order, which is the order of priority."""

EVENT_TYPES: tuple[EventType, ...] = get_args(EventType)


def optional(default: Any = None) -> Any:
    """Declare a field that ``to_plain`` leaves out where it has its default."""
    return field(default=default, metadata={"is_optional": True})


def to_plain(record: Any) -> dict[str, Any]:
    """Return a dataclass as nested plain data, in the order of its fields: records as mappings, tuples as lists."""
    return {
        each.name: _plain(value)
        for each in fields(record)
        if (value := getattr(record, each.name)) != each.default or "is_optional" not in each.metadata
    }


def _plain(value: Any) -> Any:
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return to_plain(value) if is_dataclass(value) else value


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """What a request wants to know: its ``research_query``, checked. All texts are non-empty."""

    framework: str
    framework_version: str
    topic: str
    tags: tuple[str, ...]
    question: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One live row of the index, or what one shall be. ``path`` is relative to the knowledge base, with forward slashes."""

    id: str = ""
    framework: str
    framework_version: str
    topic: str
    tags: tuple[str, ...]
    path: str = ""
    created: str = ""
    last_accessed: str = ""
    status: EntryStatus = "fresh"
    confidence: Confidence
    sha256: str | None = None
    """Of the report's bytes as kr wrote them, lower-case hex."""
    researched_at: str | None = None
    """When the text was researched; ``created`` stands in where a row from elsewhere has none."""
    fresh_until: str | None = None
    """A hard end of freshness: an excerpt of installed documentation is fresh for one day."""
    origin: Origin = "excerpt"
    question: str | None = None
    """What was asked when it was written."""
    stale_major: str | None = None
    """For which major version it was marked stale; None: for every one."""
    stale_reason: str | None = None
    written_by: str | None = None
    """Of a finding: ``person:NAME``, ``agent:SESSION`` or ``file``."""
    revision: int = 1
    """The number of its text among all that the id had."""

    @property
    def is_written(self) -> bool:
        """Whether an agent or a person wrote the text: research never replaces it."""
        return self.origin == "finding"

    @property
    def is_installed_excerpt(self) -> bool:
        """Whether kr took the text from installed documentation alone, which is fresh for a day."""
        return self.origin == "excerpt" and self.fresh_until is not None


@dataclass(frozen=True, slots=True)
class Ratings:
    """How many sessions say what of an entry's current text.

    ``by_person``: a person said that it is wrong. ``note`` is the last one that came with ``wrong``.
    """

    worked: int = 0
    wrong: int = 0
    by_person: bool = False
    note: str | None = None

    def withdraws(self, entry: Entry) -> bool:
        """Whether the entry is served to nobody: a person's text only once a person or two sessions say so."""
        if self.wrong <= self.worked:
            return False
        is_persons = (entry.written_by or "").startswith("person:")
        return not is_persons or self.by_person or self.wrong > 1


NO_RATINGS = Ratings()


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """Why an entry answered. ``topic_overlap`` is the share of keywords in common, 0.0 to 1.0."""

    tier: Tier
    topic_overlap: float
    shared_tags: list[str]
    entry_status: EntryStatus
    origin: Origin
    worked: int
    wrong: int
    score: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Related:
    """A live entry that may answer. ``score`` orders and is no probability; ``note`` says why somebody called it wrong, or of which other version it is."""

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
    note: str | None = optional()


@dataclass(frozen=True, slots=True, kw_only=True)
class Learned:
    """What a source learned of a framework, kept to spare a later search: its Context7 id and listed versions, its ``owner/repo``."""

    library_id: str | None = None
    versions: tuple[str, ...] = ()
    repository: str | None = None
    learned_at: str | None = None


LOCAL_DOCS = "local_docs"
"""The documentation of installed packages, which is no part of the chain."""

CHAIN = ("context7", "deepwiki", "web_search")
"""What ``sources`` may name, in the order of F1, step 5."""
DEFAULT_SERVERS = {"context7": "https://mcp.context7.com/mcp", "deepwiki": "https://mcp.deepwiki.com/mcp"}
"""The MCP servers of sources that nobody configured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceAttempt:
    """One row of ``sources_consulted``."""

    source: str
    status: SourceOutcome
    url: str | None = None


@dataclass(frozen=True, slots=True)
class Writer:
    """Who hands something over. ``name`` is ``person:NAME``, ``agent:SESSION`` or ``file``; ``session`` is whose rating it is."""

    name: str
    session: str


def person(name: str | None = None) -> Writer:
    """Return the person at this terminal, or the one who signed in to review."""
    named = f"person:{name or _user()}"
    return Writer(named, named)


def agent(session_id: str | None) -> Writer:
    """Return an agent; one without a session is the user of the machine. No session can pass for a person."""
    session = session_id or f"user:{_user()}"
    if session.startswith("person:"):
        session = f"agent:{session}"
    return Writer(f"agent:{session}", session)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container whose user has no name
        return "unknown"


# --- what the operations return, every field in the order of F1 and U5


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One item of ``errors``. ``field`` is left out where no field is to blame, and ``file_path`` where no file is."""

    type: str
    file_path: str | None = optional()
    field: str | None = optional()
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ResearchResults:
    """The ``results`` of a research. ``lru_evicted`` is -1 when the capacity guard failed.

    ``related`` holds the candidates, best first, ``candidate_report`` the best one's report (``{id, text}``); ``lessons`` those of the
    framework whose words the question shares (``{summary, ref}``); ``report_file`` is the absolute path of the report.
    """

    cache_hit: bool = False
    cache_entry_id: str | None = None
    report_path: str | None = None
    confidence: Confidence | None = None
    sources_consulted: list[SourceAttempt] = field(default_factory=list)
    budget_remaining: int = 0
    degradation_notes: list[str] = field(default_factory=list)
    index_updated: bool = False
    index_count: int = 0
    lru_evicted: int = 0
    match: Match | None = None
    related: list[Related] = field(default_factory=list)
    candidate_report: dict[str, str] | None = None
    lessons: list[dict[str, str | None]] = field(default_factory=list)
    auto_archived: int = 0
    report: str | None = None
    report_file: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Envelope:
    """What every request of F1 gets back."""

    status: str
    story_key: Any
    mode: Any
    session_id: Any
    results: Any
    errors: list[Problem]


@dataclass(frozen=True, slots=True)
class Lesson:
    """One line of the lessons file. ``position`` is its place among the lessons there, from 0: later is newer; -1 in no file."""

    date: str
    tags: tuple[str, ...]
    summary: str
    ref: str | None = None
    position: int = -1

    @property
    def phase(self) -> str:
        """The first tag that is a phase, or else the first tag."""
        return next((tag for tag in self.tags if tag in PHASES), self.tags[0])

    @property
    def id(self) -> str:
        """Made from the text alone, so that every process finds the same one."""
        return digest("\0".join((self.date, ",".join(self.tags), self.summary, self.ref or "")))[:16]


def failure(data: Mapping[str, Any], *problems: Problem, mode: str | None = None) -> Envelope:
    """Make the ``failure`` envelope: the identity echoed as given, null where absent; ``mode`` stands in for a missing one."""
    return Envelope(
        status="failure",
        story_key=data.get("story_key"),
        mode=mode if data.get("mode") is None else data["mode"],
        session_id=data.get("session_id"),
        results=None,
        errors=list(problems),
    )


def validation_problems(errors: Iterable[FieldError]) -> list[Problem]:
    """Return the items of ``errors`` for the bad fields of a request."""
    return [Problem(type="validation_error", field=error.field, message=error.message) for error in errors]


def in_one_line(problems: Iterable[Problem]) -> str | None:
    """Return all problems in one line, for the row of the request; None where there are none."""
    return "; ".join(": ".join(filter(None, (it.type, it.field, it.message))) for it in problems) or None
