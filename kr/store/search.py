"""The full-text index over live entries, and searching lessons. The words of a search are no query language: each is quoted.

An entry's row is written in the transaction that writes the entry. With ``sqlite`` and ``postgresql`` this is what depends on the database.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from kr.frameworks import framework_key
from kr.models import Entry
from kr.store.engine import Transaction, insert_into, named
from kr.text import beginning, one_line, search_words, searchable, stem, tokens

WEIGHTS = "0.0, 2.0, 2.0, 2.0, 2.0, 1.0"
"""For ``bm25``: of framework, topic, tags, question, wordings and report."""

_WORD = re.compile(r"\w+")
_LONGEST = 1000
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


def index_entry(tx: Transaction, entry: Entry) -> None:
    """Write an entry's row in place of the one it has, with its wordings and its report."""
    wordings = tx.rows(
        "SELECT topic || ' ' || question FROM wordings WHERE entry_id = :id ORDER BY id", id=entry.id
    )
    report = tx.value("SELECT text FROM report_texts WHERE sha256 = :sha256", sha256=entry.sha256) or ""
    texts = {
        "topic": searchable(entry.topic),
        "tags": searchable(" ".join(entry.tags)),
        "question": searchable(entry.question or ""),
        "wordings": searchable(" ".join(row[0] for row in wordings)),
        "report": searchable(_TEMPLATE.sub("", report)),
    }
    if tx.is_postgresql:
        _index_terms(tx, entry.id, texts)
        return
    row = tx.value("SELECT row FROM search_rows WHERE entry_id = :id", id=entry.id)
    if row is None:
        row = tx.value("SELECT coalesce(max(row), 0) + 1 FROM search_rows")
        tx.execute("INSERT INTO search_rows (entry_id, row) VALUES (:id, :row)", id=entry.id, row=row)
    tx.execute("DELETE FROM entry_search WHERE rowid = :row", row=row)
    tx.execute(
        "INSERT INTO entry_search (rowid, framework, topic, tags, question, wordings, report) "
        "VALUES (:row, :framework, :topic, :tags, :question, :wordings, :report)",
        row=row,
        framework=_framework_word(framework_key(entry.framework)),
        **texts,
    )


def _index_terms(tx: Transaction, entry_id: str, texts: Mapping[str, str]) -> None:
    terms = {name: _terms(text) for name, text in texts.items()}
    weights: Counter[str] = Counter()
    for name, found in terms.items():
        for term in found:
            weights[term] += 1 if name == "report" else 2
    tx.execute(
        f"{insert_into('entry_search', ('entry_id', 'length'))} ON CONFLICT (entry_id) DO UPDATE SET length = excluded.length",
        entry_id=entry_id,
        length=1 + sum(map(len, terms.values())),
    )
    tx.execute("DELETE FROM entry_terms WHERE entry_id = :id", id=entry_id)
    tx.execute(
        "INSERT INTO entry_terms (term, entry_id, weight) "
        "SELECT term, :id, weight FROM unnest(CAST(:terms AS text[]), CAST(:weights AS real[])) AS of (term, weight)",
        id=entry_id,
        terms=[*weights],
        weights=[*weights.values()],
    )


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


def rank(
    tx: Transaction, keys: Sequence[str], words: Sequence[str], *, most: int, every: bool = False
) -> dict[str, float]:
    """Return the ids of the entries that hold some (or ``every``) of the words, each with its ``bm25``, best first.

    Higher is better. ``keys`` are frameworks' keys; none means all of them.
    """
    if not words:
        return {}
    words = words[:_MOST_WORDS]
    if tx.is_postgresql:
        return _rank_terms(tx, keys, words, most=most, every=every)
    wanted = (" AND " if every else " OR ").join(f'"{word}"' for word in words)
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
{where} GROUP BY f.entry_id HAVING count(*) >= :least ORDER BY score DESC, f.entry_id LIMIT :most
"""
"""``bm25`` as FTS5 computes it: k1 is 1.2, b is 0.75."""


def _rank_terms(
    tx: Transaction, keys: Sequence[str], words: Sequence[str], *, most: int, every: bool
) -> dict[str, float]:
    terms = [*dict.fromkeys(term for word in words for term in _terms(word))]
    where = "JOIN entries AS e ON e.id = f.entry_id WHERE e.framework_key = ANY(:keys)" if keys else ""
    rows = tx.rows(
        _RANK.format(where=where),
        terms=terms,
        least=len(terms) if every else 1,
        most=most,
        **({"keys": [*keys]} if keys else {}),
    )
    return {row["entry_id"]: row["score"] for row in rows}


def find(tx: Transaction, text: str, *, keys: Sequence[str] = (), most: int) -> list[str]:
    """Return the ids of entries that hold all words of a text, best first, and after them those that hold some.

    Of either, excerpts of installed documentation come last.
    """
    words = search_words(text[:_LONGEST]) or [*dict.fromkeys(tokens(text[:_LONGEST]))]
    whole = [*rank(tx, keys, words, most=most, every=True)]
    some = [*rank(tx, keys, words, most=most)] if len(whole) < most else []
    listed, parameters = named("id", [*whole, *some])
    excerpts = (
        f"SELECT id FROM entries WHERE id IN {listed} AND origin = 'excerpt' AND fresh_until IS NOT NULL"
    )
    installed = {row["id"] for row in tx.rows(excerpts, **parameters)}
    found = [it for group in (whole, some) for it in sorted(group, key=installed.__contains__)]
    return [*dict.fromkeys(found)][:most]


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
