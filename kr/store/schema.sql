-- The tables as the newest migration leaves them (SPEC 5): what a new database is made by. An older one is brought here by
-- migrations/; a test holds the two against each other. Times are text (kr.freshness), lists JSON arrays.

-- Which migration this is: Alembic's own table, and what kr looks at on its way.
CREATE TABLE alembic_version (
    version_num VARCHAR(32) NOT NULL PRIMARY KEY
);

CREATE TABLE meta (
    key TEXT NOT NULL PRIMARY KEY,
    value TEXT NOT NULL
);

-- Every text that a report has or had, for good.
CREATE TABLE report_texts (
    sha256 TEXT NOT NULL PRIMARY KEY,
    text TEXT NOT NULL
);

-- What the file at a path holds while it has this size and time: a hit need not read it.
CREATE TABLE report_files (
    path TEXT NOT NULL PRIMARY KEY,
    sha256 TEXT NOT NULL REFERENCES report_texts (sha256),
    size INTEGER NOT NULL,
    mtime_ns INTEGER NOT NULL
);

-- The live index. Columns beyond SPEC 5 are nullable or have a default, so that people may insert rows by plain SQL;
-- framework_key and topic_key are the folded texts, NULL until kr has seen the row.
CREATE TABLE entries (
    id TEXT NOT NULL PRIMARY KEY,
    framework TEXT NOT NULL,
    framework_version TEXT NOT NULL,
    topic TEXT NOT NULL,
    tags TEXT NOT NULL,
    path TEXT NOT NULL,
    created TEXT NOT NULL,
    last_accessed TEXT NOT NULL,
    status TEXT NOT NULL,
    confidence TEXT NOT NULL,
    sha256 TEXT REFERENCES report_texts (sha256),
    researched_at TEXT,
    fresh_until TEXT,
    origin TEXT DEFAULT 'researched',
    stale_reason TEXT,
    framework_key TEXT,
    topic_key TEXT,
    question TEXT,
    stale_major TEXT,
    configured_sources TEXT,
    keys_version INTEGER
);
CREATE INDEX entries_last_accessed ON entries (last_accessed, id);
CREATE INDEX entries_pair ON entries (framework_key, topic_key);
CREATE INDEX entries_path ON entries (path);

CREATE TABLE archived_entries (
    archive_id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL,
    framework TEXT NOT NULL,
    framework_version TEXT NOT NULL,
    topic TEXT NOT NULL,
    tags TEXT NOT NULL,
    path TEXT NOT NULL,
    created TEXT NOT NULL,
    last_accessed TEXT NOT NULL,
    status TEXT NOT NULL,
    confidence TEXT NOT NULL,
    sha256 TEXT REFERENCES report_texts (sha256),
    researched_at TEXT,
    fresh_until TEXT,
    origin TEXT DEFAULT 'researched',
    stale_reason TEXT,
    framework_key TEXT,
    topic_key TEXT,
    archived_at TEXT NOT NULL,
    reason TEXT NOT NULL,
    prior_status TEXT,
    question TEXT,
    stale_major TEXT,
    configured_sources TEXT,
    keys_version INTEGER
);
CREATE INDEX archived_entries_last_accessed ON archived_entries (last_accessed, id);
CREATE INDEX archived_entries_pair ON archived_entries (framework_key, topic_key);
CREATE INDEX archived_entries_id ON archived_entries (id);
CREATE INDEX archived_entries_path ON archived_entries (path);

CREATE TABLE revisions (
    entry_id TEXT NOT NULL,
    revision INTEGER NOT NULL,
    sha256 TEXT NOT NULL REFERENCES report_texts (sha256),
    path TEXT NOT NULL,
    framework_key TEXT,
    topic_key TEXT,
    framework_version TEXT,
    confidence TEXT,
    researched_at TEXT,
    replaced_at TEXT NOT NULL,
    PRIMARY KEY (entry_id, revision)
);
CREATE INDEX revisions_path ON revisions (path);

