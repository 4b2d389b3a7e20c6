"""What processes share while they research: one research of a question at a time, the calls of a story, sources that are left alone.

A call is reserved in the database before it is made, then charged or given back, so that parallel agents on one story never
overspend. A circuit breaker, shared through the database, leaves a source alone that keeps failing.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Literal

from kr import cancellation
from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.frameworks import framework_key
from kr.guard import gives_orders
from kr.models import LOCAL_DOCS, Learned, SourceAttempt, SourceOutcome
from kr.report import split
from kr.research.llm import Author
from kr.research.run import LEAVE_SECONDS, ResearchRun
from kr.sources.base import Answer, Ask, Source
from kr.store import ledger, lookup
from kr.store.engine import Transaction
from kr.store.ledger import Outcome
from kr.text import fold, tokens_of
from kr.times import major_key, to_text

logger = logging.getLogger(__name__)

_LEASE_SECONDS = 8.0
"""How long a lease outlives its holder: the others take over after it."""
_BEAT_SECONDS = 2.0
_POLL_SECONDS = 0.1
_MOST_JUDGED = 200_000
"""Characters of a source's text that are judged: an excerpt shows a few thousand."""


@contextmanager
def lease(run: ResearchRun) -> Iterator[bool]:
    """Hold the right to research a question; yields whether another held it before. Without a database there is none.

    While the block runs, the lease and what the request has reserved are renewed.
    """
    key, progress, stop = lease_key(run), run.service.progress, threading.Event()

    def acquire(tx: Transaction) -> bool:
        ledger.renew(tx, run.id, now=run.clock())
        return ledger.acquire_lease(tx, key, run.id, now=run.clock(), ttl=_LEASE_SECONDS)

    def beat() -> None:
        while not stop.wait(_BEAT_SECONDS):
            run.write(acquire, otherwise=True)

    beating = threading.Thread(target=beat, name="kr-heartbeat", daemon=True)
    patience: float | None = None
    try:  # an interrupt may strike when the lease is held and nobody knows yet
        is_ours = run.write(acquire, otherwise=True)
        has_waited = not is_ours
        if has_waited:
            progress("waiting for another process that researches the same")
            try:
                while not is_ours and run.time_left() > 0:
                    cancellation.sleep(_POLL_SECONDS)
                    is_ours = run.write(acquire, otherwise=True)
            finally:
                progress("")
        beating.start()
        yield has_waited
    except BaseException:
        patience = LEAVE_SECONDS
        raise
    finally:
        stop.set()
        if beating.ident is not None:
            beating.join(timeout=patience or _BEAT_SECONDS)
        run.write(lambda tx: ledger.release_lease(tx, key, run.id), otherwise=False, timeout=patience)


