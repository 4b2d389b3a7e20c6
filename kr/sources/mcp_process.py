"""An MCP server as a child process: bounded, and gone with all its children when the session is left.

The SDK's own transport leaves a process behind that is cancelled while it starts, takes four seconds to stop a stubborn one, and bounds
no line.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, TextIO

import anyio
import mcp_types
from anyio.abc import ByteReceiveStream, ByteSendStream, ObjectReceiveStream, ObjectSendStream, Process
from anyio.streams.buffered import BufferedByteReceiveStream
from mcp.client.stdio import get_default_environment
from mcp.os.posix.utilities import terminate_posix_process_tree
from mcp.shared.message import SessionMessage

from kr.errors import SourceFailure
from kr.settings.model import Server

if TYPE_CHECKING:
    from mcp.client._transport import TransportStreams

_MAX_LINE = 8 * 1024 * 1024
_OWN_ACCORD, _TERMINATED = 0.5, 0.5
"""Seconds that a process gets to end once its input is closed, and once it was told to terminate."""

_GONE = (OSError, anyio.BrokenResourceError, anyio.ClosedResourceError)


@asynccontextmanager
async def process_transport(server: Server, errors: TextIO) -> AsyncIterator["TransportStreams"]:
    """Start the server's command, its standard error going to ``errors``; leaving stops it."""
    command = [server.command or "", *server.args]
    env = {**get_default_environment(), **server.env}
    with anyio.CancelScope(shield=True):  # cancelled while it starts, it would be left behind
        process = await anyio.open_process(command, env=env, stderr=errors, start_new_session=True)
    into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
    try:
        async with anyio.create_task_group() as tasks, into, incoming, outgoing, from_session:
            if process.stdout is not None and process.stdin is not None:  # both are pipes
                tasks.start_soon(_read, process.stdout, into)
                tasks.start_soon(_write, process.stdin, from_session)
            try:
                yield incoming, outgoing
            finally:
                tasks.cancel_scope.cancel()
    finally:
        with anyio.CancelScope(shield=True):
            await _stop(process)


async def _read(stdout: ByteReceiveStream, into: ObjectSendStream[SessionMessage | Exception]) -> None:
    """Hand on the messages of a process until its output ends. Lines that are none are passed over: package runners print some."""
    lines = BufferedByteReceiveStream(stdout)
    with suppress(anyio.EndOfStream, anyio.IncompleteRead, *_GONE):
        while True:
            try:
                line = await lines.receive_until(b"\n", _MAX_LINE)
            except anyio.DelimiterNotFound as error:
                raise SourceFailure("the answer is larger than 8 MiB") from error
            with suppress(ValueError):
                message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                await into.send(SessionMessage(message))
    await into.aclose()


async def _write(stdin: ByteSendStream, from_session: ObjectReceiveStream[SessionMessage]) -> None:
    with suppress(*_GONE):  # a process that is gone is noticed by the end of its output
        async for item in from_session:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"
            await stdin.send(line)


async def _stop(process: Process) -> None:
    """Close its input, then terminate, then kill it with all its children; every wait is bounded."""
    if process.stdin is not None:
        with suppress(*_GONE):
            await process.stdin.aclose()
    with anyio.move_on_after(_OWN_ACCORD):
        await process.wait()
    await terminate_posix_process_tree(process, _TERMINATED)
    await process.aclose()
