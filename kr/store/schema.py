"""The tables, indexes and views of the knowledge base, declared once; how they are made, and brought from one migration to the next.

Times are text, ``YYYY-MM-DDTHH:MM:SS.ffffffZ``; lists are JSON arrays as text. The tables and views that docs/sql.md describes are a
public interface. ``migrations/`` makes the same schema; a test compares the two.
"""

import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import (
    DDL,
    Boolean,
    Column,
    Connection,
    Float,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    PrimaryKeyConstraint,
    StaticPool,
    Table,
    create_engine,
    event,
    inspect,
    text,
)
from sqlalchemy import Text as PlainText

from kr.errors import StoreError
from kr.store import APPLICATION_ID, SCHEMA_KEY, SCHEMA_VERSION

SEARCH_TABLES = (
    "CREATE TABLE search_rows (entry_id TEXT NOT NULL PRIMARY KEY, row INTEGER NOT NULL UNIQUE)",
    (
        "CREATE VIRTUAL TABLE entry_search USING fts5 (framework, topic, tags, question, wordings, report, "
        "tokenize = 'porter unicode61 remove_diacritics 2')"
    ),
)
"""The full-text index of SQLite over live entries, and which of its rows is whose: FTS5 knows rows by their number alone."""

POSTGRESQL_TABLES = (
    (
        'CREATE TABLE entry_search (entry_id TEXT COLLATE "C" PRIMARY KEY REFERENCES entries (id) ON DELETE CASCADE, '
        "length INTEGER NOT NULL)"
    ),
    (
        'CREATE TABLE entry_terms (term TEXT COLLATE "C" NOT NULL, entry_id TEXT COLLATE "C" NOT NULL '
        "REFERENCES entry_search (entry_id) ON DELETE CASCADE, weight REAL NOT NULL, PRIMARY KEY (term, entry_id))"
    ),
    "CREATE INDEX entry_terms_entry ON entry_terms (entry_id)",
)
"""The search index of PostgreSQL: how much each word weighs in each entry."""

metadata = MetaData()

Text = PlainText().with_variant(PlainText(collation="C"), "postgresql")
"""A text that is compared byte by byte on both databases."""


def _text(*names: str, nullable: bool = False) -> list[Column[Any]]:
    return [Column(name, Text, nullable=nullable) for name in names]


def _entry_columns() -> list[Column[Any]]:
    """Return what live and archived entries have in common, but for the id."""
    return [
        *_text("framework", "framework_key", "framework_version", "major", "topic", "topic_key"),
        *_text("question", "question_key", nullable=True),
        *_text("keywords_key", "tags", "path", "created", "last_accessed", "status", "confidence"),
        Column("origin", Text, nullable=False, server_default="excerpt"),
        *_text("written_by", nullable=True),
        Column("sha256", Text, ForeignKey("report_texts.sha256")),
        Column("revision", Integer, nullable=False, server_default="1"),
        *_text("researched_at", "fresh_until", "stale_reason", "stale_major", nullable=True),
    ]


Table("meta", metadata, Column("key", Text, primary_key=True), *_text("value"))

# Every text that a report has or had, for good.
Table("report_texts", metadata, Column("sha256", Text, primary_key=True), *_text("text"))

Table(
    "entries",
    metadata,
    Column("id", Text, primary_key=True),
    *_entry_columns(),
    Index("entries_topic", "framework_key", "topic_key", "major", unique=True),
    Index("entries_last_accessed", "last_accessed", "id"),
    Index("entries_path", "path"),
)

Table(
    "archived_entries",
    metadata,
    Column("archive_id", Integer, primary_key=True),
    *_text("id"),
    *_entry_columns(),
    *_text("prior_status", "archived_at", "reason"),
    Index("archived_entries_last_accessed", "last_accessed", "id"),
    Index("archived_entries_framework_topic", "framework_key", "topic_key"),
    Index("archived_entries_id", "id"),
    Index("archived_entries_path", "path"),
    sqlite_autoincrement=True,  # a number is given once: exports go on from the last one
)

