"""Eight agents that ask and save over MCP at the same time: operations a second, and whether anything acknowledged is lost (rule 11).

Each agent has a ``kr mcp`` of its own over one knowledge base, or with ``--http`` all share one ``kr serve``. Of ``--save-every``
operations one saves a finding of its own, one rates one; the others ask what somebody has saved, by its own question or in other words.
The last line is JSON. Exit status 1: something that was acknowledged is not there.
"""

import argparse
import json
import os
import random
import sqlite3
import statistics
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from scripts.bench_support import Client, Http, Stdio, cpu_of, quiet
from tests.support.program import Project
from tests.support.servers import serving

THINGS = (
    "column row cell table form field option menu modal chart filter route store query cache index".split()
)
OF = {"framework": "bench", "framework_version": "1.0"}
DEEDS = "sort hide merge split freeze export import validate render animate paginate cancel retry".split()


@dataclass
class Done:
    """What an agent did: seconds of each operation by kind, what was acknowledged, and what went wrong."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    saved: dict[str, str] = field(default_factory=dict)
    """The mark in a finding's text, and the entry that it was acknowledged as."""
    rated: set[tuple[str, int, str]] = field(default_factory=set)
    logged: int = 0
    answers: Counter[str] = field(default_factory=Counter)
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
                self.save(number)
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

    def save(self, number: int) -> None:
        mark = f"{self.name}-{number}"
        question = f"How do I {self._chance.choice(DEEDS)} a {self._chance.choice(THINGS)} of kind {mark}?"
        code = f"use_{mark.replace('-', '_')}()"
        finding = {
            "question": question,
            "answer": f"Call `{code}` before the first render; marked {mark}.",
            "code": f"{code}\n" * 10,
            "verified_by": "npm test",
        }
        answer = self._timed("save", "save_finding", {**OF, **finding})
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
        kind = "offer" if in_other_words else "hit"
        answer = self._timed(kind, "research", {**OF, "question": question})
        self.done.answers[answer.get("status", "none")] += 1
        self.done.logged += bool(answer.get("results", {}).get("index_updated"))


def lost(database: Path, agents: list[Agent]) -> list[str]:
    """Return what was acknowledged and is not there."""
    with closing(sqlite3.connect(database)) as connection:
        read = connection.execute
        texts = "\n".join(row[0] for row in read("SELECT text FROM report_texts"))
        ids = {row[0] for row in read("SELECT id FROM entries UNION SELECT id FROM archived_entries")}
        ratings = set(read("SELECT entry_id, revision, session_id FROM ratings"))
        asked = Counter(row[0] for row in read("SELECT session_id FROM requests WHERE mode = 'research'"))
        (state,) = read("PRAGMA integrity_check").fetchone()
    missing = [] if state == "ok" else [f"the database: {state}"]
    for agent in agents:
        done = agent.done
        for mark, entry in done.saved.items():
            if f"; marked {mark}." not in texts or entry not in ids:
                missing.append(f"{mark} of {entry}")
        missing += [f"the rating {rating}" for rating in done.rated - ratings]
        if asked[agent.name] < done.logged:
            missing.append(f"{done.logged - asked[agent.name]} requests of {agent.name}")
    return missing


def bench(plan: argparse.Namespace, folder: Path) -> int:
    clients = list[Client]()
    with ExitStack() as ending:
        if plan.http:
            project = Project(folder)
            server = ending.enter_context(serving(project))
            base, pids = project.base, [server.process.pid]
            clients += [Http(server.url) for _ in range(plan.clients)]
        else:
            base = folder / "knowledge-base"
            own = [Stdio(quiet(base), folder) for _ in range(plan.clients)]
            pids = [client.process.pid for client in own]
            clients += own
        for client in clients:
            ending.callback(client.end)
        known: list[tuple[str, str]] = []
        agents = [Agent(f"agent-{number}", client, known, plan) for number, client in enumerate(clients)]
        for agent in agents:  # each has something to ask for, and every server is warm
            agent.save(-1 - plan.save_every)
            agent.done.seconds.clear()
        began, cpu = time.perf_counter(), sum(map(cpu_of, pids))
        for agent in agents:
            agent.until = began + plan.seconds
            agent.start()
        for agent in agents:
            agent.join()
        took, cpu = time.perf_counter() - began, sum(map(cpu_of, pids)) - cpu
    return tell(agents, took, cpu, lost(base / "kr.db", agents))


def tell(agents: list[Agent], took: float, cpu: float, missing: list[str]) -> int:
    kinds: dict[str, list[float]] = {}
    for agent in agents:
        for kind, seconds in agent.done.seconds.items():
            kinds.setdefault(kind, []).extend(seconds)
    for kind, seconds in sorted(kinds.items()):
        ordered = sorted(1000 * it for it in seconds)
        median, late = statistics.median(ordered), ordered[int(len(ordered) * 0.99)]
        told = f"median {median:.1f} ms, 99 in 100 within {late:.1f} ms, worst {ordered[-1]:.0f} ms"
        print(f"{kind}: {len(seconds)}, {told}")
    wrong = [why for agent in agents for why in agent.done.wrong]
    for why in [*wrong[:5], *missing[:5]]:
        print(why)
    number = sum(map(len, kinds.values()))
    answers = sum((agent.done.answers for agent in agents), Counter())
    figures = {
        "operations": number,
        "a_second": round(number / took, 1),
        "cpu_ms_an_operation": round(cpu * 1000 / number, 2),
        "errors": len(wrong),
        "lost": len(missing),
        "saved": sum(len(agent.done.saved) for agent in agents),
        "answers": answers,
        "not_noted": answers.total() - sum(agent.done.logged for agent in agents),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
    }
    print(json.dumps(figures))
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
