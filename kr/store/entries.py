"""The live index (table ``entries``), and the keys by which its rows are compared: framework, by any usual name, and topic.

Tables ``entry_terms`` and ``entry_vectors`` hold what an entry is looked up by when its topic is another one.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, get_args

from kr import naming
from kr.freshness import after, major_key, same_major, to_text
from kr.matching.frameworks import canonical, lookup_keys, same_framework
from kr.store.session import Meta, Part, Session, insert_into, json_list, texts_of, update_of
from kr.values import Confidence, Entry, Origin

if TYPE_CHECKING:
    from kr.store.requests import Need


Pair = tuple[str, str]
"""A framework and a topic, by their keys."""


def framework_key(framework: str) -> str:
    """Return what all usual names of a framework share (SPEC 3.2, "Candidates")."""
    return canonical(framework)


def topic_key(topic: str) -> str:
    return naming.fold(topic)


def pair_of(framework: str, topic: str) -> Pair:
    """Return the pair by which entries are told apart, majors aside."""
    return framework_key(framework), topic_key(topic)


_NAMES = "framework_names"
_SET = "SET framework_key = :framework_key, topic_key = :topic_key"
_BLANK = "SELECT id, framework, topic FROM entries WHERE framework_key IS NULL"
_FILL = f"UPDATE entries {_SET} WHERE id = :id"
_BLANK_ARCHIVED = (
    "SELECT archive_id AS id, framework, topic FROM archived_entries WHERE framework_key IS NULL"
)
_FILL_ARCHIVED = f"UPDATE archived_entries {_SET} WHERE archive_id = :id"


def fill(session: Session) -> None:
    """Make the keys of rows that came, or were edited, by plain SQL; of all rows once kr knows other names."""
    _follow_names(session)
    for blank, filled in ((_BLANK, _FILL), (_BLANK_ARCHIVED, _FILL_ARCHIVED)):
        for row in session.rows(blank):
            framework, topic = pair_of(row["framework"], row["topic"])
            session.execute(filled, id=row["id"], framework_key=framework, topic_key=topic)


def _follow_names(session: Session) -> None:
    """Make the keys anew that another table of names made; where a name is not kept, its old key is one."""
    import zlib

    from kr.matching.frameworks import names

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
WRITTEN = (
    *(name for name in Entry.names() if name not in {"id", "stale_major"}),
    "framework_key",
    "topic_key",
    "keys_version",
)
"""The columns that ``to_values`` gives."""

_LISTED = "(SELECT value FROM json_each(:{name}))"
_COLUMNS = ", ".join((*Entry.names(), "framework_key", "topic_key", "keys_version"))


def _by_keys(statement: str) -> tuple[str, str]:
    """Write a look-up by one key, as most frameworks have, and by several. What plain SQL wrote without a key is compared after reading."""
    one, some = "framework_key = :key", f"framework_key IN {_LISTED.format(name='keys')}"
    return statement.format(one), statement.format(some)


_IDS_OF_FRAMEWORK = _by_keys(
    "SELECT id, framework, framework_key, status, keys_version FROM entries "
    "WHERE {} OR framework_key IS NULL ORDER BY id"
)
_OF_TOPIC = _by_keys(
    f"SELECT {_COLUMNS} FROM entries WHERE ({{}} AND topic_key = :topic_key) OR framework_key IS NULL ORDER BY id"
)
_FRAMEWORKS = (
    "SELECT min(framework) AS framework FROM entries WHERE origin IS NOT 'skeleton' GROUP BY framework_key"
)
_SOME = f"SELECT {_COLUMNS} FROM entries WHERE id IN {_LISTED.format(name='ids')} ORDER BY id"
_GET = f"SELECT {_COLUMNS} FROM entries WHERE id = :id"
_ALL = f"SELECT {_COLUMNS} FROM entries ORDER BY id"
_COUNT = "SELECT entries FROM entry_count"
_NEWEST = "SELECT last_accessed FROM entries ORDER BY last_accessed DESC LIMIT 5"
_TOUCH = "UPDATE entries SET last_accessed = :accessed WHERE id = :id"
_TOUCH_LAST = f"{_TOUCH} AND :accessed > (SELECT max(last_accessed) FROM entries)"
_MARK = (
    "UPDATE entries SET status = 'stale', stale_reason = :reason, stale_major = :major "
    "WHERE id = :id AND (status <> 'stale' OR (:major IS NULL AND stale_major IS NOT NULL))"
)
_SET_TEXT = "UPDATE entries SET sha256 = :sha256, keys_version = NULL WHERE id = :id"
# A report's own header tells only the day of its research.
_ASKED = (
    "UPDATE {} SET question = :question, researched_at = "
    "CASE WHEN coalesce(substr(researched_at, 1, 10), substr(:at, 1, 10)) = substr(:at, 1, 10) THEN :at ELSE researched_at END "
    "WHERE id = :id AND question IS NULL"
)
_SET_QUESTION, _SET_ARCHIVED_QUESTION = _ASKED.format("entries"), _ASKED.format("archived_entries")
_SET_TIMES = (
    "UPDATE entries SET created = :created, last_accessed = :last_accessed, researched_at = :researched_at, "
    "fresh_until = :fresh_until WHERE id = :id"
)
# What was not researched is stale for every version, and a mark that was made here has a reason.
_SET_STALE_MAJOR = (
    "UPDATE entries SET stale_major = :major WHERE id = :id AND status = 'stale' AND stale_reason IS NULL "
    "AND stale_major IS NULL AND origin IN ('researched', 'installed')"
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
_FORGET_VECTORS = "DELETE FROM entry_vectors WHERE entry_id = :id"


class Entries(Part):
    def ids(self, framework: str, aliases: Mapping[str, str] = _NO_ALIASES) -> dict[str, int | None]:
        """Return the ids of a framework's entries, sorted, with the version of their keys (SPEC 3.2; ``aliases``: other name, framework).

        A row that somebody marked ``archived`` awaits the guard: it counts as a miss (SPEC 3.3).
        """
        rows = self._rows(_IDS_OF_FRAMEWORK, framework, aliases)
        return {row["id"]: row["keys_version"] for row in rows if _may_answer(row)}

    def of_same_topic(
        self, framework: str, topic: str, aliases: Mapping[str, str] = _NO_ALIASES
    ) -> list[Entry]:
        """Return those of a framework's entries whose topic is equal, of whatever major version."""
        return [to_entry(row) for row in self._of_topic(framework, topic, aliases) if _may_answer(row)]

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

    def set_text(self, entry_id: str, sha256: str) -> None:
        """Note which text an entry shows now; the vectors of the earlier one are forgotten."""
        self._session.execute(_SET_TEXT, id=entry_id, sha256=sha256)
        self._session.execute(_FORGET_VECTORS, id=entry_id)

    def set_question(self, entry_id: str, question: str, *, at: str) -> None:
        """Note what was asked, and when, of every row of the id that doesn't know it: it was researched elsewhere."""
        for statement in (_SET_QUESTION, _SET_ARCHIVED_QUESTION):
            self._session.execute(statement, id=entry_id, question=question, at=at)

    def set_times(self, entry_id: str, times: Mapping[str, str | None]) -> None:
        self._session.execute(_SET_TIMES, {"id": entry_id, **times})

    def set_stale_major(self, entry_id: str, major: str) -> None:
        """Say of an entry that was imported as stale that it is so for one major version alone."""
        self._session.execute(_SET_STALE_MAJOR, id=entry_id, major=major)

    def remove(self, entry_id: str) -> bool:
        """Delete an entry whose report is gone; its revisions stay. False when there is none."""
        return bool(self._session.execute(_REMOVE, id=entry_id))

    def put(self, entry: Entry) -> None:
        """Insert an entry, or overwrite the one with its id; a mark of staleness, keys and vectors are forgotten."""
        values = {"id": entry.id, **to_values(entry)}
        if not self._session.execute(_OVERWRITE, values):
            self._session.execute(_INSERT, values)
            return
        self._session.execute(_FORGET_VECTORS, id=entry.id)

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
    values = entry.fields()
    del values["id"], values["stale_major"]
    return values | {
        "tags": json.dumps(entry.tags, ensure_ascii=False),
        "framework_key": framework_key(entry.framework),
        "topic_key": topic_key(entry.topic),
        "keys_version": None,
    }