# The texts that an entry had, and those that were kept beside it; its row has the number of the current one.
Table(
    "revisions",
    metadata,
    *_text("entry_id"),
    Column("revision", Integer, nullable=False),
    Column("sha256", Text, ForeignKey("report_texts.sha256"), nullable=False),
    *_text("path", "framework_key", "topic_key"),
    *_text("framework_version", "confidence", "origin", "written_by", nullable=True),
    *_text("researched_at", "fresh_until", "status", nullable=True),
    *_text("replaced_at"),
    PrimaryKeyConstraint("entry_id", "revision"),
    Index("revisions_path", "path"),
)

# How requests worded the need of an entry. They belong to the id, live or archived. One that is proved serves by itself.
Table(
    "wordings",
    metadata,
    Column("id", Integer, primary_key=True),
    *_text("entry_id", "at", "topic", "tags", "question", "question_key"),
    *_text("session_id", nullable=True),
    Column("proved", Boolean, nullable=False, server_default=text("false")),
    Index("wordings_entry", "entry_id", "id"),
    Index("wordings_question", "question_key"),
)

Table(
    "ratings",
    metadata,
    *_text("entry_id"),
    Column("revision", Integer, nullable=False),
    *_text("session_id"),
    *_text("story_key", nullable=True),
    *_text("outcome"),
    *_text("note", nullable=True),
    *_text("at"),
    PrimaryKeyConstraint("entry_id", "revision", "session_id"),
)

# Findings that wait for a person and are served to nobody. ``request`` is the finding as it was handed over, without its secrets.
Table(
    "quarantine",
    metadata,
    Column("id", Text, primary_key=True),
    *_text("at", "framework", "question", "reasons", "request", "written_by"),
)

Table(
    "lessons",
    metadata,
    Column("id", Text, primary_key=True),
    *_text("date", "phase", "tags", "summary"),
    *_text("ref", "event_type", "story_key", "session_id", "recorded_at", nullable=True),
    Column("injected", Integer, nullable=False, server_default="0"),
    Column("recurred", Integer, nullable=False, server_default="0"),
    Column("recurred_after_injection", Integer, nullable=False, server_default="0"),
    *_text("gone_at", "source", "last_recurred_at", "retired_at", nullable=True),
    *_text("pinned_at", "approved_at", "superseded_by", "held", nullable=True),
    Index("lessons_phase", "phase", "date"),
)

# The stems of each lesson's keywords, by which duplicates are found.
Table(
    "lesson_keywords",
    metadata,
    *_text("keyword"),
    Column("lesson_id", Text, ForeignKey("lessons.id"), nullable=False),
    PrimaryKeyConstraint("keyword", "lesson_id"),
)

Table(
    "lesson_injections",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("lesson_id", Text, ForeignKey("lessons.id"), nullable=False),
    *_text("phase"),
    *_text("at", "story_key", "session_id", nullable=True),
    Index("lesson_injections_lesson", "lesson_id", "phase"),
    Index("lesson_injections_session", "session_id", "lesson_id"),
)

# ``candidates`` are the entries that were offered, best first: [{id, score}]; ``best_candidate`` is the id of the first.
# ``answered_by`` is the one that somebody took of them, ``settled_at`` when that, or that none of them answers, was said.
Table(
    "requests",
    metadata,
    Column("id", Text, primary_key=True),
    *_text("at"),
    *_text("mode", "story_key", "session_id", nullable=True),
    *_text("framework", "framework_version", "topic", "question", "tags", nullable=True),
    *_text("status"),
    *_text("tier", "entry_id", "persona", "project", nullable=True),
    *(Column(name, Integer) for name in ("duration_ms", "budget_remaining", "answer_tokens")),
    Column("score", Float),
    *_text("error", "candidates", "best_candidate", "settled_at", "answered_by", nullable=True),
    Index("requests_at", "at"),
    Index("requests_session", "session_id", "at"),
    Index("requests_question", "framework", "question"),
)

