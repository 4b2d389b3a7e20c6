"""Scores reports on real questions: tests/data/questions.yaml, answered from installed packages or stored answers.

A question scores where its expected strings stand: in the Summary, in it or the first 60 lines of Details, or
anywhere in the report. The question that the Summary repeats does not count, nor do backslashes of Markdown.
"""

import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import yaml
from kr.reports.report import build_report

from kr.errors import SourceFailure
from kr.report import DETAILS, SUMMARY, read_shape
from kr.sources.base import Ask
from kr.sources.context7_text import parse_documentation
from kr.sources.local_docs import LocalDocs
from kr.text.words import derive_tags, derive_topic
from kr.values import Answer, Passage, Query

DATA = Path(__file__).parent.parent / "data"
TOP_LINES = 60
FLOORS: dict[str, dict[str, float]] = {
    "dev": {"summary": 0.67, "top": 0.77, "anywhere": 0.85, "answered": 0.95},
    "held_out": {"summary": 0.69, "top": 0.79, "anywhere": 0.82, "answered": 0.92},
    "answers": {"summary": 0.83, "top": 0.95, "anywhere": 0.95, "answered": 1.0},
}
"""What part of a group must reach each place: a question or two below what was measured. ``scripts/questions`` fails below it."""


@dataclass(frozen=True, kw_only=True)
class Case:
    """One question. ``expect`` are strings of which a right answer holds all; ``file`` is a stored answer."""

    group: str
    framework: str
    question: str
    expect: tuple[str, ...]
    core: bool = False
    source: str = "local_docs"
    file: str | None = None

    @property
    def query(self) -> Query:
        """The request that the terminal form makes of it."""
        return as_asked(self.framework, self.question)


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """Where the expected strings stand; ``answered``: in what the source gave. ``seconds`` for source and report."""

    case: Case
    summary: bool = False
    top: bool = False
    anywhere: bool = False
    answered: bool = False
    asking: float = 0.0
    writing: float = 0.0
    report: str = ""


def as_asked(framework: str, question: str) -> Query:
    """Return the request that the terminal form makes of a framework and a question."""
    return Query(
        framework=framework,
        framework_version="unknown",
        topic=derive_topic(framework, question),
        tags=tuple(derive_tags(framework, question)),
        question=question,
    )


def load(*groups: str) -> list[Case]:
    """Return the questions of the groups, of all groups when none is named."""
    data = yaml.safe_load((DATA / "questions.yaml").read_text(encoding="utf-8"))
    return [
        Case(group=group, **(row | {"expect": tuple(row["expect"])}))
        for group in groups or data
        for row in data[group]
    ]


def answer(case: Case, project: Path) -> Answer | None:
    """Return the stored answer, or what the installed documentation says; None when it says nothing."""
    if case.file is None:
        try:
            return LocalDocs((project,), {"VIRTUAL_ENV": sys.prefix}).ask(Ask(query=case.query), timeout=60.0)
        except SourceFailure:
            return None
    text = (DATA / "answers" / case.file).read_text(encoding="utf-8")
    address = f"https://docs.example/{case.file}"
    if case.source == "context7":
        return Answer(source=case.source, passages=parse_documentation(text), url=address)
    return Answer(source=case.source, passages=(Passage(text=text, url=address),), url=address)


def score(case: Case, project: Path) -> Outcome:
    """Write the report and look where the expected strings stand."""
    start = time.perf_counter()
    given = answer(case, project)
    asked = time.perf_counter()
    report = build_report(case.query, answer=given, today=date(2026, 1, 1)).text
    written = time.perf_counter()
    summary, details = sections(report)
    top = "\n".join(details.splitlines()[:TOP_LINES])
    return Outcome(
        case=case,
        summary=holds(case, summary),
        top=holds(case, f"{summary}\n{top}"),
        anywhere=holds(case, f"{summary}\n{report.partition(f'## {DETAILS}')[2]}"),
        answered=given is not None and holds(case, "\n".join(f"{p.title}\n{p.text}" for p in given.passages)),
        asking=asked - start,
        writing=written - asked,
        report=report,
    )


def sections(report: str) -> tuple[str, str]:
    """Return the Summary and the Details."""
    shape = read_shape(report)
    if shape is None:
        raise ValueError("a report that does not follow the template")
    return shape.sections[SUMMARY], shape.sections[DETAILS]


def holds(case: Case, text: str) -> bool:
    """Tell whether a text holds all that a right answer holds."""
    plain = text.replace("\\", "")
    return all(expected in plain for expected in case.expect)


def fallen(group: str, outcomes: Iterable[Outcome]) -> list[str]:
    """Return a sentence for each place that fewer questions of a group reach than the floor says."""
    found = rates(outcomes)
    floors = FLOORS.get(group, {})
    return [
        f"{group}: {place} fell to {found[place]:.2f}, below {floor:.2f}"
        for place, floor in floors.items()
        if found[place] < floor
    ]


def rates(outcomes: Iterable[Outcome]) -> dict[str, float]:
    """Return the part of the questions that reach each place."""
    rows = list(outcomes)
    places = ("summary", "top", "anywhere", "answered")
    return {place: sum(getattr(row, place) for row in rows) / (len(rows) or 1) for place in places}
