"""Step 5 of seed 000: the sources are asked in order, within the budget, until one covers the question.

A circuit breaker skips those that keep failing, and single-flight makes one research of identical questions (SPEC 3.5).
"""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal, Protocol

from kr import cancellation
from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.frameworks import canonical
from kr.freshness import major_key
from kr.naming import fold
from kr.research.budget import LedgerBudget, OverallDeadline
from kr.research.shelf import Shelf
from kr.sources.base import Ask, Source
from kr.store import ledger
from kr.text.counting import tokens_of
from kr.text.markdown import split
from kr.values import Answer, Consulted, Learned, Query, SourceOutcome

logger = logging.getLogger(__name__)

_SHORTEST_CALL = 0.05

NOTHING_ALLOWED = "No source was asked: max_calls is 0"
_GAP = "its answer does not cover the question"
EXHAUSTED = "Research budget exhausted for story {story_key}, continuing with available context"
"""The log line of seed 000, step 5.3, as it stands."""


CIRCUIT_OPEN = "circuit open"


class Breaker:
    """Skips a source that failed ``failures`` times in a row (0: never), until its pause is over and a probe succeeds. Times in seconds."""

    def __init__(
        self,
        shelf: Shelf,
        owner: str,
        *,
        failures: int,
        pause_seconds: float,
        probe_seconds: float,
        clock: Callable[[], datetime],
    ) -> None:
        self._shelf = shelf
        self._owner = owner
        self._failures = failures
        self._pause_seconds = pause_seconds
        self._probe_seconds = probe_seconds
        self._clock = clock

    def refusal(self, source: str) -> str | None:
        if self._failures == 0:
            return None

        if self._shelf.read(lambda tx: ledger.circuit(tx, source).open_until, None) is None:
            return None
        admitted = self._shelf.write(
            lambda tx: ledger.admit(
                tx, source, self._owner, now=self._clock(), probe_seconds=self._probe_seconds
            ),
            otherwise=True,
        )
        return None if admitted else CIRCUIT_OPEN

    def give_back(self, source: str) -> None:
        """The call that was admitted was not made, or was interrupted: another process may probe."""
        if self._failures and self._shelf.read(lambda tx: ledger.circuit(tx, source).probe_owner, None):
            self._shelf.write(lambda tx: ledger.release_probe(tx, source, self._owner), None)

    def note(self, source: str, failure: SourceFailure | None) -> None:
        """Remember an answer (``None``) or a failure; only the source's own fault counts. One that was not asked gives its probe back."""
        if self._failures == 0:
            return
        if isinstance(failure, SourceNotAsked):
            self.give_back(source)
        elif failure is not None and failure.is_fault:
            self._count(source, failure)
        elif self._shelf.read(lambda tx: ledger.circuit(tx, source).failures, 0):
            # It works: that it does not know a framework is no failure of the source.
            self._shelf.write(lambda tx: ledger.record_success(tx, source), None)

    def _count(self, source: str, failure: SourceFailure) -> None:
        self._shelf.write(
            lambda tx: ledger.record_failure(
                tx,
                source,
                failure.reason,
                now=self._clock(),
                failures=self._failures,
                pause_seconds=self._pause_seconds,
                retry_after=failure.retry_after,
            ),
            None,
        )


class Progress(Protocol):
    """Tells a person what is going on."""

    def asking(self, source: str) -> None:
        """``source`` is being asked."""

    def waiting(self) -> None:
        """Another process researches the same, and its report is waited for."""

    def done(self) -> None:
        """Nothing is being asked, or waited for, any more."""


@dataclass(slots=True)
class Gathered:
    """What the sources gave; ``ended``: what stopped the chain. ``gap``: the first answer that does not cover the question (SPEC 3.7)."""

    answer: Answer | None = None
    gap: Answer | None = None
    consulted: list[Consulted] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ended: Literal["budget", "deadline"] | None = None
    learned: Learned = field(default_factory=Learned)

    def is_settled_for(self, source: Source) -> bool:
        """Whether a source is not to be asked any more; one that costs nothing is asked without a budget too (SPEC 3.1)."""
        return (
            self.answer is not None
            or self.ended == "deadline"
            or (self.ended == "budget" and source.is_charged)
        )


