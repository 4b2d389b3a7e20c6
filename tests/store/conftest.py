from collections.abc import Iterator
from pathlib import Path

import pytest

from kr.store.engine import Store


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return tmp_path / "knowledge-base"


@pytest.fixture
def store(base: Path, database_url: str | None) -> Iterator[Store]:
    with Store(database_url, base, timeout=20.0) as opened:
        yield opened
