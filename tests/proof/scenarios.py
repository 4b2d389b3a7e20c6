"""Commands that a crash may end, the project that they are run in, and what each promises once it has answered.

kr runs in a fork of this process, which has imported it.
"""

import json
import os
import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from kr.store import SCHEMA_VERSION
from tests.support.lessons import record_data
from tests.support.program import Project

MARKS = {"Mark-first", "Mark-second", "Mark-flask", "Mark-removed"}
"""A word of each text that the project holds before a command is run."""
HANDBOOK = "# Handbook\n\n## Progress bars\n\nA progress bar is `click.progressbar(items)`. Mark-handbook.\n"
WORKFLOW = """---
template_id: two
version: "1"
type: test
description: Two steps.
---
---
parameters: {}
---

```yaml
steps:
  - {id: one, name: One, type: action, run: echo one >> log}
  - {id: two, name: Two, type: action, run: echo two >> log}
```
"""
LESSON = "- [2026-02-07] [dev-execution] Mark-lesson is known before. Ref: src/a.py\n"
SOURCES = {"KR_SOURCES": "[{name: handbook, folder: docs, framework: click}]"}


@dataclass(frozen=True, slots=True)
class Scenario:
    """A command, and what it has acknowledged when it printed its whole answer and ended well.

    ``promised`` looks at the project then; ``go_on``: what is run after a crash, if not the same again.
    """

    command: tuple[str, ...]
    promised: Callable[[Project], bool]
    stdin: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    begun: str = ""
    """A file that shows that the command was begun; then ``go_on`` is run."""
    go_on: tuple[str, ...] = ()
    is_new: bool = False
    """Whether there is no knowledge base before."""


def save(framework: str, question: str, mark: str) -> tuple[str, ...]:
    return (
        "save",
        framework,
        question,
        "--answer",
        f"{mark}: do it so.",
        "--framework-version",
        "8",
        "--session-id",
        "a",
    )


def has(mark: str) -> Callable[[Project], bool]:
    return lambda project: mark in texts(project)


# --- what a project holds


def sql(database: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database, timeout=10)) as connection, connection:
        return connection.execute(statement).fetchall()


def count(project: Project, table: str) -> int:
    return int(sql(project.database, f"SELECT count(*) FROM {table}")[0][0])


def texts(project: Project) -> str:
    """Return every text that somebody can still reach."""
    reached = "SELECT sha256 FROM entries UNION SELECT sha256 FROM archived_entries UNION SELECT sha256 FROM revisions"
    return "\n".join(
        row[0] for row in sql(project.database, f"SELECT text FROM report_texts WHERE sha256 IN ({reached})")
    )


def is_guarded(project: Project) -> bool:
    """Whether no more entries are left than there is room for, or the answer came with a word that it is not so."""
    return count(project, "entries") == 1 or "the capacity guard failed" in printed(project)[1]


def current(project: Project, entry_id: str) -> str:
    rows = sql(project.database, f"SELECT text FROM reports WHERE id = '{entry_id}'")
    return "".join(row[0] for row in rows)


def lessons(project: Project) -> str:
    return (project.base / "lessons/_lessons-learned.md").read_text()


def is_completed(project: Project) -> bool:
    """Whether the workflow ended well, and no step that was not interrupted ran twice."""
    instance = json.loads((project.root / "workflow_state.json").read_text())
    done = Counter((project.root / "log").read_text().split())
    runs = {step["id"]: 1 + step["interruptions"] for step in instance["steps"]}
    return instance["status"] == "completed" and all(1 <= done[name] <= most for name, most in runs.items())


def is_exported(project: Project, folder: str) -> bool:
    items = yaml.safe_load((project.root / folder / "index.yaml").read_text())
    return len(items) == count(project, "entries") and all(
        (project.root / folder / item["path"]).is_file() for item in items
    )


def is_sound(database: Path) -> bool:
    return (
        sql(database, "PRAGMA integrity_check") == [("ok",)]
        and len(sql(database, "SELECT 1 FROM entries")) > 0
    )


