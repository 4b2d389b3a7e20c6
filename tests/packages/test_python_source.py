from hypothesis import given, settings
from hypothesis import strategies as st
from kr.packages.python_source import cython_outline, parse_options, parse_source

SOURCE = '''
"""The module."""
from typing import Annotated, overload

class Option(Parameter):
    """An option.

    :param multiple: accepted many times
    """

    def __init__(self, name: str, multiple: bool = False, *, very_long_argument_name: dict[str, int] = {"a": 1, "b, c": 2}) -> None:
        """Make one."""
        self.made = True
        """Whether it was made."""
        self.plain = 1

    limit: int = 3
    """How many."""

    #: How fast,
    #: in metres.
    speed = 4.5
    unit = "m"  #: Of the speed.

    @property
    def value(self) -> str:
        """The value."""

    def _private(self):
        """Not shown."""

class Lock:
    """A lock."""

class Row(NamedTuple):
    id: int
    name: str = ""

if True:
    def inside(a, /, b=1):
        """Inside."""
else:
    async def other():
        """Other."""

try:
    import fast
except ImportError:
    class Slow:
        """Used instead."""

def silent(cls, *args, key: int = 3, **rest): ...

@deprecated("no")
def documented(
    ge: Annotated[float | None, Doc("""Greater than or equal.

        Only for numbers.""")] = None,
    le: Annotated[int, Doc("Less.")] = 1,
) -> None:
    """Declared with annotations."""

later_doc = """Said later."""
inside.__doc__ = later_doc
Option = _remade(Option)
'''


def test_names_and_signatures() -> None:
    found = {d.name: d for d in parse_source(SOURCE.replace("Option = _remade(Option)\n", ""), "pkg.mod")}
    assert list(found) == [
        "pkg.mod",
        *(f"pkg.mod.Option{name}" for name in ("", ".made", ".limit", ".speed", ".unit", ".value")),
        *(f"pkg.mod.{name}" for name in ("Lock", "Row", "inside", "other", "Slow", "silent", "documented")),
    ]
    option = found["pkg.mod.Option"]
    assert option.docstring.endswith("Make one.")
    assert "    multiple: bool = False,\n" in option.signature
    assert "    very_long_argument_name: dict[str, int] = {'a': 1, 'b, c': 2},\n" in option.signature
    assert "self" not in option.signature
    assert found["pkg.mod.Option.value"].signature == "value: str"
    assert found["pkg.mod.Option.limit"].docstring == "How many."
    assert found["pkg.mod.Option.speed"].docstring == "How fast,\nin metres."
    assert found["pkg.mod.Option.unit"].docstring == "Of the speed."
    assert found["pkg.mod.Option.made"].docstring == "Whether it was made."
    assert "pkg.mod.Option.plain" not in found
    assert found["pkg.mod.other"].signature == "async def other()"
    assert [d.signature for d in parse_source(SOURCE, "m") if d.name == "m.inside"] == [
        "def inside(a, /, b=1)",
        "",
    ]
    assert found["pkg.mod.inside"].docstring == "Said later."


def test_what_has_no_text_shows_its_signature() -> None:
    found = {d.name: d for d in parse_source(SOURCE, "m")}
    assert found["m.silent"].signature == "def silent(cls, *args, key: int = 3, **rest)"
    assert found["m.silent"].docstring == ""
    assert found["m.Row"].signature == "class Row(NamedTuple):\n    id: int\n    name: str = ''"
    assert found["m.Slow"].docstring == "Used instead."


def test_a_class_without_arguments_has_no_signature() -> None:
    found = {d.name: d for d in parse_source(SOURCE, "m")}
    assert found["m.Lock"].signature == ""


def test_a_class_that_is_made_anew_keeps_its_text_alone() -> None:
    remade = next(d for d in parse_source(SOURCE, "m") if d.name == "m.Option")
    assert remade.signature == ""
    assert remade.docstring.startswith("An option.")


def test_a_line_that_the_package_fills_in_when_it_is_imported_is_left_out() -> None:
    source = 'def legend():\n    """Place it.\n\n    %(_legend_kw)s\n\n    It is 5%(about)s."""\n'
    (found,) = parse_source(source, "m")
    assert found.docstring == "Place it.\n\n\nIt is 5%(about)s."


def test_annotations_tell_about_parameters() -> None:
    found = next(d for d in parse_source(SOURCE, "m") if d.name == "m.documented")
    assert "Doc(" not in found.signature
    assert "ge: float | None = None" in found.signature
    assert found.more == (
        "**Parameters:**\n\n- `ge` (`float | None`): Greater than or equal.\n  \n  Only for numbers.\n- `le` (`int`): Less."
    )
    assert found.weight < 1


def test_overloads_of_a_stub_are_one() -> None:
    source = "\n".join(
        f"@overload\ndef load(x: {kind}) -> {kind}: ..." for kind in ("int", "str", "bytes", "float")
    )
    (found,) = parse_source(f"from typing import overload\n{source}\n", "m")
    assert found.signature == (
        "def load(x: str) -> str\ndef load(x: bytes) -> bytes\ndef load(x: float) -> float"
    )


