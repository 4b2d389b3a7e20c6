"""Step 5 of F1: the sources are asked in order, within the budget, until one covers the question.

A call is reserved in the database before it is made, then charged or given back, so that parallel agents on one story never
overspend. A circuit breaker, shared through the database, leaves a source alone that keeps failing.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from kr import cancellation
from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.markdown import split
from kr.models import Answer, Learned, SourceAttempt, SourceOutcome
from kr.research.run import Run
from kr.settings.model import CircuitBreaker
from kr.sources.base import Ask, Source
from kr.store import ledger, requests
from kr.store.engine import Transaction
from kr.store.ledger import Reservation, SourceCall
from kr.text import tokens_of
from kr.times import to_text

if TYPE_CHECKING:
    from kr.research.service import Progress

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.1
_SHORTEST_CALL = 0.05
_AROUND_A_CALL = 15.0
"""Seconds that a probe may take beyond the call itself: for its imports, and for ending its session."""
_GAP = "its answer does not cover the question"


class Budget:
    """The calls of one invocation: exactly ``max_calls``, or the story's less what the ledger shows.

    Without a usable database the invocation counts for itself, on top of what one that can merely be read shows.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._held: str | None = None
        self._may_hold = False

    def reserve(self) -> bool:
        """Hold one call; while other processes hold the rest, wait for them as long as there is time."""
        self._may_hold = True
        while True:
            reserved = self._try_to_reserve()
            if reserved.outcome == "granted":
                self._held = reserved.id
                return True
            if reserved.outcome == "exhausted" or self._run.time_left() <= 0:
                return False
            cancellation.sleep(_POLL_SECONDS)

    def _try_to_reserve(self) -> Reservation:
        run = self._run
        is_override = run.overrides.max_calls is not None
        if is_override and run.charged >= run.call_limit:
            return Reservation(outcome="exhausted")

        def reserve(tx: Transaction) -> Reservation:
            requests.begin(tx, run.row("failure"))
            return ledger.reserve(
                tx,
                session_id=run.request.session_id,
                story_key=run.request.story_key,
                owner=run.owner,
                limit=None if is_override else run.call_limit,
                now=run.clock(),
            )

        reserved = run.shelf.write(reserve, None)
        return reserved or Reservation(outcome="granted" if self._left_unwritten() else "exhausted")

    def _left_unwritten(self) -> int:
        run = self._run
        request, here = run.request, run.charged - run.unrecorded
        spent = run.shelf.read(lambda tx: ledger.spent(tx, request.session_id, request.story_key), here)
        return run.calls_left(spent)

    def settle(self, *, charged: bool, **call: Any) -> None:
        """Write what became of a call (fields of ``SourceCall``) into the ledger; charge or give back what was held."""
        run = self._run
        held, self._held = self._held, None
        run.charged += charged
        row = SourceCall(
            request_id=run.id,
            at=to_text(run.clock()),
            session_id=run.request.session_id,
            story_key=run.request.story_key,
            charged=charged,
            **call,
        )

        def record(tx: Transaction) -> bool:
            requests.begin(tx, run.row("failure"))
            ledger.settle(tx, held, row)
            return True

        if not run.shelf.write(record, otherwise=False):
            run.unrecorded += charged
        self._may_hold = False

    def give_back(self) -> None:
        """Give back what is held: the call was interrupted, perhaps before its reservation was noted here."""
        if self._may_hold:
            self._held, self._may_hold = None, False
            self._run.shelf.write(lambda tx: ledger.release_all(tx, self._run.owner), 0)

    def renew(self) -> None:
        if self._held is not None:
            self._run.shelf.write(lambda tx: ledger.renew(tx, self._run.owner, now=self._run.clock()), 0)


class Breaker:
    """Leaves a source alone that failed ``failures`` times in a row (0: never), until its pause is over and a probe succeeds."""

    def __init__(self, run: Run, config: CircuitBreaker, *, timeout: float) -> None:
        self._run = run
        self._config = config
        self._probe_seconds = timeout + _AROUND_A_CALL

    def is_open(self, source: str) -> bool:
        run = self._run
        if (
            not self._config.failures
            or run.shelf.read(lambda tx: ledger.circuit(tx, source).open_until, None) is None
        ):
            return False
        return not run.shelf.write(
            lambda tx: ledger.admit(
                tx, source, run.owner, now=run.clock(), probe_seconds=self._probe_seconds
            ),
            otherwise=True,
        )

    def give_back(self, source: str) -> None:
        """The call that was admitted was not made, or was interrupted: another process may probe."""
        run = self._run
        if self._config.failures and run.shelf.read(lambda tx: ledger.circuit(tx, source).probe_owner, None):
            run.shelf.write(lambda tx: ledger.release_probe(tx, source, run.owner), None)

    def note(self, source: str, failure: SourceFailure | None) -> None:
        """Remember an answer (``None``) or a failure; only the source's own fault counts."""
        run, config = self._run, self._config
        if not config.failures:
            return
        if isinstance(failure, SourceNotAsked):
            self.give_back(source)
        elif failure is not None and failure.is_fault:
            run.shelf.write(
                lambda tx: ledger.record_failure(
                    tx,
                    source,
                    failure.reason,
                    now=run.clock(),
                    failures=config.failures,
                    pause_seconds=config.pause_seconds,
                    retry_after=failure.retry_after,
                ),
                None,
            )
        elif run.shelf.read(lambda tx: ledger.circuit(tx, source).failures, 0):
            # It works: that it does not know a framework is no failure of the source.
            run.shelf.write(lambda tx: ledger.record_success(tx, source), None)


