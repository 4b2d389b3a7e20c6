from pathlib import Path

import pytest

from tests.support.program import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")
