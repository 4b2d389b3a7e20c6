"""The live index, the archive, and the capacity guard that moves entries from one to the other (F1, "Cache Capacity Guard").

What is said of entries stands with them: wordings, ratings, and findings that wait for a person.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from kr import slugs
from kr.errors import StoreError, UnknownEntry
from kr.frameworks import framework_key
from kr.models import Entry
from kr.slugs import Name
from kr.store import lookup
from kr.store.engine import Row, Transaction, named, texts_of
from kr.store.lookup import COLUMNS, KEYS, keywords_key, question_key, to_entry, topic_key
from kr.text import digest, nearest, one_line
from kr.times import from_text, major_key, oldest_live, same_major, to_text

STALE_BASELINE = "an older report stood in: nothing was found then"
"""The ``stale_reason`` of a report on a stale baseline, which is not served as researched."""
ARCHIVE_CHANGES = "archive_changes"
"""The key of how often archived rows left."""
_LONGEST_ID = 200
_MOST_SUFFIXES = 100
_NAMES = ", ".join(COLUMNS)
_SHARED = ", ".join((*(name for name in COLUMNS if name != "status"), *KEYS))

_MOST_WORDINGS = 20
"""How many wordings an entry keeps: the newest."""

ArchiveReason = Literal["lru", "age", "manual"]
Pair = tuple[str, str]
"""A framework and a topic, by their keys."""


@dataclass(frozen=True, slots=True)
class Archived:
    """An archived row: the entry as it was (its status before), and when and why it left the index."""

    archive_id: int
    entry: Entry
    archived_at: str
    reason: str


def get(tx: Transaction, entry_id: str) -> Entry | None:
    return next(iter(find(tx, id=entry_id)), None)


def find(tx: Transaction, **wanted: str) -> list[Entry]:
    """Return the entries with these values in their columns, the last accessed first."""
    return _select(tx, f"{_where(wanted)} ORDER BY last_accessed DESC, id", **wanted)


def some(tx: Transaction, entry_ids: Iterable[str]) -> list[Entry]:
    ids, parameters = named("id", entry_ids)
    return _select(tx, f"WHERE id IN {ids} ORDER BY id", **parameters)


def all(tx: Transaction) -> list[Entry]:  # noqa: A001 - read as entries.all(tx)
    return _select(tx, "ORDER BY id")


def pair_of(framework: str, topic: str) -> Pair:
    """Return the pair by which entries are told apart, majors aside."""
    return framework_key(framework), topic_key(topic)


def of_pair(tx: Transaction, framework: str, topic: str) -> list[Entry]:
    """Return the entries of a framework and topic (equal by their keys): one for each major version."""
    return find(tx, framework_key=framework_key(framework), topic_key=topic_key(topic))


def of_major(same: Iterable[Entry], version: str) -> Entry | None:
    """Return the entry of a version's major; best one whose version is known, then the last used."""
    fitting = [it for it in same if same_major(it.framework_version, version)]
    known = [it for it in fitting if major_key(it.framework_version) == major_key(version)]
    return max(known or fitting, key=lambda it: (it.last_accessed, it.id), default=None)


def count(tx: Transaction) -> int:
    return int(tx.value("SELECT count(*) FROM entries"))


def put(tx: Transaction, entry: Entry) -> None:
    """Insert an entry, or overwrite the one with its id."""
    tx.insert("entries", _row_of(entry), "id")
    lookup.index_entry(tx, entry)


def update(tx: Transaction, entry_id: str, **columns: str | None) -> None:
    """Set columns that neither the search nor a comparison needs."""
    changes = ", ".join(f"{name} = :{name}" for name in columns)
    tx.execute(f"UPDATE entries SET {changes} WHERE id = :id", id=entry_id, **columns)


