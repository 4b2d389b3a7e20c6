"""Step 5 of seed 000: the sources are asked in order, within the budget, until one covers the question.

The chain decides and counts; who keeps the budget (`Budget`) and who remembers broken sources (`Breaker`)
are given to it, so that a database that can't serve changes neither the order nor the rules.
"""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from kr import cancellation
from kr.errors import SourceFailure, SourceTimeout
from kr.reports.choosing import covers_question
from kr.reports.passages import read_answer
from kr.research.run import OverallDeadline
from kr.sources.base import Ask, Source
from kr.text.counting import tokens_of
from kr.values import Answer, Consulted, Learned, SourceOutcome

logger = logging.getLogger(__name__)

_SHORTEST_CALL = 0.05

NOTHING_ALLOWED = "No source was asked: max_calls is 0"
_GAP = "its answer does not cover the question"
EXHAUSTED = "Research budget exhausted for story {story_key}, continuing with available context"
"""The log line of seed 000, step 5.3, as it stands."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One source that was asked, as the ledger keeps it."""

    source: str
    outcome: SourceOutcome
    charged: bool
    duration_ms: int
    url: str | None
    reason: str | None
    answer_tokens: int | None = None
    """How much there was to read in the answer (characters / 4)."""


class Budget(Protocol):
    """Keeps the calls of a story (SPEC 3.4)."""

    def reserve(self, source: str, *, patience: float) -> bool:
        """Hold one call for ``source``, or tell that none is left.

        May wait up to ``patience`` seconds for calls that other processes hold and may yet give back.
        """

    def settle(self, call: Call) -> None:
        """Note what became of a call: charge what was held, or give it back."""

    def give_back(self) -> None:
        """Give back what is held, if anything: the call was interrupted."""


class Breaker(Protocol):
    """Remembers which sources keep failing (SPEC 3.5)."""

    def refusal(self, source: str) -> str | None:
        """Tell why ``source`` must not be asked now, or ``None``."""

    def note(self, source: str, failure: SourceFailure | None) -> None:
        """Remember that ``source`` answered (``None``) or failed."""

    def give_back(self, source: str) -> None:
        """Forget that ``source`` was about to be asked: the call was interrupted."""


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
    """What the sources gave. ``ended`` tells what stopped the chain before it was through.

    ``gap`` is the first answer that does not cover the question (SPEC 3.7): it was charged, and the next source is
    asked all the same.
    """

    answer: Answer | None = None
    gap: Answer | None = None
    consulted: list[Consulted] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    ended: Literal["budget", "deadline"] | None = None
    learned: Learned = field(default_factory=Learned)

    @property
    def is_settled(self) -> bool:
        """Whether no further source is to be asked."""
        return self.answer is not None or self.ended is not None


class Chain:
    """Asks sources for one request."""

    def __init__(
        self,
        *,
        budget: Budget,
        breaker: Breaker,
        progress: Progress,
        deadline: OverallDeadline,
        timeout: float,
    ) -> None:
        self._budget = budget
        self._breaker = breaker
        self._progress = progress
        self._deadline = deadline
        self._timeout = timeout

    def run(self, sources: Sequence[Source], fallback: Source | None, ask: Ask) -> Gathered:
        """Ask ``sources`` in order, then ``fallback`` unless it was among them (seed 000, step 5.2).

        What was configured but not reached is ``skipped``; the fallback stands in the answer when it was asked.
        """
        gathered = Gathered()
        for source in sources:
            if gathered.is_settled or not self.ask_one(source, ask, gathered):
                gathered.consulted.append(Consulted(source=source.name, status="skipped"))
            ask = replace(ask, repository=ask.repository or gathered.learned.repository)
        if fallback and not gathered.is_settled and fallback.name not in {source.name for source in sources}:
            self.ask_one(fallback, ask, gathered)
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
        if not read_answer(answer).units:
            raise SourceFailure("its answer has no text", is_fault=False)
        return answer

    def _may_ask(self, source: Source, gathered: Gathered) -> bool:
        if self._deadline.remaining() <= 0:
            gathered.ended = "deadline"
            gathered.notes.append(f"{source.name}: not asked: the overall deadline has passed")
            return False
        if source.is_charged and not self._budget.reserve(source.name, patience=self._deadline.remaining()):
            gathered.ended = "budget"
            return False
        return True

    def _add_answer(
        self, source: Source, answer: Answer, seconds: float, gathered: Gathered, ask: Ask
    ) -> None:
        passages = len(answer.passages)
        logger.info("%s answered in %.1f s: %d passages, %s", source.name, seconds, passages, answer.url)
        outcome: SourceOutcome = "success"
        if covers_question(ask.query, answer):
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
            Call(
                source=source.name,
                outcome=outcome,
                charged=source.is_charged and outcome == "success",
                duration_ms=round(seconds * 1000),
                url=url,
                reason=reason,
                answer_tokens=answer_tokens,
            )
        )
