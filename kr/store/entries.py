"""The live index (table ``entries``), and the keys by which its rows are compared: framework, by any usual name, topic, question, keywords."""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from datetime import datetime
from types import MappingProxyType
from typing import Any, get_args

from kr import naming
from kr.frameworks import canonical, lookup_keys, names, same_framework
from kr.freshness import after, major_key, same_major, to_text
from kr.models import Confidence, Entry, Origin
from kr.store.search import Search
from kr.store.session import Meta, Part, Session, insert_into, json_list, texts_of, update_of
from kr.text import keywords

Pair = tuple[str, str]
"""A framework and a topic, by their keys."""


def framework_key(framework: str) -> str:
    """Return what all usual names of a framework share (SPEC 3.2, "Candidates")."""
    return canonical(framework)


def topic_key(topic: str) -> str:
    return " ".join(naming.fold(topic).split())


def question_key(question: str) -> str:
    """Return the form in which questions are compared: folded, on one line, without the mark at its end."""
    return " ".join(naming.fold(question).split()).rstrip(" ?？!.。")


def keywords_key(topic: str) -> str:
    """Return the stems of a topic's keywords in their order."""
    return " ".join(keywords(topic))


def keys_of(framework: str, topic: str, question: str | None) -> dict[str, str | None]:
    """Return the columns by which a row is compared."""
    return {
        "framework_key": framework_key(framework),
        "topic_key": topic_key(topic),
        "question_key": None if question is None else question_key(question),
        "keywords_key": keywords_key(topic),
    }


def pair_of(framework: str, topic: str) -> Pair:
    """Return the pair by which entries are told apart, majors aside."""
    return framework_key(framework), topic_key(topic)


_NAMES = "framework_names"
_KEYS = ("framework_key", "topic_key", "question_key", "keywords_key")
_BLANK = "SELECT {0} AS id, framework, topic, question FROM {1} WHERE framework_key IS NULL"
_FILL = f"UPDATE {{1}} SET {', '.join(f'{name} = :{name}' for name in _KEYS)} WHERE {{0}} = :id"


def fill(session: Session) -> None:
    """Make the keys of rows that came by plain SQL; of all rows once kr knows other names."""
    _follow_names(session)
    for which in (("id", "entries"), ("archive_id", "archived_entries")):
        for row in session.rows(_BLANK.format(*which)):
            made = keys_of(row["framework"], row["topic"], row["question"])
            session.execute(_FILL.format(*which), {"id": row["id"], **made})
            if which[1] == "entries":
                Search(session).index_again(to_entry(session.rows(_GET, id=row["id"])[0]))


def _follow_names(session: Session) -> None:
    """Make the keys anew that another table of names made; where a name is not kept, its old key is one."""
    import zlib

    meta, current = Meta(session), str(zlib.crc32(names().encode()))
    if meta.get(_NAMES) == current:
        return
    for table in ("entries", "archived_entries"):
        written = f"SELECT DISTINCT framework, framework_key FROM {table} WHERE framework_key IS NOT NULL"
        renamed = f"UPDATE {table} SET framework_key = :new WHERE framework_key = :old AND framework = :name"
        for name, old in session.rows(written):
            if framework_key(name) != old:
                session.execute(renamed, new=framework_key(name), old=old, name=name)
    for table in ("revisions", "libraries"):
        # A library that is known under both names stays as it is under the newer one.
        renamed = f"UPDATE OR IGNORE {table} SET framework_key = :new WHERE framework_key = :old"
        for (old,) in session.rows(
            f"SELECT DISTINCT framework_key FROM {table} WHERE framework_key IS NOT NULL"
        ):
            if framework_key(old) != old:
                session.execute(renamed, new=framework_key(old), old=old)
    meta.put(_NAMES, current)


_CONFIDENCES, _ORIGINS = get_args(Confidence), get_args(Origin)

_NO_ALIASES: Mapping[str, str] = MappingProxyType({})
_FIELDS = tuple(each.name for each in fields(Entry))
WRITTEN = (
    *(name for name in _FIELDS if name not in {"id", "stale_major"}),
    *_KEYS,
)
"""The columns that ``to_values`` gives, but for ``id``."""