def mark_stale(tx: Transaction, entry_id: str, reason: str, *, major: str | None = None) -> bool:
    """Mark an entry for one ``major`` version or for all (None). False when it is gone or marked already."""
    is_new = "status <> 'stale'" if major is not None else "(status <> 'stale' OR stale_major IS NOT NULL)"
    marked = f"UPDATE entries SET status = 'stale', stale_reason = :reason, stale_major = :major WHERE id = :id AND {is_new}"
    return bool(tx.execute(marked, id=entry_id, reason=reason, major=major))


def set_question(tx: Transaction, entry_id: str, question: str, *, at: str) -> None:
    """Note what was asked, and when, in every row of the id that doesn't know it: it was researched elsewhere."""
    # A report's own header names only the day of its research.
    noted = (
        "SET question = :question, question_key = :key, researched_at = "
        "CASE WHEN researched_at IS NULL OR substr(researched_at, 1, 10) = substr(:at, 1, 10) THEN :at "
        "ELSE researched_at END WHERE id = :id AND coalesce(question, :question) = :question"
    )
    for table in ("entries", "archived_entries"):
        tx.execute(
            f"UPDATE {table} {noted}", id=entry_id, question=question, key=question_key(question), at=at
        )
    index_again(tx, entry_id)


def set_writer(tx: Transaction, entry_id: str, sha256: str, **writer: str | None) -> None:
    """Note who wrote a text of an id, live, archived or an earlier one, where it came from elsewhere and nobody says.

    ``writer`` is origin, confidence and written_by.
    """
    noted = (
        "SET origin = :origin, confidence = :confidence, written_by = :written_by WHERE sha256 = :sha256 AND "
        "(written_by IS NULL AND origin <> 'finding' OR written_by = 'file' AND :written_by <> 'file')"
    )
    for table, name in (("entries", "id"), ("archived_entries", "id"), ("revisions", "entry_id")):
        tx.execute(f"UPDATE {table} {noted} AND {name} = :id", id=entry_id, sha256=sha256, **writer)


def index_again(tx: Transaction, entry_id: str) -> None:
    """Have a live entry found by the words that it has now; nothing to do for one that is not live."""
    tx.lock(f"entry {entry_id}")
    if (entry := get(tx, entry_id)) is not None:
        lookup.index_entry(tx, entry)


def archived(tx: Transaction, **wanted: str) -> list[Archived]:
    """Return the archived rows with these values in their columns, the last archived first."""
    return _archived(tx, f"{_where(wanted)} ORDER BY archive_id DESC", **wanted)


def archived_since(tx: Transaction, archive_id: int) -> list[Archived]:
    """Return the rows that were archived after one, in the order in which they were archived."""
    return _archived(tx, "WHERE archive_id > :after ORDER BY archive_id", after=archive_id)


def archived_count(tx: Transaction) -> tuple[int, int]:
    """Return how many rows are archived, and the number of the one that was archived last; 0 when none is."""
    [row] = tx.rows("SELECT count(*) AS number, coalesce(max(archive_id), 0) AS last FROM archived_entries")
    return row["number"], row["last"]


def unarchive(tx: Transaction, archive_id: int) -> bool:
    """Remove a row that becomes live again; False when it is not there. The export learns of it by ``ARCHIVE_CHANGES``."""
    tx.note(ARCHIVE_CHANGES, str(int(tx.fact(ARCHIVE_CHANGES) or 0) + 1))
    return bool(tx.execute("DELETE FROM archived_entries WHERE archive_id = :id", id=archive_id))


def add_archived(tx: Transaction, entry: Entry, reason: ArchiveReason, at: str) -> None:
    """Put an entry into the archive that was archived elsewhere; ``at`` is stored text."""
    more = {"status": "archived", "prior_status": entry.status, "archived_at": at, "reason": reason}
    tx.insert("archived_entries", _row_of(entry) | more)


def archive(tx: Transaction, entry_id: str, reason: ArchiveReason, now: datetime) -> bool:
    """Move a live entry to the archive; False when there is none."""
    return bool(_move(tx, "id = :id", reason, now, id=entry_id))


