"""How well look-ups rank: the labelled needs of tests/data/ranking, asked of a knowledge base that holds the files' entries.

first: the right entry is served, or the first candidate. offered: it is served or among the candidates. served wrong: another entry,
or any for a need that none answers, is served. Nothing is learned from these files. --command-line asks the needs of one file
through the installed ``kr``; --floors ends with status 1 where a figure is below what is promised. With KR_DATABASE_URL on PostgreSQL
each file has a schema of its own there, which is dropped afterwards.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import uuid
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import yaml

from kr.app import App
from kr.models import Confidence, Entry, to_plain
from kr.store import lookup, saving
from kr.text import tokens_of

FILES = sorted((Path(__file__).parents[1] / "tests/data/ranking").glob("*.yaml"))
FLOORS = {"first": 0.93, "offered": 0.96, "wrong": 0.005}
CONFIG = """\
knowledge_research:
  sources: []
  fallback_if_mcp_unavailable: null
  local_docs: false
  auto_export: false
  max_entries: 5000
"""
Ask = Callable[[dict[str, Any]], dict[str, Any]]


def report_of(entry: dict[str, Any]) -> str:
    """Write an entry's report in the template's order, its own sections below Details."""
    body = "\n".join(f"#{line}" if line.startswith("##") else line for line in entry["report"].splitlines())
    first = next((line for line in entry["report"].splitlines() if line and not line.startswith("#")), "")
    return f"# {entry['framework']} - {entry['topic']}\n\n## Summary\n\n{first}\n\n## Details\n\n{body}\n"


def fill(app: App, entries: list[dict[str, Any]]) -> dict[str, str]:
    """Save the entries of a file; return the file's ids by the ids that they have here."""
    known = {}
    confidence: Confidence = "medium"
    for entry in entries:
        draft = Entry(
            framework=entry["framework"],
            framework_version=entry["framework_version"],
            topic=entry["topic"],
            tags=tuple(entry["tags"]),
            question=entry["question"],
            confidence=confidence,
        )
        saved = saving.save(app.store, draft, report_of(entry), datetime.now(UTC))
        known[saved.entry.id] = entry["id"]
    return known


def request_of(ask: dict[str, Any], if_unsure: str) -> dict[str, Any]:
    return {
        "story_key": "1-1",
        "mode": "research",
        "session_id": "ranking",
        "research_query": ask,
        "config_overrides": {"if_unsure": if_unsure, "max_calls": 0},
    }


def complete(app: App, ask: dict[str, Any]) -> dict[str, Any]:
    """Fill in what a need at a terminal leaves out."""
    said = {name: value for name, value in ask.items() if value}
    return {**app.research.whole({"framework_version": "unknown", **said})["research_query"], **said}


def judged(path: Path, *, command_line: bool) -> Iterator[tuple[str, bool, bool, bool, bool, int]]:
    """Ask every need of a file; yields kind, has an answer, first, offered, served wrong, tokens of both calls where none answers."""
    data = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    with tempfile.TemporaryDirectory() as folder, own_schema():
        config = Path(folder, "kr.yaml")
        config.write_text(f"{CONFIG}  knowledge_base_path: {folder}/kb\n")
        with App.open(str(config), None, progress=lambda _: None) as app:
            known = fill(app, data["entries"])

            def in_process(request: dict[str, Any]) -> dict[str, Any]:
                return to_plain(app.research.document(json.dumps(request).encode()))

            def by_command(request: dict[str, Any]) -> dict[str, Any]:
                kr = str(Path(sys.executable).parent / "kr")
                command = [kr, "--config", str(config), "--format", "json", "research", "--request", "-"]
                done = subprocess.run(
                    command, input=json.dumps(request), capture_output=True, text=True, check=False
                )
                answer: dict[str, Any] = json.loads(done.stdout)
                return answer

            asked: Ask = by_command if command_line else in_process
            for need in data["queries"]:
                ask = complete(app, need["ask"])
                answer = asked(request_of(ask, "candidates"))
                results = answer["results"]
                served = known.get(results["cache_entry_id"]) if results["cache_hit"] else None
                ranked = [served] if served else [known.get(it["id"]) for it in results["related"]]
                want = need["want"]
                tokens = 0
                if want is None and not command_line:
                    tokens = tokens_of(json.dumps(answer, ensure_ascii=False))
                    if answer["status"] == "candidates":
                        again = asked(request_of(ask, "research"))
                        tokens += tokens_of(json.dumps(again, ensure_ascii=False))
                    forget_placeholder(app)
                yield (
                    need["kind"],
                    want is not None,
                    ranked[:1] == [want],
                    want in ranked,
                    served not in {None, want},
                    tokens,
                )


