"""Public names of Python sources, read and never run; declarations of TypeScript, as the source has them."""

import time
from textwrap import dedent

import pytest

from kr.documents.code import SKIPPED, declarations, python_sections
from kr.documents.text import Section


def read(**files: str) -> dict[str, Section]:
    sources = [(place.replace("__slash__", "/") + ".py", dedent(text)) for place, text in files.items()]
    return {one.name: one for one in python_sections(sources)}


def test_names_have_their_signature_and_docstring() -> None:
    found = read(
        tool='''
        """What the module is."""

        def run(name: str, *, times: int = 1) -> None:
            """Run it."""

        class Box(Base):
            """Holds things."""
            size: int = 3
            _hidden = 1

            def __init__(self, size):
                """Make."""

            @property
            def full(self) -> bool:
                """Whether it is full."""

        def _private(): ...
        '''
    )
    assert list(found) == ["tool", "tool.run", "tool.Box", "tool.Box.full"]
    assert found["tool.run"].signature == "def run(name: str, *, times: int=1) -> None"
    assert found["tool.Box"].signature == "class Box(Base):\n    def __init__(self, size)\n    size: int = 3"
    assert found["tool.Box.full"].signature == "@property\ndef full(self) -> bool"
    assert found["tool.Box"].text == "Holds things."


def test_a_name_that_is_handed_on_is_told_by_its_shortest_public_path() -> None:
    found = read(
        pkg__slash____init__="from ._core import Option\nfrom .deep import *\nfrom .api import go\n",
        pkg__slash___core='class Option:\n    """An option."""\n    def get(self):\n        """Get."""\n',
        pkg__slash__deep='def helper():\n    """Helps."""\n',
        pkg__slash__api="from ._impl import go\n",
        pkg__slash___impl='def go():\n    """Go."""\n',
        pkg__slash___inner='def lost():\n    """Nobody hands it on."""\n',
    )
    assert {"pkg.Option", "pkg.Option.get", "pkg.helper", "pkg.go", "pkg._inner.lost"} == found.keys()
    assert [name for name, one in found.items() if one.is_secondary] == ["pkg._inner.lost"]


def test_a_path_that_cannot_be_imported_is_not_told() -> None:
    found = read(
        pkg__slash____init__="",
        pkg__slash__state="if TYPE_CHECKING:\n    from .ext.aio.session import Session\nfrom .ext.aio.session import Other\n",
        pkg__slash__ext__slash____init__="",
        pkg__slash__ext__slash__aio__slash____init__="from .session import Session\n",
        pkg__slash__ext__slash__aio__slash__session='class Session:\n    """A session."""\nclass Other:\n    """Other."""\n',
    )
    assert list(found) == ["pkg.ext.aio.Session", "pkg.ext.aio.session.Other"]


def test_a_lazy_package_hands_on_what_it_lists() -> None:
    found = read(
        pkg__slash____init__="if TYPE_CHECKING:\n    from .main import Model, Other\n__all__ = ('Model',)\ndef __getattr__(name): ...\n",
        pkg__slash__main='class Model:\n    """A model."""\nclass Other:\n    """Other."""\n',
    )
    assert list(found) == ["pkg.Model", "pkg.main.Other"]


def test_a_double_of_an_older_version_ranks_behind() -> None:
    go = 'def go():\n    """Go."""\n'
    found = read(pkg__slash__v1__slash__main=go, pkg__slash__main=go)
    assert {name: one.is_secondary for name, one in found.items()} == {
        "pkg.v1.main.go": True,
        "pkg.main.go": False,
    }


def test_of_overloads_the_one_that_is_documented_is_told() -> None:
    found = read(
        m='@overload\ndef f(a: int): ...\n@overload\ndef f(a: str): ...\ndef f(a):\n    """Both."""\n'
    )
    assert found["m.f"].text == "Both."


def test_what_cannot_be_parsed_is_passed_over() -> None:
    assert read(broken="def (:", nul="x = '\0'", deep="(" * 3_000) == {}


def test_tests_and_carried_packages_are_not_read() -> None:
    files = ("a/tests/x.py", "a/_vendor/y.py", "a/test_z.py", "a/core.py")
    assert [file for file in files if not SKIPPED.search(file)] == ["a/core.py"]


SOURCE = """
import { a } from "b";
/** Options of a run. interface Fake {} */
export interface Options {
  /** How often; `;` and } are no end. */
  times?: number;
  name: "a{b" | 'c';
}
/**
 * Runs it.
 */
export declare function run(options: Options): Promise<void>;
declare const limit: number
export type Name = string | number;
declare namespace Deep {
  /** Inside. @deprecated */
  class Box<T> { get(): T; }
}
/** @internal */
export declare function hidden(): void;
"""


def told(text: str) -> list[Section]:
    return list(declarations(text, place="index.d.ts", prefix="tool"))


def test_each_declaration_has_its_comment() -> None:
    found = {one.name: one.signature for one in told(SOURCE)}
    names = ["tool.Options", "tool.run", "tool.limit", "tool.Name", "tool.Deep", "tool.Box"]
    assert list(found) == names
    run = "/**\n * Runs it.\n */\nexport declare function run(options: Options): Promise<void>;"
    assert found["tool.run"] == run
    assert found["tool.Options"].endswith("name: \"a{b\" | 'c';\n}")


def test_a_long_interface_is_cut_between_its_members() -> None:
    members = "".join(
        f"  /** Member {number} is told here. */\n  member{number}?: string;\n" for number in range(80)
    )
    found = [one.signature for one in told(f"export interface Big {{\n{members}}}")]
    assert len(found) > 2
    assert found[0].startswith("export interface Big")
    for number in range(80):
        (piece,) = [it for it in found if f"member{number}?" in it]
        assert f"Member {number} is" in piece


@pytest.mark.parametrize(
    "part",
    ["{", "}", "/**", "'", "`", "export ", "interface A {", "/** */", "declare module 'a' {", "(\n", ";"],
)
def test_what_repeats_itself_neither_raises_nor_takes_long(part: str) -> None:
    started = time.process_time()
    told(part * (100_000 // len(part)))
    assert time.process_time() - started < 10.0
