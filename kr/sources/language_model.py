"""An OpenAI-compatible endpoint that writes text (SPEC 3.7, ``synthesis: llm``)."""

import json
from dataclasses import dataclass, field

from kr.errors import SourceFailure, SourceTimeout
from kr.sources.reasons import without_secrets

_LARGEST_REPLY = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """``base_url`` is what ``/chat/completions`` is appended to; it may be private, like any configured server."""

    base_url: str = field(repr=False)
    model: str
    api_key: str | None = field(default=None, repr=False)

    def write(self, system: str, user: str, *, timeout: float) -> str:
        """Return the model's reply within ``timeout`` seconds. Raises ``SourceFailure``, its reason without secrets."""
        body = {
            "model": self.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "temperature": 0.2,
        }
        try:
            content = self._post(json.dumps(body).encode(), timeout)
        except SourceTimeout as error:
            raise SourceTimeout("the language model gave no answer in time") from error
        except SourceFailure as error:
            raise SourceFailure(f"the language model can't be asked: {error.reason}") from error
        return without_secrets(_text(content), [self.api_key] if self.api_key else [])

    def _post(self, body: bytes, timeout: float) -> bytes:
        import httpx

        from kr.sources.deadline import Deadline
        from kr.sources.http_exchange import Network, exchange

        headers = {"Content-Type": "application/json", "Content-Length": str(len(body))}
        if self.api_key:
            headers["Authorization"] = f"Bearer {self.api_key}"
        try:
            url = httpx.URL(f"{self.base_url.rstrip('/')}/chat/completions")
        except httpx.InvalidURL as error:
            raise SourceFailure("its address is no URL") from error
        deadline = Deadline(timeout)
        try:
            reply = exchange(
                "POST",
                url,
                network=Network(allow_private=True),
                deadline=deadline,
                max_bytes=_LARGEST_REPLY,
                headers=headers,
                content=body,
            )
        finally:
            deadline.cancel()
        if reply.status != httpx.codes.OK:
            raise SourceFailure(f"it answered HTTP {reply.status}")
        return reply.body.data


def _text(content: bytes) -> str:
    try:
        text = json.loads(content)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise SourceFailure("the language model's answer is no chat completion") from error
    if not isinstance(text, str) or not text.strip():
        raise SourceFailure("the language model's answer is empty")
    return text
