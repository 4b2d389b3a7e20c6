"""Taking entries out of the index by hand, and bringing them and earlier texts back (SPEC 3.8 and 6.3).

As when a report is saved, the file is made once the row is committed, what is written over becomes a revision, and
the capacity guard runs in the same transaction.
"""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from kr import naming
from kr.errors import EntryConflict
from kr.freshness import same_major
from kr.naming import decoded, digest
from kr.reports.template import fresh_until, origin_of, read_confidence, why_stale
from kr.store import times
from kr.store.archive import Archived, Limits
from kr.store.database import Database, Transaction
from kr.store.reports import ReportFiles, Revision, take_edit
from kr.store.requests import Need
from kr.store.saving import Saved, Subject, finish, free_name, is_free, note_edit
from kr.store.session import Session, UnitOfWork
from kr.values import Confidence, Entry, Value, replace


class Restored(Value):
    """What became of a restoration (SPEC 6.3). ``replaced`` are the live entries that were archived for it.

    ``stale_reason`` says why the entry came back stale; None: it is fresh.
    """

    saved: Saved
    replaced: tuple[Archived, ...] = ()
    stale_reason: str | None = None


class HandedOver(NamedTuple):
    """The ids of entries of a need's very topic: those that ``gave_way``, and those that ``stay`` and go before its wording."""

    gave_way: tuple[str, ...]
    stay: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Restorer:
    """The operations over one knowledge base. Each is one transaction and raises a ``StoreError``."""

    database: Database
    files: ReportFiles
    limits: Limits

    def remove(self, entry_ids: Sequence[str], now: datetime) -> list[Archived] | None:
        """Move live entries to the archive, each with the text that it last showed. None: one is not there."""
        with self.database.write() as transaction:
            unit = UnitOfWork(transaction.session)
            unit.entries.fill_keys()
            found = [unit.entries.get(entry_id) for entry_id in dict.fromkeys(entry_ids)]
            live = [entry for entry in found if entry is not None]
            return [self._archive(unit, entry, now) for entry in live] if len(live) == len(found) else None

    def hand_over(
        self, unit: UnitOfWork, entry: Entry, need: Need, now: datetime, session_id: str | None
    ) -> HandedOver:
        """Have a live entry answer the words of a need from now on, as somebody said (SPEC 3.2), in the caller's transaction.

        No other entry of its framework answers these words any more: one that was researched for them goes to the archive. One
        whose topic somebody chose, and asked another question about, stays: an equal topic always answers.
        """
        unit.entries.fill_keys()
        unit.wordings.take(need, unit.entries.ids(entry.framework).keys() - {entry.id})
        same = unit.entries.of_pair(entry.framework, need.topic)
        same = [
            it
            for it in same
            if it.id != entry.id and same_major(it.framework_version, entry.framework_version)
        ]
        gone = [it for it in same if _is_made_for(it, need)]
        for it in gone:
            self._archive(unit, it, now)
        unit.wordings.keep(entry, need, at=times.to_text(now), session_id=session_id)
        return HandedOver(tuple(it.id for it in gone), tuple(it.id for it in same if it not in gone))

    def restore_archived(self, archived: Archived, now: datetime, *, replace_live: bool) -> Restored | None:
        """Make an archived entry live again, with its own text at its path. None: it left the archive meanwhile.

        Raises ``EntryConflict`` when its id, or its framework and topic, is live (unless ``replace_live``: the
        live one is archived first), and when its text is lost; ``ReportUnwritable`` as for a save.
        """
        with ExitStack() as opened, self.database.write() as transaction:
            unit = UnitOfWork(transaction.session)
            unit.entries.fill_keys()
            if not unit.archive.take(archived.archive_id):
                return None
            live = _live_again(unit, archived.entry)
            if live and not replace_live:
                raise EntryConflict(
                    f"{archived.entry.id}: {_named(live[0], archived.entry)} is live; "
                    "--replace archives it first and then restores this one"
                )
            moved = [self._archive(unit, entry, now) for entry in live]
            entry = replace(archived.entry, path=self._path(unit.session, archived.entry))
            owner = unit.archive.last_at(entry.path)
            back = _Return(entry, owner, archived.entry.sha256, archived.entry.path)
            return self._put_back(transaction, unit, opened, back=back, now=now, moved=tuple(moved))

    def restore_revision(self, entry_id: str, number: int, now: datetime) -> Restored | None:
        """Bring an earlier text of a live entry back. None: there is no such entry or revision.

        The text's own version, confidence and time of research come back with it.
        """
        with ExitStack() as opened, self.database.write() as transaction:
            unit = UnitOfWork(transaction.session)
            unit.entries.fill_keys()
            current = unit.entries.get(entry_id)
            revision = unit.revisions.get(entry_id, number)
            text = unit.revisions.text(revision.sha256) if revision is not None else None
            if current is None or revision is None or text is None:
                return None
            entry = _as_it_was(current, revision, text)
            entry = replace(entry, path=self._path(unit.session, current))
            back = _Return(entry, current, revision.sha256, current.path)
            return self._put_back(transaction, unit, opened, back=back, now=now)

    def _put_back(
        self,
        transaction: Transaction,
        unit: UnitOfWork,
        opened: ExitStack,
        *,
        back: "_Return",
        now: datetime,
        moved: tuple[Archived, ...] = (),
    ) -> Restored:
        place = self.files.place(back.entry.path)
        opened.callback(place.sync)
        text = self._text(unit, back)
        staged = opened.enter_context(self.files.staged(text))
        stale_reason = why_stale(back.entry, now)
        entry = replace(
            back.entry,
            sha256=unit.revisions.keep(text),
            last_accessed=unit.entries.next_access(now),
            status="fresh" if stale_reason is None else "stale",
        )
        note_edit(unit, self.files, entry, back.owner, now)
        unit.entries.put(replace(entry, status="fresh"))
        if stale_reason is not None:
            unit.entries.mark_stale(entry.id, stale_reason)
        saved = finish(transaction, unit, place, staged, entry, limits=self.limits, now=now)
        return Restored(saved=saved, replaced=moved, stale_reason=stale_reason)

    def _archive(self, unit: UnitOfWork, entry: Entry, now: datetime) -> Archived:
        """Move an entry to the archive; what a person wrote into its file goes with it."""
        take_edit(unit, self.files, entry)
        unit.archive.move(entry.id, "manual", now)
        return unit.archive.of_id(entry.id)[0]

    def _path(self, session: Session, entry: Entry) -> str:
        """Return where the text goes: its own path, unless a folder or another entry's report is there."""
        name = naming.Name(entry.id, entry.path)
        subject = Subject(entry.framework, entry.topic, entry.framework_version)
        if is_free(session, self.files, name, subject, own_id=entry.id):
            return entry.path
        return free_name(session, self.files, subject).path

    def _text(self, unit: UnitOfWork, back: "_Return") -> str:
        """Return the text by its hash, or what still stands at its path if that is no other entry's text."""
        own = unit.revisions.text(back.sha256) if back.sha256 is not None else None
        if own is not None:
            return own
        on_disk = decoded(self.files.read(back.former_path))
        if on_disk.strip() and (back.sha256 == digest(on_disk) or not unit.revisions.has(digest(on_disk))):
            return on_disk
        raise EntryConflict(
            f"{back.entry.id}: its text is lost, it is neither in the database nor at {back.former_path}; "
            "nothing was changed, ask kr research about it again"
        )


