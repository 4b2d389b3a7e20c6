"""Writers, readers and checkpointers at once, for seconds: ``tests.proof.wal_load`` does it for as long as one likes."""

from pathlib import Path

import pytest

from tests.proof.wal_load import play


@pytest.mark.processes
@pytest.mark.timeout(600)
@pytest.mark.effort(60, 2)
def test_a_checkpoint_beside_a_commit_corrupts_nothing(tmp_path: Path, effort: int) -> None:
    result = play(tmp_path, effort)
    assert (result["integrity_check"], result["errors"]) == (["ok"], {})
    assert min(result["done"].values()) > 0
