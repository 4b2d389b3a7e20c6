from collections.abc import Iterator
from pathlib import Path

import pytest

from kr.store.engine import Store


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path


@pytest.fixture
def path(project: Path) -> Path:
    return project / ".kr" / "lessons" / "_lessons-learned.md"


@pytest.fixture
def store(project: Path) -> Iterator[Store]:
    with Store(None, project / ".kr", timeout=20.0) as opened:
        yield opened
