"""Measure a write beside a large archive, its export included, against the same write beside none: CPU of ``kr mcp``, in turns."""

import argparse
import sqlite3
import statistics
import tempfile
from contextlib import ExitStack, closing
from pathlib import Path

from scripts.bench_support import Stdio, cpu_of, fill, quiet

LIVE = 200
"""As many as are kept at most, so that each write evicts one entry into the archive."""


def fill_archive(database: Path, rows: int) -> None:
    """Copy live rows into the archive, each under an id and a topic of its own, until it has ``rows``."""
    with closing(sqlite3.connect(database)) as connection:
        named = [row[1] for row in connection.execute("PRAGMA table_info(entries)")]
        kept = {row[1] for row in connection.execute("PRAGMA table_info(archived_entries)")}
        columns = [name for name in named if name in kept]
        own = {name: f"{name} || '-' || n" for name in ("id", "topic", "topic_key", "path")}
        values = ", ".join({**own, "status": "'archived'"}.get(name, name) for name in columns)
        counted = "WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < ?)"
        into = f"INSERT INTO archived_entries ({', '.join(columns)}, prior_status, archived_at, reason)"
        copied = f"SELECT {values}, 'fresh', last_accessed, 'lru' FROM counted, entries"  # noqa: S608 -- the schema's columns
        connection.execute(f"{counted} {into} {copied}", (rows // LIVE,))
        connection.commit()


def save(agent: Stdio, number: int) -> float:
    """Return the CPU in milliseconds of some saves, each of which evicts an entry and exports both files."""
    before = cpu_of(agent.process.pid)
    for part in range(20):
        finding = {
            "framework": f"bench{part}",
            "framework_version": "1.0",
            "question": f"How is option {number} of part {part} set?",
            "answer": f"Set `option_{number}` of part {part} before the start.",
            "verified_by": "a test",
        }
        told = agent.call("save_finding", finding)
        if told["status"] != "saved":
            raise SystemExit(str(told)[:600])
    return (cpu_of(agent.process.pid) - before) / 20 * 1000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    agents: dict[int, Stdio] = {}
    spent: dict[int, list[float]] = {0: [], given.rows: []}
    with tempfile.TemporaryDirectory() as name, ExitStack() as ending:
        for rows in spent:
            base = Path(name, f"kb-{rows}")
            fill(base, LIVE)
            fill_archive(base / "kr.db", rows)
            agents[rows] = Stdio(quiet(base, KR_MAX_ENTRIES=str(LIVE)), Path(name))
            ending.callback(agents[rows].end)
        for number in range(given.rounds + 1):
            for rows, agent in agents.items():
                cost = save(agent, number)
                if number:  # the first export writes the whole archive
                    spent[rows].append(cost)
    none, many = (statistics.median(found) for found in spent.values())
    beside = f"a write beside {given.rows:,} archived rows {many:.2f} ms of CPU, beside none {none:.2f} ms"
    print(f"{beside}: {many / none:.2f} times (limit 1.3)")


if __name__ == "__main__":
    main()
