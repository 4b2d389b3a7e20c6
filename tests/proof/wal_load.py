"""Writers, readers and checkpointers on one database at the same time: through kr, and by the same statements without its lock.

``python -m tests.proof.wal_load --seconds 300`` asks whether SQLite's WAL-reset bug (sqlite.org/wal.html#walresetbug; SQLite 3.7.0 to
3.51.2) can corrupt a knowledge base. ``--without-lock`` plays the same load on a database of its own, with plain SQLite and separate
checkpoints, which may corrupt it. It ends with 1 where ``integrity_check`` finds something. See docs/reliability.md.
"""

import argparse
import json
import multiprocessing
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from kr.errors import KrError
from kr.store import entries, saving
from kr.store.engine import Store
from tests.support.stores import NOW, draft

TOPICS = 40
TURNS = 50
MANY = 2000


Work = Callable[[Path, random.Random], int]


def write_through_kr(base: Path, chance: random.Random) -> int:
    """Touch entries and write a report, as agents do, in a store that is opened and closed for it."""
    with Store(None, base, max_entries=TOPICS // 2) as store:
        for _ in range(TURNS):
            with store.write() as tx:
                entries.touch(tx, f"click-topic-{chance.randrange(TOPICS)}", NOW)
        topic = draft(topic=f"topic {chance.randrange(TOPICS)}")
        saving.save(store, topic, f"# {chance.random()}\n{'x' * 3000}\n", NOW)
    return TURNS + 1


def read_through_kr(base: Path, _: random.Random) -> int:
    with Store(None, base) as store:
        for _turn in range(TURNS):
            with store.read() as tx:
                entries.all(tx)
    return TURNS


def checkpoint_through_kr(base: Path, _: random.Random) -> int:
    """Open and close: whoever is the last to close makes a checkpoint."""
    with Store(None, base) as store, store.write() as tx:
        entries.count(tx)
    return 1


def plain(base: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(base / "plain.db", timeout=30, isolation_level=None)
    connection.execute("PRAGMA synchronous = OFF")
    return connection


def write_plainly(base: Path, chance: random.Random) -> int:
    """Commit as fast as SQLite can."""
    rows = (
        f"BEGIN IMMEDIATE; INSERT OR REPLACE INTO entries VALUES ({chance.randrange(1000)}, hex(randomblob({chance.randrange(200)}))); COMMIT;"
        for _ in range(MANY)
    )
    with closing(plain(base)) as connection:
        connection.execute("PRAGMA wal_autocheckpoint = 0")
        connection.executescript("".join(rows))
    return MANY


def checkpoint_plainly(base: Path, chance: random.Random) -> int:
    kinds = ("PASSIVE", "RESTART", "TRUNCATE")
    with closing(plain(base)) as connection:
        for _turn in range(TURNS):
            connection.execute(f"PRAGMA wal_checkpoint({chance.choice(kinds)})")
            time.sleep(chance.uniform(0, 0.004))
    return TURNS


LOADS: dict[bool, dict[str, tuple[Work, int]]] = {
    True: {
        "writers": (write_through_kr, 4),
        "readers": (read_through_kr, 2),
        "checkpointers": (checkpoint_through_kr, 2),
    },
    False: {"writers": (write_plainly, 2), "checkpointers": (checkpoint_plainly, 2)},
}


def work(job: tuple[str, Work, Path, int, float]) -> tuple[str, int, str]:
    """Repeat a step until the time is over; return how much was done, and the first error."""
    name, step, base, seed, until = job
    chance, done = random.Random(seed), 0
    try:
        while done == 0 or time.monotonic() < until:
            done += step(base, chance)
    except (KrError, sqlite3.Error) as error:
        return name, done, f"{type(error).__name__}: {error}"
    return name, done, ""


def play(base: Path, seconds: float, *, has_lock: bool) -> dict[str, Any]:
    """Play the load in processes of their own; return ``{done, errors, integrity_check}``."""
    database = base / ("kr.db" if has_lock else "plain.db")
    if has_lock:
        with Store(None, base) as store:
            for number in range(TOPICS // 2):
                saving.save(store, draft(topic=f"topic {number}"), f"# {number}\n", NOW)
    else:
        with closing(plain(base)) as connection:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("CREATE TABLE entries (id INTEGER PRIMARY KEY, text TEXT)")
            connection.execute("CREATE INDEX entries_text ON entries (text)")
    until = time.monotonic() + seconds
    jobs = [
        (name, step, base, seed, until)
        for name, (step, many) in LOADS[has_lock].items()
        for seed in range(many)
    ]
    with multiprocessing.get_context("spawn").Pool(len(jobs)) as pool:
        ended = pool.map(work, jobs, chunksize=1)
    done: Counter[str] = Counter()
    for name, times, _ in ended:
        done[name] += times
    with closing(sqlite3.connect(database)) as connection:
        found = [row[0] for row in connection.execute("PRAGMA integrity_check(3)")]
    errors = Counter(error for *_, error in ended if error)
    return {
        "sqlite": sqlite3.sqlite_version,
        "seconds": seconds,
        "done": dict(done),
        "errors": dict(errors),
        "integrity_check": found,
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--without-lock", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kr-") as place:
        result = play(Path(place), given.seconds, has_lock=not given.without_lock)
    sys.stdout.write(f"{json.dumps(result)}\n")
    return int(result["integrity_check"] != ["ok"] or bool(result["errors"]))


if __name__ == "__main__":
    sys.exit(main())
