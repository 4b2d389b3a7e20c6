"""Instances of workflows (table ``workflows``); the state file of each is the authority."""

from dataclasses import asdict, dataclass, fields

from kr.store.engine import Transaction
from kr.store.sql import upsert_into


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


_NAMES = tuple(field.name for field in fields(WorkflowRow))


def record(tx: Transaction, row: WorkflowRow) -> None:
    tx.execute(upsert_into("workflows", _NAMES, "workflow_id"), **asdict(row))


def newest(tx: Transaction, limit: int | None = None) -> list[WorkflowRow]:
    """Return the instances, the last started first."""
    rows = tx.rows("SELECT * FROM workflows ORDER BY created_at DESC, workflow_id")[:limit]
    found = ({name: row[name] for name in _NAMES} for row in rows)
    return [WorkflowRow(**{**row, "is_simulated": bool(row["is_simulated"])}) for row in found]


def by_status(tx: Transaction) -> dict[str, int]:
    rows = tx.rows(
        "SELECT status, count(*) AS number FROM workflows GROUP BY status ORDER BY number DESC, status"
    )
    return {row["status"]: row["number"] for row in rows}
