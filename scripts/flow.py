"""How many files of kr a request enters: what somebody has to read to follow it.

A file is entered where a function of it is called; importing it is none. ``errors``, ``models``, ``text`` and ``times`` hold
values and helpers and are not counted. Each flow runs in this process, with all modules imported, on a knowledge base in a temporary folder; a
miss asks a server on loopback. --files lists the files; --limits ends with status 1 where a flow enters too many.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from inspect import CO_OPTIMIZED
from io import StringIO, TextIOWrapper
from pathlib import Path
from types import FrameType
from typing import Any

import kr
from kr.cli.main import main as command_line
from kr.server.mcp import CALLS
from tests.support.forked import import_everything
from tests.support.mcp_servers import context7_server
from tests.support.program import Project, request

PACKAGE = Path(kr.__file__).parent
LEAVES = frozenset(("errors.py", "models.py", "text.py", "times.py"))
"""What is not counted: the modules of values and of helpers of a few lines."""
LIMITS = {
    "hit, command line": 9,
    "hit, MCP": 6,
    "candidates, MCP": 6,
    "miss, command line": 15,
    "miss, MCP": 15,
    "lesson, command line": 11,
}
LESSON = {
    "story_key": "3-1",
    "session_id": "s-1",
    "phase": "dev-execution",
    "lessons": [{"symptom": "v-for without a key reuses the wrong row", "fix": "give every v-for a key"}],
}


class Profile:
    """Which files of kr have a function that is called while ``watching``."""

    def __init__(self) -> None:
        self.files: set[str] = set()

    def __call__(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_flags & CO_OPTIMIZED:  # neither a module nor the body of a class
            path = Path(code.co_filename)
            if path.is_relative_to(PACKAGE):
                self.files.add(path.relative_to(PACKAGE).as_posix())

    @contextmanager
    def watching(self) -> Iterator[None]:
        threading.setprofile(self)
        sys.setprofile(self)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def counted(self) -> list[str]:
        return sorted(file for file in self.files if file not in LEAVES)


def by_command(document: dict[str, Any], *arguments: str) -> None:
    """Run a command as the shell does, with a document on standard input."""
    out, real = StringIO(), sys.stdin
    with tempfile.TemporaryFile("w+") as file, redirect_stdout(out), redirect_stderr(StringIO()):
        file.write(json.dumps(document))
        file.seek(0)
        sys.stdin = TextIOWrapper(file.buffer)
        try:
            status = command_line([*arguments, "--request", "-", "--format", "json"])
        finally:
            sys.stdin = real
    answer = json.loads(out.getvalue())
    if status != 0 or answer["status"] == "failure":
        raise SystemExit(f"{arguments}: {answer}")


def flows(project: Project) -> Iterator[tuple[str, Callable[[], object]]]:
    research = ("research",)
    project.research()
    yield "hit, command line", lambda: by_command(request(), *research)
    call = CALLS["research"]
    app = project.app()

    def ask(question: str, topic: str, expected: str, **more: str) -> None:
        given = {"framework": "vue", "framework_version": "3.5", "question": question, "topic": topic}
        answer = call(app, {**given, "tags": ["options"], **more})
        if answer["status"] != expected:
            raise SystemExit(f"{expected} was expected: {answer}")

    # The first call opens the database and imports an index; a server has done that long ago.
    hit = ("How do I make an option repeatable?", "repeatable options", "cache-hit")
    ask(*hit)
    yield "hit, MCP", lambda: ask(*hit)
    near = ("May options be repeated in a component?", "options of components", "candidates")
    yield "candidates, MCP", lambda: ask(*near)
    missed = request(topic="render functions", tags=["render"], question="What is a render function?")
    yield "miss, command line", lambda: by_command(missed, *research)
    other = ("How are plugins written?", "writing plugins", "success")
    yield "miss, MCP", lambda: ask(*other, if_unsure="research")
    yield "lesson, command line", lambda: by_command(LESSON, "lessons", "record")
    app.close()


@contextmanager
def sample_project() -> Iterator[Project]:
    """Make a project with a knowledge base, in which Context7 is a server on loopback."""
    with ExitStack() as opened:
        root = Path(opened.enter_context(tempfile.TemporaryDirectory())).resolve()
        subprocess.run(["git", "init", "-q", str(root)], check=True)
        server = opened.enter_context(context7_server())
        project = Project(root, env={"KR_SOURCES": "context7"})
        project.use_context7(server.url)
        environ, here = dict(os.environ), Path.cwd()
        os.environ.clear()
        os.environ.update(project.environ())
        os.chdir(root)
        try:
            yield project
        finally:
            os.chdir(here)
            os.environ.clear()
            os.environ.update(environ)


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--files", action="store_true")
    parser.add_argument("--limits", action="store_true")
    given = parser.parse_args()
    import_everything()
    too_many = False
    with sample_project() as project:
        for name, run in flows(project):
            profile = Profile()
            with profile.watching():
                run()
            files = profile.counted()
            too_many |= len(files) > LIMITS[name]
            print(f"{name:22} {len(files):3} files, at most {LIMITS[name]}")
            if given.files:
                print("".join(f"    {file}\n" for file in files), end="")
    return int(given.limits and too_many)


if __name__ == "__main__":
    sys.exit(main())
