"""``kill -9`` while a research writes its report: row, text, search index and file agree, and nothing acknowledged is missing."""

import hashlib
import json
import random
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from kr.models import Entry
from kr.store import entries, lookup, saving
from kr.store.engine import Store
from tests.support.program import Project

SUBJECTS = ("timeouts", "retries", "proxies", "cookies", "redirects", "certificates", "streams", "encodings")


def handbook(root: Path) -> Path:
    folder = root / "handbook"
    folder.mkdir()
    plans = " ".join(map(str, range(500)))
    for subject in SUBJECTS:
        text = f"# {subject}\n\nThe client handles {subject} for each request by its `{subject}` option. Plans: {plans}\n"
        (folder / f"{subject}.md").write_text(text)
    return folder


def answer_of(output: bytes) -> dict[str, Any] | None:
    """Read what was printed before the end; None where the answer is not whole."""
    try:
        answer: dict[str, Any] = json.loads(output)
    except ValueError:
        return None
    return answer


def in_order(store: Store, base: Path, entry: Entry) -> None:
    """Hold that the text of the row is there, is the file's once it is read, and is found by its topic."""
    text = saving.read_report(store, entry)
    assert text is not None
    assert hashlib.sha256(text.encode()).hexdigest() == entry.sha256
    assert (base / entry.path).read_text() == text
    with store.read() as tx:
        assert entry.id in lookup.find(tx, entry.topic, most=500)


@pytest.mark.processes
@pytest.mark.timeout(1_800)
@pytest.mark.effort(500, 4)
def test_a_killed_research_leaves_all_of_an_entry_or_none(tmp_path: Path, effort: int) -> None:
    project = Project(tmp_path / "project")
    source = {"name": "handbook", "folder": str(handbook(tmp_path)), "framework": "vue"}
    project.env |= {"KR_SOURCES": json.dumps([source]), "KR_MAX_ENTRIES": "1000"}
    chance = random.Random(11)
    acknowledged: set[str] = set()
    seconds = 1.5
    for turn in range(effort):
        subject = f"{SUBJECTS[turn % len(SUBJECTS)]} of plan {turn}"
        begun = time.monotonic()
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "kr",
                "research",
                "vue",
                f"How are {subject} handled?",
                "--if-unsure",
                "research",
                "--format",
                "json",
            ],
            cwd=project.root,
            env=project.environ(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        if turn:
            time.sleep(chance.uniform(0.2, 1.1) * seconds)
            process.kill()
        output, _ = process.communicate(timeout=60)
        if not turn:
            seconds = time.monotonic() - begun  # how long one takes here: kills fall in all of it
        if answer := answer_of(output):
            assert answer["status"] == "success", json.dumps(answer)
            acknowledged.add(str(answer["results"]["report_path"]))
        with Store(None, project.base) as store:
            with store.read() as tx:
                found = entries.all(tx)
            assert acknowledged <= {entry.path for entry in found}
            for entry in found[-3:] if turn < effort - 1 else found:
                in_order(store, project.base, entry)
    assert acknowledged
    assert project.sql("PRAGMA integrity_check") == [("ok",)]
