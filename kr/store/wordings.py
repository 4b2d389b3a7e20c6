"""How requests worded the need that an entry answered: table ``wordings`` (SPEC 3.2).

They belong to the entry's id, and so stay with it through the archive and back.
"""

import json
import sqlite3
from collections.abc import Iterable, Sequence

from kr import naming
from kr.store.session import Session, insert_into, json_list, texts_of
from kr.values import Entry, NamedTuple, Value


class Need(NamedTuple):
    """What a request says of what it needs."""

    topic: str
    tags: tuple[str, ...]
    question: str


class Wording(Value):
    """One row of ``wordings``: how a request that an entry answered worded its need."""

    entry_id: str
    at: str
    topic: str
    tags: tuple[str, ...]
    question: str
    session_id: str | None = None


MOST = 20
"""How many an entry keeps: the newest."""

_COLUMNS = ", ".join(Wording.names())
_OF = f"SELECT {_COLUMNS} FROM wordings WHERE entry_id IN (SELECT value FROM json_each(:ids)) ORDER BY id"
_ALL = f"SELECT {_COLUMNS} FROM wordings ORDER BY id"
_KEEP = insert_into("wordings", Wording.names())
_DROP_OLD = (
    "DELETE FROM wordings WHERE entry_id = :entry_id AND id NOT IN "
    f"(SELECT id FROM wordings WHERE entry_id = :entry_id ORDER BY id DESC LIMIT {MOST})"
)
_KEYS_ARE_DUE = "UPDATE entries SET keys_version = NULL WHERE id = :entry_id"
_TAKE = "DELETE FROM wordings WHERE entry_id = :entry_id AND topic = :topic AND question = :question"
_FORGET = "DELETE FROM wordings WHERE entry_id = :entry_id"


class Wordings:
    """Keeps wordings in the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def of(self, entry_ids: Iterable[str]) -> dict[str, list[Wording]]:
        """Return the wordings of each of these ids that has some, oldest first."""
        return _grouped(self._session.rows(_OF, ids=json_list([*entry_ids])))

    def all(self) -> dict[str, list[Wording]]:
        """Return the wordings of every id that has some, oldest first."""
        return _grouped(self._session.rows(_ALL))

    def keep(self, entry: Entry, need: Need, *, at: str, session_id: str | None = None) -> bool:
        """Keep how a request worded the need of a live entry; its keys are then to be made anew.

        False where the entry knows these words: as its own, or as one of its wordings. ``at`` is stored text.
        """
        said = _compared(*need)
        if _holds(_compared(entry.topic, entry.tags, entry.question), said):
            return False
        rows = self._session.rows(_OF, ids=json_list([entry.id]))
        known = (_compared(row["topic"], texts_of(row["tags"]), row["question"]) for row in rows)
        if any(_holds(key, said) for key in known):
            return False
        wording = Wording(entry_id=entry.id, at=at, session_id=session_id, **need._asdict())
        self._session.execute(_KEEP, {**wording.fields(), "tags": json.dumps(need.tags, ensure_ascii=False)})
        self._session.execute(_DROP_OLD, entry_id=entry.id)
        self._session.execute(_KEYS_ARE_DUE, entry_id=entry.id)
        return True

    def take(self, need: Need, entry_ids: Iterable[str]) -> None:
        """Have live entries answer these very words no more: somebody said that another one does."""
        for row in (row for rows in self.of(entry_ids).values() for row in rows):
            if _key(row)[::2] == _compared(*need)[::2]:
                self._session.execute(_TAKE, row.fields())
                self._session.execute(_KEYS_ARE_DUE, entry_id=row.entry_id)

    def forget(self, entry_id: str) -> None:
        """Delete the wordings of an entry that is gone for good: its id may become another one's."""
        self._session.execute(_FORGET, entry_id=entry_id)


def _grouped(rows: Sequence[sqlite3.Row]) -> dict[str, list[Wording]]:
    found: dict[str, list[Wording]] = {}
    for row in rows:
        found.setdefault(row["entry_id"], []).append(_to_wording(row))
    return found


_Key = tuple[str, frozenset[str], str | None]
"""Topic, tags and question in the form in which they are compared."""


def _key(wording: Wording) -> _Key:
    return _compared(wording.topic, wording.tags, wording.question)


def _compared(topic: str, tags: Iterable[str], question: str | None) -> _Key:
    folded = None if question is None else " ".join(naming.fold(question).split())
    return naming.fold(topic), frozenset(map(naming.tag_key, tags)), folded


def _holds(known: _Key, said: _Key) -> bool:
    """Whether a wording holds all that a request says: fewer tags say nothing new."""
    return known[::2] == said[::2] and said[1] <= known[1]


def _to_wording(row: sqlite3.Row) -> Wording:
    columns = {name: row[name] for name in Wording.names()}
    return Wording(**{**columns, "tags": texts_of(columns["tags"])})
