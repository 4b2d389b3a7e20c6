"""The wordings that an entry served (SPEC 3.2): twenty distinct ones, with it through the archive and back."""

from pathlib import Path

import pytest

from kr.freshness import to_text
from kr.store.care import Care, repair
from kr.store.requests import Need
from kr.store.store import Store
from kr.values import Entry
from tests.support.stores import NOW, draft, sql


def need(topic: str = "repeatable options", question: str = "How?", tags: tuple[str, ...] = ("a",)) -> Need:
    return Need(topic, tags, question)


def keep(store: Store, entry: Entry, asked: Need) -> bool:
    with store.write() as unit:
        return unit.wordings.keep(entry, asked, session_id="s", at=to_text(NOW))


def questions(store: Store, entry_id: str) -> list[str]:
    with store.read() as unit:
        return [wording.question for wording in unit.wordings.of([entry_id]).get(entry_id, [])]


@pytest.fixture
def entry(store: Store) -> Entry:
    return store.save_report(draft(tags=("a", "b-c"), question="How?"), "# text\n", NOW).entry


def test_an_entry_knows_its_own_question(store: Store, entry: Entry) -> None:
    with store.read() as unit:
        assert unit.entries.get(entry.id) == entry
    assert entry.question == "How?"


def test_words_that_an_entry_knows_are_not_kept_again(store: Store, entry: Entry) -> None:
    assert not keep(store, entry, need())
    assert not keep(store, entry, need(topic="Repeatable  Options".replace("  ", " "), question=" how? "))
    assert not keep(store, entry, need(tags=("B_C",)))
    assert keep(store, entry, need(tags=("new",)))
    assert keep(store, entry, need(question="How else?"))
    assert not keep(store, entry, need(question="how  else?"))
    assert keep(store, entry, need(topic="options given twice"))
    assert questions(store, entry.id) == ["How?", "How else?", "How?"]


def test_the_newest_twenty_are_kept(store: Store, entry: Entry) -> None:
    other = store.save_report(draft(topic="another"), "# text\n", NOW).entry
    assert keep(store, other, need(question="of another"))
    for number in range(25):
        assert keep(store, entry, need(question=f"{number}?"))
    assert questions(store, entry.id) == [f"{number}?" for number in range(5, 25)]
    assert questions(store, other.id) == ["of another"]
    assert keep(store, entry, need(question="0?"))


def test_wordings_go_through_the_archive_and_back(store: Store, entry: Entry) -> None:
    keep(store, entry, need(question="How else?"))
    store.remove([entry.id], NOW)
    with store.read() as unit:
        (archived,) = unit.archive.of_id(entry.id)
    assert archived.entry.question == "How?"
    restored = store.restore_archived(archived, NOW)
    assert restored is not None
    assert restored.saved.entry.question == "How?"
    assert questions(store, entry.id) == ["How else?"]


def test_a_topic_that_is_researched_again_is_still_found_by_them(store: Store, entry: Entry) -> None:
    keep(store, entry, need(question="How else?"))
    store.remove([entry.id], NOW)
    again = store.save_report(draft(question="How now?"), "# new\n", NOW).entry
    assert (again.id, again.question) == (entry.id, "How now?")
    assert questions(store, entry.id) == ["How else?"]


def test_an_entry_whose_report_is_gone_takes_its_wordings_along(
    store: Store, base: Path, entry: Entry
) -> None:
    keep(store, entry, need(question="How else?"))
    (base / entry.path).unlink()
    sql(store.path, "UPDATE entries SET sha256 = NULL")
    assert store.drop_lost(entry)
    assert questions(store, entry.id) == []


def keys(store: Store) -> list[tuple[object, ...]]:
    return sql(store.path, "SELECT keys_version FROM entries")


def make_keys(store: Store, entry: Entry) -> None:
    sql(store.path, "INSERT OR REPLACE INTO entry_terms VALUES ('click', 'option', ?, 3)", entry.id)
    sql(store.path, "INSERT INTO entry_vectors VALUES (?, 'model', x'00')", entry.id)
    sql(store.path, "UPDATE entries SET keys_version = 1")


def test_keys_are_to_be_made_anew_once_what_they_are_made_of_changed(store: Store, entry: Entry) -> None:
    make_keys(store, entry)
    with store.write() as unit:
        unit.entries.touch(entry.id, NOW)
    assert not keep(store, entry, need())
    assert keys(store) == [(1,)]
    for change in ("topic = 'x'", "tags = '[]'", "question = NULL", "framework = 'vue'"):
        sql(store.path, f"UPDATE entries SET {change}")
        assert keys(store) == [(None,)], change
        sql(store.path, "UPDATE entries SET keys_version = 1")
    assert keep(store, entry, need(question="How else?"))
    assert keys(store) == [(None,)]


def test_what_is_made_of_an_entry_goes_with_it(store: Store, entry: Entry) -> None:
    make_keys(store, entry)
    store.remove([entry.id], NOW)
    assert (
        sql(store.path, "SELECT * FROM entry_terms") == sql(store.path, "SELECT * FROM entry_vectors") == []
    )


def test_what_a_deletion_by_plain_sql_leaves_is_told_and_put_right(store: Store, entry: Entry) -> None:
    make_keys(store, entry)
    sql(store.path, "DELETE FROM entries")
    store.close()
    health = Care(store.path).examine()
    assert len(health.problems) == 2
    assert health.is_mendable
    with store.write() as unit:
        repair(unit.session)
    store.close()
    assert Care(store.path).examine().problems == ()
