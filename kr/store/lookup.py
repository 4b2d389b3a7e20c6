"""What every request does: look entries up, by the keys by which they are compared and by their words, note an access, and log itself.

The words of a search are no query language: each is quoted.
"""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from datetime import datetime
from typing import Any, get_args

from kr.frameworks import framework_key
from kr.models import NO_RATINGS, Confidence, Entry, Origin, Ratings
from kr.store.engine import Row, Transaction, named, texts_of
from kr.text import beginning, fold, keywords, one_line, search_words, searchable, stem, tokens
from kr.times import after

COLUMNS = tuple(field.name for field in fields(Entry))
"""The columns that make an ``Entry``."""
KEYS = ("framework_key", "topic_key", "major", "question_key", "keywords_key")
IS_GIVEN = "gone_at IS NULL AND retired_at IS NULL AND superseded_by IS NULL AND (held IS NULL OR approved_at IS NOT NULL)"
"""Which lessons are given to agents."""
UNDER_WAY = "interrupted, or still under way"
"""The error of a request that has asked a source and has no answer yet: what a killed process leaves."""

WEIGHTS = "0.0, 2.0, 2.0, 2.0, 2.0, 1.0"
"""For ``bm25``: of framework, topic, tags, question, wordings and report."""

_WORD = re.compile(r"\w+")
_LONGEST = 1000
_MOST_CANDIDATES = 20
_MOST_WORDS = 64
"""Words of a text that are searched: the time grows with their number."""
_PASSAGE = 200
_SUMMARY = "## Summary\n"
# What every report says by its template is nothing that it is about: a search for "date" would find them all.
_TEMPLATE = re.compile(
    r"^(?:\*\*(?:Framework|Version|Research Date|Confidence|Sources):\*\* .*"
    r"|## (?:Summary|Details|Code Examples|Caveats & Version-Specific Notes|Source Attribution))$",
    re.MULTILINE,
)

_CONFIDENCES, _ORIGINS = get_args(Confidence), get_args(Origin)
_OF = "FROM ratings AS r WHERE r.entry_id = e.id AND r.revision = e.revision AND r.outcome ="
_RATED = (
    f"(SELECT count(*) {_OF} 'worked') AS worked, (SELECT count(*) {_OF} 'wrong') AS wrong, "
    f"EXISTS (SELECT 1 {_OF} 'wrong' AND r.session_id LIKE 'person:%') AS by_person, "
    f"(SELECT note {_OF} 'wrong' AND note IS NOT NULL ORDER BY at DESC LIMIT 1) AS note"
)
_PROVED = "SELECT w.entry_id FROM wordings AS w WHERE w.question_key = :question AND w.proved"
_FOUND = (
    f"SELECT {', '.join(f'e.{name}' for name in COLUMNS)}, {_RATED}, "
    f"(e.question_key = :question OR e.id IN ({_PROVED})) AS is_wording FROM entries AS e"
)

EntryRow = tuple[Entry, Ratings, bool]
"""A live entry, its ratings, and whether the question is a known wording of it."""


def topic_key(topic: str) -> str:
    return " ".join(fold(topic).split())


def question_key(question: str) -> str:
    """Return the form in which questions are compared: folded, on one line, without the mark at its end."""
    return " ".join(fold(question).split()).rstrip(" ?？!.。")


def keywords_key(topic: str) -> str:
    """Return the stems of a topic's keywords in their order."""
    return " ".join(keywords(topic))


def served(
    tx: Transaction, keys: Sequence[str], *, topic: str, question: str, keywords: str
) -> list[EntryRow]:
    """Return the entries of the frameworks ``keys`` that have this topic, question, wording or keywords, each as its key."""
    listed, parameters = named("key", keys)
    where = (
        f"e.framework_key IN {listed} AND (e.topic_key = :topic "
        f"OR e.question_key = :question OR e.keywords_key = :keywords OR e.id IN ({_PROVED}))"
    )
    return _found(tx, where, topic=topic, question=question, keywords=keywords, **parameters)


def framework(tx: Transaction, keys: Sequence[str], *, question: str) -> list[EntryRow]:
    """Return all live entries of the frameworks ``keys``."""
    listed, parameters = named("key", keys)
    return _found(tx, f"e.framework_key IN {listed}", question=question, **parameters)