_LISTED = "(SELECT value FROM json_each(:{name}))"
COLUMNS = (*_FIELDS, "framework_key", "topic_key")
_COLUMNS = ", ".join(COLUMNS)


def _by_keys(statement: str) -> tuple[str, str]:
    """Write a look-up by one key, as most frameworks have, and by several. What plain SQL wrote without a key is compared after reading."""
    one, some = "framework_key = :key", f"framework_key IN {_LISTED.format(name='keys')}"
    return statement.format(one), statement.format(some)


_OF_TOPIC = _by_keys(
    f"SELECT {_COLUMNS} FROM entries WHERE ({{}} AND topic_key = :topic_key) OR framework_key IS NULL ORDER BY id"
)
_FRAMEWORKS = (
    "SELECT min(framework) AS framework FROM entries WHERE origin <> 'placeholder' GROUP BY framework_key"
)
_SOME = f"SELECT {_COLUMNS} FROM entries WHERE id IN {_LISTED.format(name='ids')} ORDER BY id"
_GET = f"SELECT {_COLUMNS} FROM entries WHERE id = :id"
_ALL = f"SELECT {_COLUMNS} FROM entries ORDER BY id"
_COUNT = "SELECT count(*) FROM entries"
_NEWEST = "SELECT last_accessed FROM entries ORDER BY last_accessed DESC LIMIT 5"
_TOUCH = "UPDATE entries SET last_accessed = :accessed WHERE id = :id"
_TOUCH_LAST = f"{_TOUCH} AND :accessed > (SELECT max(last_accessed) FROM entries)"
_MARK = (
    "UPDATE entries SET status = 'stale', stale_reason = :reason, stale_major = :major "
    "WHERE id = :id AND (status <> 'stale' OR (:major IS NULL AND stale_major IS NOT NULL))"
)
_REFRESH = (
    "UPDATE entries SET status = 'fresh', stale_reason = NULL, stale_major = NULL, "
    "fresh_until = coalesce(:fresh_until, fresh_until) WHERE id = :id"
)
_SET_CONFIDENCE = "UPDATE entries SET confidence = :confidence WHERE id = :id"
# A report's own header tells only the day of its research.
_ASKED = (
    "UPDATE {} SET question = :question, question_key = :key, researched_at = "
    "CASE WHEN coalesce(substr(researched_at, 1, 10), substr(:at, 1, 10)) = substr(:at, 1, 10) THEN :at ELSE researched_at END "
    "WHERE id = :id AND question IS NULL"
)
_SET_QUESTION, _SET_ARCHIVED_QUESTION = _ASKED.format("entries"), _ASKED.format("archived_entries")
_SET_WRITER = [
    f"UPDATE {table} SET origin = :origin, confidence = :confidence, written_by = :written_by "
    f"WHERE {name} = :id AND sha256 = :sha256 AND written_by IS NULL AND origin <> 'finding'"
    for table, name in (("entries", "id"), ("archived_entries", "id"), ("revisions", "entry_id"))
]
_SET_TIMES = (
    "UPDATE entries SET created = :created, last_accessed = :last_accessed, researched_at = :researched_at, "
    "fresh_until = :fresh_until WHERE id = :id"
)
# What was not researched is stale for every version, and a mark that was made here has a reason.
_SET_STALE_MAJOR = (
    "UPDATE entries SET stale_major = :major WHERE id = :id AND status = 'stale' AND stale_reason IS NULL "
    "AND stale_major IS NULL AND origin <> 'placeholder'"
)
_BROWSED = (
    f"SELECT {_COLUMNS} FROM entries WHERE :key IS NULL OR framework_key = :key OR framework_key IS NULL "
    "ORDER BY last_accessed DESC, id"
)
_IDS = "SELECT id FROM entries"
_STALE_REASON = "SELECT stale_reason FROM entries WHERE id = :id"
_PATHS = "SELECT path FROM entries UNION SELECT path FROM archived_entries"
_REMOVE = "DELETE FROM entries WHERE id = :id"
_INSERT = insert_into("entries", ("id", *WRITTEN))
_OVERWRITE = update_of("entries", WRITTEN, "id = :id").replace(
    " WHERE", ", stale_reason = NULL, stale_major = NULL WHERE"
)


