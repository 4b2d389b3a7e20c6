"""What stands before every operation of ``kr serve``: who may call, how much, and how it is told (SPEC 8).

``Guard`` is the outermost layer. In this order it refuses: a ``Host`` that is no name of this server and an ``Origin``
that is another site's (403; so that a web page in the user's browser can't call it, also by a DNS name of its own that
it lets point here), a caller without the token (401), more requests at once than the server works on (429), a body that
is too large (413) or too slow (408), or that nothing expects (400). Every answer is logged, with neither headers nor query.
"""

import hmac
import ipaddress
import json
import logging
import time
from base64 import b64decode
from collections.abc import Awaitable, Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from typing import Any, NamedTuple
from urllib.parse import quote, urlsplit

import anyio
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kr.fields import LIMIT
from kr.server.metrics import MCP_PATHS, Metrics
from kr.server.page.session import SIGN_IN, Sessions

logger = logging.getLogger("kr.access")

PROBLEM = "application/problem+json"
"""The media type of an error that is no envelope (RFC 9457)."""

MAX_BODY = LIMIT
MOST_HELD = 64 * MAX_BODY
"""Bytes of bodies that may wait together for their rest; what is no larger than ``_SMALL`` always may."""

_SMALL = 64 * 1024
_DROPPED = 8 * MAX_BODY
"""Of a body that is refused, so much is read and dropped, for its client to see the answer."""

_UNANSWERED = 499
"""What the log says of a request whose client hung up first, as nginx does."""

_CLOSE = {"Connection": "close"}
RETRY_AFTER = {"Retry-After": "1"}
_HEALTH = "/healthz"
_OPEN_TO_ALL = frozenset({_HEALTH, SIGN_IN})
_STATIC = "/static/"
_UNREAD = frozenset({_HEALTH, *MCP_PATHS})
"""Where a ``GET`` is handed on without its body, which would be waited for without end."""