def enforce_capacity(tx: Transaction, now: datetime, *, keep: str = "") -> tuple[int, int]:
    """Archive what was not accessed for too many UTC days, then evict down to the most entries; ``keep`` is the id that stays.

    Returns how many were archived, and how many evicted: in the order of the view ``next_evictions``.
    """
    today = from_text(to_text(now)).date()
    limit = oldest_live(today, tx.store.archive_after_days).isoformat()
    aged = _move(tx, "last_accessed < :limit AND id <> :keep", "age", now, limit=limit, keep=keep)
    too_many = count(tx) - tx.store.max_entries
    if too_many <= 0:
        return aged, 0
    oldest = "id IN (SELECT id FROM next_evictions WHERE id <> :keep ORDER BY position LIMIT :most)"
    return aged, _move(tx, oldest, "lru", now, keep=keep, most=too_many)


def _move(tx: Transaction, where: str, reason: ArchiveReason, now: datetime, **parameters: object) -> int:
    copied = (
        f"INSERT INTO archived_entries ({_SHARED}, status, prior_status, archived_at, reason) "
        f"SELECT {_SHARED}, 'archived', status, :now, :reason FROM entries WHERE {where} ORDER BY last_accessed, id"
    )
    tx.execute(copied, now=to_text(now), reason=reason, **parameters)
    moved = tx.execute(f"DELETE FROM entries WHERE {where}", **parameters)
    if moved:
        lookup.prune(tx)
    return moved


def unknown_entry(tx: Transaction, entry_id: str, *, in_archive: bool = False) -> UnknownEntry:
    """Say that no live entry, or none ``in_archive``, has this id, and which come near."""
    shown = f'"{one_line(entry_id, _LONGEST_ID)}"'
    if in_archive and get(tx, entry_id) is not None:
        return UnknownEntry(f"{shown} is not in the archive: it is live; see kr entries show")
    if not in_archive and archived(tx, id=entry_id):
        how = f"kr archive restore {entry_id} brings it back"
        return UnknownEntry(f"{shown} is in the archive, not in the index; {how}")
    what, table = ("archived entry", "archived_entries") if in_archive else ("entry", "entries")
    alike = nearest(entry_id, tx.column(f"SELECT DISTINCT id FROM {table}"), most=3)
    if not alike:
        return UnknownEntry(
            f"no {what} has the id {shown}; kr {'archive' if in_archive else 'entries'} list shows them"
        )
    nearby = ", ".join(one_line(found, _LONGEST_ID) for found in alike)
    return UnknownEntry(f"no {what} has the id {shown}; nearest: {nearby}")


# --- names: two frameworks or topics never share an id or a path, live, archived or in the history


def holders(tx: Transaction, column: Literal["id", "path"], value: str) -> list[tuple[Pair, bool]]:
    """Return the pairs of the rows of index, archive and history that hold an id, or a path, each with whether it is live."""
    of_revision = "entry_id" if column == "id" else "path"
    rows = tx.rows(
        f"SELECT framework_key, topic_key, 1 AS is_live FROM entries WHERE {column} = :value "
        f"UNION ALL SELECT framework_key, topic_key, 0 FROM archived_entries WHERE {column} = :value "
        f"UNION ALL SELECT framework_key, topic_key, 0 FROM revisions WHERE {of_revision} = :value",
        value=value,
    )
    return [((row["framework_key"], row["topic_key"]), bool(row["is_live"])) for row in rows]


def free_name(tx: Transaction, framework: str, topic: str, version: str) -> Name:
    """Return the first free name for a new entry. Raises ``StoreError`` when there is none."""
    pair = pair_of(framework, topic)
    others = [*of_pair(tx, framework, topic)]
    others += [it.entry for it in archived(tx, framework_key=pair[0], topic_key=pair[1])]
    has_others = any(not same_major(other.framework_version, version) for other in others)
    for name in wanted_names(framework, topic, version, has_others=has_others):
        if is_free(tx, name, pair):
            return name
    raise StoreError(f"{framework} - {topic}: every name for its report is taken")


