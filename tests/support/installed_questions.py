"""Grades reports on installed documentation: installed-questions.yaml and natural-questions.yaml of tests/data, or other files of that form.

The packages are really installed, in a folder of the reader's choice; the file says which.
"""

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from statistics import mean, median

import yaml
from kr.reports.report import build_report

from kr.errors import SourceFailure
from kr.sources.base import Ask
from kr.sources.local_docs import LocalDocs
from kr.values import Query, replace
from tests.support.questions import as_asked, sections

DATA = Path(__file__).parent.parent / "data"
FILES = (DATA / "installed-questions.yaml", DATA / "natural-questions.yaml")

LEAST_WHOLE, MOST_USELESS = 0.60, 0.10
MEDIAN_TOKENS = 2_000
MOST_TOKENS = 3_200
"""The goals that ``scripts/questions --installed`` holds a group against."""


@dataclass(frozen=True, kw_only=True)
class Floors:
    """What a group must reach: the goals, or what was measured of it and a question worse. Shares, but for ``tokens``.

    ``whole``: of the questions, how many are graded 2; ``useless`` and ``summary``: of the reports, how many are graded 0, and have a
    right Summary; ``foreign``: of the foreign questions, how many are answered; ``tokens``: the median of the reports; ``first``: of
    the questions to pages, how many the first passage answers.
    """

    whole: float = LEAST_WHOLE
    useless: float = MOST_USELESS
    summary: float = 0.0
    foreign: float = 1.0
    tokens: float = MEDIAN_TOKENS
    first: float = 0.0


FLOORS = {
    "forty": Floors(summary=0.73, whole=0.72, tokens=2_100),
    "twenty": Floors(summary=0.56, whole=0.54, useless=0.19),
    "own": Floors(summary=0.59, whole=0.54, useless=0.14),
    "graded": Floors(summary=0.80, whole=0.90, foreign=0.17, tokens=2_050),
    "scattered": Floors(summary=0.63, whole=0.56, useless=0.14, foreign=0.13),
    "dev": Floors(whole=0.80, tokens=2_150),
    "stories-1": Floors(summary=0.47, whole=0.53, useless=0.09, foreign=0.67, tokens=2_200),
    "stories-2": Floors(summary=0.45, whole=0.48, useless=0.16, foreign=0.56),
    "stories-python": Floors(summary=0.42, whole=0.53, foreign=0.21, tokens=2_250),
    "stories-npm": Floors(summary=0.50, whole=0.62, useless=0.14, foreign=0.34),
    "stories-3": Floors(whole=0.61, useless=0.25, foreign=0.34, tokens=2_120),
    "stories-4": Floors(whole=0.63, useless=0.24, foreign=0.34),
    "stories-5": Floors(whole=0.61, useless=0.12, foreign=0.45),
    "stories-6": Floors(whole=0.47, useless=0.18, foreign=0.50),
    # Of pages the Summary is asked for all of an answer, not for the means alone.
    "pages-c-python": Floors(summary=0.12, whole=0.66, useless=0.16, foreign=0.59, first=0.47),
    "pages-languages": Floors(summary=0.26, whole=0.75, useless=0.12, foreign=0.76, first=0.50),
    "pages-servers": Floors(summary=0.16, whole=0.66, useless=0.17, foreign=0.84, tokens=2_250, first=0.41),
}


@dataclass(frozen=True, kw_only=True)
class Asked:
    """One question. Each element of ``must`` are texts of which an answer holds at least one, and its Summary of ``summary``.

    ``is_foreign``: the package does not answer it, so that a report would be wrong.
    """

    group: str
    framework: str
    question: str
    must: tuple[tuple[str, ...], ...]
    summary: tuple[tuple[str, ...], ...] = ()
    topic: str = ""
    tags: tuple[str, ...] = ()
    is_foreign: bool = False

    @property
    def query(self) -> Query:
        """The request: with the topic and tags of the one who asked, else with those of the terminal form."""
        query = as_asked(self.framework, self.question)
        return replace(query, topic=self.topic, tags=self.tags) if self.topic else query


@dataclass(frozen=True, kw_only=True)
class Graded:
    """``grade`` is 2, 1 or 0, None for a skeleton; ``given`` grades the source's passages alone. ``tokens`` are characters / 4."""

    asked: Asked
    grade: int | None
    given: int | None
    missing: tuple[str, ...]
    tokens: int
    seconds: float
    report: str
    summary: bool | None = None
    """Whether the Summary alone names what to use; None for a skeleton, and where nothing is expected of it."""
    first: bool = False
    """Whether the first passage alone holds the answer; asked of pages only."""


def load(*groups: str, files: Iterable[Path] = FILES) -> list[Asked]:
    """Return the questions of the groups, of all groups when none is named."""
    data = {
        group: held
        for file in files
        for group, held in yaml.safe_load(file.read_text(encoding="utf-8")).items()
    }
    return [
        Asked(
            group=group,
            framework=row["framework"],
            question=row["question"],
            must=alternatives(row["must"]),
            summary=alternatives(row.get("summary", [])),
            topic=row.get("topic", ""),
            tags=tuple(row.get("tags", [])),
            is_foreign=row.get("foreign", False) or row.get("undocumented", False),
        )
        for group in groups or data
        for row in data[group]["questions"]
    ]


def alternatives(expected: Iterable[str | list[str]]) -> tuple[tuple[str, ...], ...]:
    """Return what a file expects, each as the texts of which one is enough."""
    return tuple((one,) if isinstance(one, str) else tuple(one) for one in expected)


