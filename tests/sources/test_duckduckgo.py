"""The provider DuckDuckGo, with a stand-in for the package that speaks to it."""

import importlib
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kr.errors import SourceFailure, SourceNotAsked, how_to_install
from kr.models import Query
from kr.sources.base import Ask
from kr.sources.web_search import WebSearch
from tests.support.web_servers import page, web_search, web_server

ASK = Ask(query=Query(framework="vue", framework_version="3", topic="t", tags=("t",), question="How?"))


def failure(source: WebSearch, timeout: float = 15.0) -> SourceFailure:
    with pytest.raises(SourceFailure) as caught:
        source.ask(ASK, timeout=timeout)
    return caught.value


def test_without_the_extra_the_reason_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ddgs", None)
    found = failure(web_search(provider="auto"))
    assert "no other provider is configured" in found.reason
    assert found.reason.endswith(f"needs the package ddgs. This installs it: {how_to_install('duckduckgo')}")
    assert isinstance(found, SourceNotAsked)


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    """Puts a package named ``ddgs`` in front of the real one; its search runs the given body."""

    def install(body: str) -> None:
        for name in [name for name in sys.modules if name.split(".")[0] == "ddgs"]:
            monkeypatch.delitem(sys.modules, name)
        package = tmp_path / "ddgs"
        package.mkdir()
        exceptions = "class DDGSException(Exception): ...\nclass TimeoutException(DDGSException): ...\n"
        (package / "exceptions.py").write_text(exceptions)
        (package / "__init__.py").write_text(
            "from ddgs.exceptions import *\n"
            "class DDGS:\n"
            "    def __init__(self, timeout=5): pass\n"
            "    def __enter__(self): return self\n"
            "    def __exit__(self, *_): pass\n"
            "    def text(self, query, max_results=10, backend='auto'):\n"
            + textwrap.indent(body, " " * 8)
            + "\n"
        )
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()

    yield install
    for name in [name for name in sys.modules if name.split(".")[0] == "ddgs"]:
        del sys.modules[name]


def test_duckduckgo_serves_those_who_configured_nothing(stand_in: Callable[[str], None]) -> None:
    with web_server({"/a": page("<title>A</title><p>words")}) as server:
        stand_in(f"assert backend == 'duckduckgo'\nreturn [{{'href': '{server.url}/a', 'title': query}}]")
        answer = web_search(provider="auto", allow_private_addresses=True).ask(ASK, timeout=15)
    assert answer.passages[0].title == "A"


@pytest.mark.parametrize(
    ("body", "reason", "is_fault"),
    [
        ("return []", "duckduckgo found nothing", False),
        ("raise DDGSException('secret\\n')", "duckduckgo: the search failed (DDGSException)", True),
        ("return [7]", "duckduckgo: the answer has no result with a web address", True),
    ],
)
def test_duckduckgo_that_fails_says_why(
    stand_in: Callable[[str], None], body: str, reason: str, is_fault: bool
) -> None:
    stand_in(body)
    found = failure(web_search(provider="duckduckgo"))
    assert (found.reason, found.is_fault) == (reason, is_fault)
