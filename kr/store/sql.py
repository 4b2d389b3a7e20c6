"""Pieces of SQL that SQLite and PostgreSQL both run. Parameters are named, ``:name``."""

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import fields
from hashlib import sha256
from typing import Any, TypeVar

R = TypeVar("R")

SCHEMA_VERSION = 1
"""The number of the newest migration, kept in SQLite's ``PRAGMA user_version``, and in PostgreSQL in ``meta``."""
SCHEMA_KEY = "schema_version"
OF_FOLDER = "folder"
"""What the keys of facts about a folder begin with; see ``Store.folder_key``."""

IS_INSTALLED_EXCERPT = "origin = 'excerpt' AND fresh_until IS NOT NULL"
"""``Entry.is_installed_excerpt``, of a row."""

EVICTED_FIRST = f"CASE WHEN origin = 'placeholder' THEN 0 WHEN {IS_INSTALLED_EXCERPT} THEN 1 ELSE 2 END"
"""The class of an entry in the order of eviction: placeholders, excerpts of installed documentation, the rest."""

IS_HIT = "(status = 'cache-hit' OR (status = 'candidates' AND tier = 'use'))"
"""A request that the cache answered: by a hit, or by a candidate whose report was given and worked."""

IS_ANSWER = "mode = 'research' AND status <> 'failure' AND (status <> 'candidates' OR tier = 'use')"
"""One research. What was only offered is counted by what the asker did next."""


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


def new_id() -> str:
    """Return 32 random hexadecimal digits: the id of a row, or a name that nobody has."""
    return os.urandom(16).hex()


def lock_key(scope: str) -> int:
    """Return the number of an advisory lock of PostgreSQL."""
    return int.from_bytes(sha256(f"kr {scope}".encode()).digest()[:8], signed=True)


def insert_into(table: str, names: Sequence[str]) -> str:
    """Return the statement that inserts a row, each column a parameter of its name."""
    return f"INSERT INTO {table} ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})"


def upsert_into(table: str, names: Sequence[str], *key: str) -> str:
    """Return the statement that inserts a row, or sets its columns in the row that has its ``key``."""
    changes = ", ".join(f"{name} = excluded.{name}" for name in names if name not in key)
    return f"{insert_into(table, names)} ON CONFLICT ({', '.join(key)}) DO UPDATE SET {changes}"


def columns_of(record: Any) -> dict[str, Any]:
    """Return the columns of a dataclass; what is a tuple there is a list in JSON."""
    values = {field.name: getattr(record, field.name) for field in fields(record)}
    return {name: json_list(it) if isinstance(it, tuple) else it for name, it in values.items()}


def record_of(kind: type[R], row: Any, **read: Any) -> R:
    """Make a dataclass of a row's columns but for those that are ``read`` already."""
    names = [field.name for field in fields(kind) if field.name not in read]  # type: ignore[arg-type]
    return kind(**{name: row[name] for name in names}, **read)


def named(name: str, values: Iterable[object]) -> tuple[str, dict[str, Any]]:
    """Return the right side of ``IN`` for a list of values, and its parameters: ``(:id0, :id1)``."""
    parameters = {f"{name}{number}": value for number, value in enumerate(values)}
    return f"({', '.join(f':{key}' for key in parameters) or 'NULL'})", parameters


def json_list(values: Sequence[object]) -> str:
    """Return a list as a column holds it."""
    return json.dumps(list(values), ensure_ascii=False)


def texts_of(text: str | None) -> tuple[str, ...]:
    """Read a column that holds a list of texts; what is no list of texts is empty."""
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return ()
    return tuple(str(item) for item in found) if isinstance(found, list) else ()


IS_GIVEN = "gone_at IS NULL AND retired_at IS NULL AND superseded_by IS NULL AND (held IS NULL OR approved_at IS NOT NULL)"
"""Which lessons are given to agents."""
