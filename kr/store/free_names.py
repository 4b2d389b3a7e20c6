"""Under which id and path a report may stand (SPEC 2): its own, or the first that nothing stands in the way of."""

from collections.abc import Iterator
from typing import NamedTuple

from kr import naming
from kr.errors import StoreError
from kr.freshness import major_key, same_major
from kr.store.keys import pair_of
from kr.store.reports import ReportFiles
from kr.store.session import Session

_VERSIONS = (
    "SELECT framework_version FROM entries WHERE framework_key = :framework AND topic_key = :topic UNION "
    "SELECT framework_version FROM archived_entries WHERE framework_key = :framework AND topic_key = :topic"
)
_LIVE = "SELECT id FROM entries WHERE id = :id UNION SELECT id FROM entries WHERE path = :path"
# Two look-ups rather than an OR: each has an index.
_OTHERS = " UNION ALL ".join(
    f"SELECT 1 FROM {table} WHERE {same} AND (framework_key <> :framework OR topic_key <> :topic)"
    for table, entry_id in (("archived_entries", "id"), ("revisions", "entry_id"))
    for same in (f"{entry_id} = :id", "path = :path")
)
_TAKEN = f"{_OTHERS} LIMIT 1"


class Subject(NamedTuple):
    """What a report is about. ``version`` is as it was asked for."""

    framework: str
    topic: str
    version: str


def free_name(session: Session, files: ReportFiles, subject: Subject) -> naming.Name:
    """Return the first name that nothing stands in the way of. Raises ``StoreError`` when there is none."""
    for name in wanted_names(subject, has_others=_has_other_majors(session, subject)):
        if is_free(session, files, name, subject):
            return name
    raise StoreError(f"{subject.framework} - {subject.topic}: every name for its report is taken")


def free_id(session: Session, files: ReportFiles, subject: Subject, path: str) -> str:
    """Return the first id that the report at a path, which no row speaks of, can have. Raises ``StoreError``."""
    for name in wanted_names(subject, has_others=_has_other_majors(session, subject)):
        if is_free(session, files, name._replace(path=path), subject):
            return name.id
    raise StoreError(f"{subject.framework} - {subject.topic}: every id for its report is taken")


def is_free(
    session: Session,
    files: ReportFiles,
    name: naming.Name,
    subject: Subject,
    *,
    own_id: str | None = None,
) -> bool:
    """Return whether a report of this subject can stand under a name. ``own_id``: the live entry that it renews."""
    return not files.is_blocked(name.path) and not _is_taken(session, name, subject, own_id)


def wanted_names(subject: Subject, *, has_others: bool) -> Iterator[naming.Name]:
    """Give the names that a subject asks for, in order; ``has_others``: other major versions of it have theirs."""
    pair = (subject.framework, subject.topic)
    wanted = [naming.base_name(*pair), naming.suffixed_name(*pair)]
    if has_others:
        wanted = [naming.versioned_name(name, major_key(subject.version)) for name in wanted]
    yield from wanted
    last = wanted[-1]
    stem = last.path.removesuffix(".md")
    for number in range(2, 100):
        yield naming.Name(id=f"{last.id}-{number}", path=f"{stem}-{number}.md")


def _has_other_majors(session: Session, subject: Subject) -> bool:
    """Tell whether there are entries of other major versions, live or archived."""
    framework, topic = pair_of(subject.framework, subject.topic)
    rows = session.rows(_VERSIONS, framework=framework, topic=topic)
    return any(not same_major(row["framework_version"], subject.version) for row in rows)


def _is_taken(session: Session, name: naming.Name, subject: Subject, own_id: str | None) -> bool:
    """Return whether another framework or topic has this id or path, live, archived or in the history.

    So does a live entry of the same topic, if it is not the one that is renewed: it is of another major version.
    """
    if any(row["id"] != own_id for row in session.rows(_LIVE, id=name.id, path=name.path)):
        return True
    framework, topic = pair_of(subject.framework, subject.topic)
    return session.row(_TAKEN, id=name.id, path=name.path, framework=framework, topic=topic) is not None