@dataclass(frozen=True, slots=True)
class _Return:
    """An entry on its way back: whose report its path holds now, and where its own text is."""

    entry: Entry
    owner: Entry | None
    sha256: str | None
    former_path: str


def _is_made_for(entry: Entry, need: Need) -> bool:
    """Tell whether an entry of a need's topic was researched for its question, or has its topic from its question's words."""
    question = entry.question or ""
    if naming.fold(question) == naming.fold(need.question):
        return True
    from kr.matching.question import derive_topic

    return naming.fold(derive_topic(entry.framework, question)) == naming.fold(entry.topic)


def _live_again(unit: UnitOfWork, entry: Entry) -> list[Entry]:
    """Return the live entries that stand in the way: of the same id, or the same framework, topic and major."""
    same = unit.entries.of_topic(entry.framework, entry.topic, entry.framework_version)
    found = (unit.entries.get(entry.id), same)
    return list({live.id: live for live in found if live is not None}.values())


def _named(live: Entry, entry: Entry) -> str:
    return "this id" if live.id == entry.id else f"its framework and topic, as {live.id},"


def _as_it_was(current: Entry, revision: Revision, text: str) -> Entry:
    origin = origin_of(text)
    end = fresh_until(origin, revision.researched_at)
    levels: tuple[Confidence, ...] = ("high", "medium", "low")
    known = next((level for level in levels if level == revision.confidence), None)
    return replace(
        current,
        framework_version=revision.framework_version or current.framework_version,
        confidence=known or read_confidence(text) or "low",
        researched_at=revision.researched_at,
        origin=origin,
        fresh_until=times.to_text(end) if end is not None else None,
    )
