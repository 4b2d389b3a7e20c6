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
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
_RULES = "tests/proof/rules/test_"
TESTS = {
    "kr/research/decide.py": (f"{_RULES}decide.py", "tests/research/test_decide.py"),
    "kr/research/report.py": (f"{_RULES}excerpt.py", "tests/research/test_excerpt.py"),
    "kr/report.py": (f"{_RULES}report.py", "tests/test_report_read.py"),
    "kr/guard.py": (f"{_RULES}guard.py", "tests/test_guard.py"),
    "kr/lessons/line.py": (
        f"{_RULES}line.py",
        "tests/lessons/test_line.py",
        "tests/lessons/test_duplicates.py",
    ),
    "kr/lessons/events.py": (f"{_RULES}events.py", "tests/lessons/test_events.py"),
    "kr/workflows/machine.py": (f"{_RULES}machine.py", "tests/workflows/test_machine.py"),
    "kr/store/ledger.py": (f"{_RULES}ledger.py", "tests/store/test_ledger.py"),
}
"""The modules, and the tests of each."""
_OPTIONS = "-x -q -p no:cacheprovider -p no:schemathesis -p no:unraisableexception -p no:threadexception -W ignore::pytest.PytestAssertRewriteWarning".split()
_IMPORTED = ("hypothesis.stateful", "psycopg", "pydantic", "rapidfuzz.fuzz", "sqlalchemy", "yaml")
_PAIRS = (
    *((ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.In, ast.NotIn), (ast.Is, ast.IsNot)),
    *((ast.And, ast.Or), (ast.Add, ast.Sub), (ast.Mult, ast.FloorDiv), (ast.BitAnd, ast.BitOr)),
)
_OTHER: dict[type[ast.AST], type[ast.AST]] = {one: two for pair in _PAIRS for one, two in (pair, pair[::-1])}
_LEFT_ALONE = {"annotation", "returns", "decorator_list", "exc", "format_spec"}
_MESSAGE = re.compile(r"[a-z,:;] [a-z]+ [a-z]")


class Mutant(NamedTuple):
    module: str
    source: str
    change: str
    """``line: before -> after``."""


def mutants(module: str) -> Iterator[Mutant]:
    """Give a module with one change, for each that there is."""
    tree = ast.parse((ROOT / module).read_text())
    for fields, at, node in places(tree):
        for other in changes(node):
            said = " -> ".join(" ".join(ast.unparse(it).split())[:90] for it in (node, other))
            fields[at] = other
            yield Mutant(module, ast.unparse(ast.fix_missing_locations(tree)), f"{node.lineno}: {said}")
            fields[at] = node


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
        case ast.Return(value=ast.expr()):
            yield ast.Return(ast.Constant(None))


def is_noticed(tree: Path, module: str, seconds: float) -> bool:
    """Whether a module's tests fail in a tree, or take longer. They run in a fork, which has what they import."""
    if (child := os.fork()) == 0:
        os.setsid()
        os.chdir(tree)
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(nowhere, stream)
        sys.path.insert(0, str(tree))
        for name in [it for it in sys.modules if it.partition(".")[0] in {"kr", "tests"}]:
            del sys.modules[name]
        status: int = 1
        try:
            status = pytest.main([*_OPTIONS, "-k", "not postgresql", *TESTS[module]])
        finally:
            os._exit(status)
    until = time.monotonic() + seconds
    while (ended := os.waitpid(child, os.WNOHANG)) == (0, 0) and time.monotonic() < until:
        time.sleep(0.01)
    with suppress(ProcessLookupError):
        os.killpg(child, signal.SIGKILL)  # with what they started
    return (ended if ended[0] else os.waitpid(child, 0))[1] != 0


def survey(
    whole: Path, some: list[Mutant], seconds: dict[str, float], until: float
) -> list[tuple[Mutant, bool]]:
    """Try mutants in a copy of the tree until then; return those that were, each with whether it was noticed."""
    tree, found = Path(tempfile.mkdtemp(dir=whole.parent)) / "tree", []
    shutil.copytree(whole, tree)
    for one in some:
        if time.monotonic() > until:
            break
        (tree / one.module).write_text(one.source)
        found.append((one, is_noticed(tree, one.module, seconds[one.module])))
        shutil.copy2(whole / one.module, tree / one.module)
        if not found[-1][1]:
            sys.stdout.write(f"{one.module}:{one.change}\n")
            sys.stdout.flush()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", default=[*TESTS], help=", ".join(TESTS))
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=1)
    given = parser.parse_args()
    until = time.monotonic() + 60 * given.minutes
    known = {module: [*mutants(module)] for module in given.modules}
    queue = [it for some in known.values() for it in some]
    random.Random(given.seed).shuffle(queue)
    for name in _IMPORTED:
        import_module(name)
    with tempfile.TemporaryDirectory(prefix="kr-") as place:
        os.environ["TMPDIR"] = os.environ["PYTEST_DEBUG_TEMPROOT"] = tempfile.tempdir = place
        whole, seconds = Path(place, "whole"), {}
        shutil.copytree(
            ROOT, whole, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__", ".*_cache")
        )
        for module in known:
            began = time.monotonic()
            assert not is_noticed(whole, module, 600), f"{module}: its tests fail as it is"
            seconds[module] = 20 + 5 * (time.monotonic() - began)
        os.environ["PYTHONDONTWRITEBYTECODE"], sys.dont_write_bytecode = "1", True
        shares = [(whole, queue[at :: given.processes], seconds, until) for at in range(given.processes)]
        with get_context("fork").Pool(given.processes) as pool:
            found = [it for some in pool.starmap(survey, shares) for it in some]
    total, noticed = Counter(it.module for it, _ in found), Counter(it.module for it, is_it in found if is_it)
    sys.stdout.write("| module | changes | tried | noticed | |\n|---|---:|---:|---:|---:|\n")
    for module, some in [*known.items(), ("all", queue)]:
        ran, seen = (total[module], noticed[module]) if module in known else (total.total(), noticed.total())
        sys.stdout.write(f"| `{module}` | {len(some)} | {ran} | {seen} | {seen / max(1, ran):.2f} |\n")
    return int(noticed.total() < 0.8 * total.total())


if __name__ == "__main__":
    sys.exit(main())
