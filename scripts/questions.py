"""Prints how many of the repository's questions installed documentation answers, in one table. Run it as scripts/questions FOLDER.

FOLDER has the packages installed that tests/data/installed-questions.yaml and natural-questions.yaml name. An answer is graded by
strings: each element of ``must`` is a text, or a list of texts of which one is enough, that the report has to hold.
"""

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from kr.errors import SourceFailure
from kr.models import Answer, Query
from kr.research.report import build_report
from kr.sources.base import Ask
from kr.sources.local_docs import LocalDocs

DATA = Path(__file__).parents[1] / "tests" / "data"
FILES = {"usual": DATA / "installed-questions.yaml", "natural": DATA / "natural-questions.yaml"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One question. ``grade``: ``all``, ``half`` or ``useless``, ``refused`` for a placeholder; ``is_foreign``: the package has no answer."""

    kind: str
    framework: str
    grade: str
    is_foreign: bool
    tokens: int
    milliseconds: float


def grade(question: str, must: list[Any], text: str) -> str:
    """Grade a text by how many of the needed strings it holds; the repeated question does not count."""
    plain = text.replace("\\", "").replace(question, "")
    options = [[one] if isinstance(one, str) else one for one in must]
    missing = sum(not any(option in plain for option in each) for each in options)
    return "all" if not missing else "half" if missing * 2 <= len(must) else "useless"


def ask(query: Query, folder: Path, cache: Path) -> Answer | None:
    environ = {"VIRTUAL_ENV": str(folder / ".venv"), "XDG_CACHE_HOME": str(cache)}
    try:
        return LocalDocs((folder,), environ).ask(Ask(query=query), timeout=300.0)
    except SourceFailure:
        return None


def rows(folder: Path, cache: Path, framework: str | None) -> Iterator[Row]:
    made: set[str] = set()
    for kind, file in FILES.items():
        for group in yaml.safe_load(file.read_text(encoding="utf-8")).values():
            for each in group["questions"]:
                name, question = each["framework"], each["question"]
                if framework not in {None, name}:
                    continue
                query = Query(
                    framework=name,
                    framework_version="unknown",
                    topic=each.get("topic") or question,
                    tags=tuple(each.get("tags") or ()),
                    question=question,
                )
                if name not in made:
                    started = time.perf_counter()
                    ask(query, folder, cache)
                    made.add(name)
                    print(f"{name}: index made in {time.perf_counter() - started:.1f} s", flush=True)
                started = time.perf_counter()
                answer = ask(query, folder, cache)
                seconds = time.perf_counter() - started
                report = build_report(query, answer=answer, today=date(2026, 1, 1), max_tokens=1_500)
                graded = grade(question, each["must"], report.text.partition("\n## ")[2])
                yield Row(
                    kind=kind,
                    framework=name,
                    grade="refused" if answer is None or answer.is_gap else graded,
                    is_foreign=bool(each.get("foreign") or each.get("undocumented")),
                    tokens=len(report.text) // 4,
                    milliseconds=seconds * 1000,
                )


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/questions", description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder with .venv and node_modules")
    parser.add_argument("--framework", help="only questions about this one")
    parser.add_argument("--cache", type=Path, help="keep the indexes in this folder; default: made anew")
    arguments = parser.parse_args()
    with TemporaryDirectory() as temporary:
        cache = (arguments.cache or Path(temporary)).resolve()
        found = list(rows(arguments.folder.resolve(), cache, arguments.framework))
    for kind in FILES:
        own = [row for row in found if row.kind == kind and not row.is_foreign]
        foreign = [row for row in found if row.kind == kind and row.is_foreign]
        if own:
            grades = ("all", "half", "useless", "refused")
            shares = "  ".join(f"{one} {sum(r.grade == one for r in own) / len(own):.2f}" for one in grades)
            times = [row.milliseconds for row in own]
            refused = f"{sum(row.grade == 'refused' for row in foreign)} of {len(foreign)}"
            print(f"{kind:8} {len(own):4}  {shares}  tokens {median(r.tokens for r in own):.0f}", end="  ")
            print(f"ms {median(times):.0f}, most {max(times):.0f}  foreign ones refused: {refused}")


if __name__ == "__main__":
    main()
