"""The keys of live entries: they go with their entry, and are made anew once what they are made of changed (SPEC 3.2)."""

from pathlib import Path

import pytest

from kr.freshness import to_text
from kr.matching.terms import QUESTION, REPORT, TAGS, TOPIC, VERSION, WORDINGS, keys_of, root, whole
from kr.store.entries import Keys
from kr.store.requests import Need
from kr.store.store import Store
from kr.values import Entry
from tests.support.stores import NOW, draft, sql

REPORT_TEXT = "# Options\n\nAn option may be repeated with multiple.\n"


@pytest.fixture
def entry(store: Store) -> Entry:
    return store.save_report(draft(question="How often?"), REPORT_TEXT, NOW).entry


def make(store: Store, entry: Entry) -> None:
    with store.write() as unit:
        said = unit.wordings.of([entry.id]).get(entry.id, ())
        unit.terms.make(entry, [Need(it.topic, it.tags, it.question) for it in said], REPORT_TEXT)


def kept(store: Store) -> dict[str, int]:
    return dict(sql(store.path, "SELECT term, fields FROM entry_terms"))


def due(store: Store, *entries: Entry) -> set[str]:
    with store.read() as unit:
        versions = unit.entries.ids("click")
        return {entry.id for entry in entries if versions.get(entry.id) != VERSION}


def holding(store: Store, *terms: str, framework: str = "click") -> dict[str, Keys]:
    with store.read() as unit:
        return unit.terms.holding([framework], terms)


def test_keys_are_made_when_a_report_is_saved(store: Store, entry: Entry) -> None:
    assert due(store, entry) == set()
    assert kept(store) == keys_of((entry.topic, entry.tags, entry.question), (), REPORT_TEXT)
    make(store, entry)
    assert kept(store) == keys_of((entry.topic, entry.tags, entry.question), (), REPORT_TEXT)


def test_they_are_looked_up_by_framework_and_term(store: Store, entry: Entry) -> None:
    other = store.save_report(draft("vue", "repeatable slots"), "# x\n", NOW).entry
    for one in (entry, other):
        make(store, one)
    term = root("repeatable")
    in_report = REPORT | 1 << 5
    assert holding(store, term, "never") == {entry.id: {term: TOPIC | in_report}}
    assert set(holding(store, term, framework="vue")) == {other.id}
    assert holding(store, whole(entry.topic)) == {entry.id: {whole(entry.topic): TOPIC}}
    assert holding(store) == holding(store, term, framework="react") == {}
    with store.read() as unit:
        needs = unit.terms.needs([entry.id])[entry.id]
    assert root("multiple") in kept(store)
    assert root("multiple") not in needs
    assert needs[root("options")] & (TOPIC | TAGS | REPORT) == TOPIC | TAGS | REPORT
    assert needs[root("often")] == QUESTION


def test_a_wording_renews_them(store: Store, entry: Entry) -> None:
    make(store, entry)
    with store.write() as unit:
        unit.wordings.keep(entry, Need("given twice", ("many",), "How many?"), at=to_text(NOW))
    assert due(store, entry) == {entry.id}
    make(store, entry)
    assert kept(store)[whole("given twice", "How many?")] == kept(store)[root("twice")] == WORDINGS
    assert due(store, entry) == set()


@pytest.mark.parametrize("change", ["topic = 'x'", "tags = '[]'", "question = NULL", "framework = 'vue'"])
def test_an_edit_by_plain_sql_renews_them(store: Store, entry: Entry, change: str) -> None:
    make(store, entry)
    sql(store.path, f"UPDATE entries SET {change}")
    assert due(store, entry) == {entry.id}


def test_keys_of_other_rules_are_made_anew(store: Store, entry: Entry) -> None:
    make(store, entry)
    sql(store.path, "UPDATE entries SET keys_version = ?", VERSION + 1)
    assert due(store, entry) == {entry.id}


def test_a_new_report_renews_them(store: Store, entry: Entry) -> None:
    make(store, entry)
    again = store.save_report(draft(), "# Something else\n", NOW).entry
    assert (again.id, due(store, again)) == (entry.id, set())
    assert root("multiple") not in kept(store)


def test_they_go_with_the_entry_and_are_made_again_when_it_comes_back(store: Store, entry: Entry) -> None:
    make(store, entry)
    store.remove([entry.id], NOW)
    assert kept(store) == {}
    with store.read() as unit:
        (archived,) = unit.archive.of_id(entry.id)
    restored = store.restore_archived(archived, NOW)
    assert restored is not None
    assert due(store, restored.saved.entry) == {entry.id}


def test_a_lost_report_takes_them_along(store: Store, base: Path, entry: Entry) -> None:
    make(store, entry)
    (base / entry.path).unlink()
    sql(store.path, "UPDATE entries SET sha256 = NULL")  # nor has the database its text
    assert store.drop_lost(entry)
    assert kept(store) == {}


def test_an_entry_that_is_gone_meanwhile_gets_none(store: Store, entry: Entry) -> None:
    store.remove([entry.id], NOW)
    make(store, entry)
    assert kept(store) == {}
