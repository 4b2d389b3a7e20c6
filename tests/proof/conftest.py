from collections.abc import Iterator
from pathlib import Path

import pytest

from kr.store.engine import Store


@pytest.fixture
def store(tmp_path: Path, database_url: str | None) -> Iterator[Store]:
    with Store(database_url, tmp_path / "knowledge-base", timeout=20.0) as opened:
        yield opened
