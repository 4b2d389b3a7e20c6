"""The lease of a question: one research for many, and whoever waits for it says so."""

import io
import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, redirect_stderr
from pathlib import Path

import pytest

from kr.cli.common import show_progress
from kr.research.chain import lease, lease_key
from kr.store import ledger
from tests.support.mcp_servers import context7_server
from tests.support.program import Project, request
from tests.support.runs import run_of

pytestmark = pytest.mark.usefixtures("database_url")


class Screen(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_terminal_sees_that_another_process_is_waited_for(tmp_path: Path) -> None:
    shown = Screen()
    with Project(tmp_path / "project").app() as app, redirect_stderr(shown):
        app.research.progress = show_progress
        run, other = run_of(app), "another"

        def let_go() -> None:
            with app.store.write() as tx:
                ledger.release_lease(tx, lease_key(run), other)

        with app.store.write() as tx:
            assert ledger.acquire_lease(tx, lease_key(run), other, now=app.clock(), ttl=60)
        threading.Timer(0.5, let_go).start()
        with lease(run) as waited:
            assert waited
            assert shown.getvalue().endswith("\r\x1b[K")  # the line is cleared before anything else is said
    assert "waiting for another process that researches the same …" in shown.getvalue()


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_what_was_found_out_between_the_look_and_the_lease_is_served(tmp_path: Path) -> None:
    """Who was just too late to wait asks nobody either: the first had let go of the lease, not of the answer."""
    with context7_server() as server, ThreadPoolExecutor(1) as pool:
        project = Project(tmp_path / "project")
        project.use_context7(server.url)
        answered = project.ask(request())["results"]["cache_entry_id"]
        project.sql("UPDATE entries SET status = 'stale', stale_reason = 'marked'")
        calls = len(server.calls())
        with closing(sqlite3.connect(project.database, isolation_level=None)) as first:
            first.execute("BEGIN IMMEDIATE")  # nobody gets a lease meanwhile
            late = pool.submit(project.ask, request())
            time.sleep(1)  # on a machine so slow that it has not looked yet, it finds the answer when it does
            first.execute("UPDATE entries SET status = 'fresh', stale_reason = NULL")
            first.execute("COMMIT")
        answer = late.result()
        assert (answer["status"], answer["results"]["cache_entry_id"]) == ("cache-hit", answered)
        assert len(server.calls()) == calls
