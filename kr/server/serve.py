"""``kr serve``: the server's process, from its sockets to its end (SPEC 8)."""

from pathlib import Path

import uvicorn

from kr.app import open_app
from kr.server.http import create_http_app
from kr.server.service import RequestProgress, Service

WORKERS = 16
"""Operations that run at the same time."""

_DRAIN_SECONDS = 20


def serve(*, host: str, port: int, config: Path | None, knowledge_base: Path | None) -> int:
    """Serve until SIGTERM or SIGINT, then finish what is under way. Raises ``ConfigError``."""
    with open_app(config=config, knowledge_base=knowledge_base, progress=RequestProgress()) as app:
        api = create_http_app(Service(app, workers=WORKERS))
        settings = uvicorn.Config(
            api, host=host, port=port, log_config=None, timeout_graceful_shutdown=_DRAIN_SECONDS
        )
        uvicorn.Server(settings).run()
    return 0
