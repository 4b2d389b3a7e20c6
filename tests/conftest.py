from collections.abc import Iterator

import pytest

from tests.support.signals import default_in_children


@pytest.fixture(scope="session", autouse=True)
def _children_obey_signals() -> Iterator[None]:
    with default_in_children():
        yield
