"""The tables, as the newest migration leaves them (SPEC 5). Only the migrations create anything.

Times are text (``kr.store.times``), lists JSON arrays. Columns beyond SPEC 5 are nullable or have a default,
so that people may insert rows by plain SQL; ``framework_key`` and ``topic_key`` are the folded texts, NULL
until kr has seen the row.
"""

from typing import Any

from sqlalchemy import Boolean, Column, Float, ForeignKey, Index, Integer, LargeBinary, MetaData, Table, Text

metadata = MetaData()


def _entry_columns() -> list[Column[Any]]:
    return [
        Column("framework", Text, nullable=False),
        Column("framework_version", Text, nullable=False),
        Column("topic", Text, nullable=False),
        Column("tags", Text, nullable=False),
        Column("path", Text, nullable=False),
        Column("created", Text, nullable=False),
        Column("last_accessed", Text, nullable=False),
        Column("status", Text, nullable=False),
        Column("confidence", Text, nullable=False),
        Column("sha256", Text, ForeignKey("report_texts.sha256")),
        Column("researched_at", Text),
        Column("fresh_until", Text),
        Column("origin", Text, server_default="researched"),
        Column("stale_reason", Text),
        Column("framework_key", Text),
        Column("topic_key", Text),
        Column("question", Text),
        Column("stale_major", Text),
        Column("configured_sources", Text),
        Column("keys_version", Integer),
    ]


entries = Table(
    "entries",
    metadata,
    Column("id", Text, primary_key=True),
    *_entry_columns(),
    Index("entries_last_accessed", "last_accessed", "id"),
    Index("entries_pair", "framework_key", "topic_key"),
    Index("entries_path", "path"),
)

archived_entries = Table(
    "archived_entries",
    metadata,
    Column("archive_id", Integer, primary_key=True),
    Column("id", Text, nullable=False),
    *_entry_columns(),
    Column("archived_at", Text, nullable=False),
    Column("reason", Text, nullable=False),
    Column("prior_status", Text),
    Index("archived_entries_last_accessed", "last_accessed", "id"),
    Index("archived_entries_pair", "framework_key", "topic_key"),
    Index("archived_entries_id", "id"),
    Index("archived_entries_path", "path"),
    sqlite_autoincrement=True,
)

