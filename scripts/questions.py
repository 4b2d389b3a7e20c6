"""Prints how many of the repository's questions installed documentation answers, in one table. Run it as scripts/questions FOLDER.

FOLDER has the packages installed that tests/data/installed-questions.yaml and natural-questions.yaml name.
"""

import argparse
import time
from dataclasses import replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory

from kr.errors import SourceFailure
from kr.sources.base import Ask
from kr.sources.local_docs import LocalDocs
from tests.support.installed_questions import Asked, load, measure, table


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/questions", description=__doc__)
    parser.add_argument("folder", type=Path, help="a folder with .venv and node_modules")
    parser.add_argument("--framework", help="only questions about this one")
    parser.add_argument("--tokens", type=int, default=1_500, help="of a report, at most (1500)")
    parser.add_argument("--cache", type=Path, help="keep the indexes in this folder; default: made anew")
    parser.add_argument("--rows", action="store_true", help="print a line for each question")
    parser.add_argument("--reports", action="store_true", help="print each report")
    arguments = parser.parse_args()
    asked = [one for one in load() if arguments.framework in {None, one.query.framework}]
    with TemporaryDirectory() as temporary:
        cache = (arguments.cache or Path(temporary)).resolve()
        folder = arguments.folder.resolve()
        print(_made(asked, folder, cache), flush=True)
        rows = []
        for one in asked:
            row = measure(one, folder, cache, max_tokens=arguments.tokens)
            rows.append(row)
            if arguments.rows:
                shown = "-" if row.grade is None else row.grade
                print(
                    f"{shown} {row.tokens:5} {one.query.framework}: {one.query.question}  lacks {list(row.missing)}"
                )
            if arguments.reports:
                print(row.report)
        print(table(rows))


def _made(asked: list[Asked], folder: Path, cache: Path) -> str:
    """Make the index of each package with a question that it knows, and say how long that took."""
    environ = {"VIRTUAL_ENV": str(folder / ".venv"), "XDG_CACHE_HOME": str(cache)}
    times: dict[str, float] = {}
    for one in asked:
        name = one.query.framework
        if name not in times:
            query = replace(one.query, question=name, topic=name, tags=())
            start = time.perf_counter()
            try:
                LocalDocs((folder,), environ).ask(Ask(query=query), timeout=120.0)
            except SourceFailure:
                continue  # not installed
            times[name] = time.perf_counter() - start
    largest = max(times, key=times.__getitem__, default="none")
    told = sorted(times.values()) or [0.0]
    return f"{len(times)} indexes made: median {median(told):.2f} s, largest {told[-1]:.1f} s ({largest})"


if __name__ == "__main__":
    main()
