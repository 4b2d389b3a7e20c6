"""Findings that wait for a person, served to nobody (table ``quarantine``)."""

import json
from dataclasses import asdict, dataclass, fields
from typing import Any

from kr.store.engine import Row, Transaction
from kr.store.sql import insert_into, json_list


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


_NAMES = tuple(field.name for field in fields(Quarantined))


def add(tx: Transaction, finding: Quarantined) -> None:
    values = asdict(finding) | {
        "reasons": json_list(finding.reasons),
        "request": json.dumps(finding.request, ensure_ascii=False),
    }
    tx.execute(insert_into("quarantine", _NAMES), **values)


def all(tx: Transaction) -> list[Quarantined]:  # noqa: A001 - read as quarantine.all(tx)
    """Return what waits, the oldest first."""
    return [_read(row) for row in tx.rows("SELECT * FROM quarantine ORDER BY at, id")]


def get(tx: Transaction, finding_id: str) -> Quarantined | None:
    row = tx.row("SELECT * FROM quarantine WHERE id = :id", id=finding_id)
    return None if row is None else _read(row)


def remove(tx: Transaction, finding_id: str) -> bool:
    return bool(tx.execute("DELETE FROM quarantine WHERE id = :id", id=finding_id))


def _read(row: Row) -> Quarantined:
    values = {name: row[name] for name in _NAMES}
    values |= {"reasons": tuple(json.loads(row["reasons"])), "request": json.loads(row["request"])}
    return Quarantined(**values)
