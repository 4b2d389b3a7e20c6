import pytest

from kr.packages.exports import exported_names, standing

INIT = """
from .core import Option as Option, _hidden
from ._client import Client
from .glob import *
__all__ = ["edit", "Table"]
__all__ += ["prompt"]
__version__ = "1"
"""


def test_names_are_what_the_package_imports_or_lists() -> None:
    assert exported_names([INIT, "not (python"]) == {"Option", "Client", "edit", "Table", "prompt"}


@pytest.mark.parametrize(
    ("better", "worse"),
    [
        ("p.core.Option", "p.core.Other"),
        ("p.core.Option.method", "p.core.Other.method"),
        ("p._client.Client", "p._client.Other"),
        ("p.core.Other", "p._internal.Other"),
        ("p.main.Model", "p.v1.Model"),
        ("p.termui.edit", "p._termui_impl.edit"),
    ],
)
def test_what_is_offered_stands_above_what_is_kept(better: str, worse: str) -> None:
    exported = exported_names([INIT])
    assert standing(better, exported) > standing(worse, exported)


def test_a_package_without_exports_is_left_as_it_is() -> None:
    assert standing("rich.table.Table", frozenset()) == standing("rich", frozenset()) == 1.0
