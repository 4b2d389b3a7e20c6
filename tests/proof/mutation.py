"""Which changes of the rules that decide their tests notice.

``python -m tests.proof.mutation --minutes 60`` changes one place at a time in copies of the tree, and runs the tests of that module: what
they don't notice has survived. It prints a table, and names the survivors. See docs/reliability.md.
"""

import argparse
import ast
import copy
import os
import random
import re
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = {
    "kr/research/decide.py": "tests/research/test_decide.py tests/research/test_opposites.py tests/test_freshness.py",
    "kr/research/report.py": "tests/research/test_pipeline.py",
    "kr/report.py": "tests/test_markdown.py",
    "kr/guard.py": "tests/test_guard.py",
    "kr/lessons/line.py": "tests/lessons/test_line.py tests/lessons/test_duplicates.py",
    "kr/lessons/record.py": "tests/lessons/test_events.py tests/lessons/test_record.py",
    "kr/workflows/machine.py": "tests/workflows/test_machine.py",
    "kr/store/ledger.py": "tests/test_open_needs.py tests/test_tokens_spared.py",
}
"""The modules, and the tests of each beside those in ``rules``."""
_IMPORTED = ("hypothesis.stateful", "psycopg", "pydantic", "rapidfuzz.fuzz", "sqlalchemy", "yaml")
_OPTIONS = "-x -q --hypothesis-profile=no-shrinking --timeout=60 --timeout-method=thread -p no:cacheprovider -p no:schemathesis -p no:unraisableexception -p no:threadexception"
_PAIRS = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv), (ast.BitAnd, ast.BitOr)),
)
_OTHER: dict[type[ast.AST], type[ast.AST]] = {one: two for pair in _PAIRS for one, two in (pair, pair[::-1])}
_LEFT_ALONE = {"annotation", "returns", "decorator_list", "exc", "format_spec"}
_MESSAGE = re.compile(r"[a-z,:;] [a-z]+ [a-z]")


def mutants(module: str) -> Iterator[tuple[str, str, str]]:
    """Give each change of a module: its name, ``line: before -> after``, and its source with that."""
    tree = ast.parse((ROOT / module).read_text())
    whole = [ast.unparse(statement) for statement in tree.body]
    for number, statement in enumerate(tree.body):
        for held, at, node in places(statement):
            for other in changes(node):
                said = " -> ".join(" ".join(ast.unparse(it).split())[:90] for it in (node, other))
                held[at] = other
                text = ast.unparse(ast.fix_missing_locations(statement))
                yield (
                    module,
                    f"{node.lineno}: {said}",
                    "\n".join([*whole[:number], text, *whole[number + 1 :]]),
                )
                held[at] = node


def places(parent: ast.AST) -> Iterator[tuple[Any, Any, Any]]:
    """Walk what may be changed, with where it hangs: no types, decorators, docstrings, nor what is raised."""
    for name, value in ast.iter_fields(parent):
        held: Any = value if isinstance(value, list) else vars(parent)
        for at in range(len(value)) if isinstance(value, list) else [name]:
            node = held[at]
            is_docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
            is_type = isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal"
            if isinstance(node, ast.AST) and not (name in _LEFT_ALONE or is_docstring or is_type):
                yield held, at, node
                yield from places(node)


def changes(node: ast.AST) -> Iterator[ast.AST]:
    """Give what may stand in a node's place."""
    other: Any = copy.copy(node)
    match node:
        case ast.Compare(ops=[op, *more]) if type(op) in _OTHER:
            other.ops = [_OTHER[type(op)](), *more]
            yield other
        case ast.BoolOp(op=op) | ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in _OTHER:
            other.op = _OTHER[type(op)]()
            yield other
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.If(test=ast.Name() | ast.Attribute() | ast.Call()) | ast.IfExp(test=ast.Name() | ast.Call()):
            other.test = ast.UnaryOp(ast.Not(), other.test)
            yield other
        case ast.Constant(value=bool(value)):
            yield ast.Constant(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield ast.Constant(value + 1)
        case ast.Constant(value=str(value)) if not _MESSAGE.search(value):
            is_signs = len(value) > 1 and not any(map(str.isalnum, value))
            yield ast.Constant(value[:-1] if is_signs else f"XX{value}")
        case ast.Expr() | ast.Continue() | ast.Break() | ast.Raise():
            yield ast.Pass()
        case ast.Return(value=ast.expr()) if ast.unparse(node) != "return None":
            yield ast.Return(ast.Constant(None))


def rules_of(module: str) -> str:
    return f"tests/proof/rules/test_{module[3:-3].replace('/', '_')}.py"


def is_noticed(tree: Path, module: str) -> bool:
    """Whether a module's tests fail in a tree. They run in a fork, which has what they import; a test may take a minute."""
    if (child := os.fork()) == 0:
        os.setsid()
        os.chdir(tree)
        for stream in (1, 2):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream)
        sys.path.insert(0, str(tree))
        for name in [it for it in sys.modules if it.partition(".")[0] in {"kr", "tests"}]:
            del sys.modules[name]
        options = ["-W", "ignore::pytest.PytestAssertRewriteWarning", "-k", "not postgresql"]
        with suppress(BaseException):
            os._exit(pytest.main([*_OPTIONS.split(), *options, rules_of(module), *TESTS[module].split()]))
        os._exit(1)
    _, ended = os.waitpid(child, 0)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # what the tests left running
    return ended != 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", default=[*TESTS], help=", ".join(TESTS))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    queue = [it for module in given.modules for it in mutants(module)]
    random.Random(given.seed).shuffle(queue)
    for name in _IMPORTED:
        import_module(name)
    tried, noticed = Counter[str](), Counter[str]()
    with tempfile.TemporaryDirectory(prefix="kr-") as place:
        os.environ["TMPDIR"] = tempfile.tempdir = place
        tree = Path(place, "tree")
        shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache"))
        for module in given.modules:
            assert not is_noticed(tree, module), f"{module}: its tests fail as it is"
        os.environ["PYTHONDONTWRITEBYTECODE"], sys.dont_write_bytecode = "1", True
        for module, change, source in queue:
            if time.monotonic() > until:
                break
            original = (tree / module).read_text()
            (tree / module).write_text(source)
            is_it = is_noticed(tree, module)
            (tree / module).write_text(original)
            tried.update([module, "all"])
            noticed.update([module, "all"] if is_it else [])
            sys.stdout.write("" if is_it else f"{module}:{change}\n")
            sys.stdout.flush()
    known = Counter(module for module, _, _ in queue) + Counter(all=len(queue))
    sys.stdout.write("| module | changes | tried | noticed | |\n|---|---:|---:|---:|---:|\n")
    for name in [*given.modules, "all"]:
        row = f"| {name} | {known[name]} | {tried[name]} | {noticed[name]} |"
        sys.stdout.write(f"{row} {noticed[name] / max(1, tried[name]):.2f} |\n")
    return int(noticed["all"] < 0.8 * tried["all"])


if __name__ == "__main__":
    sys.exit(main())