-- Requests that an entry answered (SPEC 3.2). Like revisions they belong to an id, live or archived: an id is never given
-- to another framework, topic or major version, so that they outlive the way into the archive and back.
CREATE TABLE wordings (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    entry_id TEXT NOT NULL,
    at TEXT NOT NULL,
    topic TEXT NOT NULL,
    tags TEXT NOT NULL,
    question TEXT NOT NULL,
    session_id TEXT
);
CREATE INDEX wordings_entry ON wordings (entry_id, id);

-- How many live entries there are, as every answer tells; kept by triggers.
CREATE TABLE entry_count (
    entries INTEGER NOT NULL
);

-- What a live entry is looked up by, made from its row, wordings and report: entries.keys_version tells by which version of
-- the rules, NULL that it is still to be made. fields is a bit mask of where the term stands.
CREATE TABLE entry_terms (
    framework_key TEXT NOT NULL,
    term TEXT NOT NULL,
    entry_id TEXT NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
    fields INTEGER NOT NULL,
    PRIMARY KEY (framework_key, term, entry_id)
) WITHOUT ROWID;
CREATE INDEX entry_terms_entry ON entry_terms (entry_id, fields, term);

-- The need of a live entry as a model of embeddings sees it: packed floats.
CREATE TABLE entry_vectors (
    entry_id TEXT NOT NULL REFERENCES entries (id) ON DELETE CASCADE,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (entry_id, model)
);

-- What is searched, by document_search (FTS5): live entries with their reports, and lessons. Kept by triggers.
CREATE TABLE documents (
    id INTEGER NOT NULL PRIMARY KEY,
    kind TEXT NOT NULL,
    key TEXT NOT NULL,
    framework TEXT NOT NULL,
    topic TEXT NOT NULL,
    tags TEXT NOT NULL,
    question TEXT NOT NULL,
    text TEXT NOT NULL
);
CREATE UNIQUE INDEX documents_key ON documents (kind, key);
CREATE VIRTUAL TABLE document_search USING fts5 (
    framework, topic, tags, question, text, content='documents', content_rowid='id',
    tokenize='porter unicode61 remove_diacritics 2'
);

CREATE TABLE lessons (
    id TEXT NOT NULL PRIMARY KEY,
    date TEXT NOT NULL,
    phase TEXT NOT NULL,
    tags TEXT NOT NULL,
    summary TEXT NOT NULL,
    ref TEXT,
    event_type TEXT,
    story_key TEXT,
    session_id TEXT,
    recorded_at TEXT,
    injected INTEGER NOT NULL DEFAULT 0,
    recurred INTEGER NOT NULL DEFAULT 0,
    gone_at TEXT,
    source TEXT,
    last_recurred_at TEXT,
    retired_at TEXT,
    pinned_at TEXT,
    approved_at TEXT,
    superseded_by TEXT,
    recurred_after_injection INTEGER NOT NULL DEFAULT 0,
    held TEXT
);
CREATE INDEX lessons_phase ON lessons (phase, date);

-- The stems of each lesson's keywords, by which duplicates are found.
CREATE TABLE lesson_keywords (
    keyword TEXT NOT NULL,
    lesson_id TEXT NOT NULL REFERENCES lessons (id),
    PRIMARY KEY (keyword, lesson_id)
) WITHOUT ROWID;

CREATE TABLE lesson_injections (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    lesson_id TEXT NOT NULL REFERENCES lessons (id),
    phase TEXT NOT NULL,
    at TEXT,
    story_key TEXT,
    session_id TEXT
);
CREATE INDEX lesson_injections_lesson ON lesson_injections (lesson_id, phase);
CREATE INDEX lesson_injections_session ON lesson_injections (session_id, lesson_id);

