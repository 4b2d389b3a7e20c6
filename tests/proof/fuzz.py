"""Whatever comes in: an answer or a clear error, never a traceback, a hang, or more memory than there is for it.

``python -m tests.proof.fuzz --minutes 20`` changes samples of what strangers send, and gives each to the door where it comes in; it
prints a table, and ends with 1 at the first that was not taken well. See docs/reliability.md.
"""

import argparse
import io
import json
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from unittest.mock import patch

from kr.documents import text as documents
from kr.documents.code import declarations, python_sections
from kr.documents.text import to_markdown
from kr.errors import KrError
from kr.server.mcp import CALLS
from tests.support.dependency_files import DEPENDENCY_FILES
from tests.support.lessons import record_data
from tests.support.program import Project, request
from tests.support.stores import ROOT

SLOWEST = 10
"""Seconds that one input may take."""
MOST_MEMORY = 300
"""MiB."""
_DATA = ROOT / "tests" / "data"
_SIGNS = [
    b"\0",
    b"\r\n",
    b"\n",
    b"\n\n---\n",
    b"\t",
    b"\xff",
    b"\xed\xa0\x80",
    b"\x1b[31m",
    b"```\n",
    b"- [2026-02-30] [x] y",
]
_WORDS = [
    *b"null true -1 0 1e309 '' {} [] [[ &b *b !!python/object:os.system 2026-11-27 /etc/passwd ${HOME}".split(),
    *b"%s ` <script> </ <!-- /** */ # ' \" \\ {a:*b}".split(),
    *(text.encode() for text in ("\u202e", "\u200b", "中文", "9" * 40, "../" * 3, "a" * 5000, " " * 3000)),
    *(bracket * 200 for bracket in (b"[", b"(", b"{")),
    *_SIGNS,
]


def mutated(chance: random.Random, samples: Sequence[bytes]) -> bytes:
    """Return one of the samples with some pieces taken out, put in, doubled, replaced, or of another one."""
    data = bytearray(chance.choice(samples))
    for _ in range(chance.choice((0, 1, 1, 2, 3, 8))):
        start = chance.randint(0, len(data))
        end = min(len(data), start + chance.choice((0, 1, 2, 8, 40, 300)))
        other = chance.choice(samples)
        at = chance.randint(0, len(other))
        piece = (
            b"",
            bytes(data[start:end]) * 2,
            chance.choice(_WORDS),
            bytes([chance.randrange(256)]),
            other[at : at + 60],
        )
        data[start:end] = chance.choice(piece)
    return bytes(data)


@dataclass(frozen=True, slots=True)
class Door:
    """A way in: samples of what comes, and what takes it in a project."""

    samples: Sequence[bytes]
    take: Callable[[Project, bytes], object]


def program(*command: str, file: str = "") -> Callable[[Project, bytes], object]:
    """Return what runs a command in this process, with the input on standard input, or in a ``file`` of the project."""

    def take(project: Project, data: bytes) -> int:
        from kr.cli.main import main

        path = project.root / file
        if file:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        with (
            chdir(project.root),
            streams(data) as (out, err),
            patch.dict("os.environ", project.environ(), clear=True),
        ):
            status = main([*command, "--format", "json", "--kb", str(project.base)])
        if file:
            path.unlink()
        said = err.getvalue()
        assert "Traceback" not in said, said
        assert "This is a bug in kr" not in said, said
        assert status in {0, 1, 2}, (status, said)
        assert not out.getvalue() or json.loads(out.getvalue()) is not None
        return status

    return take


@contextmanager
def streams(data: bytes) -> Iterator[tuple[io.StringIO, io.StringIO]]:
    """Replace the standard streams; output is text."""
    kept = sys.stdin, sys.stdout, sys.stderr
    out, err = io.StringIO(), io.StringIO()
    sys.stdin, sys.stdout, sys.stderr = io.TextIOWrapper(io.BytesIO(data)), out, err
    try:
        yield out, err
    finally:
        sys.stdin, sys.stdout, sys.stderr = kept


def tool(project: Project, data: bytes) -> None:
    """Call a tool of MCP with arguments that are whatever JSON is."""
    with suppress(ValueError, RecursionError):
        given = json.loads(data)
        if isinstance(given, Mapping):
            with project.app() as app, suppress(KrError):
                for name, call in CALLS.items():
                    if name == given.get("tool", name):
                        call(app, {**given})


def _text(read: Callable[[str], object]) -> Callable[[Project, bytes], object]:
    return lambda _, data: read(data.decode(errors="replace"))


def _json(*documents: object) -> list[bytes]:
    return [json.dumps(it).encode() for it in documents]


def _files(*patterns: str) -> list[bytes]:
    return [
        path.read_bytes()[:20_000]
        for pattern in patterns
        for path in sorted(_DATA.glob(pattern))
        if path.is_file()
    ]