@contextmanager
def own_schema() -> Iterator[None]:
    """Have what kr keeps on PostgreSQL go into a new schema, for as long as the block runs."""
    url = os.environ.get("KR_DATABASE_URL", "")
    if not url.startswith("postgresql"):
        yield
        return
    name = f"ranking_{uuid.uuid4().hex}"
    mark = "&" if "?" in url else "?"
    with psycopg.connect(url.replace("+psycopg", ""), autocommit=True) as connection:
        connection.execute(f"CREATE SCHEMA {name}")
        os.environ["KR_DATABASE_URL"] = f"{url}{mark}options=-csearch_path%3D{name}"
        try:
            yield
        finally:
            os.environ["KR_DATABASE_URL"] = url
            connection.execute("SET client_min_messages = error")
            connection.execute(f"DROP SCHEMA {name} CASCADE")


def forget_placeholder(app: App) -> None:
    """Take out what an unanswered need left, so that it stands in nobody's way."""
    with app.store.write() as tx:
        tx.execute("DELETE FROM entries WHERE origin = 'placeholder'")
        lookup.prune(tx)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", nargs="*", type=Path)
    parser.add_argument("--command-line", type=Path, metavar="FILE")
    parser.add_argument("--floors", action="store_true")
    given = parser.parse_args()
    os.environ.pop("KR_SERVER", None)
    files = [given.command_line] if given.command_line else given.files or FILES
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    costs: list[int] = []
    for path in files:
        for kind, has_answer, first, offered, wrong, tokens in judged(
            path, command_line=given.command_line is not None
        ):
            for name in (kind, path.stem, "all"):
                counts[name]["asked"] += 1
                counts[name]["wrong"] += wrong
                if has_answer:
                    counts[name]["answerable"] += 1
                    counts[name]["first"] += first
                    counts[name]["offered"] += offered
            if not has_answer:
                costs.append(tokens)
    print(f"{'':14}{'asked':>7}{'first':>8}{'offered':>9}{'served wrong':>14}")
    for name, found in counts.items():
        answerable = found["answerable"]
        first = f"{found['first'] / answerable:.3f}" if answerable else "-"
        offered = f"{found['offered'] / answerable:.3f}" if answerable else "-"
        print(f"{name:14}{found['asked']:>7}{first:>8}{offered:>9}{found['wrong']:>14}")
    total = counts["all"]
    if costs and max(costs):
        costs.sort()
        print(
            f"a need that nothing answers: {costs[len(costs) // 2]} tokens over both calls (median), {max(costs)} at most"
        )
    reached = {
        "first": total["first"] / total["answerable"],
        "offered": total["offered"] / total["answerable"],
        "wrong": total["wrong"] / total["asked"],
    }
    missed = [n for n in FLOORS if (reached[n] > FLOORS[n] if n == "wrong" else reached[n] < FLOORS[n])]
    for name in missed:
        print(f"{name}: {reached[name]:.4f}, promised {FLOORS[name]}", file=sys.stderr)
    return 1 if missed and given.floors else 0


if __name__ == "__main__":
    sys.exit(main())
