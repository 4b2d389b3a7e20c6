"""``kr export-yaml`` and ``kr import-yaml`` as processes: streams and exit statuses."""

import json
from pathlib import Path

import pytest
import yaml

from tests.support.program import Project

INDEX = """\
- framework: vue
  topic: slots
  path: frameworks/vue/slots.md
- framework: vue
  topic: [broken, here]
  path: x.md
- {framework: vue, topic: "\\u001b[31m", path: x.md}
- {framework: vue, topic: lost, path: lost.md}
- {framework: vue, topic: gone, path: gone.md, status: archived}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    (made.root / "old").mkdir()
    (made.root / "old" / "index.yaml").write_text(INDEX)
    (made.root / "old" / "frameworks" / "vue").mkdir(parents=True)
    (made.root / "old" / "frameworks" / "vue" / "slots.md").write_text("# vue - slots\n")
    return made


def test_bad_items_are_named_on_standard_error(project: Project) -> None:
    done = project.run("import-yaml", "old", "--format", "json")
    value = json.loads(done.stdout)
    assert done.returncode == 0
    counts = ["imported", "updated", "unchanged", "archived", "refused"]
    assert list(value)[:6] == ["knowledge_base", *counts]
    assert value["knowledge_base"] == str(project.base)
    assert [value[name] for name in counts] == [1, 0, 0, 1, 3]
    file = str(project.root / "old" / "index.yaml")
    assert [(item["file"], item["line"]) for item in value["refused_items"]] == [
        (file, 4),
        (file, 7),
        (file, 8),
    ]
    told = done.stderr.decode().splitlines()
    assert told[0] == f"warning: refused: {file}:4: topic: must be text, not a list"
    assert told[1].startswith(f"warning: refused: {file}:7: topic: must not ")
    missing = "path: there is no report at lost.md, so that it is not indexed"
    assert told[2] == f"warning: refused: {file}:8: {missing}"
    assert len(told) == 3


def test_a_file_that_cannot_be_read_fails(project: Project) -> None:
    done = project.run("import-yaml", "nowhere.yaml", "old/index.yaml")
    assert done.returncode == 1
    assert yaml.safe_load(done.stdout)["imported"] == 1
    assert b"error: " in done.stderr
    assert b"nowhere.yaml: can't be read: No such file or directory" in done.stderr


def test_broken_yaml_is_told_with_its_place_and_what_to_do(project: Project) -> None:
    (project.root / "index.yaml").write_text("- id: a\n  topic: [x\n")
    done = project.run("import-yaml", "index.yaml")
    assert done.returncode == 1
    told = done.stderr.decode()
    assert "index.yaml: line " in told
    assert "did not find expected" in told
    assert "a text with special characters needs quotes" in told


def test_export_answers_with_its_files(project: Project) -> None:
    project.run("import-yaml", "old")
    done = project.run("export-yaml", "--output", "out", "--format", "json")
    assert (done.returncode, done.stderr) == (0, b"")
    value = json.loads(done.stdout)
    assert [value[name] for name in ("entries", "archived", "reports")] == [1, 1, 1]
    assert str(project.root / "out" / "_archived-index.yaml") in value["files"]
    (item,) = yaml.safe_load((project.root / "out" / "index.yaml").read_text())
    assert item["id"] == "vue-slots"
