"""Texts of reports, kept by their hash for good, and the revisions of entries (tables ``report_texts`` and ``revisions``)."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass, fields

from kr.frameworks import framework_key
from kr.models import Entry
from kr.store.engine import Row, Transaction
from kr.store.entries import STALE_BASELINE, stale_reason, topic_key
from kr.store.sql import named, upsert_into
from kr.text import digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """An earlier text of an entry, or one that was kept beside its current one."""

    entry_id: str
    revision: int
    sha256: str
    framework_version: str | None
    confidence: str | None
    origin: str | None
    written_by: str | None
    researched_at: str | None
    fresh_until: str | None
    status: str | None
    """``stale`` for a report on a stale baseline."""
    replaced_at: str


_NAMES = tuple(field.name for field in fields(Revision))
_SELECT = f"SELECT {', '.join(_NAMES)} FROM revisions"
_ADD = upsert_into("revisions", (*_NAMES, "path", "framework_key", "topic_key"), "entry_id", "revision")


def keep(tx: Transaction, text: str) -> str:
    """Store a text unless it is there already; return its hash. No text is ever deleted."""
    hashed = digest(text)
    tx.execute(
        "INSERT INTO report_texts (sha256, text) VALUES (:sha256, :text) ON CONFLICT DO NOTHING",
        sha256=hashed,
        text=text,
    )
    return hashed


def text(tx: Transaction, sha256: str | None) -> str | None:
    found: str | None = tx.value("SELECT text FROM report_texts WHERE sha256 = :sha256", sha256=sha256)
    return found


def texts(tx: Transaction, hashes: Iterable[str | None]) -> dict[str | None, str]:
    """Return those of the texts that are kept, by their hash."""
    listed, parameters = named("sha256", {it for it in hashes if it is not None})
    rows = tx.rows(f"SELECT sha256, text FROM report_texts WHERE sha256 IN {listed}", **parameters)
    return {row["sha256"]: row["text"] for row in rows}


def has(tx: Transaction, sha256: str) -> bool:
    return tx.row("SELECT 1 FROM report_texts WHERE sha256 = :sha256", sha256=sha256) is not None


def get(tx: Transaction, entry_id: str, number: int) -> Revision | None:
    return next((it for it in of_entry(tx, entry_id) if it.revision == number), None)


def of_entry(tx: Transaction, entry_id: str) -> list[Revision]:
    """Return an entry's revisions, oldest first; those of an entry that is gone too."""
    return [
        _revision(row) for row in tx.rows(f"{_SELECT} WHERE entry_id = :id ORDER BY revision", id=entry_id)
    ]


def next_number(tx: Transaction, entry_id: str) -> int:
    """Return the number of the next text of an id: one that no text had, and nobody rated."""
    rows = tx.rows(
        "SELECT max(revision) FROM revisions WHERE entry_id = :id UNION ALL "
        "SELECT max(revision) FROM ratings WHERE entry_id = :id UNION ALL "
        "SELECT max(revision) FROM entries WHERE id = :id UNION ALL "
        "SELECT max(revision) FROM archived_entries WHERE id = :id",
        id=entry_id,
    )
    return max(row[0] or 0 for row in rows) + 1


def add(tx: Transaction, entry: Entry, at: str) -> None:
    """Keep an entry's text as the revision of its number: another one takes its place, or it stands beside the current one."""
    if entry.sha256 is None or not has(tx, entry.sha256):
        return
    revision = Revision(
        entry_id=entry.id,
        revision=entry.revision,
        sha256=entry.sha256,
        framework_version=entry.framework_version,
        confidence=entry.confidence,
        origin=entry.origin,
        written_by=entry.written_by,
        researched_at=entry.researched_at or entry.created,
        fresh_until=entry.fresh_until,
        status="stale" if stale_reason(tx, entry.id) == STALE_BASELINE and entry.status == "stale" else None,
        replaced_at=at,
    )
    tx.execute(
        _ADD,
        **asdict(revision),
        path=entry.path,
        framework_key=framework_key(entry.framework),
        topic_key=topic_key(entry.topic),
    )


def _revision(row: Row) -> Revision:
    return Revision(**{name: row[name] for name in _NAMES})
