"""Time whole processes in turn, by the CPU of each child, and look-ups in one process against raw SQLite.

F is ``python -c "import click, sqlite3"``, taken in turn with everything else, so that the ratios hold while the
machine drifts. The first round of each command is not counted: it compiles and fills the file cache.
"""

import argparse
import compileall
import json
import os
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
KR = [sys.executable, "-m", "kr"]
FLOOR = "F"
LESSONS = (20, 1_000, 20_000)
TOPIC = "virtual scrolling of long lists"
_PRACTICE = (
    "import datetime, yaml; from pathlib import Path; path = Path('index.yaml'); "
    "index = yaml.load(path.read_text(), yaml.CSafeLoader); "
    "index[7]['last_accessed'] = str(datetime.date.today()); "
    "path.write_text(yaml.dump(index, Dumper=yaml.CSafeDumper, sort_keys=False))"
)
"""What kr replaces: the index of 200 entries is read, changed and written."""


class Timed(NamedTuple):
    command: list[str]
    document: str = ""
    environ: tuple[tuple[str, str], ...] = ()


def request(topic: str = TOPIC, question: str | None = None) -> dict[str, object]:
    query = {
        "framework": "vue",
        "framework_version": "3.5",
        "topic": topic,
        "tags": ["lists"],
        "question": question or f"How does {topic} work?",
    }
    return {"story_key": "1-1", "mode": "research", "session_id": "bench", "research_query": query}


def run(timed: Timed, environ: dict[str, str], folder: Path) -> tuple[float, float]:
    """Return the seconds of CPU that a process took, and its peak memory in MB."""
    with subprocess.Popen(
        timed.command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env=environ | dict(timed.environ),
        cwd=folder,
    ) as process:
        if process.stdin is None or process.stderr is None:
            raise AssertionError("both are pipes")
        process.stdin.write(timed.document.encode())
        process.stdin.close()
        complaint = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{timed.command}: {complaint.decode()}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024


def fill(base: Path, *, entries: int, frameworks: int) -> None:
    """Make a knowledge base with entries of several frameworks, as an import does; the one that is asked for is the first."""
    from kr.store.engine import Store
    from kr.transfer.import_yaml import import_yaml

    old = base.with_name("old")
    items = []
    for number in range(entries):
        framework = "vue" if number % frameworks == 0 else f"framework{number % frameworks}"
        topic = TOPIC if number == 0 else f"subject{number} of kind{number % 7}"
        path = f"frameworks/{framework}/{number}.md"
        (old / path).parent.mkdir(parents=True, exist_ok=True)
        (old / path).write_text(f"# {topic}\n\nRows of {topic} that are out of sight are not drawn.\n")
        tags = ["lists", f"tag{number % 30}"]
        item = {
            "framework": framework,
            "framework_version": "3.5",
            "topic": topic,
            "tags": tags,
            "path": path,
        }
        items.append(json.dumps(item))
    (old / "index.yaml").write_text("".join(f"- {item}\n" for item in items))
    with Store(None, base, max_entries=entries + 1) as store:
        import_yaml(store, base, [old], now=datetime.now(UTC))