def to_entry(row: sqlite3.Row, *, status: str | None = None) -> Entry:
    """Read a row, which anybody may have written: what is unknown counts as stale, and as low confidence."""
    columns: dict[str, Any] = dict(zip(Entry.names(), row, strict=False))
    columns["id"] = str(columns["id"])
    columns["tags"] = texts_of(columns["tags"])
    columns["status"] = "fresh" if (status or columns["status"]) == "fresh" else "stale"
    if columns["confidence"] not in _CONFIDENCES:
        columns["confidence"] = "low"
    if columns["origin"] not in _ORIGINS:
        columns["origin"] = "researched"
    columns["sha256"] = columns["sha256"].lower() if columns["sha256"] else None
    return Entry(**columns)


def _may_answer(row: sqlite3.Row) -> bool:
    return bool(row["status"] != "archived")


Keys = dict[str, int]

_HAS_KEYS = "UPDATE entries SET keys_version = :version WHERE id = :id"
_CLEAR = "DELETE FROM entry_terms WHERE entry_id = :id"
_PUT = insert_into("entry_terms", ("framework_key", "term", "entry_id", "fields"))
_HOLDING = (
    "SELECT entry_id, term, fields FROM entry_terms "
    "WHERE framework_key IN (SELECT value FROM json_each(:keys)) AND term IN (SELECT value FROM json_each(:terms))"
)
_NEEDS = (
    "SELECT entry_id, term, fields FROM entry_terms "
    "WHERE entry_id IN (SELECT value FROM json_each(:ids)) AND fields & :need <> 0"
)