def candidates(tx: Transaction, keys: Sequence[str], words: Sequence[str]) -> list[tuple[EntryRow, float]]:
    """Return the entries that share words with a request, with their ``bm25`` (higher is better), best first."""
    scores = rank(tx, keys, words, most=_MOST_CANDIDATES)
    listed, parameters = named("id", scores)
    found = {it[0].id: it for it in _found(tx, f"e.id IN {listed}", **parameters)}
    return [(found[entry_id], score) for entry_id, score in scores.items() if entry_id in found]


def one(tx: Transaction, entry_id: str) -> EntryRow | None:
    """Return the live entry of an id."""
    return next(iter(_found(tx, "e.id = :id", id=entry_id)), None)


def count(tx: Transaction, keys: Sequence[str]) -> int:
    """Return how many live entries the frameworks have."""
    listed, parameters = named("key", keys)
    return int(tx.value(f"SELECT count(*) FROM entries WHERE framework_key IN {listed}", **parameters))


def lessons(tx: Transaction, words: Sequence[str], *, most: int, frameworks: Sequence[str] = ()) -> list[Row]:
    """Return ``id, phase, summary, ref`` of the lessons that agents are given and that hold a word, most words first.

    With ``frameworks``, those that carry one of these keys as a tag.
    """
    named = "replace(replace(lower(tags), '-', ''), '.', '') LIKE :name"
    is_named = " OR ".join(f"{named}{number}" for number in range(len(frameworks)))
    where = f"{IS_GIVEN} AND ({is_named})" if frameworks else IS_GIVEN
    rows = tx.rows(
        f"SELECT id, phase, summary, tags, ref FROM lessons WHERE {where} ORDER BY date DESC, id",
        **{f"name{number}": f'%"{name}"%' for number, name in enumerate(frameworks)},
    )
    beginnings = [beginning(word) for word in words]
    found = []
    for row in rows:
        line = f"{row['summary']} {row['tags']} {row['ref'] or ''}".lower()
        if number := sum(word in line for word in beginnings):
            found.append((number, row))
    return [row for _, row in sorted(found, key=lambda it: -it[0])[:most]]


def _found(tx: Transaction, where: str, *, question: str = "", **parameters: object) -> list[EntryRow]:
    found = list[EntryRow]()
    for row in tx.rows(f"{_FOUND} WHERE {where}", question=question, **parameters):
        ratings = NO_RATINGS
        if row["worked"] or row["wrong"]:
            ratings = Ratings(row["worked"], row["wrong"], bool(row["by_person"]), row["note"])
        found.append((to_entry(row), ratings, bool(row["is_wording"])))
    return found


def text_of(tx: Transaction, sha256: str | None) -> str | None:
    return texts(tx, [sha256]).get(sha256)


def texts(tx: Transaction, hashes: Iterable[str | None]) -> dict[str | None, str]:
    """Return those of the reports' texts that are kept, by their hash."""
    listed, parameters = named("sha256", {it for it in hashes if it is not None})
    rows = tx.rows(f"SELECT sha256, text FROM report_texts WHERE sha256 IN {listed}", **parameters)
    return {row["sha256"]: row["text"] for row in rows}


def text_in_file(tx: Transaction, entry: Entry) -> str | None:
    """Return an entry's text where its file holds it; else None."""
    text = text_of(tx, entry.sha256)
    return text if text is not None and tx.files.read(entry.path) == text.encode() else None


def spent(tx: Transaction, session_id: str, story_key: str) -> int:
    """Return how many calls are charged to a story."""
    charged = (
        "SELECT count(*) FROM source_calls WHERE session_id = :session AND story_key = :story AND charged"
    )
    return int(tx.value(charged, session=session_id, story=story_key))


def counts(tx: Transaction, session_id: str, story_key: str) -> tuple[int, int]:
    """Return how many live entries there are, and the calls charged to a story: what every answer says."""
    return int(tx.value("SELECT count(*) FROM entries")), spent(tx, session_id, story_key)


def to_entry(row: Row, *, status: str | None = None) -> Entry:
    """Read a row; what plain SQL wrote and kr doesn't know counts as stale, and as of low confidence."""
    columns: dict[str, Any] = {name: row[name] for name in COLUMNS}
    columns["tags"] = texts_of(columns["tags"])
    columns["status"] = "fresh" if (status or columns["status"]) == "fresh" else "stale"
    if columns["confidence"] not in _CONFIDENCES:
        columns["confidence"] = "low"
    if columns["origin"] not in _ORIGINS:
        columns["origin"] = "imported"
    return Entry(**columns)


def next_access(tx: Transaction, now: datetime) -> str:
    """Return the time of an access now: later than every other that is committed, though the clock jumped back."""
    return after(now, tx.value("SELECT max(last_accessed) FROM entries") or "")


