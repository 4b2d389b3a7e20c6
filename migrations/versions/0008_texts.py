"""The text of every report as text, what is searched in with FTS5, declared references, and no more counters.

Reports that only a file held are taken in, so that the row's text is the report from here on. Frozen: it creates
what version 8 was, whatever kr/store/schema.sql says later.
"""

import hashlib
from datetime import UTC, datetime

import sqlalchemy as sa
from alembic import context, op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

COUNTING = tuple(f"{table}_{event}" for table in ("entries", "archived_entries") for event in ("insert", "update", "delete"))  # fmt: skip

DOCUMENTS = """
    CREATE TABLE documents (
        id INTEGER NOT NULL PRIMARY KEY, kind TEXT NOT NULL, key TEXT NOT NULL, framework TEXT NOT NULL,
        topic TEXT NOT NULL, tags TEXT NOT NULL, question TEXT NOT NULL, text TEXT NOT NULL)"""

SEARCH = """
    CREATE VIRTUAL TABLE document_search USING fts5(
        framework, topic, tags, question, text, content='documents', content_rowid='id',
        tokenize='porter unicode61 remove_diacritics 2')"""

FOLLOWED = ("framework", "topic", "tags", "question", "text")

ENTRY_DOCUMENT = """
    INSERT INTO documents (kind, key, framework, topic, tags, question, text)
    SELECT 'entry', e.id, e.framework, e.topic, e.tags, coalesce(e.question, ''), coalesce(t.text, '')
    FROM entries e LEFT JOIN report_texts t ON t.sha256 = e.sha256"""

LESSON_DOCUMENT = """
    INSERT INTO documents (kind, key, framework, topic, tags, question, text)
    SELECT 'lesson', id, '', phase, tags, '', summary || coalesce(' ' || ref, '') FROM lessons
    WHERE gone_at IS NULL"""

TRIGGERS = {
    "documents_insert": "AFTER INSERT ON documents BEGIN INSERT INTO document_search (rowid, {columns}) VALUES (NEW.id, {new}); END",
    "documents_delete": "AFTER DELETE ON documents BEGIN INSERT INTO document_search (document_search, rowid, {columns}) "
    "VALUES ('delete', OLD.id, {old}); END",
    "entries_insert": "AFTER INSERT ON entries BEGIN {forget_entry_new}; {entry} WHERE e.id = NEW.id; END",
    "entries_update": "AFTER UPDATE OF id, framework, topic, tags, question, sha256 ON entries "
    "WHEN (OLD.id, OLD.framework, OLD.topic, OLD.tags, OLD.question, OLD.sha256) "
    "IS NOT (NEW.id, NEW.framework, NEW.topic, NEW.tags, NEW.question, NEW.sha256) "
    "BEGIN {forget_entry}; {entry} WHERE e.id = NEW.id; END",
    "entries_delete": "AFTER DELETE ON entries BEGIN {forget_entry}; END",
    "lessons_insert": "AFTER INSERT ON lessons BEGIN {forget_lesson_new}; {lesson} AND id = NEW.id; END",
    "lessons_update": "AFTER UPDATE OF id, phase, tags, summary, ref, gone_at ON lessons "
    "BEGIN {forget_lesson}; {lesson} AND id = NEW.id; END",
    "lessons_delete": "AFTER DELETE ON lessons BEGIN {forget_lesson}; END",
}

REPORTS = """
    CREATE VIEW reports AS
        SELECT e.id, e.framework, e.topic, t.text FROM entries e JOIN report_texts t ON t.sha256 = e.sha256"""


def upgrade() -> None:
    connection = op.get_bind()
    keep_texts_as_text(connection)
    read_report = context.config.attributes.get("read_report")
    if read_report is not None:
        take_files_in(connection, read_report)
    for name in COUNTING:
        op.execute(f"DROP TRIGGER {name}")
    op.drop_table("counters")
    for table in ("entries", "archived_entries"):
        op.execute(f"UPDATE {table} SET sha256 = lower(sha256)")
        op.execute(f"UPDATE {table} SET sha256 = NULL WHERE sha256 NOT IN (SELECT sha256 FROM report_texts)")
        declare_reference(connection, table, "sha256", "report_texts (sha256)")
    op.execute("DELETE FROM lesson_injections WHERE lesson_id NOT IN (SELECT id FROM lessons)")
    declare_reference(connection, "lesson_injections", "lesson_id", "lessons (id)")
    op.create_table(
        "report_files",
        sa.Column("path", sa.Text, primary_key=True),
        sa.Column("sha256", sa.Text, sa.ForeignKey("report_texts.sha256"), nullable=False),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("mtime_ns", sa.Integer, nullable=False),
    )
    make_searchable()
    op.execute(REPORTS)


