"""An OpenAI-compatible endpoint that writes text (SPEC 3.7, ``synthesis: llm``)."""

import json
import time
from dataclasses import dataclass, field
from typing import Any

from kr.errors import SourceFailure, SourceTimeout

_LARGEST_REPLY = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """``base_url`` is what ``/chat/completions`` is appended to."""

    base_url: str = field(repr=False)
    model: str
    api_key: str | None = field(default=None, repr=False)

    def write(self, system: str, user: str, *, timeout: float) -> str:
        """Return the model's reply within ``timeout`` seconds. Raises ``SourceFailure``, its reason without secrets."""
        import httpx

        body = {
            "model": self.model,
            "messages": [{"role": "system", "content": system}, {"role": "user", "content": user}],
            "temperature": 0.2,
        }
        headers = {"Authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        try:
            with (
                httpx.Client(timeout=timeout, follow_redirects=False) as client,
                client.stream(
                    "POST", f"{self.base_url.rstrip('/')}/chat/completions", json=body, headers=headers
                ) as response,
            ):
                content = _read(response, time.monotonic() + timeout)
                if response.status_code != httpx.codes.OK:
                    raise SourceFailure(f"the language model answered HTTP {response.status_code}")
        except httpx.TimeoutException as error:
            raise SourceTimeout("the language model gave no answer in time") from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise SourceFailure(f"the language model can't be reached ({type(error).__name__})") from error
        return _text(content)


def _read(response: Any, deadline: float) -> bytes:
    """Read a body that may be endless, or come a byte at a time."""
    content = b""
    for chunk in response.iter_bytes():
        content += chunk
        if len(content) > _LARGEST_REPLY:
            raise SourceFailure("the language model's answer is too long")
        if time.monotonic() > deadline:
            raise SourceTimeout("the language model gave no answer in time")
    return content


def _text(content: bytes) -> str:
    try:
        text = json.loads(content)["choices"][0]["message"]["content"]
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise SourceFailure("the language model's answer is no chat completion") from error
    if not isinstance(text, str) or not text.strip():
        raise SourceFailure("the language model's answer is empty")
    return text
