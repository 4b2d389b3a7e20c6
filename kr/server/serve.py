"""``kr serve``: the server's process, from its socket to its end."""

import errno
import ipaddress
import logging
import socket
from collections.abc import Mapping, Sequence
from types import FrameType

import uvicorn

from kr.app import App
from kr.errors import ConfigError
from kr.server.access import Policy
from kr.server.http import create_http_app
from kr.server.worker import MAX_CALLS, Workers

DRAIN_SECONDS = 20
"""That requests may take after SIGTERM; then they are cancelled."""

_MAX_CONNECTIONS = 1000
_SHORTEST_TOKEN = 16

logger = logging.getLogger(__name__)


def serve(app: App, host: str, port: int, names: Sequence[str], environ: Mapping[str, str]) -> int:
    """Serve at an address until SIGTERM or SIGINT, then finish what is under way. ``names`` are the server's beside it. Raises ``ConfigError``."""
    policy = make_policy(host, names, environ.get("KR_TOKEN") or None, environ.get("KR_REVIEW_TOKEN") or None)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s: %(message)s"))
    logging.getLogger("kr.server").setLevel(logging.INFO)  # who was answered what
    with _listen(host, port) as listener:
        config = uvicorn.Config(
            # Each call in a thread of its own: a hit must not wait behind researches that take minutes.
            create_http_app(Workers(app, workers=MAX_CALLS), policy),
            http="h11",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            limit_concurrency=_MAX_CONNECTIONS,
            timeout_graceful_shutdown=DRAIN_SECONDS,
        )
        bound, port = listener.getsockname()[:2]
        logger.info("kr serves http://%s:%d", f"[{bound}]" if ":" in bound else bound, port)
        _Server(config).run(sockets=[listener])
    logger.info("kr has ended")
    return 0


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, port), family=family, backlog=256)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (while")[0]  # Python adds the address once more
        if error.errno == errno.EADDRINUSE:
            why += "; --port 0 takes a free one"
        raise ConfigError(f"{host}:{port}: can't listen: {why}") from error
    # Connections inherit it: else the second part of an answer waits 40 ms for the client to acknowledge the first one.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return listener


def make_policy(
    host: str, names: Sequence[str], token: str | None, review_token: str | None = None
) -> Policy:
    """Decide who may call, and who may review. Raises ``ConfigError`` for an address that others reach, and no token."""
    is_private = is_loopback(host)
    if not is_private and not token:
        raise ConfigError(
            f"--host {host}: others can reach this address, so it needs a token: set KR_TOKEN to one, of "
            f"{_SHORTEST_TOKEN} characters or more"
        )
    for name, given in (("KR_TOKEN", token), ("KR_REVIEW_TOKEN", review_token)):
        if given is not None and len(given) < _SHORTEST_TOKEN:
            raise ConfigError(f"{name}: must be {_SHORTEST_TOKEN} or more characters")
    if review_token is not None and review_token == token:
        raise ConfigError("KR_REVIEW_TOKEN: must not be KR_TOKEN, which agents have")
    known = {"localhost", host.lower(), *(name.lower().rstrip(".") for name in names)}
    if not is_private:
        known.add(socket.gethostname().lower())
    return Policy(names=known, token=token, review_token=review_token)


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host.lower() == "localhost"


class _Server(uvicorn.Server):
    """Ends with exit status 0 where uvicorn would die of the signal once more."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - uvicorn's signature
        """End; a second signal doesn't wait for anybody."""
        self.force_exit = self.should_exit
        self.should_exit = True
