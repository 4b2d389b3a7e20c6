"""Instances of workflows (table ``workflows``); the state file of each is the authority."""

from dataclasses import dataclass

from kr.store.engine import Transaction
from kr.store.sql import record_of


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


def record(tx: Transaction, row: WorkflowRow) -> None:
    tx.upsert("workflows", row, "workflow_id")


def newest(tx: Transaction, limit: int | None = None) -> list[WorkflowRow]:
    """Return the instances, the last started first."""
    rows = tx.rows("SELECT * FROM workflows ORDER BY created_at DESC, workflow_id")[:limit]
    return [record_of(WorkflowRow, row, is_simulated=bool(row["is_simulated"])) for row in rows]
