"""What holds for the whole suite: how thorough a run is, and which signals its children obey."""

from collections.abc import Iterator

import pytest

from tests.support.signals import default_in_children


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all", action="store_true", help="try what depends on chance as often as its marker `rounds` says"
    )


@pytest.fixture
def rounds(request: pytest.FixtureRequest) -> int:
    """How often a test tries what depends on chance: ``rounds(often, once)`` is ``often`` with ``--all``.

    Without it a run is short and the test still fails, in some runs, on what it is there for.
    """
    marker = request.node.get_closest_marker("rounds")
    assert marker is not None, "a test that uses `rounds` is marked with how many they are"
    often, briefly = (*marker.args, 1)[:2]
    return int(often if request.config.getoption("--all") else briefly)


@pytest.fixture(scope="session", autouse=True)
def _children_obey_signals() -> Iterator[None]:
    with default_in_children():
        yield
