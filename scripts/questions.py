"""Prints where the answers to real questions stand in their reports, and fails when they fall. Run it as scripts/questions."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.support import installed_questions, page_questions
from tests.support.installed_questions import Graded
from tests.support.questions import Outcome, fallen, load, rates, score, sections


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/questions", description=__doc__)
    parser.add_argument(
        "groups", nargs="*", help="of tests/data/questions.yaml: dev, held_out, answers; default all"
    )
    parser.add_argument("--framework", help="only questions about this one")
    parser.add_argument("--summaries", action="store_true", help="print each Summary")
    parser.add_argument("--reports", action="store_true", help="print each report")
    parser.add_argument("--totals", action="store_true", help="print the totals alone")
    parser.add_argument(
        "--installed",
        metavar="FOLDER",
        type=Path,
        help="grade installed-questions.yaml and natural-questions.yaml (groups: forty, stories-1, …) on the packages installed in FOLDER",
    )
    parser.add_argument(
        "--pages",
        metavar="FOLDER",
        type=Path,
        help="grade page-questions.yaml (groups: pages-c-python, …) on the pages of the packages unpacked in FOLDER",
    )
    parser.add_argument(
        "--packages", action="store_true", help="print Debian's packages that --pages needs, and nothing else"
    )
    arguments = parser.parse_args()
    if arguments.packages:
        pages = page_questions.load_pages(*arguments.groups)
        print(*sorted({page.package for page in pages} - {""}), sep="\n")
        return 0
    if arguments.installed or arguments.pages:
        return _graded(arguments)
    cases = [case for case in load(*arguments.groups) if arguments.framework in {None, case.framework}]
    outcomes: list[Outcome] = []
    with TemporaryDirectory() as project:
        for case in cases:
            outcome = score(case, Path(project))
            outcomes.append(outcome)
            if arguments.totals:
                continue
            print(_line(outcome), flush=True)
            if arguments.reports:
                print(outcome.report)
            elif arguments.summaries:
                print(sections(outcome.report)[0] + "\n")
    problems: list[str] = []
    for group in dict.fromkeys(case.group for case in cases):
        rows = [outcome for outcome in outcomes if outcome.case.group == group]
        shown = ", ".join(f"{place} {rate:.2f}" for place, rate in rates(rows).items())
        slowest = max(row.writing for row in rows)
        print(f"{group}: {len(rows)} questions; {shown}; slowest report {slowest * 1000:.0f} ms")
        if arguments.framework is None:
            problems += fallen(group, rows)
    return _failed(problems)


def _failed(problems: list[str]) -> int:
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _graded(arguments: argparse.Namespace) -> int:
    rows = []
    for row in _measured(arguments):
        rows.append(row)
        if not arguments.totals:
            shown = "-" if row.grade is None else row.grade
            summary = "S" if row.summary else "s" if row.summary is False else " "
            print(
                f"{shown} {summary} {'1' if row.first else ' '} {'-' if row.given is None else row.given} {row.tokens:5} tokens "
                f"{row.seconds:5.1f} s  {row.asked.framework}: {row.asked.question}  lacks {list(row.missing)}",
                flush=True,
            )
        if arguments.reports:
            print(row.report)
        elif arguments.summaries:
            print(sections(row.report)[0] + "\n")
    found = installed_questions.totals(rows)
    print(found)
    return _failed(found.missed) if arguments.framework is None else 0


def _measured(arguments: argparse.Namespace) -> Iterator[Graded]:
    if arguments.pages:
        for page in page_questions.load_pages(*arguments.groups):
            if arguments.framework in {None, page.framework}:
                yield page_questions.measure_page(page, arguments.pages.resolve())
        return
    for asked in installed_questions.load(*arguments.groups):
        if arguments.framework in {None, asked.framework}:
            yield installed_questions.measure(asked, arguments.installed.resolve())


def _line(outcome: Outcome) -> str:
    case = outcome.case
    place = (
        "summary" if outcome.summary
        else "top" if outcome.top
        else "anywhere" if outcome.anywhere
        else "answered" if outcome.answered
        else "-"
    )  # fmt: skip
    times = f"{outcome.asking:5.1f} s {outcome.writing * 1000:4.0f} ms"
    return f"{place:9}{times}  {case.framework}: {case.question}  {list(case.expect)}"


if __name__ == "__main__":
    sys.exit(main())
