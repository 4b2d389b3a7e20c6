"""Prints how many of the repository's questions installed documentation answers, in one table. Run it as scripts/questions FOLDER.

FOLDER has the packages installed that tests/data/installed-questions.yaml and natural-questions.yaml name. An answer is graded by
strings: each element of ``must`` is a text, or a list of texts of which one is enough, that the report has to hold.
"""

import argparse
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import yaml

from kr.documents.index import RARE_SHARE
from kr.errors import SourceFailure
from kr.models import Query
from kr.research.report import build_report
from kr.sources.base import Answer, Ask
from kr.sources.local_docs import LocalDocs

DATA = Path(__file__).parents[1] / "tests" / "data"
FILES = {"usual": DATA / "installed-questions.yaml", "natural": DATA / "natural-questions.yaml"}


@dataclass(frozen=True, kw_only=True)
class Row:
    """One question. ``grade``: ``all``, ``half`` or ``useless``, also of what is refused as a gap; ``rarest`` is the ranking's.

    ``is_foreign``: the package has no answer. ``is_among``: all of it stands in the passages that were found.
    """

    ecosystem: str
    kind: str
    grade: str
    is_foreign: bool
    is_among: bool
    rarest: float
    tokens: int
    milliseconds: float


def grade(question: str, must: list[Any], text: str) -> str:
    """Grade a text by how many of the needed strings it holds; the repeated question does not count."""
    plain = text.replace("\\", "").replace(question, "")
    options = [[one] if isinstance(one, str) else one for one in must]
    missing = sum(not any(option in plain for option in each) for each in options)
    return "all" if not missing else "half" if missing * 2 <= len(must) else "useless"


def ask(docs: LocalDocs, query: Query) -> tuple[Answer | None, float, float]:
    """Return the answer, the ranking's ``rarest``, and the seconds of the processor that the answer took."""
    started = time.process_time()
    try:
        answer = docs.ask(Ask(query=query), timeout=300.0)
    except SourceFailure:
        return None, math.inf, time.process_time() - started
    seconds = time.process_time() - started
    return answer, docs.rank(query, time.monotonic() + 300.0)[0].rarest, seconds


def questions(framework: str | None) -> Iterator[tuple[str, str, Query, dict[str, Any]]]:
    """Yield ecosystem, kind, query and the question's own mapping."""
    for kind, file in FILES.items():
        for group in yaml.safe_load(file.read_text(encoding="utf-8")).values():
            of_npm = {name.removeprefix("@types/") for name in group["npm"]} | set(group["npm"])
            for each in group["questions"]:
                if framework in {None, each["framework"]}:
                    query = Query(
                        framework=each["framework"],
                        framework_version="unknown",
                        topic=each.get("topic") or each["question"],
                        tags=tuple(each.get("tags") or ()),
                        question=each["question"],
                    )
                    yield "npm" if each["framework"] in of_npm else "python", kind, query, each


def rows(docs: LocalDocs, framework: str | None, made: dict[str, float]) -> Iterator[Row]:
    """Ask every question; ``made`` takes by framework the seconds of the processor that the making of its indexes takes."""
    for ecosystem, kind, query, each in questions(framework):
        if query.framework not in made:
            made[query.framework] = ask(docs, query)[2]
        _, rarest, first = ask(docs, query)  # which may make the index of a dependency
        answer, _, seconds = ask(docs, query)
        made[query.framework] = max(made[query.framework], first)
        shown = answer and Answer(source=answer.source, passages=answer.passages, version=answer.version)
        report = build_report(query, answer=shown, today=date(2026, 1, 1), max_tokens=1_500)
        passages = "\n".join(one.text for one in answer.passages) if answer else ""
        yield Row(
            ecosystem=ecosystem,
            kind=kind,
            grade=grade(query.question, each["must"], report.text.partition("\n## ")[2]),
            is_foreign=bool(each.get("foreign") or each.get("undocumented")),
            is_among=grade(query.question, each["must"], passages) == "all",
            rarest=rarest,
            tokens=len(report.text) // 4,
            milliseconds=seconds * 1000,
        )


def table(found: Sequence[Row]) -> Iterator[str]:
    """Yield the lines of the table: shares of what the packages answer, and of the foreign questions how many were refused."""
    yield "| packages | questions | asked | all of it | half | useless | refused | among the best forty | foreign ones refused | tokens |"
    yield "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|"
    for ecosystem in ("python", "npm"):
        for kind in (*FILES, "both"):
            of_kind = [row for row in found if row.ecosystem == ecosystem and kind in {row.kind, "both"}]
            own = [row for row in of_kind if not row.is_foreign]
            foreign = [row for row in of_kind if row.is_foreign]
            if own:
                grades = ["refused" if row.rarest > RARE_SHARE else row.grade for row in own]
                shares = " | ".join(
                    f"{grades.count(one) / len(own):.2f}" for one in ("all", "half", "useless", "refused")
                )
                among = sum(row.is_among for row in own) / len(own)
                refused = f"{sum(row.rarest > RARE_SHARE for row in foreign)} of {len(foreign)}"
                tokens = round(median(row.tokens for row in own))
                yield f"| {ecosystem} | {kind} | {len(own)} | {shares} | {among:.2f} | {refused} | {tokens} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/questions", description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder with .venv and node_modules")
    parser.add_argument("--framework", help="only questions about this one")
    parser.add_argument("--cache", type=Path, help="keep the indexes in this folder; default: made anew")
    arguments = parser.parse_args()
    made: dict[str, float] = {}
    with TemporaryDirectory() as temporary:
        folder, cache = arguments.folder.resolve(), (arguments.cache or Path(temporary)).resolve()
        environ = {"VIRTUAL_ENV": str(folder / ".venv"), "XDG_CACHE_HOME": str(cache)}
        found = list(rows(LocalDocs((folder,), environ), arguments.framework, made))
    print("\n".join([*table(found), ""]))
    times, (slowest, most) = [row.milliseconds for row in found], max(made.items(), key=lambda one: one[1])
    print(
        f"of the processor, to make an index: median {median(made.values()):.1f} s, most {most:.1f} s ({slowest})"
    )
    print(f"to ask it: median {median(times):.0f} ms, most {max(times):.0f} ms")


if __name__ == "__main__":
    main()
