"""How requests worded the need of an entry, and what sessions say of its text (tables ``wordings`` and ``ratings``).

Both belong to the id of an entry, and so stay with it through the archive and back.
"""

from dataclasses import dataclass

from kr.models import Entry, Outcome
from kr.store import entries
from kr.store.engine import Transaction
from kr.store.lookup import question_key
from kr.store.requests import Need
from kr.store.sql import record_of, texts_of

MOST = 20
"""How many wordings an entry keeps: the newest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wording:
    """How a request that an entry answered worded its need. One that is ``proved`` serves by itself."""

    entry_id: str
    at: str
    topic: str
    tags: tuple[str, ...]
    question: str
    session_id: str | None = None
    proved: bool = False


def of(tx: Transaction, entry_id: str) -> list[Wording]:
    """Return the wordings of an id, oldest first."""
    return [
        record_of(Wording, row, tags=texts_of(row["tags"]), proved=bool(row["proved"]))
        for row in tx.rows("SELECT * FROM wordings WHERE entry_id = :id ORDER BY id", id=entry_id)
    ]


def keep(
    tx: Transaction,
    entry: Entry,
    need: Need,
    *,
    at: str,
    session_id: str | None = None,
    proved: bool = False,
) -> None:
    """Keep how a request worded a live entry's need, and have the entry found by it. ``at`` is stored text.

    It is proved where the caller says so, or once two sessions used the entry for it.
    """
    key = question_key(need.question)
    if key == question_key(entry.question or ""):
        return
    known = tx.row(
        "SELECT id, session_id, proved FROM wordings WHERE entry_id = :id AND question_key = :key",
        id=entry.id,
        key=key,
    )
    if known is not None:
        if not known["proved"] and (proved or known["session_id"] != session_id):
            tx.execute("UPDATE wordings SET proved = true WHERE id = :id", id=known["id"])
        return
    wording = Wording(
        entry_id=entry.id,
        at=at,
        topic=need.topic,
        tags=need.tags,
        question=need.question,
        session_id=session_id,
        proved=proved,
    )
    tx.insert("wordings", wording, question_key=key)
    tx.execute(
        "DELETE FROM wordings WHERE entry_id = :id AND id NOT IN "
        "(SELECT id FROM wordings WHERE entry_id = :id ORDER BY id DESC LIMIT :most)",
        id=entry.id,
        most=MOST,
    )
    entries.index_again(tx, entry.id)


def prove(tx: Transaction, entry_id: str, question: str) -> None:
    """Have a wording serve by itself: the entry worked for who asked so."""
    changed = "UPDATE wordings SET proved = true WHERE entry_id = :id AND question_key = :question"
    tx.execute(changed, id=entry_id, question=question_key(question))


def doubt(tx: Transaction, entry_id: str) -> None:
    """Have no wording of an entry serve by itself any more, until somebody confirms it anew: they still rank."""
    tx.execute("UPDATE wordings SET proved = false WHERE entry_id = :id", id=entry_id)


def forget_session(tx: Transaction, entry: Entry, session_id: str) -> None:
    """Delete the wordings of a session for which the entry was wrong."""
    deleted = tx.execute(
        "DELETE FROM wordings WHERE entry_id = :id AND session_id = :session", id=entry.id, session=session_id
    )
    if deleted:
        entries.index_again(tx, entry.id)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rating:
    """One row of ``ratings``: what a session says of an entry's text. ``revision`` is the text's number."""

    entry_id: str
    revision: int
    session_id: str
    story_key: str | None
    outcome: Outcome
    note: str | None
    at: str


def rate(tx: Transaction, rating: Rating) -> None:
    """Keep a rating. A session counts once for a text, by its last word."""
    tx.upsert("ratings", rating, "entry_id", "revision", "session_id")


def ratings_of(tx: Transaction, entry: Entry) -> list[Rating]:
    """Return what was said of an entry's current text, oldest first."""
    rows = tx.rows(
        "SELECT * FROM ratings WHERE entry_id = :id AND revision = :revision ORDER BY at",
        id=entry.id,
        revision=entry.revision,
    )
    return [record_of(Rating, row) for row in rows]


def rated_wrong(tx: Transaction) -> list[str]:
    """Return the live entries of which more sessions say that they are wrong than that they worked, the last said first."""
    rows = tx.rows(
        "SELECT e.id FROM entries AS e JOIN ratings AS r ON r.entry_id = e.id AND r.revision = e.revision "
        "GROUP BY e.id HAVING count(*) FILTER (WHERE r.outcome = 'wrong') > count(*) FILTER (WHERE r.outcome = 'worked') "
        "ORDER BY max(r.at) DESC"
    )
    return [row[0] for row in rows]
