"""The seam itself: server processes, signals, redirects, limits."""

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.errors import SourceFailure, SourceTimeout
from kr.settings.model import Server
from kr.sources.mcp_client import (
    MAX_TEXT,
    McpSession,
    ToolText,
    converse,
    secrets_of,
    without_secrets,
)
from kr.sources.network import THREAD
from tests.support.mcp_servers import LIBRARIES, Raw, Scenario, context7_server, stdio_command

ROOT = Path(__file__).parents[2]

INTERRUPTED = """
import asyncio, os, signal, sys
from kr.sources.mcp_client import converse
from kr.settings.model import Server

class Stop(Exception):
    pass

def stop(number, frame):
    raise Stop

signal.signal(signal.SIGTERM, stop)
server = Server(url=sys.argv[2]) if sys.argv[1] == "url" else Server(command="/bin/sh", args=("-c", sys.argv[2]))
print("asking", flush=True)
try:
    converse(server, lambda session: None, timeout=60)
except (Stop, KeyboardInterrupt) as caught:
    print(type(caught).__name__, flush=True)
"""


async def resolve(session: McpSession) -> str:
    return (await session.call("resolve-library-id", {"query": "q", "libraryName": "vue"})).text


def shell(script: str, *args: str, **more: str) -> Server:
    return Server(command="/bin/sh", args=("-c", script, *args), env=more)


def fails(server: Server, *, timeout: float = 20.0) -> SourceFailure:
    with pytest.raises(SourceFailure) as caught:
        converse(server, resolve, timeout=timeout)
    return caught.value


