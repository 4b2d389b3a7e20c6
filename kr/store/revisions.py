"""Texts of reports, kept by their hash for good, and the revisions that point to them (SPEC 3.8)."""

from datetime import datetime

import sqlalchemy as sa

from kr.store import times
from kr.store.hashing import decoded, digest
from kr.store.keys import framework_key, topic_key
from kr.store.rows import Revision
from kr.store.schema import report_texts, revisions
from kr.values import Entry


class Revisions:
    """Keeps texts in the caller's transaction. Nothing is ever deleted here."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def keep(self, text: str) -> str:
        """Store a text unless it is there already; return its hash."""
        sha256 = digest(text)
        if not self.has(sha256):
            self._connection.execute(sa.insert(report_texts).values(sha256=sha256, text=text))
        return sha256

    def text(self, sha256: str | None) -> str | None:
        """Return a stored text."""
        return self._connection.execute(
            sa.select(report_texts.c.text).where(report_texts.c.sha256 == sha256)
        ).scalar_one_or_none()

    def has(self, sha256: str) -> bool:
        """Return whether a text is stored."""
        return (
            self._connection.execute(
                sa.select(report_texts.c.sha256).where(report_texts.c.sha256 == sha256)
            ).one_or_none()
            is not None
        )

    def get(self, entry_id: str, number: int) -> Revision | None:
        """Return one revision of an entry."""
        return next((kept for kept in self.of_entry(entry_id) if kept.revision == number), None)

    def of_entry(self, entry_id: str) -> list[Revision]:
        """Return an entry's revisions, oldest first; those of an entry that is gone too."""
        columns = (revisions.c[name] for name in Revision.names())
        rows = self._connection.execute(
            sa.select(*columns).where(revisions.c.entry_id == entry_id).order_by(revisions.c.revision)
        )
        return [Revision(**row._mapping) for row in rows]  # noqa: SLF001 - the documented name

    def replace(self, new: Entry, old: Entry | None, on_disk: bytes | None, now: datetime) -> None:
        """Note what the text of ``new`` takes the place of.

        That is kr's own text of ``old``, and the bytes on disk (None or empty: there were none) if a person
        changed them since, or another program wrote them.
        """
        replaced = []
        if old is not None and old.sha256 is not None and self.has(old.sha256):
            replaced.append(old.sha256)
        if on_disk:
            replaced.append(self.keep(decoded(on_disk)))
        for sha256 in dict.fromkeys(replaced):
            if sha256 != new.sha256:
                self._add(new, sha256, old, now)

    def _add(self, new: Entry, sha256: str, old: Entry | None, now: datetime) -> None:
        last = self._connection.execute(
            sa.select(revisions.c.revision, revisions.c.sha256)
            .where(revisions.c.entry_id == new.id)
            .order_by(revisions.c.revision.desc())
            .limit(1)
        ).one_or_none()
        if last is not None and last.sha256 == sha256:
            return
        self._connection.execute(
            sa.insert(revisions).values(
                entry_id=new.id,
                revision=last.revision + 1 if last is not None else 1,
                sha256=sha256,
                path=new.path,
                framework_key=framework_key(new.framework),
                topic_key=topic_key(new.topic),
                framework_version=old.framework_version if old else None,
                confidence=old.confidence if old else None,
                researched_at=(old.researched_at or old.created) if old else None,
                replaced_at=times.to_text(now),
            )
        )
