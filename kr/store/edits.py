"""What somebody wrote into a report file: taken in as a finding, or held for a person."""

from dataclasses import replace
from datetime import UTC, datetime

from kr.guard import clean, mask_secrets, reasons_to_hold
from kr.models import Entry
from kr.report import read_confidence
from kr.store import entries, quarantine, revisions
from kr.store.engine import Transaction
from kr.store.quarantine import Quarantined
from kr.text import digest
from kr.times import to_text


def edit_at(tx: Transaction, path: str, sha256: str | None) -> str | None:
    """Return what somebody wrote into the file at a path, whose own text has this hash; None: nothing that kr doesn't know.

    A torn file (its end is missing, or zeros) and an earlier text of kr's are no edits.
    """
    content = tx.files.read(path) or b""
    text = content.decode(errors="replace")
    if not text.strip("\0").strip():
        return None
    own = (revisions.text(tx, sha256) or "").encode()
    is_torn = own.startswith(content.rstrip(b"\0")) and not content.endswith(b"\n")
    return None if is_torn or revisions.has(tx, digest(text)) else text


def in_conflict(tx: Transaction, path: str, sha256: str | None) -> bool:
    """Tell whether git left conflict markers in the file at a path, which nobody may read as a text until they are gone."""
    lines = (edit_at(tx, path, sha256) or "").splitlines()
    return all(any(line.startswith(mark) for line in lines) for mark in ("<<<<<<< ", ">>>>>>> "))


def ingest_edit(tx: Transaction, entry: Entry) -> Entry:
    """Take in as a finding what somebody wrote into a live entry's file; return the entry as it is then.

    What must wait for a person goes into the quarantine, and the entry stays as it was.
    """
    text = edit_at(tx, entry.path, entry.sha256)
    if text is None or in_conflict(tx, entry.path, entry.sha256):
        return entry
    at = to_text(datetime.fromtimestamp(int(tx.files.changed_at(entry.path)), UTC))
    if entry.sha256 is None:  # it came without a text: this is its own
        edited = replace(entry, sha256=revisions.keep(tx, text))
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
        sha256=revisions.keep(tx, written),
        revision=revisions.next_number(tx, entry.id),
        origin="finding",
        written_by="file",
        status="fresh",
        stale_major=None,
        fresh_until=None,
        researched_at=at,
        confidence="low" if (read_confidence(written) or entry.confidence) == "low" else "medium",
    )
    revisions.add(tx, entry, at)
    entries.put(tx, edited)
    return edited


def _hold(tx: Transaction, entry: Entry, text: str, reasons: tuple[str, ...], at: str) -> None:
    held_id = f"file-{digest(text)[:12]}"
    if quarantine.get(tx, held_id) is not None:
        return
    question = entry.question or entry.topic
    request = {
        "framework": entry.framework,
        "framework_version": entry.framework_version,
        "topic": entry.topic,
        "tags": list(entry.tags),
        "question": question,
        "entry": entry.id,
        "answer": text,
    }
    quarantine.add(
        tx,
        Quarantined(
            id=held_id,
            at=at,
            framework=entry.framework,
            question=question,
            reasons=reasons,
            request=request,
            written_by="file",
        ),
    )
