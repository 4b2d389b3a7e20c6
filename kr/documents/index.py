"""The index of documentation: a SQLite file with full-text search for a package at a version, or for a folder; and how it is asked.

It is made in one transaction: parallel processes make it once, and one that is killed leaves no part of it. Asked, it gives the passages that
fit a question best, by ``bm25``, and tells whether they leave the question open.
"""

import math
import os
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from kr.documents.text import Section, markdown_sections, restructured_to_markdown
from kr.models import Query
from kr.text import digest, fenced, identifiers, search_words, searchable

MAX_BYTES = 512 * 1024 * 1024
"""Of all indexes together; the least recently used go first."""
_FORMAT = 11
"""Of the files: another one is made anew."""

_WAIT = 120.0  # seconds for another process that makes the same index
_HUMPED = re.compile(r"\b[A-Za-z][a-z0-9]+[A-Z]\w*")
_TABLE = """
CREATE VIRTUAL TABLE passages USING fts5(
  name, words, signature, text, parts, place UNINDEXED, form UNINDEXED, is_secondary UNINDEXED,
  tokenize = 'porter unicode61 remove_diacritics 2'
)
"""

Files = Sequence[tuple[Path, Sequence[str]]]
"""What an index is made of: folders, each with the names of files below it."""


def cache_folder(environ: Mapping[str, str]) -> Path | None:
    """Return the user's folder of indexes, ``$XDG_CACHE_HOME/kr/docs``; None for a user without a home."""
    cache, home = Path(environ.get("XDG_CACHE_HOME", "")), environ.get("HOME")
    if not cache.is_absolute():
        cache = Path(home or "", ".cache")
    return cache / "kr" / "docs" if cache.is_absolute() else None


def open_index(
    key: str, files: Files, make: Callable[[], Iterable[Section]], folder: Path | None
) -> sqlite3.Connection:
    """Return a connection to the index of files, made of the sections of ``make`` where there is none of the files as they are.

    The caller closes it. ``folder`` None, or one that can't be written, keeps it in memory.
    """
    if folder is not None:
        # A full disk, a torn file, a folder of somebody else's: the answer matters more than the file.
        with suppress(OSError, sqlite3.DatabaseError):
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            return _kept(key, _fingerprint(files), make, folder)
    connection = sqlite3.connect(":memory:")
    fill(connection, make())
    return connection


def _kept(
    key: str, fingerprint: str, make: Callable[[], Iterable[Section]], folder: Path
) -> sqlite3.Connection:
    """Return the index that the folder keeps. Using it makes it the most recently used."""
    plain = re.sub(r"[^A-Za-z0-9.@_-]+", "_", key)[:100]
    path = folder / f"{plain}-{digest(f'{_FORMAT} {key}')[:20]}.db"
    connection = sqlite3.connect(path, timeout=_WAIT, isolation_level=None)
    try:
        if not _is_made(connection, fingerprint):
            connection.execute("PRAGMA synchronous = OFF")
            connection.execute("BEGIN IMMEDIATE")
            # Another process may have made it while this one waited.
            if not _is_made(connection, fingerprint):
                connection.execute("DROP TABLE IF EXISTS about")
                connection.execute("DROP TABLE IF EXISTS passages")
                connection.execute("CREATE TABLE about (fingerprint TEXT NOT NULL)")
                connection.execute("INSERT INTO about VALUES (?)", (fingerprint,))
                fill(connection, make())
            connection.execute("COMMIT")
        with suppress(OSError):  # of another user's: it can be read all the same
            os.utime(path)
            _evict_oldest(folder)
    except BaseException:
        connection.close()
        path.unlink(missing_ok=True)  # what is half or torn is made anew the next time
        raise
    return connection


def _fingerprint(files: Files) -> str:
    """Return a digest of the files' names, sizes and times; what is gone does not count."""
    lines: list[str] = []
    for root, names in files:
        for name in names:
            with suppress(OSError, ValueError):
                status = os.stat(f"{root}/{name}")  # noqa: PTH116 - hundreds of files at each question
                lines.append(f"{name}\0{status.st_size}\0{status.st_mtime_ns}")
    return digest("\n".join(lines))


