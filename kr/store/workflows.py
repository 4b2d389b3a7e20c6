"""Instances of workflows: table ``workflows``, one row each (SPEC 9)."""

from dataclasses import asdict, dataclass

import sqlalchemy as sa

from kr.store.schema import workflows


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkflowRow:
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


class Workflows:
    """Reads and writes the rows in the caller's transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def record(self, row: WorkflowRow) -> None:
        """Write a row, in the place of the instance's earlier one."""
        self._connection.execute(sa.delete(workflows).where(workflows.c.workflow_id == row.workflow_id))
        self._connection.execute(sa.insert(workflows).values(**asdict(row)))

    def newest(self, limit: int | None = None) -> list[WorkflowRow]:
        """List the rows, the newest first."""
        query = sa.select(workflows).order_by(workflows.c.created_at.desc(), workflows.c.workflow_id)
        return [WorkflowRow(**row) for row in self._connection.execute(query.limit(limit)).mappings()]

    def by_status(self) -> dict[str, int]:
        """Count the instances by status, most first."""
        number = sa.func.count().label("number")
        query = (
            sa.select(workflows.c.status, number)
            .group_by(workflows.c.status)
            .order_by(number.desc(), workflows.c.status)
        )
        return {row.status: row.number for row in self._connection.execute(query)}
