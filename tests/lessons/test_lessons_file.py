"""The file itself: append-only, whole lines, whatever it looks like and whoever is killed."""

import os
import signal
import time
from pathlib import Path

import pytest

from kr.lessons.file import LessonsFile, LessonsFileError, read_bytes
from kr.lessons.line import HEADER, ParsedLines, parse_lines
from kr.models import Lesson
from kr.store.engine import Store
from tests.support.lessons import start


def lesson(summary: str, ref: str | None = None) -> Lesson:
    return Lesson(date="2026-02-07", tags=("dev-execution",), summary=summary, ref=ref)


def append(path: Path, *summaries: str, lock_timeout: float = 5.0) -> int:
    file = LessonsFile(path, Store(None, path.parent), lock_timeout=lock_timeout)
    with file.lock():
        file.write([lesson(summary) for summary in summaries])
    return len(file.read())


def read(path: Path) -> ParsedLines:
    return parse_lines(read_bytes(path))


def summaries(path: Path) -> list[str]:
    return [found.summary for found in read(path).lessons]


def test_a_new_file_begins_with_the_header_of_the_seed(path: Path) -> None:
    assert append(path, "one", "two") == 2
    assert path.read_text(encoding="utf-8") == (
        HEADER + "- [2026-02-07] [dev-execution] one\n- [2026-02-07] [dev-execution] two\n"
    )


def test_what_is_acknowledged_was_flushed_to_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[tuple[int, bytes]] = []
    flush = os.fsync

    def watched(file: int) -> None:
        flushed.append((os.fstat(file).st_ino, path.read_bytes()))
        flush(file)

    monkeypatch.setattr(os, "fsync", watched)
    append(path, "one")
    number, one = path.stat().st_ino, path.read_bytes()
    assert flushed == [(number, one), (path.parent.stat().st_ino, one)]

    flushed.clear()
    append(path, "two")
    both = path.read_bytes()
    assert flushed == [(number, both)]


@pytest.mark.parametrize(
    ("before", "added"),
    [
        (b"# Mine\n\n- [2026-01-01] [x] old\n", b"- [2026-02-07] [dev-execution] new\n"),
        (b"- [2026-01-01] [x] old", b"\n- [2026-02-07] [dev-execution] new\n"),
        (b"# Mine\r\n- [2026-01-01] [x] old", b"\n- [2026-02-07] [dev-execution] new\n"),
        (b"\xef\xbb\xbf- [2026-01-01] [x] old\n", b"- [2026-02-07] [dev-execution] new\n"),
        (b"\xef\xbb\xbf", HEADER.encode() + b"- [2026-02-07] [dev-execution] new\n"),
        (b"", HEADER.encode() + b"- [2026-02-07] [dev-execution] new\n"),
    ],
)
def test_what_is_there_stays_and_a_new_line_begins(path: Path, before: bytes, added: bytes) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(before)
    append(path, "new")
    assert path.read_bytes() == before + added


@pytest.mark.parametrize("make", [lambda path: path.mkdir(), os.mkfifo])
def test_what_is_no_file_is_refused_at_once(path: Path, make: object) -> None:
    path.parent.mkdir(parents=True)
    assert callable(make)
    make(path)
    with pytest.raises(LessonsFileError):
        append(path, "one")
    with pytest.raises(LessonsFileError):
        read(path)


_FULL_DISK = """
import resource, sys
from pathlib import Path
from kr.lessons.file import LessonsFileError, LessonsFile
from kr.models import Lesson
from kr.store.engine import Store
path, room = Path(sys.argv[1]), int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
lessons = [Lesson(date="2026-02-07", tags=("x",), summary=f"lesson {n} " + "y" * 80) for n in range(3)]
try:
    file = LessonsFile(path, Store(None, path.parent))
    with file.lock():
        file.write(lessons)
except LessonsFileError as error:
    print("failed:", error)
"""


@pytest.mark.parametrize("room", [0, 10, 250, 300])
@pytest.mark.parametrize("is_new", [True, False])
def test_a_full_disk_leaves_the_file_as_it_was(path: Path, room: int, *, is_new: bool) -> None:
    path.parent.mkdir(parents=True)
    before = b"" if is_new else HEADER.encode() + b"- [2026-01-01] [x] old\n"
    if before:
        path.write_bytes(before)
    with start(_FULL_DISK, path, room) as process:
        out, err = process.communicate(timeout=60)
    assert f"failed: {path}: File too large" in out, err
    assert (path.read_bytes() if path.exists() else b"") == before
    assert append(path, "after") == (1 if is_new else 2)


_WRITER = """
import sys
from pathlib import Path
from kr.lessons.file import LessonsFile
from kr.models import Lesson
from kr.store.engine import Store
path = Path(sys.argv[1])
file, name, count = LessonsFile(path, Store(None, path.parent)), sys.argv[2], int(sys.argv[3])
sys.stdin.readline()
for number in range(count):
    new = Lesson(date="2026-02-07", tags=("x",), summary=f"writer {name} number {number} " + "z" * (number % 90 + 1))
    shared = Lesson(date="2026-02-07", tags=("x",), summary=f"shared {number}")
    with file.lock():
        present = file.read().lessons
        file.write([new] + ([] if any(p.summary == shared.summary for p in present) else [shared]))
    print(number, flush=True)
"""


@pytest.mark.processes
def test_killed_writers_leave_whole_lines(path: Path) -> None:
    acknowledged: set[str] = set()
    for attempt in range(6):
        with start(_WRITER, path, attempt, 10_000) as writer:
            assert writer.stdin is not None
            assert writer.stdout is not None
            writer.stdin.write("go\n")
            writer.stdin.flush()
            writer.stdout.readline()
            time.sleep(0.002 * attempt)
            writer.send_signal(signal.SIGKILL)
            seen = [0, *map(int, writer.stdout.read().split())]
            writer.wait()
        acknowledged.update(f"writer {attempt} number {number}" for number in seen)
    total = append(path, "the end")
    found = summaries(path)
    assert len(found) == total
    assert read(path).unread == 0
    assert path.read_bytes().endswith(b"the end\n")
    assert acknowledged <= {" ".join(summary.split()[:4]) for summary in found}
    assert len(found) == len(set(found))
