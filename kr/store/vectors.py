"""The needs of live entries as a model of embeddings sees them: table ``entry_vectors`` (SPEC 3.2)."""

from collections.abc import Iterable, Mapping

import sqlalchemy as sa

from kr.store.schema import entries, entry_vectors


class Vectors:
    """Keeps packed vectors (``kr.matching.vectors``) in the caller's transaction. They go with their entry's row."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def of(self, model: str, entry_ids: Iterable[str]) -> dict[str, bytes]:
        """Return the vectors that are known of these entries."""
        wanted = sa.select(entry_vectors.c.entry_id, entry_vectors.c.vector).where(
            entry_vectors.c.model == model, entry_vectors.c.entry_id.in_(list(entry_ids))
        )
        return {row.entry_id: row.vector for row in self._connection.execute(wanted)}

    def put(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Keep the vectors of entries, by id, in place of those of the same model; an entry that is gone needs none."""
        live = sa.select(entries.c.id).where(entries.c.id.in_(list(vectors)))
        for entry_id in self._connection.execute(live).scalars().all():
            mine = (entry_vectors.c.entry_id == entry_id, entry_vectors.c.model == model)
            self._connection.execute(sa.delete(entry_vectors).where(*mine))
            self._connection.execute(
                sa.insert(entry_vectors).values(entry_id=entry_id, model=model, vector=vectors[entry_id])
            )

    def forget(self, entry_ids: Iterable[str]) -> None:
        """Delete the vectors of entries, whatever model they are of."""
        self._connection.execute(
            sa.delete(entry_vectors).where(entry_vectors.c.entry_id.in_(list(entry_ids)))
        )
