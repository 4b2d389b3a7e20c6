"""The mutator changes what it says, and knows what tests notice; it runs for an hour by itself (``tests.proof.mutation``)."""

import ast
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.proof.mutation import TESTS, mutants, rules_of
from tests.support.stores import ROOT

MODULE = "kr/lessons/record.py"
LOOK = """
import sys
from pathlib import Path
from tests.proof.mutation import is_noticed

tree, module = Path(sys.argv[1]), sys.argv[2]
print(is_noticed(tree, module))
file = tree / module
file.write_text(file.read_text().replace('"needs-intervention"', '"XXneeds-intervention"'))
print(is_noticed(tree, module))
"""


def test_each_change_gives_another_module() -> None:
    source = (ROOT / MODULE).read_text()
    whole, lines = ast.dump(ast.parse(source)), len(source.splitlines())
    found = [*mutants(MODULE)]
    assert len({(change, text) for _, change, text in found}) == len(found) > 100
    for _, change, text in found:
        assert ast.dump(ast.parse(text)) != whole
        assert 0 < int(change.partition(":")[0]) <= lines


def test_each_module_has_rules_of_its_own() -> None:
    for module, own in TESTS.items():
        for path in (module, rules_of(module), *own.split()):
            assert (ROOT / path).is_file(), path


@pytest.mark.processes
def test_a_change_that_matters_is_noticed(tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".venv", "__pycache__"))
    command = [sys.executable, "-c", LOOK, str(tree), MODULE]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]
