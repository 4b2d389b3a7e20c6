"""Step 5 of F1: the sources are asked in order, within the budget, until one covers the question.

A call is reserved in the database before it is made, then charged or given back, so that parallel agents on one story never
overspend. A circuit breaker, shared through the database, leaves a source alone that keeps failing.
"""

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from kr import cancellation
from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.guard import GIVES_ORDERS, reasons_to_hold
from kr.models import Answer, Learned, SourceAttempt, SourceOutcome
from kr.report import split
from kr.research.run import Run
from kr.sources.base import Ask, Source
from kr.store import ledger, lookup
from kr.store.engine import Transaction
from kr.store.ledger import Reservation, SourceCall
from kr.text import tokens_of
from kr.times import to_text

logger = logging.getLogger(__name__)

_POLL_SECONDS = 0.1
_AROUND_A_CALL = 15.0
"""Seconds that a probe may take beyond the call itself: for its imports, and for ending its session."""
_MOST_JUDGED = 200_000
"""Characters of a source's text that are judged: an excerpt shows a few thousand."""
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
        run, story = self._run, self._run.request
        is_override = run.overrides.max_calls is not None
        if is_override and run.charged >= run.call_limit:
            return Reservation(outcome="exhausted")

        def reserve(tx: Transaction) -> Reservation:
            lookup.begin_request(tx, run.row("failure"))
            limit = None if is_override else run.call_limit
            return ledger.reserve(
                tx, story.session_id, story.story_key, owner=run.id, limit=limit, now=run.clock()
            )

        if (reserved := run.cache.write(reserve, None)) is not None:
            return reserved
        here = run.charged - run.unrecorded
        spent = run.cache.read(lambda tx: ledger.spent(tx, story.session_id, story.story_key), here)
        return Reservation(outcome="granted" if run.calls_left(spent) else "exhausted")

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
            lookup.begin_request(tx, run.row("failure"))
            ledger.settle(tx, held, row)
            return True

        if not run.cache.write(record, otherwise=False):
            run.unrecorded += charged
        self._may_hold = False

    def give_back(self) -> None:
        """Give back what is held: the call was interrupted, perhaps before its reservation was noted here."""
        if self._may_hold:
            self._held, self._may_hold = None, False
            self._run.cache.write(lambda tx: ledger.release_all(tx, self._run.id), 0)

    def renew(self) -> None:
        if self._held is not None:
            self._run.cache.write(lambda tx: ledger.renew(tx, self._run.id, now=self._run.clock()), 0)


@dataclass(slots=True, kw_only=True)
class Result:
    """What the sources gave. ``ended``: what stopped the chain. ``gap``: the first answer that does not cover the question."""

    answer: Answer | None = None
    gap: Answer | None = None
    attempts: list[SourceAttempt] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ended: Literal["budget", "deadline"] | None = None
    learned: Learned | None = None


