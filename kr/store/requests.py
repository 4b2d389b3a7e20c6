"""The log of requests: table ``requests``."""

from kr.store.rows import RequestRow
from kr.store.session import Session, insert_into

_HAS = "SELECT 1 FROM requests WHERE id = :id"
_RECORD = insert_into("requests", RequestRow.names())


class Requests:
    """Writes the log in the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def has(self, request_id: str) -> bool:
        """Tell whether a request has its row."""
        return self._session.row(_HAS, id=request_id) is not None

    def record(self, row: RequestRow) -> None:
        """Write one row; its id must be new."""
        self._session.execute(_RECORD, row.fields())
