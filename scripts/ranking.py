"""How well look-ups rank: the labelled needs of tests/data/ranking, asked of a knowledge base that holds the files' entries.

first: the right entry is served, or the first candidate. offered: it is served or among the candidates. served wrong: another entry,
or any for a need that none answers, is served. Nothing is learned from these files. --floors ends with status 1 where a figure is
below what is promised. With KR_DATABASE_URL on PostgreSQL each file has a database of its own there, which is dropped afterwards.
"""

import argparse
import json
import os
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from kr.app import App
from kr.models import Entry, to_plain
from kr.store import lookup, saving
from tests.support.postgresql import Databases

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


def report_of(entry: dict[str, Any]) -> str:
    """Write an entry's report in the template's order, its own sections below Details."""
    body = "\n".join(f"#{line}" if line.startswith("##") else line for line in entry["report"].splitlines())
    first = next((line for line in entry["report"].splitlines() if line and not line.startswith("#")), "")
    return f"# {entry['framework']} - {entry['topic']}\n\n## Summary\n\n{first}\n\n## Details\n\n{body}\n"


def fill(app: App, entries: list[dict[str, Any]]) -> dict[str, str]:
    """Save the entries of a file; return the file's ids by the ids that they have here."""
    known = {}
    for entry in entries:
        draft = Entry(
            framework=entry["framework"],
            framework_version=entry["framework_version"],
            topic=entry["topic"],
            tags=tuple(entry["tags"]),
            question=entry["question"],
            confidence="medium",
        )
        saved = saving.save(app.store, draft, report_of(entry), datetime.now(UTC))
        known[saved.entry.id] = entry["id"]
    return known


def request_of(ask: dict[str, Any]) -> dict[str, Any]:
    return {
        "story_key": "1-1",
        "mode": "research",
        "session_id": "ranking",
        "research_query": ask,
        "config_overrides": {"if_unsure": "candidates", "max_calls": 0},
    }


def complete(app: App, ask: dict[str, Any]) -> dict[str, Any]:
    """Fill in what a need at a terminal leaves out."""
    said = {name: value for name, value in ask.items() if value}
    return {
        **app.research.expand_short_form({"framework_version": "unknown", **said})["research_query"],
        **said,
    }


def judged(path: Path) -> Iterator[tuple[str, bool, bool, bool, bool]]:
    """Ask every need of a file; yields kind, and whether there is an answer, it is first, it is offered, another one is served."""
    data = yaml.load(path.read_text(), Loader=yaml.CSafeLoader)
    with tempfile.TemporaryDirectory() as folder, own_database():
        config = Path(folder, "kr.yaml")
        config.write_text(f"{CONFIG}  knowledge_base_path: {folder}/kb\n")
        with App.open(str(config), None, progress=lambda _: None) as app:
            known = fill(app, data["entries"])
            for need in data["queries"]:
                want = need["want"]
                request = json.dumps(request_of(complete(app, need["ask"]))).encode()
                results = to_plain(app.research.document(request))["results"]
                served = known.get(results["cache_entry_id"]) if results["cache_hit"] else None
                ranked = [served] if served else [known.get(it["id"]) for it in results["related"]]
                if want is None:
                    forget_placeholder(app)
                is_wrong = served not in {None, want}
                yield need["kind"], want is not None, ranked[:1] == [want], want in ranked, is_wrong


@contextmanager
def own_database() -> Iterator[None]:
    """Have what kr keeps on PostgreSQL go into a new database, for as long as the block runs."""
    url = os.environ.get("KR_DATABASE_URL", "")
    if not url.startswith("postgresql"):
        yield
        return
    with Databases(url).one(is_empty=True) as own:
        os.environ["KR_DATABASE_URL"] = own
        try:
            yield
        finally:
            os.environ["KR_DATABASE_URL"] = url


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
    parser.add_argument("--floors", action="store_true")
    given = parser.parse_args()
    os.environ.pop("KR_SERVER", None)
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for path in given.files or FILES:
        for kind, has_answer, first, offered, wrong in judged(path):
            for name in (kind, path.stem, "all"):
                told = {"asked": 1, "wrong": wrong}
                told |= {"answerable": 1, "first": first, "offered": offered} if has_answer else {}
                counts[name].update(told)
    print(f"{'':14}{'asked':>7}{'first':>8}{'offered':>9}{'served wrong':>14}")
    for name, found in counts.items():
        answerable = found["answerable"]
        shares = [f"{found[it] / answerable:.3f}" if answerable else "-" for it in ("first", "offered")]
        print(f"{name:14}{found['asked']:>7}{shares[0]:>8}{shares[1]:>9}{found['wrong']:>14}")
    total = counts["all"]
    reached = {name: total[name] / total["answerable"] for name in ("first", "offered")}
    reached["wrong"] = total["wrong"] / total["asked"]
    missed = [n for n in FLOORS if (reached[n] > FLOORS[n] if n == "wrong" else reached[n] < FLOORS[n])]
    for name in missed:
        print(f"{name}: {reached[name]:.4f}, promised {FLOORS[name]}", file=sys.stderr)
    return 1 if missed and given.floors else 0


if __name__ == "__main__":
    sys.exit(main())
