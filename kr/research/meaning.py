"""How near a request's need is to those of entries, as a model of embeddings sees them (SPEC 3.2, "Meaning beyond words")."""

import logging
from collections.abc import Mapping, Sequence
from typing import Protocol

from kr.errors import SourceFailure
from kr.matching.decide import is_known
from kr.matching.evidence import NAMES, Candidate
from kr.matching.vectors import (
    SIMILARITIES,
    Meant,
    calibration_key,
    cosine,
    from_text,
    need_text,
    similarity_numbers,
)
from kr.research.chain import Breaker
from kr.store.store import Shelf
from kr.values import Entry, MatchRules, Query

logger = logging.getLogger(__name__)

NAME = "embeddings"
"""What its circuit breaker is called."""

TIMEOUT = 2.0
"""Seconds. A small model answers in milliseconds, and a look-up waits for it."""


class Embedder(Protocol):
    """What turns texts into packed vectors."""

    @property
    def model(self) -> str:
        """Vectors of one model can be compared with one another alone."""

    @property
    def most_texts(self) -> int:
        """How many texts it takes at once."""

    def embed(self, texts: Sequence[str], *, timeout: float) -> list[bytes]:
        """Return a vector for each text, or raise ``SourceFailure``."""


class Meaning:
    """The evidence of one run. A server that is away costs nothing but the evidence.

    Nothing is raised here, and it is asked no second time.

    Vectors of entries are kept; those that are missing are asked for along with the request's own, as many as go into
    one call.
    """

    def __init__(self, embedder: Embedder, shelf: Shelf, breaker: Breaker) -> None:
        self._embedder = embedder
        self._shelf = shelf
        self._breaker = breaker
        self._asked: dict[str, bytes] = {}
        self._is_away = False

    def speak(self, query: Query, candidates: Sequence[Candidate], rules: MatchRules) -> Meant | None:
        """Return what the model says of the entries, or None where the evidence in words decides alone.

        So it is without a calibration for this model, in mode ``seed`` and without fuzzy matching, where no likelihood
        decides, where an entry was asked for in this very topic, and where the model doesn't know every entry.
        """
        if rules.mode == "seed" or not rules.fuzzy or any(is_known(query, it) for it in candidates):
            return None
        kept = self._shelf.read(lambda unit: unit.meta.get(calibration_key(self._embedder.model)), None)
        calibrated = from_text(kept, (*NAMES, *SIMILARITIES)) if kept else None
        if calibrated is None:
            logger.info("embeddings are not asked for: run `kr calibrate` for %s first", self._embedder.model)
            return None
        similarities = self.similarities(query, [candidate.entry for candidate in candidates])
        if not similarities or len(similarities) < len(candidates):
            return None
        return Meant(calibrated.learned, similarity_numbers(similarities, calibrated.usual_next))

    def similarities(self, query: Query, entries: Sequence[Entry]) -> dict[str, float]:
        """Return the cosine of the request's need with that of each entry, by id; -1.0 to 1.0.

        An entry whose vector is not known, now or yet, is left out.
        """
        if not entries:
            return {}
        model = self._embedder.model
        ids = [entry.id for entry in entries]
        nothing: dict[str, bytes] = {}
        known = self._shelf.read(lambda unit: unit.vectors.of(model, ids), nothing)
        need = need_text(query.topic, query.tags, query.question)
        missing = [entry for entry in entries if entry.id not in known][: self._embedder.most_texts - 1]
        if missing or need not in self._asked:
            texts = [need_text(entry.topic, entry.tags, entry.question) for entry in missing]
            vectors = self._embed([need, *texts])
            if not vectors:
                return {}
            self._asked[need] = vectors[0]
            found = {entry.id: vector for entry, vector in zip(missing, vectors[1:], strict=True)}
            self._keep(found)
            known |= found
        nearness = {entry_id: cosine(self._asked[need], vector) for entry_id, vector in known.items()}
        self._forget([entry_id for entry_id, value in nearness.items() if value is None])
        return {entry_id: value for entry_id, value in nearness.items() if value is not None}

    def remember(self, query: Query, entry_id: str) -> None:
        """Keep the request's vector as that of the entry that was written for it, if it was asked for."""
        vector = self._asked.get(need_text(query.topic, query.tags, query.question))
        if vector is not None:
            self._keep({entry_id: vector})

    def _embed(self, texts: list[str]) -> list[bytes]:
        if self._is_away:
            return []
        refusal = self._breaker.refusal(NAME)
        if refusal is not None:
            logger.info("embeddings are not asked for: %s", refusal)
            return []
        try:
            vectors = self._embedder.embed(texts, timeout=TIMEOUT)
        except SourceFailure as error:
            self._is_away = True
            logger.warning("matching goes on without embeddings: %s", error.reason)
            self._breaker.note(NAME, error)
            return []
        except BaseException:
            self._breaker.give_back(NAME)
            raise
        self._breaker.note(NAME, None)
        return vectors

    def _keep(self, vectors: Mapping[str, bytes]) -> None:
        if vectors:
            self._shelf.write(lambda unit: unit.vectors.put(self._embedder.model, vectors), None)

    def _forget(self, entry_ids: Sequence[str]) -> None:
        """Another model may stand behind the name now: what can't be compared is asked for anew next time."""
        if entry_ids:
            self._shelf.write(lambda unit: unit.vectors.forget(entry_ids), None)
