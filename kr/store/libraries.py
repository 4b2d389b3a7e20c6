"""What sources taught about a framework: its Context7 library id and its repository (SPEC 3.5)."""

import json
from collections.abc import Sequence
from datetime import datetime

from kr.store import times
from kr.store.keys import framework_key
from kr.store.lists import texts_of
from kr.store.rows import Library
from kr.store.session import Session, insert_into

_GET = "SELECT library_id, versions, repository, learned_at FROM libraries WHERE framework_key = :key"
_PUT = (
    insert_into("libraries", ("framework_key", "library_id", "versions", "repository", "learned_at"))
    + " ON CONFLICT (framework_key) DO UPDATE SET learned_at = excluded.learned_at, "
    + ", ".join(
        f"{name} = ifnull(excluded.{name}, {name})" for name in ("library_id", "versions", "repository")
    )
)


class Libraries:
    """Reads and writes that memory in the caller's transaction."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def get(self, framework: str) -> Library | None:
        """Return what is known of a framework (whichever of its names)."""
        row = self._session.row(_GET, key=framework_key(framework))
        if row is None:
            return None
        return Library(**{**row, "versions": texts_of(row["versions"])})

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
        if any(value is not None for value in learned.values()):
            now_known = {"framework_key": framework_key(framework), "learned_at": times.to_text(now)}
            self._session.execute(_PUT, {**learned, **now_known})
