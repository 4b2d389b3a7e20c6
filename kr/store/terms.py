"""What live entries are looked up by: tables ``entry_terms`` and ``entry_vectors`` (SPEC 3.2; ``kr.matching.terms`` makes the terms)."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from kr.matching.terms import NEED, VERSION, keys_of
from kr.store.entries import framework_key
from kr.store.requests import Need
from kr.store.session import Session, insert_into, json_list
from kr.values import Entry

Keys = dict[str, int]

_HAS_KEYS = "UPDATE entries SET keys_version = :version WHERE id = :id"
_CLEAR = "DELETE FROM entry_terms WHERE entry_id = :id"
_PUT = insert_into("entry_terms", ("framework_key", "term", "entry_id", "fields"))
_HOLDING = (
    "SELECT entry_id, term, fields FROM entry_terms "
    "WHERE framework_key IN (SELECT value FROM json_each(:keys)) AND term IN (SELECT value FROM json_each(:terms))"
)
_NEEDS = (
    "SELECT entry_id, term, fields FROM entry_terms "
    f"WHERE entry_id IN (SELECT value FROM json_each(:ids)) AND fields & {NEED} <> 0"
)


class Terms:
    """Keeps the keys of entries in the caller's transaction. They go with their entry's row."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def put(self, entry: Entry, keys: Mapping[str, int]) -> None:
        """Keep the keys of a live entry in place of those it had; one that is gone meanwhile needs none."""
        if not self._session.execute(_HAS_KEYS, id=entry.id, version=VERSION):
            return
        self._session.execute(_CLEAR, id=entry.id)
        framework = framework_key(entry.framework)
        rows = [
            {"framework_key": framework, "term": term, "entry_id": entry.id, "fields": places}
            for term, places in keys.items()
        ]
        self._session.execute_many(_PUT, rows)

    def make(self, entry: Entry, wordings: Iterable[Need], report: str) -> None:
        """Make the keys of a live entry and keep them."""
        own = (entry.topic, entry.tags, entry.question)
        self.put(entry, keys_of(own, wordings, report))

    def holding(self, framework_keys: Iterable[str], terms: Iterable[str]) -> dict[str, Keys]:
        """Return the entries of the frameworks that have some of the terms, by id, with where these stand."""
        wanted = {"keys": json_list([*framework_keys]), "terms": json_list([*terms])}
        return _grouped(self._session.rows(_HOLDING, wanted))

    def needs(self, entry_ids: Iterable[str]) -> dict[str, Keys]:
        """Return the keys of the entries' needs, by id: what only their reports have is left out."""
        return _grouped(self._session.rows(_NEEDS, ids=json_list([*entry_ids])))


def _grouped(rows: Sequence[sqlite3.Row]) -> dict[str, Keys]:
    found: dict[str, Keys] = {}
    for entry_id, term, places in rows:
        found.setdefault(entry_id, {})[term] = places
    return found


_VECTORS = (
    "SELECT entry_id, vector FROM entry_vectors "
    "WHERE model = :model AND entry_id IN (SELECT value FROM json_each(:ids))"
)
_PUT_VECTOR = "INSERT OR REPLACE INTO entry_vectors (entry_id, model, vector) SELECT id, :model, :vector FROM entries WHERE id = :id"
_FORGET_VECTORS = "DELETE FROM entry_vectors WHERE entry_id IN (SELECT value FROM json_each(:ids))"


class Vectors:
    """Keeps packed vectors (``kr.matching.learning``) in the caller's transaction. They go with their entry's row."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def of(self, model: str, entry_ids: Iterable[str]) -> dict[str, bytes]:
        """Return the vectors that are known of these entries."""
        rows = self._session.rows(_VECTORS, model=model, ids=json_list([*entry_ids]))
        return {row["entry_id"]: row["vector"] for row in rows}

    def put(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Keep the vectors of entries, by id, in place of those of the same model; an entry that is gone needs none."""
        self._session.execute_many(
            _PUT_VECTOR,
            [{"id": entry_id, "model": model, "vector": vector} for entry_id, vector in vectors.items()],
        )

    def forget(self, entry_ids: Iterable[str]) -> None:
        """Delete the vectors of entries, whatever model they are of."""
        self._session.execute(_FORGET_VECTORS, ids=json_list([*entry_ids]))
