"""Texts of reports and their revisions (tables ``report_texts`` and ``revisions``), their names, and the report files made of them.

The text in the database is the report. A file that is missing, torn, or holds an earlier text of kr's is made again; what somebody else
wrote into it becomes a finding, and the text before a revision, or it waits for a person. Two frameworks or topics never share an id or
a path, live, archived or in the history: see ``free_name``.
"""

import logging
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Literal

from kr import slugs
from kr.errors import ReportUnwritable, StoreError
from kr.frameworks import framework_key
from kr.models import Entry
from kr.slugs import Name
from kr.store import entries, lookup
from kr.store.engine import Row, Store, Transaction
from kr.store.lookup import text_in_file, text_of
from kr.text import digest
from kr.times import major_key, same_major, to_text

log = logging.getLogger(__name__)

Pair = tuple[str, str]
"""A framework and a topic, by their keys."""

HELD_FILE = "file-"
"""How the id of what waits begins when it stood in an edited report file."""
_MOST_SUFFIXES = 100
_SYNC_TIMEOUT = 0.2
"""Seconds that a reader waits for writers, to bring file and row together; the next reader tries again."""
_KEPT = (
    "revision",
    "sha256",
    "path",
    "framework_version",
    "confidence",
    "origin",
    "written_by",
    "fresh_until",
)
"""What a revision has of the entry."""


def keep(tx: Transaction, text: str) -> str:
    """Store a text unless it is there already; return its hash. No text is ever deleted."""
    hashed = digest(text)
    tx.execute(
        "INSERT INTO report_texts (sha256, text) VALUES (:sha256, :text) ON CONFLICT DO NOTHING",
        sha256=hashed,
        text=text,
    )
    return hashed


def revisions(tx: Transaction, entry_id: str) -> list[Row]:
    """Return an entry's revisions, oldest first; those of an entry that is gone too. What came from elsewhere may lack much."""
    return tx.rows("SELECT * FROM revisions WHERE entry_id = :id ORDER BY revision", id=entry_id)


def next_revision(tx: Transaction, entry_id: str) -> int:
    """Return the number of the next text of an id: one that no text had, and nobody rated."""
    return int(
        tx.value(
            "SELECT coalesce(max(revision), 0) + 1 FROM ("
            "SELECT revision FROM revisions WHERE entry_id = :id UNION ALL "
            "SELECT revision FROM ratings WHERE entry_id = :id UNION ALL "
            "SELECT revision FROM entries WHERE id = :id UNION ALL "
            "SELECT revision FROM archived_entries WHERE id = :id) AS known",
            id=entry_id,
        )
    )


def add_revision(tx: Transaction, entry: Entry, at: str) -> None:
    """Keep an entry's text as the revision of its number: another one takes its place, or it stands beside the current one."""
    if text_of(tx, entry.sha256) is None:
        return
    is_baseline = entry.status == "stale" and entry.stale_reason == entries.STALE_BASELINE
    framework, topic = pair_of(entry.framework, entry.topic)
    kept = {name: getattr(entry, name) for name in _KEPT} | {
        "entry_id": entry.id,
        "framework_key": framework,
        "topic_key": topic,
        "researched_at": entry.researched_at or entry.created,
        "status": "stale" if is_baseline else None,
        "replaced_at": at,
    }
    tx.insert("revisions", kept, "entry_id", "revision")


def read_report(store: Store, entry: Entry) -> str | None:
    """Return a report's text; None when it is nowhere. An edit is taken in first, a missing file is made.

    Where the file can't be brought together with the row just now, the text is returned all the same.
    """
    with store.read() as tx:
        found = text_in_file(tx, entry)
    if found is not None:
        return found
    try:
        found = store.change(lambda tx: _sync_file(tx, entry.id), timeout=_SYNC_TIMEOUT)
    except (StoreError, ReportUnwritable) as exc:
        log.warning("%s: its file is left as it is: %s", entry.path, exc)
    if found is None:
        with store.read() as tx:
            found = text_of(tx, entry.sha256) or tx.files.read_text(entry.path)
    return found if found.strip() else None


def _sync_file(tx: Transaction, entry_id: str) -> str | None:
    """Bring row and file of a live entry together in a write; return the text, None when it is nowhere. Raises ``ReportUnwritable``."""
    row = entries.get(tx, entry_id)
    if row is None:
        return None
    entry = ingest_edit(tx, row)
    text = text_of(tx, entry.sha256)
    is_left = tx.files.is_blocked(entry.path) or _has_conflict(edit_at(tx, entry.path, entry.sha256))
    if text is not None and text_in_file(tx, entry) is None and not is_left:
        tx.write_report(entry.path, text)
    return text


