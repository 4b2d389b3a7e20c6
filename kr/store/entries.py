"""The live index (table ``entries``)."""

from collections.abc import Iterable
from typing import Any

from kr.frameworks import framework_key
from kr.models import Confidence, Entry, Origin
from kr.store import search
from kr.store.engine import Transaction
from kr.store.lookup import COLUMNS, KEYS, keywords_key, question_key, to_entry, topic_key
from kr.store.sql import columns_of, named, upsert_into
from kr.times import major_key, same_major

STALE_BASELINE = "an older report stood in: nothing was found then"
"""The ``stale_reason`` of a report on a stale baseline, which is not served as researched."""

_COLUMNS = ", ".join(COLUMNS)
_PUT = upsert_into("entries", (*COLUMNS, *KEYS), "id")


def _select(tx: Transaction, rest: str, **parameters: object) -> list[Entry]:
    return [to_entry(row) for row in tx.rows(f"SELECT {_COLUMNS} FROM entries {rest}", **parameters)]


def get(tx: Transaction, entry_id: str) -> Entry | None:
    return next(iter(_select(tx, "WHERE id = :id", id=entry_id)), None)


def some(tx: Transaction, entry_ids: Iterable[str]) -> list[Entry]:
    ids, parameters = named("id", entry_ids)
    return _select(tx, f"WHERE id IN {ids} ORDER BY id", **parameters)


def all(tx: Transaction) -> list[Entry]:  # noqa: A001 - read as entries.all(tx)
    return _select(tx, "ORDER BY id")


def browse(tx: Transaction, framework: str | None = None) -> list[Entry]:
    """Return the entries of one framework (whichever of its names) or all, the last accessed first."""
    where = "" if framework is None else "WHERE framework_key = :key"
    return _select(tx, f"{where} ORDER BY last_accessed DESC, id", key=framework_key(framework or ""))


def of_pair(tx: Transaction, framework: str, topic: str) -> list[Entry]:
    """Return the entries of a framework and topic (equal by their keys): one for each major version."""
    return _select(
        tx,
        "WHERE framework_key = :framework AND topic_key = :topic ORDER BY id",
        framework=framework_key(framework),
        topic=topic_key(topic),
    )


def of_topic(tx: Transaction, framework: str, topic: str, version: str) -> Entry | None:
    """Return the entry that a report for a version renews; see ``of_major``."""
    return of_major(of_pair(tx, framework, topic), version)


def of_major(same: Iterable[Entry], version: str) -> Entry | None:
    """Return the entry of a version's major; best one whose version is known, then the last used."""
    wanted = major_key(version)
    fitting = [it for it in same if same_major(it.framework_version, version)]
    return max(
        fitting,
        key=lambda it: (major_key(it.framework_version) == wanted, it.last_accessed, it.id),
        default=None,
    )


def ids(tx: Transaction) -> list[str]:
    return [row[0] for row in tx.rows("SELECT id FROM entries")]


def known_paths(tx: Transaction) -> set[str]:
    """Return every path that a live or archived report has."""
    return {row[0] for row in tx.rows("SELECT path FROM entries UNION SELECT path FROM archived_entries")}


def count(tx: Transaction) -> int:
    return int(tx.value("SELECT count(*) FROM entries"))


def mark_stale(tx: Transaction, entry_id: str, reason: str, *, major: str | None = None) -> bool:
    """Mark an entry for one ``major`` version or for all (None). False when it is gone or marked already."""
    is_new = "status <> 'stale'" if major is not None else "(status <> 'stale' OR stale_major IS NOT NULL)"
    changed = tx.execute(
        f"UPDATE entries SET status = 'stale', stale_reason = :reason, stale_major = :major WHERE id = :id AND {is_new}",
        id=entry_id,
        reason=reason,
        major=major,
    )
    return bool(changed)


def refresh(tx: Transaction, entry_id: str, *, fresh_until: str | None) -> None:
    """Take a mark of staleness back: somebody said that the text works. ``fresh_until`` is a new hard end."""
    tx.execute(
        "UPDATE entries SET status = 'fresh', stale_reason = NULL, stale_major = NULL, "
        "fresh_until = coalesce(:fresh_until, fresh_until) WHERE id = :id",
        id=entry_id,
        fresh_until=fresh_until,
    )


def set_confidence(tx: Transaction, entry_id: str, confidence: Confidence) -> None:
    tx.execute(
        "UPDATE entries SET confidence = :confidence WHERE id = :id", id=entry_id, confidence=confidence
    )


def set_question(tx: Transaction, entry_id: str, question: str, *, at: str) -> None:
    """Note what was asked, and when, in every row of the id that doesn't know it: it was researched elsewhere."""
    for table in ("entries", "archived_entries"):
        # A report's own header names only the day of its research.
        tx.execute(
            f"UPDATE {table} SET question = :question, question_key = :key, researched_at = "
            "CASE WHEN researched_at IS NULL OR substr(researched_at, 1, 10) = substr(:at, 1, 10) THEN :at "
            "ELSE researched_at END WHERE id = :id AND coalesce(question, :question) = :question",
            id=entry_id,
            question=question,
            key=question_key(question),
            at=at,
        )
    index_again(tx, entry_id)


def set_writer(
    tx: Transaction,
    entry_id: str,
    sha256: str,
    *,
    origin: Origin,
    confidence: Confidence,
    written_by: str | None,
) -> None:
    """Note who wrote a text of an id, live, archived or an earlier one, where it came from elsewhere and nobody says."""
    for table, name in (("entries", "id"), ("archived_entries", "id"), ("revisions", "entry_id")):
        tx.execute(
            f"UPDATE {table} SET origin = :origin, confidence = :confidence, written_by = :written_by "
            f"WHERE {name} = :id AND sha256 = :sha256 AND (written_by IS NULL AND origin <> 'finding' "
            "OR written_by = 'file' AND :written_by <> 'file')",
            id=entry_id,
            sha256=sha256,
            origin=origin,
            confidence=confidence,
            written_by=written_by,
        )


def put(tx: Transaction, entry: Entry) -> None:
    """Insert an entry, or overwrite the one with its id."""
    tx.execute(_PUT, **to_values(entry))
    search.index_entry(tx, entry)


def remove(tx: Transaction, entry_id: str) -> bool:
    """Delete an entry; its revisions stay. False when there is none."""
    is_gone = bool(tx.execute("DELETE FROM entries WHERE id = :id", id=entry_id))
    search.prune(tx)
    return is_gone


def index_again(tx: Transaction, entry_id: str) -> None:
    """Have a live entry found by the words that it has now; nothing to do for one that is not live."""
    tx.lock(f"entry {entry_id}")
    if (entry := get(tx, entry_id)) is not None:
        search.index_entry(tx, entry)


def to_values(entry: Entry) -> dict[str, Any]:
    """Return an entry's columns, with those by which rows are compared."""
    return columns_of(entry) | {
        "framework_key": framework_key(entry.framework),
        "topic_key": topic_key(entry.topic),
        "major": major_key(entry.framework_version),
        "question_key": None if entry.question is None else question_key(entry.question),
        "keywords_key": keywords_key(entry.topic),
    }