wordings = Table(
    "wordings",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("entry_id", Text, nullable=False),
    Column("at", Text, nullable=False),
    Column("topic", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("session_id", Text),
    Index("wordings_entry", "entry_id", "id"),
    sqlite_autoincrement=True,
)
"""Requests that an entry answered (SPEC 3.2). Like ``revisions`` they belong to an id, live or archived: an id is
never given to another framework, topic or major version, so that they outlive the way into the archive and back."""

entry_terms = Table(
    "entry_terms",
    metadata,
    Column("framework_key", Text, primary_key=True),
    Column("term", Text, primary_key=True),
    Column("entry_id", Text, ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
    Column("fields", Integer, nullable=False),
    Index("entry_terms_entry", "entry_id", "fields", "term"),
    sqlite_with_rowid=False,
)
"""What a live entry is looked up by, made from its row, wordings and report: ``entries.keys_version`` tells by which
version of the rules, NULL that it is still to be made. ``fields`` is a bit mask of where the term stands."""

entry_vectors = Table(
    "entry_vectors",
    metadata,
    Column("entry_id", Text, ForeignKey("entries.id", ondelete="CASCADE"), primary_key=True),
    Column("model", Text, primary_key=True),
    Column("vector", LargeBinary, nullable=False),
)
"""The need of a live entry as a model of embeddings sees it: packed floats."""

documents = Table(
    "documents",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("kind", Text, nullable=False),
    Column("key", Text, nullable=False),
    Column("framework", Text, nullable=False),
    Column("topic", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("question", Text, nullable=False),
    Column("text", Text, nullable=False),
    Index("documents_key", "kind", "key", unique=True),
)
"""What is searched, by ``document_search`` (FTS5): live entries with their reports, and lessons. Kept by triggers."""

SEARCH_INDEX = "document_search"

DERIVED = frozenset({"documents", "entry_terms", "entry_vectors", "report_files"})
"""Tables that are made from others, and are made again where they are missing."""

report_texts = Table(
    "report_texts",
    metadata,
    Column("sha256", Text, primary_key=True),
    Column("text", Text, nullable=False),
)
"""Every text that a report has or had, for good."""

report_files = Table(
    "report_files",
    metadata,
    Column("path", Text, primary_key=True),
    Column("sha256", Text, ForeignKey("report_texts.sha256"), nullable=False),
    Column("size", Integer, nullable=False),
    Column("mtime_ns", Integer, nullable=False),
)
"""What the file at a path holds while it has this size and time: a hit need not read it."""

revisions = Table(
    "revisions",
    metadata,
    Column("entry_id", Text, primary_key=True),
    Column("revision", Integer, primary_key=True, autoincrement=False),
    Column("sha256", Text, ForeignKey("report_texts.sha256"), nullable=False),
    Column("path", Text, nullable=False),
    Column("framework_key", Text),
    Column("topic_key", Text),
    Column("framework_version", Text),
    Column("confidence", Text),
    Column("researched_at", Text),
    Column("replaced_at", Text, nullable=False),
    Index("revisions_path", "path"),
)

lessons = Table(
    "lessons",
    metadata,
    Column("id", Text, primary_key=True),
    Column("date", Text, nullable=False),
    Column("phase", Text, nullable=False),
    Column("tags", Text, nullable=False),
    Column("summary", Text, nullable=False),
    Column("ref", Text),
    Column("event_type", Text),
    Column("story_key", Text),
    Column("session_id", Text),
    Column("recorded_at", Text),
    Column("injected", Integer, nullable=False, server_default="0"),
    Column("recurred", Integer, nullable=False, server_default="0"),
    Column("gone_at", Text),
    Column("source", Text),
    Column("recurred_after_injection", Integer, nullable=False, server_default="0"),
    Column("last_recurred_at", Text),
    Column("retired_at", Text),
    Column("pinned_at", Text),
    Column("approved_at", Text),
    Column("superseded_by", Text),
    Index("lessons_phase", "phase", "date"),
)

lesson_injections = Table(
    "lesson_injections",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("lesson_id", Text, ForeignKey("lessons.id"), nullable=False),
    Column("phase", Text, nullable=False),
    Column("at", Text),
    Column("story_key", Text),
    Column("session_id", Text),
    Index("lesson_injections_lesson", "lesson_id", "phase"),
    Index("lesson_injections_session", "session_id", "lesson_id"),
    sqlite_autoincrement=True,
)

requests = Table(
    "requests",
    metadata,
    Column("id", Text, primary_key=True),
    Column("at", Text, nullable=False),
    Column("mode", Text),
    Column("story_key", Text),
    Column("session_id", Text),
    Column("framework", Text),
    Column("framework_version", Text),
    Column("topic", Text),
    Column("status", Text, nullable=False),
    Column("tier", Text),
    Column("entry_id", Text),
    Column("persona", Text),
    Column("duration_ms", Integer),
    Column("budget_remaining", Integer),
    Column("question", Text),
    Column("likelihood", Float),
    Column("error", Text),
    Index("requests_at", "at"),
)

near_misses = Table(
    "near_misses",
    metadata,
    Column("request_id", Text, ForeignKey("requests.id", ondelete="CASCADE"), primary_key=True),
    Column("tags", Text, nullable=False),
    Column("related", Text, nullable=False),
    Column("settled_at", Text),
    Column("answered_by", Text),
    Index("near_misses_settled", "settled_at", "request_id"),
)
"""Requests that no entry answered for sure, with the entries that were near: ``[{id, likelihood}]``, best first."""

source_calls = Table(
    "source_calls",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("request_id", Text),
    Column("at", Text, nullable=False),
    Column("source", Text, nullable=False),
    Column("outcome", Text, nullable=False),
    Column("charged", Boolean, nullable=False),
    Column("duration_ms", Integer),
    Column("url", Text),
    Column("reason", Text),
    Column("session_id", Text),
    Column("story_key", Text),
    Column("answer_tokens", Integer),
    Index("source_calls_story", "session_id", "story_key", "charged"),
    Index("source_calls_request", "request_id"),
    sqlite_autoincrement=True,
)

reservations = Table(
    "reservations",
    metadata,
    Column("id", Text, primary_key=True),
    Column("session_id", Text, nullable=False),
    Column("story_key", Text, nullable=False),
    Column("owner", Text, nullable=False),
    Column("expires_at", Text, nullable=False),
    Index("reservations_story", "session_id", "story_key"),
)

leases = Table(
    "leases",
    metadata,
    Column("key", Text, primary_key=True),
    Column("owner", Text, nullable=False),
    Column("expires_at", Text, nullable=False),
)

circuits = Table(
    "circuits",
    metadata,
    Column("source", Text, primary_key=True),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("opened_times", Integer, nullable=False, server_default="0"),
    Column("open_until", Text),
    Column("last_error", Text),
    Column("probe_owner", Text),
    Column("probe_until", Text),
)

libraries = Table(
    "libraries",
    metadata,
    Column("framework_key", Text, primary_key=True),
    Column("library_id", Text),
    Column("versions", Text),
    Column("repository", Text),
    Column("learned_at", Text),
)

workflows = Table(
    "workflows",
    metadata,
    Column("workflow_id", Text, primary_key=True),
    Column("template_id", Text, nullable=False),
    Column("template_ref", Text),
    Column("type", Text),
    Column("status", Text, nullable=False),
    Column("current_step", Text),
    Column("state_file", Text),
    Column("is_simulated", Boolean, nullable=False, server_default="0"),
    Column("created_at", Text, nullable=False),
    Column("updated_at", Text),
    Column("completed_at", Text),
    Index("workflows_created_at", "created_at"),
)
"""Instances of workflows as ``kr workflow list`` knows them; the state file is the authority."""

meta = Table(
    "meta",
    metadata,
    Column("key", Text, primary_key=True),
    Column("value", Text, nullable=False),
)