def grade(asked: Asked, text: str) -> tuple[int, tuple[str, ...]]:
    """Return the grade of a text and what it lacks. Backslashes of Markdown and the repeated question do not count."""
    missing = lacking(asked, text, asked.must)
    half = len(missing) * 2 <= len(asked.must)
    return (2 if not missing else 1 if half else 0), missing


def lacking(asked: Asked, text: str, expected: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return what of the expected a text lacks."""
    plain = text.replace("\\", "").replace(asked.question, "")
    return tuple(one[0] for one in expected if not any(text in plain for text in one))


def measure(asked: Asked, folder: Path) -> Graded:
    """Ask the packages that are installed in ``folder`` and write the report."""
    query = asked.query
    start = time.perf_counter()
    try:
        source = LocalDocs((folder,), {"VIRTUAL_ENV": str(folder / ".venv")})
        answer = source.ask(Ask(query=query), timeout=60.0)
    except SourceFailure:
        answer = None
    seconds = time.perf_counter() - start
    given = "\n".join(f"{p.title}\n{p.text}" for p in answer.passages) if answer else ""
    report = build_report(query, answer=answer, today=date(2026, 1, 1))
    graded, missing = grade(asked, report.text.partition("\n## ")[2])
    is_report = report.origin != "skeleton"
    told = not lacking(asked, sections(report.text)[0], asked.summary)
    return Graded(
        asked=asked,
        grade=graded if is_report else None,
        summary=told if is_report and asked.summary else None,
        given=grade(asked, given)[0] if answer else None,
        missing=missing,
        tokens=len(report.text) // 4,
        seconds=seconds,
        report=report.text,
    )


@dataclass(frozen=True, kw_only=True)
class Totals:
    """How a group fared: counts of the grades, tokens of the reports, seconds of the slowest answer."""

    questions: int
    grades: dict[int, int]
    foreign: int
    foreign_asked: int
    """Of the questions that the package does not answer ``foreign`` got a report."""
    summaries: int
    summaries_asked: int
    firsts: int
    floors: Floors
    in_passages: int
    median_tokens: float
    most_tokens: int
    slowest: float

    @property
    def missed(self) -> list[str]:
        """Return a sentence for each goal that was missed."""
        reports = sum(self.grades.values())
        whole = self.grades[2] / (self.questions or 1)
        useless = self.grades[0] / (reports or 1)
        right = self.summaries / (self.summaries_asked or 1)
        foreign = self.foreign / (self.foreign_asked or 1)
        first = self.firsts / (self.questions or 1)
        told = {
            f"answered by the first passage: {first:.2f}, the floor is {self.floors.first:.2f}": first
            < self.floors.first,
            f"Summary right: {right:.2f} of the reports, the floor is {self.floors.summary:.2f}": right
            < self.floors.summary,
            f"graded 2: {whole:.2f}, the floor is {self.floors.whole:.2f}": whole < self.floors.whole,
            f"graded 0: {useless:.2f} of the reports, at most {self.floors.useless:.2f}": useless
            > self.floors.useless,
            f"not documented and answered: {foreign:.2f}, at most {self.floors.foreign:.2f}": foreign
            > self.floors.foreign,
            f"median of {self.median_tokens:.0f} tokens, at most {self.floors.tokens:.0f}": self.median_tokens
            >= self.floors.tokens,
            f"a report of {self.most_tokens} tokens, the goal is {MOST_TOKENS}": self.most_tokens
            > MOST_TOKENS,
        }
        return [sentence for sentence, is_missed in told.items() if is_missed]

    def __str__(self) -> str:
        reports = sum(self.grades.values())
        return (
            f"{self.questions} questions; graded 2: {self.grades[2]}, 1: {self.grades[1]}, 0: {self.grades[0]}, "
            f"skeletons {self.questions - reports}; Summary right {self.summaries} of {self.summaries_asked}; "
            f"in the first passage of a page {self.firsts}; foreign ones answered: {self.foreign} of {self.foreign_asked}; all there in the passages: {self.in_passages}; "
            f"tokens: median {self.median_tokens:.0f}, most {self.most_tokens}; slowest {self.slowest:.1f} s"
        )


def totals(rows: Iterable[Graded]) -> Totals:
    """Count how the questions of a group fared."""
    told = list(rows)
    found = [row for row in told if not row.asked.is_foreign]
    reports = [row for row in found if row.grade is not None]
    tokens = [row.tokens for row in reports] or [0]
    return Totals(
        questions=len(found),
        foreign=sum(row.asked.is_foreign and row.grade is not None for row in told),
        foreign_asked=len(told) - len(found),
        summaries=sum(row.summary is True for row in reports),
        summaries_asked=sum(row.summary is not None for row in reports),
        firsts=sum(row.first for row in reports),
        floors=_joined([FLOORS.get(row.asked.group, Floors()) for row in told]),
        grades={wanted: sum(row.grade == wanted for row in reports) for wanted in (2, 1, 0)},
        in_passages=sum(row.given == 2 for row in found),
        median_tokens=median(tokens),
        most_tokens=max(tokens),
        slowest=max((row.seconds for row in found), default=0.0),
    )


def _joined(floors: Sequence[Floors]) -> Floors:
    """Return what groups must reach together, each by how many questions it has."""
    if not floors:
        return Floors()
    names = ("whole", "useless", "summary", "foreign", "tokens", "first")
    return Floors(**{name: mean(getattr(one, name) for one in floors) for name in names})
