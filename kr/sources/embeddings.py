"""An OpenAI-compatible endpoint that turns texts into vectors (SPEC 3.2, ``embeddings``)."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from kr.errors import SourceFailure
from kr.matching.vectors import pack
from kr.sources.model_server import ModelServer

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
