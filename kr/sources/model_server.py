"""The language model of an OpenAI-compatible server that the user configured."""

from dataclasses import dataclass, field
from typing import Any

from kr.cancellation import broken_off
from kr.errors import SourceFailure, SourceNotAsked
from kr.sources.base import without_secrets


@dataclass(frozen=True, slots=True, kw_only=True)
class _Model:
    """A model of a server. ``base_url`` is what the path of a request is appended to: ``http://127.0.0.1:11434/v1``.

    ``api_key_env`` names the variable that ``api_key`` stands in.
    """

    base_url: str = field(repr=False)
    model: str
    api_key: str | None = field(default=None, repr=False)
    api_key_env: str | None = None

    @property
    def _key(self) -> str:
        return (self.api_key or "").strip()

    def _post(self, path: str, label: str, *, timeout: float, max_bytes: int, **body: object) -> Any:
        """Ask within ``timeout`` seconds. Raises ``SourceTimeout``, ``SourceFailure``, in whose reasons is no address, key or answer."""
        key = self._key
        if not key.isascii() or not key.isprintable():
            where = self.api_key_env or "the environment"
            raise SourceNotAsked(f"{label}: the key in {where} holds characters that no header can carry")
        import httpx

        from kr.deadline import Deadline
        from kr.sources.http_exchange import ask_json

        try:
            url = httpx.URL(f"{self.base_url.rstrip('/')}/{path}")
        except httpx.InvalidURL as error:
            raise SourceFailure(f"{label}: its address is no URL") from error
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        body = {"model": self.model, **body}
        deadline = Deadline(timeout)
        try:
            with broken_off(deadline.cancel):
                return ask_json(
                    label, "POST", url, deadline=deadline, max_bytes=max_bytes, headers=headers, body=body
                )
        finally:
            deadline.cancel()


_LARGEST_REPLY = 1024 * 1024


class LanguageModel(_Model):
    """A model that writes: ``/chat/completions``."""

    __slots__ = ()

    def write(self, system: str, user: str, *, timeout: float, temperature: float = 0.2) -> str:
        """Return the model's reply within ``timeout`` seconds. Raises ``SourceFailure``, its reason without secrets."""
        messages = [{"role": "system", "content": system}, {"role": "user", "content": user}]
        size, label = _LARGEST_REPLY, "the language model"
        answer = self._post(
            "chat/completions",
            label,
            timeout=timeout,
            max_bytes=size,
            messages=messages,
            temperature=temperature,
        )
        return without_secrets(_text(answer), [self._key] if self._key else [])


def _text(answer: object) -> str:
    try:
        choice = answer["choices"][0]  # type: ignore[index]  # what is no mapping is caught
        text = choice["message"]["content"]
        is_refused = choice.get("finish_reason") == "content_filter" or choice["message"].get("refusal")
    except (KeyError, IndexError, TypeError) as error:
        raise SourceFailure("the language model's answer is no chat completion") from error
    if is_refused:
        raise SourceFailure("the language model refused to answer")
    if not isinstance(text, str) or not text.strip():
        raise SourceFailure("the language model's answer is empty")
    return text