CREATE TABLE requests (
    id TEXT NOT NULL PRIMARY KEY,
    at TEXT NOT NULL,
    mode TEXT,
    story_key TEXT,
    session_id TEXT,
    framework TEXT,
    framework_version TEXT,
    topic TEXT,
    status TEXT NOT NULL,
    tier TEXT,
    entry_id TEXT,
    persona TEXT,
    duration_ms INTEGER,
    budget_remaining INTEGER,
    question TEXT,
    likelihood FLOAT,
    error TEXT
);
CREATE INDEX requests_at ON requests (at);

-- Requests that no entry answered for sure, with the entries that were near: [{id, likelihood}], best first.
CREATE TABLE near_misses (
    request_id TEXT NOT NULL PRIMARY KEY REFERENCES requests (id) ON DELETE CASCADE,
    tags TEXT NOT NULL,
    related TEXT NOT NULL,
    settled_at TEXT,
    answered_by TEXT
);
CREATE INDEX near_misses_settled ON near_misses (settled_at, request_id);

CREATE TABLE source_calls (
    id INTEGER NOT NULL PRIMARY KEY AUTOINCREMENT,
    request_id TEXT,
    at TEXT NOT NULL,
    source TEXT NOT NULL,
    outcome TEXT NOT NULL,
    charged BOOLEAN NOT NULL,
    duration_ms INTEGER,
    url TEXT,
    reason TEXT,
    session_id TEXT,
    story_key TEXT,
    answer_tokens INTEGER,
    FOREIGN KEY (request_id) REFERENCES requests (id) ON DELETE SET NULL
);
CREATE INDEX source_calls_story ON source_calls (session_id, story_key, charged);
CREATE INDEX source_calls_request ON source_calls (request_id);

CREATE TABLE reservations (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL,
    story_key TEXT NOT NULL,
    owner TEXT NOT NULL,
    expires_at TEXT NOT NULL
);
CREATE INDEX reservations_story ON reservations (session_id, story_key);

CREATE TABLE leases (
    key TEXT NOT NULL PRIMARY KEY,
    owner TEXT NOT NULL,
    expires_at TEXT NOT NULL
);

CREATE TABLE circuits (
    source TEXT NOT NULL PRIMARY KEY,
    failures INTEGER NOT NULL DEFAULT 0,
    opened_times INTEGER NOT NULL DEFAULT 0,
    open_until TEXT,
    last_error TEXT,
    probe_owner TEXT,
    probe_until TEXT
);

CREATE TABLE libraries (
    framework_key TEXT NOT NULL PRIMARY KEY,
    library_id TEXT,
    versions TEXT,
    repository TEXT,
    learned_at TEXT
);

-- Instances of workflows as kr workflow list knows them; the state file is the authority.
CREATE TABLE workflows (
    workflow_id TEXT NOT NULL PRIMARY KEY,
    template_id TEXT NOT NULL,
    template_ref TEXT,
    type TEXT,
    status TEXT NOT NULL,
    current_step TEXT,
    state_file TEXT,
    is_simulated BOOLEAN NOT NULL DEFAULT 0,
    created_at TEXT NOT NULL,
    updated_at TEXT,
    completed_at TEXT
);
CREATE INDEX workflows_created_at ON workflows (created_at);

-- Triggers keep the keys, and what is searched, right, whoever writes; and count what an export of the archive must know.
CREATE TRIGGER archived_entries_delete AFTER DELETE ON archived_entries BEGIN
    INSERT OR IGNORE INTO meta (key, value) VALUES ('archive_changes', '0');
    UPDATE meta SET value = value + 1 WHERE key = 'archive_changes';
    END;

CREATE TRIGGER archived_entries_edited AFTER UPDATE OF framework, topic ON archived_entries
    WHEN (NEW.framework IS NOT OLD.framework OR NEW.topic IS NOT OLD.topic)
    AND NEW.framework_key IS OLD.framework_key AND NEW.topic_key IS OLD.topic_key
    BEGIN UPDATE archived_entries SET framework_key = NULL, topic_key = NULL WHERE rowid = NEW.rowid; END;

