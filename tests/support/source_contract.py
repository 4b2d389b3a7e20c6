"""What every research source must stand, and the sources that are put to it.

A source joins by adding a ``Subject`` to ``SUBJECTS``: how to build it for a base URL, and how to serve each
``Behaviour``. ``tests/sources/test_contract.py`` runs all of them.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from enum import Enum
from functools import partial

from kr.models import Learned, Query
from kr.settings.model import Server
from kr.sources.base import Ask, Source
from kr.sources.context7 import Context7
from kr.sources.mcp_tools import DeepWiki
from tests.support import web_servers
from tests.support.mcp_servers import Raw, Scenario, context7_server, deepwiki_server

SECRET = "sk-never-shown-0123456789"
"""Sent to every server where the source can send one, and echoed by the bad ones."""

TIMEOUT = 1.0
"""Seconds that a source gets in a behaviour that never answers."""


class Outcome(Enum):
    """How a source must end."""

    ANSWER = "an answer"
    FAULT = "a failure that counts for the circuit breaker"
    UNKNOWN = "a failure of a working source that does not know"
    TIMEOUT = "a timeout"


class Behaviour(Enum):
    """What the server does; the value is the outcome that is asked for."""

    SUCCESS = (1, Outcome.ANSWER)
    EMPTY = (2, Outcome.FAULT)
    ERROR_AS_TEXT = (3, Outcome.FAULT)
    UNKNOWN = (4, Outcome.UNKNOWN)
    REFUSED = (5, Outcome.FAULT)
    NO_SUCH_HOST = (6, Outcome.FAULT)
    SLOW = (7, Outcome.TIMEOUT)
    GARBAGE = (8, Outcome.FAULT)
    CUT = (10, Outcome.FAULT)
    OVERSIZE = (11, Outcome.FAULT)
    RATE_LIMITED = (12, Outcome.FAULT)
    """429 with ``Retry-After: 7``."""
    UNAUTHORIZED = (13, Outcome.FAULT)
    SERVER_ERROR = (15, Outcome.FAULT)
    REDIRECT_AWAY = (17, Outcome.FAULT)
    """To another origin."""

    @property
    def outcome(self) -> Outcome:
        return self.value[1]


@dataclass(frozen=True)
class Subject:
    """A source under test. ``serve`` yields the base URL of a server that behaves so."""

    name: str
    source: Callable[[str], Source]
    serve: Mapping[Behaviour, Callable[[], AbstractContextManager[str]]]
    ask: Ask = field(
        default_factory=lambda: Ask(
            query=Query(
                framework="vue",
                framework_version="3.x",
                topic="repeatable options",
                tags=("options",),
                question="How do I make an option repeatable?",
            ),
            known=Learned(repository="vuejs/core"),
        )
    )


_RAW: Mapping[Behaviour, Raw] = {
    Behaviour.SLOW: Raw(delay=30.0),
    Behaviour.GARBAGE: Raw(headers={"content-type": "application/json"}, body=f'{{"{SECRET}": '),
    Behaviour.CUT: Raw(headers={"content-type": "application/json"}, body='{"jsonrpc"', cut=True),
    Behaviour.OVERSIZE: Raw(
        headers={"content-type": "application/json"}, body=" " * 65536, repeat=20, when="call"
    ),
    Behaviour.RATE_LIMITED: Raw(status=429, headers={"retry-after": "7"}, body=SECRET),
    Behaviour.UNAUTHORIZED: Raw(status=401, body=SECRET),
    Behaviour.SERVER_ERROR: Raw(status=500, body=SECRET),
    Behaviour.REDIRECT_AWAY: Raw(status=307, headers={"location": f"http://localhost:1/mcp?key={SECRET}"}),
}


@contextmanager
def _serve(kind: str, scenario: Scenario) -> Iterator[str]:
    with (context7_server if kind == "context7" else deepwiki_server)(scenario) as server:
        yield server.url


@contextmanager
def _nobody(url: str | None = None) -> Iterator[str]:
    yield url or web_servers.refused_url()


def _mcp_behaviours(
    kind: str, texts: Mapping[Behaviour, Scenario]
) -> dict[Behaviour, Callable[[], AbstractContextManager[str]]]:
    served: dict[Behaviour, Callable[[], AbstractContextManager[str]]] = {
        behaviour: partial(_serve, kind, Scenario(raw=raw)) for behaviour, raw in _RAW.items()
    }
    served.update({behaviour: partial(_serve, kind, scenario) for behaviour, scenario in texts.items()})
    served[Behaviour.REFUSED] = _nobody
    served[Behaviour.NO_SUCH_HOST] = partial(_nobody, "http://kr-test.invalid/mcp")
    return served


def _web_behaviours() -> dict[Behaviour, Callable[[], AbstractContextManager[str]]]:
    replies = {behaviour: _as_reply(raw) for behaviour, raw in _RAW.items()}
    replies[Behaviour.EMPTY] = web_servers.page("", "application/json")
    replies[Behaviour.ERROR_AS_TEXT] = web_servers.as_json({"error": SECRET})
    replies[Behaviour.UNKNOWN] = web_servers.as_json({"web": {"results": []}})
    replies[Behaviour.OVERSIZE] = web_servers.page(" " * 65536, "application/json", repeat=40)
    served: dict[Behaviour, Callable[[], AbstractContextManager[str]]] = {
        behaviour: partial(_search, reply) for behaviour, reply in replies.items()
    }
    served[Behaviour.SUCCESS] = _search
    served[Behaviour.REFUSED] = _nobody
    served[Behaviour.NO_SUCH_HOST] = partial(_nobody, "http://kr-test.invalid")
    return served


def _as_reply(raw: Raw) -> web_servers.Reply:
    return web_servers.Reply(
        status=raw.status, headers=raw.headers, body=raw.body.encode(), delay=raw.delay, cut=raw.cut
    )


@contextmanager
def _search(reply: web_servers.Reply | None = None) -> Iterator[str]:
    pages = {"/options": web_servers.page("<main><h1>Options</h1><p>Give multiple=True.</p></main>")}
    with web_servers.search_server(pages, search=reply) as server:
        yield server.url


def _server(url: str) -> Server:
    return Server(url=url, headers={"Authorization": f"Bearer {SECRET}"})


SUBJECTS: list[Subject] = [
    Subject(
        name="context7",
        source=lambda url: Context7(_server(url)),
        serve=_mcp_behaviours(
            "context7",
            {
                Behaviour.SUCCESS: Scenario(),
                Behaviour.EMPTY: Scenario(docs=[""]),
                Behaviour.ERROR_AS_TEXT: Scenario(
                    docs=[f"An error occurred with {SECRET}\nwhile processing"]
                ),
                Behaviour.UNKNOWN: Scenario(
                    resolve=['No libraries found for "vue". Try a different search term.']
                ),
            },
        ),
    ),
    Subject(
        name="deepwiki",
        source=lambda url: DeepWiki(_server(url)),
        serve=_mcp_behaviours(
            "deepwiki",
            {
                Behaviour.SUCCESS: Scenario(legacy=True),
                Behaviour.EMPTY: Scenario(wiki=[""]),
                Behaviour.ERROR_AS_TEXT: Scenario(
                    wiki=[f"Error processing question: {SECRET}\nis not valid"]
                ),
                Behaviour.UNKNOWN: Scenario(
                    wiki=[
                        "Error processing question: Repository not found. Visit https://deepwiki.com to index it."
                    ]
                ),
            },
        ),
    ),
    Subject(
        name="web_search",
        source=lambda url: web_servers.web_search(
            provider="brave", url=url, api_key=SECRET, allow_private_addresses=True
        ),
        serve=_web_behaviours(),
    ),
]
