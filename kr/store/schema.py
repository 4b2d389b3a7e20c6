"""The tables, indexes and views of the knowledge base, declared once (SPEC 5).

Times are text, ``YYYY-MM-DDTHH:MM:SS.ffffffZ``; lists are JSON arrays as text. The names that SPEC 5 lists are a public
interface. Columns beyond them are nullable or have a default, so that people may insert rows by plain SQL: the keys
(``framework_key``, ``topic_key``, ``question_key``, ``keywords_key``) are NULL until kr has seen such a row.
"""

from typing import Any

from sqlalchemy import (
    Boolean,
    Column,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    Table,
    Text,
    text,
)
from sqlalchemy.dialects import sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from kr.store.archive import EVICTED_FIRST

metadata = MetaData()


def _text(name: str) -> Column[Any]:
    return Column(name, Text, nullable=False)


def _entry_columns() -> list[Column[Any]]:
    """Return what live and archived entries have in common, but for ``id`` and ``status``."""
    return [
        *(_text(name) for name in ("framework", "framework_version", "topic")),
        Column("question", Text),
        *(_text(name) for name in ("tags", "path", "created", "last_accessed", "confidence")),
        Column("origin", Text, server_default="excerpt"),
        Column("written_by", Text),
        Column("sha256", ForeignKey("report_texts.sha256")),
        Column("revision", Integer, nullable=False, server_default="1"),
        *(Column(name, Text) for name in ("researched_at", "fresh_until", "stale_reason", "stale_major")),
        *(Column(name, Text) for name in ("framework_key", "topic_key", "question_key", "keywords_key")),
    ]


meta = Table("meta", metadata, Column("key", Text, primary_key=True), _text("value"))

# Every text that a report has or had, for good.
report_texts = Table("report_texts", metadata, Column("sha256", Text, primary_key=True), _text("text"))

entries = Table(
    "entries",
    metadata,
    Column("id", Text, primary_key=True),
    *_entry_columns(),
    _text("status"),
    Index("entries_last_accessed", "last_accessed", "id"),
    Index("entries_framework_topic", "framework_key", "topic_key"),
    Index("entries_path", "path"),
)

archived_entries = Table(
    "archived_entries",
    metadata,
    Column("archive_id", Integer, primary_key=True),
    _text("id"),
    *_entry_columns(),
    _text("status"),
    Column("prior_status", Text),
    *(_text(name) for name in ("archived_at", "reason")),
    Index("archived_entries_last_accessed", "last_accessed", "id"),
    Index("archived_entries_framework_topic", "framework_key", "topic_key"),
    Index("archived_entries_id", "id"),
    Index("archived_entries_path", "path"),
    sqlite_autoincrement=True,
)

# The texts that an entry had, and those that were kept beside it; its row has the number of the current one.
revisions = Table(
    "revisions",
    metadata,
    _text("entry_id"),
    Column("revision", Integer, nullable=False),
    Column("sha256", ForeignKey("report_texts.sha256"), nullable=False),
    _text("path"),
    *(Column(name, Text) for name in ("framework_key", "topic_key", "framework_version", "confidence")),
    *(Column(name, Text) for name in ("origin", "written_by", "researched_at", "fresh_until", "status")),
    _text("replaced_at"),
    PrimaryKeyConstraint("entry_id", "revision"),
    Index("revisions_path", "path"),
)

# How requests worded the need of an entry (SPEC 3.2). They belong to the id, live or archived. One that is proved serves.
wordings = Table(
    "wordings",
    metadata,
    Column("id", Integer, primary_key=True),
    *(_text(name) for name in ("entry_id", "at", "topic", "tags", "question", "question_key")),
    Column("session_id", Text),
    Column("proved", Boolean, nullable=False, server_default="0"),
    Index("wordings_entry", "entry_id", "id"),
    Index("wordings_question", "question_key"),
    sqlite_autoincrement=True,
)

ratings = Table(
    "ratings",
    metadata,
    _text("entry_id"),
    Column("revision", Integer, nullable=False),
    _text("session_id"),
    Column("story_key", Text),
    _text("outcome"),
    Column("note", Text),
    _text("at"),
    PrimaryKeyConstraint("entry_id", "revision", "session_id"),
)

# Findings that wait for a person: served to nobody. ``request`` is the finding as it was handed over, cleaned.
quarantine = Table(
    "quarantine",
    metadata,
    Column("id", Text, primary_key=True),
    *(_text(name) for name in ("at", "framework", "question", "reasons", "request", "written_by")),
)

