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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15)
    rounds = parser.parse_args().rounds
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