class Chain:
    def __init__(
        self,
        *,
        budget: LedgerBudget,
        breaker: Breaker,
        progress: Progress,
        deadline: OverallDeadline,
        timeout: float,
        covers: Callable[[Query, Answer], bool] = lambda _query, answer: not answer.is_gap,
    ) -> None:
        self._covers = covers
        self._budget = budget
        self._breaker = breaker
        self._progress = progress
        self._deadline = deadline
        self._timeout = timeout

    def run(self, sources: Sequence[Source], fallback: Source | None, ask: Ask) -> Gathered:
        """Ask ``sources``, then ``fallback`` unless it was among them (seed 000, step 5.2); ``skipped``: configured, not reached."""
        gathered = Gathered()
        for source in sources:
            if gathered.is_settled_for(source) or not self.ask_one(source, ask, gathered):
                gathered.consulted.append(Consulted(source=source.name, status="skipped"))
            ask = replace(ask, repository=ask.repository or gathered.learned.repository)
        is_left = fallback is not None and fallback.name not in {source.name for source in sources}
        if fallback is not None and is_left and not gathered.is_settled_for(fallback):
            self.ask_one(fallback, ask, gathered)
        if gathered.answer is not None:
            gathered.ended = None
        return gathered

    def ask_one(self, source: Source, ask: Ask, gathered: Gathered) -> bool:
        """Ask one source and add what became of it. False when it may not be asked, which adds nothing."""
        try:
            return self._ask_one(source, ask, gathered)
        except BaseException:
            # Interrupted: what was held must not stay held until it expires.
            self._budget.give_back()
            self._breaker.give_back(source.name)
            raise

    def _ask_one(self, source: Source, ask: Ask, gathered: Gathered) -> bool:
        cancellation.check()
        if not self._may_ask(source, gathered):
            return False
        refusal = self._breaker.refusal(source.name)
        if refusal is not None:
            self._add_failure(source, SourceFailure(refusal, is_fault=False), 0.0, gathered)
            return True
        logger.info("asking %s", source.name)
        self._progress.asking(source.name)
        started = time.monotonic()
        try:
            answer = self._answer_of(source, ask)
        except SourceFailure as failure:
            cancellation.check()  # then it was broken off, and is not to blame
            if isinstance(failure, SourceNotAsked) and not source.is_charged:
                return False  # a folder that is about another framework
            self._breaker.note(source.name, failure)
            self._add_failure(source, failure, time.monotonic() - started, gathered)
        else:
            self._breaker.note(source.name, None)
            self._add_answer(source, answer, time.monotonic() - started, gathered, ask)
        finally:
            self._progress.done()
        return True

    def _answer_of(self, source: Source, ask: Ask) -> Answer:
        source.prepare()
        answer = source.ask(ask, timeout=max(self._deadline.allows(self._timeout), _SHORTEST_CALL))
        if not any(split(passage.text) for passage in answer.passages):
            raise SourceFailure("its answer has no text", is_fault=False)
        return answer

    def _may_ask(self, source: Source, gathered: Gathered) -> bool:
        if self._deadline.remaining() <= 0:
            gathered.ended = "deadline"
            gathered.notes.append(f"{source.name}: not asked: the overall deadline has passed")
            return False
        if source.is_charged and not self._budget.reserve(patience=self._deadline.remaining()):
            gathered.ended = "budget"
            return False
        return True

    def _add_answer(
        self, source: Source, answer: Answer, seconds: float, gathered: Gathered, ask: Ask
    ) -> None:
        passages = len(answer.passages)
        logger.info("%s answered in %.1f s: %d passages, %s", source.name, seconds, passages, answer.url)
        outcome: SourceOutcome = "success"
        if self._covers(ask.query, answer):
            gathered.answer = answer
        else:
            gathered.gap = gathered.gap or answer
            gathered.notes.append(f"{source.name}: {_GAP}")
            # Who was asked and charged has answered; a look into the installed files that found nothing is none.
            outcome = "success" if source.is_charged else "unavailable"
        gathered.learned = Learned(
            library_id=answer.library_id,
            library_versions=answer.library_versions,
            repository=answer.repository or gathered.learned.repository,
        )
        gathered.consulted.append(Consulted(source=source.name, status=outcome, url=answer.url))
        tokens = sum(tokens_of(passage.text) for passage in answer.passages)
        reason = None if outcome == "success" else _GAP
        self._settle(source, outcome, seconds, url=answer.url, reason=reason, answer_tokens=tokens)

    def _add_failure(
        self, source: Source, failure: SourceFailure, seconds: float, gathered: Gathered
    ) -> None:
        outcome: SourceOutcome = "timeout" if isinstance(failure, SourceTimeout) else "unavailable"
        logger.info("%s: %s", source.name, failure.reason)
        if failure.library_id or failure.repository:
            gathered.learned = Learned(
                library_id=failure.library_id,
                library_versions=failure.library_versions,
                repository=failure.repository,
            )
        gathered.notes.append(f"{source.name}: {failure.reason}")
        gathered.consulted.append(Consulted(source=source.name, status=outcome))
        self._settle(source, outcome, seconds, reason=failure.reason)

    def _settle(
        self,
        source: Source,
        outcome: SourceOutcome,
        seconds: float,
        *,
        url: str | None = None,
        reason: str | None = None,
        answer_tokens: int | None = None,
    ) -> None:
        self._budget.settle(
            charged=source.is_charged and outcome == "success",
            source=source.name,
            outcome=outcome,
            duration_ms=round(seconds * 1000),
            url=url,
            reason=reason,
            answer_tokens=answer_tokens,
        )


