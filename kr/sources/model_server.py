"""An OpenAI-compatible server that the user configured: one request to it, its language model, its model of embeddings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kr.cancellation import broken_off
from kr.errors import SourceFailure
from kr.matching.vectors import pack
from kr.sources.base import without_secrets


def _post(
    label: str,
    address: str,
    api_key: str | None,
    body: Mapping[str, object],
    *,
    timeout: float,
    max_bytes: int,
) -> Any:
    """Ask within ``timeout`` seconds. Raises ``SourceTimeout``, ``SourceFailure``, in whose reasons is no address, key or answer."""
    import httpx

    from kr.sources.http_exchange import Deadline, ask_json

    try:
        url = httpx.URL(address)
    except httpx.InvalidURL as error:
        raise SourceFailure(f"{label}: its address is no URL") from error
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    deadline = Deadline(timeout)
    try:
        with broken_off(deadline.cancel):
            return ask_json(
                label, "POST", url, deadline=deadline, max_bytes=max_bytes, headers=headers, body=body
            )
    finally:
        deadline.cancel()


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
        address = f"{self.base_url.rstrip('/')}/chat/completions"
        answer = _post(
            "the language model", address, self.api_key, body, timeout=timeout, max_bytes=_LARGEST_REPLY
        )
        return without_secrets(_text(answer), [self.api_key] if self.api_key else [])


def _text(answer: object) -> str:
    try:
        text = answer["choices"][0]["message"]["content"]  # type: ignore[index]  # what is no mapping is caught
    except (KeyError, IndexError, TypeError) as error:
        raise SourceFailure("the language model's answer is no chat completion") from error
    if not isinstance(text, str) or not text.strip():
        raise SourceFailure("the language model's answer is empty")
    return text


MOST_TEXTS = 32
"""Texts of one request: a need is a line or two, and small servers work on them one after the other."""

_LONGEST_TEXT = 2000
"""Characters: more than the 512 tokens of the small models is refused by some servers and cut by the others."""
_MOST_NUMBERS = 8192
_BYTES_PER_NUMBER = 32
_NO_EMBEDDINGS = "the model of embeddings gave no embeddings"


@dataclass(frozen=True, slots=True, kw_only=True)
class Embeddings:
    """``base_url`` is what ``/embeddings`` is appended to, such as ``http://127.0.0.1:11434/v1`` of Ollama."""

    base_url: str = field(repr=False)
    model: str
    api_key: str | None = field(default=None, repr=False)

    @property
    def most_texts(self) -> int:
        return MOST_TEXTS

    def embed(self, texts: Sequence[str], *, timeout: float) -> list[bytes]:
        """Return the packed vector of each of at most ``MOST_TEXTS`` texts, none blank. Raises ``SourceFailure`` without secrets."""
        body = {
            "model": self.model,
            "input": [text[:_LONGEST_TEXT] for text in texts],
            "encoding_format": "float",
        }
        address = f"{self.base_url.rstrip('/')}/embeddings"
        largest = 65_536 + len(texts) * _MOST_NUMBERS * _BYTES_PER_NUMBER
        answer = _post(
            "the model of embeddings", address, self.api_key, body, timeout=timeout, max_bytes=largest
        )
        return _vectors(answer, len(texts))


def _vectors(answer: object, wanted: int) -> list[bytes]:
    try:
        rows = {row["index"]: row["embedding"] for row in answer["data"]}  # type: ignore[index]  # what is no mapping is caught
        numbers = [rows[index] for index in range(wanted)]
        if not all(map(_is_vector, numbers)):
            raise SourceFailure(_NO_EMBEDDINGS)
        vectors = [pack(row) for row in numbers]
    except (KeyError, IndexError, TypeError, ValueError, OverflowError) as error:
        raise SourceFailure(_NO_EMBEDDINGS) from error
    if len(rows) != wanted or len(set(map(len, vectors))) > 1:
        raise SourceFailure("the model of embeddings gave vectors of several dimensions, or too many")
    return vectors


def _is_vector(row: object) -> bool:
    return (
        isinstance(row, list)
        and len(row) <= _MOST_NUMBERS
        and all(type(number) in {int, float} for number in row)
    )