def drop_lost(store: Store, entry: Entry) -> None:
    """Remove an entry whose text is nowhere: not one that can't be read just now, nor of a folder that is not mounted."""
    if store.is_shared:  # another machine's folder may have its file
        return
    with store.write() as tx:
        row = entries.get(tx, entry.id)
        if row is None or text_of(tx, row.sha256) is not None or tx.files.state(row.path) != "absent":
            return
        for table, name in (("wordings", "entry_id"), ("entries", "id")):  # the id may become another one's
            tx.execute(f"DELETE FROM {table} WHERE {name} = :id", id=entry.id)
        lookup.prune(tx)


def edit_at(tx: Transaction, path: str, sha256: str | None) -> str | None:
    """Return what somebody wrote into the file at a path, whose own text has this hash; None: nothing that kr doesn't know.

    A torn file (its end is missing, or zeros) and an earlier text of kr's are no edits.
    """
    content = tx.files.read(path) or b""
    text = content.decode(errors="replace")
    if not text.strip("\0").strip():
        return None
    own = (text_of(tx, sha256) or "").encode()
    is_torn = own.startswith(content.rstrip(b"\0")) and not content.endswith(b"\n")
    return None if is_torn or text_of(tx, digest(text)) is not None else text


def _has_conflict(edit: str | None) -> bool:
    """Tell whether git left conflict markers in an edited file, which nobody may read as a text until they are gone."""
    lines = (edit or "").splitlines()
    return all(any(line.startswith(mark) for line in lines) for mark in ("<<<<<<< ", ">>>>>>> "))


def ingest_edit(tx: Transaction, entry: Entry) -> Entry:
    """Take in as a finding what somebody wrote into a live entry's file; return the entry as it is then.

    What must wait for a person goes into the quarantine, and the entry stays as it was.
    """
    text = edit_at(tx, entry.path, entry.sha256)
    if text is None:
        return entry
    if _has_conflict(text):
        log.warning("%s has the conflict markers of git, and is left as it is: take one side", entry.path)
        return entry
    from kr.guard import clean, mask_secrets, reasons_to_hold  # heavy: its patterns, for an edit alone
    from kr.report import read_confidence  # heavy: for an edit alone

    changed_at = tx.files.folder.joinpath(entry.path).stat().st_mtime
    at = to_text(datetime.fromtimestamp(int(changed_at), UTC))
    if entry.sha256 is None:  # it came without a text: this is its own
        edited = replace(entry, sha256=keep(tx, text))
        entries.put(tx, edited)
        return edited
    written = mask_secrets(clean(text))
    if reasons := reasons_to_hold(written):
        _hold(tx, entry, written, reasons, at)
        return entry
    if not written.strip():
        return entry
    edited = replace(
        entry,
        sha256=keep(tx, written),
        revision=next_revision(tx, entry.id),
        origin="finding",
        written_by="file",
        status="fresh",
        stale_major=None,
        stale_reason=None,
        fresh_until=None,
        researched_at=at,
        confidence="low" if (read_confidence(written) or entry.confidence) == "low" else "medium",
    )
    add_revision(tx, entry, at)
    entries.put(tx, edited)
    return edited


def _hold(tx: Transaction, entry: Entry, text: str, reasons: tuple[str, ...], at: str) -> None:
    request = {
        "framework": entry.framework,
        "framework_version": entry.framework_version,
        "topic": entry.topic,
        "tags": list(entry.tags),
        "question": entry.question or entry.topic,
        "entry": entry.id,
        "answer": text,
    }
    held = {
        "id": f"{HELD_FILE}{digest(text)[:12]}",
        "at": at,
        "framework": entry.framework,
        "question": request["question"],
        "reasons": reasons,
        "request": request,
        "written_by": "file",
    }
    entries.quarantine(tx, held)


def pair_of(framework: str, topic: str) -> Pair:
    """Return the pair by which entries are told apart, majors aside."""
    return framework_key(framework), lookup.topic_key(topic)


def holders(tx: Transaction, column: Literal["id", "path"], value: str) -> list[tuple[Pair, bool]]:
    """Return the pairs of the rows of index, archive and history that hold an id, or a path, each with whether it is live."""
    rows = tx.rows(
        f"SELECT framework_key, topic_key, 1 AS is_live FROM entries WHERE {column} = :value "
        f"UNION ALL SELECT framework_key, topic_key, 0 FROM archived_entries WHERE {column} = :value "
        f"UNION ALL SELECT framework_key, topic_key, 0 FROM revisions WHERE {'entry_id' if column == 'id' else 'path'} = :value",
        value=value,
    )
    return [((row["framework_key"], row["topic_key"]), bool(row["is_live"])) for row in rows]


def free_name(tx: Transaction, framework: str, topic: str, version: str) -> Name:
    """Return the first free name for a new entry. Raises ``StoreError`` when there is none."""
    where = "WHERE framework_key = :framework AND topic_key = :topic"
    pair = pair_of(framework, topic)
    versions = tx.column(
        f"SELECT framework_version FROM entries {where} UNION SELECT framework_version FROM archived_entries {where}",
        framework=pair[0],
        topic=pair[1],
    )
    has_others = any(not same_major(other, version) for other in versions)
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