CYTHON = '''
cdef public class _Tree(Base) [ type TreeType,
                               object Tree ]:
    """A tree.

    class NotThis:
        """
    cdef int depth

    @property
    def root(self):
        """Its root."""
        return self._root

    cpdef object find(self, const char* path not None, list rest=[1, 2], *, bint deep=False):
        """Finds \\
a node."""

    cdef int hidden(self) except -1:
        """Not shown."""

if DEBUG:
    def odd(a, (b, c)):
        """Odd."""

def late(int x): pass
'''


def test_a_cython_source_tells_its_classes_and_functions() -> None:
    found = parse_source(cython_outline(CYTHON), "m", kept=True)
    assert [(entry.name, entry.signature) for entry in found] == [
        ("m._Tree", ""),
        ("m._Tree.root", "root"),
        ("m._Tree.find", "def find(path, rest=[1, 2], *, deep=False)"),
        ("m.odd", "def odd(a)"),
        ("m.late", "def late(x)"),
    ]
    assert [entry.docstring.split("\n")[0] for entry in found[:3]] == [
        "A tree.",
        "Its root.",
        "Finds a node.",
    ]


@settings(deadline=None)
@given(st.text(alphabet="cdef class()[]:,=*'\"\n\\ @x", max_size=200))
def test_any_cython_is_taken(text: str) -> None:
    parse_source(cython_outline(text), "m")


def test_nothing_is_imported_or_run() -> None:
    source = 'raise SystemExit("run")\nimport nowhere\n\ndef f():\n    "Doc."'
    assert parse_source(source, "m")[0].docstring == "Doc."


def test_broken_sources_document_nothing() -> None:
    for source in ("def (", "\x00", "x = " + "(" * 500, "# -*- coding: nowhere -*-\n\xff"):
        assert parse_source(source, "m") == []
        assert parse_options(f"{source} help add_argument(", "m") == []


@settings(max_examples=100, deadline=None)
@given(st.text(max_size=300))
def test_any_text_is_taken(text: str) -> None:
    parse_source(text, "m")
    parse_options(text, "m")


def test_help_strings_tell_the_options() -> None:
    source = """
import argparse, click

@click.command()
@click.option("--beat", "-B", is_flag=True, default=False, help="Also run the scheduler." + " Not on Windows.")
@click.argument("name")
def worker(beat, name): ...

def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=4, help=_("How many."))
    parser.add_argument("file", help="no option")

def typed(force: bool = typer.Option(False, "--force/--no-force", help="Overwrite.")): ...
"""
    found = {d.name: d.docstring for d in parse_options(source, "m")}
    assert found == {
        "m.worker.options": "- `--beat`, `-B`: Also run the scheduler. Not on Windows. Default: `False`.",
        "m.main.options": "- `--jobs`: How many. Default: `4`.",
        "m.typed.options": "- `--force/--no-force`: Overwrite.",
    }


def test_a_private_class_is_told_under_the_public_name_that_it_is_given() -> None:
    source = "class _chord(Signature):\n    'A callback for a group of tasks.'\n    def __init__(self, header, body=None): pass\n\nchord = _chord\n"
    (found,) = parse_source(source, "canvas")
    assert (found.name, found.signature) == ("canvas.chord", "class chord(header, body=None)")
    assert "callback" in found.docstring


def test_a_class_that_keeps_its_text_in_an_attribute_is_told_by_it() -> None:
    source = 'class Timeout(Setting):\n    name = "timeout"\n    default = 30\n    desc = """\\\n        Workers silent for more than this many\n        seconds are killed.\n        """\n'
    (found,) = parse_source(source, "config")
    assert found.docstring == "Workers silent for more than this many\nseconds are killed."
    assert "default = 30" in found.signature


def test_what_a_private_base_documents_is_told_with_the_class_that_takes_it_over() -> None:
    source = """
from elsewhere import Option

class _Loading(Option):
    def joined(self, attribute, inner=None):
        "Load the attribute by a join."
    def lazy(self): "Load it late."

class Load(_Loading):
    "How attributes are loaded."
    def lazy(self): "Load it when it is asked for."

class Other(_Loading): "The first heir stands for all."
"""
    found = {one.name: one.docstring for one in parse_source(source, "m")}
    assert found == {
        "m.Load": "How attributes are loaded.",
        "m.Load.joined": "Load the attribute by a join.",
        "m.Load.lazy": "Load it when it is asked for.",
        "m.Other": "The first heir stands for all.",
    }


def test_properties_of_any_kind_are_told_as_such() -> None:
    source = """
class Request:
    @DictProperty('environ', 'files', read_only=True)
    def files(self):
        'The uploads.'
    @cached_property
    def form(self) -> Form:
        'The form.'
    @app.route('/')
    def index(self):
        'No property.'
"""
    found = {entry.name: entry.signature for entry in parse_source(source, "web")}
    assert found == {
        "web.Request": "class Request:\n    files\n    form: Form\n    def index(): ...",
        "web.Request.files": "files",
        "web.Request.form": "form: Form",
        "web.Request.index": "def index()",
    }


def test_what_a_class_is_made_with_is_told() -> None:
    (found,) = parse_source("class Options(TypedDict, total=False, metaclass=Meta):\n    mode: int\n", "lock")
    assert found.signature == "class Options(TypedDict, total=False):\n    mode: int"