def lease_key(run: ResearchRun) -> str:
    """Name the report that a query would make: framework, topic and major version, as a digest."""
    query = run.query
    parts = (framework_key(query.framework), fold(query.topic), major_key(query.framework_version))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Chain:
    """Asks the sources in order, within the budget, until one covers the question.

    The budget is exactly ``max_calls``, or the story's less what the ledger shows. ``gap`` is the first answer that does not
    cover the question, ``ended`` what stopped the chain.
    """

    def __init__(self, run: ResearchRun, author: Author) -> None:
        self.author = author
        self.answer: Answer | None = None
        self.gap: Answer | None = None
        self.attempts: list[SourceAttempt] = []
        self.ended: Literal["budget", "deadline"] | None = None
        self.learned: list[Learned] = []
        self._run = run
        self._held: str | None = None

    @property
    def is_answered(self) -> bool:
        """Whether a source of the chain covered the question: installed documentation is none."""
        return self.answer is not None and self.answer.source != LOCAL_DOCS

    def ask_in_order(self, sources: list[Source], spare: list[Source], ask: Ask) -> None:
        """Ask ``sources``, then what is to ``spare`` where none of them answers: a source gets its share of the time that is left."""
        ask = replace(ask, learn=self.learned.append)
        for at, source in enumerate([*sources, *spare]):
            ask = replace(ask, known=self.learned[-1] if self.learned else ask.known)
            share = len(sources) + len(spare) - at
            is_out = self.ended == "deadline" or (self.ended == "budget" and source.is_charged)
            try:
                is_asked = self.answer is None and not is_out and self._ask(source, ask, share)
            except BaseException:
                self.give_back()
                raise
            if not is_asked and at < len(sources):
                self.attempts.append(SourceAttempt(source=source.name, status="skipped"))

    def _ask(self, source: Source, ask: Ask, share: int) -> bool:
        """Ask one source, which may take 1/``share`` of the time left. False when it may not be asked, which adds nothing."""
        cancellation.check()
        run, name, started = self._run, source.name, time.monotonic()
        if run.time_left() <= 0:
            self.ended = "deadline"
            run.notes.append(f"{name}: not asked: the overall deadline has passed")
            return False
        if source.is_charged and not self.reserve():
            self.ended = "budget"
            return False
        circuit = run.read(lambda tx: ledger.circuit(tx, name), None)
        until = circuit and circuit["open_until"]
        if until and run.config.circuit_breaker.failures and to_text(run.clock()) < until:
            self._record_call(source, "unavailable", started, reason="circuit open")
            return True
        logger.info("asking %s", name)
        run.service.progress(f"asking {name}")
        try:
            answer = _cleaned(source.ask(ask, timeout=min(run.timeout, run.time_left() / share)))
        except SourceFailure as failure:
            cancellation.check()  # then it was broken off, and is not to blame
            if isinstance(failure, SourceNotAsked) and not source.is_charged:
                return False  # a folder that is about another framework
            self._note(name, failure)
            is_late = isinstance(failure, SourceTimeout)
            self._record_call(source, "timeout" if is_late else "unavailable", started, reason=failure.reason)
            return True
        finally:
            run.service.progress("")
        if circuit is not None:  # it works: that it does not know a framework is no failure of the source
            run.write(lambda tx: ledger.record_success(tx, name), None)
        if self.author.write_if_covered(answer):
            self.answer = replace(answer, is_gap=False)
            self._record_call(source, "success", started, answer=answer)
            return True
        self.gap = self.gap or replace(answer, is_gap=True)
        # A charged source has answered; a look into files of this machine without a match is unavailable.
        outcome: SourceOutcome = "success" if source.is_charged else "unavailable"
        reason = "its answer does not cover the question"
        self._record_call(source, outcome, started, answer=answer, reason=reason)
        return True

    # --- the budget

    def reserve(self) -> bool:
        """Hold one call; while other processes hold the rest, wait for them as long as there is time.

        Without a usable database the invocation counts for itself, on top of what one that can merely be read shows.
        """
        run, story = self._run, self._run.request
        is_own = run.overrides.max_calls is not None

        def reserve(tx: Transaction) -> tuple[Outcome, str | None]:
            lookup.begin_request(tx, run.row("failure"))
            limit = None if is_own else run.call_limit
            return ledger.reserve(
                tx, story.session_id, story.story_key, owner=run.id, limit=limit, now=run.clock()
            )

        while not is_own or run.charged < run.call_limit:
            answer = run.write(reserve, None)
            if answer is None:
                here = run.charged - run.unrecorded
                spent = run.read(lambda tx: lookup.spent(tx, story.session_id, story.story_key), here)
                return run.calls_left(spent) > 0
            outcome, self._held = answer
            if outcome == "granted":
                return True
            if outcome == "exhausted" or run.time_left() <= 0:
                return False
            cancellation.sleep(_POLL_SECONDS)
        return False

    def give_back(self) -> None:
        """Give back what is held: the call was interrupted, perhaps before its reservation was noted here."""
        self._held = None
        self._run.write(lambda tx: ledger.release_all(tx, self._run.id), 0, timeout=LEAVE_SECONDS)

    def _record_call(
        self,
        source: Source,
        outcome: SourceOutcome,
        started: float,
        *,
        answer: Answer | None = None,
        reason: str | None = None,
    ) -> None:
        """Write what became of a call into the ledger; charge or give back what was held."""
        run, took = self._run, time.monotonic() - started
        url = answer.url if answer else None
        logger.info("%s: %s after %.1f s: %s", source.name, outcome, took, reason or url)
        self.attempts.append(SourceAttempt(source=source.name, status=outcome, url=url))
        if reason is not None:
            run.notes.append(f"{source.name}: {reason}")
        is_charged = answer is not None and source.is_charged
        run.charged += is_charged
        call = {
            "request_id": run.id,
            "at": to_text(run.clock()),
            "source": source.name,
            "outcome": outcome,
            "session_id": run.request.session_id,
            "story_key": run.request.story_key,
            "duration_ms": round(took * 1000),
            "url": url,
            "reason": reason,
            "charged": is_charged,
            "answer_tokens": sum(tokens_of(it.text) for it in answer.passages) if answer else None,
        }

        def record(tx: Transaction) -> bool:
            lookup.begin_request(tx, run.row("failure"))
            ledger.record_call(tx, self._held, call)
            return True

        if not run.write(record, otherwise=False):
            run.unrecorded += is_charged
        self._held = None

    def _note(self, name: str, failure: SourceFailure) -> None:
        """Remember a failure; only the source's own fault counts. That it was not asked says nothing."""
        run, limits, now = self._run, self._run.config.circuit_breaker, self._run.clock()
        if failure.is_fault:
            run.write(
                lambda tx: ledger.record_failure(
                    tx,
                    name,
                    failure.reason,
                    now=now,
                    failures=limits.failures,
                    pause_seconds=limits.pause_seconds,
                    retry_after=failure.retry_after,
                ),
                None,
            )
        elif not isinstance(failure, SourceNotAsked):  # it answered
            run.write(lambda tx: ledger.record_success(tx, name), None)


def _cleaned(answer: Answer) -> Answer:
    """Leave out the paragraphs that give orders to the agent that reads them: no documentation does. Raises where no text is left."""
    passages = tuple(replace(it, text=_without_orders(it.text)) for it in answer.passages)
    if not any(split(passage.text) for passage in passages):
        raise SourceFailure("its answer has no text", is_fault=False)
    return replace(answer, passages=passages)


def _without_orders(text: str) -> str:
    if not gives_orders(text[:_MOST_JUDGED]):
        return text
    kept = [it for it in text.split("\n\n") if not gives_orders(it[:_MOST_JUDGED])]
    return "\n\n".join(kept)