class Chain:
    """Asks sources. ``covers`` tells whether an answer covers the question.

    A source that failed so many times in a row is left alone (0: never), until its pause is over and a probe succeeds.
    """

    def __init__(self, run: Run, covers: Callable[[Answer], bool]) -> None:
        self.budget = Budget(run)
        self.result = Result()
        self._run = run
        self._circuit = run.config.circuit_breaker
        self._covers = covers

    def ask_in_order(
        self, sources: Sequence[Source], ask: Ask, *, fallback: Source | None, waiting: int = 0
    ) -> None:
        """Ask ``sources``, then ``fallback`` unless it was among them, until one answers.

        ``waiting`` is how many may be asked after the chain: a source gets at most its share of the time that is left.
        """

        def learn(learned: Learned) -> None:
            self.result.learned = learned

        ask = replace(ask, learn=learn)
        last = fallback if fallback and fallback.name not in {source.name for source in sources} else None
        left = len(sources) + waiting + (last is not None)
        for source in sources:
            if self._is_settled_for(source) or not self.ask(source, ask, share=left):
                self.result.attempts.append(SourceAttempt(source=source.name, status="skipped"))
            ask = replace(ask, known=self.result.learned or ask.known)
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
            self._end_probe(source)
            raise

    def _ask(self, source: Source, ask: Ask, share: int) -> bool:
        cancellation.check()
        if not self._may_ask(source):
            return False
        started = time.monotonic()
        if self._is_left_alone(source):
            self._settle(source, "unavailable", started, reason="circuit open")
            return True
        logger.info("asking %s", source.name)
        progress = self._run.service.progress
        progress.asking(source.name)
        try:
            answer = self._answer_of(source, ask, share)
        except SourceFailure as failure:
            cancellation.check()  # then it was broken off, and is not to blame
            if isinstance(failure, SourceNotAsked) and not source.is_charged:
                return False  # a folder that is about another framework
            self._note(source, failure)
            is_late = isinstance(failure, SourceTimeout)
            self._settle(source, "timeout" if is_late else "unavailable", started, reason=failure.reason)
        else:
            self._note(source, None)
            self._take(source, answer, started)
        finally:
            progress.done()
        return True

    def _answer_of(self, source: Source, ask: Ask, share: int) -> Answer:
        timeout = min(self._run.timeout, self._run.time_left() / share)
        answer = source.ask(ask, timeout=timeout)
        passages = tuple(replace(it, text=without_orders(it.text)) for it in answer.passages)
        if not any(split(passage.text) for passage in passages):
            raise SourceFailure("its answer has no text", is_fault=False)
        return replace(answer, passages=passages)

    def _may_ask(self, source: Source) -> bool:
        if self._run.time_left() <= 0:
            self.result.ended = "deadline"
            self.result.notes.append(f"{source.name}: not asked: the overall deadline has passed")
            return False
        if source.is_charged and not self.budget.reserve():
            self.result.ended = "budget"
            return False
        return True

    def _take(self, source: Source, answer: Answer, started: float) -> None:
        if self._covers(answer):
            self.result.answer = answer
            self._settle(source, "success", started, answer=answer)
            return
        self.result.gap = self.result.gap or answer
        # Who was asked and charged has answered; a look into the installed files that found nothing is none.
        outcome: SourceOutcome = "success" if source.is_charged else "unavailable"
        self._settle(source, outcome, started, answer=answer, reason=_GAP)

    def _settle(
        self,
        source: Source,
        outcome: SourceOutcome,
        started: float,
        *,
        answer: Answer | None = None,
        reason: str | None = None,
    ) -> None:
        url, name, took = answer.url if answer else None, source.name, time.monotonic() - started
        how = "answered" if answer else "gave no answer"
        logger.info("%s %s in %.1f s: %s", name, how, took, reason or url)
        self.result.attempts.append(SourceAttempt(source=name, status=outcome, url=url))
        if reason is not None:
            self.result.notes.append(f"{name}: {reason}")
        self.budget.settle(
            charged=answer is not None and source.is_charged,
            source=name,
            outcome=outcome,
            duration_ms=round(took * 1000),
            url=url,
            reason=reason,
            answer_tokens=sum(tokens_of(it.text) for it in answer.passages) if answer else None,
        )

    # --- the circuit breaker

    def _is_left_alone(self, source: Source) -> bool:
        cache, now = self._run.cache, self._run.clock()
        seconds = self._run.timeout + _AROUND_A_CALL
        if not self._circuit.failures or not cache.read(
            lambda tx: ledger.circuit(tx, source.name).open_until, None
        ):
            return False
        return not cache.write(
            lambda tx: ledger.admit(tx, source.name, now=now, probe_seconds=seconds), otherwise=True
        )

    def _end_probe(self, source: Source) -> None:
        """The call that was admitted was not made, or was interrupted: another process may probe."""
        cache, name = self._run.cache, source.name
        if self._circuit.failures and cache.read(lambda tx: ledger.circuit(tx, name).probe_until, None):
            cache.write(lambda tx: ledger.release_probe(tx, name), None)

    def _note(self, source: Source, failure: SourceFailure | None) -> None:
        """Remember an answer (``None``) or a failure; only the source's own fault counts."""
        cache, circuit, now = self._run.cache, self._circuit, self._run.clock()
        if not circuit.failures:
            return
        if isinstance(failure, SourceNotAsked):
            self._end_probe(source)
        elif failure is not None and failure.is_fault:
            cache.write(
                lambda tx: ledger.record_failure(
                    tx,
                    source.name,
                    failure.reason,
                    now=now,
                    failures=circuit.failures,
                    pause_seconds=circuit.pause_seconds,
                    retry_after=failure.retry_after,
                ),
                None,
            )
        elif cache.read(lambda tx: ledger.circuit(tx, source.name).failures, 0):
            # It works: that it does not know a framework is no failure of the source.
            cache.write(lambda tx: ledger.record_success(tx, source.name), None)


def without_orders(text: str) -> str:
    """Leave out the paragraphs of a source's text that give orders to the agent that reads it: no documentation does."""
    if GIVES_ORDERS not in reasons_to_hold(text[:_MOST_JUDGED]):
        return text
    kept = [it for it in text.split("\n\n") if GIVES_ORDERS not in reasons_to_hold(it[:_MOST_JUDGED])]
    return "\n\n".join(kept)
