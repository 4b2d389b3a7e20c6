"""An index is made once, whole, for everybody, and again when what it was made of has changed; what fits a question best goes first."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kr.documents.index import (
    MAX_BYTES,
    Index,
    Ranking,
    ask,
    cache_folder,
    fill,
    open_index,
    rank_texts,
)
from kr.documents.text import Section
from kr.models import Query


def sections(*names: str) -> list[Section]:
    return [Section(name=name, text="text", place="a.md") for name in names]


def made(cache: Path | None, *names: str, of: Path | None = None, key: str = "python-thing-1.0") -> list[str]:
    """Open an index of the file ``of``, to be made with passages of these names, and return the names that it has."""
    files = [(of.parent, [of.name])] if of else []
    connection = open_index(key, files, lambda: sections(*names), cache)
    found = [name for (name,) in connection.execute("SELECT name FROM passages")]
    connection.close()
    return found


def test_it_is_made_once_and_again_when_its_files_changed(tmp_path: Path) -> None:
    cache, file = tmp_path / "cache", tmp_path / "a.md"
    file.write_text("a")
    assert made(cache, "one", "two", of=file) == ["one", "two"]
    assert made(cache, "never", of=file) == ["one", "two"]
    file.write_text("longer")
    assert made(cache, "longer", of=file) == ["longer"]
    os.utime(file, (1e10, 1e10))  # changed, with the same size
    assert made(cache, "newer", of=file) == ["newer"]
    assert made(cache, "never", of=file) == ["newer"]
    assert len(list(cache.glob("*.db"))) == 1


def test_a_torn_file_is_made_anew(tmp_path: Path) -> None:
    made(tmp_path, "a")
    (file,) = tmp_path.glob("*.db")
    file.write_bytes(file.read_bytes()[:3_000])
    assert made(tmp_path, "b") == ["b"]


def test_a_folder_that_cannot_be_written_is_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert made(tmp_path / "file" / "docs", "a") == ["a"]
    assert made(None, "a") == ["a"]


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    for number in range(4):
        made(tmp_path, "a", key=f"p{number}")
        (file,) = tmp_path.glob(f"p{number}-*.db")
        if number:
            os.truncate(file, MAX_BYTES // 2 - 100_000)  # a hole, which takes no room
        os.utime(file, (1_000 + number, 1_000 + number))
    made(tmp_path, "b", key="p0")  # used now
    assert sorted(file.name[:2] for file in tmp_path.glob("*.db")) == ["p0", "p2", "p3"]


MAKER = """
import sys, time
from pathlib import Path
from kr.documents.index import open_index
from kr.documents.text import Section

folder, seconds = Path(sys.argv[1]), float(sys.argv[2])

def make():
    with (folder / "made").open("a") as file:
        file.write("x")
    yield Section(name="one", text="text", place="a.md")
    time.sleep(seconds)
    yield Section(name="two", text="text", place="a.md")

connection = open_index("shared", [], make, folder)
print(connection.execute("SELECT count(*) FROM passages").fetchone()[0])
"""


def start(folder: Path, seconds: float) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", MAKER, str(folder), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


@pytest.mark.processes
def test_eight_processes_at_once_make_it_once(tmp_path: Path) -> None:
    processes = [start(tmp_path, 0.3) for _ in range(8)]
    assert [process.communicate(timeout=60)[0] for process in processes] == ["2\n"] * 8
    assert (tmp_path / "made").read_text() == "x"


@pytest.mark.processes
def test_one_that_is_killed_leaves_nothing_half_and_the_next_run_cleans_up(tmp_path: Path) -> None:
    process = start(tmp_path, 60.0)
    deadline = time.monotonic() + 30
    while not (tmp_path / "made").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert made(tmp_path, "other") == ["other"]  # another index is made at once
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert start(tmp_path, 0.0).communicate(timeout=60)[0] == "2\n"
    assert len(list(tmp_path.iterdir())) == 3


def test_the_folder_is_the_users_own() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/kr/docs")
    assert cache_folder({"XDG_CACHE_HOME": "relative", "HOME": "/h"}) == Path("/h/.cache/kr/docs")
    assert cache_folder({}) is None


# --- asking


def index(package: str, *passages: Section) -> Index:
    connection = sqlite3.connect(":memory:")
    fill(connection, passages)
    return Index(package, connection)


def name(name: str, text: str, *, is_secondary: bool = False) -> Section:
    signature = f"def {name}()"
    return Section(name, text, "a.py", signature=signature, form="python", is_secondary=is_secondary)


def query(question: str) -> Query:
    return Query(framework="tool", framework_version="1", topic=question, tags=(), question=question)


OWN = (
    name("tool.run", "Run a command and wait for its end."),
    name("tool.cache_result", "Keep what a function returned."),
    name("tool._impl.cache_result", "Keep what a function returned, here inside.", is_secondary=True),
    name("tool.stop", "Stop whatever runs."),
)
SECRET = name("secrets.SecretText", "A secret that is not printed.")


def asked(question: str, *dependencies: Index) -> Ranking:
    return ask(index("tool", *OWN), query(question), dependencies)


def names(ranking: Ranking) -> list[str]:
    return [one.section.name for one in ranking.passages]


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("How do I keep the results that functions return?", "tool.cache_result"),  # by its stems
        ("Why does stop() not end a command that runs?", "tool.stop"),  # spelled
        ("Where is cacheResult?", "tool.cache_result"),  # by an identifier's parts
        ('run" OR NEAR(name:* -"', "tool.run"),  # no syntax of a query
    ],
)
def test_the_best_goes_first(question: str, best: str) -> None:
    assert names(asked(question))[0] == best


def test_a_text_that_stands_twice_is_told_once() -> None:
    double = (*OWN, name("tool.again.run", "Run a command and wait for its end."))
    ranking = ask(index("tool", *double), query("run a command"))
    assert sum(one.endswith(".run") for one in names(ranking)) == 1


def test_dependencies_are_opened_for_unknown_words_alone() -> None:
    opened: list[str] = []

    def others() -> Iterator[Index]:
        opened.append("secrets")
        yield index("secrets", SECRET)

    assert names(ask(index("tool", *OWN), query("run a command"), others()))
    assert opened == []
    ranking = asked("How does it keep a secret?", index("secrets", SECRET))
    assert [(one.section.name, one.package) for one in ranking.passages if one.package != "tool"] == [
        ("secrets.SecretText", "secrets")
    ]


def test_a_gap_is_where_the_best_passages_hold_none_of_the_rare_words() -> None:
    assert not asked("Keep what a function returned").is_gap
    assert not asked("Why does my service keep waiting for what a function returned?").is_gap
    ranking = asked("How does a Kubernetes ingress webhook run?")
    assert (ranking.is_gap, names(ranking)) == (True, ["tool.run", "tool.stop"])
    for question in ("Turbines?", "?!"):
        assert (asked(question).is_gap, asked(question).passages) == (True, ())


def test_texts_are_cut_and_ranked() -> None:
    page = "# Start\n\nWelcome here.\n\n## Timeouts\n\nSet `timeout` in seconds."
    found = rank_texts([("Manual", "https://x.example/", page)], query("How long is a timeout?"))
    assert [(one.name, one.place) for one in found] == [("Manual: Start > Timeouts", "https://x.example/")]
    assert len(rank_texts([("Manual", "p", page)], query("Elephants?"))) == 2
