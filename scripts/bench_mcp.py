"""Measure ``kr mcp``: its start, its memory, and the CPU of warm answers, beside a plain FTS5 select (rule 11). Linux alone."""

import argparse
import json
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kr.models import Entry
from kr.store import saving
from kr.store.engine import Store
from tests.support.mcp_servers import context7_server

KR = [sys.executable, "-m", "kr"]
SIZES = (200, 2000)
FRAMEWORKS = 20
SUBJECTS = (
    "virtual scrolling",
    "form validation",
    "lazy routes",
    "retry policy",
    "token refresh",
    "batch inserts",
)
SIDES = (
    "in tests",
    "behind a proxy",
    "on startup",
    "per tenant",
    "over websockets",
    "after a crash",
    "with workers",
)
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
LIMITS = {"hit": (3, 4), "candidates": (4, 8), "search": (4, 8)}
"""CPU in milliseconds, at 200 and at 2,000 entries."""


class Agent:
    """A client of ``kr mcp`` that does no more than write and read lines."""

    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [*KR, "mcp"], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environ, cwd=folder
        )
        client = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "b", "version": "1"},
        }
        self.say("initialize", client)
        self.process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')

    def say(self, method: str, params: dict[str, object]) -> dict[str, Any]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while "id" not in (told := json.loads(self.process.stdout.readline())):
            pass
        return told

    def call(self, tool: str, arguments: dict[str, object]) -> str:
        return json.dumps(self.say("tools/call", {"name": tool, "arguments": arguments}))

    def cpu(self) -> float:
        """Return the seconds of CPU that the server and what it has started and waited for have used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return sum(int(fields[at]) for at in (11, 12, 13, 14)) / os.sysconf("SC_CLK_TCK")

    def memory(self) -> float:
        """Return the most memory that the server has had, in MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024 / 1e6

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def fill(base: Path, entries: int) -> None:
    with Store(None, base, max_entries=entries + 100) as store:
        for number in range(entries):
            part, framework = divmod(number, FRAMEWORKS)
            subject = f"{SUBJECTS[part % len(SUBJECTS)]} {SIDES[part % len(SIDES)]}"
            draft = Entry(
                framework=f"bench{framework}",
                framework_version="1.0",
                topic=f"{subject} {part}",
                tags=tuple(subject.split()[:2]),
                confidence="medium",
                question=f"How is {subject} done, part {part}?",
            )
            body = " ".join(
                f"Set `option_{part}_{line}` for {subject} and read it once more." for line in range(60)
            )
            report = (
                f"# {draft.framework} - {draft.topic}\n\n## Summary\n\nSet it once.\n\n## Details\n\n{body}\n"
            )
            saving.save(store, draft, report, datetime.now(UTC))


def cpu_of(agent: Agent, rounds: int, ask: Callable[[int], str], wanted: str) -> float:
    """Return the CPU in milliseconds of one answer; the first ones are not counted."""
    for number in range(5):
        if wanted not in (told := ask(number)):
            raise SystemExit(f"no {wanted}: {told[:600]}")
    before = agent.cpu()
    for number in range(rounds):
        ask(number)
    return (agent.cpu() - before) / rounds * 1000


def cost_of_a_miss(folder: Path, rounds: int) -> float:
    """Return the CPU in milliseconds that kr takes for a miss which a Context7 on this machine answers at once: a report is written."""
    with context7_server() as source:
        environ = {name: value for name, value in os.environ.items() if not name.startswith("KR_")} | {
            "KR_KNOWLEDGE_BASE_PATH": str(folder / "kb-misses"),
            "KR_SERVERS": json.dumps({"context7": {"url": source.url}}),
            "KR_SOURCES": '["context7"]',
            "KR_FALLBACK_IF_MCP_UNAVAILABLE": "null",
            "KR_MAX_CALLS_PER_STORY": "1000",
        }
        agent = Agent(environ, folder)
        try:
            return cpu_of(
                agent,
                rounds,
                lambda _: agent.call(
                    "research",
                    {
                        "framework": "vue",
                        "framework_version": "3.5",
                        "question": f"How is option{time.monotonic_ns()} given?",
                        "if_unsure": "research",
                    },
                ),
                '"success"',
            )
        finally:
            agent.end()


def plain_select(database: Path, rounds: int) -> float:
    """Return the CPU in milliseconds of the select that a search server of nothing but FTS5 makes."""
    connection = sqlite3.connect(database)
    statement = (
        "SELECT rowid FROM entry_search WHERE entry_search MATCH ? ORDER BY bm25(entry_search) LIMIT 3"
    )
    before = time.process_time()
    for _ in range(rounds):
        connection.execute(statement, ("virtual OR scrolling OR workers",)).fetchall()
    spent = (time.process_time() - before) / rounds * 1000
    connection.close()
    return spent


def bench(folder: Path, entries: int, rounds: int) -> list[tuple[str, float, int]]:
    base = folder / f"kb-{entries}"
    fill(base, entries)
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("KR_", "VIRTUAL_ENV"))
    }
    environ |= {
        "KR_KNOWLEDGE_BASE_PATH": str(base),
        "KR_MAX_ENTRIES": str(entries + 100),
        "KR_SOURCES": "[]",
        "KR_FALLBACK_IF_MCP_UNAVAILABLE": "null",
        "KR_LOCAL_DOCS": "false",
    }
    version = {"framework_version": "1.0"}
    began = time.perf_counter()
    agent = Agent(environ, folder)
    started = time.perf_counter() - began
    found = []
    try:
        for name, more in (("with a version", version), ("without", {})):
            hit = cpu_of(
                agent, rounds, lambda _, more=more: agent.call("research", {**HIT, **more}), "cache-hit"
            )
            found.append((f"hit, {name}", hit, LIMITS["hit"][entries > SIZES[0]]))
            offer = cpu_of(
                agent,
                rounds,
                lambda _, more=more: agent.call("research", {**OTHER, **more}),
                "candidate_report",
            )
            found.append((f"candidates, {name}", offer, LIMITS["candidates"][entries > SIZES[0]]))
        search = cpu_of(agent, rounds, lambda _: agent.call("search", SEARCH), "passage")
        found.append(("search", search, LIMITS["search"][entries > SIZES[0]]))
        found.append(("memory, MB", agent.memory(), 90))
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