Table(
    "source_calls",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("request_id", Text, ForeignKey("requests.id", ondelete="SET NULL")),
    *_text("at", "source", "outcome"),
    Column("charged", Boolean, nullable=False),
    Column("duration_ms", Integer),
    *_text("url", "reason", "session_id", "story_key", nullable=True),
    Column("answer_tokens", Integer),
    Index("source_calls_story", "session_id", "story_key", "charged"),
    Index("source_calls_request", "request_id"),
)

Table(
    "reservations",
    metadata,
    Column("id", Text, primary_key=True),
    *_text("session_id", "story_key", "owner", "expires_at"),
    Index("reservations_story", "session_id", "story_key"),
)

Table("leases", metadata, Column("key", Text, primary_key=True), *_text("owner", "expires_at"))

Table(
    "circuits",
    metadata,
    Column("source", Text, primary_key=True),
    Column("failures", Integer, nullable=False, server_default="0"),
    Column("opened_times", Integer, nullable=False, server_default="0"),
    *_text("open_until", "last_error", nullable=True),
)

Table(
    "libraries",
    metadata,
    Column("framework_key", Text, primary_key=True),
    *_text("library_id", "versions", "repository", "learned_at", nullable=True),
)

# Instances of workflows as kr workflow list shows them; the state file is the authority.
Table(
    "workflows",
    metadata,
    Column("workflow_id", Text, primary_key=True),
    *_text("template_id"),
    *_text("template_ref", "type", nullable=True),
    *_text("status"),
    *_text("current_step", "state_file", nullable=True),
    Column("is_simulated", Boolean, nullable=False, server_default=text("false")),
    *_text("created_at"),
    *_text("updated_at", "completed_at", nullable=True),
    Index("workflows_created_at", "created_at"),
)

# Placeholders are evicted first, then excerpts of installed documentation, then the rest.
_CLASS = "CASE WHEN origin = 'placeholder' THEN 0 WHEN origin = 'excerpt' AND fresh_until IS NOT NULL THEN 1 ELSE 2 END"
# What the cache answered: by a hit, or by a candidate whose report was given and worked.
_HITS = "count(*) FILTER (WHERE (status = 'cache-hit' OR (status = 'candidates' AND tier = 'use')))"
_RATE = f"round(1.0 * {_HITS} / count(*), 4)"
# What was only offered is counted by what the asker did next.
_ANSWERED = "FROM requests WHERE mode = 'research' AND status <> 'failure' AND (status <> 'candidates' OR tier = 'use')"
_OUTCOMES = ", ".join(
    f"count(*) FILTER (WHERE outcome = '{outcome}') AS {outcome}"
    for outcome in ("success", "timeout", "unavailable")
)
VIEWS = {
    "hit_rate_by_day": f"SELECT substr(at, 1, 10) AS day, count(*) AS requests, {_HITS} AS hits, {_RATE} AS hit_rate "
    f"{_ANSWERED} GROUP BY substr(at, 1, 10) ORDER BY day",
    "hit_rate_by_framework": f"SELECT lower(trim(framework)) AS framework, count(*) AS requests, {_HITS} AS hits, "
    f"{_RATE} AS hit_rate {_ANSWERED} AND framework IS NOT NULL "
    "GROUP BY lower(trim(framework)) ORDER BY requests DESC, framework",
    "lessons_by_phase": "SELECT phase, count(*) AS lessons, sum(injected) AS injected, sum(recurred) AS recurred, "
    "max(date) AS newest FROM lessons WHERE gone_at IS NULL GROUP BY phase ORDER BY phase",
    "next_evictions": f"SELECT row_number() OVER (ORDER BY {_CLASS}, last_accessed, id) AS position, id, framework, "
    f"topic, last_accessed, status, path FROM entries ORDER BY {_CLASS}, last_accessed, id",
    "reports": "SELECT e.id, e.framework, e.topic, t.text FROM entries AS e JOIN report_texts AS t ON t.sha256 = e.sha256",
    "source_reliability": f"SELECT source, count(*) AS asked, {_OUTCOMES}, "
    "round(1.0 * count(*) FILTER (WHERE outcome = 'success') / count(*), 4) AS success_rate, "
    "round(avg(duration_ms), 1) AS mean_ms FROM source_calls WHERE outcome <> 'skipped' GROUP BY source ORDER BY source",
    "spending_by_story": "SELECT session_id, story_key, count(*) FILTER (WHERE charged) AS charged, "
    "count(*) FILTER (WHERE NOT charged) AS uncharged, min(at) AS first_at, max(at) AS last_at "
    "FROM source_calls GROUP BY session_id, story_key ORDER BY charged DESC, session_id, story_key",
}
"""The public views, by their names."""

