"""How requests worded the need that an entry answered: table ``wordings`` (SPEC 3.2).

They belong to the entry's id, and so stay with it through the archive and back.
"""

import json
from collections.abc import Iterable
from typing import Any

import sqlalchemy as sa

from kr import naming
from kr.store.lists import texts_of
from kr.store.rows import Need, Wording
from kr.store.schema import entries, wordings
from kr.values import Entry

MOST = 20
"""How many an entry keeps: the newest."""


class Wordings:
    """Keeps wordings in the caller's transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def of(self, entry_ids: Iterable[str]) -> dict[str, list[Wording]]:
        """Return the wordings of each of these ids that has some, oldest first."""
        return self._grouped(wordings.c.entry_id.in_(list(entry_ids)))

    def all(self) -> dict[str, list[Wording]]:
        """Return the wordings of every id that has some, oldest first."""
        return self._grouped(sa.true())

    def keep(self, entry: Entry, need: Need, *, at: str, session_id: str | None = None) -> bool:
        """Keep how a request worded the need of a live entry; its keys are then to be made anew.

        False where the entry knows these words: as its own, or as one of its wordings. ``at`` is stored text.
        """
        known = [_own(entry), *map(_key, self.of([entry.id]).get(entry.id, ()))]
        if any(_says(key, need) for key in known):
            return False
        self._connection.execute(
            sa.insert(wordings).values(
                entry_id=entry.id,
                at=at,
                topic=need.topic,
                tags=json.dumps(need.tags, ensure_ascii=False),
                question=need.question,
                session_id=session_id,
            )
        )
        mine = wordings.c.entry_id == entry.id
        newest = sa.select(wordings.c.id).where(mine).order_by(wordings.c.id.desc()).limit(MOST)
        self._connection.execute(sa.delete(wordings).where(mine, wordings.c.id.not_in(newest)))
        self._connection.execute(sa.update(entries).where(entries.c.id == entry.id).values(keys_version=None))
        return True

    def _grouped(self, which: sa.ColumnElement[bool]) -> dict[str, list[Wording]]:
        found: dict[str, list[Wording]] = {}
        for row in self._connection.execute(sa.select(wordings).where(which).order_by(wordings.c.id)):
            found.setdefault(row.entry_id, []).append(_to_wording(row))
        return found

    def forget(self, entry_id: str) -> None:
        """Delete the wordings of an entry that is gone for good: its id may become another one's."""
        self._connection.execute(sa.delete(wordings).where(wordings.c.entry_id == entry_id))


_Key = tuple[str, frozenset[str], str | None]
"""Topic, tags and question in the form in which they are compared."""


def _own(entry: Entry) -> _Key:
    return _compared(entry.topic, entry.tags, entry.question)


def _key(wording: Wording) -> _Key:
    return _compared(wording.topic, wording.tags, wording.question)


def _compared(topic: str, tags: Iterable[str], question: str | None) -> _Key:
    folded = None if question is None else " ".join(naming.fold(question).split())
    return naming.fold(topic), frozenset(map(naming.tag_key, tags)), folded


def _says(known: _Key, need: Need) -> bool:
    """Whether a wording holds all that a request says: fewer tags say nothing new."""
    topic, tags, question = _compared(*need)
    return known[0] == topic and known[2] == question and tags <= known[1]


def _to_wording(row: sa.Row[Any]) -> Wording:
    return Wording(
        entry_id=row.entry_id,
        at=row.at,
        topic=row.topic,
        tags=texts_of(row.tags),
        question=row.question,
        session_id=row.session_id,
    )
