from datetime import timedelta
from pathlib import Path

import pytest

from kr.store import entries, saving
from kr.store.engine import Store
from tests.support.stores import NOW, PUBLIC_COLUMNS, allow, draft, insert_entry, refuse, sql


@pytest.fixture
def small(base: Path) -> Store:
    return Store(None, base, max_entries=3, archive_after_days=60)


def make(store: Store) -> None:
    with store.write():
        pass


def live(store: Store) -> list[str]:
    return [row[0] for row in sql(store, "SELECT id FROM entries ORDER BY id")]


def archived(store: Store) -> list[tuple[str, str]]:
    return sql(store, "SELECT id, reason FROM archived_entries ORDER BY archive_id")


def test_the_least_recently_accessed_beyond_the_limit_leave(small: Store) -> None:
    with small:
        make(small)
        for number, name in enumerate("cabd"):
            insert_entry(small, name, last_accessed=f"2026-09-{10 + number}")
        saved = saving.save(small, draft(topic="new"), "# text\n", NOW)
        assert (saved.lru_evicted, saved.auto_archived, saved.index_count) == (2, 0, 3)
        assert live(small) == ["b", "click-new", "d"]
        assert archived(small) == [("c", "lru"), ("a", "lru")]


@pytest.mark.parametrize(
    ("last_accessed", "is_archived"),
    [
        ("2026-08-02", False),
        ("2026-08-02T00:00:00.000000Z", False),
        ("2026-08-01T23:59:59.999999Z", True),
        ("2026-08-01", True),
    ],
)
def test_more_than_sixty_whole_days_without_an_access_archive(
    store: Store, last_accessed: str, is_archived: bool
) -> None:
    make(store)
    insert_entry(store, "old", last_accessed=last_accessed)
    saved = saving.save(store, draft(), "# text\n", NOW)
    assert (saved.auto_archived, saved.lru_evicted, saved.index_count) == (is_archived, 0, 2 - is_archived)
    assert archived(store) == [("old", "age")] * is_archived


def test_an_archived_row_keeps_everything_with_when_and_why(store: Store) -> None:
    make(store)
    insert_entry(store, "old", last_accessed="2026-01-01")
    [before] = sql(store, f"SELECT {PUBLIC_COLUMNS} FROM entries")
    saving.save(store, draft(), "# text\n", NOW)
    [after] = sql(store, f"SELECT {PUBLIC_COLUMNS} FROM archived_entries")
    assert after == tuple("archived" if value == "fresh" else value for value in before)
    assert sql(store, "SELECT archived_at, reason, prior_status FROM archived_entries") == [
        ("2026-10-01T12:00:00.000000Z", "age", "fresh")
    ]
    with store.read() as tx:
        [row] = entries.archived_since(tx, 0)
    assert (row.entry.id, row.entry.status, row.reason) == ("old", "fresh", "age")


def test_the_entry_just_written_stays_whatever_the_limits(base: Path) -> None:
    with Store(None, base, max_entries=0, archive_after_days=-1) as store:
        for topic in ("one", "two"):
            saved = saving.save(store, draft(topic=topic), "# text\n", NOW - timedelta(days=500))
            assert saved.index_count == 1
        assert live(store) == ["click-two"]


def test_an_excerpt_of_installed_documentation_takes_no_findings_place(small: Store) -> None:
    with small:
        for topic in ("one", "two", "three"):
            saving.save(small, draft(topic=topic, origin="finding", written_by="agent:s"), "# text\n", NOW)
        excerpt = draft(topic="new", fresh_until="2026-10-02T12:00:00.000000Z")
        saved = saving.save(small, excerpt, "# new\n", NOW)
        assert (saved.lru_evicted, saved.index_count) == (1, 3)
        assert archived(small) == [("click-new", "lru")]


@pytest.mark.parametrize("event", ["INSERT ON archived_entries", "DELETE ON entries"])
def test_a_guard_that_fails_is_undone_alone(small: Store, event: str) -> None:
    with small:
        make(small)
        for name in "abcd":
            insert_entry(small, name)
        insert_entry(small, "old", last_accessed="2026-01-01")
        refuse(small, event)
        saved = saving.save(small, draft(), "# text\n", NOW)
        assert (saved.lru_evicted, saved.auto_archived, saved.index_count) == (-1, 0, 6)
        assert "not today" in saved.warnings[0]
        assert archived(small) == []
        assert saving.read_report(small, saved.entry) == "# text\n"
        allow(small, event)
        again = saving.save(small, draft(), "# new\n", NOW)
        assert (again.lru_evicted, again.auto_archived, again.index_count) == (2, 1, 3)


def test_the_guard_looks_at_no_archived_row(store: Store) -> None:
    make(store)
    row = "id, framework, framework_version, topic, tags, path, created, last_accessed, status, confidence"
    sql(
        store,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000) "
        f"INSERT INTO archived_entries ({row}, archived_at, reason, framework_key, topic_key, major, keywords_key, prior_status) "
        "SELECT 'a' || i, 'f', '1', 't' || i, '[]', 'p' || i, '', '', 'archived', 'low', '', 'lru', 'f', 't' || i, '1', '', 'fresh' FROM n",
    )
    for statement in (
        "SELECT 1 FROM archived_entries WHERE id = 'x' AND framework_key <> 'f'",
        "SELECT 1 FROM archived_entries WHERE path = 'x' AND framework_key <> 'f'",
        "SELECT 1 FROM archived_entries WHERE framework_key = 'f' AND topic_key = 't'",
    ):
        plan = str(sql(store, f"EXPLAIN {'' if store.is_shared else 'QUERY PLAN'} {statement}"))
        assert "INDEX" in plan.upper()
        assert "SCAN archived_entries" not in plan
    saved = saving.save(store, draft(), "# text\n", NOW)
    assert saved.lru_evicted == 0
