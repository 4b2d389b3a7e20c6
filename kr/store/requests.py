"""The log of requests: table ``requests``."""

from kr.store.rows import RequestRow
from kr.store.session import Session, insert_into

UNDER_WAY = "interrupted, or still under way"
"""The error of a request that has asked a source and has no answer yet: what a killed process leaves."""

_HAS_ENDED = f"SELECT 1 FROM requests WHERE id = :id AND error IS NOT '{UNDER_WAY}'"
_ENDING = ", ".join(f"{name} = excluded.{name}" for name in RequestRow.names() if name != "id")
_BEGIN = f"{insert_into('requests', RequestRow.names())} ON CONFLICT (id) DO NOTHING"
_RECORD = f"{insert_into('requests', RequestRow.names())} ON CONFLICT (id) DO UPDATE SET {_ENDING}"


class Requests:
    """Writes the log in the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def has_ended(self, request_id: str) -> bool:
        """Tell whether the row of a request says how it ended."""
        return self._session.row(_HAS_ENDED, id=request_id) is not None

    def begin(self, row: RequestRow) -> None:
        """Write the row that the calls of a request belong to, once."""
        self._session.execute(_BEGIN, row.fields() | {"status": "failure", "error": UNDER_WAY})

    def record(self, row: RequestRow) -> None:
        """Write how a request ended."""
        self._session.execute(_RECORD, row.fields())
