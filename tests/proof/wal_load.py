"""Writers, readers and checkpointers on one knowledge base at the same time, through kr.

``python -m tests.proof.wal_load --seconds 300`` ends with 1 where ``integrity_check`` finds something, or one of them had an error.
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
from contextlib import closing
from pathlib import Path
from typing import Any

from kr.errors import KrError
from kr.store import entries, lookup, saving
from kr.store.engine import Store
from tests.support.stores import NOW, draft

TOPICS, TURNS = 40, 50
WORKERS = {"write": 4, "read": 2, "checkpoint": 2}


def step(kind: str, base: Path, chance: random.Random) -> int:
    """Do a piece of work in a store that is opened and closed for it, as agents do; return how many operations it was.

    Whoever is the last to close makes a checkpoint: that of ``checkpoint`` does nothing else.
    """
    with Store(None, base, max_entries=TOPICS // 2) as store:
        if kind == "checkpoint":
            with store.write() as tx:
                entries.count(tx)
            return 1
        for _ in range(TURNS):
            if kind == "read":
                with store.read() as tx:
                    entries.all(tx)
            else:
                with store.write() as tx:
                    lookup.touch(tx, f"click-topic-{chance.randrange(TOPICS)}", NOW)
        if kind == "write":
            topic = draft(topic=f"topic {chance.randrange(TOPICS)}")
            saving.save(store, topic, f"# {chance.random()}\n{'x' * 3000}\n", NOW)
    return TURNS


def work(job: tuple[str, Path, int, float]) -> tuple[str, int, str]:
    """Repeat a step until the time is over; return how much was done, and the first error."""
    kind, base, seed, until = job
    chance, done = random.Random(seed), 0
    try:
        while done == 0 or time.monotonic() < until:
            done += step(kind, base, chance)
    except (KrError, sqlite3.Error) as error:
        return kind, done, f"{type(error).__name__}: {error}"
    return kind, done, ""


def play(base: Path, seconds: float) -> dict[str, Any]:
    """Play the load in processes of their own; return ``{done, errors, integrity_check}``."""
    with Store(None, base) as store:
        for number in range(TOPICS // 2):
            saving.save(store, draft(topic=f"topic {number}"), f"# {number}\n", NOW)
    until = time.monotonic() + seconds
    jobs = [(kind, base, seed, until) for kind, many in WORKERS.items() for seed in range(many)]
    with multiprocessing.get_context("spawn").Pool(len(jobs)) as pool:
        ended = pool.map(work, jobs, chunksize=1)
    done: Counter[str] = Counter()
    for kind, times, _ in ended:
        done[kind] += times
    with closing(sqlite3.connect(base / "kr.db")) as connection:
        found = [row[0] for row in connection.execute("PRAGMA integrity_check(3)")]
    errors = Counter(error for *_, error in ended if error)
    return {"done": dict(done), "errors": dict(errors), "integrity_check": found}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kr-") as place:
        result = play(Path(place), given.seconds)
    sys.stdout.write(f"{json.dumps(result)}\n")
    return int(result["integrity_check"] != ["ok"] or bool(result["errors"]))


if __name__ == "__main__":
    sys.exit(main())
