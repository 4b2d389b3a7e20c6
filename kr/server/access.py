"""What stands before ``kr serve``: who may call, and who signed in on the page.

A request is refused, in this order, for a ``Host`` that is no name of this server or an ``Origin`` of another site (403:
a web page in the user's browser cannot call it, not even under a name of its own that it lets point here), without the
token (401), and for a body that is too large (413).

There are two tokens: ``KR_TOKEN``, which agents have too, lets use a server outside loopback; ``KR_REVIEW_TOKEN``, which people alone
have, lets review as well, under a name. The cookie of a browser holds a random id; what that allows stands in this process alone, so
that signing out ends a session wherever its cookie was copied to.
"""

import hmac
import ipaddress
import logging
import secrets
import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus
from urllib.parse import quote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect, cookie_parser
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kr.requests import LIMIT

logger = logging.getLogger(__name__)

PROBLEM = "application/problem+json"
"""The media type of an error that is no envelope (RFC 9457)."""

MAX_BODY = LIMIT
SIGN_IN = "/sign-in"
COOKIE = "kr_session"
SESSION_SECONDS = 12 * 60 * 60

_HEALTH = "/healthz"
_HUNG_UP = 499
"""What the log says of a request whose client hung up first, as nginx does."""

_STATIC = "/static/"
_HEADERS = {
    "X-Content-Type-Options": "nosniff",
    "Cross-Origin-Resource-Policy": "same-origin",
}


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Make the answer for an error that is no envelope."""
    body = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return JSONResponse(body, status_code=status, headers=headers, media_type=PROBLEM)


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """Who may call. ``names`` are the host names of this server; ``token`` None: whoever reaches it may.

    ``review_token`` is what people sign in with to review on the page; None: nobody may there.
    """

    names: Collection[str]
    token: str | None
    review_token: str | None = None


@dataclass(frozen=True, slots=True)
class Session:
    """A browser whose user signed in, until a POSIX time. ``reviewer`` is the name of who may review; None: nobody."""

    until: float
    reviewer: str | None


class Sessions:
    """The sessions of one server."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._sessions: dict[str, Session] = {}
        self.can_review = policy.review_token is not None

    def get(self, session_id: str | None) -> Session | None:
        """Return the session of an id; None where nobody signed in with it, or its time is over."""
        session = self._sessions.get(session_id or "")
        return session if session is not None and time.time() < session.until else None

    def sign_in(self, token: str, reviewer: str | None = None) -> str | None:
        """Give who knows a token the id of a new session: with a name to review, else to use the server; None for anybody else."""
        secret = self._policy.token if reviewer is None else self._policy.review_token
        if secret is None or not hmac.compare_digest(token.encode(), secret.encode()):
            return None
        session_id = secrets.token_urlsafe(32)
        self._sessions[session_id] = Session(time.time() + SESSION_SECONDS, reviewer)
        return session_id

    def sign_out(self, session_id: str | None) -> None:
        self._sessions.pop(session_id or "", None)


class Access:
    """The outermost ASGI layer; see the module."""

    def __init__(self, app: ASGIApp, policy: Policy, sessions: Sessions) -> None:
        self._app = app
        self._policy = policy
        self._sessions = sessions

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status = time.perf_counter(), _HUNG_UP

        async def note_and_send(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                is_static = scope["path"].startswith(_STATIC)
                headers["Cache-Control"] = "no-cache" if is_static else "no-store"
            await send(message)

        try:
            await self._answer(scope, receive, note_and_send)
        except ClientDisconnect:
            return
        finally:
            milliseconds = (time.perf_counter() - began) * 1000
            path = quote(scope["path"])
            logger.info("%s %s %d in %.1f ms", scope["method"], path, status, milliseconds)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer: ASGIApp | None = self._refusal(scope)
        if answer is None:
            body = await _read_body(receive)
            if body is None:
                answer = problem(413, f"a body is at most {MAX_BODY} bytes", {"Connection": "close"})
            else:
                answer, receive = self._app, _replay(body, receive)
        await answer(scope, receive, send)

    def _refusal(self, scope: Scope) -> Response | None:
        headers, path = Headers(scope=scope), scope["path"]
        host = _address(headers.get("host", ""))
        if host is None or not self._is_own_name(host[0]):
            return problem(403, "Host is no name of this server; kr serve --allow-host NAME adds one")
        for origin in headers.getlist("origin"):
            scheme, _, address = origin.partition("://")
            # A proxy before kr may speak TLS.
            if scheme not in {"http", "https"} or _address(address) != host:
                return problem(403, "Origin is another site")
        is_open = path in {_HEALTH, SIGN_IN} or path.startswith(_STATIC)
        if is_open or self._is_authorized(headers):
            return None
        if scope["method"] == "GET" and "text/html" in headers.get("accept", ""):
            return RedirectResponse(SIGN_IN, status_code=303)
        challenge = {"WWW-Authenticate": 'Bearer realm="kr"'}
        return problem(401, "the server wants its token", challenge)

    def _is_own_name(self, name: str) -> bool:
        """Whether a ``Host`` is this server's: any IP address is, as only a name can be made to point elsewhere later."""
        with suppress(ValueError):
            return bool(ipaddress.ip_address(name))
        return name in self._policy.names

    def _is_authorized(self, headers: Headers) -> bool:
        token = self._policy.token
        if token is None:
            return True
        scheme, _, given = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode()):
            return True
        return self._sessions.get(cookie_parser(headers.get("cookie", "")).get(COOKIE)) is not None


def _address(text: str) -> tuple[str, int | None] | None:
    """Read ``host[:port]``; None where it is anything else."""
    try:
        parts = urlsplit(f"//{text}")
        name, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return None
    is_bare = parts.netloc == text and parts.username is None and not parts.path
    return (name, port) if name and is_bare else None


async def _read_body(receive: Receive) -> bytes | None:
    """Read a body; None where it is too large. Raises ``ClientDisconnect``.

    What is too long is read on and dropped for a while: its sender would not see an answer that comes before.
    """
    body, size, more = bytearray(), 0, True
    while more and size <= 8 * MAX_BODY:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        piece, more = message.get("body", b""), message.get("more_body", False)
        size += len(piece)
        if size <= MAX_BODY:
            body += piece
    return bytes(body) if size <= MAX_BODY else None


def _replay(body: bytes, receive: Receive) -> Receive:
    """Give a body that was read to who reads it next, then what comes after it."""
    unread = [body]

    async def replay() -> Message:
        if unread:
            return {"type": "http.request", "body": unread.pop(), "more_body": False}
        return await receive()

    return replay
