"""A reader who has gone has seen enough: what is only shown ends well."""

import os
import subprocess
import sys

import pytest

from tests.support.program import Project


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["entries", "--help"],
        ["completion", "bash"],
        ["stats"],
    ],
    ids=" ".join,
)
def test_a_closed_pipe_is_no_failure(project: Project, arguments: list[str]) -> None:
    if arguments == ["stats"]:  # which says so where there is no knowledge base
        assert project.run("init").returncode == 0
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "kr", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=writer,
            stderr=subprocess.PIPE,
            cwd=project.root,
            env=project.environ(),
            timeout=60,
            check=False,
        )
    finally:
        os.close(writer)
    told = [line for line in done.stderr.splitlines() if b"there is no knowledge base" not in line]
    assert (done.returncode, told) == (0, [])
