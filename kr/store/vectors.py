"""The needs of live entries as a model of embeddings sees them: table ``entry_vectors`` (SPEC 3.2)."""

from collections.abc import Iterable, Mapping

from kr.store.session import Session, json_list

_OF = (
    "SELECT entry_id, vector FROM entry_vectors "
    "WHERE model = :model AND entry_id IN (SELECT value FROM json_each(:ids))"
)
_PUT = "INSERT OR REPLACE INTO entry_vectors (entry_id, model, vector) SELECT id, :model, :vector FROM entries WHERE id = :id"
_FORGET = "DELETE FROM entry_vectors WHERE entry_id IN (SELECT value FROM json_each(:ids))"


class Vectors:
    """Keeps packed vectors (``kr.matching.vectors``) in the caller's transaction. They go with their entry's row."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def of(self, model: str, entry_ids: Iterable[str]) -> dict[str, bytes]:
        """Return the vectors that are known of these entries."""
        rows = self._session.rows(_OF, model=model, ids=json_list([*entry_ids]))
        return {row["entry_id"]: row["vector"] for row in rows}

    def put(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Keep the vectors of entries, by id, in place of those of the same model; an entry that is gone needs none."""
        self._session.execute_many(
            _PUT, [{"id": entry_id, "model": model, "vector": vector} for entry_id, vector in vectors.items()]
        )

    def forget(self, entry_ids: Iterable[str]) -> None:
        """Delete the vectors of entries, whatever model they are of."""
        self._session.execute(_FORGET, ids=json_list([*entry_ids]))
