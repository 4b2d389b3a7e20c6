"""The circuit breaker of the sources, shared by all processes through the database (SPEC 3.5)."""

from collections.abc import Callable
from datetime import datetime

from kr.errors import SourceFailure
from kr.research.shelf import Shelf
from kr.store.store import Store

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

        def admit(store: Store) -> bool:
            with store.read() as unit:
                if unit.circuits.get(source).open_until is None:
                    return True
            with store.write() as unit:
                return unit.circuits.admit(
                    source, self._owner, now=self._clock(), probe_seconds=self._probe_seconds
                )

        return None if self._shelf.attempt(admit, otherwise=True) else CIRCUIT_OPEN

    def note(self, source: str, failure: SourceFailure | None) -> None:
        """Remember an answer (``None``), or a failure that is the source's own fault."""
        if self._failures == 0:
            return

        def write(store: Store) -> None:
            if failure is None or not failure.is_fault:
                with store.read() as unit:
                    circuit = unit.circuits.get(source)
                if not circuit.failures and circuit.open_until is None:
                    return
            with store.write() as unit:
                if failure is None or not failure.is_fault:
                    # It works: that it does not know a framework is no failure of the source.
                    unit.circuits.record_success(source)
                else:
                    unit.circuits.record_failure(
                        source,
                        failure.reason,
                        now=self._clock(),
                        failures=self._failures,
                        pause_seconds=self._pause_seconds,
                        retry_after=failure.retry_after,
                    )

        self._shelf.attempt(write, None)
