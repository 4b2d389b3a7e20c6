"""A knowledge base of the first build, taken over by many processes at once, some of which are killed."""

import os
import random
import signal
import time
from pathlib import Path

import pytest

from tests.support.older import fill_older, make_older
from tests.support.stores import finish, sql, start

ENTRIES = 200
EDITED = 20


@pytest.mark.processes
@pytest.mark.timeout(300)
@pytest.mark.effort(5, 1)
def test_processes_that_all_upgrade_at_once_take_every_text_in(tmp_path: Path, effort: int) -> None:
    chance = random.Random(5)
    for turn in range(effort):
        base = tmp_path / str(turn)
        base.mkdir()
        make_older(base / "kr.db", version=3)
        written = fill_older(base, ENTRIES, edited=EDITED)
        processes = [start("count", base) for _ in range(8)]
        time.sleep(chance.uniform(0.5, 4.0))
        for process in processes[:3]:
            os.kill(process.pid, signal.SIGKILL)
            process.communicate()
        assert [answer.strip() for answer in finish(processes[3:])] == [str(ENTRIES + 1)] * 5
        texts = sql(base / "kr.db", "SELECT path, text FROM reports JOIN entries USING (id)")
        assert dict(texts) == written
        assert sql(base / "kr.db", "SELECT count(*) FROM revisions") == [(EDITED,)]
        assert sql(base / "kr.db", "PRAGMA integrity_check") == [("ok",)]
        assert sql(base / "kr.db", "PRAGMA foreign_key_check") == []
