"""Questions that no entry answered for sure although some were near: table ``near_misses`` (SPEC 3.2, 8).

A person who sees that one of them answers says so; the wording is then kept with that entry, as ``--use`` does.
"""

import json
from collections.abc import Sequence

import sqlalchemy as sa

from kr.store.lists import texts_of
from kr.store.rows import NearMiss
from kr.store.schema import near_misses, requests
from kr.values import Related


class NearMisses:
    """Keeps near misses in the caller's transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def keep(self, request_id: str, tags: Sequence[str], related: Sequence[Related]) -> None:
        """Keep what was near a request, whose row must be there, best first."""
        near = [{"id": it.id, "likelihood": round(it.likelihood, 4)} for it in related]
        self._connection.execute(
            sa.insert(near_misses).values(
                request_id=request_id,
                tags=json.dumps(list(tags), ensure_ascii=False),
                related=json.dumps(near, ensure_ascii=False),
            )
        )

    def open(self) -> list[NearMiss]:
        """Return those that nobody has settled, the newest first."""
        return self._found(near_misses.c.settled_at.is_(None))

    def get(self, request_id: str) -> NearMiss | None:
        """Return what was near a request, settled or not."""
        found = self._found(near_misses.c.request_id == request_id)
        return found[0] if found else None

    def settle_alike(self, topic: str, question: str, answered_by: str, *, at: str) -> None:
        """Note which entry answers every open request of these very words: an agent has found it among those near."""
        asked = (requests.c.topic == topic, requests.c.question == question)
        alike = sa.select(near_misses.c.request_id).join_from(near_misses, requests)
        found = self._connection.execute(alike.where(near_misses.c.settled_at.is_(None), *asked)).scalars()
        self.settle(list(found), answered_by, at=at)

    def settle(self, request_ids: Sequence[str], answered_by: str | None, *, at: str) -> None:
        """Note which entry answers these requests, or that none of those near them does. ``at`` is stored text."""
        mine = near_misses.c.request_id.in_(list(request_ids))
        self._connection.execute(
            sa.update(near_misses).where(mine).values(answered_by=answered_by, settled_at=at)
        )

    def _found(self, which: sa.ColumnElement[bool]) -> list[NearMiss]:
        columns = (requests.c.id, requests.c.at, requests.c.framework, requests.c.topic, requests.c.question)
        rows = self._connection.execute(
            sa.select(*columns, requests.c.status, requests.c.entry_id, near_misses)
            .join_from(near_misses, requests)
            .where(which)
            .order_by(requests.c.at.desc(), requests.c.id)
        )
        return [
            NearMiss(
                request_id=row.id,
                at=row.at,
                framework=row.framework or "",
                topic=row.topic or "",
                question=row.question or "",
                tags=texts_of(row.tags),
                status=row.status,
                entry_id=row.entry_id,
                related=_related(row.related),
            )
            for row in rows
        ]


def _related(text: str) -> tuple[tuple[str, float], ...]:
    return tuple((near["id"], near["likelihood"]) for near in json.loads(text))
