"""``kr mcp``: the MCP server over standard input and output.

The SDK's own streams can't be interrupted while they read: a signal would not end the process. Here the event loop waits
for both descriptors, and the end comes at once.
"""

import os
import select
import signal
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, cast

import anyio
from mcp.server.stdio import stdio_server

from kr.app import App
from kr.server.mcp import create_mcp_server
from kr.server.worker import Workers

WORKERS = 4
"""Tools that run at the same time: one agent seldom asks more at once."""

_CHUNK = 64 * 1024
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


def serve_stdio(app: App) -> int:
    """Serve until the client closes standard input (0), or a signal arrives (128 and its number)."""
    return anyio.run(_serve, app)


async def _serve(app: App) -> int:
    app.serves_one = True
    server = create_mcp_server(Workers(app, workers=WORKERS))
    received = 0
    stdin, stdout = _private_streams()
    with anyio.open_signal_receiver(*_SIGNALS) as signals:
        async with anyio.create_task_group() as group:

            async def end_at_signal() -> None:
                nonlocal received
                received = await anext(signals)
                group.cancel_scope.cancel()

            group.start_soon(end_at_signal)
            output = cast("Any", Output(stdout))
            lines = cast("Any", read_lines(stdin))
            async with stdio_server(stdin=lines, stdout=output) as (read, write):
                await server.run(read, write, server.create_initialization_options())
            group.cancel_scope.cancel()
    return 128 + received if received else 0


async def read_lines(descriptor: int) -> AsyncIterator[str]:
    """Give what arrives, line by line, until its end."""
    rest = b""
    while chunk := await _read(descriptor):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line.decode(errors="replace")


async def _read(descriptor: int) -> bytes:
    with suppress(PermissionError):  # a file: it can't be waited for, and is always there
        await anyio.wait_readable(descriptor)
    return os.read(descriptor, _CHUNK)


class Output:
    """What the SDK writes to. A reader that is slow holds up nobody but itself."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._turn = anyio.Lock()

    async def write(self, text: str) -> None:
        """Write all of a message. Raises ``ClosedResourceError``, which the SDK expects, when nobody reads any more."""
        rest = memoryview(text.encode(errors="replace"))
        try:
            async with self._turn:
                while rest:
                    with suppress(PermissionError):
                        await anyio.wait_writable(self._descriptor)
                    rest = rest[os.write(self._descriptor, rest[: select.PIPE_BUF]) :]  # so much never blocks
        except OSError as error:
            raise anyio.ClosedResourceError from error

    async def flush(self) -> None:
        """Nothing is kept back."""


def _private_streams() -> tuple[int, int]:
    """Take both streams for the protocol: whatever a tool starts finds no input, and what it prints is a log."""
    stdin, stdout = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    return stdin, stdout
