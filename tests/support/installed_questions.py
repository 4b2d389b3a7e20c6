"""Real questions to installed packages: installed-questions.yaml and natural-questions.yaml of tests/data, graded by strings."""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import median

import yaml

from kr.errors import SourceFailure
from kr.models import Query
from kr.research.report import build_report
from kr.sources.base import Ask
from kr.sources.local_docs import LocalDocs

DATA = Path(__file__).parent.parent / "data"
FILES = {"usual": DATA / "installed-questions.yaml", "natural": DATA / "natural-questions.yaml"}
BEST = 40
"""Passages among which an answer counts as found."""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question. Each element of ``must`` are texts of which an answer holds at least one; ``is_foreign``: the package has none."""

    kind: str
    ecosystem: str
    query: Query
    must: tuple[tuple[str, ...], ...]
    is_foreign: bool


@dataclass(frozen=True, kw_only=True)
class Graded:
    """``grade`` is 2, 1 or 0, None for a placeholder; ``is_found``: all of the answer is among the best passages. Tokens are characters / 4."""

    asked: Asked
    grade: int | None
    is_found: bool
    missing: tuple[str, ...]
    tokens: int
    seconds: float
    report: str


def load() -> list[Asked]:
    """Return all questions of the repository."""
    found: list[Asked] = []
    for kind, file in FILES.items():
        for group in yaml.safe_load(file.read_text(encoding="utf-8")).values():
            for row in group["questions"]:
                ecosystem = "npm" if row["framework"] in (group.get("npm") or []) else "python"
                found.append(_asked(kind, ecosystem, row))
    return found


def _asked(kind: str, ecosystem: str, row: dict[str, object]) -> Asked:
    question, tags, must = str(row["question"]), row.get("tags") or [], row["must"]
    assert isinstance(tags, list)
    assert isinstance(must, list)
    return Asked(
        kind=kind,
        ecosystem=ecosystem,
        query=Query(
            framework=str(row["framework"]),
            framework_version="unknown",
            topic=str(row.get("topic") or question),
            tags=tuple(map(str, tags)),
            question=question,
        ),
        must=tuple((one,) if isinstance(one, str) else tuple(one) for one in must),
        is_foreign=bool(row.get("foreign") or row.get("undocumented")),
    )


def grade(asked: Asked, text: str) -> tuple[int, tuple[str, ...]]:
    """Return the grade of a text and what it lacks. Backslashes of Markdown and the repeated question do not count."""
    plain = text.replace("\\", "").replace(asked.query.question, "")
    missing = tuple(one[0] for one in asked.must if not any(text in plain for text in one))
    half = len(missing) * 2 <= len(asked.must)
    return (2 if not missing else 1 if half else 0), missing


def measure(asked: Asked, folder: Path, cache: Path, *, max_tokens: int) -> Graded:
    """Ask the packages that are installed in ``folder``, whose indexes are kept in ``cache``, and write the report."""
    environ = {"VIRTUAL_ENV": str(folder / ".venv"), "XDG_CACHE_HOME": str(cache)}
    start = time.perf_counter()
    try:
        answer = LocalDocs((folder,), environ).ask(Ask(query=asked.query), timeout=120.0)
    except SourceFailure:
        answer = None
    seconds = time.perf_counter() - start
    best = "\n".join(f"{p.title}\n{p.text}" for p in answer.passages[:BEST]) if answer else ""
    report = build_report(asked.query, answer=answer, today=date(2026, 1, 1), max_tokens=max_tokens)
    graded, missing = grade(asked, report.text.partition("\n## ")[2])
    return Graded(
        asked=asked,
        grade=None if report.origin == "skeleton" else graded,
        is_found=grade(asked, best)[0] == 2,
        missing=missing,
        tokens=len(report.text) // 4,
        seconds=seconds,
        report=report.text,
    )


def table(rows: Sequence[Graded]) -> str:
    """Return the one table: a line for each kind of question and ecosystem, shares of the questions that have an answer."""
    head = f"{'':16}{'n':>5}{'all':>7}{'half':>7}{'useless':>9}{'refused':>9}{'in best':>9}{'tokens':>8}{'ms':>7}{'most':>7}{'foreign refused':>17}"
    lines = [head]
    for ecosystem in ("python", "npm"):
        for kind in ("usual", "natural", ""):
            held = [row for row in rows if row.asked.ecosystem == ecosystem and kind in {"", row.asked.kind}]
            if held:
                lines.append(_line(f"{ecosystem} {kind or 'all'}", held))
    return "\n".join(lines)


def _line(name: str, rows: Iterable[Graded]) -> str:
    own = [row for row in rows if not row.asked.is_foreign]
    foreign = [row for row in rows if row.asked.is_foreign]
    count = len(own) or 1
    shares = {wanted: sum(row.grade == wanted for row in own) / count for wanted in (2, 1, 0, None)}
    found = sum(row.is_found for row in own) / count
    times = [row.seconds * 1000 for row in own] or [0.0]
    refused = f"{sum(row.grade is None for row in foreign)} of {len(foreign)}"
    tokens = median(row.tokens for row in own) if own else 0
    return (
        f"{name:16}{len(own):5}{shares[2]:7.3f}{shares[1]:7.3f}{shares[0]:9.3f}{shares[None]:9.3f}{found:9.3f}"
        f"{tokens:8.0f}{median(times):7.0f}{max(times):7.0f}{refused:>17}"
    )