def is_alive(pid: int) -> bool:
    """A zombie that nobody reaps is dead all the same."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_for_pids(file: Path, count: int) -> list[int]:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        if file.exists() and len(pids := file.read_text().split()) >= count:
            return [int(pid) for pid in pids]
        time.sleep(0.01)
    raise AssertionError("the server did not start")


def wait_for_end(pids: list[int]) -> None:
    deadline = time.monotonic() + 20
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline, "a process was left behind"
        time.sleep(0.01)


def children() -> set[str]:
    pids = Path(f"/proc/self/task/{threading.get_native_id()}/children").read_text().split()
    return {pid for pid in pids if b"mcp_host.py\0http" not in Path(f"/proc/{pid}/cmdline").read_bytes()}


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = children()
    yield
    assert not [thread for thread in threading.enumerate() if thread.name == THREAD]
    assert children() <= before


# -- server processes


def test_a_server_process_answers_and_is_gone_afterwards() -> None:
    command, args = stdio_command("context7", Scenario())
    assert converse(Server(command=command, args=args), resolve, timeout=30) == LIBRARIES


def test_a_server_that_ends_is_quoted_without_its_secrets(capfd: pytest.CaptureFixture[str]) -> None:
    failure = fails(shell('echo "first"; echo "bad key $KEY\033[0m" >&2; exit 3', KEY="sk-12345"))
    assert failure.reason == 'the server ended without an answer; it says "bad key ***"'
    assert capfd.readouterr() == ("", "")


def test_a_server_gets_its_own_environment_and_not_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KR_SECRET_OF_OURS", "visible")
    reason = fails(shell('echo "[$KR_SECRET_OF_OURS][$OWN]" >&2', OWN="yes")).reason
    assert reason.endswith('; it says "[][yes]"')


@pytest.mark.processes
@pytest.mark.parametrize("trap", ["", "trap '' TERM; "])
def test_a_silent_server_and_its_children_are_stopped(tmp_path: Path, trap: str) -> None:
    file = tmp_path / "pids"
    started = time.monotonic()
    server = shell(f'{trap}sleep 300 & echo $$ $! > "{file}"; wait; sleep 300')
    with pytest.raises(SourceTimeout):
        converse(server, resolve, timeout=5)
    assert time.monotonic() - started < 25
    wait_for_end(wait_for_pids(file, 2))


# -- interruptions


@pytest.mark.processes
@pytest.mark.parametrize(("number", "name"), [(signal.SIGINT, "KeyboardInterrupt"), (signal.SIGTERM, "Stop")])
@pytest.mark.parametrize("kind", ["url", "command"])
def test_an_interruption_ends_it_at_once(tmp_path: Path, kind: str, number: int, name: str) -> None:
    file = tmp_path / "pids"
    with context7_server(Scenario(raw=Raw(delay=60.0))) as stand_in:
        target = stand_in.url if kind == "url" else f'sleep 300 & echo $$ $! > "{file}"; wait'
        with subprocess.Popen(
            [sys.executable, "-W", "error", "-c", INTERRUPTED, kind, target],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        ) as process:
            pids = wait_for_pids(file, 2) if kind == "command" else []
            while kind == "url" and not stand_in.requests():
                time.sleep(0.02)
            sent = time.monotonic()
            process.send_signal(number)
            try:
                output, errors = process.communicate(timeout=15)
            except subprocess.TimeoutExpired:  # a finalizer that ran just then swallowed it, as Python's do
                sent = time.monotonic()
                process.send_signal(number)
                output, errors = process.communicate(timeout=20)
    assert time.monotonic() - sent < 15
    assert output == f"asking\n{name}\n"
    assert not errors or "Exception ignored" in errors
    wait_for_end(pids)


# -- HTTP


def test_a_redirect_to_another_origin_is_not_followed() -> None:
    with context7_server() as other:
        elsewhere = other.url.replace("127.0.0.1", "localhost") + "?key=hidden"
        with context7_server(Scenario(raw=Raw(status=307, headers={"location": elsewhere}))) as server:
            failure = fails(Server(url=server.url, headers={"Authorization": "Bearer secret-1"}))
        assert other.requests() == []
    assert failure.reason == "HTTP 307 Temporary Redirect, a redirect to localhost that is not followed"


def test_a_redirect_within_the_origin_is_followed() -> None:
    with context7_server() as other:
        raw = Raw(status=307, headers={"location": other.url})
        with context7_server(Scenario(raw=raw)) as server:
            assert converse(Server(url=server.url), resolve, timeout=20) == LIBRARIES


def test_metadata_addresses_are_refused() -> None:
    assert "metadata address" in fails(Server(url="http://[::ffff:169.254.169.254]/")).reason


@pytest.mark.parametrize(
    "server",
    [
        Server(url="ftp://user:hidden@example.org/mcp"),
        Server(url="http://[::1/hidden"),
        Server(url="hidden"),
        Server(url="http://127.0.0.1:1/", headers={"X": "hidden—é"}),
        Server(url="http://127.0.0.1:99999/hidden"),
    ],
)
def test_a_configuration_that_cannot_work_is_said_without_its_values(server: Server) -> None:
    assert "hidden" not in fails(server).reason


def test_a_stream_over_the_limit_is_a_failure() -> None:
    raw = Raw(
        headers={"content-type": "text/event-stream"}, body=": " + "x" * 65536 + "\n", repeat=140, when="call"
    )
    with context7_server(Scenario(raw=raw)) as server:
        assert fails(Server(url=server.url)).reason == "the answer is larger than 8 MiB"


def test_a_text_over_the_limit_is_cut() -> None:
    async def ask(session: McpSession) -> ToolText:
        return await session.call("resolve-library-id", {"query": "x", "libraryName": "x"})

    with context7_server(Scenario(resolve=["é" * 600_000])) as server:
        found = converse(Server(url=server.url), ask, timeout=30)
    assert found.is_cut
    assert len(found.text.encode()) == MAX_TEXT


# -- the dialogue


def test_a_bad_status_of_the_handshake_is_forgotten_when_it_succeeded_after_all() -> None:
    raw = Raw(headers={"content-type": "text/event-stream"}, when="call")
    with context7_server(Scenario(legacy=True, raw=raw)) as server:
        assert "without a response" in fails(Server(url=server.url)).reason


# -- reasons


@given(st.text(alphabet="abcdefgh0123-_", min_size=4, max_size=30))
def test_no_secret_stays(secret: str) -> None:
    url = f"https://{secret}:{secret}@example.org/mcp?key={secret}"
    args = ("--api-key", secret, f"--token={secret}")
    for server in (
        Server(url=url, headers={"Authorization": f"Bearer {secret}"}),
        Server(command="npx", args=args, env={"KEY": secret}),
    ):
        for text in (f"bad header 'Bearer {secret}'", url, secret):
            assert secret not in without_secrets(text, secrets_of(server)).replace("***", "")