lessons = Table(
    "lessons",
    metadata,
    Column("id", Text, primary_key=True),
    *(_text(name) for name in ("date", "phase", "tags", "summary")),
    *(Column(name, Text) for name in ("ref", "event_type", "story_key", "session_id", "recorded_at")),
    Column("injected", Integer, nullable=False, server_default="0"),
    Column("recurred", Integer, nullable=False, server_default="0"),
    *(Column(name, Text) for name in ("gone_at", "source", "last_recurred_at", "retired_at")),
    *(Column(name, Text) for name in ("pinned_at", "approved_at", "superseded_by")),
    Column("recurred_after_injection", Integer, nullable=False, server_default="0"),
    Column("held", Text),
    Index("lessons_phase", "phase", "date"),
)

# The stems of each lesson's keywords, by which duplicates are found.
lesson_keywords = Table(
    "lesson_keywords",
    metadata,
    _text("keyword"),
    Column("lesson_id", ForeignKey("lessons.id"), nullable=False),
    PrimaryKeyConstraint("keyword", "lesson_id"),
    sqlite_with_rowid=False,
)

lesson_injections = Table(
    "lesson_injections",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("lesson_id", ForeignKey("lessons.id"), nullable=False),
    _text("phase"),
    *(Column(name, Text) for name in ("at", "story_key", "session_id")),
    Index("lesson_injections_lesson", "lesson_id", "phase"),
    Index("lesson_injections_session", "session_id", "lesson_id"),
    sqlite_autoincrement=True,
)

# ``candidates`` are the entries that were offered, best first: [{id, score}]. ``answered_by`` is the one that somebody took of
# them, and ``settled_at`` when that, or that none of them answers, was said.
_IS_OPEN = "candidates IS NOT NULL AND settled_at IS NULL"

requests = Table(
    "requests",
    metadata,
    Column("id", Text, primary_key=True),
    _text("at"),
    *(Column(name, Text) for name in ("mode", "story_key", "session_id")),
    *(Column(name, Text) for name in ("framework", "framework_version", "topic", "question", "tags")),
    _text("status"),
    *(Column(name, Text) for name in ("tier", "entry_id", "persona", "project")),
    *(Column(name, Integer) for name in ("duration_ms", "budget_remaining", "answer_tokens")),
    Column("score", Float),
    *(Column(name, Text) for name in ("error", "candidates", "settled_at", "answered_by")),
    Index("requests_at", "at"),
    Index("requests_session", "session_id", "at"),
    Index(
        "requests_open", "framework", "question", sqlite_where=text(_IS_OPEN), postgresql_where=text(_IS_OPEN)
    ),
)

source_calls = Table(
    "source_calls",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("request_id", ForeignKey("requests.id", ondelete="SET NULL")),
    *(_text(name) for name in ("at", "source", "outcome")),
    Column("charged", Boolean, nullable=False),
    Column("duration_ms", Integer),
    *(Column(name, Text) for name in ("url", "reason", "session_id", "story_key")),
    Column("answer_tokens", Integer),
    Index("source_calls_story", "session_id", "story_key", "charged"),
    Index("source_calls_request", "request_id"),
    sqlite_autoincrement=True,
)

reservations = Table(
    "reservations",
    metadata,
    Column("id", Text, primary_key=True),
    *(_text(name) for name in ("session_id", "story_key", "owner", "expires_at")),
    Index("reservations_story", "session_id", "story_key"),
)

leases = Table("leases", metadata, Column("key", Text, primary_key=True), _text("owner"), _text("expires_at"))

circuits = Table(
    "circuits",
    metadata,
    Column("source", Text, primary_key=True),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("opened_times", Integer, nullable=False, server_default="0"),
    *(Column(name, Text) for name in ("open_until", "last_error", "probe_owner", "probe_until")),
)

libraries = Table(
    "libraries",
    metadata,
    Column("framework_key", Text, primary_key=True),
    *(Column(name, Text) for name in ("library_id", "versions", "repository", "learned_at")),
)