@dataclass(slots=True, kw_only=True)
class Result:
    """What the sources gave. ``ended``: what stopped the chain. ``gap``: the first answer that does not cover the question."""

    answer: Answer | None = None
    gap: Answer | None = None
    attempts: list[SourceAttempt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ended: Literal["budget", "deadline"] | None = None
    learned: Learned = field(default_factory=Learned)


class Chain:
    """Asks sources. ``timeout`` is a call's own, in seconds; ``covers`` tells whether an answer covers the question."""

    def __init__(
        self,
        run: Run,
        breaker: Breaker,
        progress: "Progress",
        *,
        timeout: float,
        covers: Callable[[Answer], bool],
    ) -> None:
        self.budget = Budget(run)
        self.result = Result()
        self._run = run
        self._breaker = breaker
        self._progress = progress
        self._timeout = timeout
        self._covers = covers

    def ask_in_order(
        self, sources: Sequence[Source], ask: Ask, *, fallback: Source | None, waiting: int = 0
    ) -> None:
        """Ask ``sources``, then ``fallback`` unless it was among them, until one answers.

        ``waiting`` is how many may be asked after the chain: a source gets at most its share of the time that is left.
        """
        last = fallback if fallback and fallback.name not in {source.name for source in sources} else None
        left = len(sources) + waiting + (last is not None)
        for source in sources:
            if self._is_settled_for(source) or not self.ask(source, ask, share=left):
                self.result.attempts.append(SourceAttempt(source=source.name, status="skipped"))
            ask = replace(ask, repository=ask.repository or self.result.learned.repository)
            left -= 1
        if last is not None and not self._is_settled_for(last):
            self.ask(last, ask, share=left)
        if self.result.answer is not None:
            self.result.ended = None

    def _is_settled_for(self, source: Source) -> bool:
        """Whether a source is not to be asked any more; one that costs nothing is asked without a budget too."""
        result = self.result
        is_out = result.ended == "deadline" or (result.ended == "budget" and source.is_charged)
        return result.answer is not None or is_out

    def ask(self, source: Source, ask: Ask, *, share: int = 1) -> bool:
        """Ask one source, which may take 1/``share`` of the time left. False when it may not be asked, which adds nothing."""
        try:
            return self._ask(source, ask, share)
        except BaseException:
            # Interrupted: what was held must not stay held until it expires.
            self.budget.give_back()
            self._breaker.give_back(source.name)
            raise

    def _ask(self, source: Source, ask: Ask, share: int) -> bool:
        cancellation.check()
        if not self._may_ask(source):
            return False
        if self._breaker.is_open(source.name):
            self._add_failure(source, SourceFailure("circuit open", is_fault=False), 0.0)
            return True
        logger.info("asking %s", source.name)
        self._progress.asking(source.name)
        started = time.monotonic()
        try:
            answer = self._answer_of(source, ask, share)
        except SourceFailure as failure:
            cancellation.check()  # then it was broken off, and is not to blame
            if isinstance(failure, SourceNotAsked) and not source.is_charged:
                return False  # a folder that is about another framework
            self._breaker.note(source.name, failure)
            self._add_failure(source, failure, time.monotonic() - started)
        else:
            self._breaker.note(source.name, None)
            self._add_answer(source, answer, time.monotonic() - started)
        finally:
            self._progress.done()
        return True

    def _answer_of(self, source: Source, ask: Ask, share: int) -> Answer:
        timeout = min(self._timeout, self._run.time_left() / share)
        answer = source.ask(ask, timeout=max(timeout, _SHORTEST_CALL))
        if not any(split(passage.text) for passage in answer.passages):
            raise SourceFailure("its answer has no text", is_fault=False)
        return answer

    def _may_ask(self, source: Source) -> bool:
        if self._run.time_left() <= 0:
            self.result.ended = "deadline"
            self.result.notes.append(f"{source.name}: not asked: the overall deadline has passed")
            return False
        if source.is_charged and not self.budget.reserve():
            self.result.ended = "budget"
            return False
        return True

    def _add_answer(self, source: Source, answer: Answer, seconds: float) -> None:
        result = self.result
        logger.info("%s answered in %.1f s: %s", source.name, seconds, answer.url)
        outcome: SourceOutcome = "success"
        reason = None
        if self._covers(answer):
            result.answer = answer
        else:
            reason = _GAP
            result.gap = result.gap or answer
            result.notes.append(f"{source.name}: {_GAP}")
            # Who was asked and charged has answered; a look into the installed files that found nothing is none.
            outcome = "success" if source.is_charged else "unavailable"
        result.learned = Learned(
            library_id=answer.library_id,
            library_versions=answer.library_versions,
            repository=answer.repository or result.learned.repository,
        )
        result.attempts.append(SourceAttempt(source=source.name, status=outcome, url=answer.url))
        self.budget.settle(
            charged=source.is_charged,
            source=source.name,
            outcome=outcome,
            duration_ms=round(seconds * 1000),
            url=answer.url,
            reason=reason,
            answer_tokens=sum(tokens_of(passage.text) for passage in answer.passages),
        )

    def _add_failure(self, source: Source, failure: SourceFailure, seconds: float) -> None:
        result = self.result
        outcome: SourceOutcome = "timeout" if isinstance(failure, SourceTimeout) else "unavailable"
        logger.info("%s: %s", source.name, failure.reason)
        if failure.library_id or failure.repository:
            result.learned = Learned(
                library_id=failure.library_id,
                library_versions=failure.library_versions,
                repository=failure.repository,
            )
        result.notes.append(f"{source.name}: {failure.reason}")
        result.attempts.append(SourceAttempt(source=source.name, status=outcome))
        self.budget.settle(
            charged=False,
            source=source.name,
            outcome=outcome,
            duration_ms=round(seconds * 1000),
            reason=failure.reason,
        )
