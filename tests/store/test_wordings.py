"""The wordings that an entry served (rule 3.2): twenty distinct ones, with it through the archive and back."""

from pathlib import Path

import pytest

from kr.models import Entry
from kr.store import entries, saving
from kr.store.engine import Store
from kr.times import to_text
from tests.support.stores import NOW, draft, sql


def keep(store: Store, entry: Entry, question: str, *, session: str = "s") -> None:
    worded = {"at": to_text(NOW), "topic": "any", "tags": ("a",), "question": question, "session_id": session}
    with store.write() as tx:
        entries.keep_wording(tx, entry, worded)


def proved(store: Store, entry: Entry) -> list[str]:
    with store.read() as tx:
        return [it["question"] for it in entries.wordings_of(tx, entry.id) if it["proved"]]


def questions(store: Store, entry_id: str) -> list[str]:
    with store.read() as tx:
        return [wording["question"] for wording in entries.wordings_of(tx, entry_id)]


@pytest.fixture
def entry(store: Store) -> Entry:
    return saving.save(store, draft(tags=("a", "b-c"), question="How?"), "# text\n", NOW).entry


def test_a_question_that_an_entry_knows_is_not_kept_again(store: Store, entry: Entry) -> None:
    for asked in ("How?", " how? ", "HOW"):
        keep(store, entry, asked)
    assert questions(store, entry.id) == []
    for asked in ("How else?", "how  else", "And how?"):
        keep(store, entry, asked)
    assert questions(store, entry.id) == ["How else?", "And how?"]


def test_the_newest_twenty_are_kept(store: Store, entry: Entry) -> None:
    other = saving.save(store, draft(topic="another"), "# text\n", NOW).entry
    keep(store, other, "of another")
    for number in range(25):
        keep(store, entry, f"{number}?")
    assert questions(store, entry.id) == [f"{number}?" for number in range(5, 25)]
    assert questions(store, other.id) == ["of another"]


def test_a_wording_is_proved_by_its_session_or_by_another_one(store: Store, entry: Entry) -> None:
    for _ in range(2):
        keep(store, entry, "One?")
    keep(store, entry, "Two?", session="other")
    assert proved(store, entry) == []
    keep(store, entry, "one", session="other")
    assert proved(store, entry) == ["One?"]
    with store.write() as tx:
        entries.prove_wording(tx, entry.id, "two")
    assert proved(store, entry) == ["One?", "Two?"]


def test_wordings_go_through_the_archive_and_back(store: Store, entry: Entry) -> None:
    keep(store, entry, "How else?")
    saving.remove(store, [entry.id], NOW)
    with store.read() as tx:
        (archived,) = entries.archived(tx, id=entry.id)
    assert archived.entry.question == "How?"
    restored = saving.restore_archived(store, archived, NOW)
    assert restored is not None
    assert restored.entry.question == "How?"
    assert questions(store, entry.id) == ["How else?"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_an_entry_whose_report_is_gone_takes_its_wordings_along(
    store: Store, base: Path, entry: Entry
) -> None:
    keep(store, entry, "How else?")
    (base / entry.path).unlink()
    sql(store, "UPDATE entries SET sha256 = NULL")
    saving.drop_lost(store, entry)
    assert questions(store, entry.id) == []
