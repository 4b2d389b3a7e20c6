"""``kr serve``: the server's process, from its sockets to its end (SPEC 8)."""

import asyncio
import errno
import ipaddress
import logging
import socket
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import FrameType

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from kr.errors import ConfigError
from kr.server.guard import Guard, JsonLines, Policy
from kr.server.http import create_http_app
from kr.server.service import RequestProgress, Service
from kr.wiring import open_app

MAX_REQUESTS = 128
"""Requests at work at the same time, each in a thread of its own: one more is told to come again. A hit must not
wait behind researches that take minutes."""

DRAIN_SECONDS = 20
"""That requests may take after SIGTERM; then they are broken off."""

_MAX_CONNECTIONS = 1000
_HEAD_SECONDS = 10.0
_SHORTEST_TOKEN = 16

logger = logging.getLogger("kr.server")


@dataclass(frozen=True, slots=True, kw_only=True)
class Where:
    """Where to listen, and under which names; what the command line says."""

    host: str
    port: int
    names: Sequence[str] = ()
    config: str | None = None
    knowledge_base: str | None = None


def serve(where: Where, environ: Mapping[str, str]) -> int:
    """Serve until SIGTERM or SIGINT, then finish what is under way. Raises ``ConfigError``."""
    policy = make_policy(where, environ.get("KR_TOKEN") or None, environ.get("KR_REVIEW_TOKEN") or None)
    _log_as_json()
    with (
        open_app(config=where.config, knowledge_base=where.knowledge_base, progress=RequestProgress()) as app,
        _listening(where) as listener,
    ):
        guard = create_http_app(Service(app, workers=MAX_REQUESTS), policy)
        settings = uvicorn.Config(
            guard,
            http=PatientProtocol,
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
        host, port = listener.getsockname()[:2]
        url = f"http://{f'[{host}]' if ':' in host else host}:{port}"
        logger.info("kr serves %s", url, extra={"told": {"url": url}})
        _DrainingServer(settings, guard).run(sockets=[listener])
    logger.info("kr has ended")
    return 0


def _listening(where: Where) -> socket.socket:
    """Open the socket. Raises ``ConfigError``."""
    try:
        family = socket.AF_INET6 if ":" in where.host else socket.AF_INET
        return socket.create_server((where.host, where.port), family=family, backlog=256)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while")[
            0
        ]  # what Python adds says the address again
        if error.errno == errno.EADDRINUSE:
            why += "; --port 0 takes a free one"
        raise ConfigError(f"{where.host}:{where.port}: can't listen: {why}") from error


def _log_as_json() -> None:
    """Write what is logged as JSON lines: who was answered what as well."""
    for handler in logging.getLogger().handlers:
        handler.setFormatter(JsonLines())
    for name in ("kr.access", "kr.server"):
        logging.getLogger(name).setLevel(logging.INFO)


def make_policy(where: Where, token: str | None, review_token: str | None = None) -> Policy:
    """Decide who may call, and who may review. Raises ``ConfigError`` for an address that others reach, and no token."""
    if not is_loopback(where.host) and not token:
        raise ConfigError(
            f"--host {where.host}: others can reach this address, so it needs a token: set KR_TOKEN to one, of "
            f"{_SHORTEST_TOKEN} characters or more"
        )
    for name, given in (("KR_TOKEN", token), ("KR_REVIEW_TOKEN", review_token)):
        if given is not None and (
            len(given) < _SHORTEST_TOKEN or not given.isascii() or not given.isprintable()
        ):
            raise ConfigError(f"{name}: must be {_SHORTEST_TOKEN} or more printable ASCII characters")
    if review_token is not None and review_token == token:
        raise ConfigError("KR_REVIEW_TOKEN: must not be KR_TOKEN, which agents have")
    names = {"localhost", where.host.lower(), *(name.lower().rstrip(".") for name in where.names)}
    if not is_loopback(where.host):
        names.add(socket.gethostname().lower())
    return Policy(names=names, token=token, review_token=review_token, max_requests=MAX_REQUESTS)


def is_loopback(host: str) -> bool:
    """Tell whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class PatientProtocol(H11Protocol):
    """uvicorn's protocol, which alone waits for the head of a request as long as the client likes."""

    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin to wait for the first request."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take bytes; between two requests, wait for the rest of the next head only so long."""
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop waiting."""
        super().connection_lost(exc)
        self._unwatch()

    def _watch(self) -> None:
        if self._is_answering:
            self._unwatch()
        elif self._timer is None:
            self._timer = self.loop.call_later(_HEAD_SECONDS, self._too_slow)

    def _unwatch(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _too_slow(self) -> None:
        self._timer = None
        if not self._is_answering:
            self.transport.close()

    @property
    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request, whatever it declares
        return cycle is not None and not cycle.response_complete


class _DrainingServer(uvicorn.Server):
    """Ends what would stay open for ever as soon as it is to end, and with exit status 0."""

    def __init__(self, config: uvicorn.Config, guard: Guard) -> None:
        super().__init__(config)
        self._guard = guard

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """End; a second signal doesn't wait for anybody."""
        self.force_exit = self.should_exit
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Wait for what is under way."""
        self._guard.draining.set()
        await super().shutdown(sockets)
