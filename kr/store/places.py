"""Which ids and paths are free: two frameworks or topics never share one, live, archived or in the history."""

from collections.abc import Iterator

from kr import slugs
from kr.errors import StoreError
from kr.frameworks import framework_key
from kr.slugs import Name
from kr.store.engine import Transaction
from kr.store.entries import topic_key
from kr.store.reports import edit_at
from kr.times import major_key, same_major

Pair = tuple[str, str]
"""A framework and a topic, by their keys."""

_MOST_SUFFIXES = 100


def pair_of(framework: str, topic: str) -> Pair:
    """Return the pair by which entries are told apart, majors aside."""
    return framework_key(framework), topic_key(topic)


def holders(tx: Transaction, *, id: str | None = None, path: str | None = None) -> list[tuple[Pair, bool]]:  # noqa: A002
    """Return the pairs of the rows of index, archive and history that hold an id, or a path, each with whether it is live."""
    column, value = ("id", id) if path is None else ("path", path)
    rows = tx.rows(
        f"SELECT framework_key, topic_key, 1 AS is_live FROM entries WHERE {column} = :value "
        f"UNION ALL SELECT framework_key, topic_key, 0 FROM archived_entries WHERE {column} = :value "
        f"UNION ALL SELECT framework_key, topic_key, 0 FROM revisions WHERE {'entry_id' if path is None else 'path'} = :value",
        value=value,
    )
    return [((row[0], row[1]), bool(row["is_live"])) for row in rows]


def free_name(tx: Transaction, framework: str, topic: str, version: str) -> Name:
    """Return the first free name for a new entry. Raises ``StoreError`` when there is none."""
    where = "WHERE framework_key = :framework AND topic_key = :topic"
    rows = tx.rows(
        f"SELECT framework_version FROM entries {where} UNION SELECT framework_version FROM archived_entries {where}",
        framework=framework_key(framework),
        topic=topic_key(topic),
    )
    has_others = any(not same_major(row[0], version) for row in rows)
    for name in wanted_names(framework, topic, version, has_others=has_others):
        if is_free(tx, name, pair_of(framework, topic)):
            return name
    raise StoreError(f"{framework} - {topic}: every name for its report is taken")


def is_free(tx: Transaction, name: Name, pair: Pair, text: str | None = None) -> bool:
    """Tell whether no live entry, and no other framework or topic, has a name.

    A file that kr did not write at its path is in the way as well, unless it holds the ``text`` that is to stand there.
    """
    held = (*holders(tx, id=name.id), *holders(tx, path=name.path))
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