def problem(
    status: int, detail: str, *, code: str | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Make an answer for what went wrong; ``code`` is that of the error (``kr.errors``), where there is one."""
    body: dict[str, Any] = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status}
    body["detail"] = detail
    if code is not None:
        body["code"] = code
    return Response(
        json.dumps(body, ensure_ascii=False), status_code=status, headers=headers, media_type=PROBLEM
    )


def defect(error: Exception) -> Response:
    """Make the answer for an error that nobody foresaw."""
    return problem(500, f"unexpected {type(error).__name__}; this is a bug in kr, and its log has more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Who may call. ``names`` are the host names of this server; ``token`` None: whoever reaches it may.

    ``review_token`` is what people sign in with to review on the page; None: nobody may there.
    A ``Host`` that is an IP address is always this server's: only a name can be made to point elsewhere later.
    """

    names: Collection[str]
    token: str | None
    max_requests: int
    review_token: str | None = None
    body_seconds: float = 20.0
    """That a client may take for its body, and for each piece of an answer."""
    send_seconds: float = 30.0


class Address(NamedTuple):
    """A host and its port, as ``Host`` and ``Origin`` write them."""

    host: str
    port: int | None


def read_address(text: str) -> Address | None:
    """Read ``host[:port]``; None where it is none."""
    try:
        parts = urlsplit(f"//{text}")
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    is_bare = parts.netloc == text and parts.username is None and not parts.path
    return Address(host.rstrip("."), port) if host and is_bare else None


def _is_of(origin: str, host: Address) -> bool:
    """Whether an ``Origin`` is of this host; a proxy before kr may speak TLS."""
    scheme, _, address = origin.partition("://")
    return scheme in {"http", "https"} and read_address(address) == host


def _is_navigation(scope: Scope, headers: Headers) -> bool:
    """Whether somebody follows a link to here, in a window of its own."""
    is_window = headers.get("sec-fetch-dest", "document") == "document"
    return scope["method"] == "GET" and headers.get("sec-fetch-mode") == "navigate" and is_window


class _Gone(Exception):
    """The client left before it had sent its request."""


class _Refused(Exception):
    """A body is not taken. ``more`` says whether its client may be sending still."""

    def __init__(self, response: Response, *, more: bool) -> None:
        self.response = response
        self.more = more


class Guard:
    """An ASGI layer; see the module."""

    def __init__(self, app: ASGIApp, *, policy: Policy, metrics: Metrics) -> None:
        self._app = app
        self._policy = policy
        self._metrics = metrics
        self.sessions = Sessions(policy.token, policy.review_token)
        """Of the page's readers."""
        self._at_work = 0
        self._held = 0
        self.draining = anyio.Event()
        """Set when the server is to end: what would stay open as long as the client likes ends then."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request, or hand it on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = time.perf_counter()
        told = _Told(send, self._policy.send_seconds)
        try:
            with told.reading:
                await self._answer(scope, receive, told)
        except Exception as error:
            if told.status != _UNANSWERED:
                raise  # the application has answered, and uvicorn logs it
            logger.exception("a request failed before it was answered")
            await defect(error)(scope, receive, told)
        finally:
            seconds = time.perf_counter() - began
            self._metrics.note_request(scope, told.status, seconds)
            _log(scope, told.status, seconds)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, send)
        elif scope["path"] == _HEALTH:
            await self._app(scope, receive, send)
        elif scope["method"] == "GET" and scope["path"] in MCP_PATHS:
            await self._until(self.draining.wait, scope, receive, send)
        else:
            await self._counted(scope, receive, send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        path = scope["path"]
        if any(len(headers.getlist(name)) > 1 for name in ("host", "origin")):
            return problem(400, "Host and Origin may stand once", headers=_CLOSE)
        host = read_address(headers.get("host", ""))
        if host is None or not self._is_ours(host.host):
            return problem(403, "Host is no name of this server; kr serve --allow-host NAME adds one")
        if "origin" in headers and not _is_of(headers["origin"], host):
            return problem(403, "Origin is another site")
        if headers.get("sec-fetch-site") == "cross-site" and not _is_navigation(scope, headers):
            return problem(403, "Sec-Fetch-Site: the page of another site asks")
        has_body = "transfer-encoding" in headers or headers.get("content-length", "0") != "0"
        if has_body and scope["method"] == "GET" and path in _UNREAD:
            return problem(400, "a GET has no body", headers=_CLOSE)
        if "transfer-encoding" in headers and "content-length" in headers:
            return problem(400, "Content-Length and Transfer-Encoding contradict each other", headers=_CLOSE)
        if path in _OPEN_TO_ALL or path.startswith(_STATIC):
            return None
        if not self._is_known(headers.get("authorization", "")) and not self._has_signed_in(scope):
            if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
                return RedirectResponse(f"{SIGN_IN}?next={quote(path)}", status_code=303)
            # A program may ask its user, whose name doesn't matter, for the password of the second.
            challenges = 'Bearer realm="kr", Basic realm="kr"'
            return problem(401, "the server wants its token", headers={"WWW-Authenticate": challenges})
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            ipaddress.ip_address(host)
        except ValueError:
            return host.lower() in self._policy.names
        return True

    def _is_known(self, authorization: str) -> bool:
        if self._policy.token is None:
            return True
        scheme, _, given = authorization.partition(" ")
        if scheme.lower() == "basic":
            try:
                given = b64decode(given, validate=True).decode().partition(":")[2]
            except ValueError:  # no ASCII, no Base64, no UTF-8
                return False
        elif scheme.lower() != "bearer":
            return False
        return hmac.compare_digest(given.strip().encode(), self._policy.token.encode())

    def _has_signed_in(self, scope: Scope) -> bool:
        """Whether a browser's user gave the token on the page."""
        return self.sessions.is_signed_in(Request(scope).cookies, time.time())

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            # Before it takes a place: without a token, bodies that never come must not keep others out.
            body = await self._read_body(scope, receive)
        except _Gone:
            return
        except _Refused as refused:
            await self._refuse(refused, scope, receive, send)
            return
        if self._at_work >= self._policy.max_requests:
            self._metrics.refused.inc()
            busy = f"{self._at_work} requests are at work; try again"
            await problem(429, busy, headers=RETRY_AFTER)(scope, receive, send)
            return
        self._at_work += 1
        try:
            if scope["path"].startswith("/v1/"):
                gone, replayed = partial(_hung_up, receive), _replayed(body, anyio.sleep_forever)
                await self._until(gone, scope, replayed, send)
            else:  # MCP has rules of its own for a client that hangs up
                await self._app(scope, _replayed(body, receive), send)
        finally:
            self._at_work -= 1

    async def _read_body(self, scope: Scope, receive: Receive) -> bytes:
        """Read a body while counting it. Raises ``_Gone``, and ``_Refused`` for what is too large, too slow or too much.

        What all requests together have sent and kr has not yet worked on is bounded; a small body always has room.
        """
        too_large = problem(413, f"a body is at most {MAX_BODY} bytes", headers=_CLOSE)
        declared = Headers(scope=scope).get("content-length", "")
        if declared.isdecimal() and int(declared) > MAX_BODY:
            raise _Refused(too_large, more=True)
        body, more = bytearray(), True
        try:
            with anyio.move_on_after(self._policy.body_seconds) as waiting:
                while more:
                    piece, more = await _piece(receive)
                    body += piece
                    self._held += len(piece)
                    if len(body) > MAX_BODY:
                        raise _Refused(too_large, more=more)
                    if self._held > MOST_HELD and len(body) > _SMALL:
                        self._metrics.refused.inc()
                        busy = problem(
                            429, "many large bodies arrive; try again", headers=RETRY_AFTER | _CLOSE
                        )
                        raise _Refused(busy, more=more)
            if waiting.cancelled_caught:
                raise _Refused(problem(408, "the body did not come in time", headers=_CLOSE), more=False)
        finally:
            self._held -= len(body)
        return bytes(body)

    async def _refuse(self, refused: _Refused, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer at once, and end the answer when the client has sent its body: one that still sends might not see it."""

        async def unended(message: Message) -> None:
            is_body = message["type"] == "http.response.body"
            await send({**message, "more_body": True} if is_body else message)

        await refused.response(scope, receive, unended)
        with anyio.move_on_after(self._policy.body_seconds), suppress(_Gone):
            dropped, more = 0, refused.more
            while more and dropped < _DROPPED:
                piece, more = await _piece(receive)
                dropped += len(piece)
        await send({"type": "http.response.body", "body": b""})

    async def _until(
        self, end: Callable[[], Awaitable[None]], scope: Scope, receive: Receive, send: Send
    ) -> None:
        """Hand a request on, and break it off at its end."""
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                await end()
                group.cancel_scope.cancel()

            group.start_soon(watch)
            await self._app(scope, receive, send)
            group.cancel_scope.cancel()


class _Told:
    """Sends, remembers the status, and waits for a slow reader only so long."""

    def __init__(self, send: Send, patience: float) -> None:
        self._send = send
        self._patience = patience
        self.status = _UNANSWERED
        self.reading = anyio.CancelScope()
        """Left where the client stops reading."""

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            headers = MutableHeaders(scope=message)
            headers.setdefault("X-Content-Type-Options", "nosniff")
            headers.setdefault("Cache-Control", "no-store")
            headers.setdefault("Cross-Origin-Resource-Policy", "same-origin")
        with anyio.move_on_after(self._patience) as waiting:
            await self._send(message)
        if waiting.cancelled_caught:
            self.reading.cancel()
            await anyio.sleep_forever()


async def _hung_up(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _piece(receive: Receive) -> tuple[bytes, bool]:
    """Receive a piece of a body, and whether more comes. Raises ``_Gone``."""
    message = await receive()
    if message["type"] == "http.disconnect":
        raise _Gone
    return message.get("body", b""), message.get("more_body", False)


def _replayed(body: bytes, receive: Callable[[], Awaitable[Any]]) -> Receive:
    """Give a body that was read to who reads it next, then what comes after it."""
    left = [body]

    async def replay() -> Message:
        if left:
            return {"type": "http.request", "body": left.pop(), "more_body": False}
        message: Message = await receive()
        return message

    return replay


def _log(scope: Scope, status: int, seconds: float) -> None:
    client = scope.get("client")
    logger.info(
        "%s %s %d",
        scope["method"],
        scope["path"],
        status,
        extra={
            "told": {
                "method": scope["method"],
                "path": scope["path"],
                "status": status,
                "ms": round(seconds * 1000, 1),
                "client": client[0] if client else None,
            }
        },
    )


class JsonLines(logging.Formatter):
    """One JSON object per line; what a record tells in ``extra={"told": {...}}`` stands beside the message."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        at = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        told: dict[str, Any] = {
            "at": f"{at}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "told", {}),
        }
        if record.exc_info:
            told["traceback"] = self.formatException(record.exc_info)
        return json.dumps(told, ensure_ascii=False, default=str)
