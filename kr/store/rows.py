"""The values that go in and out of the store, besides ``kr.values.Entry``. Times are stored text."""

from typing import Literal, NamedTuple

from kr.values import Confidence, Entry, EntryStatus, Origin, Value

LessonMark = Literal["retired_at", "pinned_at", "approved_at", "superseded_by"]
"""What people decide of a lesson, by its column."""

ArchiveReason = Literal["lru", "age", "manual"]


class Draft(Value):
    """What a report is about, before it has an id and a path. Texts are non-empty."""

    framework: str
    framework_version: str
    topic: str
    tags: tuple[str, ...]
    confidence: Confidence
    status: EntryStatus = "fresh"
    origin: Origin = "researched"
    fresh_until: str | None = None
    researched_at: str | None = None
    """When the text was researched; None is now."""
    question: str | None = None
    configured_sources: str | None = None


class Saved(Value):
    """What became of a report (SPEC 3.8). ``lru_evicted`` is -1 when the guard failed; a warning says why."""

    entry: Entry
    index_count: int
    lru_evicted: int = 0
    auto_archived: int = 0
    warnings: tuple[str, ...] = ()


class Archived(Value):
    """An archived row: the entry as it was (its status before), and when and why it left the index."""

    archive_id: int
    entry: Entry
    archived_at: str
    reason: str


class Restored(Value):
    """What became of a restoration (SPEC 6.3). ``replaced`` are the live entries that were archived for it.

    ``stale_reason`` says why the entry came back stale; None: it is fresh.
    """

    saved: Saved
    replaced: tuple[Archived, ...] = ()
    stale_reason: str | None = None


class Revision(Value):
    """An earlier text at an entry's path. What a person's own file was made for is not known: None."""

    entry_id: str
    revision: int
    sha256: str
    framework_version: str | None
    confidence: str | None
    researched_at: str | None
    replaced_at: str


class Need(NamedTuple):
    """What a request says of what it needs."""

    topic: str
    tags: tuple[str, ...]
    question: str


class Wording(Value):
    """One row of ``wordings``: how a request that an entry answered worded its need."""

    entry_id: str
    at: str
    topic: str
    tags: tuple[str, ...]
    question: str
    session_id: str | None = None


class SourceCall(Value):
    """One row of ``source_calls``. ``duration_ms`` is a whole number; the request, if one is named, has its row."""

    request_id: str | None
    at: str
    source: str
    outcome: str
    session_id: str
    story_key: str
    duration_ms: int | None = None
    url: str | None = None
    reason: str | None = None
    charged: bool = False
    answer_tokens: int | None = None
    """How much there was to read in what the source answered (characters / 4)."""


class RequestRow(Value):
    """One row of ``requests``. ``id`` is made by the caller (uuid4 hex); fields a bad request lacks are None."""

    id: str
    at: str
    mode: str | None
    status: str
    story_key: str | None = None
    session_id: str | None = None
    framework: str | None = None
    framework_version: str | None = None
    topic: str | None = None
    tier: str | None = None
    entry_id: str | None = None
    persona: str | None = None
    duration_ms: int | None = None
    budget_remaining: int | None = None
    question: str | None = None
    likelihood: float | None = None
    error: str | None = None
    """What went wrong, or what interrupted it."""


class NearMiss(Value):
    """A request that no entry answered for sure, with the entries that were near it: id and likelihood, best first.

    ``entry_id`` is what its own research wrote, where it wrote something.
    """

    request_id: str
    at: str
    framework: str
    topic: str
    question: str
    tags: tuple[str, ...]
    status: str
    entry_id: str | None
    related: tuple[tuple[str, float], ...]


class LessonRow(Value):
    """One row of ``lessons``, but for its counts. What a line of other tools came from is not known: None."""

    id: str
    date: str
    phase: str
    tags: tuple[str, ...]
    summary: str
    ref: str | None = None
    event_type: str | None = None
    story_key: str | None = None
    session_id: str | None = None
    recorded_at: str | None = None
    source: str | None = None
    """Who worded it: ``table``, ``agent``, ``tool``, ``model`` or ``person``."""


class LessonState(Value):
    """What the database knows of one lesson beside its text: where it came from, what became of it, what people said.

    ``sessions`` is how many sessions it was given to, ``injected`` how often; times are stored text.
    """

    id: str
    event_type: str | None = None
    story_key: str | None = None
    session_id: str | None = None
    source: str | None = None
    injected: int = 0
    sessions: int = 0
    recurred: int = 0
    recurred_after_injection: int = 0
    last_recurred_at: str | None = None
    retired_at: str | None = None
    pinned_at: str | None = None
    approved_at: str | None = None
    superseded_by: str | None = None


class Reservation(Value):
    """The answer to a wish for one call. ``id`` is there exactly when it was granted.

    ``exhausted``: the story has spent its budget. ``in_flight``: others hold the rest; they may give it back.
    """

    outcome: Literal["granted", "exhausted", "in_flight"]
    id: str | None = None


class Library(Value):
    """What was learned about a framework: its Context7 id and listed versions, its GitHub ``owner/repo``."""

    library_id: str | None
    versions: tuple[str, ...]
    repository: str | None
    learned_at: str | None


class Circuit(Value):
    """A source's breaker. ``failures`` are in a row; ``open_until`` is None while it never opened."""

    source: str
    failures: int = 0
    opened_times: int = 0
    open_until: str | None = None
    last_error: str | None = None
    probe_owner: str | None = None
    probe_until: str | None = None
