"""Exporting: what readers of both YAML versions find, whose file is whose, and who wins."""

import shutil
import threading
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import yaml
from ruamel.yaml import YAML

from kr.store import saving
from kr.store.engine import Store
from kr.transfer.export_yaml import export_yaml
from tests.support.program import Project, request
from tests.support.stores import NOW, draft, insert_entry

TEXTS = [
    "2.10",
    "yes",
    "null",
    "1e3",
    "0o17",
    "a: b # c",
    "虚拟滚动 🎉",
    "one\ntwo",
    "\u2028\x85\t",
    "=",
    "<<",
    "",
]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def readers(text: str) -> list[Any]:
    found = [yaml.safe_load(text)]
    for version in ((1, 1), (1, 2)):
        for pure in (True, False):
            reader = YAML(typ="safe", pure=pure)
            reader.version = version
            found.append(reader.load(StringIO(text)))
    return found


def test_every_reader_finds_the_same_texts(project: Project) -> None:
    with Store(None, project.base) as store, store.write():
        pass  # makes the database
    for number, text in enumerate(TEXTS):
        insert_entry(
            project.database,
            f"id-{number:02}",
            framework=text,
            topic=text,
            framework_version=text,
            topic_key=str(number),
        )
    with project.app() as app:
        app.export_yaml()
    read = readers((project.base / "index.yaml").read_text(encoding="utf-8"))
    assert all(found == read[0] for found in read)
    for item, text in zip(read[0], TEXTS, strict=True):
        assert item["framework"] == item["topic"] == item["framework_version"] == text
        assert item["created"] == "2026-09-01"


def test_each_stranger_gets_a_copy_and_our_own_file_none(project: Project) -> None:
    index = project.base / "index.yaml"
    project.research()
    for text in ("# one\n", "# two\n", "# one\n"):
        index.write_text(text)
        with project.app() as app:
            app.export_yaml()
            app.export_yaml()
    assert sorted(file.read_text() for file in project.base.glob("*.bak*")) == ["# one\n", "# two\n"]


def test_a_knowledge_base_that_was_moved_or_copied_knows_its_own_files(
    project: Project, tmp_path: Path
) -> None:
    project.research()
    project.root.rename(tmp_path / "moved")
    moved = Project(tmp_path / "moved")
    moved.research(request(framework="click"))
    shutil.copytree(moved.base, tmp_path / "copy" / ".kr")
    copy = Project(tmp_path / "copy")
    copy.research(request(framework="react"))
    assert len(yaml.safe_load((copy.base / "index.yaml").read_text())) == 3
    assert not list(moved.base.glob("*.bak*"))
    assert not list(copy.base.glob("*.bak*"))


def test_the_newest_state_wins_under_sixteen_writers(project: Project) -> None:
    problems: list[BaseException] = []

    def write(writer: int) -> None:
        try:
            with Store(None, project.base) as store:
                for turn in range(3):
                    saving.save(store, draft(topic=f"topic {writer} of {turn}"), f"# {writer} {turn}\n", NOW)
                    export_yaml(store, project.base)
        except BaseException as problem:  # noqa: BLE001 - told by the test
            problems.append(problem)

    threads = [threading.Thread(target=write, args=(number,)) for number in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(100)
    assert not problems
    exported = yaml.safe_load((project.base / "index.yaml").read_text())
    assert len(exported) == 48
    assert {item["id"] for item in exported} == {row[0] for row in project.sql("SELECT id FROM entries")}
    assert not list(project.base.glob("*.bak*"))
    assert not list(project.base.glob(".index.yaml.*"))