def is_free(tx: Transaction, name: Name, pair: Pair, text: str | None = None) -> bool:
    """Tell whether no live entry, and no other framework or topic, has a name.

    A file that kr did not write at its path is in the way as well, unless it holds the ``text`` that is to stand there.
    """
    held = (*holders(tx, "id", name.id), *holders(tx, "path", name.path))
    if any(is_live or it != pair for it, is_live in held) or tx.files.is_blocked(name.path):
        return False
    return edit_at(tx, name.path, None) in {None, text}


def wanted_names(framework: str, topic: str, version: str, *, has_others: bool) -> Iterator[Name]:
    """Give the names to try, in order; ``has_others``: other major versions of framework and topic have theirs."""
    wanted = [slugs.base_name(framework, topic), slugs.suffixed_name(framework, topic)]
    if has_others:
        wanted = [slugs.versioned_name(name, major_key(version)) for name in wanted]
    yield from wanted
    stem = wanted[-1].path.removesuffix(".md")
    for number in range(2, _MOST_SUFFIXES):
        yield Name(f"{wanted[-1].id}-{number}", f"{stem}-{number}.md")


def edit_at(tx: Transaction, path: str, sha256: str | None) -> str | None:
    """Return what somebody wrote into the file at a path, whose own text has this hash; None: nothing that kr doesn't know.

    A torn file (its end is missing, or zeros) and an earlier text of kr's are no edits.
    """
    content = tx.files.read(path) or b""
    text = content.decode(errors="replace")
    if not text.strip("\0").strip():
        return None
    own = (lookup.text_of(tx, sha256) or "").encode()
    is_torn = own.startswith(content.rstrip(b"\0")) and not content.endswith(b"\n")
    return None if is_torn or lookup.text_of(tx, digest(text)) is not None else text


# --- what is said of entries: it belongs to the id, and so stays with it through the archive and back


def wordings_of(tx: Transaction, entry_id: str) -> list[Row]:
    """Return the rows of ``wordings`` of an id, oldest first. One that is ``proved`` serves by itself."""
    rows = tx.rows("SELECT * FROM wordings WHERE entry_id = :id ORDER BY id", id=entry_id)
    return [row | {"tags": texts_of(row["tags"]), "proved": bool(row["proved"])} for row in rows]


def keep_wording(tx: Transaction, entry: Entry, wording: Row) -> None:
    """Keep how a request worded an entry's need (``at, topic, tags, question, session_id, proved``), and have the entry found by it.

    It is proved where the caller says so, or once two sessions used the entry for it.
    """
    key = question_key(wording["question"])
    if key == question_key(entry.question or ""):
        return
    known = tx.row(
        "SELECT * FROM wordings WHERE entry_id = :id AND question_key = :key", id=entry.id, key=key
    )
    is_proved = wording.get("proved", False)
    if known is not None:
        if not known["proved"] and (is_proved or known["session_id"] != wording.get("session_id")):
            tx.execute("UPDATE wordings SET proved = true WHERE id = :id", id=known["id"])
        return
    tx.insert("wordings", wording | {"entry_id": entry.id, "question_key": key, "proved": is_proved})
    newest = f"SELECT id FROM wordings WHERE entry_id = :id ORDER BY id DESC LIMIT {_MOST_WORDINGS}"
    tx.execute(f"DELETE FROM wordings WHERE entry_id = :id AND id NOT IN ({newest})", id=entry.id)
    index_again(tx, entry.id)


def prove_wording(tx: Transaction, entry_id: str, question: str) -> None:
    """Have a wording serve by itself: the entry worked for who asked so."""
    changed = "UPDATE wordings SET proved = true WHERE entry_id = :id AND question_key = :question"
    tx.execute(changed, id=entry_id, question=question_key(question))


