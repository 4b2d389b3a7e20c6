"""What a hit may import: its cost is that of its modules (see docs/performance.md)."""

import json
import subprocess
import sys
import time

import pytest

from kr.settings import Memory, load_settings
from kr.store import saving
from tests.support.program import Project, request
from tests.support.stores import draft

_MOST_MODULES = 45
"""Of kr itself."""

_LIBRARIES = {"alembic", "fastapi", "httpx", "markdown_it", "mcp", "pydantic", "rich", "sqlalchemy"}
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
    assert "cache-hit" in ask(project)[1]  # remembers the settings
    modules, printed = ask(project)
    assert json.loads(printed)["status"] == "cache-hit"
    assert modules & _LIBRARIES == set()
    assert sum(name.startswith("kr.") for name in modules) <= _MOST_MODULES


def test_a_model_that_judges_costs_a_hit_nothing(project: Project) -> None:
    fill(project)
    ask(project)
    modules, _ = ask(project)
    project.env |= {"KR_JUDGE": "llm", "KR_LLM": '{"base_url": "http://127.0.0.1:9", "model": "m"}'}
    ask(project)
    assert ask(project)[0] == modules


def test_a_hit_by_the_same_keywords_imports_no_library(project: Project) -> None:
    fill(project)
    ask(project)
    modules, printed = ask(project, topic="the virtual scrolling")
    assert json.loads(printed)["results"]["match"]["tier"] == "framework+keywords"
    assert modules & _LIBRARIES == set()
    assert sum(name.startswith("kr.") for name in modules) <= _MOST_MODULES


def test_candidates_import_no_library_but_the_one_that_ranks(project: Project) -> None:
    fill(project)
    ask(project)
    offered = {"topic": "long scrolling lists", "config_overrides": {"if_unsure": "candidates"}}
    modules, printed = ask(project, **offered)
    assert json.loads(printed)["status"] == "candidates"
    assert modules & _LIBRARIES == set()
    assert "rapidfuzz" in modules


def test_a_hit_of_a_person_reads_the_projects_files_once(project: Project) -> None:
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
    time.sleep(0.15)  # what was written just now is not remembered
    assert "kr.packages.dependencies" in run(project, *words)[0]
    modules, printed = run(project, *words)
    assert json.loads(printed)["status"] == "cache-hit"
    assert modules & _LIBRARIES == set()
    assert "kr.packages.dependencies" not in modules


def test_help_and_version_import_nothing_of_the_store() -> None:
    for word in ("--help", "--version"):
        code = f"import sys; from kr.cli.main import main; main([{word!r}]); print(*sys.modules)"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        modules = done.stdout.split()
        assert not [name for name in modules if name.startswith(("kr.store", "kr.settings", "kr.app"))]


def memory(project: Project, **environ: str) -> Memory:
    return Memory(
        config=None, knowledge_base=None, environ={**project.environ(), **environ}, cwd=project.root
    )


def test_settings_are_remembered_after_a_hit_and_read_again_when_anything_changes(project: Project) -> None:
    fill(project)
    assert memory(project).recall() is None
    ask(project)
    known = memory(project).recall()
    assert known is not None
    read = load_settings(config=None, knowledge_base=None, environ=project.environ(), cwd=project.root)
    assert known.plain() == read.hit.plain()
    assert memory(project, KR_MAX_CALLS_PER_STORY="7").recall() is None
    assert memory(project, HOME="/elsewhere").recall() is None
    with (project.root / "kr.yaml").open("a") as file:
        file.write("\n# changed\n")
    assert memory(project).recall() is None


@pytest.mark.parametrize("content", ["", "{}", "[1]", "no json", '{"key": 1, "enabled": "x"}'])
def test_a_broken_memory_is_made_anew_in_silence(project: Project, content: str) -> None:
    fill(project)
    ask(project)
    (kept,) = (project.base / ".kr-settings").iterdir()
    good = kept.read_text()
    kept.write_text(content)
    assert memory(project).recall() is None
    assert "cache-hit" in ask(project)[1]
    assert json.loads(kept.read_text()) == json.loads(good)


def test_no_secret_is_remembered(project: Project) -> None:
    fill(project)
    project.env["KR_SERVERS__CONTEXT7__HEADERS__AUTHORIZATION"] = "Bearer hush-hush"
    with (project.root / "kr.yaml").open("a") as file:
        file.write("# sk-hush-hush\n")
    ask(project)
    for kept in (project.base / ".kr-settings").iterdir():
        assert "hush" not in kept.read_text()


def test_a_memory_that_names_servers_is_none(project: Project) -> None:
    """What asks sources is built from the files alone; who can write to the folder points kr nowhere else."""
    fill(project)
    ask(project)
    (kept,) = (project.base / ".kr-settings").iterdir()
    forged = json.loads(kept.read_text()) | {"servers": {"context7": {"url": "https://evil.example"}}}
    kept.write_text(json.dumps(forged))
    assert memory(project).recall() is None
    modules, printed = ask(project, topic="state machines", tags=["state"])
    assert json.loads(printed)["status"] == "degraded"
    assert modules & _LIBRARIES <= {"yaml"}, "a miss without a source"
