"""A store for one run of research: helpful, and never in the way (F1, error rows 3, 4 and 14)."""

import logging
from collections.abc import Callable
from typing import TypeVar

from kr.errors import StoreBusy, StoreCorrupt, StoreError, StoreTooNew, StoreUnwritable
from kr.store.engine import ALONE, Store, Transaction, retried

T = TypeVar("T")

logger = logging.getLogger(__name__)

HIT_TIMEOUT = 0.2
"""Seconds that a hit waits for a writer at most."""

_LASTING = (StoreBusy, StoreCorrupt, StoreTooNew)
"""Problems that the next transaction would meet again, perhaps after another long wait."""


class Shelf:
    """Keeps the first ``problem`` of a store, which is reported once; research goes on without what could not be had."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_closed = False
        self._is_read_only = False
        self._reported: set[str] = set()
        self.problem: StoreError | None = None

    @property
    def can_write(self) -> bool:
        return not self._is_closed and not self._is_read_only

    def attempt(self, action: Callable[[Store], T], otherwise: T) -> T:
        """Run ``action``, or give ``otherwise`` where the store can't serve, now or since earlier in the run."""
        if self._is_closed:
            return otherwise
        try:
            return action(self._store)
        except StoreError as error:
            self.note(error)
            return otherwise

    def read(self, action: Callable[[Transaction], T], otherwise: T) -> T:
        def run(store: Store) -> T:
            with store.read() as tx:
                return action(tx)

        return self.attempt(run, otherwise)

    def write(
        self,
        action: Callable[[Transaction], T],
        otherwise: T,
        *,
        timeout: float | None = None,
        scope: str | None = ALONE,
    ) -> T:
        """Write in one transaction. After a ``timeout`` in seconds the run goes on without writing."""
        if not self.can_write:
            return otherwise

        @retried
        def run() -> T:
            with self._store.write(timeout=timeout, scope=scope) as tx:
                return action(tx)

        try:
            return run()
        except StoreBusy as error:
            if timeout is None:
                self.note(error)
            else:
                logger.warning("%s", error)
                self._is_read_only = True
        except StoreError as error:
            self.note(error)
        return otherwise

    def note(self, error: StoreError) -> None:
        if str(error) not in self._reported:
            logger.warning("%s", error)
        self._reported.add(str(error))
        self.problem = self.problem or error
        self._is_closed = self._is_closed or isinstance(error, _LASTING)
        self._is_read_only = self._is_read_only or isinstance(error, StoreUnwritable)
