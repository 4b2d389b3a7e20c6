"""Findings that wait for a person, served to nobody (SPEC 3.10; table ``quarantine``)."""

import json
import sqlite3
from dataclasses import asdict, dataclass, fields
from typing import Any

from kr.store.session import Part, insert_into


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
_ADD = insert_into("quarantine", _NAMES)
_ALL = f"SELECT {', '.join(_NAMES)} FROM quarantine ORDER BY at, id"
_ONE = f"SELECT {', '.join(_NAMES)} FROM quarantine WHERE id = :id"
_REMOVE = "DELETE FROM quarantine WHERE id = :id"


class Quarantine(Part):
    def add(self, finding: Quarantined) -> None:
        values = asdict(finding)
        values["reasons"] = json.dumps(finding.reasons, ensure_ascii=False)
        values["request"] = json.dumps(finding.request, ensure_ascii=False)
        self._session.execute(_ADD, values)

    def all(self) -> list[Quarantined]:
        """Return what waits, the oldest first."""
        return [_read(row) for row in self._session.rows(_ALL)]

    def get(self, finding_id: str) -> Quarantined | None:
        row = self._session.row(_ONE, id=finding_id)
        return None if row is None else _read(row)

    def remove(self, finding_id: str) -> bool:
        return bool(self._session.execute(_REMOVE, id=finding_id))


def _read(row: sqlite3.Row) -> Quarantined:
    values = {name: row[name] for name in _NAMES}
    return Quarantined(
        **{**values, "reasons": tuple(json.loads(row["reasons"])), "request": json.loads(row["request"])}
    )
