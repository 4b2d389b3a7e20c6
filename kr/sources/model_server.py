"""An OpenAI-compatible server that the user configured: one request to it, its language model, its model of embeddings."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kr.cancellation import broken_off
from kr.errors import SourceFailure, SourceTimeout
from kr.matching.learning import pack
from kr.sources.reasons import without_secrets


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

        from kr.sources.http_exchange import Deadline, Network, exchange
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
        """How many texts one request may hold."""
        return MOST_TEXTS

    def embed(self, texts: Sequence[str], *, timeout: float) -> list[bytes]:
        """Return the packed vector of each text, all of one dimension, within ``timeout`` seconds.

        At most ``MOST_TEXTS`` texts, none of them blank. Raises ``SourceFailure``, its reason without secrets.
        """
        body = {
            "model": self.model,
            "input": [text[:_LONGEST_TEXT] for text in texts],
            "encoding_format": "float",
        }
        server = ModelServer(base_url=self.base_url, label="model of embeddings", api_key=self.api_key)
        largest = 65_536 + len(texts) * _MOST_NUMBERS * _BYTES_PER_NUMBER
        return _vectors(server.post("/embeddings", body, timeout=timeout, max_bytes=largest), len(texts))


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
