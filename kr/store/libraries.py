"""What sources taught about a framework: its Context7 library id and its repository (SPEC 3.5)."""

import json
from collections.abc import Sequence
from datetime import datetime

import sqlalchemy as sa

from kr.store import times
from kr.store.keys import framework_key
from kr.store.lists import texts_of
from kr.store.rows import Library
from kr.store.schema import libraries


class Libraries:
    """Reads and writes that memory in the caller's transaction."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def get(self, framework: str) -> Library | None:
        """Return what is known of a framework (whichever of its names)."""
        row = self._connection.execute(
            sa.select(libraries).where(libraries.c.framework_key == framework_key(framework))
        ).one_or_none()
        if row is None:
            return None
        return Library(
            library_id=row.library_id,
            versions=texts_of(row.versions),
            repository=row.repository,
            learned_at=row.learned_at,
        )

    def put(
        self,
        framework: str,
        *,
        now: datetime,
        library_id: str | None = None,
        versions: Sequence[str] = (),
        repository: str | None = None,
    ) -> None:
        """Remember what is given; None leaves what was known. ``versions`` belong to ``library_id``."""
        listed = json.dumps(list(versions)) if library_id is not None else None
        learned = {"library_id": library_id, "versions": listed, "repository": repository}
        values = {name: value for name, value in learned.items() if value is not None}
        if not values:
            return
        values["learned_at"] = times.to_text(now)
        key = framework_key(framework)
        changed = self._connection.execute(
            sa.update(libraries).where(libraries.c.framework_key == key).values(**values)
        )
        if not changed.rowcount:
            self._connection.execute(sa.insert(libraries).values(framework_key=key, **values))
