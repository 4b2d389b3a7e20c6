"""What is PostgreSQL's alone: how its tables are made, who waits for whom, and what becomes of a server that fails."""

import signal
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
import sqlalchemy
from alembic import command
from alembic.config import Config
from sqlalchemy.pool import NullPool

from kr.errors import StoreBusy, StoreError, StoreTooNew, StoreUnwritable
from kr.store import entries, saving
from kr.store.engine import Store, Transaction
from kr.store.postgresql import MOST_CONNECTIONS
from tests.support.postgresql import Databases, Server, started
from tests.support.stores import NOW, ROOT, draft, on_server, sql, together

SCHEMA = """
SELECT table_name, column_name, data_type, collation_name, is_nullable, column_default
FROM information_schema.columns WHERE table_schema = 'public'
UNION ALL SELECT tablename, indexname, indexdef, NULL, NULL, NULL FROM pg_indexes WHERE schemaname = 'public'
UNION ALL SELECT viewname, definition, NULL, NULL, NULL, NULL FROM pg_views WHERE schemaname = 'public'
UNION ALL SELECT conrelid::regclass::text, conname, pg_get_constraintdef(oid), NULL, NULL, NULL
FROM pg_constraint WHERE connamespace = 'public'::regnamespace
UNION ALL SELECT proname, prosrc, NULL, NULL, NULL, NULL FROM pg_proc WHERE pronamespace = 'public'::regnamespace
UNION ALL SELECT key, value, NULL, NULL, NULL, NULL FROM meta ORDER BY 1, 2, 3
"""


@pytest.fixture
def database_url(postgresql: Databases) -> str:
    return postgresql.clean()


@pytest.fixture
def empty(postgresql: Databases) -> Iterator[str]:
    """Give a database that nobody has used."""
    with postgresql.one(is_empty=True) as url:
        yield url


@pytest.fixture
def server() -> Iterator[Server]:
    """Give a server that the test may stop."""
    with started("fsync=off", "full_page_writes=off") as own:
        if own is None:
            pytest.skip("there are no binaries of PostgreSQL")
        yield own


def put(store: Store, key: str = "key", *, timeout: float | None = None, scope: str | None = "index") -> None:
    with store.write(timeout=timeout, scope=scope) as tx:
        tx.note(key, "value")


def held(store: Store) -> str | None:
    with store.read() as tx:
        return tx.fact("key")


def test_migrations_and_a_first_use_make_the_same_schema(postgresql: Databases, empty: str) -> None:
    engine = sqlalchemy.create_engine(empty, poolclass=NullPool)
    config = Config(ROOT / "alembic.ini")
    with engine.begin() as begun:
        config.attributes["connection"] = begun
        command.upgrade(config, "head")
    assert on_server(empty, SCHEMA) == on_server(postgresql.clean(), SCHEMA)


def test_a_look_makes_no_tables(empty: str, base: Path) -> None:
    with Store(empty, base) as store:
        assert not store.exists()
        with store.read() as tx:
            assert entries.all(tx) == []
        assert on_server(empty, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(0,)]
        put(store)
        assert store.exists()


@pytest.mark.processes
def test_many_processes_make_the_tables_once(empty: str, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KR_DATABASE_URL", empty)
    assert together("first-use", base, [(number,) for number in range(8)]) == ["True"] * 8
    assert on_server(empty, "SELECT count(*) FROM entries") == [(8,)]


@pytest.mark.parametrize("name", ["entries", "alembic_version"])
def test_tables_of_another_program_are_left_alone(empty: str, base: Path, name: str) -> None:
    on_server(empty, f"CREATE TABLE {name} (id text)")
    with Store(empty, base) as store, pytest.raises(StoreError, match=f"table {name} of another program"):
        put(store)
    assert on_server(empty, "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'") == [(1,)]


def test_a_schema_of_its_own_is_enough(empty: str, base: Path) -> None:
    on_server(empty, "CREATE TABLE entries (id text); CREATE SCHEMA kr")
    with Store(f"{empty}?options=-csearch_path%3Dkr", base) as store:
        put(store)
        assert held(store) == "value"


def test_a_newer_database_is_too_new(store: Store) -> None:
    sql(store, "UPDATE meta SET value = '99' WHERE key = 'schema_version'")
    with pytest.raises(StoreTooNew):
        put(store)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql+psycopg://kr:top/secret@127.0.0.1:1/kr",
        "postgresql+psycopg://kr:topsecret@127.0.0.1:1/kr",
        "postgresql+psycopg://kr:top@secret@127.0.0.1:1/kr",
        "postgresql+psycopg://kr:topsecret@127.0.0.1:port/kr",
        "postgresql+psycopg://kr:topsecret@127.0.0.1:1/kr?no_such=option",
    ],
)
def test_a_database_that_cannot_be_reached_is_an_error_without_a_password(base: Path, url: str) -> None:
    with Store(url, base) as store, pytest.raises(StoreError) as caught:
        put(store)
    assert "secret" not in str(caught.value)
    assert "127.0.0.1" in str(caught.value) or "KR_DATABASE_URL" in str(caught.value)


