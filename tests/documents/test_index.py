"""An index is made once, whole, for everybody; and again when what it was made of has changed."""

import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from kr.documents.index import Origin, bound, cache_folder, open_index
from kr.documents.text import Section

ORIGIN = Origin(key="python-thing-1.0", fingerprint="a", changed_at=1.0)


def sections(*names: str) -> list[Section]:
    return [Section(name=name, text="text", place="a.md") for name in names]


def names(connection: sqlite3.Connection) -> list[str]:
    found = [name for (name,) in connection.execute("SELECT name FROM passages")]
    connection.close()
    return found


def test_an_index_is_made_once(tmp_path: Path) -> None:
    made = []

    def make() -> Iterator[Section]:
        made.append(1)
        yield from sections("one", "two")

    assert names(open_index(ORIGIN, make, tmp_path)) == ["one", "two"]
    assert names(open_index(ORIGIN, make, tmp_path)) == ["one", "two"]
    assert len(made) == 1


@pytest.mark.parametrize(
    "other",
    [
        Origin(key=ORIGIN.key, fingerprint="b", changed_at=1.0),
        Origin(key=ORIGIN.key, fingerprint="a", changed_at=1e12),
    ],
    ids=["other files", "a file that changed since"],
)
def test_it_is_made_anew_when_its_files_changed(tmp_path: Path, other: Origin) -> None:
    open_index(ORIGIN, lambda: sections("old"), tmp_path).close()
    assert names(open_index(other, lambda: sections("new"), tmp_path)) == ["new"]
    assert len(list(tmp_path.glob("*.db"))) == 1
    assert names(open_index(other, lambda: sections("newest"), tmp_path)) == ["new"]


def test_a_torn_file_is_made_anew(tmp_path: Path) -> None:
    open_index(ORIGIN, lambda: sections("a"), tmp_path).close()
    (file,) = tmp_path.glob("*.db")
    file.write_bytes(file.read_bytes()[:3_000])
    assert names(open_index(ORIGIN, lambda: sections("b"), tmp_path)) == ["b"]


def test_a_folder_that_cannot_be_written_is_no_harm(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert names(open_index(ORIGIN, lambda: sections("a"), tmp_path / "file" / "docs")) == ["a"]
    assert names(open_index(ORIGIN, lambda: sections("a"), None)) == ["a"]


def test_the_least_recently_used_go_first(tmp_path: Path) -> None:
    for number in range(4):
        origin = Origin(key=f"p{number}", fingerprint="")
        open_index(origin, lambda: sections("a"), tmp_path).close()
        (file,) = tmp_path.glob(f"p{number}-*.db")
        os.utime(file, (1_000 + number, 1_000 + number))
    size = next(tmp_path.glob("*.db")).stat().st_size
    open_index(Origin(key="p0", fingerprint=""), lambda: sections("b"), tmp_path).close()  # used now
    bound(tmp_path, most=2 * size)
    assert sorted(file.name[:2] for file in tmp_path.glob("*.db")) == ["p0", "p3"]


MAKER = """
import sys, time
from pathlib import Path
from kr.documents.index import Origin, open_index
from kr.documents.text import Section

folder, seconds = Path(sys.argv[1]), float(sys.argv[2])

def make():
    with (folder / "made").open("a") as file:
        file.write("x")
    yield Section(name="one", text="text", place="a.md")
    time.sleep(seconds)
    yield Section(name="two", text="text", place="a.md")

connection = open_index(Origin(key="shared", fingerprint=""), make, folder)
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
    open_index(ORIGIN, lambda: sections("other"), tmp_path).close()  # another index is made at once
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert start(tmp_path, 0.0).communicate(timeout=60)[0] == "2\n"
    assert len(list(tmp_path.iterdir())) == 3


def test_the_folder_is_the_users_own() -> None:
    assert cache_folder({"XDG_CACHE_HOME": "/c", "HOME": "/h"}) == Path("/c/kr/docs")
    assert cache_folder({"XDG_CACHE_HOME": "relative", "HOME": "/h"}) == Path("/h/.cache/kr/docs")
    assert cache_folder({}) is None
