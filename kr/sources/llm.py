"""The language model of an OpenAI-compatible server that the user configured: it writes reports, or chooses among candidates."""

from collections.abc import Mapping
from typing import Any

import httpx2

from kr.errors import SourceFailure, SourceNotAsked
from kr.settings.model import ModelServer
from kr.sources.event_loop import run
from kr.sources.fetch import ask_json
from kr.sources.reasons import without_secrets

_LABEL = "the language model"
_LARGEST_REPLY = 1024 * 1024


def complete(
    config: ModelServer,
    environ: Mapping[str, str],
    system: str,
    user: str,
    *,
    timeout: float,
    temperature: float = 0.2,
) -> str:
    """Return the model's reply within ``timeout`` seconds. Raises ``SourceFailure``: in its reason is no address, key or reply."""
    if config.base_url is None or config.model is None:
        raise SourceNotAsked("not configured (knowledge_research.llm.base_url and llm.model)")
    try:
        url = httpx2.URL(f"{config.base_url.rstrip('/')}/chat/completions")
    except httpx2.InvalidURL as error:
        raise SourceFailure(f"{_LABEL}: its address is no URL") from error
    key = environ.get(config.api_key_env or "", "").strip()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
    body = {"model": config.model, "messages": messages, "temperature": temperature}

    async def post() -> Any:
        return await ask_json(_LABEL, "POST", url, max_bytes=_LARGEST_REPLY, headers=headers, body=body)

    return without_secrets(_text(run(post, timeout=timeout)), [key] if key else [])


def _text(answer: Any) -> str:
    try:
        text = answer["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError) as error:
        raise SourceFailure(f"{_LABEL}'s answer is no chat completion") from error
    if not isinstance(text, str) or not text.strip():
        raise SourceFailure(f"{_LABEL}'s answer is empty")
    return text