SCENARIOS: dict[str, Scenario] = {
    "first use": Scenario(save("click", "How do I exit?", "Mark-new"), has("Mark-new"), is_new=True),
    "save": Scenario(save("click", "How do I ask for a password?", "Mark-new"), has("Mark-new")),
    "evict": Scenario(
        save("click", "How do I exit?", "Mark-new"),
        lambda project: "Mark-new" in texts(project) and is_guarded(project),
        env={"KR_MAX_ENTRIES": "1"},
    ),
    "research": Scenario(
        ("research", "click", "How do I show a progress bar?", "--framework-version", "8"),
        has("Mark-handbook"),
    ),
    "rate": Scenario(
        ("rate", "click-ask-password", "--worked", "--session-id", "b"),
        lambda project: count(project, "ratings") == 1,
    ),
    "lesson": Scenario(
        ("lessons", "record", "--request", "-"),
        lambda project: "row-height" in lessons(project),
        stdin=json.dumps(record_data()),
    ),
    "export": Scenario(("export-yaml", "--output", "out"), lambda project: is_exported(project, "out")),
    "import": Scenario(("import-yaml", "elsewhere"), has("Mark-imported")),
    "restore a text": Scenario(
        ("entries", "restore", "click-ask-password", "1"),
        lambda project: "Mark-first" in current(project, "click-ask-password"),
    ),
    "back up": Scenario(
        ("db", "backup", "kept.db"),
        lambda project: is_sound(project.root / "kept.db"),
        begun="kept.db",
        go_on=("db", "check"),
    ),
    "restore a backup": Scenario(
        ("db", "restore", "earlier.db"), lambda project: "Mark-first" in texts(project)
    ),
    "upgrade": Scenario(
        ("db", "upgrade"), lambda project: sql(project.database, "SELECT added FROM entries") != []
    ),
    "workflow": Scenario(
        ("workflow", "start", "two.md"),
        is_completed,
        begun="workflow_state.json",
        go_on=("workflow", "run", "--retry"),
    ),
}


# --- running kr in a fork


def run(project: Project, *command: str, stdin: str = "") -> tuple[int, str, str]:
    """Run kr as a fork; return status, output and complaints."""
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            redirect(project, stdin)
            status = execute(command)
        finally:
            os._exit(status)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), *printed(project)


def redirect(project: Project, stdin: str) -> None:
    """Give this process, a fork, the standard streams, the folder and the environment of a command."""
    sys.dont_write_bytecode = True
    given, out, err = (project.root / name for name in ("stdin", "stdout", "stderr"))
    given.write_text(stdin)
    for number, path in enumerate((given, out, err)):
        file = os.open(path, os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, number)
        os.close(file)
    sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115 - whatever they were before
    os.chdir(project.root)
    os.environ.clear()
    os.environ.update(project.environ())


def execute(command: Sequence[str]) -> int:
    from kr.cli.main import main

    status = main([*command, "--format", "json"])
    sys.stdout.flush()
    return status


def printed(project: Project) -> tuple[str, str]:
    return (project.root / "stdout").read_text(), (project.root / "stderr").read_text()


def prepare(folder: Path, *, is_new: bool) -> None:
    """Make the project that each run gets a copy of; ``is_new``: without a database."""
    project = Project(folder, env=SOURCES)
    (folder / "docs").mkdir()
    (folder / "docs/handbook.md").write_text(HANDBOOK)
    (folder / "two.md").write_text(WORKFLOW)
    (project.base / "lessons").mkdir(parents=True)
    (project.base / "lessons/_lessons-learned.md").write_text(f"# Lessons Learned\n\n{LESSON}")
    if is_new:
        return
    for command in (
        save("click", "How do I ask for a password?", "Mark-first"),
        save("flask", "How do I stream?", "Mark-flask"),
        save("vue", "How do slots work?", "Mark-removed"),
        ("db", "backup", "earlier.db"),
        save("click", "How do I ask for a password?", "Mark-second"),
        ("entries", "remove", "vue-slots-work"),
    ):
        status, out, err = run(project, *command)
        assert status == 0, (command, out, err)
    other = Project(folder / "other", env=SOURCES)
    assert run(other, *save("react", "How do hooks work?", "Mark-imported"))[0] == 0
    assert run(other, "export-yaml", "--output", "../elsewhere")[0] == 0
    shutil.rmtree(other.root)
    if SCHEMA_VERSION > 1:  # the newer kr of `upgrade`: the database as the older one has it
        for change in ("PRAGMA user_version = 1", "UPDATE alembic_version SET version_num = '0001'"):
            sql(project.database, change)
