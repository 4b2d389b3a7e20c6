"""Time whole processes in turn: each round runs every command once, and the medians are compared."""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

KR = [sys.executable, "-m", "kr"]
FLOOR = "click floor"


def request(topic: str) -> str:
    return json.dumps(
        {
            "story_key": "1-1",
            "mode": "research",
            "session_id": "bench",
            "research_query": {
                "framework": "bench-framework",
                "framework_version": "1.0",
                "topic": topic,
                "tags": ["bench"],
                "question": f"How does {topic} work?",
            },
        }
    )


def run(command: list[str], document: str | None, environ: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(
        command,
        input=(document or "").encode(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environ,
        check=True,
    )
    return time.perf_counter() - started


def make_fresh(database: Path) -> None:
    """Turn the skeleton of an unreachable world into what a source would have left: a fresh entry."""
    import sqlite3

    connection = sqlite3.connect(database)
    with connection:
        connection.execute("UPDATE entries SET status = 'fresh', origin = 'researched'")
    connection.close()


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
    import sqlite3

    starts, hits, raw = [], [], []
    question = {"framework": "bench-framework", "framework_version": "1.0", "question": "How does it work?"}
    arguments = {**question, "topic": "virtual scrolling", "tags": ["bench"]}
    for _ in range(rounds):
        began = time.perf_counter()
        agent = Agent(environ)
        starts.append((time.perf_counter() - began, agent.cpu()))
        agent.say("tools/call", {"name": "research", "arguments": arguments})
        cpu = agent.cpu()
        for _ in range(30):
            began = time.perf_counter()
            answer = agent.say("tools/call", {"name": "research", "arguments": arguments})
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
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--mcp", action="store_true", help="time kr mcp, and no processes")
    said = parser.parse_args()
    rounds = said.rounds
    with tempfile.TemporaryDirectory() as folder:
        base = Path(folder) / "knowledge-base"
        environ = {
            **{name: value for name, value in os.environ.items() if not name.startswith("KR_")},
            "KR_KNOWLEDGE_BASE_PATH": str(base),
            "KR_SOURCES": "[]",
            "KR_FALLBACK_IF_MCP_UNAVAILABLE": "null",
            "KR_LOCAL_DOCS": "false",
        }
        research = [*KR, "research", "--request", "-"]
        run(research, request("virtual scrolling"), environ)
        make_fresh(base / "kr.db")
        if said.mcp:
            bench_mcp(environ, base / "kr.db", rounds)
            return
        times: dict[str, list[float]] = {}
        for number in range(rounds + 1):
            commands: dict[str, tuple[list[str], str | None]] = {
                FLOOR: ([sys.executable, "-c", "import click, sqlite3"], None),
                "kr --help": ([*KR, "--help"], None),
                "hit": (research, request("virtual scrolling")),
                "miss, no source configured": (research, request(f"subject{number} number{number}")),
            }
            for name, (command, document) in commands.items():
                seconds = run(command, document, environ)
                if number:  # the first round warms the file cache
                    times.setdefault(name, []).append(seconds)
    floor = statistics.median(times[FLOOR])
    print(f"{'command':<28} {'median ms':>10} {'min ms':>8} {'max ms':>8} {'x floor':>8}")
    for name, values in times.items():
        median = statistics.median(values)
        print(
            f"{name:<28} {median * 1000:>10.1f} {min(values) * 1000:>8.1f} {max(values) * 1000:>8.1f} {median / floor:>8.2f}"
        )


if __name__ == "__main__":
    main()
