"""The language model of an OpenAI-compatible server that the user configured: it writes reports, or chooses among candidates."""

from dataclasses import dataclass, field
from typing import Any

import httpx2

from kr.errors import SourceFailure, SourceNotAsked
from kr.sources.event_loop import run
from kr.sources.fetch import ask_json
from kr.sources.reasons import without_secrets

_LABEL = "the language model"
_LARGEST_REPLY = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """A model of a server. ``base_url`` is what ``/chat/completions`` is appended to: ``http://127.0.0.1:11434/v1``.

    ``api_key_env`` names the variable that ``api_key`` stands in.
    """

    base_url: str = field(repr=False)
    model: str
    api_key: str | None = field(default=None, repr=False)
    api_key_env: str | None = None

    def write(self, system: str, user: str, *, timeout: float, temperature: float = 0.2) -> str:
        """Return the model's reply within ``timeout`` seconds. Raises ``SourceFailure``: in its reason is no address, key or reply."""
        key = (self.api_key or "").strip()
        if not key.isascii() or not key.isprintable():
            where = self.api_key_env or "the environment"
            raise SourceNotAsked(f"{_LABEL}: the key in {where} holds characters that no header can carry")
        try:
            url = httpx2.URL(f"{self.base_url.rstrip('/')}/chat/completions")
        except httpx2.InvalidURL as error:
            raise SourceFailure(f"{_LABEL}: its address is no URL") from error
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        body = {"model": self.model, "messages": messages, "temperature": temperature}

        async def post() -> Any:
            return await ask_json(_LABEL, "POST", url, max_bytes=_LARGEST_REPLY, headers=headers, body=body)

        return without_secrets(_text(run(post, timeout=timeout)), [key] if key else [])


def _text(answer: Any) -> str:
    try:
        choice = answer["choices"][0]
        text = choice["message"]["content"]
        is_refused = choice.get("finish_reason") == "content_filter" or choice["message"].get("refusal")
    except (KeyError, IndexError, TypeError, AttributeError) as error:
        raise SourceFailure(f"{_LABEL}'s answer is no chat completion") from error
    if is_refused:
        raise SourceFailure(f"{_LABEL} refused to answer")
    if not isinstance(text, str) or not text.strip():
        raise SourceFailure(f"{_LABEL}'s answer is empty")
    return text
