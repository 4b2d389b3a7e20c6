"""The database as a run of research sees it: helpful, and never in the way (SPEC 3.9, error rows 3, 4 and 14)."""

import logging
from collections.abc import Callable
from typing import TypeVar

from kr.errors import StoreError
from kr.store.store import Store

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Shelf:
    """A store for one run. After its first problem it is not asked again: research goes on without it.

    ``problem`` is that first ``StoreError``, to be told in ``errors``.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.problem: StoreError | None = None

    @property
    def is_usable(self) -> bool:
        """Whether the store can still be asked."""
        return self.problem is None

    def attempt(self, action: Callable[[Store], T], otherwise: T) -> T:
        """Run ``action``, or give ``otherwise`` when the store can't serve, now or since earlier in the run."""
        if self.problem is not None:
            return otherwise
        try:
            return action(self.store)
        except StoreError as error:
            logger.warning("%s", error)
            self.problem = error
            return otherwise
