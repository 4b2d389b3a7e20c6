"""PostgreSQL beside SQLite: a crowd on four folders, a server that is killed under it, and look-ups.

Starts a PostgreSQL of its own, with fsync on. ``load`` is the crowd on both databases, ``kill`` the crowd while the server is killed
five times, early enough to see who goes on, ``looks`` a resident hit and candidates at 2,000 entries. What was acknowledged and is not
there, a story that overspent, a limit that was passed or not reached, a question that was researched twice, a kill too few, or a process
that did nothing more after the last kill ends with status 1.
"""

import argparse
import contextlib
import json
import logging
import multiprocessing
import random
import signal
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from kr.app import App
from kr.errors import KrError
from kr.models import Envelope
from kr.store import entries, ledger, lookup, saving
from kr.store.engine import Store
from kr.times import to_text
from tests.support.mcp_servers import Scenario, StandIn, context7_server
from tests.support.postgresql import Databases, Server, started
from tests.support.program import Project, request
from tests.support.stores import call, draft

STORIES, CALLS, LIMIT, QUESTIONS, KILLS = 20, 3, 200, 4, 5
KNOWN, FILLING = 50, 140
"""Entries that are asked for all the time, and others that bring the knowledge base near its limit."""
Acknowledged = dict[str, Any]


def save(store: Store, topic: str, framework: str = "vue") -> str:
    """Save a report of usual size; return its entry's id."""
    entry = draft(framework, topic, framework_version="3.5", tags=("load",), question=f"How is {topic} done?")
    head = f"# vue - {topic}\n\n## Summary\n\n{topic} is done by a call.\n\n## Details\n\n"
    return saving.save(store, entry, head + "More words. " * 150, datetime.now(UTC)).entry.id


def ask(app: App, topic: str, question: str, **given: Any) -> Envelope:
    overrides = {name: given.pop(name) for name in ("max_calls", "if_unsure") if name in given}
    document = request(topic=topic, question=question, **{"tags": ["load"], **given})
    return app.research.document(json.dumps(document).encode(), overrides=overrides)


def agent(project: Project, number: int, began: float, seconds: float, output: Connection) -> None:
    """Work until the time is over; send what was acknowledged, and how long each operation took."""
    logging.disable()
    chance = random.Random(number)  # noqa: S311 - not for secrets
    told: Acknowledged = {
        "saved": [],
        "counted": 0,
        "charged": Counter(),
        "failed": 0,
        "took": [],
        "last": 0.0,
    }
    project.clock = lambda: datetime.now(UTC)  # type: ignore[assignment]
    asked = 0
    with project.app() as app:
        while (gone := time.time() - began) < seconds:
            start = time.perf_counter()
            try:
                if asked < QUESTIONS and gone > (asked + 1) * seconds / (QUESTIONS + 1):
                    name = f"identical question {asked}"
                    asked += 1
                    ask(app, name, f"What is {name}?", tags=["same"], session_id=f"s-{number}")
                    continue  # it waits for others by intent
                step(app, number, chance, told)
                told["took"].append(time.perf_counter() - start)
                told["last"] = time.time()
            except KrError:
                told["failed"] += 1
                time.sleep(0.05)
    output.send(told)


def step(app: App, number: int, chance: random.Random, told: Acknowledged) -> None:
    store, kind, now = app.store, chance.random(), datetime.now(UTC)
    if kind < 0.6:
        topic = f"known {chance.randrange(KNOWN)}"
        if ask(app, topic, f"How is {topic} done?", session_id=f"s-{number}", max_calls=0).errors:
            raise KrError("not kept")
    elif kind < 0.75:
        topic = f"saved {number} {len(told['saved'])} {chance.randrange(10**9)}"
        told["saved"].append(save(store, topic))
    elif kind < 0.9:
        story = f"1-{chance.randrange(STORIES)}"
        _, held = store.change(
            lambda tx: ledger.reserve(tx, "load", story, limit=CALLS, owner=str(number), now=now), scope=None
        )
        if held is not None:
            made = call(at=to_text(now), session_id="load", story_key=story, charged=True)
            store.change(lambda tx: ledger.record_call(tx, held, made), scope=None)
            told["charged"][story] += 1
    else:
        store.change(lambda tx: tx.note("counter", str(int(tx.fact("counter") or 0) + 1)), scope="counter")
        told["counted"] += 1


def crowd(
    folder: Path, url: str | None, processes: int, seconds: float, server: Server | None = None
) -> bool:
    """Let many processes work on four folders; print what they did; return whether all is as it must be.

    A ``server`` is killed meanwhile.
    """
    with context7_server(Scenario(delay=0.5)) as context7:
        # Four folders are four machines before PostgreSQL; before SQLite they share the file.
        place = url or f"sqlite:///{folder}/kr.db"
        projects = [Project(folder / f"machine-{it}", env={"KR_DATABASE_URL": place}) for it in range(4)]
        for project in projects:
            project.use_context7(context7.url)
        store = Store(place, projects[0].base)
        for kind, number in (("filling", FILLING), ("known", KNOWN)):
            for it in range(number):
                save(store, f"{kind} {it}")
        forking, pipes, running = multiprocessing.get_context("fork"), [], []
        store.close()
        began = time.time() + 2
        for number in range(processes):
            ours, theirs = forking.Pipe(duplex=False)
            arguments = (projects[number % 4], number, began, seconds, theirs)
            running.append(forking.Process(target=agent, args=arguments))
            running[-1].start()
            theirs.close()
            pipes.append(ours)
        time.sleep(max(0.0, began - time.time()))
        most, kills = watch(store, began, seconds, server)
        told = [pipe.recv() for pipe in pipes]
        for process in running:
            process.join()
        is_well = judge(store, context7, told, most, seconds)
    return is_well if server is None else judge_kills(told, kills) and is_well


