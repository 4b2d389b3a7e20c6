"""What holds for the whole suite: how thorough a run is, and which signals its children obey."""

import os
import signal
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

from tests.support.postgresql import HOW_TO_GET_IT, Databases, started

# On a machine under load an example, and even making its data, takes as long as it takes.
# Without --all a property is tried on fewer examples.
for _name, _examples in {"quick": 25, "all": 150}.items():
    settings.register_profile(
        _name, max_examples=_examples, deadline=None, suppress_health_check=[HealthCheck.too_slow]
    )
# What only asks whether a test fails has no use for the smallest example that makes it fail.
settings.register_profile(
    "no-shrinking", settings.get_profile("quick"), phases=set(Phase) - {Phase.shrink, Phase.explain}
)
settings.load_profile("quick")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help="try as much as the marker `effort` says, not the least"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Take hypothesis' profile before a test is decorated with its settings."""
    if config.getoption("--all"):
        settings.load_profile("all")


@pytest.fixture
def effort(request: pytest.FixtureRequest) -> int:
    """How often, long or much a test tries: ``effort(most, least=1)``, the most with ``--all``.

    With the least a run is quick, and what the test is there for still makes it fail, if not in each run.
    """
    marker = request.node.get_closest_marker("effort")
    assert marker is not None, "a test that uses `effort` is marked with how much that is"
    most, least = (*marker.args, 1)[:2]
    return int(most if request.config.getoption("--all") else least)


@pytest.fixture(scope="session", autouse=True)
def _children_obey_signals() -> Iterator[None]:
    """Let programs end of the signals that a shell's background job, ``nohup`` and service managers have ignored.

    A new program inherits an ignored signal, but has the default for one that is handled (POSIX, exec).
    """
    ending = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM)
    ignored = [number for number in ending if signal.getsignal(number) is signal.SIG_IGN]
    for number in ignored:
        signal.signal(number, lambda *_: None)
    yield
    for number in ignored:
        signal.signal(number, signal.SIG_IGN)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Databases]:
    """Databases on a server that this run started, or that KR_TEST_POSTGRESQL names."""
    if url := os.environ.get("KR_TEST_POSTGRESQL"):
        yield Databases(url)
        return
    with started() as server:
        if server is None:
            pytest.skip(HOW_TO_GET_IT)
        yield Databases(server.url)


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str | None:
    """Run a test on both databases: what it starts finds the URL in KR_DATABASE_URL; None for ``kr.db`` in the knowledge base."""
    if request.param == "sqlite":
        return None
    databases: Databases = request.getfixturevalue("postgresql")
    url = databases.clean()
    monkeypatch.setenv("KR_DATABASE_URL", url)
    return url
