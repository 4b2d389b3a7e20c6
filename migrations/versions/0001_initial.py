"""The first schema: what ``kr.store.schema`` declares, written out, so that it stays as it is when that changes."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

TEXT = sa.Text().with_variant(sa.Text(collation="C"), "postgresql")
SEARCH_TABLES = (
    ("CREATE TABLE search_rows (entry_id TEXT NOT NULL PRIMARY KEY, row INTEGER NOT NULL UNIQUE)"),
    (
        "CREATE VIRTUAL TABLE entry_search USING fts5 (framework, topic, tags, question, wordings, "
        "report, tokenize = 'porter unicode61 remove_diacritics 2')"
    ),
)
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
VIEWS = {
    "hit_rate_by_day": (
        "SELECT substr(at, 1, 10) AS day, count(*) AS requests, count(*) FILTER (WHERE (status = "
        "'cache-hit' OR (status = 'candidates' AND tier = 'use'))) AS hits, round(1.0 * count(*) "
        "FILTER (WHERE (status = 'cache-hit' OR (status = 'candidates' AND tier = 'use'))) / "
        "count(*), 4) AS hit_rate FROM requests WHERE mode = 'research' AND status <> 'failure' AND "
        "(status <> 'candidates' OR tier = 'use') GROUP BY substr(at, 1, 10) ORDER BY day"
    ),
    "hit_rate_by_framework": (
        "SELECT lower(trim(framework)) AS framework, count(*) AS requests, count(*) FILTER (WHERE "
        "(status = 'cache-hit' OR (status = 'candidates' AND tier = 'use'))) AS hits, round(1.0 * "
        "count(*) FILTER (WHERE (status = 'cache-hit' OR (status = 'candidates' AND tier = 'use'))) /"
        " count(*), 4) AS hit_rate FROM requests WHERE mode = 'research' AND status <> 'failure' AND "
        "(status <> 'candidates' OR tier = 'use') AND framework IS NOT NULL GROUP BY "
        "lower(trim(framework)) ORDER BY requests DESC, framework"
    ),
    "lessons_by_phase": (
        "SELECT phase, count(*) AS lessons, sum(injected) AS injected, sum(recurred) AS recurred, "
        "max(date) AS newest FROM lessons WHERE gone_at IS NULL GROUP BY phase ORDER BY phase"
    ),
    "next_evictions": (
        "SELECT row_number() OVER (ORDER BY CASE WHEN origin = 'placeholder' THEN 0 WHEN origin = "
        "'excerpt' AND fresh_until IS NOT NULL THEN 1 ELSE 2 END, last_accessed, id) AS position, id,"
        " framework, topic, last_accessed, status, path FROM entries ORDER BY CASE WHEN origin = "
        "'placeholder' THEN 0 WHEN origin = 'excerpt' AND fresh_until IS NOT NULL THEN 1 ELSE 2 END, "
        "last_accessed, id"
    ),
    "reports": (
        "SELECT e.id, e.framework, e.topic, t.text FROM entries AS e JOIN report_texts AS t ON "
        "t.sha256 = e.sha256"
    ),
    "source_reliability": (
        "SELECT source, count(*) AS asked, count(*) FILTER (WHERE outcome = 'success') AS success, "
        "count(*) FILTER (WHERE outcome = 'timeout') AS timeout, count(*) FILTER (WHERE outcome = "
        "'unavailable') AS unavailable, round(1.0 * count(*) FILTER (WHERE outcome = 'success') / "
        "count(*), 4) AS success_rate, round(avg(duration_ms), 1) AS mean_ms FROM source_calls WHERE "
        "outcome <> 'skipped' GROUP BY source ORDER BY source"
    ),
    "spending_by_story": (
        "SELECT session_id, story_key, count(*) FILTER (WHERE charged) AS charged, count(*) FILTER "
        "(WHERE NOT charged) AS uncharged, min(at) AS first_at, max(at) AS last_at FROM source_calls "
        "GROUP BY session_id, story_key ORDER BY charged DESC, session_id, story_key"
    ),
}


def upgrade() -> None:
    op.create_table(
        "circuits",
        sa.Column("source", TEXT, nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("opened_times", sa.Integer(), server_default="0", nullable=False),
        sa.Column("open_until", TEXT, nullable=True),
        sa.Column("last_error", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("source"),
    )
    op.create_table(
        "leases",
        sa.Column("key", TEXT, nullable=False),
        sa.Column("owner", TEXT, nullable=False),
        sa.Column("expires_at", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "lessons",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("date", TEXT, nullable=False),
        sa.Column("phase", TEXT, nullable=False),
        sa.Column("tags", TEXT, nullable=False),
        sa.Column("summary", TEXT, nullable=False),
        sa.Column("ref", TEXT, nullable=True),
        sa.Column("event_type", TEXT, nullable=True),
        sa.Column("story_key", TEXT, nullable=True),
        sa.Column("session_id", TEXT, nullable=True),
        sa.Column("recorded_at", TEXT, nullable=True),
        sa.Column("injected", sa.Integer(), server_default="0", nullable=False),
        sa.Column("recurred", sa.Integer(), server_default="0", nullable=False),
        sa.Column("recurred_after_injection", sa.Integer(), server_default="0", nullable=False),
        sa.Column("gone_at", TEXT, nullable=True),
        sa.Column("source", TEXT, nullable=True),
        sa.Column("last_recurred_at", TEXT, nullable=True),
        sa.Column("retired_at", TEXT, nullable=True),
        sa.Column("pinned_at", TEXT, nullable=True),
        sa.Column("approved_at", TEXT, nullable=True),
        sa.Column("superseded_by", TEXT, nullable=True),
        sa.Column("held", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("lessons_phase", "lessons", ["phase", "date"], unique=False)
    op.create_table(
        "libraries",
        sa.Column("framework_key", TEXT, nullable=False),
        sa.Column("library_id", TEXT, nullable=True),
        sa.Column("versions", TEXT, nullable=True),
        sa.Column("repository", TEXT, nullable=True),
        sa.Column("learned_at", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("framework_key"),
    )
    op.create_table(
        "meta",
        sa.Column("key", TEXT, nullable=False),
        sa.Column("value", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "quarantine",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("at", TEXT, nullable=False),
        sa.Column("framework", TEXT, nullable=False),
        sa.Column("question", TEXT, nullable=False),
        sa.Column("reasons", TEXT, nullable=False),
        sa.Column("request", TEXT, nullable=False),
        sa.Column("written_by", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "ratings",
        sa.Column("entry_id", TEXT, nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("session_id", TEXT, nullable=False),
        sa.Column("story_key", TEXT, nullable=True),
        sa.Column("outcome", TEXT, nullable=False),
        sa.Column("note", TEXT, nullable=True),
        sa.Column("at", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("entry_id", "revision", "session_id"),
    )
    op.create_table(
        "report_texts",
        sa.Column("sha256", TEXT, nullable=False),
        sa.Column("text", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("sha256"),
    )
    op.create_table(
        "requests",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("at", TEXT, nullable=False),
        sa.Column("mode", TEXT, nullable=True),
        sa.Column("story_key", TEXT, nullable=True),
        sa.Column("session_id", TEXT, nullable=True),
        sa.Column("framework", TEXT, nullable=True),
        sa.Column("framework_version", TEXT, nullable=True),
        sa.Column("topic", TEXT, nullable=True),
        sa.Column("question", TEXT, nullable=True),
        sa.Column("tags", TEXT, nullable=True),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("tier", TEXT, nullable=True),
        sa.Column("entry_id", TEXT, nullable=True),
        sa.Column("persona", TEXT, nullable=True),
        sa.Column("project", TEXT, nullable=True),
        sa.Column("duration_ms", sa.Integer(), nullable=True),
        sa.Column("budget_remaining", sa.Integer(), nullable=True),
        sa.Column("answer_tokens", sa.Integer(), nullable=True),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("error", TEXT, nullable=True),
        sa.Column("candidates", TEXT, nullable=True),
        sa.Column("best_candidate", TEXT, nullable=True),
        sa.Column("settled_at", TEXT, nullable=True),
        sa.Column("answered_by", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("requests_at", "requests", ["at"], unique=False)
    op.create_index("requests_question", "requests", ["framework", "question"], unique=False)
    op.create_index("requests_session", "requests", ["session_id", "at"], unique=False)
    op.create_table(
        "reservations",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("session_id", TEXT, nullable=False),
        sa.Column("story_key", TEXT, nullable=False),
        sa.Column("owner", TEXT, nullable=False),
        sa.Column("expires_at", TEXT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("reservations_story", "reservations", ["session_id", "story_key"], unique=False)
    op.create_table(
        "wordings",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("entry_id", TEXT, nullable=False),
        sa.Column("at", TEXT, nullable=False),
        sa.Column("topic", TEXT, nullable=False),
        sa.Column("tags", TEXT, nullable=False),
        sa.Column("question", TEXT, nullable=False),
        sa.Column("question_key", TEXT, nullable=False),
        sa.Column("session_id", TEXT, nullable=True),
        sa.Column("proved", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("wordings_entry", "wordings", ["entry_id", "id"], unique=False)
    op.create_index("wordings_question", "wordings", ["question_key"], unique=False)
    op.create_table(
        "workflows",
        sa.Column("workflow_id", TEXT, nullable=False),
        sa.Column("template_id", TEXT, nullable=False),
        sa.Column("template_ref", TEXT, nullable=True),
        sa.Column("type", TEXT, nullable=True),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("current_step", TEXT, nullable=True),
        sa.Column("state_file", TEXT, nullable=True),
        sa.Column("is_simulated", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", TEXT, nullable=False),
        sa.Column("updated_at", TEXT, nullable=True),
        sa.Column("completed_at", TEXT, nullable=True),
        sa.PrimaryKeyConstraint("workflow_id"),
    )
    op.create_index("workflows_created_at", "workflows", ["created_at"], unique=False)
    op.create_table(
        "archived_entries",
        sa.Column("archive_id", sa.Integer(), nullable=False),
        sa.Column("id", TEXT, nullable=False),
        sa.Column("framework", TEXT, nullable=False),
        sa.Column("framework_key", TEXT, nullable=False),
        sa.Column("framework_version", TEXT, nullable=False),
        sa.Column("major", TEXT, nullable=False),
        sa.Column("topic", TEXT, nullable=False),
        sa.Column("topic_key", TEXT, nullable=False),
        sa.Column("question", TEXT, nullable=True),
        sa.Column("question_key", TEXT, nullable=True),
        sa.Column("keywords_key", TEXT, nullable=False),
        sa.Column("tags", TEXT, nullable=False),
        sa.Column("path", TEXT, nullable=False),
        sa.Column("created", TEXT, nullable=False),
        sa.Column("last_accessed", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("confidence", TEXT, nullable=False),
        sa.Column("origin", TEXT, server_default="excerpt", nullable=False),
        sa.Column("written_by", TEXT, nullable=True),
        sa.Column("sha256", TEXT, nullable=True),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        sa.Column("researched_at", TEXT, nullable=True),
        sa.Column("fresh_until", TEXT, nullable=True),
        sa.Column("stale_reason", TEXT, nullable=True),
        sa.Column("stale_major", TEXT, nullable=True),
        sa.Column("prior_status", TEXT, nullable=False),
        sa.Column("archived_at", TEXT, nullable=False),
        sa.Column("reason", TEXT, nullable=False),
        sa.ForeignKeyConstraint(
            ["sha256"],
            ["report_texts.sha256"],
        ),
        sa.PrimaryKeyConstraint("archive_id"),
        sqlite_autoincrement=True,
    )
    op.create_index(
        "archived_entries_framework_topic", "archived_entries", ["framework_key", "topic_key"], unique=False
    )
    op.create_index("archived_entries_id", "archived_entries", ["id"], unique=False)
    op.create_index(
        "archived_entries_last_accessed", "archived_entries", ["last_accessed", "id"], unique=False
    )
    op.create_index("archived_entries_path", "archived_entries", ["path"], unique=False)
    op.create_table(
        "entries",
        sa.Column("id", TEXT, nullable=False),
        sa.Column("framework", TEXT, nullable=False),
        sa.Column("framework_key", TEXT, nullable=False),
        sa.Column("framework_version", TEXT, nullable=False),
        sa.Column("major", TEXT, nullable=False),
        sa.Column("topic", TEXT, nullable=False),
        sa.Column("topic_key", TEXT, nullable=False),
        sa.Column("question", TEXT, nullable=True),
        sa.Column("question_key", TEXT, nullable=True),
        sa.Column("keywords_key", TEXT, nullable=False),
        sa.Column("tags", TEXT, nullable=False),
        sa.Column("path", TEXT, nullable=False),
        sa.Column("created", TEXT, nullable=False),
        sa.Column("last_accessed", TEXT, nullable=False),
        sa.Column("status", TEXT, nullable=False),
        sa.Column("confidence", TEXT, nullable=False),
        sa.Column("origin", TEXT, server_default="excerpt", nullable=False),
        sa.Column("written_by", TEXT, nullable=True),
        sa.Column("sha256", TEXT, nullable=True),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        sa.Column("researched_at", TEXT, nullable=True),
        sa.Column("fresh_until", TEXT, nullable=True),
        sa.Column("stale_reason", TEXT, nullable=True),
        sa.Column("stale_major", TEXT, nullable=True),
        sa.ForeignKeyConstraint(
            ["sha256"],
            ["report_texts.sha256"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("entries_last_accessed", "entries", ["last_accessed", "id"], unique=False)
    op.create_index("entries_path", "entries", ["path"], unique=False)
    op.create_index("entries_topic", "entries", ["framework_key", "topic_key", "major"], unique=True)
    op.create_table(
        "lesson_injections",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("lesson_id", TEXT, nullable=False),
        sa.Column("phase", TEXT, nullable=False),
        sa.Column("at", TEXT, nullable=True),
        sa.Column("story_key", TEXT, nullable=True),
        sa.Column("session_id", TEXT, nullable=True),
        sa.ForeignKeyConstraint(
            ["lesson_id"],
            ["lessons.id"],
        ),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("lesson_injections_lesson", "lesson_injections", ["lesson_id", "phase"], unique=False)
    op.create_index(
        "lesson_injections_session", "lesson_injections", ["session_id", "lesson_id"], unique=False
    )
    op.create_table(
        "lesson_keywords",
        sa.Column("keyword", TEXT, nullable=False),
        sa.Column("lesson_id", TEXT, nullable=False),
        sa.ForeignKeyConstraint(
            ["lesson_id"],
            ["lessons.id"],
        ),
        sa.PrimaryKeyConstraint("keyword", "lesson_id"),
    )
    op.create_table(
        "revisions",
        sa.Column("entry_id", TEXT, nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("sha256", TEXT, nullable=False),
        sa.Column("path", TEXT, nullable=False),
        sa.Column("framework_key", TEXT, nullable=False),
        sa.Column("topic_key", TEXT, nullable=False),
        sa.Column("framework_version", TEXT, nullable=True),
        sa.Column("confidence", TEXT, nullable=True),
        sa.Column("origin", TEXT, nullable=True),
        sa.Column("written_by", TEXT, nullable=True),
        sa.Column("researched_at", TEXT, nullable=True),
        sa.Column("fresh_until", TEXT, nullable=True),
        sa.Column("status", TEXT, nullable=True),
        sa.Column("replaced_at", TEXT, nullable=False),
        sa.ForeignKeyConstraint(
            ["sha256"],
            ["report_texts.sha256"],
        ),
        sa.PrimaryKeyConstraint("entry_id", "revision"),
    )
    op.create_index("revisions_path", "revisions", ["path"], unique=False)
    op.create_table(
        "source_calls",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("request_id", TEXT, nullable=True),
        sa.Column("at", TEXT, nullable=False),
        sa.Column("source", TEXT, nullable=False),
        sa.Column("outcome", TEXT, nullable=False),
        sa.Column("charged", sa.Boolean(), nullable=False),
        sa.Column("duration_ms", sa.Integer(), nullable=True),
        sa.Column("url", TEXT, nullable=True),
        sa.Column("reason", TEXT, nullable=True),
        sa.Column("session_id", TEXT, nullable=True),
        sa.Column("story_key", TEXT, nullable=True),
        sa.Column("answer_tokens", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["request_id"], ["requests.id"], ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("source_calls_request", "source_calls", ["request_id"], unique=False)
    op.create_index(
        "source_calls_story", "source_calls", ["session_id", "story_key", "charged"], unique=False
    )
    is_sqlite = op.get_bind().dialect.name == "sqlite"
    for statement in SEARCH_TABLES if is_sqlite else POSTGRESQL_TABLES:
        op.execute(statement)
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")