class Entries(Part):
    def frameworks(self) -> list[str]:
        """Return the frameworks that have live entries which say something, each under one of the names by which it was asked for."""
        return [row["framework"] for row in self._session.rows(_FRAMEWORKS)]

    def some(self, entry_ids: Iterable[str]) -> list[Entry]:
        return [to_entry(row) for row in self._session.rows(_SOME, ids=json_list([*entry_ids]))]

    def _rows(
        self,
        statements: tuple[str, str],
        framework: str,
        aliases: Mapping[str, str],
        **more: str,
    ) -> Iterator[sqlite3.Row]:
        keys = lookup_keys(framework, aliases)
        if len(keys) == 1:
            rows = self._session.rows(statements[0], key=keys[0], **more)
        else:
            rows = self._session.rows(statements[1], keys=json_list(keys), **more)
        for row in rows:
            if (row["framework_key"] is not None and not aliases) or same_framework(
                row["framework"], framework, aliases
            ):
                yield row

    def _of_topic(
        self, framework: str, topic: str, aliases: Mapping[str, str] = _NO_ALIASES
    ) -> Iterator[sqlite3.Row]:
        wanted = topic_key(topic)
        rows = self._rows(_OF_TOPIC, framework, aliases, topic_key=wanted)
        return (row for row in rows if topic_key(row["topic"]) == wanted)

    def get(self, entry_id: str) -> Entry | None:
        row = self._session.row(_GET, id=entry_id)
        return None if row is None else to_entry(row)

    def all(self) -> list[Entry]:
        return [to_entry(row) for row in self._session.rows(_ALL)]

    def browse(self, framework: str | None = None) -> Iterator[Entry]:
        """Give entries, of one framework (whichever of its names) or all, the last accessed first, read one by one."""
        key = None if framework is None else framework_key(framework)
        for row in self._session.each(_BROWSED, key=key):
            if key is None or framework_key(row["framework"]) == key:
                yield to_entry(row)

    def all_ids(self) -> list[str]:
        return [row["id"] for row in self._session.rows(_IDS)]

    def known_paths(self) -> set[str]:
        """Return every path that a live or archived report has; a file of an earlier text alone is an orphan."""
        return {row["path"] for row in self._session.rows(_PATHS)}

    def stale_reason(self, entry_id: str) -> str | None:
        reason: str | None = self._session.value(_STALE_REASON, id=entry_id)
        return reason

    def of_pair(self, framework: str, topic: str) -> list[Entry]:
        """Return the entries of a framework and topic (equal by their keys): one for each major version."""
        return [to_entry(row) for row in self._of_topic(framework, topic)]

    def of_topic(self, framework: str, topic: str, version: str) -> Entry | None:
        """Return the entry of a framework, topic and major version; see ``of_major``."""
        return of_major(self.of_pair(framework, topic), version)

    def count(self) -> int:
        return int(self._session.value(_COUNT))

    def next_access(self, now: datetime) -> str:
        """Return the time of an access now: later than every other, though the clock jumped back (SPEC 3.3)."""
        return after(now, (row["last_accessed"] for row in self._session.rows(_NEWEST)))

    def touch(self, entry_id: str, now: datetime) -> str | None:
        """Record an access and return its time; None when the entry is gone."""
        accessed = to_text(now)
        if self._session.execute(_TOUCH_LAST, id=entry_id, accessed=accessed):
            return accessed
        accessed = self.next_access(now)  # the clock jumped back, or somebody else's access is of this moment
        return accessed if self._session.execute(_TOUCH, id=entry_id, accessed=accessed) else None

    def mark_stale(self, entry_id: str, reason: str, *, major: str | None = None) -> bool:
        """Mark for one ``major`` version (``major_key``) or for all (SPEC 3.3). False when it is gone or marked already."""
        return bool(self._session.execute(_MARK, id=entry_id, reason=reason, major=major))

    def refresh(self, entry_id: str, *, fresh_until: str | None) -> None:
        """Take a mark of staleness back: somebody said that the text works (SPEC 3.10). ``fresh_until`` is a new hard end."""
        self._session.execute(_REFRESH, id=entry_id, fresh_until=fresh_until)

    def set_confidence(self, entry_id: str, confidence: Confidence) -> None:
        """Note how far an entry's text may be relied on: more once somebody confirmed it (SPEC 3.7), and less when that is taken back."""
        self._session.execute(_SET_CONFIDENCE, id=entry_id, confidence=confidence)

    def set_question(self, entry_id: str, question: str, *, at: str) -> None:
        """Note what was asked, and when, of every row of the id that doesn't know it: it was researched elsewhere."""
        asked = {"id": entry_id, "question": question, "key": question_key(question), "at": at}
        for statement in (_SET_QUESTION, _SET_ARCHIVED_QUESTION):
            self._session.execute(statement, asked)
        self.index_again(entry_id)

    def index_again(self, entry_id: str) -> None:
        """Have a live entry found by the words that it has now; nothing to do for one that is not live."""
        entry = self.get(entry_id)
        if entry is not None:
            Search(self._session).index_again(entry)

    def set_writer(
        self, entry_id: str, sha256: str, *, origin: Origin, confidence: Confidence, written_by: str | None
    ) -> None:
        """Note who wrote a text of an id, live, archived or an earlier one, where it came from elsewhere and nobody says."""
        told = {"origin": origin, "confidence": confidence, "written_by": written_by}
        for statement in _SET_WRITER:
            self._session.execute(statement, {"id": entry_id, "sha256": sha256, **told})

    def set_times(self, entry_id: str, times: Mapping[str, str | None]) -> None:
        self._session.execute(_SET_TIMES, {"id": entry_id, **times})

    def set_stale_major(self, entry_id: str, major: str) -> None:
        """Say of an entry that was imported as stale that it is so for one major version alone."""
        self._session.execute(_SET_STALE_MAJOR, id=entry_id, major=major)

    def remove(self, entry_id: str) -> bool:
        """Delete an entry whose report is gone; its revisions stay. False when there is none."""
        is_gone = bool(self._session.execute(_REMOVE, id=entry_id))
        Search(self._session).prune()
        return is_gone

    def put(self, entry: Entry) -> None:
        """Insert an entry, or overwrite the one with its id; a mark of staleness is forgotten, and it is found by its new words."""
        values = {"id": entry.id, **to_values(entry)}
        if not self._session.execute(_OVERWRITE, values):
            self._session.execute(_INSERT, values)
        Search(self._session).index_again(entry)

    def fill_keys(self) -> None:
        fill(self._session)


