"""What a hit may import: its cost is that of its modules (see docs/performance.md)."""

import json
import subprocess
import sys

from kr.store import saving
from tests.support.program import Project, request
from tests.support.stores import draft

_MOST_MODULES = 42
"""Of kr itself."""

_LIBRARIES = {"alembic", "fastapi", "httpx2", "markdown_it", "mcp", "pydantic", "sqlalchemy"}
"""What no hit may import."""
_RUN = "import sys; from kr.cli.main import main; status = main({words!r}); print(*sys.modules); sys.exit(status)"


def fill(project: Project, topic: str = "virtual scrolling") -> None:
    with project.app() as app:
        entry = draft("vue", topic, framework_version="3.5", tags=("lists", "performance"))
        saving.save(
            app.store, entry, "# text\n\nRows that are out of sight are not drawn.\n", project.clock()
        )


def run(project: Project, *words: str, code: str = _RUN) -> tuple[set[str], str]:
    """Run a command in a process of its own; return what it imported and what it printed before."""
    done = subprocess.run(
        [sys.executable, "-c", code.format(words=list(words))],
        cwd=project.root,
        env=project.environ(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    printed, _, modules = done.stdout.rstrip("\n").rpartition("\n")
    return set(modules.split()), printed


def ask(project: Project, **changes: object) -> tuple[set[str], str]:
    asked = {"topic": "virtual scrolling", "tags": ["lists", "performance"], "framework_version": "3.5"}
    (project.root / "ask.json").write_text(json.dumps(request(**{**asked, **changes})))
    return run(project, "research", "--request", "ask.json", "--format", "json")


def test_a_hit_imports_no_library_and_few_modules(project: Project) -> None:
    fill(project)
    modules, printed = ask(project)
    assert json.loads(printed)["status"] == "cache-hit"
    assert modules & _LIBRARIES == set()
    assert sum(name.startswith("kr.") for name in modules) <= _MOST_MODULES


def test_what_is_asked_in_json_needs_no_yaml(project: Project) -> None:
    fill(project)
    (project.root / "kr.yaml").unlink()
    (project.root / ".git").mkdir()
    del project.env["KR_SOURCES"], project.env["KR_SERVERS"]
    project.env["KR_ENABLED"] = "true"
    ask(project)
    modules, printed = ask(project)
    assert json.loads(printed)["status"] == "cache-hit"
    assert modules & {"yaml", "shutil"} == set()


def test_a_hit_without_a_version_imports_no_library(project: Project) -> None:
    (project.root / ".git").mkdir()  # what else comes and goes above it is none of its concern
    (project.root / "package-lock.json").write_text(
        '{"lockfileVersion": 3, "packages": {"": {"dependencies": {"vue": "3"}}, "node_modules/vue": {"version": "3.5.1"}}}'
    )
    fill(project)
    words = (
        "research",
        "vue",
        "How is a long list scrolled?",
        "--topic",
        "virtual scrolling",
        "--format",
        "json",
    )
    modules, printed = run(project, *words)
    assert json.loads(printed)["status"] == "cache-hit"
    assert modules & (_LIBRARIES | {"packaging", "importlib.metadata"}) == set()


def test_help_and_version_import_nothing_of_the_store() -> None:
    for word in ("--help", "--version"):
        code = f"import sys; from kr.cli.main import main; main([{word!r}]); print(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        modules = done.stdout.split()
        assert not [name for name in modules if name.startswith(("kr.store", "kr.settings", "kr.app"))]