def _is_made(connection: sqlite3.Connection, fingerprint: str) -> bool:
    try:
        row = connection.execute("SELECT fingerprint FROM about").fetchone()
    except sqlite3.OperationalError:  # there is no such table
        return False
    return bool(row == (fingerprint,))


def _evict_oldest(folder: Path) -> None:
    """Remove the least recently used indexes until the others have at most ``MAX_BYTES``. Raises ``OSError``."""
    held = sorted((path.stat().st_mtime, path.stat().st_size, path) for path in folder.glob("*.db"))
    size = sum(own for _, own, _ in held)
    for _, own, path in held:
        if size > MAX_BYTES:
            path.unlink()
            size -= own


def fill(connection: sqlite3.Connection, sections: Iterable[Section]) -> None:
    """Put sections into a database that has none."""
    connection.execute(_TABLE)
    connection.executemany("INSERT INTO passages VALUES (?, ?, ?, ?, ?, ?, ?, ?)", map(_row, sections))
    connection.execute("INSERT INTO passages (passages) VALUES ('optimize')")


def _row(one: Section) -> tuple[object, ...]:
    # The words of the identifiers in a section that its text holds in one piece only: ``withoutEnlargement``.
    humped = dict.fromkeys(_HUMPED.findall(f"{one.signature} {one.text}"))
    parts, words = " ".join(map(searchable, humped)), searchable(one.name)
    return (one.name, words, one.signature, one.text, parts, one.place, one.form, int(one.is_secondary))


# --- asking ---

_BEST = 5
"""Passages of which at least one has to hold one of the question's rare words, or the question is left open."""

RARE_SHARE = 0.85
"""The share of the question's words, those that the fewest passages hold first, that are its rare ones."""

_MOST_ROWS = 80
_OF_DEPENDENCY = 40
_MOST_WORDS = 60
_WEIGHTS = "3.0, 5.0, 1.5, 1.0, 0.5"  # name, its words, signature, text, words of identifiers in the text

# What a passage's bm25 is multiplied by.
_COVERAGE = 1.0
"""Times the share of the question's rarity that the passage holds: one that has most of it goes before one that repeats a word."""
_SECONDARY = 0.6
_SPELLED = 2.0
_DEPENDENCY = 0.6

_UNSEEN = 100
"""Passages that a small package or folder is taken to have besides: a word of its only page is no common word."""

_LEAST_OF_DEPENDENCY = 0.3
"""Of the question's rarity: a dependency's passage that holds less is no answer to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPassage:
    """A passage of an index. ``held`` are the words of the question that it holds; ``score`` orders, and is no probability."""

    section: Section
    package: str
    score: float
    held: frozenset[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """The passages, the best first.

    ``rarest``: where among the question's words, the rarest first, the rarest one stands that the best passages hold: above 0 for the
    rarest of all, 1 for the commonest, infinite where they hold none.
    """

    passages: tuple[RankedPassage, ...]
    rarest: float

    @property
    def is_gap(self) -> bool:
        """Whether the best passages hold none of the question's rare words: they are about something else."""
        return self.rarest > RARE_SHARE


class Index:
    """An open index and the name of the package or folder that it is of."""

    def __init__(self, package: str, connection: sqlite3.Connection) -> None:
        self._package = package
        self._connection = connection

    def close(self) -> None:
        self._connection.close()

    def size(self) -> int:
        (last,) = self._connection.execute("SELECT coalesce(max(rowid), 0) FROM passages").fetchone()
        return int(last)

    def holders(self, words: Iterable[str]) -> dict[str, frozenset[int]]:
        """Return by word which passages hold it, by its stem."""
        find = "SELECT rowid FROM passages WHERE passages MATCH ?"
        return {
            word: frozenset(rowid for (rowid,) in self._connection.execute(find, (f'"{word}"',)))
            for word in words
        }

    def weighed(
        self, holders: Mapping[str, frozenset[int]], rarity: Mapping[str, float], limit: int
    ) -> Iterator[RankedPassage]:
        """Yield the passages that hold any of the words, by their ``bm25``, with a score of what else tells for them."""
        rank = f"bm25(passages, {_WEIGHTS})"
        rows = self._connection.execute(
            f"SELECT {rank}, rowid, name, text, place, signature, form, is_secondary "  # noqa: S608 - weights of ours
            f"FROM passages WHERE passages MATCH ? ORDER BY {rank} LIMIT ?",
            (" OR ".join(f'"{word}"' for word in holders) or '""', limit),
        )
        for score, rowid, *columns in rows:
            section = Section(*columns)
            held = frozenset(word for word, passages in holders.items() if rowid in passages)
            factor = (1.0 + _COVERAGE * _share(held, rarity)) * (_SECONDARY if section.is_secondary else 1.0)
            # The lower the bm25 the better.
            yield RankedPassage(section=section, package=self._package, score=-score * factor, held=held)


