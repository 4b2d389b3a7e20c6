"""An MCP server as a child process that speaks over its standard input and output.

The SDK's own transport keeps no bound on a line, leaves grandchildren of a server that ends by itself, and
may take four seconds to stop. This one speaks the same protocol (one JSON-RPC message a line) with the SDK's
message types, in a process group of its own, which is gone when the transport is left, however that happens.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import IO, TYPE_CHECKING

import anyio
import anyio.lowlevel
import mcp_types
from mcp.client.stdio import get_default_environment
from mcp.shared.message import SessionMessage

from kr.errors import SourceFailure, SourceNotAsked
from kr.sources.mcp_http import MAX_MESSAGE, Wire
from kr.values import ServerConfig

if TYPE_CHECKING:
    from mcp.client import Transport
    from mcp.client._transport import TransportStreams

MAX_JUNK_LINES = 100
"""Lines on standard output that are no JSON-RPC message; servers started by a package runner print some."""

_TAIL = 2000
_OWN_ACCORD, _TERMINATED, _KILLED, _POLL = 0.5, 0.5, 1.0, 0.01


class StdioServer:
    """One server process. ``transport`` is the asynchronous way to it; ``kill`` works from any thread."""

    def __init__(self, server: ServerConfig, wire: Wire) -> None:
        self._server = server
        self._wire = wire
        self._process: subprocess.Popen[bytes] | None = None
        self._tail = b""
        self._tail_is_complete = False
        self._in_a_hurry = False
        self.junk_lines = 0
        self.messages = 0

    @property
    def stderr_tail(self) -> str:
        """The last line that the server wrote to its standard error."""
        lines = self._tail.decode(errors="replace").strip().splitlines()
        return lines[-1].strip() if lines else ""

    def hurry(self) -> None:
        """Give the server no time to end by itself when the transport is left."""
        self._in_a_hurry = True

    def kill(self) -> None:
        """Kill the whole group at once. The last resort, when the transport could not be left in time."""
        if self._process is not None:
            _signal_group(self._process.pid, signal.SIGKILL)

    @asynccontextmanager
    async def _open(self) -> "AsyncIterator[TransportStreams]":
        process = self._process = _spawn(self._server)
        # Nothing is awaited before the try, or a cancellation would leave the process behind.
        into, incoming = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        outgoing, from_session = anyio.create_memory_object_stream[SessionMessage](0)
        pipes: list[asyncio.BaseTransport] = []
        try:
            async with anyio.create_task_group() as tasks, into, incoming, outgoing, from_session:
                stdout = await _reader(process.stdout, pipes)
                stderr = await _reader(process.stderr, pipes)
                stdin = await _writer(process.stdin, pipes)
                tasks.start_soon(self._read, stdout, into)
                tasks.start_soon(self._keep_tail, stderr)
                tasks.start_soon(self._write, stdin, from_session)
                try:
                    yield incoming, outgoing
                finally:
                    tasks.cancel_scope.cancel()
        except BaseException:
            self._in_a_hurry = True
            raise
        finally:
            with anyio.CancelScope(shield=True):
                await self._stop(process, pipes)

    def transport(self) -> "Transport":
        """Build the transport; entering it starts the process, leaving it stops the process."""
        return self._open()

    async def _read(
        self,
        stdout: asyncio.StreamReader,
        into: "anyio.abc.ObjectSendStream[SessionMessage | Exception]",
    ) -> None:
        async with into:
            while True:
                try:
                    line = await stdout.readuntil(b"\n")
                except asyncio.IncompleteReadError:
                    await self._report_end()
                    return
                except asyncio.LimitOverrunError:
                    self._wire.fail(SourceFailure("the answer is larger than 8 MiB"))
                    return
                if not line.strip():
                    continue
                try:
                    message = mcp_types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    self.junk_lines += 1
                    if self.junk_lines > MAX_JUNK_LINES:
                        self._wire.fail(SourceFailure("the server writes what is no JSON-RPC message"))
                        return
                    continue
                self.messages += 1
                with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                    await into.send(SessionMessage(message))

    async def _report_end(self) -> None:
        """Say that the server closed its output: end the session, with what it said last."""
        process = self._process
        if process is not None:
            await _until(lambda: process.poll() is not None and self._tail_is_complete, _OWN_ACCORD)
        status = process.returncode if process is not None else None
        how = "closed its output" if status is None else f"ended with exit status {status}"
        tail = self.stderr_tail
        self._wire.fail(SourceFailure(f"the server {how}" + (f": {tail}" if tail else "")))

    async def _keep_tail(self, stderr: asyncio.StreamReader) -> None:
        while chunk := await stderr.read(_TAIL):
            self._tail = (self._tail + chunk)[-_TAIL:]
        self._tail_is_complete = True

    @staticmethod
    async def _write(
        stdin: asyncio.StreamWriter,
        from_session: "anyio.abc.ObjectReceiveStream[SessionMessage]",
    ) -> None:
        with suppress(OSError):  # a server that is gone is reported by the end of its output
            async for item in from_session:
                stdin.write(item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await stdin.drain()

    async def _stop(self, process: subprocess.Popen[bytes], pipes: list[asyncio.BaseTransport]) -> None:
        """Close its input, then terminate, then kill; every wait is bounded."""
        for pipe in reversed(pipes):
            pipe.close()
        await anyio.lowlevel.checkpoint()  # the pipes are closed by callbacks of the loop
        for file in (process.stdin, process.stdout, process.stderr):
            if file is not None:
                file.close()
        if not self._in_a_hurry:
            await _until(lambda: process.poll() is not None, _OWN_ACCORD)
        if _signal_group(process.pid, signal.SIGTERM):
            await _until(
                lambda: process.poll() is not None and not _signal_group(process.pid, 0), _TERMINATED
            )
        _signal_group(process.pid, signal.SIGKILL)
        await _until(lambda: process.poll() is not None, _KILLED)


def _spawn(server: ServerConfig) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(  # noqa: S603  # the command is the user's own configuration, and no shell reads it
            [server.command or "", *server.args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**get_default_environment(), **server.env},
            start_new_session=True,
        )
    except ValueError as exc:
        # Not repeated: the invalid argument or variable may hold a secret.
        raise SourceNotAsked("the server's command, arguments or environment are not valid") from exc


async def _reader(pipe: IO[bytes] | None, pipes: list[asyncio.BaseTransport]) -> asyncio.StreamReader:
    reader = asyncio.StreamReader(limit=MAX_MESSAGE)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), pipe
    )
    pipes.append(transport)
    return reader


async def _writer(pipe: IO[bytes] | None, pipes: list[asyncio.BaseTransport]) -> asyncio.StreamWriter:
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), pipe
    )
    pipes.append(transport)
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _signal_group(group: int, number: int) -> bool:
    """Send a signal to a process group; whether there was one. 0 only asks."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


async def _until(condition: Callable[[], bool], patience: float) -> None:
    with anyio.move_on_after(patience):
        while not condition():  # noqa: ASYNC110  # the end of a process group raises no event
            await anyio.sleep(_POLL)
