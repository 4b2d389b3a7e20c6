"""Findings that wait for a person, served to nobody (table ``quarantine``)."""

import json
from dataclasses import dataclass
from typing import Any

from kr.store.engine import Row, Transaction
from kr.store.sql import record_of, texts_of


@dataclass(frozen=True, slots=True)
class Quarantined:
    """One finding that waits. ``request`` is the finding as it was handed over, without its secrets; ``reasons`` say why it waits."""

    id: str
    at: str
    framework: str
    question: str
    reasons: tuple[str, ...]
    request: dict[str, Any]
    written_by: str


def add(tx: Transaction, finding: Quarantined) -> None:
    tx.insert("quarantine", finding, request=json.dumps(finding.request, ensure_ascii=False))


def all(tx: Transaction) -> list[Quarantined]:  # noqa: A001 - read as quarantine.all(tx)
    """Return what waits, the oldest first."""
    return [_read(row) for row in tx.rows("SELECT * FROM quarantine ORDER BY at, id")]


def get(tx: Transaction, finding_id: str) -> Quarantined | None:
    row = tx.row("SELECT * FROM quarantine WHERE id = :id", id=finding_id)
    return None if row is None else _read(row)


def remove(tx: Transaction, finding_id: str) -> bool:
    return bool(tx.execute("DELETE FROM quarantine WHERE id = :id", id=finding_id))


def _read(row: Row) -> Quarantined:
    request = json.loads(row["request"])
    return record_of(Quarantined, row, reasons=texts_of(row["reasons"]), request=request)
