"""The only SQL on a knowledge base: tables, transactions, and one module for each group of tables, whose functions take a transaction."""

SCHEMA_VERSION = 1
"""The number of the newest migration, kept in SQLite's ``PRAGMA user_version``, and in PostgreSQL in ``meta``."""
SCHEMA_KEY = "schema_version"
APPLICATION_ID = 0x6B72
"""``kr`` in ASCII, kept in ``PRAGMA application_id``: it tells our databases from other programs'."""