def touch(tx: Transaction, entry_id: str, now: datetime) -> str | None:
    """Record an access and return its time; None when the entry is gone."""
    accessed, touched = next_access(tx, now), "UPDATE entries SET last_accessed = :accessed WHERE id = :id"
    return accessed if tx.execute(touched, id=entry_id, accessed=accessed) else None


def begin_request(tx: Transaction, row: Row) -> None:
    """Note that a request asks a source, so that it leaves a row even when its process is killed."""
    if tx.row("SELECT 1 FROM requests WHERE id = :id", id=row["id"]) is None:
        tx.insert("requests", row | {"status": "failure", "error": UNDER_WAY})


def log_request(tx: Transaction, row: Row) -> None:
    """Write a row of ``requests`` down, over what was noted when it began. ``candidates`` are a JSON list of ``{id, score}``, best first."""
    tx.insert("requests", row | {"best_candidate": next(iter(offered(row)), None)}, "id")


def offered(row: Row) -> list[str]:
    """Return the ids of the entries that a request was offered, best first."""
    return [it["id"] for it in json.loads(row.get("candidates") or "[]")]


def has_ended(tx: Transaction, request_id: str) -> bool:
    """Tell whether a request has an answer already."""
    row = tx.row("SELECT error FROM requests WHERE id = :id", id=request_id)
    return row is not None and row["error"] != UNDER_WAY


# --- the full-text index over live entries: an entry's row is written in the transaction that writes the entry


def index_entry(tx: Transaction, entry: Entry) -> None:
    """Write an entry's row in place of the one it has, with its wordings and its report."""
    worded = "SELECT topic || ' ' || question FROM wordings WHERE entry_id = :id ORDER BY id"
    texts = {
        "topic": searchable(entry.topic),
        "tags": searchable(" ".join(entry.tags)),
        "question": searchable(entry.question or ""),
        "wordings": searchable(" ".join(tx.column(worded, id=entry.id))),
        "report": searchable(_TEMPLATE.sub("", text_of(tx, entry.sha256) or "")),
    }
    if tx.is_postgresql:
        _index_terms(tx, entry.id, texts)
        return
    row = tx.value("SELECT row FROM search_rows WHERE entry_id = :id", id=entry.id)
    if row is None:
        row = tx.value("SELECT coalesce(max(row), 0) + 1 FROM search_rows")
        tx.insert("search_rows", {"entry_id": entry.id, "row": row})
    tx.execute("DELETE FROM entry_search WHERE rowid = :row", row=row)
    word = _framework_word(framework_key(entry.framework))
    tx.insert("entry_search", {"rowid": row, "framework": word, **texts})


def _index_terms(tx: Transaction, entry_id: str, texts: Mapping[str, str]) -> None:
    terms = [(term, 1 if name == "report" else 2) for name, text in texts.items() for term in _terms(text)]
    weights = Counter[str]()
    for term, weight in terms:
        weights[term] += weight
    tx.insert("entry_search", {"entry_id": entry_id, "length": 1 + len(terms)}, "entry_id")
    tx.execute("DELETE FROM entry_terms WHERE entry_id = :id", id=entry_id)
    given = "unnest(CAST(:terms AS text[]), CAST(:weights AS real[])) AS of (term, weight)"
    added = f"INSERT INTO entry_terms (term, entry_id, weight) SELECT term, :id, weight FROM {given}"
    tx.execute(added, id=entry_id, terms=[*weights], weights=[*weights.values()])


def _terms(text: str) -> list[str]:
    """Return the stems of a text's words; of a name with underscores its parts, and then the whole."""
    bare = "".join(it for it in unicodedata.normalize("NFKD", text) if not unicodedata.combining(it))
    found = []
    for word in _WORD.findall(bare.casefold()):
        parts = [it for it in word.split("_") if it]
        found += [stem(it) for it in parts]
        found += [word] if len(parts) > 1 else []
    return found


def prune(tx: Transaction) -> None:
    """Remove the rows of entries that are gone. PostgreSQL does so by itself: they refer to the entries."""
    if tx.is_postgresql:
        return
    gone = "SELECT row FROM search_rows WHERE entry_id NOT IN (SELECT id FROM entries)"
    tx.execute(f"DELETE FROM entry_search WHERE rowid IN ({gone})")
    tx.execute("DELETE FROM search_rows WHERE entry_id NOT IN (SELECT id FROM entries)")


