"""SQLAlchemy Core in a transaction that it doesn't own (``kr.store.session``)."""

import sqlite3
from typing import Any

import sqlalchemy as sa
from sqlalchemy.pool import StaticPool

from kr.store.sqlite import Connection


class _Borrowed:
    """A connection of which SQLAlchemy may do everything but end the transaction, or close it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    def commit(self) -> None:
        """Leave it to the owner."""

    def rollback(self) -> None:
        """Leave it to the owner."""

    def close(self) -> None:
        """Leave it to the owner."""


def connect(connection: Connection) -> sa.Connection:
    """Give SQLAlchemy a connection in whatever transaction it is. The engine is kept with it, for its compiled statements."""
    if connection.engine is None:
        # Initializing would roll the transaction back at its first connect.
        connection.engine = sa.create_engine(
            "sqlite://",
            creator=lambda: _Borrowed(connection),
            poolclass=StaticPool,
            pool_reset_on_return=None,
            module=sqlite3,
            _initialize=False,
        )
    return connection.engine.connect()
