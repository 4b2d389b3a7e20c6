"""The keys by which rows are compared: of a framework, whichever of its usual names is written, and of a topic."""

from kr import naming
from kr.matching.frameworks import canonical
from kr.store.session import Meta, Session

Pair = tuple[str, str]
"""A framework and a topic, by their keys."""


def framework_key(framework: str) -> str:
    """Return what all usual names of a framework share (SPEC 3.2, "Candidates")."""
    return canonical(framework)


def topic_key(topic: str) -> str:
    """Return the form in which topics are equal."""
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