class Terms(Part):
    """Keeps what entries are looked up by (SPEC 3.2; ``kr.matching.terms`` makes it) in the caller's transaction. It goes with their row."""

    def put(self, entry: Entry, keys: Mapping[str, int]) -> None:
        """Keep the keys of a live entry in place of those it had; one that is gone meanwhile needs none."""
        from kr.matching.terms import VERSION

        if not self._session.execute(_HAS_KEYS, id=entry.id, version=VERSION):
            return
        self._session.execute(_CLEAR, id=entry.id)
        framework = framework_key(entry.framework)
        rows = [
            {"framework_key": framework, "term": term, "entry_id": entry.id, "fields": places}
            for term, places in keys.items()
        ]
        self._session.execute_many(_PUT, rows)

    def make(self, entry: Entry, wordings: "Iterable[Need]", report: str) -> None:
        from kr.matching.terms import keys_of

        own = (entry.topic, entry.tags, entry.question)
        self.put(entry, keys_of(own, wordings, report))

    def holding(self, framework_keys: Iterable[str], terms: Iterable[str]) -> dict[str, Keys]:
        """Return the entries of the frameworks that have some of the terms, by id, with where these stand."""
        wanted = {"keys": json_list([*framework_keys]), "terms": json_list([*terms])}
        return _grouped(self._session.rows(_HOLDING, wanted))

    def needs(self, entry_ids: Iterable[str]) -> dict[str, Keys]:
        """Return the keys of the entries' needs, by id: what only their reports have is left out."""
        from kr.matching.terms import NEED

        return _grouped(self._session.rows(_NEEDS, ids=json_list([*entry_ids]), need=NEED))


def _grouped(rows: Sequence[sqlite3.Row]) -> dict[str, Keys]:
    found: dict[str, Keys] = {}
    for entry_id, term, places in rows:
        found.setdefault(entry_id, {})[term] = places
    return found


_VECTORS = (
    "SELECT entry_id, vector FROM entry_vectors "
    "WHERE model = :model AND entry_id IN (SELECT value FROM json_each(:ids))"
)
_PUT_VECTOR = "INSERT OR REPLACE INTO entry_vectors (entry_id, model, vector) SELECT id, :model, :vector FROM entries WHERE id = :id"
_FORGET_ALL_VECTORS = "DELETE FROM entry_vectors WHERE entry_id IN (SELECT value FROM json_each(:ids))"


class Vectors(Part):
    """Keeps packed vectors (``kr.matching.vectors``) in the caller's transaction. They go with their entry's row."""

    def of(self, model: str, entry_ids: Iterable[str]) -> dict[str, bytes]:
        rows = self._session.rows(_VECTORS, model=model, ids=json_list([*entry_ids]))
        return {row["entry_id"]: row["vector"] for row in rows}

    def put(self, model: str, vectors: Mapping[str, bytes]) -> None:
        """Keep the vectors of entries, by id, in place of those of the same model; an entry that is gone needs none."""
        self._session.execute_many(
            _PUT_VECTOR,
            [{"id": entry_id, "model": model, "vector": vector} for entry_id, vector in vectors.items()],
        )

    def forget(self, entry_ids: Iterable[str]) -> None:
        """Delete the vectors of entries, whatever model they are of."""
        self._session.execute(_FORGET_ALL_VECTORS, ids=json_list([*entry_ids]))