for _dialect, _statements in {"sqlite": SEARCH_TABLES, "postgresql": POSTGRESQL_TABLES}.items():
    for _statement in _statements:
        _make = DDL(_statement).execute_if(dialect=_dialect)  # type: ignore[no-untyped-call]
        event.listen(metadata, "after_create", _make)
for _name, _query in VIEWS.items():
    event.listen(metadata, "after_create", DDL(f"CREATE VIEW {_name} AS {_query}".replace("%", "%%")))  # type: ignore[no-untyped-call]


def make(connection: sqlite3.Connection, version: int = 0) -> None:
    """Make the tables in an empty SQLite database, or bring those of an earlier ``version`` up to date, in one transaction."""
    engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
    event.listen(engine, "begin", lambda begun: begun.exec_driver_sql("BEGIN IMMEDIATE"))
    with engine.begin() as begun:
        _migrate(begun) if version else _create(begun)


def make_postgresql(connection: Any, location: str) -> None:
    """Make the tables through a connection of psycopg's, or bring older ones up to date, in one transaction.

    Any number of processes may do so at once. Raises ``StoreError`` where another program has tables of these names.
    """
    engine = create_engine("postgresql+psycopg://", creator=lambda: connection, poolclass=StaticPool)
    with engine.begin() as begun:
        begun.exec_driver_sql("SELECT pg_advisory_xact_lock(27506, 2)")
        present = {*inspect(begun).get_table_names()}
        if "meta" not in present:
            if foreign := sorted(present & {"alembic_version", *metadata.tables}):
                raise StoreError(
                    f"{location}: has a table {foreign[0]} of another program; give kr a database of its own, or a schema "
                    "(KR_DATABASE_URL=postgresql+psycopg://…?options=-csearch_path%3Dkr)"
                )
            _create(begun)
            return
        found = text("SELECT value FROM meta WHERE key = :key")
        if int(begun.execute(found, {"key": SCHEMA_KEY}).scalar_one()) < SCHEMA_VERSION:
            _migrate(begun)


def mark(connection: Connection, version: int) -> None:
    """Note the number of the newest migration where every process looks, and that the database is ours."""
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(f"PRAGMA user_version = {version}")
        connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
        return
    noted = "INSERT INTO meta VALUES (:key, :value) ON CONFLICT (key) DO UPDATE SET value = excluded.value"
    connection.execute(text(noted), {"key": SCHEMA_KEY, "value": str(version)})


def _create(begun: Connection) -> None:
    metadata.create_all(begun, checkfirst=False)
    begun.exec_driver_sql(
        "CREATE TABLE alembic_version (version_num VARCHAR(32) NOT NULL, CONSTRAINT alembic_version_pkc PRIMARY KEY (version_num))"
    )
    begun.exec_driver_sql(f"INSERT INTO alembic_version VALUES ('{SCHEMA_VERSION:04d}')")
    mark(begun, SCHEMA_VERSION)


def _migrate(begun: Connection) -> None:
    from alembic import command  # heavy: only an older database needs it
    from alembic.config import Config

    # In the installed package, or at the root of the source.
    package = Path(__file__).parents[1]
    folder = package if (package / "alembic.ini").is_file() else package.parent
    config = Config(folder / "alembic.ini")
    config.attributes["connection"] = begun
    command.upgrade(config, "head")