LEASE_SECONDS = 8.0
"""How long a lease outlives its holder: the others take over after it."""

_BEAT_SECONDS = 2.0
_POLL_SECONDS = 0.1


def flight_key(query: Query) -> str:
    """Name the report that a query would make: framework, topic and major version, as a digest."""
    parts = (canonical(query.framework), fold(query.topic), major_key(query.framework_version))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@contextmanager
def single_flight(
    shelf: Shelf,
    query: Query,
    *,
    owner: str,
    deadline: OverallDeadline,
    progress: Progress,
    clock: Callable[[], datetime],
) -> Iterator[bool]:
    """Hold the lease for ``query``; yields whether another held it before. Without a database, or in time, there is no lease."""
    key = flight_key(query)

    def acquire() -> bool:
        return shelf.write(
            lambda tx: ledger.acquire_lease(tx, key, owner, now=clock(), ttl=LEASE_SECONDS), otherwise=True
        )

    try:  # an interrupt may strike when the lease is held and nobody knows yet
        is_ours = acquire()
        waited = not is_ours
        if waited:
            logger.info("another process is researching this question; waiting for its report")
            progress.waiting()
            try:
                while not is_ours and deadline.remaining() > 0:
                    cancellation.sleep(_POLL_SECONDS)
                    is_ours = acquire()
            finally:
                progress.done()
        yield waited
    finally:
        shelf.write(lambda tx: ledger.release_lease(tx, key, owner), otherwise=False)


def renew_lease(shelf: Shelf, query: Query, *, owner: str, clock: Callable[[], datetime]) -> None:
    key = flight_key(query)
    shelf.write(
        lambda tx: ledger.renew_lease(tx, key, owner, now=clock(), ttl=LEASE_SECONDS), otherwise=False
    )


@contextmanager
def heartbeat(*beats: Callable[[], None]) -> Iterator[None]:
    """Call every one of ``beats`` every two seconds, in a thread, while the block runs."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(_BEAT_SECONDS):
            for beat in beats:
                beat()

    thread = threading.Thread(target=run, name="kr-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=_BEAT_SECONDS)