def refill(tx: Transaction, entries: Iterable[Entry]) -> None:
    """Make the whole index anew; SQLite's tables as well."""
    if tx.is_postgresql:
        tx.execute("DELETE FROM entry_search")
    else:
        from kr.store.schema import SEARCH_TABLES  # heavy

        for table in ("search_rows", "entry_search"):
            tx.execute(f"DROP TABLE IF EXISTS {table}")
        for statement in SEARCH_TABLES:
            tx.execute(statement)
    for entry in entries:
        index_entry(tx, entry)


def rank(tx: Transaction, keys: Sequence[str], words: Sequence[str], *, most: int) -> dict[str, float]:
    """Return the ids of the entries that hold some of the words, each with its ``bm25``, best first.

    Higher is better. ``keys`` are frameworks' keys; none means all of them.
    """
    if not words:
        return {}
    words = words[:_MOST_WORDS]
    if tx.is_postgresql:
        return _rank_terms(tx, keys, words, most=most)
    wanted = " OR ".join(f'"{word}"' for word in words)
    query = f"{{topic tags question wordings report}} : ({wanted})"
    if keys:
        frameworks = " OR ".join(f'"{_framework_word(key)}"' for key in keys)
        query = f"framework : ({frameworks}) AND {query}"
    rows = tx.rows(
        f"SELECT of.entry_id, -bm25(entry_search, {WEIGHTS}) AS score FROM entry_search JOIN search_rows AS of "
        "ON of.row = entry_search.rowid WHERE entry_search MATCH :query ORDER BY score DESC, of.entry_id LIMIT :most",
        query=query,
        most=most,
    )
    return {row["entry_id"]: row["score"] for row in rows}


_RANK = """
WITH size AS (SELECT count(*)::float8 AS number, avg(length)::float8 AS mean FROM entry_search),
  found AS (SELECT term, entry_id, weight::float8 AS weight, count(*) OVER (PARTITION BY term)::float8 AS holders
    FROM entry_terms WHERE term = ANY(:terms))
SELECT f.entry_id, sum(greatest(ln((size.number - f.holders + 0.5) / (f.holders + 0.5)), 1e-6)
  * f.weight * 2.2 / (f.weight + 1.2 * (0.25 + 0.75 * s.length / size.mean))) AS score
FROM found AS f JOIN entry_search AS s ON s.entry_id = f.entry_id CROSS JOIN size
{where} GROUP BY f.entry_id ORDER BY score DESC, f.entry_id LIMIT :most
"""
"""``bm25`` as FTS5 computes it: k1 is 1.2, b is 0.75."""


def _rank_terms(tx: Transaction, keys: Sequence[str], words: Sequence[str], *, most: int) -> dict[str, float]:
    terms = [*dict.fromkeys(term for word in words for term in _terms(word))]
    where = "JOIN entries AS e ON e.id = f.entry_id WHERE e.framework_key = ANY(:keys)" if keys else ""
    given = {"keys": [*keys]} if keys else {}
    rows = tx.rows(_RANK.format(where=where), terms=terms, most=most, **given)
    return {row["entry_id"]: row["score"] for row in rows}


def find(tx: Transaction, text: str, *, keys: Sequence[str] = (), most: int) -> list[str]:
    """Return the ids of entries that hold words of a text, best first."""
    words = search_words(text[:_LONGEST]) or [*dict.fromkeys(tokens(text[:_LONGEST]))]
    return [*rank(tx, keys, words, most=most)]


def _framework_word(key: str) -> str:
    """Write a framework's key as one word of letters and digits."""
    return f"fw{key.encode(errors='replace').hex()}"


def passage_of(report: str, text: str) -> str:
    """Return the line of a report that holds most words of a text, cut around the first of them."""
    _, is_there, body = report.partition(_SUMMARY)
    lines = [line.strip(" >#*-|`") for line in (body if is_there else report).splitlines()]
    stems = [beginning(word) for word in search_words(text[:_LONGEST])]
    held = [(sum(word in line.casefold() for word in stems), line) for line in lines if line]
    if not held:
        return ""
    best = max(held, key=lambda it: it[0])[1]
    folded = best.casefold()
    first = min((folded.find(word) for word in stems if word in folded), default=0)
    start = max(0, first - _PASSAGE // 3) if len(best) > _PASSAGE else 0
    cut = one_line(best[start : start + _PASSAGE], _PASSAGE)
    return f"{'…' if start else ''}{cut}{'…' if start + _PASSAGE < len(best) else ''}"
