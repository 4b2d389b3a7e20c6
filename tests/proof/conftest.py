from collections.abc import Iterator
from pathlib import Path

import pytest

from kr.store.engine import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(None, tmp_path / "knowledge-base", timeout=20.0) as opened:
        yield opened