def unprove_wordings(tx: Transaction, entry_id: str) -> None:
    """Have no wording of an entry serve by itself any more, until somebody confirms it anew: they still rank."""
    tx.execute("UPDATE wordings SET proved = false WHERE entry_id = :id", id=entry_id)


def forget_wordings(tx: Transaction, entry: Entry, session_id: str) -> None:
    """Delete the wordings of a session for which the entry was wrong."""
    deleted = "DELETE FROM wordings WHERE entry_id = :id AND session_id = :session"
    if tx.execute(deleted, id=entry.id, session=session_id):
        index_again(tx, entry.id)


def rate(tx: Transaction, rating: Row) -> None:
    """Keep a row of ``ratings``. A session counts once for a text, by its last word."""
    tx.insert("ratings", rating, "entry_id", "revision", "session_id")


def ratings_of(tx: Transaction, entry: Entry) -> list[Row]:
    """Return what was said of an entry's current text, oldest first."""
    said = "SELECT * FROM ratings WHERE entry_id = :id AND revision = :revision ORDER BY at"
    return tx.rows(said, id=entry.id, revision=entry.revision)


def rated_wrong(tx: Transaction) -> list[str]:
    """Return the live entries of which more sessions say that they are wrong than that they worked, the last said first."""
    return tx.column(
        "SELECT e.id FROM entries AS e JOIN ratings AS r ON r.entry_id = e.id AND r.revision = e.revision "
        "GROUP BY e.id HAVING count(*) FILTER (WHERE r.outcome = 'wrong') > count(*) FILTER (WHERE r.outcome = 'worked') "
        "ORDER BY max(r.at) DESC"
    )


def quarantine(tx: Transaction, finding: Row) -> None:
    """Have a finding wait for a person, served to nobody; one that waits already stays as it is.

    ``request`` is the finding as it was handed over, without its secrets; ``reasons`` say why it waits.
    """
    if not quarantined(tx, finding["id"]):
        tx.insert("quarantine", finding | {"request": json.dumps(finding["request"], ensure_ascii=False)})


def quarantined(tx: Transaction, finding_id: str | None = None) -> list[Row]:
    """Return what waits under an id, or all that waits, the oldest first."""
    where = "" if finding_id is None else "WHERE id = :id"
    rows = tx.rows(f"SELECT * FROM quarantine {where} ORDER BY at, id", id=finding_id)
    for row in rows:
        row |= {"reasons": texts_of(row["reasons"]), "request": json.loads(row["request"])}
    return rows


def end_quarantine(tx: Transaction, finding_id: str) -> None:
    tx.execute("DELETE FROM quarantine WHERE id = :id", id=finding_id)


def _where(wanted: Iterable[str]) -> str:
    where = " AND ".join(f"{name} = :{name}" for name in wanted)
    return f"WHERE {where}" if where else ""


def _select(tx: Transaction, rest: str, **parameters: object) -> list[Entry]:
    return [to_entry(row) for row in tx.rows(f"SELECT {_NAMES} FROM entries {rest}", **parameters)]


def _archived(tx: Transaction, rest: str, **parameters: object) -> list[Archived]:
    rows = tx.rows(
        f"SELECT {_NAMES}, archive_id, archived_at, reason, prior_status FROM archived_entries {rest}",
        **parameters,
    )
    return [
        Archived(
            row["archive_id"], to_entry(row, status=row["prior_status"]), row["archived_at"], row["reason"]
        )
        for row in rows
    ]


def _row_of(entry: Entry) -> Row:
    """Return an entry's columns, with those by which rows are compared."""
    return {
        **{name: getattr(entry, name) for name in COLUMNS},
        "framework_key": framework_key(entry.framework),
        "topic_key": topic_key(entry.topic),
        "major": major_key(entry.framework_version),
        "question_key": None if entry.question is None else question_key(entry.question),
        "keywords_key": keywords_key(entry.topic),
    }
