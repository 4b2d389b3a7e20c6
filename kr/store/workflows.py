"""Instances of workflows: table ``workflows``, one row each (SPEC 9)."""

from kr.store.session import Session, insert_into
from kr.values import Value


class WorkflowRow(Value):
    """What is known of an instance without its state file. Times are stored texts."""

    workflow_id: str
    template_id: str
    template_ref: str | None
    type: str | None
    status: str
    current_step: str | None
    state_file: str | None
    is_simulated: bool
    created_at: str
    updated_at: str | None
    completed_at: str | None


_RECORD = insert_into("workflows", WorkflowRow.names()).replace("INSERT", "INSERT OR REPLACE", 1)
_NEWEST = f"SELECT {', '.join(WorkflowRow.names())} FROM workflows ORDER BY created_at DESC, workflow_id LIMIT :limit"
_BY_STATUS = "SELECT status, count(*) AS number FROM workflows GROUP BY status ORDER BY number DESC, status"


class Workflows:
    """Reads and writes the rows in the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def record(self, row: WorkflowRow) -> None:
        """Write a row, in the place of the instance's earlier one."""
        self._session.execute(_RECORD, row.fields())

    def newest(self, limit: int | None = None) -> list[WorkflowRow]:
        """List the rows, the newest first."""
        rows = self._session.rows(_NEWEST, limit=-1 if limit is None else limit)
        return [WorkflowRow(**{**row, "is_simulated": bool(row["is_simulated"])}) for row in rows]

    def by_status(self) -> dict[str, int]:
        """Count the instances by status, most first."""
        return {row["status"]: row["number"] for row in self._session.rows(_BY_STATUS)}
