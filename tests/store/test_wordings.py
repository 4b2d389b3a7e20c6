"""The wordings that an entry served (rule 3.2): twenty distinct ones, with it through the archive and back."""

from pathlib import Path

import pytest

from kr.models import Entry
from kr.store import archive, entries, reports, saving, search, wordings
from kr.store.engine import Store
from kr.store.usage import Wording
from kr.times import to_text
from tests.support.stores import NOW, draft, sql


def need(topic: str = "repeatable options", question: str = "How?", tags: tuple[str, ...] = ("a",)) -> Need:
    return Need(topic, tags, question)


def keep(store: Store, entry: Entry, asked: Need, *, session: str = "s") -> None:
    with store.write() as tx:
        wordings.keep(tx, entry, asked, session_id=session, at=to_text(NOW))


def proved(store: Store, entry: Entry) -> list[str]:
    with store.read() as tx:
        return [it.question for it in wordings.of(tx, entry.id) if it.proved]


def questions(store: Store, entry_id: str) -> list[str]:
    with store.read() as tx:
        return [wording.question for wording in wordings.of(tx, entry_id)]


@pytest.fixture
def entry(store: Store) -> Entry:
    return saving.save(store, draft(tags=("a", "b-c"), question="How?"), "# text\n", NOW).entry


def test_an_entry_knows_its_own_question(store: Store, entry: Entry) -> None:
    with store.read() as tx:
        assert entries.get(tx, entry.id) == entry
    assert entry.question == "How?"


def test_a_question_that_an_entry_knows_is_not_kept_again(store: Store, entry: Entry) -> None:
    for asked in (need(), need(question=" how? "), need(topic="other", tags=("new",), question="HOW")):
        keep(store, entry, asked)
    assert questions(store, entry.id) == []
    for asked in (need(question="How else?"), need(question="how  else"), need(question="And how?")):
        keep(store, entry, asked)
    assert questions(store, entry.id) == ["How else?", "And how?"]


def test_the_newest_twenty_are_kept(store: Store, entry: Entry) -> None:
    other = saving.save(store, draft(topic="another"), "# text\n", NOW).entry
    keep(store, other, need(question="of another"))
    for number in range(25):
        keep(store, entry, need(question=f"{number}?"))
    assert questions(store, entry.id) == [f"{number}?" for number in range(5, 25)]
    assert questions(store, other.id) == ["of another"]


def test_a_wording_is_proved_by_its_session_or_by_another_one(store: Store, entry: Entry) -> None:
    for _ in range(2):
        keep(store, entry, need(question="One?"))
    keep(store, entry, need(question="Two?"), session="other")
    assert proved(store, entry) == []
    keep(store, entry, need(question="one"), session="other")
    assert proved(store, entry) == ["One?"]
    with store.write() as tx:
        wordings.prove(tx, entry.id, "two")
    assert proved(store, entry) == ["One?", "Two?"]


def test_what_was_wrong_for_a_session_takes_its_wordings_along(store: Store, entry: Entry) -> None:
    keep(store, entry, need(question="Needle?"))
    keep(store, entry, need(question="Else?"), session="other")
    with store.write() as tx:
        wordings.forget_session(tx, entry, "s")
        assert search.find(tx, "needle", most=5) == []
    assert questions(store, entry.id) == ["Else?"]


def test_wordings_go_through_the_archive_and_back(store: Store, entry: Entry) -> None:
    keep(store, entry, need(question="How else?"))
    saving.remove(store, [entry.id], NOW)
    with store.read() as tx:
        (archived,) = archive.of_id(tx, entry.id)
    assert archived.entry.question == "How?"
    restored = saving.restore_archived(store, archived, NOW)
    assert restored is not None
    assert restored.entry.question == "How?"
    assert questions(store, entry.id) == ["How else?"]


def test_a_topic_that_is_researched_again_is_still_found_by_them(store: Store, entry: Entry) -> None:
    keep(store, entry, need(question="How else?"))
    saving.remove(store, [entry.id], NOW)
    again = saving.save(store, draft(question="How now?"), "# new\n", NOW).entry
    assert (again.id, again.question) == (entry.id, "How now?")
    assert questions(store, entry.id) == ["How else?"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_an_entry_whose_report_is_gone_takes_its_wordings_along(
    store: Store, base: Path, entry: Entry
) -> None:
    keep(store, entry, need(question="How else?"))
    (base / entry.path).unlink()
    sql(store, "UPDATE entries SET sha256 = NULL")
    assert reports.drop_lost(store, entry)
    assert questions(store, entry.id) == []
