"""``kr mcp``: the MCP server over standard input and output (SPEC 8)."""

import asyncio
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from typing import Any, cast

import anyio
from anyio.abc import ObjectSendStream
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
    server = create_mcp_server(Service(app, workers=WORKERS))
    received = 0
    with _private_stdin() as wire, anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async with anyio.create_task_group() as group:

            async def end_at_signal() -> None:
                nonlocal received
                received = await anext(signals)
                group.cancel_scope.cancel()

            group.start_soon(end_at_signal)
            async with stdio_server(stdin=cast("Any", _lines(wire))) as (read, write):
                await server.run(read, write, server.create_initialization_options())
            group.cancel_scope.cancel()
    return 128 + received if received else 0


async def _lines(descriptor: int) -> AsyncIterator[str]:
    """Give what arrives, line by line, until its end.

    A thread of its own reads: the SDK's can't be interrupted, and would hold up the end until one more line comes.
    """
    send, receive = anyio.create_memory_object_stream[str](0)
    loop = asyncio.get_running_loop()
    threading.Thread(target=_read, args=(descriptor, send, loop), name="kr-stdin", daemon=True).start()
    async with receive:
        async for line in receive:
            yield line


def _read(descriptor: int, send: ObjectSendStream[str], loop: asyncio.AbstractEventLoop) -> None:
    try:
        for line in _split(descriptor):
            asyncio.run_coroutine_threadsafe(send.send(line), loop).result()
        asyncio.run_coroutine_threadsafe(send.aclose(), loop).result()
    except (anyio.BrokenResourceError, RuntimeError, OSError):
        return  # the server has ended


def _split(descriptor: int) -> Iterator[str]:
    rest, is_skipping = b"", False
    while chunk := os.read(descriptor, _CHUNK):
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            if not is_skipping:
                yield line.decode(errors="replace")
            is_skipping = False
        if len(rest) > MAX_LINE:
            if not is_skipping:
                yield _TOO_LONG
            rest, is_skipping = b"", True


@contextmanager
def _private_stdin() -> Iterator[int]:
    """Keep standard input for the protocol: whatever a tool starts finds an empty one."""
    wire = os.dup(0)
    empty = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(empty, 0)
        yield wire
    finally:
        os.dup2(wire, 0)
        os.close(empty)