def test_a_wrong_password_is_an_error_without_it(server: Server, base: Path) -> None:
    on_server(server.url, "CREATE ROLE locked LOGIN PASSWORD 'right'")
    with Store(server.url.replace("postgres@", "locked:wrong-one@"), base) as store:
        with pytest.raises(StoreError, match="password authentication failed") as caught:
            put(store)
        assert "wrong-one" not in str(caught.value)


def test_writers_of_one_scope_wait_and_others_do_not(store: Store) -> None:
    put(store)
    with store.write(scope="one"):
        put(store, "other", scope="another")
        with pytest.raises(StoreBusy):
            put(store, scope="one", timeout=0.1)
        assert held(store) == "value"


def _go_on_after_a_failure(tx: Transaction) -> None:
    tx.note("third", "value")
    with suppress(StoreError):
        tx.execute("INSERT INTO nowhere VALUES (1)")


def test_a_failure_that_the_caller_passes_over_leaves_nothing(store: Store) -> None:
    with pytest.raises(StoreError, match="had failed"):
        store.change(_go_on_after_a_failure, scope=None)
    put(store, "other")
    with store.read() as tx:
        assert (tx.fact("third"), tx.fact("other")) == (None, "value")


def test_a_deadlock_is_tried_again(store: Store) -> None:
    for key in "ab":
        put(store, key)
    met = threading.Barrier(2, timeout=10)
    tries: list[str] = []

    def turn(tx: Transaction, first: str, second: str) -> None:
        tries.append(first)
        tx.note(first, first)
        if len(tries) < 3:
            met.wait()
        tx.note(second, first)

    def change(first: str, second: str) -> None:
        store.change(lambda tx: turn(tx, first, second), scope=None)

    with ThreadPoolExecutor(2) as pool:
        list(pool.map(change, "ab", "ba"))
    assert len(tries) == 3


def test_connections_that_are_all_in_use_are_waited_for_and_not_for_ever(store: Store) -> None:
    with ExitStack() as opened:
        for _ in range(MOST_CONNECTIONS):
            opened.enter_context(store.read())
        with pytest.raises(StoreBusy, match="in use"):
            put(store, timeout=0.1)
    put(store, timeout=0.1)


def cut(store: Store) -> None:
    sql(store, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'kr'")


def test_a_connection_that_was_cut_while_idle_is_exchanged(store: Store) -> None:
    put(store)
    cut(store)
    put(store, "again")
    cut(store)
    assert held(store) == "value"


def test_a_database_that_may_only_be_read_is_read(store: Store, postgresql: Databases) -> None:
    entry = saving.save(store, draft(), "# text\n", NOW).entry
    name = store.location.rpartition("/")[2]
    sql(store, f'ALTER DATABASE "{name}" SET default_transaction_read_only = on')
    try:
        store.close()
        with store.read() as tx:
            assert entries.all(tx) == [entry]
        with pytest.raises(StoreUnwritable):
            put(store)
        with pytest.raises(StoreUnwritable):
            saving.save(store, draft(topic="another"), "# text\n", NOW)
    finally:
        on_server(postgresql.url, f'ALTER DATABASE "{name}" RESET default_transaction_read_only')
        store.close()
    put(store)


@pytest.mark.processes
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_a_store_survives_a_restart_of_its_server(server: Server, base: Path, how: signal.Signals) -> None:
    with Store(server.url, base) as store:
        entry = saving.save(store, draft(), "# text\n", NOW).entry
        server.stop(how)
        with pytest.raises(StoreError):
            put(store)
        server.start()
        deadline = time.monotonic() + 20
        while held(store) is None and time.monotonic() < deadline:
            put(store)
        with store.read() as tx:
            assert entries.all(tx) == [entry]
