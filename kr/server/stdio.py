"""``kr mcp``: the MCP server over standard input and output (SPEC 8).

The SDK's own streams take a thread for each line and each write of it, and can't be interrupted while they read. Here
the event loop waits for both descriptors: no thread, and the end comes at once.
"""

import os
import select
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager, suppress
from typing import Any, NamedTuple, cast

import anyio
import anyio.to_thread
from mcp.server.stdio import stdio_server

from kr.app import App
from kr.server.mcp import create_mcp_server
from kr.server.service import Service

WORKERS = 4
"""Tools that run at the same time: one agent seldom asks more at once."""

MAX_LINE = 2 * 1024 * 1024
"""Bytes of one message: twice a request (SPEC 3.1), since JSON escapes."""

_TOO_LONG = "a message is larger than 2 MiB"  # which is no JSON, and is refused as such
_CHUNK = 64 * 1024


def serve_stdio(app: App) -> int:
    """Serve until the client closes standard input (0), or a signal arrives (128 and its number)."""
    return anyio.run(_serve, app)


async def _serve(app: App) -> int:
    app.serves_one = True
    server = create_mcp_server(Service(app, workers=WORKERS))
    received = 0
    with _private_streams() as wire, anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with anyio.create_task_group() as group:

            async def end_at_signal() -> None:
                nonlocal received
                received = await anext(signals)
                group.cancel_scope.cancel()

            group.start_soon(end_at_signal)
            stdin, stdout = cast("Any", _lines(wire.stdin)), cast("Any", _Output(wire.stdout))
            async with stdio_server(stdin=stdin, stdout=stdout) as (read, write):
                await server.run(read, write, server.create_initialization_options())
            group.cancel_scope.cancel()
    return 128 + received if received else 0


async def _lines(descriptor: int) -> AsyncIterator[str]:
    """Give what arrives, line by line, until its end; a line that is too long is given as none of JSON."""
    rest, is_skipping = b"", False
    while chunk := await _read(descriptor):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if not is_skipping:
                yield line.decode(errors="replace")
            is_skipping = False
        if len(rest) > MAX_LINE:
            if not is_skipping:
                yield _TOO_LONG
            rest, is_skipping = b"", True


async def _read(descriptor: int) -> bytes:
    with suppress(PermissionError):  # a file: it can't be waited for, and is always there
        await anyio.wait_readable(descriptor)
    return os.read(descriptor, _CHUNK)


class _Output:
    """What the SDK writes to: at once where the pipe has room, else in a thread, so that a slow reader holds up nobody."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._room = select.poll()
        self._room.register(descriptor, select.POLLOUT)

    async def write(self, text: str) -> None:
        """Write all of a message. Raises ``ClosedResourceError``, which the SDK expects, when nobody reads any more."""
        rest = memoryview(text.encode())
        try:
            while rest and self._room.poll(0):
                rest = rest[os.write(self._descriptor, rest[: select.PIPE_BUF]) :]
            if rest:
                await anyio.to_thread.run_sync(self._write_all, rest, abandon_on_cancel=True)
        except OSError as error:
            raise anyio.ClosedResourceError from error

    def _write_all(self, rest: memoryview) -> None:
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]

    async def flush(self) -> None:
        """Nothing is kept back."""


class _Wire(NamedTuple):
    stdin: int
    stdout: int


@contextmanager
def _private_streams() -> Iterator[_Wire]:
    """Keep both streams for the protocol: whatever a tool starts finds no input, and what it prints is a log."""
    wire = _Wire(os.dup(0), os.dup(1))
    empty = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(empty, 0)
        os.dup2(2, 1)
        yield wire
    finally:
        os.dup2(wire.stdin, 0)
        os.dup2(wire.stdout, 1)
        os.close(empty)