def keep_texts_as_text(connection: sa.Connection) -> None:
    """Bytes that are no UTF-8 become U+FFFD, and the text then has another hash."""
    op.execute("CREATE TABLE new_texts (sha256 TEXT NOT NULL PRIMARY KEY, text TEXT NOT NULL)")
    for sha256, content in connection.exec_driver_sql("SELECT sha256, content FROM report_texts"):
        known = keep(connection, content.decode(errors="replace"), "new_texts")
        if known != sha256:
            for table in ("entries", "archived_entries", "revisions"):
                connection.exec_driver_sql(f"UPDATE {table} SET sha256 = ? WHERE sha256 = ?", (known, sha256))
    op.execute("DROP TABLE report_texts")
    op.execute("ALTER TABLE new_texts RENAME TO report_texts")


def keep(connection: sa.Connection, text: str, table: str = "report_texts") -> str:
    sha256 = hashlib.sha256(text.encode()).hexdigest()
    connection.exec_driver_sql(f"INSERT OR IGNORE INTO {table} VALUES (?, ?)", (sha256, text))
    return sha256


def take_files_in(connection: sa.Connection, read_report) -> None:  # noqa: ANN001
    """Until now the file was the report: what it holds is the row's text, and kr's own before it a revision."""
    now = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S.%fZ}"
    rows = connection.exec_driver_sql(
        "SELECT id, path, framework_key, topic_key, framework_version, confidence, "
        "coalesce(researched_at, created), lower(sha256) FROM entries"
    ).all()
    for entry_id, path, *of, known in rows:
        text = (read_report(path) or b"").decode(errors="replace")
        if not text.strip():
            continue
        sha256 = keep(connection, text)
        if sha256 == known:
            continue
        connection.exec_driver_sql("UPDATE entries SET sha256 = ? WHERE id = ?", (sha256, entry_id))
        connection.exec_driver_sql(
            "INSERT INTO revisions (entry_id, revision, sha256, path, framework_key, topic_key, framework_version, "
            "confidence, researched_at, replaced_at) "
            "SELECT ?, 1 + coalesce((SELECT max(revision) FROM revisions WHERE entry_id = ?), 0), sha256, ?, ?, ?, ?, ?, ?, ? "
            "FROM report_texts WHERE sha256 = ?",
            (entry_id, entry_id, path, *of, now, known),
        )


def declare_reference(connection: sa.Connection, table: str, column: str, target: str) -> None:
    """Build a table anew with a reference; its indexes, its triggers and every view are made as they were."""
    made = "SELECT name, sql FROM sqlite_master WHERE sql IS NOT NULL AND "
    (definition,) = connection.exec_driver_sql(made + "type = 'table' AND name = ?", (table,)).all()
    views = connection.exec_driver_sql(made + "type = 'view'").all()
    around = connection.exec_driver_sql(
        made + "type IN ('index', 'trigger') AND tbl_name = ?", (table,)
    ).all()
    for name, _ in views:
        connection.exec_driver_sql(f"DROP VIEW {name}")
    columns = ", ".join(row[1] for row in connection.exec_driver_sql(f"PRAGMA table_info({table})"))
    body = definition[1].partition("(")[2].rstrip().removesuffix(")")
    reference = f"FOREIGN KEY ({column}) REFERENCES {target}"
    connection.exec_driver_sql(f"CREATE TABLE new_{table} ({body}, {reference})")
    connection.exec_driver_sql(f"INSERT INTO new_{table} ({columns}) SELECT {columns} FROM {table}")
    connection.exec_driver_sql(
        "UPDATE sqlite_sequence SET seq = (SELECT seq FROM sqlite_sequence WHERE name = ?) WHERE name = ?",
        (table, f"new_{table}"),
    )
    connection.exec_driver_sql(f"DROP TABLE {table}")
    connection.exec_driver_sql(f"ALTER TABLE new_{table} RENAME TO {table}")
    for _, statement in (*around, *views):
        connection.exec_driver_sql(statement)


def make_searchable() -> None:
    op.execute(DOCUMENTS)
    op.execute("CREATE UNIQUE INDEX documents_key ON documents (kind, key)")
    op.execute(SEARCH)
    forget = "DELETE FROM documents WHERE kind = '{}' AND key = {}.id"
    parts = {
        "columns": ", ".join(FOLLOWED),
        "new": ", ".join(f"NEW.{name}" for name in FOLLOWED),
        "old": ", ".join(f"OLD.{name}" for name in FOLLOWED),
        "entry": ENTRY_DOCUMENT,
        "lesson": LESSON_DOCUMENT,
        "forget_entry": forget.format("entry", "OLD"),
        "forget_entry_new": forget.format("entry", "NEW"),
        "forget_lesson": forget.format("lesson", "OLD"),
        "forget_lesson_new": forget.format("lesson", "NEW"),
    }
    for name, definition in TRIGGERS.items():
        op.execute(f"CREATE TRIGGER {name} {definition.format(**parts)}")
    op.execute(ENTRY_DOCUMENT)
    op.execute(LESSON_DOCUMENT)
