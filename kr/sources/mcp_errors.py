"""The SDK's, its HTTP client's and the system's exceptions, said in a few words."""

import os
import socket
from collections.abc import Iterator

import httpx2
import mcp_types
from mcp import MCPError
from pydantic import ValidationError

from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout


def translate(error: BaseException, *, command: str | None) -> SourceFailure:
    """Say a foreign exception. The first leaf of a group that says something wins.

    ``command`` is what was to be started, if anything. The words of an invalid URL, header or argument are not
    repeated: they may hold the very secret.
    """
    leaves = list(_leaves(error))
    for leaf in leaves:
        found = leaf if isinstance(leaf, SourceFailure) else None
        found = found or _of_protocol(leaf) or _of_connection(leaf) or _of_system(leaf, command)
        if found is not None:
            return found
    kind = type(leaves[0] if leaves else error).__name__
    return SourceFailure(f"the session failed ({kind})")


def _of_protocol(leaf: BaseException) -> SourceFailure | None:
    match leaf:
        case MCPError() if leaf.code == mcp_types.PARSE_ERROR:
            return SourceFailure("the answer is no JSON-RPC message")
        case MCPError():
            return SourceFailure(f"the session failed: {leaf.message}")
        case ValidationError():
            return SourceFailure("the answer does not follow the protocol")
    return None


def _of_connection(leaf: BaseException) -> SourceFailure | None:
    match leaf:
        case httpx2.TimeoutException() | TimeoutError():
            return SourceTimeout("the connection timed out")
        case httpx2.ConnectError():
            return SourceFailure(f"cannot connect: {_cause(leaf)}")
        case httpx2.InvalidURL() | httpx2.UnsupportedProtocol() | httpx2.LocalProtocolError():
            return SourceNotAsked("the server's URL or headers are not valid")
        case httpx2.HTTPError() | httpx2.StreamError():
            return SourceFailure(f"the connection broke ({type(leaf).__name__})")
    return None


def _of_system(leaf: BaseException, command: str | None) -> SourceFailure | None:
    match leaf:
        case UnicodeError():
            return SourceNotAsked("the server's URL or headers are not valid")
        case FileNotFoundError() if command:
            return SourceFailure(f"command not found: {command}")
        case OSError():
            return SourceFailure(f"the system refused: {leaf.strerror or type(leaf).__name__}")
    return None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


def _cause(error: BaseException) -> str:
    """Find the system's own words beneath a connection error, which says little by itself."""
    inner: BaseException | None = error
    while inner is not None:
        for leaf in _leaves(inner):
            if isinstance(leaf, socket.gaierror):
                return leaf.strerror or "name lookup failed"
            if isinstance(leaf, OSError) and leaf.errno is not None and leaf.errno > 0:
                return os.strerror(leaf.errno)
        inner = inner.__cause__ or inner.__context__
    return str(error) or type(error).__name__
