"""One request to an OpenAI-compatible server that the user configured: a language model, or a model of embeddings."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from kr.cancellation import broken_off
from kr.errors import SourceFailure, SourceTimeout


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelServer:
    """``base_url`` is what a path is appended to; it may be private, like that of any configured server.

    ``label`` is what messages call the model.
    """

    base_url: str = field(repr=False)
    label: str
    api_key: str | None = field(default=None, repr=False)

    def post(self, path: str, body: Mapping[str, object], *, timeout: float, max_bytes: int) -> object:
        """Return what the server answers, read as JSON, within ``timeout`` seconds.

        Raises ``SourceTimeout`` and ``SourceFailure``; no reason holds the address, the key or the answer.
        """
        try:
            content = self._post(path, json.dumps(body).encode(), timeout, max_bytes)
        except SourceTimeout as error:
            raise SourceTimeout(f"the {self.label} gave no answer in time") from error
        except SourceFailure as error:
            reason = f"the {self.label} can't be asked: {error.reason}"
            raise SourceFailure(reason, retry_after=error.retry_after) from error
        try:
            return json.loads(content)
        except (ValueError, RecursionError) as error:
            raise SourceFailure(f"the {self.label}'s answer is no JSON") from error

    def _post(self, path: str, body: bytes, timeout: float, max_bytes: int) -> bytes:
        from datetime import UTC, datetime

        import httpx

        from kr.sources.deadline import Deadline
        from kr.sources.http_exchange import Network, exchange
        from kr.sources.reasons import retry_after_seconds

        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        try:
            url = httpx.URL(f"{self.base_url.rstrip('/')}{path}")
        except httpx.InvalidURL as error:
            raise SourceFailure("its address is no URL") from error
        deadline = Deadline(timeout)
        try:
            with broken_off(deadline.cancel):
                reply = exchange(
                    "POST",
                    url,
                    network=Network(allow_private=True),
                    deadline=deadline,
                    max_bytes=max_bytes,
                    headers=headers,
                    content=body,
                )
        finally:
            deadline.cancel()
        if reply.status != httpx.codes.OK:
            pause = retry_after_seconds(reply.headers.get("retry-after"), now=datetime.now(UTC))
            raise SourceFailure(f"it answered HTTP {reply.status}", retry_after=pause)
        if reply.body.is_cut:
            raise SourceFailure("its answer is too long")
        return reply.body.data