def watch(store: Store, began: float, seconds: float, server: Server | None) -> tuple[int, list[float]]:
    """Look at the number of entries all the time; return the largest, and when the server was back after each kill."""
    most, kills = 0, list[float]()
    while (gone := time.time() - began) < seconds:
        if server is not None and len(kills) < KILLS and gone > (len(kills) + 1) * seconds / (2 * KILLS):
            server.stop(signal.SIGKILL)
            time.sleep(0.3)
            server.start()
            kills.append(time.time())
        with contextlib.suppress(KrError), store.read() as tx:
            most = max(most, entries.count(tx))
        time.sleep(0.05)
    return most, kills


def judge_kills(told: list[Acknowledged], kills: list[float]) -> bool:
    """Print how often the server was killed, and how many processes did something after the last time."""
    going_on = sum(one["last"] > max(kills, default=0.0) for one in told)
    print(
        f"  killed {len(kills)} times; {going_on} of {len(told)} processes did something after the last kill"
    )
    return len(kills) == KILLS and going_on == len(told)


def judge(store: Store, context7: StandIn, told: list[Acknowledged], most: int, seconds: float) -> bool:
    took = sorted(it for one in told for it in one["took"])
    with store.read() as tx:
        live = {entry.id for entry in entries.all(tx)}
        archived = tx.rows("SELECT id, topic FROM archived_entries")
        kept = live | {row["id"] for row in archived}
        counter = int(tx.fact("counter") or 0)
        spent = {f"1-{it}": lookup.spent(tx, "load", f"1-{it}") for it in range(STORIES)}
        number = entries.count(tx)
    saved = [it for one in told for it in one["saved"]]
    counted = sum(one["counted"] for one in told)
    charged: Counter[str] = sum((one["charged"] for one in told), Counter())
    asked = sum(call.tool == "query-docs" for call in context7.calls())
    failed = sum(one["failed"] for one in told)
    wrong = [f"{len(set(saved) - kept)} saved entries are lost"] if set(saved) - kept else []
    wrong += [f"{counted} counted, {counter} kept"] if counter < counted else []
    wrong += [f"{most} entries at once, {number} in the end"] if max(most, number) != LIMIT else []
    wrong += [f"{story} spent {it}" for story, it in spent.items() if it > CALLS or it < charged[story]]
    evicted = sum(row["topic"].startswith("identical") for row in archived)  # who asks later finds nothing
    is_twice = not QUESTIONS <= asked <= QUESTIONS + evicted and not failed
    wrong += [f"{asked} researches for {QUESTIONS} questions, {evicted} evicted"] if is_twice else []
    slow = f"median {statistics.median(took) * 1000:.1f} ms, worst {took[-1] * 1000:.0f} ms, {failed} failed"
    print(f"  {len(took) / seconds:.0f} operations a second, {slow}; {len(saved)} saved, {counted} counted")
    print(f"  {sum(spent.values())} of {STORIES * CALLS} calls spent, at most {most} entries")
    print(f"  {asked} researches of {QUESTIONS} questions, of which {evicted} were evicted")
    for line in wrong:
        print(f"  WRONG: {line}")
    return not wrong


def looks(folder: Path, url: str | None) -> bool:
    """Time a resident hit and candidates at 2,000 entries."""
    env = {"KR_MAX_ENTRIES": "5000", "KR_AUTO_EXPORT": "false"}
    project = Project(folder / "looks", env=env | ({"KR_DATABASE_URL": url} if url else {}))
    project.clock = lambda: datetime.now(UTC)  # type: ignore[assignment]
    with project.app() as app:
        for number in range(2000):
            subject = ("sorting", "routing", "caching", "testing")[number % 4]
            save(app.store, f"{subject} of part {number}", f"framework{number % 20}")

        def timed(topic: str, question: str) -> float:
            start = time.perf_counter()
            ask(app, topic, question, framework="framework7", if_unsure="candidates")
            return (time.perf_counter() - start) * 1000

        hits = [timed("testing of part 7", "How is testing of part 7 done?") for _ in range(200)]
        offers = [timed(f"testing a part {it}", f"How would I test a part {it}?") for it in range(100)]
    hit, offer = statistics.median(hits), statistics.median(offers)
    print(f"  hit {hit:.1f} ms, candidates {offer:.1f} ms (medians)")
    return url is None or (hit <= 8 and offer <= 20)


def steps(what: str, given: argparse.Namespace, server: Server, folder: Path) -> Iterator[bool]:
    with Databases(server.url).one() as url:
        for name, it in {"SQLite": None, "PostgreSQL": url}.items():
            if what == "kill" and it is None:
                continue
            print(f"{what}: {name}, {given.processes} processes, {given.seconds} s")
            if what == "looks":
                yield looks(folder / name, it)
            else:
                killed = server if what == "kill" else None
                yield crowd(folder / name, it, given.processes, given.seconds, killed)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", nargs="*", choices=["load", "kill", "looks", []], default=[])
    parser.add_argument("--processes", type=int, default=64)
    parser.add_argument("--seconds", type=float, default=30.0)
    given = parser.parse_args()
    is_well = True
    with started("shared_buffers=256MB") as server:
        if server is None:
            print("there are no binaries of PostgreSQL", file=sys.stderr)
            return 1
        for what in given.what or ["load", "kill", "looks"]:
            with tempfile.TemporaryDirectory() as folder:
                for went_well in steps(what, given, server, Path(folder)):
                    is_well = is_well and went_well
    return 0 if is_well else 1


if __name__ == "__main__":
    sys.exit(main())
