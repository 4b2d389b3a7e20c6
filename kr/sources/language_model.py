"""An OpenAI-compatible endpoint that writes text (SPEC 3.7, ``synthesis: llm``)."""

from dataclasses import dataclass, field

from kr.errors import SourceFailure
from kr.sources.model_server import ModelServer
from kr.sources.reasons import without_secrets

_LARGEST_REPLY = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageModel:
    """``base_url`` is what ``/chat/completions`` is appended to."""

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
        server = ModelServer(base_url=self.base_url, label="language model", api_key=self.api_key)
        answer = server.post("/chat/completions", body, timeout=timeout, max_bytes=_LARGEST_REPLY)
        return without_secrets(_text(answer), [self.api_key] if self.api_key else [])


def _text(answer: object) -> str:
    try:
        text = answer["choices"][0]["message"]["content"]  # type: ignore[index]  # what is no mapping is caught
    except (KeyError, IndexError, TypeError) as error:
        raise SourceFailure("the language model's answer is no chat completion") from error
    if not isinstance(text, str) or not text.strip():
        raise SourceFailure("the language model's answer is empty")
    return text
