"""The log of requests: table ``requests``."""

from dataclasses import asdict

import sqlalchemy as sa

from kr.store.rows import RequestRow
from kr.store.schema import requests


class Requests:
    """Writes the log in the caller's transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def has(self, request_id: str) -> bool:
        """Tell whether a request has its row."""
        found = sa.select(requests.c.id).where(requests.c.id == request_id)
        return self._connection.execute(found).one_or_none() is not None

    def record(self, row: RequestRow) -> None:
        """Write one row; its id must be new."""
        self._connection.execute(sa.insert(requests).values(**asdict(row)))