def ask(own: Index, query: Query, dependencies: Iterable[Index] = ()) -> Ranking:
    """Rank the passages of a package for the topic, the question and the tags of a request.

    ``dependencies`` are asked where the package does not know a word at all. They are taken one by one, and only then: an iterator opens
    no index that is not needed.
    """
    texts = (query.topic, query.question, *query.tags)
    size, holders = own.size(), own.holders(search_words(*texts)[:_MOST_WORDS])
    rarity = {word: math.log((size + _UNSEEN) / (len(rows) + 1)) for word, rows in holders.items()}
    found = list(own.weighed(holders, rarity, _MOST_ROWS))
    unknown = frozenset(word for word, rows in holders.items() if not rows)
    for other in dependencies if unknown else ():
        found += [
            replace(one, score=one.score * _DEPENDENCY)
            for one in other.weighed(other.holders(holders), rarity, _OF_DEPENDENCY)
            if one.held & unknown and _share(one.held, rarity) > _LEAST_OF_DEPENDENCY
        ]
    # What the question writes as an identifier is what it is about.
    spelled = {name.removesuffix("()").rpartition(".")[2] for text in texts for name in identifiers(text)}

    def order(one: RankedPassage) -> float:
        is_spelled = one.section.name.rpartition(".")[2].casefold() in spelled
        return -one.score * (_SPELLED if is_spelled else 1.0)

    best = tuple(_once(sorted(found, key=order)))
    return Ranking(passages=best, rarest=_rarest(best, rarity))


def _rarest(best: Sequence[RankedPassage], rarity: Mapping[str, float]) -> float:
    """Return ``Ranking.rarest``; the rarest of all is always among the rare ones."""
    held = frozenset[str]().union(*(one.held for one in best[:_BEST]))
    ordered = sorted(rarity, key=lambda word: -rarity[word])
    places = (place for place, word in enumerate(ordered, 1) if word in held)
    first = next(places, None)
    return math.inf if first is None else 0.0 if first == 1 else first / len(ordered)


def _share(held: Iterable[str], rarity: Mapping[str, float]) -> float:
    return sum(rarity.get(word, 0.0) for word in held) / (sum(rarity.values()) or 1.0)


def _once(found: Iterable[RankedPassage]) -> Iterator[RankedPassage]:
    """Yield each text once: of what a package hands on under two names the better one stays."""
    seen: set[tuple[str, str]] = set()
    for one in found:
        section = one.section
        name = section.name.rpartition(".")[2] if section.form == "python" else section.name
        key = (name, (section.text or section.signature)[:60])
        if key not in seen:
            seen.add(key)
            yield one


def markdown(section: Section) -> str:
    """Return a passage as Markdown: a section as it is, a name with its signature as code above its docstring."""
    if section.form == "section":
        return section.text
    if section.form == "typescript":
        return fenced(section.signature, "ts")
    signature = fenced(section.signature, "python") if section.signature else ""
    return f"{signature}\n\n{restructured_to_markdown(section.text)}".strip("\n")


def rank_texts(texts: Iterable[tuple[str, str, str]], query: Query) -> list[Section]:
    """Cut texts, given as ``(title, address, Markdown)``, into sections and rank them; in their order where none has a word of the question."""
    sections = [
        one for title, place, text in texts for one in markdown_sections(text, place=place, title=title)
    ]
    with closing(sqlite3.connect(":memory:")) as connection:
        fill(connection, sections)
        ranking = ask(Index("", connection), query)
    return [one.section for one in ranking.passages] or sections