def of_major(same: Iterable[Entry], version: str) -> Entry | None:
    """Return the entry that a report for a version renews (SPEC 3.3): of its major; best one whose version is known, then the last used."""
    wanted = major_key(version)
    fitting = (entry for entry in same if same_major(entry.framework_version, version))
    return max(
        fitting,
        key=lambda entry: (major_key(entry.framework_version) == wanted, entry.last_accessed, entry.id),
        default=None,
    )


def to_values(entry: Entry) -> dict[str, Any]:
    """Return an entry's columns, without its id; a mark of staleness, and keys, are not carried over."""
    values = {name: getattr(entry, name) for name in _FIELDS}
    del values["id"], values["stale_major"]
    return values | {
        "tags": json.dumps(entry.tags, ensure_ascii=False),
        **keys_of(entry.framework, entry.topic, entry.question),
    }


def to_entry(row: sqlite3.Row, *, status: str | None = None) -> Entry:
    """Read a row, which anybody may have written: what is unknown counts as stale, and as low confidence."""
    columns: dict[str, Any] = dict(zip(_FIELDS, row, strict=False))
    columns["id"] = str(columns["id"])
    columns["tags"] = texts_of(columns["tags"])
    columns["status"] = "fresh" if (status or columns["status"]) == "fresh" else "stale"
    if columns["confidence"] not in _CONFIDENCES:
        columns["confidence"] = "low"
    if columns["origin"] not in _ORIGINS:
        columns["origin"] = "imported"
    columns["sha256"] = columns["sha256"].lower() if columns["sha256"] else None
    return Entry(**columns)
