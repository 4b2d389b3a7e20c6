"""Grades reports on pages of documentation: page-questions.yaml of tests/data, on pages that the reader has unpacked."""

import time
from dataclasses import dataclass
from datetime import date
from pathlib import Path

import yaml
from kr.reports.report import build_report
from kr.sources.html_markdown import to_markdown

from kr.values import Answer, Passage
from tests.support.installed_questions import DATA, Asked, Graded, alternatives, grade, lacking
from tests.support.questions import sections

FILE = DATA / "page-questions.yaml"


@dataclass(frozen=True, kw_only=True)
class AskedOfPage(Asked):
    """One question to a ``page``, a path below the folder in which the packages were unpacked; ``package`` is Debian's, or empty.

    ``must`` stands without white space and marks of code: its authors read the page, not its Markdown.
    """

    page: str
    package: str = ""


def load_pages(*groups: str) -> list[AskedOfPage]:
    """Return the questions of the groups, of all groups when none is named."""
    data = yaml.safe_load(FILE.read_text(encoding="utf-8"))
    return [
        AskedOfPage(
            group=group,
            framework=page["framework"],
            question=row["question"],
            must=tuple(tuple(map(_bare, texts)) for texts in alternatives(row["must"])),
            topic=row["topic"],
            tags=tuple(row["tags"]),
            is_foreign=row.get("foreign", False),
            page=page["page"],
            package=page.get("package", ""),
        )
        for group in groups or data
        for page in data[group]
        for row in page["questions"]
    ]


def measure_page(asked: AskedOfPage, folder: Path) -> Graded:
    """Convert the page and write the report."""
    html = (folder / asked.page).read_bytes().decode("utf-8", "replace")
    address = f"https://docs.example/{asked.page}"
    start = time.perf_counter()
    read = to_markdown(html, media_type="text/html", url=address)
    passage = Passage(text=read.text, title=read.title, url=address, is_cut=read.is_cut)
    answer = Answer(source="web_search", passages=(passage,), url=address)
    report = build_report(asked.query, answer=answer, today=date(2026, 1, 1))
    is_report = report.origin != "skeleton"
    told = _bare(report.text.partition("\n## ")[2]).replace(_bare(asked.question), "")
    graded, missing = grade(asked, told)
    summary, details = map(_bare, sections(report.text))
    first = details.partition("FromSource")[2].partition("FromSource")[0]
    return Graded(
        asked=asked,
        grade=graded if is_report else None,
        given=grade(asked, _bare(read.text))[0],
        missing=missing,
        tokens=len(report.text) // 4,
        seconds=time.perf_counter() - start,
        report=report.text,
        summary=not lacking(asked, summary, asked.must) if is_report and asked.must else None,
        first=is_report and not lacking(asked, first, asked.must),
    )


def _bare(text: str) -> str:
    """Return a text without white space and without marks of code and emphasis."""
    return "".join(text.replace("`", "").replace("*", "").replace("\\", "").split())
