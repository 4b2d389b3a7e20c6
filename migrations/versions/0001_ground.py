"""The ground: index, archive, revisions, lessons, requests, ledgers, leases, circuits, views.

Frozen: it creates what version 1 was, whatever kr/store/schema.sql says later. Names are a public interface
(SPEC 5). Every column beyond SPEC 5 may be left out of an INSERT.
"""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def entry_columns() -> list[sa.Column]:
    return [
        sa.Column("framework", sa.Text, nullable=False),
        sa.Column("framework_version", sa.Text, nullable=False),
        sa.Column("topic", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("created", sa.Text, nullable=False),
        sa.Column("last_accessed", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("confidence", sa.Text, nullable=False),
        sa.Column("sha256", sa.Text),
        sa.Column("researched_at", sa.Text),
        sa.Column("fresh_until", sa.Text),
        sa.Column("origin", sa.Text, server_default="researched"),
        sa.Column("stale_reason", sa.Text),
        sa.Column("framework_key", sa.Text),
        sa.Column("topic_key", sa.Text),
    ]


def create_index_and_archive() -> None:
    op.create_table("entries", sa.Column("id", sa.Text, primary_key=True), *entry_columns())
    op.create_index("entries_last_accessed", "entries", ["last_accessed", "id"])
    op.create_index("entries_pair", "entries", ["framework_key", "topic_key"])
    op.create_index("entries_path", "entries", ["path"])
    op.create_table(
        "archived_entries",
        sa.Column("archive_id", sa.Integer, primary_key=True),
        sa.Column("id", sa.Text, nullable=False),
        *entry_columns(),
        sa.Column("archived_at", sa.Text, nullable=False),
        sa.Column("reason", sa.Text, nullable=False),
        sa.Column("prior_status", sa.Text),
        sqlite_autoincrement=True,
    )
    op.create_index("archived_entries_last_accessed", "archived_entries", ["last_accessed", "id"])
    op.create_index("archived_entries_pair", "archived_entries", ["framework_key", "topic_key"])
    op.create_index("archived_entries_id", "archived_entries", ["id"])
    op.create_index("archived_entries_path", "archived_entries", ["path"])


def create_revisions() -> None:
    op.create_table(
        "report_texts",
        sa.Column("sha256", sa.Text, primary_key=True),
        sa.Column("content", sa.LargeBinary, nullable=False),
    )
    op.create_table(
        "revisions",
        sa.Column("entry_id", sa.Text, primary_key=True),
        sa.Column("revision", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("sha256", sa.Text, sa.ForeignKey("report_texts.sha256"), nullable=False),
        sa.Column("path", sa.Text, nullable=False),
        sa.Column("framework_key", sa.Text),
        sa.Column("topic_key", sa.Text),
        sa.Column("framework_version", sa.Text),
        sa.Column("confidence", sa.Text),
        sa.Column("researched_at", sa.Text),
        sa.Column("replaced_at", sa.Text, nullable=False),
    )
    op.create_index("revisions_path", "revisions", ["path"])


def create_lessons() -> None:
    op.create_table(
        "lessons",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("date", sa.Text, nullable=False),
        sa.Column("phase", sa.Text, nullable=False),
        sa.Column("tags", sa.Text, nullable=False),
        sa.Column("summary", sa.Text, nullable=False),
        sa.Column("ref", sa.Text),
        sa.Column("event_type", sa.Text),
        sa.Column("story_key", sa.Text),
        sa.Column("session_id", sa.Text),
        sa.Column("recorded_at", sa.Text),
        sa.Column("injected", sa.Integer, nullable=False, server_default="0"),
        sa.Column("recurred", sa.Integer, nullable=False, server_default="0"),
    )
    op.create_index("lessons_phase", "lessons", ["phase", "date"])


def create_requests_and_ledger() -> None:
    op.create_table(
        "requests",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("mode", sa.Text),
        sa.Column("story_key", sa.Text),
        sa.Column("session_id", sa.Text),
        sa.Column("framework", sa.Text),
        sa.Column("framework_version", sa.Text),
        sa.Column("topic", sa.Text),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("tier", sa.Text),
        sa.Column("entry_id", sa.Text),
        sa.Column("persona", sa.Text),
        sa.Column("duration_ms", sa.Integer),
        sa.Column("budget_remaining", sa.Integer),
    )
    op.create_index("requests_at", "requests", ["at"])
    op.create_table(
        "source_calls",
        sa.Column("id", sa.Integer, primary_key=True),
        sa.Column("request_id", sa.Text),
        sa.Column("at", sa.Text, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("outcome", sa.Text, nullable=False),
        sa.Column("charged", sa.Boolean(create_constraint=False), nullable=False),
        sa.Column("duration_ms", sa.Integer),
        sa.Column("url", sa.Text),
        sa.Column("reason", sa.Text),
        sa.Column("session_id", sa.Text),
        sa.Column("story_key", sa.Text),
        sqlite_autoincrement=True,
    )
    op.create_index("source_calls_story", "source_calls", ["session_id", "story_key", "charged"])
    op.create_index("source_calls_request", "source_calls", ["request_id"])
    op.create_table(
        "reservations",
        sa.Column("id", sa.Text, primary_key=True),
        sa.Column("session_id", sa.Text, nullable=False),
        sa.Column("story_key", sa.Text, nullable=False),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("expires_at", sa.Text, nullable=False),
    )
    op.create_index("reservations_story", "reservations", ["session_id", "story_key"])


def create_shared_state() -> None:
    op.create_table(
        "leases",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("owner", sa.Text, nullable=False),
        sa.Column("expires_at", sa.Text, nullable=False),
    )
    op.create_table(
        "circuits",
        sa.Column("source", sa.Text, primary_key=True),
        sa.Column("failures", sa.Integer, nullable=False, server_default="0"),
        sa.Column("opened_times", sa.Integer, nullable=False, server_default="0"),
        sa.Column("open_until", sa.Text),
        sa.Column("last_error", sa.Text),
        sa.Column("probe_owner", sa.Text),
        sa.Column("probe_until", sa.Text),
    )
    op.create_table(
        "libraries",
        sa.Column("framework_key", sa.Text, primary_key=True),
        sa.Column("library_id", sa.Text),
        sa.Column("versions", sa.Text),
        sa.Column("repository", sa.Text),
        sa.Column("learned_at", sa.Text),
    )
    op.create_table(
        "meta",
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("value", sa.Text, nullable=False),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Integer, nullable=False),
    )
    op.execute("INSERT INTO counters (name, value) VALUES ('entries', 0), ('generation', 0)")


COUNT = "UPDATE counters SET value = value {step} WHERE name = '{name}';"
TRIGGER = "CREATE TRIGGER {table}_{name} AFTER {event} ON {table} BEGIN {count} {bump} END"
EDITED = """
    CREATE TRIGGER {table}_edited AFTER UPDATE OF framework, topic ON {table}
    WHEN (NEW.framework IS NOT OLD.framework OR NEW.topic IS NOT OLD.topic)
        AND NEW.framework_key IS OLD.framework_key AND NEW.topic_key IS OLD.topic_key
    BEGIN UPDATE {table} SET framework_key = NULL, topic_key = NULL WHERE rowid = NEW.rowid; END"""


def create_triggers() -> None:
    """Count live rows and changes, whoever makes them; forget the folded keys of a row that was edited."""
    bump = COUNT.format(step="+ 1", name="generation")
    for table in ("entries", "archived_entries"):
        for event, step in (("INSERT", "+ 1"), ("DELETE", "- 1"), ("UPDATE", "")):
            count = COUNT.format(step=step, name="entries") if table == "entries" and step else ""
            name = event.lower()
            op.execute(TRIGGER.format(table=table, name=name, event=event, count=count, bump=bump))
        op.execute(EDITED.format(table=table))


VIEWS = {
    "hit_rate_by_day": """
        SELECT substr(at, 1, 10) AS day, count(*) AS requests,
               sum(CASE WHEN status = 'cache-hit' THEN 1 ELSE 0 END) AS hits,
               round(1.0 * sum(CASE WHEN status = 'cache-hit' THEN 1 ELSE 0 END) / count(*), 4) AS hit_rate
        FROM requests WHERE mode = 'research' AND status <> 'failure'
        GROUP BY substr(at, 1, 10) ORDER BY day""",
    "hit_rate_by_framework": """
        SELECT lower(trim(framework)) AS framework, count(*) AS requests,
               sum(CASE WHEN status = 'cache-hit' THEN 1 ELSE 0 END) AS hits,
               round(1.0 * sum(CASE WHEN status = 'cache-hit' THEN 1 ELSE 0 END) / count(*), 4) AS hit_rate
        FROM requests WHERE mode = 'research' AND status <> 'failure' AND framework IS NOT NULL
        GROUP BY lower(trim(framework)) ORDER BY requests DESC, framework""",
    "spending_by_story": """
        SELECT session_id, story_key, sum(CASE WHEN charged THEN 1 ELSE 0 END) AS charged,
               sum(CASE WHEN charged THEN 0 ELSE 1 END) AS uncharged,
               min(at) AS first_at, max(at) AS last_at
        FROM source_calls GROUP BY session_id, story_key ORDER BY charged DESC, session_id, story_key""",
    "source_reliability": """
        SELECT source, count(*) AS asked,
               sum(CASE WHEN outcome = 'success' THEN 1 ELSE 0 END) AS success,
               sum(CASE WHEN outcome = 'timeout' THEN 1 ELSE 0 END) AS timeout,
               sum(CASE WHEN outcome = 'unavailable' THEN 1 ELSE 0 END) AS unavailable,
               round(1.0 * sum(CASE WHEN outcome = 'success' THEN 1 ELSE 0 END) / count(*), 4) AS success_rate,
               round(avg(duration_ms), 1) AS mean_ms
        FROM source_calls WHERE outcome <> 'skipped' GROUP BY source ORDER BY source""",
    "next_evictions": """
        SELECT row_number() OVER (ORDER BY last_accessed, id) AS position, id, framework, topic,
               last_accessed, status, path
        FROM entries ORDER BY last_accessed, id""",
    "lessons_by_phase": """
        SELECT phase, count(*) AS lessons, sum(injected) AS injected, sum(recurred) AS recurred,
               max(date) AS newest
        FROM lessons GROUP BY phase ORDER BY phase""",
}


def upgrade() -> None:
    create_index_and_archive()
    create_revisions()
    create_lessons()
    create_requests_and_ledger()
    create_shared_state()
    create_triggers()
    for name, query in VIEWS.items():
        op.execute(f"CREATE VIEW {name} AS {query}")
