"""Public names of Python sources, read and never run."""

from textwrap import dedent

from kr.documents.python import SKIPPED, module_name, python_sections
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

        LIMIT = 3
        """How many."""
        '''
    )
    assert list(found) == ["tool", "tool.LIMIT", "tool.run", "tool.Box", "tool.Box.full"]
    assert found["tool.run"].signature == "def run(name: str, *, times: int=1) -> None"
    assert found["tool.Box"].signature == "class Box(Base)\n    def __init__(self, size)\n    size: int = 3"
    assert found["tool.Box.full"].signature.startswith("@property\ndef full")
    assert (found["tool.Box"].text, found["tool.LIMIT"].text) == ("Holds things.", "How many.")


def test_a_name_that_is_handed_on_is_told_by_its_public_path() -> None:
    found = read(
        pkg__slash____init__="from ._core import Option\nfrom .deep import *\n",
        pkg__slash___core='class Option:\n    """An option."""\n    def get(self):\n        """Get."""\n',
        pkg__slash__deep='def helper():\n    """Helps."""\n',
        pkg__slash___inner='def lost():\n    """Nobody hands it on."""\n',
    )
    assert {"pkg.Option", "pkg.Option.get", "pkg.helper", "pkg._inner.lost"} == found.keys()
    assert found["pkg._inner.lost"].is_secondary
    assert not found["pkg.Option"].is_secondary


def test_a_name_that_is_handed_on_twice_has_the_shorter_path() -> None:
    found = read(
        pkg__slash____init__="from .api import go\n",
        pkg__slash__api="from ._impl import go\n",
        pkg__slash___impl='def go():\n    """Go."""\n',
    )
    assert list(found) == ["pkg.go"]


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
    found = read(
        pkg__slash__v1__slash__main='def go():\n    """Go."""\n',
        pkg__slash__main='def go():\n    """Go."""\n',
    )
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


def test_a_long_docstring_is_several_sections_of_one_name() -> None:
    text = "\n\n    ".join(["word " * 80] * 5)
    sections = list(python_sections([("m.py", f'def f():\n    """{text}\n    """\n')]))
    assert {one.name for one in sections} == {"m.f"}
    assert len(sections) > 2


def test_tests_and_carried_packages_are_not_read() -> None:
    assert [
        place
        for place in ("a/tests/x.py", "a/_vendor/y.py", "a/test_z.py", "a/core.py")
        if not SKIPPED.search(place)
    ] == ["a/core.py"]


def test_the_name_of_a_module() -> None:
    assert [module_name(place) for place in ("a.py", "a/__init__.py", "a/b.pyi")] == ["a", "a", "a.b"]