_FINDING = {
    "framework": "vue",
    "question": "How do slots work?",
    "answer": "Use `<slot>`.",
    "session_id": "a",
}
_FINDING |= {"code": "<slot/>", "verified_by": "npm test"}
_LESSONS = b"# Lessons Learned\n\n- [2026-02-07] [dev-execution, vue] Row height must be set: set it. Ref: src/a.vue\n- [2026-02-08] [story-review] Two. Ref: b\n"
_PAGE = b"<html><head><title>T</title></head><body><main><h1>A</h1><p>b <a href='/c'>d</a><pre class='language-js'><code>x = 1</code></pre><table><tr><td>1</td></tr></table><ul><li>e</ul></main></body></html>"
_TYPES = b'/** Doc. */\nexport declare class A<T> extends B {\n  /** m */ m(a: string): { b: `x${string}` };\n}\nexport namespace N { const c: number; }\ndeclare module "m" { export = A; }\n'
_HOOKS = [
    b'{"hook_event_name": "SubagentStop", "session_id": "s", "agent_type": "dev", "last_assistant_message": "```yaml\\nstatus: failure\\n```"}',
    b'{"hook_event_name": "PostToolUseFailure", "session_id": "s", "tool_name": "Bash", "error": "ImportError: cannot import x"}',
    b'{"hook_event_name": "SessionStart", "session_id": "s", "cwd": "/", "prompt": "vue slots"}',
]
_CONFIGURATION = (
    b"knowledge_research: {max_entries: 5, sources: [context7, {name: a, folder: docs}], aliases: {a: b}}\n"
)
_INJECT = {
    "mode": "lessons-inject",
    "story_key": "1-1",
    "session_id": "s",
    "lessons_inject": {"phase": "dev-execution"},
}
_CALL = {
    **_FINDING,
    "id": "vue-slots-work",
    "outcome": "worked",
    "query": "slots",
    "lesson": {"symptom": "a", "fix": "b"},
}
_LESSONS_FILE = ".kr/lessons/_lessons-learned.md"


def _requests(*command: str) -> Callable[[Project, bytes], object]:
    return program(*command, "--request", "-")


DOORS: dict[str, Door] = {
    "request": Door(_json(request(), request(config_overrides={"max_calls": 0})), _requests("research")),
    "finding": Door(_json(_FINDING, {**_FINDING, "entry": "vue-slots-work"}), _requests("save")),
    "record": Door(
        _json(record_data(), record_data(lessons=[{"symptom": "a b", "fix": "c d"}])),
        _requests("lessons", "record"),
    ),
    "inject": Door(_json(_INJECT), _requests("lessons", "inject")),
    "hook": Door(_HOOKS, program("hook")),
    "lessons file": Door(
        [_LESSONS], program("lessons", "inject", "--phase", "dev-execution", file=_LESSONS_FILE)
    ),
    "import": Door(_files("exported/*.yaml"), program("import-yaml", "given.yaml", file="given.yaml")),
    "configuration": Door([_CONFIGURATION], program("stats", "--config", "given.yaml", file="given.yaml")),
    "template": Door(
        [(ROOT / "kr/workflows/templates/deployment.md").read_bytes()],
        program("workflow", "validate", "./given.md", file="given.md"),
    ),
    "page": Door([_PAGE], _text(to_markdown)),
    "document": Door(
        _files("exported/frameworks/*/*.md"),
        _text(lambda text: [*documents.sections(text, place="a.md", title="a")]),
    ),
    "declarations": Door([_TYPES], _text(lambda text: [*declarations(text, place="a.d.ts", prefix="a")])),
    "module": Door(
        [Path(documents.__file__).read_bytes()[:6000]],
        _text(lambda text: [*python_sections([("a/b.py", text)])]),
    ),
    "tool": Door(_json(*({"tool": name, **_CALL} for name in CALLS)), tool),
    **{
        name: Door(_files(f"projects/**/{name}") or [b""], program("versions", "--all", file=name))
        for name in DEPENDENCY_FILES
    },
}


def try_once(project: Project, name: str, data: bytes) -> None:
    """Give an input to a door. Raises what should not happen."""
    door = DOORS[name]
    with suppress(KrError):
        door.take(project, data)


def _late(_number: int, _frame: FrameType | None) -> None:
    raise TimeoutError(f"took more than {SLOWEST} s")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=1)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    signal.signal(signal.SIGALRM, _late)
    counts, slowest = dict.fromkeys(DOORS, 0), dict.fromkeys(DOORS, 0.0)
    until, number = time.monotonic() + 60 * given.minutes, given.seed
    with tempfile.TemporaryDirectory(prefix="kr-") as place:
        project = Project(Path(place))
        while time.monotonic() < until:
            for name, door in DOORS.items():
                number += 1
                data, began = mutated(random.Random(number), door.samples), time.process_time()
                signal.alarm(SLOWEST)
                try:
                    try_once(project, name, data)
                except BaseException:
                    sys.stderr.write(f"{name}, seed {number}: {data!r}\n")
                    raise
                finally:
                    signal.alarm(0)
                counts[name] += 1
                slowest[name] = max(slowest[name], time.process_time() - began)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    sys.stdout.write("| door | inputs | slowest, ms of CPU |\n|---|---|---|\n")
    sys.stdout.writelines(f"| {name} | {counts[name]} | {1000 * slowest[name]:.0f} |\n" for name in DOORS)
    sys.stdout.write(f"{sum(counts.values())} inputs; at most {memory:.0f} MiB\n")
    return int(memory > MOST_MEMORY)


if __name__ == "__main__":
    sys.exit(main())
