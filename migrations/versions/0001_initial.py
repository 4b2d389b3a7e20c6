"""The first schema: what ``kr.store.schema`` declares, written out, so that it stays as it is when that changes."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

SEARCH_TABLES = (
    ("CREATE TABLE search_rows (entry_id TEXT NOT NULL PRIMARY KEY, row INTEGER NOT NULL UNIQUE)"),
    (
        "CREATE VIRTUAL TABLE entry_search USING fts5 (framework, topic, tags, question, wordings, "
        "report, tokenize = 'porter unicode61 remove_diacritics 2')"
    ),
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
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("failures", sa.Integer(), server_default="0", nullable=False),
        sa.Column("opened_times", sa.Integer(), server_default="0", nullable=False),
        sa.Column("open_until", sa.Text(), nullable=True),
        sa.Column("last_error", sa.Text(), nullable=True),
        sa.Column("probe_owner", sa.Text(), nullable=True),
        sa.Column("probe_until", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("source"),
    )
    op.create_table(
        "leases",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "lessons",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("date", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("ref", sa.Text(), nullable=True),
        sa.Column("event_type", sa.Text(), nullable=True),
        sa.Column("story_key", sa.Text(), nullable=True),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("recorded_at", sa.Text(), nullable=True),
        sa.Column("injected", sa.Integer(), server_default="0", nullable=False),
        sa.Column("recurred", sa.Integer(), server_default="0", nullable=False),
        sa.Column("recurred_after_injection", sa.Integer(), server_default="0", nullable=False),
        sa.Column("gone_at", sa.Text(), nullable=True),
        sa.Column("source", sa.Text(), nullable=True),
        sa.Column("last_recurred_at", sa.Text(), nullable=True),
        sa.Column("retired_at", sa.Text(), nullable=True),
        sa.Column("pinned_at", sa.Text(), nullable=True),
        sa.Column("approved_at", sa.Text(), nullable=True),
        sa.Column("superseded_by", sa.Text(), nullable=True),
        sa.Column("held", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("lessons_phase", "lessons", ["phase", "date"], unique=False)
    op.create_table(
        "libraries",
        sa.Column("framework_key", sa.Text(), nullable=False),
        sa.Column("library_id", sa.Text(), nullable=True),
        sa.Column("versions", sa.Text(), nullable=True),
        sa.Column("repository", sa.Text(), nullable=True),
        sa.Column("learned_at", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("framework_key"),
    )
    op.create_table(
        "meta",
        sa.Column("key", sa.Text(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("key"),
    )
    op.create_table(
        "quarantine",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("framework", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("reasons", sa.Text(), nullable=False),
        sa.Column("request", sa.Text(), nullable=False),
        sa.Column("written_by", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_table(
        "ratings",
        sa.Column("entry_id", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("story_key", sa.Text(), nullable=True),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("note", sa.Text(), nullable=True),
        sa.Column("at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("entry_id", "revision", "session_id"),
    )
    op.create_table(
        "report_texts",
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("sha256"),
    )
    op.create_table(
        "requests",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("mode", sa.Text(), nullable=True),
        sa.Column("story_key", sa.Text(), nullable=True),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("framework", sa.Text(), nullable=True),
        sa.Column("framework_version", sa.Text(), nullable=True),
        sa.Column("topic", sa.Text(), nullable=True),
        sa.Column("question", sa.Text(), nullable=True),
        sa.Column("tags", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("tier", sa.Text(), nullable=True),
        sa.Column("entry_id", sa.Text(), nullable=True),
        sa.Column("persona", sa.Text(), nullable=True),
        sa.Column("project", sa.Text(), nullable=True),
        sa.Column("duration_ms", sa.Integer(), nullable=True),
        sa.Column("budget_remaining", sa.Integer(), nullable=True),
        sa.Column("answer_tokens", sa.Integer(), nullable=True),
        sa.Column("score", sa.Float(), nullable=True),
        sa.Column("error", sa.Text(), nullable=True),
        sa.Column("candidates", sa.Text(), nullable=True),
        sa.Column("best_candidate", sa.Text(), nullable=True),
        sa.Column("settled_at", sa.Text(), nullable=True),
        sa.Column("answered_by", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("requests_at", "requests", ["at"], unique=False)
    op.create_index("requests_question", "requests", ["framework", "question"], unique=False)
    op.create_index("requests_session", "requests", ["session_id", "at"], unique=False)
    op.create_table(
        "reservations",
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=False),
        sa.Column("story_key", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("expires_at", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("reservations_story", "reservations", ["session_id", "story_key"], unique=False)
    op.create_table(
        "wordings",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("entry_id", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=False),
        sa.Column("question_key", sa.Text(), nullable=False),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("proved", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("wordings_entry", "wordings", ["entry_id", "id"], unique=False)
    op.create_index("wordings_question", "wordings", ["question_key"], unique=False)
    op.create_table(
        "workflows",
        sa.Column("workflow_id", sa.Text(), nullable=False),
        sa.Column("template_id", sa.Text(), nullable=False),
        sa.Column("template_ref", sa.Text(), nullable=True),
        sa.Column("type", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("current_step", sa.Text(), nullable=True),
        sa.Column("state_file", sa.Text(), nullable=True),
        sa.Column("is_simulated", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("created_at", sa.Text(), nullable=False),
        sa.Column("updated_at", sa.Text(), nullable=True),
        sa.Column("completed_at", sa.Text(), nullable=True),
        sa.PrimaryKeyConstraint("workflow_id"),
    )
    op.create_index("workflows_created_at", "workflows", ["created_at"], unique=False)
    op.create_table(
        "archived_entries",
        sa.Column("archive_id", sa.Integer(), nullable=False),
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("framework", sa.Text(), nullable=False),
        sa.Column("framework_key", sa.Text(), nullable=False),
        sa.Column("framework_version", sa.Text(), nullable=False),
        sa.Column("major", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("topic_key", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=True),
        sa.Column("question_key", sa.Text(), nullable=True),
        sa.Column("keywords_key", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("created", sa.Text(), nullable=False),
        sa.Column("last_accessed", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), server_default="excerpt", nullable=False),
        sa.Column("written_by", sa.Text(), nullable=True),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        sa.Column("researched_at", sa.Text(), nullable=True),
        sa.Column("fresh_until", sa.Text(), nullable=True),
        sa.Column("stale_reason", sa.Text(), nullable=True),
        sa.Column("stale_major", sa.Text(), nullable=True),
        sa.Column("prior_status", sa.Text(), nullable=False),
        sa.Column("archived_at", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
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
        sa.Column("id", sa.Text(), nullable=False),
        sa.Column("framework", sa.Text(), nullable=False),
        sa.Column("framework_key", sa.Text(), nullable=False),
        sa.Column("framework_version", sa.Text(), nullable=False),
        sa.Column("major", sa.Text(), nullable=False),
        sa.Column("topic", sa.Text(), nullable=False),
        sa.Column("topic_key", sa.Text(), nullable=False),
        sa.Column("question", sa.Text(), nullable=True),
        sa.Column("question_key", sa.Text(), nullable=True),
        sa.Column("keywords_key", sa.Text(), nullable=False),
        sa.Column("tags", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("created", sa.Text(), nullable=False),
        sa.Column("last_accessed", sa.Text(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Text(), nullable=False),
        sa.Column("origin", sa.Text(), server_default="excerpt", nullable=False),
        sa.Column("written_by", sa.Text(), nullable=True),
        sa.Column("sha256", sa.Text(), nullable=True),
        sa.Column("revision", sa.Integer(), server_default="1", nullable=False),
        sa.Column("researched_at", sa.Text(), nullable=True),
        sa.Column("fresh_until", sa.Text(), nullable=True),
        sa.Column("stale_reason", sa.Text(), nullable=True),
        sa.Column("stale_major", sa.Text(), nullable=True),
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
        sa.Column("lesson_id", sa.Text(), nullable=False),
        sa.Column("phase", sa.Text(), nullable=False),
        sa.Column("at", sa.Text(), nullable=True),
        sa.Column("story_key", sa.Text(), nullable=True),
        sa.Column("session_id", sa.Text(), nullable=True),
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
        sa.Column("keyword", sa.Text(), nullable=False),
        sa.Column("lesson_id", sa.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["lesson_id"],
            ["lessons.id"],
        ),
        sa.PrimaryKeyConstraint("keyword", "lesson_id"),
    )
    op.create_table(
        "revisions",
        sa.Column("entry_id", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("sha256", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("framework_key", sa.Text(), nullable=False),
        sa.Column("topic_key", sa.Text(), nullable=False),
        sa.Column("framework_version", sa.Text(), nullable=True),
        sa.Column("confidence", sa.Text(), nullable=True),
        sa.Column("origin", sa.Text(), nullable=True),
        sa.Column("written_by", sa.Text(), nullable=True),
        sa.Column("researched_at", sa.Text(), nullable=True),
        sa.Column("fresh_until", sa.Text(), nullable=True),
        sa.Column("status", sa.Text(), nullable=True),
        sa.Column("replaced_at", sa.Text(), nullable=False),
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
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column("at", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=False),
        sa.Column("charged", sa.Boolean(), nullable=False),
        sa.Column("duration_ms", sa.Integer(), nullable=True),
        sa.Column("url", sa.Text(), nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("session_id", sa.Text(), nullable=True),
        sa.Column("story_key", sa.Text(), nullable=True),
        sa.Column("answer_tokens", sa.Integer(), nullable=True),
        sa.ForeignKeyConstraint(["request_id"], ["requests.id"], ondelete="SET NULL"),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("source_calls_request", "source_calls", ["request_id"], unique=False)
    op.create_index(
        "source_calls_story", "source_calls", ["session_id", "story_key", "charged"], unique=False
    )
    if op.get_bind().dialect.name == "sqlite":
        for statement in SEARCH_TABLES:
            op.execute(statement)
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")
