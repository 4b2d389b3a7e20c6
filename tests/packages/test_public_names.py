import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kr.packages.public_names import PublicNames

INITS = {
    "attr": "from ._next_gen import define, field as field\nfrom ._make import Factory, _Nothing\n",
    "attrs": "from attr import define, field\n__all__ = ['define', 'field']\n",
    "log": "from ._logger import Logger as _Logger\n\nlogger = _Logger(core=1)\n",
    "frames.core": "if True:\n    from .frame import Frame\ntry:\n    from ._fast import go\nexcept ImportError:\n    from ._slow import go\n",
    "frames": "from frames.core import Frame\nfrom web.requests import Request as Request\nfrom web.later import Deferred\nfrom . import (broken\n",
}
OTHERS = {
    "attrs.validators": "from attr.validators import *\n",
    "attrs.more": "from ._own import mine\nfrom attr._fast import go, other\n__all__ = ['go', 'mine']\n",
}
INITS["frames"] = INITS["frames"].rpartition("from .")[0]


@pytest.mark.parametrize(
    ("path", "module", "shown", "exported"),
    [
        ("attr._next_gen.field", "attr._next_gen", "attrs.field", True),
        ("attr._make.Factory.takes_self", "attr._make", "attr.Factory.takes_self", True),
        ("attr.validators.in_", "attr.validators", "attrs.validators.in_", True),
        ("attr._fast.go", "attr._fast", "attrs.more.go", True),
        ("attrs._own.mine", "attrs._own", "attrs.more.mine", True),
        ("attr._fast.other", "attr._fast", "other", False),
        ("attr._make._Nothing", "attr._make", "_Nothing", False),
        ("log._logger.Logger.add", "log._logger", "log.logger.add", True),
        ("frames.core.frame.Frame.merge", "frames.core.frame", "frames.Frame.merge", True),
        ("frames.core._slow.go", "frames.core._slow", "frames.core.go", True),
        ("web.requests.Request", "web.requests", "frames.Request", True),
        ("web.later.Deferred", "web.later", "web.later.Deferred", False),  # used, not handed on
        ("plain.module.Thing", "plain.module", "plain.module.Thing", False),
        ("plain.module", "plain.module", "plain.module", False),
    ],
)
def test_names_are_shown_as_users_import_them(path: str, module: str, shown: str, exported: bool) -> None:
    names = PublicNames("attrs", INITS, OTHERS)
    found = names.named(path, module)
    assert (found.path, found.is_exported) == (shown, exported)


def test_what_a_class_takes_over_is_shown_as_its_own() -> None:
    names = PublicNames("frames", INITS)
    names.add_module("class NDFrame(Base):\n    pass\n", "frames.core.generic")
    names.add_module("class Frame(NDFrame, OpsMixin):\n    pass\n", "frames.core.frame")
    assert (
        names.named("frames.core.generic.NDFrame.to_csv", "frames.core.generic").path == "frames.Frame.to_csv"
    )
    assert names.named("frames.core.base.Base.size", "frames.core.base").path == "frames.Frame.size"
    assert (
        names.named("frames.core.other.Other.size", "frames.core.other").path
        == "frames.core.other.Other.size"
    )


def test_names_that_a_module_only_hands_on_are_followed() -> None:
    names = PublicNames("web", {"web": "from .client import Connector\n"})
    names.add_module("from .connector import (\n    Base,\n    Connector,\n)\n", "web.client")
    assert names.named("web.connector.Connector.close", "web.connector").path == "web.Connector.close"
    assert names.named("web.connector.Base", "web.connector").path == "web.connector.Base"


def test_a_module_offers_what_it_imports_as_itself() -> None:
    """PEP 484: ``import Y as Y`` hands on, ``import Y as Z`` uses."""
    source = "from star.replies import Streaming as Streaming\nfrom star.replies import Plain as Bare\n"
    names = PublicNames("web", {"web": "from .app import App\n"}, {"web.replies": source})
    found = names.named("star.replies.Streaming", "star.replies")
    assert (found.path, found.is_exported) == ("web.replies.Streaming", True)
    assert not names.named("star.replies.Plain", "star.replies").is_exported
    assert found.weight < names.named("web.app.App", "web.app").weight


def test_what_is_offered_stands_above_what_is_kept() -> None:
    names = PublicNames("attrs", INITS)
    weights = [
        names.named(path, path.rpartition(".")[0]).weight
        for path in ("attr._next_gen.field", "attr.plain.thing", "attr._legacy.thing")
    ]
    assert weights == sorted(weights, reverse=True)
    assert len(set(weights)) == 3


def test_a_package_without_exports_is_left_as_it_is() -> None:
    names = PublicNames("rich", {"rich": "not (python"})
    assert names.named("rich.table.Table", "rich.table").path == "rich.table.Table"


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from("abc"), st.sampled_from("abc*")), max_size=12)
)
def test_imports_in_a_circle_end(imports: list[tuple[str, str, str]]) -> None:
    inits = {one: f"from {other} import {name}\n" for one, other, name in imports}
    for one in "abc":
        assert PublicNames("a", inits).named(f"{one}.a", one).path.endswith(".a")
