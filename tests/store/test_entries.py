import json
from datetime import timedelta
from pathlib import Path

import pytest

from kr.frameworks import lookup_keys
from kr.models import Entry
from kr.store.store import Store
from tests.support.stores import NOW, draft, insert_entry, sql, together


def make(store: Store) -> Store:
    with store.write():
        return store


def found(store: Store, framework: str, **aliases: str) -> list[Entry]:
    """Return the live entries of a framework, whichever of its names is given."""
    with store.read() as unit:
        keys = lookup_keys(framework, aliases)
        return sorted((it[0] for it in unit.lookup.framework(keys, question="")), key=lambda it: it.id)


def test_entries_are_found_by_the_folded_framework(store: Store) -> None:
    for framework in ("React", "Ｒｅａｃｔ Native", "Preact"):
        store.save_report(draft(framework=framework), "# text\n", NOW)
    assert [entry.framework for entry in found(store, " rEACT ")] == ["React"]
    assert len(found(store, "react native")) == 1
    assert found(store, "vue") == []


def test_rows_by_plain_sql_are_found_and_read_from_the_next_write_on(store: Store) -> None:
    make(store)
    insert_entry(store.path, "mine", framework=" CLICK ", tags='["a", "b"]', sha256=None)
    insert_entry(store.path, "odd", tags="x, y", status="odd", confidence="sure", topic="strange wheel")
    insert_entry(store.path, "none", tags="null", last_accessed="2026-10-01")
    insert_entry(store.path, "gone", status="archived")
    sql(store.path, "UPDATE entries SET origin = 'researched' WHERE id = 'odd'")
    with store.write() as unit:
        unit.entries.fill_keys()
    mine, none, odd = found(store, "Click")
    assert (mine.framework, mine.tags, mine.origin) == (" CLICK ", ("a", "b"), "excerpt")
    assert (odd.tags, odd.status, odd.confidence, odd.origin) == (("x", "y"), "stale", "low", "imported")
    assert (none.tags, none.last_accessed, none.researched_at) == ((), "2026-10-01", None)
    with store.read() as unit:
        assert unit.search.find("strange wheels", most=5) == ["odd"]


def test_what_another_table_of_names_called_otherwise_keeps_its_place(store: Store) -> None:
    first = store.save_report(draft(framework="next.js"), "# one\n", NOW).entry
    second = store.save_report(draft(framework="next.js"), "# two\n", NOW).entry
    gone = store.save_report(draft(framework="next.js", topic="gone"), "# gone\n", NOW).entry
    store.remove([gone.id], NOW)
    with store.write() as unit:
        unit.libraries.put("next.js", library_id="/vercel/next.js", now=NOW)
    for table in ("entries", "archived_entries", "revisions", "libraries"):
        sql(store.path, f"UPDATE {table} SET framework_key = 'next.js'")
    sql(store.path, "DELETE FROM meta WHERE key = 'framework_names'")
    third = store.save_report(draft(framework="Next"), "# three\n", NOW).entry
    assert (third.id, third.path) == (second.id, second.path) == (first.id, first.path)
    with store.read() as unit:
        assert [entry.id for entry in unit.entries.of_pair("nextjs", "repeatable options")] == [first.id]
        assert len(unit.revisions.of_entry(first.id)) == 2
        assert len(unit.archive.of_pair("nextjs", "gone")) == 1
        assert unit.libraries.get("nextjs") == unit.libraries.get("next.js") is not None


def test_aliases_of_the_configuration_part_and_join(store: Store) -> None:
    for framework in ("nuxt", "our-nuxt", "vue"):
        store.save_report(draft(framework=framework), "# text\n", NOW)

    def names(framework: str, **aliases: str) -> list[str]:
        return sorted(entry.framework for entry in found(store, framework, **aliases))

    assert names("nuxtjs") == ["nuxt"]
    assert names("nuxtjs", our_nuxt="nuxt") == ["nuxt", "our-nuxt"]
    assert names("Our Nuxt", our_nuxt="nuxt") == ["nuxt", "our-nuxt"]
    assert names("vue", our_nuxt="nuxt") == ["vue"]


def test_the_order_of_accesses_is_exact_though_the_clock_jumps_back(store: Store) -> None:
    make(store)
    for name in "abcd":
        insert_entry(store.path, name, last_accessed="2026-10-01")
    moments = [NOW, NOW, NOW - timedelta(days=400), NOW - timedelta(days=1), NOW + timedelta(hours=1), NOW]
    order = ["a", "c", "b", "a", "d", "b"]
    for name, moment in zip(order, moments, strict=True):
        with store.write() as unit:
            accessed = unit.entries.touch(name, moment)
            assert accessed is not None
            assert accessed >= "2026-10-01"
    evicted = sql(store.path, "SELECT id FROM next_evictions ORDER BY position")
    assert [row[0] for row in evicted] == ["c", "a", "d", "b"]


def test_touching_what_is_gone_says_so(store: Store) -> None:
    with store.write() as unit:
        assert unit.entries.touch("gone", NOW) is None


@pytest.mark.processes
def test_no_touch_of_parallel_processes_is_lost(store: Store, base: Path) -> None:
    store.save_report(draft(), "# text\n", NOW)
    together("touch-on", base, [("click-repeatable-options", 20)] * 4)
    # With one clock for all, each touch adds its microsecond.
    assert sql(store.path, "SELECT last_accessed FROM entries") == [("2026-10-01T12:00:00.000080Z",)]


def test_a_mark_of_staleness_is_stored_once_and_forgotten_on_renewal(store: Store) -> None:
    saved = store.save_report(draft(), "# text\n", NOW)
    with store.write() as unit:
        assert unit.entries.mark_stale(saved.entry.id, "another major version")
        assert not unit.entries.mark_stale(saved.entry.id, "again")
    assert sql(store.path, "SELECT status, stale_reason FROM entries") == [("stale", "another major version")]
    store.save_report(draft(), "# new\n", NOW)
    assert sql(store.path, "SELECT status, stale_reason FROM entries") == [("fresh", None)]


def test_an_entry_is_removed_and_its_revisions_stay(store: Store) -> None:
    store.save_report(draft(), "# one\n", NOW)
    saved = store.save_report(draft(), "# two\n", NOW)
    with store.write() as unit:
        assert unit.entries.remove(saved.entry.id)
        assert not unit.entries.remove(saved.entry.id)
        assert unit.entries.get(saved.entry.id) is None
        assert [revision.revision for revision in unit.revisions.of_entry(saved.entry.id)] == [1]


def test_live_rows_are_counted_whoever_makes_them(store: Store) -> None:
    make(store)
    insert_entry(store.path, "a")
    store.save_report(draft(), "# text\n", NOW)
    sql(store.path, "INSERT OR REPLACE INTO entries SELECT * FROM entries WHERE id = 'a'")
    with store.read() as unit:
        assert unit.entries.count() == 2


def test_tags_are_stored_as_json_that_people_can_read(store: Store) -> None:
    store.save_report(draft(tags=("虚拟滚动", "a")), "# text\n", NOW)
    [[tags]] = sql(store.path, "SELECT tags FROM entries")
    assert json.loads(tags) == ["虚拟滚动", "a"]
    assert "虚拟滚动" in tags
