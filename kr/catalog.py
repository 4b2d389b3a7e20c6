"""Looking through index and archive, and changing them by hand.

Every operation returns nested plain data. An id that nothing has is an ``UnknownEntry``.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from kr.errors import UnknownEntry
from kr.frameworks import framework_key
from kr.models import Entry, ShownStatus
from kr.research.decide import MARKED, judge
from kr.settings.model import KnowledgeResearch
from kr.store import entries as entry_rows
from kr.store import lookup, saving
from kr.store.engine import Row, Store, Transaction
from kr.store.entries import Archived, ArchiveReason, unknown_entry
from kr.store.lookup import passage_of
from kr.store.saving import Saved
from kr.text import search_words
from kr.times import UNKNOWN_VERSION

_MOST_FOUND = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class Catalog:
    """The operations over one knowledge base; ``export`` writes the YAML files, and returns what went wrong. Looking makes no database where none is.

    A status is as of today: ``withdrawn`` where more sessions say that the text is wrong than that it worked; past its time, or
    without a report, an entry is ``stale`` before a request marks it.
    """

    store: Store
    config: KnowledgeResearch
    clock: Callable[[], datetime]
    export: Callable[[], list[str]]

    def page(
        self,
        *,
        framework: str | None = None,
        status: ShownStatus | None = None,
        limit: int | None = None,
        offset: int = 0,
    ) -> dict[str, Any]:
        """List live entries of a framework, of a status as of today, the last accessed first: ``{entries, total}``.

        They are those from ``offset`` on, at most ``limit``. A status costs a look at all of them.
        """
        now = self.clock()
        with self.store.read() as tx:
            wrong = set(entry_rows.rated_wrong(tx))
            found = entry_rows.find(tx, **_of_framework(framework))
            if status is not None:
                found = [entry for entry in found if self._judged(entry, now, wrong)[0] == status]
            shown = found[offset : None if limit is None else offset + limit]
            items = [
                entry_item(entry) | {"status": self._judged(entry, now, wrong)[0], "origin": entry.origin}
                for entry in shown
            ]
        return {"entries": items, "total": len(found)}

    def search(
        self, words: str, *, framework: str | None = None, limit: int | None = None
    ) -> list[dict[str, Any]]:
        """List live entries that hold some of ``words``, best first, each with the passage. ``limit`` None: 50.

        What was excerpted of installed documentation comes last.
        """
        now, text = self.clock(), _text(words)
        keys = () if framework is None else (framework_key(_text(framework)),)
        with self.store.read() as tx:
            ids = lookup.find(tx, text, keys=keys, most=limit or _MOST_FOUND)
            wrong = set(entry_rows.rated_wrong(tx))
            entries = {entry.id: entry for entry in entry_rows.some(tx, ids) if entry.origin != "placeholder"}
            ranked = sorted(filter(entries.get, ids), key=lambda it: entries[it].is_installed_excerpt)
            found = [(entries[it], lookup.text_of(tx, entries[it].sha256) or "") for it in ranked]
        return [
            _fields(entry, _FOUND)
            | {"status": self._judged(entry, now, wrong)[0], "passage": passage_of(report, text)}
            for entry, report in found
        ]

    def wordings(self, entry_id: str) -> list[Row]:
        """Return how requests worded the need of an entry, the newest first."""
        with self.store.read() as tx:
            return entry_rows.wordings_of(tx, entry_id)[::-1]

    def search_lessons(self, words: str, *, limit: int = 50) -> list[dict[str, Any]]:
        """List lessons that hold ``words``, best first: ``{id, phase, passage}``."""
        with self.store.read() as tx:
            found = lookup.lessons(tx, search_words(_text(words)), most=limit)
        return [{"id": it["id"], "phase": it["phase"], "passage": it["summary"]} for it in found]

    def entry(self, entry_id: str, *, report: bool = False) -> dict[str, Any]:
        """Give all about one entry; with its report's text when it is asked for (null when it is lost)."""
        entry_id = self._key(entry_id)
        with self.store.read() as tx:
            stored = entry_rows.get(tx, entry_id)
            if stored is None:
                raise unknown_entry(tx, entry_id)
            wrong = set(entry_rows.rated_wrong(tx))
            revisions = len(saving.revisions(tx, entry_id))
            archived = len(entry_rows.archived(tx, id=entry_id))
        status, reasons = self._judged(stored, self.clock(), wrong)
        if (marked := stored.stale_reason) is not None:
            reasons = tuple(dict.fromkeys([marked, *(reason for reason in reasons if reason != MARKED)]))
        judged = {"status": status, "stale_because": list(reasons)}
        item = entry_item(stored) | judged | _fields(stored, _DETAILS)
        item |= {"revisions": revisions, "archived": archived}
        return {**item, "report": saving.read_report(self.store, stored)} if report else item

    def ratings(self, entry_id: str) -> dict[str, Any]:
        """Give what was said of an entry's current text: ``{worked, wrong, is_withdrawn, said: [{session_id, outcome, note, at}]}``."""
        entry_id = self._key(entry_id)
        with self.store.read() as tx:
            found = lookup.one(tx, entry_id)
            if found is None:
                raise unknown_entry(tx, entry_id)
            entry, ratings, _ = found
            said = entry_rows.ratings_of(tx, entry)
        return {
            "worked": ratings.worked,
            "wrong": ratings.wrong,
            "is_withdrawn": ratings.withdraws(entry),
            "said": [_columns(rating, "session_id outcome note at") for rating in said],
        }

    def history(self, entry_id: str) -> list[dict[str, Any]]:
        entry_id = self._key(entry_id)
        with self.store.read() as tx:
            revisions = saving.revisions(tx, entry_id)
            is_known = entry_rows.get(tx, entry_id) or entry_rows.archived(tx, id=entry_id)
            if not revisions and not is_known:
                raise unknown_entry(tx, entry_id)
        return [_columns(revision, _REVISION) for revision in revisions]

    def revision(self, entry_id: str, number: int) -> dict[str, Any]:
        revision = next((it for it in self.history(entry_id) if it["revision"] == number), None)
        if revision is None:
            raise saving.unknown_revision(entry_id, number)
        with self.store.read() as tx:
            text = lookup.text_of(tx, revision["sha256"])
        return {**revision, "text": text or ""}

    def archive(
        self, *, framework: str | None = None, reason: ArchiveReason | None = None, limit: int | None = None
    ) -> list[dict[str, Any]]:
        with self.store.read() as tx:
            found = entry_rows.archived(
                tx, **_of_framework(framework), **({"reason": reason} if reason else {})
            )
            return [archived_item(archived) for archived in islice(found, limit)]

    def archived(
        self, entry_id: str, *, archive_id: int | None = None, report: bool = False
    ) -> dict[str, Any]:
        """Give all about one archived row, chosen as ``restore`` does; with its own text when it is asked for."""
        entry_id = self._key(entry_id)
        with self.store.read() as tx:
            chosen = _chosen(tx, entry_id, archive_id)
            text = lookup.text_of(tx, chosen.entry.sha256)
        item = archived_item(chosen) | _fields(chosen.entry, "origin researched_at sha256")
        return {**item, "report": text} if report else item

    def remove(self, entry_ids: Sequence[str]) -> dict[str, Any]:
        """Move entries to the archive, reason ``manual``: all of them, or none when one is unknown."""
        keys = [self._key(entry_id) for entry_id in entry_ids]
        removed = saving.remove(self.store, keys, self.clock())
        with self.store.read() as tx:
            left = entry_rows.count(tx)
        return {
            "removed": [archived_item(archived) for archived in removed],
            "index_count": left,
            "warnings": self.export(),
        }

    def restore(self, entry_id: str, *, archive_id: int | None = None) -> dict[str, Any]:
        """Make an archived entry live again, the last archived or that of ``archive_id``; a live one in its place is archived.

        Raises ``EntryConflict`` where its text is lost.
        """
        entry_id = self._key(entry_id)
        with self.store.read() as tx:
            chosen = _chosen(tx, entry_id, archive_id)
        return self._restored(saving.restore_archived(self.store, chosen, self.clock()))

    def restore_revision(self, entry_id: str, number: int) -> dict[str, Any]:
        restored = saving.restore_revision(self.store, self._key(entry_id), number, self.clock())
        return self._restored(restored)

    def _key(self, entry_id: str) -> str:
        """Take any text as an id; where there is no database, nothing has one, and none is made to find out."""
        if not self.store.exists():
            with self.store.read() as tx:
                raise unknown_entry(tx, entry_id)
        return _text(entry_id)

    def _restored(self, restored: Saved) -> dict[str, Any]:
        stale = [f"it comes back stale: {restored.entry.stale_reason}"] if restored.entry.stale_reason else []
        return {
            "entry": entry_item(restored.entry),
            "replaced": restored.replaced,
            "archived": [archived_item(archived) for archived in restored.archived],
            "index_count": restored.index_count,
            "lru_evicted": restored.lru_evicted,
            "auto_archived": restored.auto_archived,
            "warnings": [*stale, *restored.warnings, *self.export()],
        }

    def _judged(self, entry: Entry, now: datetime, wrong: set[str]) -> tuple[ShownStatus, tuple[str, ...]]:
        verdict = judge(entry, UNKNOWN_VERSION, self.config, now)
        is_fresh, reasons = verdict.status == "fresh" and entry.status == "fresh", verdict.reasons
        if entry.sha256 is None and not self.store.files.read(entry.path):
            is_fresh, reasons = False, (*reasons, "missing report")
        if entry.id in wrong:
            return "withdrawn", (*reasons, "rated wrong")
        return "fresh" if is_fresh else "stale", reasons


