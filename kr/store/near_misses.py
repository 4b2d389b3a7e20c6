"""Questions that no entry answered for sure although some were near: table ``near_misses`` (SPEC 3.2, 8).

A person who sees that one of them answers says so; the wording is then kept with that entry, as ``--use`` does.
"""

import json
from collections.abc import Sequence

from kr.store.lists import texts_of
from kr.store.rows import NearMiss
from kr.store.session import Columns, Session, insert_into, json_list
from kr.values import Related

_KEEP = insert_into("near_misses", ("request_id", "tags", "related"))
_FOUND = (
    "SELECT near.request_id, asked.at, coalesce(asked.framework, '') AS framework, coalesce(asked.topic, '') AS topic, "
    "coalesce(asked.question, '') AS question, near.tags, asked.status, asked.entry_id, near.related "
    "FROM near_misses AS near JOIN requests AS asked ON asked.id = near.request_id "
    "WHERE {} ORDER BY asked.at DESC, asked.id"
)
_OPEN, _OF = _FOUND.format("near.settled_at IS NULL"), _FOUND.format("near.request_id = :id")
_ALIKE = (
    "SELECT request_id FROM near_misses JOIN requests ON id = request_id "
    "WHERE settled_at IS NULL AND topic = :topic AND question = :question"
)
_SETTLE = (
    "UPDATE near_misses SET answered_by = :answered_by, settled_at = :at "
    "WHERE request_id IN (SELECT value FROM json_each(:ids))"
)


class NearMisses:
    """Keeps near misses in the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def keep(self, request_id: str, tags: Sequence[str], related: Sequence[Related]) -> None:
        """Keep what was near a request, whose row must be there, best first."""
        near = [{"id": it.id, "likelihood": round(it.likelihood, 4)} for it in related]
        self._session.execute(_KEEP, request_id=request_id, tags=json_list(tags), related=json_list(near))

    def open(self) -> list[NearMiss]:
        """Return those that nobody has settled, the newest first."""
        return [_to_near_miss(row) for row in self._session.rows(_OPEN)]

    def get(self, request_id: str) -> NearMiss | None:
        """Return what was near a request, settled or not."""
        row = self._session.row(_OF, id=request_id)
        return None if row is None else _to_near_miss(row)

    def settle_alike(self, topic: str, question: str, answered_by: str, *, at: str) -> None:
        """Note which entry answers every open request of these very words: an agent has found it among those near."""
        alike = self._session.rows(_ALIKE, topic=topic, question=question)
        self.settle([row["request_id"] for row in alike], answered_by, at=at)

    def settle(self, request_ids: Sequence[str], answered_by: str | None, *, at: str) -> None:
        """Note which entry answers these requests, or that none of those near them does. ``at`` is stored text."""
        self._session.execute(_SETTLE, ids=json_list(request_ids), answered_by=answered_by, at=at)


def _to_near_miss(row: Columns) -> NearMiss:
    columns = {name: row[name] for name in NearMiss.names()}
    near = tuple((it["id"], it["likelihood"]) for it in json.loads(columns["related"]))
    return NearMiss(**{**columns, "tags": texts_of(columns["tags"]), "related": near})