CREATE TRIGGER archived_entries_update AFTER UPDATE OF id, framework, framework_version, topic, tags, path, created, last_accessed, archived_at, reason ON archived_entries
BEGIN
    INSERT OR IGNORE INTO meta (key, value) VALUES ('archive_changes', '0');
    UPDATE meta SET value = value + 1 WHERE key = 'archive_changes';
END;

CREATE TRIGGER documents_delete AFTER DELETE ON documents
BEGIN
    INSERT INTO document_search (document_search, rowid, framework, topic, tags, question, text)
    VALUES ('delete', OLD.id, OLD.framework, OLD.topic, OLD.tags, OLD.question, OLD.text);
END;

CREATE TRIGGER documents_insert AFTER INSERT ON documents
BEGIN
    INSERT INTO document_search (rowid, framework, topic, tags, question, text)
    VALUES (NEW.id, NEW.framework, NEW.topic, NEW.tags, NEW.question, NEW.text);
END;

-- What is searched comes and goes with its entry also where somebody writes INSERT OR REPLACE, which fires no trigger of a deletion.
CREATE TRIGGER entries_counted AFTER INSERT ON documents WHEN NEW.kind = 'entry'
BEGIN UPDATE entry_count SET entries = entries + 1; END;

CREATE TRIGGER entries_delete AFTER DELETE ON entries
BEGIN
    DELETE FROM documents WHERE kind = 'entry' AND key = OLD.id;
END;

CREATE TRIGGER entries_edited AFTER UPDATE OF framework, topic ON entries
    WHEN (NEW.framework IS NOT OLD.framework OR NEW.topic IS NOT OLD.topic)
    AND NEW.framework_key IS OLD.framework_key AND NEW.topic_key IS OLD.topic_key
    BEGIN UPDATE entries SET framework_key = NULL, topic_key = NULL WHERE rowid = NEW.rowid; END;

CREATE TRIGGER entries_insert AFTER INSERT ON entries
BEGIN
    DELETE FROM documents WHERE kind = 'entry' AND key = NEW.id;
    INSERT INTO documents (kind, key, framework, topic, tags, question, text)
    SELECT 'entry', e.id, e.framework, e.topic, e.tags, coalesce(e.question, ''), coalesce(t.text, '')
    FROM entries e LEFT JOIN report_texts t ON t.sha256 = e.sha256 WHERE e.id = NEW.id;
END;

CREATE TRIGGER entries_reworded AFTER UPDATE OF framework, topic, tags, question ON entries
    WHEN (NEW.framework IS NOT OLD.framework OR NEW.topic IS NOT OLD.topic
    OR NEW.tags IS NOT OLD.tags OR NEW.question IS NOT OLD.question)
    AND NEW.keys_version IS NOT NULL AND NEW.keys_version IS OLD.keys_version
    BEGIN UPDATE entries SET keys_version = NULL WHERE rowid = NEW.rowid; END;

CREATE TRIGGER entries_uncounted AFTER DELETE ON documents WHEN OLD.kind = 'entry'
BEGIN UPDATE entry_count SET entries = entries - 1; END;

CREATE TRIGGER entries_update AFTER UPDATE OF id, framework, topic, tags, question, sha256 ON entries
WHEN (OLD.id, OLD.framework, OLD.topic, OLD.tags, OLD.question, OLD.sha256)
    IS NOT (NEW.id, NEW.framework, NEW.topic, NEW.tags, NEW.question, NEW.sha256)
BEGIN
    DELETE FROM documents WHERE kind = 'entry' AND key = OLD.id;
    INSERT INTO documents (kind, key, framework, topic, tags, question, text)
    SELECT 'entry', e.id, e.framework, e.topic, e.tags, coalesce(e.question, ''), coalesce(t.text, '')
    FROM entries e LEFT JOIN report_texts t ON t.sha256 = e.sha256 WHERE e.id = NEW.id;
END;

CREATE TRIGGER lessons_delete AFTER DELETE ON lessons
BEGIN
    DELETE FROM documents WHERE kind = 'lesson' AND key = OLD.id;
END;

