"""Declares that a source's call belongs to a request: ``source_calls.request_id`` references ``requests.id``.

Calls of a request that was killed before its row was written get one that says so. Frozen: it creates what version
10 was, whatever kr/store/schema.sql says later.
"""

from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

KILLED = """
    INSERT INTO requests (id, at, mode, story_key, session_id, status, error)
    SELECT request_id, min(at), 'research', story_key, session_id, 'failure', 'interrupted: killed'
    FROM source_calls WHERE request_id IS NOT NULL AND request_id NOT IN (SELECT id FROM requests)
    GROUP BY request_id"""

COLUMNS = "id, request_id, at, source, outcome, charged, duration_ms, url, reason, session_id, story_key, answer_tokens"

CALLS = """
    CREATE TABLE new_source_calls (
        id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
        request_id TEXT,
        at TEXT NOT NULL, source TEXT NOT NULL, outcome TEXT NOT NULL, charged BOOLEAN NOT NULL,
        duration_ms INTEGER, url TEXT, reason TEXT, session_id TEXT, story_key TEXT, answer_tokens INTEGER,
        FOREIGN KEY (request_id) REFERENCES requests (id) ON DELETE SET NULL)"""


def upgrade() -> None:
    connection = op.get_bind()
    made = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND "
    views = connection.exec_driver_sql(made + "type = 'view'").all()
    around = connection.exec_driver_sql(
        made + "type IN ('index', 'trigger') AND tbl_name = 'source_calls'"
    ).all()
    op.execute(KILLED)
    for name, _ in views:
        op.execute(f"DROP VIEW {name}")
    op.execute(CALLS)
    op.execute(f"INSERT INTO new_source_calls ({COLUMNS}) SELECT {COLUMNS} FROM source_calls")
    op.execute("DELETE FROM sqlite_sequence WHERE name = 'new_source_calls'")
    op.execute("UPDATE sqlite_sequence SET name = 'new_source_calls' WHERE name = 'source_calls'")
    op.execute("DROP TABLE source_calls")
    op.execute("ALTER TABLE new_source_calls RENAME TO source_calls")
    for _, statement in (*around, *views):
        connection.exec_driver_sql(statement)
