"""The only SQL: the index, the archive, the ledgers, and the report files that stand beside them."""

import os


def new_id() -> str:
    """Return 32 random hexadecimal digits: the id of a row, or a name that nobody has."""
    return os.urandom(16).hex()
