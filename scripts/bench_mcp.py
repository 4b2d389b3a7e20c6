"""Measure ``kr mcp``: its start, its memory, and the CPU of warm answers, beside a plain FTS5 select (rule 11). Linux alone."""

import argparse
import json
import sqlite3
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from scripts.bench_support import Stdio, cpu_of, fill, quiet
from tests.support.mcp_servers import context7_server

SIZES = (200, 2000)
HIT = {
    "framework": "bench0",
    "question": "How is virtual scrolling done in tests, part 0?",
    "topic": "virtual scrolling in tests 0",
}
OTHER = {
    "framework": "bench0",
    "question": "Which option keeps long lists quick while one scrolls virtually?",
}
SEARCH = {"query": "virtual scrolling workers"}
VERSION = {"framework_version": "1.0"}
CALLS: tuple[tuple[str, str, dict[str, Any], str, tuple[int, int]], ...] = (
    ("hit, with a version", "research", {**HIT, **VERSION}, "cache-hit", (3, 4)),
    ("candidates, with a version", "research", {**OTHER, **VERSION}, "candidate_report", (4, 8)),
    ("hit, without", "research", HIT, "cache-hit", (3, 4)),
    ("candidates, without", "research", OTHER, "candidate_report", (4, 8)),
    ("search", "search", SEARCH, "passage", (4, 8)),
)
"""What is asked, what stands in the answer, and the limits: CPU in milliseconds, at 200 and at 2,000 entries."""


def cost(agent: Stdio, rounds: int, tool: str, given: Callable[[], dict[str, Any]], wanted: str) -> float:
    """Return the CPU in milliseconds of one answer; the first ones are not counted."""
    for _ in range(5):
        if wanted not in (told := json.dumps(agent.call(tool, given()))):
            raise SystemExit(f"no {wanted}: {told[:600]}")
    before = cpu_of(agent.process.pid)
    for _ in range(rounds):
        agent.call(tool, given())
    return (cpu_of(agent.process.pid) - before) / rounds * 1000


def cost_of_a_miss(folder: Path, rounds: int) -> float:
    """Return the CPU in milliseconds that kr takes for a miss which a Context7 on this machine answers at once: a report is written."""
    with context7_server() as source:
        servers = json.dumps({"context7": {"url": source.url}})
        more = {"KR_SOURCES": "[context7]", "KR_SERVERS": servers, "KR_MAX_CALLS_PER_STORY": "1000"}
        agent = Stdio(quiet(folder / "kb-misses", **more), folder)

        def another() -> dict[str, Any]:
            question = f"How is option{time.monotonic_ns()} given?"
            version = {"framework_version": "3.5", "if_unsure": "research"}
            return {"framework": "vue", "question": question, **version}

        try:
            return cost(agent, rounds, "research", another, '"success"')
        finally:
            agent.end()


def memory_of(pid: int) -> float:
    """Return the most memory that a process has had, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6


def plain_select(database: Path, rounds: int) -> float:
    """Return the CPU in milliseconds of the select that a search server of nothing but FTS5 makes."""
    select = "SELECT rowid FROM entry_search WHERE entry_search MATCH ? ORDER BY bm25(entry_search) LIMIT 3"
    with closing(sqlite3.connect(database)) as connection:
        before = time.process_time()
        for _ in range(rounds):
            connection.execute(select, ("virtual OR scrolling OR workers",)).fetchall()
        return (time.process_time() - before) / rounds * 1000


def bench(folder: Path, entries: int, rounds: int) -> list[tuple[str, float, int]]:
    base = folder / f"kb-{entries}"
    fill(base, entries)
    began = time.perf_counter()
    agent = Stdio(quiet(base, KR_MAX_ENTRIES=str(entries + 100)), folder)
    started = time.perf_counter() - began
    found = []
    try:
        for name, tool, given, wanted, limits in CALLS:
            spent = cost(agent, rounds, tool, lambda given=given: given, wanted)
            found.append((name, spent, limits[entries > SIZES[0]]))
        found.append(("memory, MB", memory_of(agent.process.pid), 90))
    finally:
        agent.end()
    found.append(("plain FTS5 select", plain_select(base / "kr.db", rounds), 0))
    found.append(("start, seconds * 1000", started * 1000, 1000))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=200)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        measured = [bench(Path(folder), entries, given.rounds) for entries in SIZES]
        missed = cost_of_a_miss(Path(folder), given.rounds // 4)
    print(f"{'CPU of the server, ms':26}" + "".join(f"{entries:>10,}{'limit':>8}" for entries in SIZES))
    for rows in zip(*measured, strict=True):
        print(f"{rows[0][0]:26}" + "".join(f"{spent:10.1f}{limit or '-':>8}" for _, spent, limit in rows))
    print(f"{'a miss, Context7 answers':26}{missed:10.1f}{60:>8}")


if __name__ == "__main__":
    main()
