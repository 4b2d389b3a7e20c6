"""The circuit breaker of the sources, shared by all processes through the database (SPEC 3.5)."""

from collections.abc import Callable
from datetime import datetime

from kr.errors import SourceFailure, SourceNotAsked
from kr.research.shelf import Shelf

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