CREATE TRIGGER lessons_insert AFTER INSERT ON lessons
BEGIN
    DELETE FROM documents WHERE kind = 'lesson' AND key = NEW.id;
    INSERT INTO documents (kind, key, framework, topic, tags, question, text)
    SELECT 'lesson', id, '', phase, tags, '', summary || coalesce(' ' || ref, '')
    FROM lessons WHERE gone_at IS NULL AND id = NEW.id;
END;

CREATE TRIGGER lessons_update AFTER UPDATE OF id, phase, tags, summary, ref, gone_at ON lessons
BEGIN
    DELETE FROM documents WHERE kind = 'lesson' AND key = OLD.id;
    INSERT INTO documents (kind, key, framework, topic, tags, question, text)
    SELECT 'lesson', id, '', phase, tags, '', summary || coalesce(' ' || ref, '')
    FROM lessons WHERE gone_at IS NULL AND id = NEW.id;
END;

-- The public views (SPEC 5).
CREATE VIEW hit_rate_by_day AS
    SELECT substr(at, 1, 10) AS day, count(*) AS requests,
    sum(CASE WHEN status = 'cache-hit' THEN 1 ELSE 0 END) AS hits,
    round(1.0 * sum(CASE WHEN status = 'cache-hit' THEN 1 ELSE 0 END) / count(*), 4) AS hit_rate
    FROM requests WHERE mode = 'research' AND status <> 'failure'
    GROUP BY substr(at, 1, 10) ORDER BY day;

CREATE VIEW hit_rate_by_framework AS
    SELECT lower(trim(framework)) AS framework, count(*) AS requests,
    sum(CASE WHEN status = 'cache-hit' THEN 1 ELSE 0 END) AS hits,
    round(1.0 * sum(CASE WHEN status = 'cache-hit' THEN 1 ELSE 0 END) / count(*), 4) AS hit_rate
    FROM requests WHERE mode = 'research' AND status <> 'failure' AND framework IS NOT NULL
    GROUP BY lower(trim(framework)) ORDER BY requests DESC, framework;

CREATE VIEW lessons_by_phase AS
    SELECT phase, count(*) AS lessons, sum(injected) AS injected, sum(recurred) AS recurred,
    max(date) AS newest
    FROM lessons WHERE gone_at IS NULL GROUP BY phase ORDER BY phase;

CREATE VIEW next_evictions AS
    SELECT row_number() OVER (ORDER BY last_accessed, id) AS position, id, framework, topic,
    last_accessed, status, path
    FROM entries ORDER BY last_accessed, id;

CREATE VIEW reports AS
    SELECT e.id, e.framework, e.topic, t.text FROM entries e JOIN report_texts t ON t.sha256 = e.sha256;

CREATE VIEW source_reliability AS
    SELECT source, count(*) AS asked,
    sum(CASE WHEN outcome = 'success' THEN 1 ELSE 0 END) AS success,
    sum(CASE WHEN outcome = 'timeout' THEN 1 ELSE 0 END) AS timeout,
    sum(CASE WHEN outcome = 'unavailable' THEN 1 ELSE 0 END) AS unavailable,
    round(1.0 * sum(CASE WHEN outcome = 'success' THEN 1 ELSE 0 END) / count(*), 4) AS success_rate,
    round(avg(duration_ms), 1) AS mean_ms
    FROM source_calls WHERE outcome <> 'skipped' GROUP BY source ORDER BY source;

CREATE VIEW spending_by_story AS
    SELECT session_id, story_key, sum(CASE WHEN charged THEN 1 ELSE 0 END) AS charged,
    sum(CASE WHEN charged THEN 0 ELSE 1 END) AS uncharged,
    min(at) AS first_at, max(at) AS last_at
    FROM source_calls GROUP BY session_id, story_key ORDER BY charged DESC, session_id, story_key;

INSERT INTO entry_count VALUES (0);
INSERT INTO alembic_version VALUES ('0012');
PRAGMA user_version = 11;
