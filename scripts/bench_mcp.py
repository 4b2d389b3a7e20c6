"""Time the start of ``kr mcp`` and its warm hits beside a look-up and a touch in raw SQLite. Linux alone."""

import argparse
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KR = [sys.executable, "-m", "kr"]
QUESTION = {
    "framework": "bench-framework",
    "framework_version": "1.0",
    "question": "How does it work?",
    "topic": "virtual scrolling",
    "tags": ["bench"],
}


class Agent:
    """A client of ``kr mcp`` that does no more than write and read lines."""

    def __init__(self, environ: dict[str, str]) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [*KR, "mcp"], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environ
        )
        client = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "b", "version": "1"},
        }
        self.say("initialize", client)
        self.process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')

    def say(self, method: str, params: dict[str, object]) -> dict[str, object]:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


def bench_mcp(environ: dict[str, str], database: Path, rounds: int) -> None:
    """Time the start of ``kr mcp`` and its warm hits, beside a look-up and a touch in raw SQLite; Linux alone."""
    starts, hits, raw = [], [], []
    for _ in range(rounds):
        began = time.perf_counter()
        agent = Agent(environ)
        starts.append((time.perf_counter() - began, agent.cpu()))
        agent.say("tools/call", {"name": "research", "arguments": QUESTION})
        cpu = agent.cpu()
        for _ in range(30):
            began = time.perf_counter()
            answer = agent.say("tools/call", {"name": "research", "arguments": QUESTION})
            hits.append(time.perf_counter() - began)
            if "cache-hit" not in json.dumps(answer):
                raise SystemExit(f"no hit: {answer}")
        cpu = agent.cpu() - cpu
        agent.end()
    connection = sqlite3.connect(database, isolation_level=None)
    for _ in range(30 * rounds):
        began = time.perf_counter()
        connection.execute("SELECT * FROM entries WHERE topic = 'virtual scrolling'").fetchall()
        connection.execute(
            "UPDATE entries SET last_accessed = last_accessed WHERE topic = 'virtual scrolling'"
        )
        raw.append(time.perf_counter() - began)
    connection.close()
    start, start_cpu = (statistics.median(values) * 1000 for values in zip(*starts, strict=True))
    print(f"kr mcp: start {start:.0f} ms ({start_cpu:.0f} ms of CPU)")
    print(f"kr mcp: warm hit {statistics.median(hits) * 1000:.1f} ms ({cpu / 30 * 1000:.1f} ms of CPU)")
    print(f"raw SQLite, look-up and touch: {statistics.median(raw) * 1000:.2f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "knowledge-base"
        environ = {name: value for name, value in os.environ.items() if not name.startswith("KR_")} | {
            "KR_KNOWLEDGE_BASE_PATH": str(base),
            "KR_SOURCES": "[]",
            "KR_FALLBACK_IF_MCP_UNAVAILABLE": "null",
            "KR_LOCAL_DOCS": "false",
        }
        agent = Agent(environ)
        agent.say("tools/call", {"name": "research", "arguments": {**QUESTION, "if_unsure": "research"}})
        agent.end()
        connection = sqlite3.connect(base / "kr.db")
        with connection:  # the skeleton of an unreachable world becomes what a source would have left
            connection.execute("UPDATE entries SET status = 'fresh', origin = 'researched'")
        connection.close()
        bench_mcp(environ, base / "kr.db", rounds)


if __name__ == "__main__":
    main()
