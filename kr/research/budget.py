"""What a chain may ask, kept in the database for all processes: a story's budget (SPEC 3.4), and the circuit breaker (3.5)."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import TYPE_CHECKING

from kr.errors import SourceFailure, SourceNotAsked
from kr.research.shelf import Shelf
from kr.store.requests import RequestRow, Reservation, SourceCall
from kr.store.times import to_text
from kr.store.unit import Unit
from kr.values import Value

if TYPE_CHECKING:
    from kr.research.chain import Call

_POLL_SECONDS = 0.1


class Payer(Value):
    """Who pays: a request of a story in a session. ``owner`` marks what this process holds."""

    request: RequestRow
    session_id: str
    story_key: str
    owner: str


class LedgerBudget:
    """Reserves before a call, charges or gives back after it.

    ``max_calls`` given: the budget of this invocation is exactly that, whatever the ledger shows; what it spends
    is charged there too. Not given: ``per_story`` less what the ledger shows as charged. Without a usable
    database the invocation counts for itself, on top of what one that can merely be read shows.
    """

    def __init__(
        self,
        shelf: Shelf,
        payer: Payer,
        *,
        per_story: int,
        max_calls: int | None,
        clock: Callable[[], datetime],
    ) -> None:
        self._shelf = shelf
        self._payer = payer
        self._limit = per_story if max_calls is None else max_calls
        self._is_override = max_calls is not None
        self._clock = clock
        self._charged_here = 0
        self._unrecorded = 0
        self._held: str | None = None
        self._may_hold = False

    def remaining(self) -> int:
        """Count the calls left, as ``budget_remaining`` tells it."""
        spent = self._charged_here
        if not self._is_override:
            payer = self._payer
            recorded = self._shelf.read(
                lambda unit: unit.ledger.spent(payer.session_id, payer.story_key),
                self._charged_here - self._unrecorded,
            )
            spent = recorded + self._unrecorded
        return max(0, self._limit - spent)

    def remaining_in(self, unit: Unit) -> int:
        """Count the calls left in a transaction that is open, of an invocation that has made none."""
        if self._is_override:
            return self._limit
        return max(0, self._limit - unit.ledger.spent(self._payer.session_id, self._payer.story_key))

    def reserve(self, source: str, *, patience: float) -> bool:  # noqa: ARG002 - the protocol's parameter
        """Hold one call; wait for those that other processes hold as long as ``patience`` (seconds) lasts."""
        give_up = time.monotonic() + patience
        self._may_hold = True
        while True:
            got = self._try_to_reserve()
            if got.outcome == "granted":
                self._held = got.id
                return True
            if got.outcome == "exhausted" or time.monotonic() >= give_up:
                return False
            from kr import cancellation

            cancellation.sleep(_POLL_SECONDS)

    def _try_to_reserve(self) -> Reservation:
        if self._is_override and self._charged_here >= self._limit:
            return Reservation(outcome="exhausted")

        def reserve(unit: Unit) -> Reservation:
            unit.requests.begin(self._payer.request)
            return unit.ledger.reserve(
                session_id=self._payer.session_id,
                story_key=self._payer.story_key,
                owner=self._payer.owner,
                limit=None if self._is_override else self._limit,
                now=self._clock(),
            )

        reserved = self._shelf.write(reserve, None)
        return reserved or Reservation(outcome="granted" if self.remaining() else "exhausted")

    def settle(self, call: "Call") -> None:
        """Write the call into the ledger, and charge or give back what was held for it."""
        held, self._held = self._held, None
        self._charged_here += call.charged
        row = SourceCall(
            request_id=self._payer.request.id,
            at=to_text(self._clock()),
            source=call.source,
            outcome=call.outcome,
            session_id=self._payer.session_id,
            story_key=self._payer.story_key,
            duration_ms=call.duration_ms,
            url=call.url,
            reason=call.reason,
            charged=call.charged,
            answer_tokens=call.answer_tokens,
        )

        def record(unit: Unit) -> bool:
            unit.requests.begin(self._payer.request)
            unit.ledger.settle(held, row)
            return True

        if not self._shelf.write(record, otherwise=False):
            self._unrecorded += call.charged
        self._may_hold = False

    def give_back(self) -> None:
        """Give back what is held: the call was interrupted, perhaps before its reservation was noted here."""
        if self._may_hold:
            self._held, self._may_hold = None, False
            self._shelf.write(lambda unit: unit.ledger.release_all(self._payer.owner), 0)

    def renew(self) -> None:
        """Keep what is held from expiring; called by the heartbeat while a source is asked."""
        if self._held is not None:
            self._shelf.write(lambda unit: unit.ledger.renew(self._payer.owner, now=self._clock()), 0)


CIRCUIT_OPEN = "circuit open"


class StoredBreaker:
    """Skips a source that has kept failing, until its pause is over and one process's probe succeeds.

    ``failures`` in a row open it, 0 never does; ``pause_seconds`` is the first pause. ``probe_seconds`` is how
    long a probe may take before another process may try.
    """

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
        """Tell why ``source`` must not be asked now, or ``None``."""
        if self._failures == 0:
            return None

        if self._shelf.read(lambda unit: unit.circuits.get(source).open_until, None) is None:
            return None
        admitted = self._shelf.write(
            lambda unit: unit.circuits.admit(
                source, self._owner, now=self._clock(), probe_seconds=self._probe_seconds
            ),
            otherwise=True,
        )
        return None if admitted else CIRCUIT_OPEN

    def give_back(self, source: str) -> None:
        """The call that was admitted was not made, or was interrupted: another process may probe."""
        if self._failures and self._shelf.read(lambda unit: unit.circuits.get(source).probe_owner, None):
            self._shelf.write(lambda unit: unit.circuits.release_probe(source, self._owner), None)

    def note(self, source: str, failure: SourceFailure | None) -> None:
        """Remember an answer (``None``), or a failure; only one that is the source's own fault counts.

        Of a source that was not asked nothing new is known: its probe, if this was one, is another's to make.
        """
        if self._failures == 0:
            return
        if isinstance(failure, SourceNotAsked):
            self.give_back(source)
        elif failure is not None and failure.is_fault:
            self._count(source, failure)
        elif self._shelf.read(lambda unit: unit.circuits.get(source).failures, 0):
            # It works: that it does not know a framework is no failure of the source.
            self._shelf.write(lambda unit: unit.circuits.record_success(source), None)

    def _count(self, source: str, failure: SourceFailure) -> None:
        self._shelf.write(
            lambda unit: unit.circuits.record_failure(
                source,
                failure.reason,
                now=self._clock(),
                failures=self._failures,
                pause_seconds=self._pause_seconds,
                retry_after=failure.retry_after,
            ),
            None,
        )
