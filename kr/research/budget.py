"""What a research may spend: a story's calls, which the database keeps for all processes (SPEC 3.4), and its time."""

import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

from kr.freshness import to_text
from kr.research.shelf import Shelf
from kr.store import ledger, requests
from kr.store.engine import Transaction
from kr.store.ledger import Reservation, SourceCall
from kr.store.requests import RequestRow
from kr.values import Value

_POLL_SECONDS = 0.1


class Payer(Value):
    """Who pays: a request of a story in a session. ``owner`` marks what this process holds."""

    request: RequestRow
    session_id: str
    story_key: str
    owner: str


class LedgerBudget:
    """Reserves before a call, charges or gives back after it: exactly ``max_calls``, or ``per_story`` less what the ledger shows.

    Without a usable database the invocation counts for itself, on top of what one that can merely be read shows.
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
        spent = self._charged_here
        if not self._is_override:
            payer = self._payer
            recorded = self._shelf.read(
                lambda tx: ledger.spent(tx, payer.session_id, payer.story_key),
                self._charged_here - self._unrecorded,
            )
            spent = recorded + self._unrecorded
        return max(0, self._limit - spent)

    def counted_in(self, tx: Transaction) -> tuple[int, int]:
        """Count the live entries, and the calls left of an invocation that has made none, in a transaction that is open."""
        entries, spent = ledger.counted(tx, self._payer.session_id, self._payer.story_key)
        return entries, self._limit if self._is_override else max(0, self._limit - spent)

    def reserve(self, *, patience: float) -> bool:
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

        def reserve(tx: Transaction) -> Reservation:
            requests.begin(tx, self._payer.request)
            return ledger.reserve(
                tx,
                session_id=self._payer.session_id,
                story_key=self._payer.story_key,
                owner=self._payer.owner,
                limit=None if self._is_override else self._limit,
                now=self._clock(),
            )

        reserved = self._shelf.write(reserve, None)
        return reserved or Reservation(outcome="granted" if self.remaining() else "exhausted")

    def settle(self, *, charged: bool, **told: Any) -> None:
        """Write what became of a call (fields of ``SourceCall``) into the ledger, and charge or give back what was held."""
        held, self._held = self._held, None
        self._charged_here += charged
        row = SourceCall(
            request_id=self._payer.request.id,
            at=to_text(self._clock()),
            session_id=self._payer.session_id,
            story_key=self._payer.story_key,
            charged=charged,
            **told,
        )

        def record(tx: Transaction) -> bool:
            requests.begin(tx, self._payer.request)
            ledger.settle(tx, held, row)
            return True

        if not self._shelf.write(record, otherwise=False):
            self._unrecorded += charged
        self._may_hold = False

    def give_back(self) -> None:
        """Give back what is held: the call was interrupted, perhaps before its reservation was noted here."""
        if self._may_hold:
            self._held, self._may_hold = None, False
            self._shelf.write(lambda tx: ledger.release_all(tx, self._payer.owner), 0)

    def renew(self) -> None:
        if self._held is not None:
            self._shelf.write(lambda tx: ledger.renew(tx, self._payer.owner, now=self._clock()), 0)


_SHARE_KEPT = 0.05
_MOST_KEPT = 5.0


class OverallDeadline:
    """Counts down from ``seconds``; a small share is kept back, so that the answer is out before the caller's own clock runs down."""

    def __init__(self, seconds: float, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._end = clock() + seconds
        self._kept = min(seconds * _SHARE_KEPT, _MOST_KEPT)

    def remaining(self) -> float:
        return max(0.0, self._end - self._kept - self._clock())

    def allows(self, timeout: float) -> float:
        """Seconds that a call may take which would like ``timeout``."""
        return min(timeout, self.remaining())
