"""Eight agents that ask and save over MCP at the same time: operations a second, and whether anything acknowledged is lost (rule 11).

Each agent has a ``kr mcp`` of its own over one knowledge base, or with ``--http`` all share one ``kr serve``. Of ``--save-every``
operations one saves a finding of its own, one rates one; the others ask what somebody has saved, by its own question or in other words.
The last line is JSON. Exit status 1: something that was acknowledged is not there.
"""

import argparse
import http.client
import json
import os
import random
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit

KR = [sys.executable, "-m", "kr"]
THINGS = (
    "column row cell table form field option menu modal chart filter route store query cache index".split()
)
DEEDS = "sort hide merge split freeze export import validate render animate paginate cancel retry".split()


class Client(Protocol):
    """Who calls tools."""

    def call(self, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        """Return what the tool answered, with ``is_error``."""

    def end(self) -> None:
        """Hang up."""


def message(method: str, params: dict[str, Any], number: int = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode()


HELLO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1"},
}


def read(answer: dict[str, Any]) -> dict[str, Any]:
    result = answer.get("result") or {"structuredContent": answer, "isError": True}
    return {**(result.get("structuredContent") or {"text": result}), "is_error": result.get("isError", False)}


class Stdio:
    """A ``kr mcp`` of its own."""

    def __init__(self, environ: dict[str, str], folder: Path) -> None:
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(
            [*KR, "mcp"], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, env=environ, cwd=folder
        )
        self._say(message("initialize", HELLO))
        self.process.stdin.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')

    def _say(self, line: bytes) -> dict[str, Any]:
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()
        answer: dict[str, Any] = json.loads(self.process.stdout.readline())
        return answer

    def call(self, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        return read(self._say(message("tools/call", {"name": tool, "arguments": given})))

    def end(self) -> None:
        self.process.stdin.close()
        self.process.wait()


class Http:
    """A session of a shared ``kr serve``."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._connection = http.client.HTTPConnection(parts.hostname or "", parts.port)
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        session = self._post(message("initialize", HELLO))[1].get("mcp-session-id")
        if session:
            self._headers["Mcp-Session-Id"] = session
        self._post(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')

    def _post(self, body: bytes) -> tuple[dict[str, Any], dict[str, str]]:
        self._connection.request("POST", "/mcp", body, self._headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        lines = [line.removeprefix("data:") for line in text.splitlines() if line.startswith(("data:", "{"))]
        told = {name.lower(): value for name, value in answer.getheaders()}
        return (json.loads(lines[-1]) if lines else {}), told

    def call(self, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        return read(self._post(message("tools/call", {"name": tool, "arguments": given}))[0])

    def end(self) -> None:
        self._connection.close()


@dataclass
class Done:
    """What an agent did: seconds of each operation by kind, what was acknowledged, and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    saved: dict[str, str] = field(default_factory=dict)
    """The mark in a finding's text, and the entry that it was acknowledged as."""
    rated: set[tuple[str, int, str]] = field(default_factory=set)
    logged: int = 0
    answers: dict[str, int] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


class Agent(threading.Thread):
    """Asks and saves until the end. ``known`` are the questions that somebody has saved, with their entries."""

    def __init__(
        self, name: str, client: Client, known: list[tuple[str, str]], plan: argparse.Namespace
    ) -> None:
        super().__init__(name=name)
        self._client = client
        self._known = known
        self._plan = plan
        self._chance = random.Random(name)  # noqa: S311 - the same each time
        self.done = Done()
        self.until = 0.0

    def run(self) -> None:
        number = 0
        while time.perf_counter() < self.until:
            turn = number % self._plan.save_every
            if turn == 0 or not self._known:
                self._save(number)
            elif turn == self._plan.save_every // 2:
                self._rate()
            else:
                self._ask()
            number += 1

    def _timed(self, kind: str, tool: str, given: dict[str, Any]) -> dict[str, Any]:
        began = time.perf_counter()
        answer = self._client.call(tool, {**given, "session_id": self.name})
        self.done.seconds.setdefault(kind, []).append(time.perf_counter() - began)
        if answer["is_error"]:
            self.done.wrong.append(f"{tool}: {json.dumps(answer)[:300]}")
        return answer

    def _save(self, number: int) -> None:
        mark = f"{self.name}-{number}"
        question = f"How do I {self._chance.choice(DEEDS)} a {self._chance.choice(THINGS)} of kind {mark}?"
        answer = self._timed(
            "save",
            "save_finding",
            {
                "framework": "bench",
                "framework_version": "1.0",
                "question": question,
                "answer": f"Call `use_{mark.replace('-', '_')}()` before the first render; marked {mark}.",
                "code": f"use_{mark.replace('-', '_')}()\n" * 10,
                "verified_by": "npm test",
            },
        )
        if answer.get("status") == "saved":
            self.done.saved[mark] = answer["results"]["id"]
            self._known.append((question, answer["results"]["id"]))
        else:
            self.done.wrong.append(f"save: {json.dumps(answer)[:300]}")

    def _rate(self) -> None:
        _, entry_id = self._chance.choice(self._known[-100:])
        answer = self._timed("rate", "rate_report", {"id": entry_id, "outcome": "worked"})
        if "revision" in answer:
            self.done.rated.add((entry_id, answer["revision"], self.name))

    def _ask(self) -> None:
        question, _ = self._chance.choice(self._known[-100:])
        in_other_words = self._chance.random() < self._plan.other_words
        if in_other_words:
            question = " ".join(["Which call is for", *reversed(question.rstrip("?").split()[3:])])
        answer = self._timed(
            "offer" if in_other_words else "hit",
            "research",
            {"framework": "bench", "framework_version": "1.0", "question": question},
        )
        status = answer.get("status", "none")
        self.done.answers[status] = self.done.answers.get(status, 0) + 1
        self.done.logged += bool(answer.get("results", {}).get("index_updated"))


def lost(database: Path, agents: list[Agent]) -> list[str]:
    """Return what was acknowledged and is not there."""
    with closing(sqlite3.connect(database)) as connection:
        texts = [row[0] for row in connection.execute("SELECT text FROM report_texts")]
        entries = {
            row[0]
            for row in connection.execute("SELECT id FROM entries UNION SELECT id FROM archived_entries")
        }
        ratings = set(connection.execute("SELECT entry_id, revision, session_id FROM ratings"))
        counted = dict(
            connection.execute(
                "SELECT session_id, count(*) FROM requests WHERE mode = 'research' GROUP BY session_id"
            )
        )
        (state,) = connection.execute("PRAGMA integrity_check").fetchone()
    marks = {mark for text in texts for mark in [text.partition("; marked ")[2].partition(".")[0]]}
    missing = [] if state == "ok" else [f"the database: {state}"]
    for agent in agents:
        done = agent.done
        missing += [f"the text {mark} of {entry}" for mark, entry in done.saved.items() if mark not in marks]
        missing += [f"the entry {entry}" for entry in done.saved.values() if entry not in entries]
        missing += [f"the rating {rating}" for rating in done.rated - ratings]
        if counted.get(agent.name, 0) < done.logged:
            missing.append(f"{done.logged - counted.get(agent.name, 0)} requests of {agent.name}")
    return missing


def bench(plan: argparse.Namespace, folder: Path) -> int:
    base = folder / "knowledge-base"
    environ = {name: value for name, value in os.environ.items() if not name.startswith("KR_")} | {
        "KR_KNOWLEDGE_BASE_PATH": str(base),
        "KR_SOURCES": "[]",
        "KR_FALLBACK_IF_MCP_UNAVAILABLE": "null",
        "KR_LOCAL_DOCS": "false",
    }
    server, clients = None, list[Client]()
    try:
        if plan.http:
            server, url = serve(environ, folder)
            clients += [Http(url) for _ in range(plan.clients)]
        else:
            clients += [Stdio(environ, folder) for _ in range(plan.clients)]
        known: list[tuple[str, str]] = []
        agents = [Agent(f"agent-{number}", client, known, plan) for number, client in enumerate(clients)]
        for agent in agents:  # each has something to ask for, and every server is warm
            agent._save(-1 - plan.save_every)  # noqa: SLF001
            agent.done.seconds.clear()
        pids = (
            [server.pid]
            if server
            else [client.process.pid for client in clients if isinstance(client, Stdio)]
        )
        began, cpu = time.perf_counter(), sum(map(cpu_of, pids))
        for agent in agents:
            agent.until = began + plan.seconds
            agent.start()
        for agent in agents:
            agent.join()
        took, cpu = time.perf_counter() - began, sum(map(cpu_of, pids)) - cpu
    finally:
        for client in clients:
            client.end()
        if server is not None:
            server.send_signal(signal.SIGTERM)
            server.wait()
    return tell(agents, took, cpu, lost(base / "kr.db", agents))


def cpu_of(pid: int) -> float:
    """Return the seconds of CPU that a process has used; Linux alone."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def serve(environ: dict[str, str], folder: Path) -> tuple["subprocess.Popen[bytes]", str]:
    log = (folder / "server.log").open("wb")
    process = subprocess.Popen([*KR, "serve", "--port", "0"], stderr=log, env=environ, cwd=folder)
    end = time.monotonic() + 60
    while time.monotonic() < end:
        for line in (folder / "server.log").read_bytes().splitlines():
            if b" kr serves " in line:
                return process, line.decode().split()[-1]
        time.sleep(0.05)
    raise SystemExit("kr serve did not start")


def tell(agents: list[Agent], took: float, cpu: float, missing: list[str]) -> int:
    kinds: dict[str, list[float]] = {}
    for agent in agents:
        for kind, seconds in agent.done.seconds.items():
            kinds.setdefault(kind, []).extend(seconds)
    number = sum(map(len, kinds.values()))
    for kind, seconds in sorted(kinds.items()):
        ordered = sorted(seconds)
        median, late = statistics.median(ordered) * 1000, ordered[int(len(ordered) * 0.99)] * 1000
        print(
            f"{kind}: {len(seconds)}, median {median:.1f} ms, 99 in 100 within {late:.1f} ms, worst {ordered[-1] * 1000:.0f} ms"
        )
    wrong = [why for agent in agents for why in agent.done.wrong]
    for why in [*wrong[:5], *missing[:5]]:
        print(why)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    answers: dict[str, int] = {}
    for agent in agents:
        for status, count in agent.done.answers.items():
            answers[status] = answers.get(status, 0) + count
    told = {
        "operations": number,
        "a_second": round(number / took, 1),
        "cpu_ms_an_operation": round(cpu * 1000 / number, 2),
        "errors": len(wrong),
        "lost": len(missing),
        "saved": sum(len(agent.done.saved) for agent in agents),
        "answers": answers,
        "not_noted": sum(answers.values()) - sum(agent.done.logged for agent in agents),
        "cores": os.cpu_count(),
        "load": load,
    }
    print(json.dumps(told))
    return 1 if missing or wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--save-every", type=int, default=10, help="of so many operations one saves")
    parser.add_argument(
        "--other-words", type=float, default=0.2, help="share of the questions in other words"
    )
    parser.add_argument("--http", action="store_true", help="all share one kr serve")
    with tempfile.TemporaryDirectory() as folder:
        return bench(parser.parse_args(), Path(folder))


if __name__ == "__main__":
    sys.exit(main())
