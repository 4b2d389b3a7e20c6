"""Commands that a crash may end, the project that they are run in, and what each promises once it has answered.

kr runs in a fork of this process, which has imported it.
"""

import json
import os
import shlex
import shutil
import sqlite3
import sys
from collections import Counter
from collections.abc import Callable, Mapping
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
    """A command, as a shell takes it, and what it has acknowledged when it printed its whole answer and ended well.

    ``promised`` looks at the project then; ``go_on``: what is run after a crash that left the file ``begun``, if not the same again.
    ``is_new``: there is no knowledge base before.
    """

    command: str
    promised: Callable[[Project], bool]
    stdin: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    begun: str = ""
    go_on: str = ""
    is_new: bool = False


def save(framework: str, question: str, mark: str) -> str:
    answer = f"--answer '{mark}: do it so.' --framework-version 8 --session-id a"
    return f"save {framework} '{question}' {answer}"


# --- what a project holds


def sql(database: Path, statement: str) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(database, timeout=10)) as connection, connection:
        return connection.execute(statement).fetchall()


def count(project: Project, table: str) -> int:
    return int(sql(project.database, f"SELECT count(*) FROM {table}")[0][0])


def texts(project: Project) -> str:
    """Return every text that somebody can still reach."""
    reached = "SELECT sha256 FROM entries UNION SELECT sha256 FROM archived_entries UNION SELECT sha256 FROM revisions"
    rows = sql(project.database, f"SELECT text FROM report_texts WHERE sha256 IN ({reached})")
    return "\n".join(row[0] for row in rows)


def has(mark: str) -> Callable[[Project], bool]:
    return lambda project: mark in texts(project)


def is_evicted(project: Project) -> bool:
    """Whether no more entries are left than there is room for, or the answer came with a word that it is not so."""
    is_guarded = count(project, "entries") == 1 or "the capacity guard failed" in printed(project)[1]
    return is_guarded and "Mark-new" in texts(project)


def is_first_again(project: Project) -> bool:
    rows = sql(project.database, "SELECT text FROM reports WHERE id = 'click-ask-password'")
    return "Mark-first" in "".join(row[0] for row in rows)


def lessons(project: Project) -> str:
    return (project.base / "lessons/_lessons-learned.md").read_text()


def is_completed(project: Project) -> bool:
    """Whether the workflow ended well, and no step that was not interrupted ran twice."""
    instance = json.loads((project.root / "workflow_state.json").read_text())
    done = Counter((project.root / "log").read_text().split())
    runs = {step["id"]: 1 + step["interruptions"] for step in instance["steps"]}
    return instance["status"] == "completed" and all(1 <= done[name] <= most for name, most in runs.items())


def is_exported(project: Project) -> bool:
    folder = project.root / "out"
    items = yaml.safe_load((folder / "index.yaml").read_text())
    return len(items) == count(project, "entries") and all(
        (folder / item["path"]).is_file() for item in items
    )


def is_sound(database: Path) -> bool:
    is_whole = sql(database, "PRAGMA integrity_check") == [("ok",)]
    return is_whole and len(sql(database, "SELECT 1 FROM entries")) > 0


ASK = "research click 'How do I show a progress bar?' --framework-version 8"
RECORD = json.dumps(record_data())
SCENARIOS: dict[str, Scenario] = {
    "first use": Scenario(save("click", "How do I exit?", "Mark-new"), has("Mark-new"), is_new=True),
    "save": Scenario(save("click", "How do I ask for a password?", "Mark-new"), has("Mark-new")),
    "evict": Scenario(save("click", "How do I exit?", "Mark-new"), is_evicted, env={"KR_MAX_ENTRIES": "1"}),
    "research": Scenario(ASK, has("Mark-handbook")),
    "rate": Scenario(
        "rate click-ask-password --worked --session-id b", lambda project: count(project, "ratings") == 1
    ),
    "lesson": Scenario(
        "lessons record --request -", lambda project: "row-height" in lessons(project), stdin=RECORD
    ),
    "export": Scenario("export-yaml --output out", is_exported),
    "import": Scenario("import-yaml elsewhere", has("Mark-imported")),
    "restore a text": Scenario("entries restore click-ask-password 1", is_first_again),
    "back up": Scenario(
        "db backup kept.db", lambda it: is_sound(it.root / "kept.db"), begun="kept.db", go_on="db check"
    ),
    "restore a backup": Scenario("db restore earlier.db", has("Mark-first")),
    "upgrade": Scenario(
        "db upgrade", lambda project: sql(project.database, "SELECT added FROM entries") != []
    ),
    "workflow": Scenario(
        "workflow start two.md", is_completed, begun="workflow_state.json", go_on="workflow run --retry"
    ),
}


# --- running kr in a fork


def run(
    project: Project, command: str, stdin: str = "", before: Callable[[], None] = lambda: None
) -> tuple[int, str, str]:
    """Run kr as a fork, ``before`` in it first; return status, output and complaints, each of less than a pipe holds."""
    out, err = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        status = 99
        try:
            redirect(project, stdin, out[1], err[1])
            before()
            status = execute(command)
        finally:
            os._exit(status)
    for (read, write), name in ((out, "stdout"), (err, "stderr")):
        os.close(write)
        with os.fdopen(read, "rb") as file:
            (project.root / name).write_bytes(file.read())
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), *printed(project)


def redirect(project: Project, stdin: str, *outputs: int) -> None:
    """Give this process, a fork, the standard streams, the folder and the environment of a command.

    ``outputs``: standard output and error, if not files that ``printed`` reads.
    """
    sys.dont_write_bytecode = True
    given = project.root / "stdin"
    given.write_text(stdin)
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
    outputs = outputs or tuple(os.open(project.root / name, flags) for name in ("stdout", "stderr"))
    for number, file in enumerate((os.open(given, os.O_RDONLY), *outputs)):
        os.dup2(file, number)
        os.close(file)
    sys.stdout, sys.stderr = (open(number, "w", closefd=False) for number in (1, 2))  # noqa: SIM115 - whatever they were before
    os.chdir(project.root)
    os.environ.clear()
    os.environ.update(project.environ())


def execute(command: str) -> int:
    from kr.cli.main import main

    status = main([*shlex.split(command), "--format", "json"])
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
        "db backup earlier.db",
        save("click", "How do I ask for a password?", "Mark-second"),
        "entries remove vue-slots-work",
    ):
        status, out, err = run(project, command)
        assert status == 0, (command, out, err)
    other = Project(folder / "other", env=SOURCES)
    assert run(other, save("react", "How do hooks work?", "Mark-imported"))[0] == 0
    assert run(other, "export-yaml --output ../elsewhere")[0] == 0
    shutil.rmtree(other.root)
    if SCHEMA_VERSION > 1:  # the newer kr of `upgrade`: the database as the older one has it
        for change in ("PRAGMA user_version = 1", "UPDATE alembic_version SET version_num = '0001'"):
            sql(project.database, change)
