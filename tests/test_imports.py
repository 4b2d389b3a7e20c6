"""How kr imports: without circles, at the top of a module, and nothing heavy on a hit."""

import ast
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import kr
from kr.store import saving
from tests.support.program import Project, request
from tests.support.stores import draft

ROOT = Path(kr.__file__).parents[1]
MODULES = {
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((ROOT / "kr").rglob("*.py"))
}

KNOWN_CIRCLES = set(
    """
    kr.store.backup kr.store.database
    kr.transfer kr.transfer.export_yaml kr.transfer.import_yaml
    """.split()
)
"""Modules that still import each other. Only ever made smaller."""

MOST_INNER_IMPORTS = 82
"""Imports inside functions that are not marked ``# heavy``. Only ever lowered."""

HEAVY = {"alembic", "fastapi", "httpx2", "markdown_it", "mcp", "pydantic", "sqlalchemy"}


def imports(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Every import that runs, those inside functions too; none under ``if TYPE_CHECKING``."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif not (isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"):
            yield from imports(node)


def targets(node: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name for alias in node.names} & MODULES.keys()
    inner = {f"{node.module}.{alias.name}" for alias in node.names}
    return (inner & MODULES.keys()) or ({node.module or ""} & MODULES.keys())


def test_no_module_imports_itself_through_others() -> None:
    graph = {
        name: set().union(*map(targets, imports(ast.parse(path.read_text()))))
        for name, path in MODULES.items()
    }

    def reached(name: str) -> set[str]:
        found, waiting = set[str](), list(graph[name])
        while waiting:
            if (module := waiting.pop()) not in found:
                found.add(module)
                waiting += graph[module]
        return found

    assert {name for name in graph if name in reached(name)} <= KNOWN_CIRCLES


def test_imports_inside_functions_are_marked_as_heavy() -> None:
    unmarked = []
    for name, path in MODULES.items():
        lines = path.read_text().splitlines()
        tree = ast.parse(path.read_text())
        functions = (it for it in ast.walk(tree) if isinstance(it, ast.FunctionDef | ast.AsyncFunctionDef))
        inner = {it.lineno for function in functions for it in imports(function)}
        unmarked += [f"{name}:{line}" for line in inner if "# heavy" not in lines[line - 1]]
    assert len(unmarked) <= MOST_INNER_IMPORTS, unmarked


def test_a_hit_imports_nothing_heavy(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    with project.app() as app:
        entry = draft("vue", "virtual scrolling", framework_version="3.5", tags=("lists", "performance"))
        saving.save(
            app.store, entry, "# text\n\nRows that are out of sight are not drawn.\n", project.clock()
        )
    asked = {"tags": ["lists", "performance"], "framework_version": "3.5"}
    for topic, status in (("virtual scrolling", "cache-hit"), ("long scrolling lists", "candidates")):
        document = request(topic=topic, config_overrides={"if_unsure": "candidates"}, **asked)
        (project.root / "ask.json").write_text(json.dumps(document))
        words = ["research", "--request", "ask.json", "--format", "json"]
        code = f"import sys; from kr.cli.main import main; main({words!r}); print(*sys.modules)"
        done = subprocess.run(
            [sys.executable, "-c", code],
            cwd=project.root,
            env=project.environ(),
            capture_output=True,
            check=True,
        )
        printed, _, modules = done.stdout.decode().rstrip().rpartition("\n")
        assert json.loads(printed)["status"] == status
        assert HEAVY.isdisjoint(modules.split())
