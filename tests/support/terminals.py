"""The program at a terminal of its own."""

import json
import os
import pty
import subprocess
import sys
from collections.abc import Mapping

from tests.support.program import Project, request


def seen(project: Project, *arguments: str, more: Mapping[str, str]) -> str:
    """Run the program and return what its terminal shows. ``request.yaml`` lies in the project's folder."""
    (project.root / "request.yaml").write_text(json.dumps(request()))
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "kr", *arguments],
        cwd=project.root,
        env=project.environ(**more),
        stdin=subprocess.DEVNULL,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    shown = b""
    try:
        while chunk := os.read(leader, 65536):
            shown += chunk
    except OSError:  # how a pseudo-terminal says that the other side has gone
        pass
    finally:
        os.close(leader)
        process.wait(60)
    return shown.decode()