def _chosen(tx: Transaction, entry_id: str, archive_id: int | None) -> Archived:
    rows = entry_rows.archived(tx, id=entry_id)
    if not rows:
        raise unknown_entry(tx, entry_id, in_archive=True)
    for row in rows:
        if archive_id in {None, row.archive_id}:
            return row
    raise UnknownEntry(f"{entry_id}: it has no archive id {archive_id}; see kr archive show {entry_id}")


def _of_framework(name: str | None) -> dict[str, str]:
    return {} if name is None else {"framework_key": framework_key(_text(name))}


def _text(given: str) -> str:
    """Take any text: what no database holds (lone surrogates) is the id or name of nothing."""
    return given.encode(errors="replace").decode()


_FOUND = "id framework framework_version topic question"
_SHOWN = "id framework framework_version topic question tags path created last_accessed status confidence"
_DETAILS = "stale_major origin written_by revision researched_at fresh_until sha256"
_REVISION = "revision framework_version confidence origin written_by researched_at replaced_at sha256"


def _fields(record: object, names: str) -> dict[str, Any]:
    return {name: getattr(record, name) for name in names.split()}


def _columns(row: Row, names: str) -> dict[str, Any]:
    return {name: row[name] for name in names.split()}


def entry_item(entry: Entry) -> dict[str, Any]:
    """Give the nine keys of the index, the question that stands as its title, and the confidence."""
    return _fields(entry, _SHOWN) | {"tags": list(entry.tags)}


def archived_item(archived: Archived) -> dict[str, Any]:
    """Give an archived row; ``archive_id`` is what parts it from others of its id."""
    of_archive = _fields(archived, "archived_at reason archive_id")
    return entry_item(archived.entry) | {"status": "archived"} | of_archive
