"""What stands before every operation of ``kr serve``: who may call, how much, and how it is told (SPEC 8)."""

import json
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from starlette.responses import Response

PROBLEM = "application/problem+json"
"""The media type of an error that is no envelope (RFC 9457)."""


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
