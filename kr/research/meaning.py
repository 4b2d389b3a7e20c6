"""How near a request's need is to entries and their reports, as a model of embeddings sees them (SPEC 3.2, "Meaning beyond words")."""

import logging
from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Protocol

from kr.errors import SourceFailure
from kr.matching.decide import is_known
from kr.matching.evidence import NAMES, Candidate
from kr.matching.vectors import (
    SIMILARITIES,
    Calibrated,
    Likeness,
    Meant,
    calibration_key,
    from_text,
    joined,
    likeness,
    need_text,
    similarity_numbers,
    texts_of,
)
from kr.research.chain import Breaker
from kr.store.store import Shelf
from kr.values import Entry, MatchRules, Query

logger = logging.getLogger(__name__)

NAME = "embeddings"
"""What its circuit breaker is called."""

TIMEOUT = 2.0
"""Seconds. A small model answers in milliseconds, and a look-up waits for it."""

_BESIDE_THE_NEED = 12
"""Texts of entries that a look-up asks for with its own: those of one or two. ``kr calibrate`` asks for all."""

ReadReport = Callable[[Entry], str]


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

    Vectors of entries are kept, those of a new report when it is written; what is missing is asked for along with the
    request's own, a little at a time.
    """

    def __init__(self, embedder: Embedder, shelf: Shelf, breaker: Breaker) -> None:
        self._embedder = embedder
        self._shelf = shelf
        self._breaker = breaker
        self._asked: dict[str, bytes] = {}
        self._is_away = False

    def speak(
        self, query: Query, candidates: Sequence[Candidate], rules: MatchRules, *, read: ReadReport
    ) -> Meant | None:
        """Return what the model says of the entries, or None where the evidence in words decides alone.

        ``read`` gives an entry's report.

        So it is without a calibration for this model, in mode ``seed`` and without fuzzy matching, where no likelihood
        decides, where an entry was asked for in this very topic, and where the model doesn't know every entry.
        """
        if rules.mode == "seed" or not rules.fuzzy or any(is_known(query, it) for it in candidates):
            return None
        calibrated = self._calibrated()
        if calibrated is None:
            logger.info("embeddings are not asked for: run `kr calibrate` for %s first", self._embedder.model)
            return None
        similarities = self.similarities(query, [candidate.entry for candidate in candidates], read=read)
        if not similarities or len(similarities) < len(candidates):
            return None
        skeletons = {it.entry.id for it in candidates if it.entry.origin == "skeleton"}
        numbers = similarity_numbers(similarities, calibrated.usual_next, skeletons=skeletons)
        return Meant(calibrated.learned, numbers)

    def similarities(
        self, query: Query, entries: Sequence[Entry], *, read: ReadReport
    ) -> dict[str, Likeness]:
        """Return how like each entry is to the request, by id; one whose vectors are not known, now or yet, is left out."""
        if not entries:
            return {}
        model = self._embedder.model
        ids = [entry.id for entry in entries]
        nothing: dict[str, bytes] = {}
        known = self._shelf.read(lambda unit: unit.vectors.of(model, ids), nothing)
        need = need_text(query.topic, query.tags, query.question)
        missing: dict[str, list[str]] = {}
        for entry in entries:
            if entry.id not in known and sum(map(len, missing.values())) < _BESIDE_THE_NEED:
                missing[entry.id] = texts_of(entry, read(entry))
        if missing or need not in self._asked:
            vectors = iter(self._embed([need, *(text for texts in missing.values() for text in texts)]))
            own = next(vectors, None)
            if own is None:
                return {}
            self._asked[need] = own
            found = {entry_id: joined([*islice(vectors, len(texts))]) for entry_id, texts in missing.items()}
            self._keep(found)
            known |= found
        nearness = {entry_id: likeness(self._asked[need], kept) for entry_id, kept in known.items()}
        self._forget([entry_id for entry_id, value in nearness.items() if value is None])
        return {entry_id: value for entry_id, value in nearness.items() if value is not None}

    def remember(self, entry: Entry, report: str) -> None:
        """Keep the vectors of an entry that was written."""
        if self._calibrated() is not None:
            vectors = self._embed(texts_of(entry, report))
            self._keep({entry.id: joined(vectors)} if vectors else {})

    def _calibrated(self) -> Calibrated | None:
        kept = self._shelf.read(lambda unit: unit.meta.get(calibration_key(self._embedder.model)), None)
        return from_text(kept, (*NAMES, *SIMILARITIES)) if kept else None

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