# Instances of workflows as kr workflow list knows them; the state file is the authority.
workflows = Table(
    "workflows",
    metadata,
    Column("workflow_id", Text, primary_key=True),
    _text("template_id"),
    *(Column(name, Text) for name in ("template_ref", "type")),
    _text("status"),
    *(Column(name, Text) for name in ("current_step", "state_file")),
    Column("is_simulated", Boolean, nullable=False, server_default="0"),
    _text("created_at"),
    *(Column(name, Text) for name in ("updated_at", "completed_at")),
    Index("workflows_created_at", "created_at"),
)

# What SQLite searches live entries by, and which of its rows is whose: FTS5 knows rows by their number alone.
SEARCH_SQLITE = (
    "CREATE TABLE search_rows (entry_id TEXT NOT NULL PRIMARY KEY, row INTEGER NOT NULL UNIQUE)",
    (
        "CREATE VIRTUAL TABLE entry_search USING fts5 (framework, topic, tags, question, wordings, report, "
        "tokenize='porter unicode61 remove_diacritics 2')"
    ),
)

IS_HIT = "(status = 'cache-hit' OR (status = 'candidates' AND tier = 'use'))"
"""Answered from the cache: by a hit, or by a candidate whose report was given and worked."""
IS_ANSWER = "mode = 'research' AND status <> 'failure' AND (status <> 'candidates' OR tier = 'use')"
"""One research: what was only offered is counted by what the asker did next."""
_HITS = f"sum(CASE WHEN {IS_HIT} THEN 1 ELSE 0 END)"
_RATE = f"round(1.0 * {_HITS} / count(*), 4)"
_OUTCOMES = ", ".join(
    f"sum(CASE WHEN outcome = '{outcome}' THEN 1 ELSE 0 END) AS {outcome}"
    for outcome in ("success", "timeout", "unavailable")
)
_ANSWERED = f"FROM requests WHERE {IS_ANSWER}"
VIEWS = {
    "hit_rate_by_day": f"SELECT substr(at, 1, 10) AS day, count(*) AS requests, {_HITS} AS hits, {_RATE} AS hit_rate "
    f"{_ANSWERED} GROUP BY substr(at, 1, 10) ORDER BY day",
    "hit_rate_by_framework": f"SELECT lower(trim(framework)) AS framework, count(*) AS requests, {_HITS} AS hits, "
    f"{_RATE} AS hit_rate {_ANSWERED} AND framework IS NOT NULL "
    "GROUP BY lower(trim(framework)) ORDER BY requests DESC, framework",
    "lessons_by_phase": "SELECT phase, count(*) AS lessons, sum(injected) AS injected, sum(recurred) AS recurred, "
    "max(date) AS newest FROM lessons WHERE gone_at IS NULL GROUP BY phase ORDER BY phase",
    "next_evictions": f"SELECT row_number() OVER (ORDER BY {EVICTED_FIRST}, last_accessed, id) AS position, id, framework, "
    f"topic, last_accessed, status, path FROM entries ORDER BY {EVICTED_FIRST}, last_accessed, id",
    "reports": "SELECT e.id, e.framework, e.topic, t.text FROM entries e JOIN report_texts t ON t.sha256 = e.sha256",
    "source_reliability": f"SELECT source, count(*) AS asked, {_OUTCOMES}, "
    "round(1.0 * sum(CASE WHEN outcome = 'success' THEN 1 ELSE 0 END) / count(*), 4) AS success_rate, "
    "round(avg(duration_ms), 1) AS mean_ms FROM source_calls WHERE outcome <> 'skipped' GROUP BY source ORDER BY source",
    "spending_by_story": "SELECT session_id, story_key, sum(CASE WHEN charged THEN 1 ELSE 0 END) AS charged, "
    "sum(CASE WHEN charged THEN 0 ELSE 1 END) AS uncharged, min(at) AS first_at, max(at) AS last_at "
    "FROM source_calls GROUP BY session_id, story_key ORDER BY charged DESC, session_id, story_key",
}
"""The public views, by their names."""


def sqlite_statements() -> list[str]:
    """Return the statements that make an empty SQLite database into a knowledge base, in their order."""
    dialect = sqlite.dialect()
    statements = []
    for table in metadata.sorted_tables:
        statements.append(str(CreateTable(table).compile(dialect=dialect)).strip())
        statements += [
            str(CreateIndex(index).compile(dialect=dialect)) for index in sorted(table.indexes, key=str)
        ]
    views = [f"CREATE VIEW {name} AS {query}" for name, query in VIEWS.items()]
    return [*statements, *SEARCH_SQLITE, *views]
