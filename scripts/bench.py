"""Time whole processes in turn, by the CPU of each child.

F is ``python -c "import click, sqlite3"``, taken in turn with everything else, so that the ratios hold while the
machine drifts. The first round of each command is not counted: it compiles and fills the file cache.
"""

import argparse
import compileall
import json
import os
import statistics
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from scripts.bench_support import KR, quiet

ROOT = Path(__file__).resolve().parent.parent
FLOOR = "F"
LESSONS = (20, 1_000, 20_000)
TOPIC = "virtual scrolling of long lists"
OTHER_WORDS = "How is a long list scrolled virtually?"
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


def request(topic: str = TOPIC, question: str | None = None, **more: Any) -> dict[str, Any]:
    query = {
        "framework": "vue",
        "framework_version": "3.5",
        "topic": topic,
        "tags": ["lists"],
        "question": question or f"How does {topic} work?",
    }
    return {"story_key": "1-1", "mode": "research", "session_id": "bench", "research_query": query, **more}


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
    """Make a knowledge base with entries of several frameworks; the one that is asked for is the first."""
    from kr.models import Entry  # here: the peak of a child that is forked begins with that of its parent
    from kr.store import saving
    from kr.store.engine import Store

    with Store(None, base, max_entries=entries + 1) as store:
        for number in range(entries):
            topic = TOPIC if number == 0 else f"subject{number} of kind{number % 7}"
            entry = Entry(
                framework="vue" if number % frameworks == 0 else f"framework{number % frameworks}",
                framework_version="3.5",
                topic=topic,
                tags=("lists", f"tag{number % 30}"),
                confidence="medium",
                origin="imported",
            )
            report = f"# {topic}\n\nRows of {topic} that are out of sight are not drawn.\n"
            saving.save(store, entry, report, datetime.now(UTC))


def with_lessons(folder: Path, number: int, environ: dict[str, str]) -> tuple[tuple[str, str], ...]:
    """Make a knowledge base with as many lessons, all of them known to its database; return the variables that name it."""
    taught = folder / f"taught{number}.md"
    with taught.open("w", encoding="utf-8") as file:
        for at in range(number):
            head = f"- [2026-{at % 11 + 1:02}-{at % 28 + 1:02}] [code-review]"
            file.write(f"{head} module {at} broke on case {at * 7}: check rule {at} first. Ref: a{at}.py\n")
    known = (("KR_KNOWLEDGE_BASE_PATH", str(folder / f"lessons{number}")),)
    run(Timed([*KR, "lessons", "import", str(taught)], environ=known), environ, folder)
    return known


def failed(number: int, kind: str) -> str:
    """Return a request of U5, another in each round: with the lesson that the agent worded, or with an error that the table of remedies knows."""
    told: dict[str, Any] = {"errors": [f"E   ModuleNotFoundError: No module named 'part{number}'"]}
    if kind == "own words":
        symptom = f"step{number} of batch{number} hangs"
        told = {"lessons": [{"symptom": symptom, "fix": f"close pool{number} before fork{number}"}]}
    document = {
        "story_key": "1-1",
        "session_id": f"bench-{number}",
        "phase": "dev-execution",
        "event_type": "general_agent_failure",
        "agent_return": {"status": "failure", **told},
    }
    return json.dumps(document)


def timed(number: int, bases: dict[int, tuple[tuple[str, str], ...]]) -> dict[str, Timed]:
    """Return the commands of a round."""
    research = [*KR, "research", "--request", "-", "--format", "json"]
    inject = [*KR, "lessons", "inject", "--phase", "code-review"]
    record = [*KR, "lessons", "record", "--request", "-"]
    query = "\n".join(f"  {key}: {json.dumps(it)}" for key, it in request()["research_query"].items())
    as_yaml = f"story_key: 1-1\nmode: research\nsession_id: bench\nresearch_query:\n{query}\n"
    unsure = request("scrolling virtual lists", OTHER_WORDS, config_overrides={"if_unsure": "candidates"})
    typed = [*KR, "research", "vue", OTHER_WORDS, "--format", "text", "--if-unsure", "candidates"]
    asked = ["--framework", "vue", "--query", "module 77 and its case 539"]
    commands = {
        FLOOR: Timed([sys.executable, "-c", "import click, sqlite3"]),
        "the YAML practice, 200 entries": Timed([sys.executable, "-c", _PRACTICE]),
        "hit, equal topic": Timed(research, json.dumps(request())),
        "candidates": Timed(research, json.dumps(unsure)),
        "hit, YAML in and out": Timed(research[:-2], as_yaml),
        "candidates at a terminal": Timed(typed),
        "kr --version": Timed([*KR, "--version"]),
        "kr --help": Timed([*KR, "--help"]),
        "lessons inject, 1,000 lessons": Timed(inject, environ=bases[1_000]),
        "lessons inject, 20,000 lessons": Timed(inject, environ=bases[20_000]),
        "the same for a framework and a query": Timed([*inject, *asked], environ=bases[20_000]),
    }
    for kind in ("own words", "by the table"):
        for size in (20, 20_000):
            name = f"lessons record, {kind}, {size:,} lessons"
            commands[name] = Timed(record, failed(number, kind), bases[size])
    missed = request(f"matter{number} thing{number}")
    return {**commands, "miss, no source": Timed(research, json.dumps(missed))}


def processes(rounds: int, folder: Path, environ: dict[str, str]) -> None:
    bases = {number: with_lessons(folder, number, environ) for number in LESSONS}
    entry = {"topic": "subject", "tags": ["a", "b"], "last_accessed": "2026-01-01"}
    index = [{"id": f"entry-{n}", **entry} for n in range(200)]
    (folder / "index.yaml").write_text(json.dumps(index), encoding="utf-8")
    times: dict[str, list[tuple[float, float]]] = {}
    for number in range(rounds + 1):
        for name, command in timed(number, bases).items():
            used = run(command, environ, folder)
            if number:
                times.setdefault(name, []).append(used)
    floor = statistics.median(seconds for seconds, _ in times[FLOOR])
    print("| command | CPU, ms | x F | peak, MB |\n|---|---:|---:|---:|")
    for name, found in times.items():
        median, most = statistics.median(it for it, _ in found), max(peak for _, peak in found)
        print(f"| {name} | {median * 1000:.0f} | {median / floor:.2f} | {most:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    given = parser.parse_args()
    compileall.compile_dir(ROOT / "kr", quiet=2)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        base = folder / "kb"
        (folder / ".git").mkdir()
        locked = {"": {"dependencies": {"vue": "^3"}}, "node_modules/vue": {"version": "3.5.1"}}
        (folder / "package-lock.json").write_text(json.dumps({"lockfileVersion": 3, "packages": locked}))
        code = f"from scripts import bench; bench.fill(bench.Path({str(base)!r}), entries=200, frameworks=10)"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
        processes(given.rounds, folder, quiet(base))


if __name__ == "__main__":
    main()