def with_lessons(folder: Path, number: int, environ: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Make a knowledge base with as many lessons, all of them known to its database; return the variables that name it."""
    base = folder / f"lessons{number}"
    taught = folder / f"taught{number}.md"
    taught.write_text(
        "".join(
            f"- [2026-{at % 11 + 1:02}-{at % 28 + 1:02}] [code-review] module {at} broke on case {at * 7}: check rule {at} first. Ref: a{at}.py\n"
            for at in range(number)
        ),
        encoding="utf-8",
    )
    known = (("KR_KNOWLEDGE_BASE_PATH", str(base)),)
    run(Timed([*KR, "lessons", "import", str(taught)], environ=known), environ, folder)
    return known


def failed(number: int, *, own_words: bool) -> str:
    """Return a request of U5, another in each round: with the lesson that the agent worded, or with an error that the table of remedies knows."""
    lesson = {
        "symptom": f"step{number} of batch{number} hangs",
        "fix": f"close pool{number} before fork{number}",
    }
    told = (
        {"lessons": [lesson]}
        if own_words
        else {"errors": [f"E   ModuleNotFoundError: No module named 'part{number}'"]}
    )
    document = {
        "story_key": "1-1",
        "session_id": f"bench-{number}",
        "phase": "dev-execution",
        "event_type": "general_agent_failure",
        "agent_return": {"status": "failure", **told},
    }
    return json.dumps(document)


def processes(rounds: int, folder: Path, environ: dict[str, str]) -> None:
    research = [*KR, "research", "--request", "-", "--format", "json"]
    document = request()
    bases = {number: with_lessons(folder, number, environ) for number in LESSONS}
    inject = [*KR, "lessons", "inject", "--phase", "code-review"]
    index = [
        {"id": f"entry-{n}", "topic": f"subject {n}", "tags": ["a", "b"], "last_accessed": "2026-01-01"}
        for n in range(200)
    ]
    (folder / "index.yaml").write_text(json.dumps(index), encoding="utf-8")
    plain = "\n".join(f"  {key}: {json.dumps(value)}" for key, value in document["research_query"].items())  # type: ignore[attr-defined]
    as_yaml = f"story_key: 1-1\nmode: research\nsession_id: bench\nresearch_query:\n{plain}\n"
    record = [*KR, "lessons", "record", "--request", "-"]
    times: dict[str, list[tuple[float, float]]] = {}
    for number in range(rounds + 1):
        commands = {
            FLOOR: Timed([sys.executable, "-c", "import click, sqlite3"]),
            "the YAML practice, 200 entries": Timed([sys.executable, "-c", _PRACTICE]),
            "hit, equal topic": Timed(research, json.dumps(document)),
            "candidates": Timed(
                research,
                json.dumps(
                    request("scrolling virtual lists", "How is a long list scrolled virtually?")
                    | {"config_overrides": {"if_unsure": "candidates"}}
                ),
            ),
            "hit, YAML in and out": Timed(research[:-2], as_yaml),
            "candidates at a terminal": Timed(
                [
                    *(*KR, "research", "vue", "How is a long list scrolled virtually?", "--format", "text"),
                    *("--if-unsure", "candidates"),
                ]
            ),
            "kr --version": Timed([*KR, "--version"]),
            "kr --help": Timed([*KR, "--help"]),
            "lessons inject, 1,000 lessons": Timed(inject, environ=bases[1_000]),
            "lessons inject, 20,000 lessons": Timed(inject, environ=bases[20_000]),
            "the same for a framework and a query": Timed(
                [*inject, "--framework", "vue", "--query", "module 77 and its case 539"],
                environ=bases[20_000],
            ),
        }
        commands |= {
            f"lessons record, {kind}, {size:,} lessons": Timed(
                record, failed(number, own_words=own), bases[size]
            )
            for kind, own in (("own words", True), ("by the table", False))
            for size in (20, 20_000)
        }
        commands |= {
            "miss, no source": Timed(research, json.dumps(request(f"matter{number} thing{number}"))),
        }
        for name, timed in commands.items():
            used = run(timed, environ, folder)
            if number:
                times.setdefault(name, []).append(used)
    floor = statistics.median(seconds for seconds, _ in times[FLOOR])
    print("| command | CPU, ms | x F | peak, MB |\n|---|---:|---:|---:|")
    for name, found in times.items():
        median = statistics.median(seconds for seconds, _ in found)
        print(
            f"| {name} | {median * 1000:.0f} | {median / floor:.2f} | {max(peak for _, peak in found):.0f} |"
        )


def in_turns(actions: dict[str, Callable[[], object]], rounds: int) -> dict[str, float]:
    """Return the median seconds of CPU of one call of each; the first round is not counted."""
    times: dict[str, list[float]] = {name: [] for name in actions}
    for number in range(rounds + 1):
        for name, action in actions.items():
            began = time.process_time()
            action()
            if number:
                times[name].append(time.process_time() - began)
    return {name: statistics.median(found) for name, found in times.items()}


def warm(folder: Path, environ: dict[str, str]) -> None:
    """Hits in one process, in turns with a raw select and update of the same row, each of them a transaction."""
    from kr.app import App
    from kr.settings import load_settings

    asked = {
        "equal topic": json.dumps(request()).encode(),
        "other words": json.dumps(
            request("scrolling virtual lists", "How is a long list scrolled virtually?")
        ).encode(),
    }
    print("\n| in one process | ms | x raw |\n|---|---:|---:|")
    for entries, frameworks in ((200, 1), (200, 50), (2_000, 50), (20_000, 50)):
        base = folder / f"warm{entries}-{frameworks}"
        fill(base, entries=entries, frameworks=frameworks)
        settings = load_settings(config=None, knowledge_base=base, environ=environ, cwd=folder)
        with (
            App(settings, environ=environ, cwd=folder) as app,
            closing(sqlite3.connect(base / "kr.db", isolation_level=None)) as connection,
        ):
            connection.execute("PRAGMA synchronous = NORMAL")
            actions = {"raw": partial(_raw, connection)} | {
                name: partial(app.research.document, data) for name, data in asked.items()
            }
            seconds = in_turns(actions, 60)
        for name in asked:
            ratio = seconds[name] / seconds["raw"]
            print(
                f"| {name}, {entries:,} entries in {frameworks} | {seconds[name] * 1000:.2f} | {ratio:.1f} |"
            )


def _raw(connection: sqlite3.Connection) -> None:
    row = ("vue", TOPIC)
    found = connection.execute(
        "SELECT * FROM entries WHERE framework_key = ? AND topic_key = ?", row
    ).fetchall()
    connection.execute(
        "UPDATE entries SET last_accessed = ? WHERE id = ?", (datetime.now(UTC).isoformat(), found[0][0])
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--warm", action="store_true", help="measure hits in one process as well")
    given = parser.parse_args()
    compileall.compile_dir(ROOT / "kr", quiet=2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        environ = {key: value for key, value in os.environ.items() if not key.startswith("KR_")} | {
            "KR_KNOWLEDGE_BASE_PATH": str(folder / "kb"),
            "KR_SOURCES": "[]",
            "KR_FALLBACK_IF_MCP_UNAVAILABLE": "null",
            "KR_LOCAL_DOCS": "false",
        }
        (folder / ".git").mkdir()
        locked = {"": {"dependencies": {"vue": "^3"}}, "node_modules/vue": {"version": "3.5.1"}}
        (folder / "package-lock.json").write_text(json.dumps({"lockfileVersion": 3, "packages": locked}))
        # In a process of its own: the peak of a child that is forked begins with that of its parent.
        code = f"import bench; from pathlib import Path; bench.fill(Path({str(folder / 'kb')!r}), entries=200, frameworks=10)"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT / "scripts")
        processes(given.rounds, folder, environ)
        if given.warm:
            warm(folder, environ)


if __name__ == "__main__":
    main()
