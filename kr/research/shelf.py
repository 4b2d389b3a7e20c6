"""The database as a run of research sees it: helpful, and never in the way (SPEC 3.9, error rows 3, 4 and 14)."""

from collections.abc import Callable
from typing import TypeVar

from kr.errors import StoreBusy, StoreCorrupt, StoreError, StoreTooNew, StoreUnwritable
from kr.log import Logger
from kr.store.store import Store
from kr.store.unit import Unit

logger = Logger(__name__)

T = TypeVar("T")

_LASTING = (StoreBusy, StoreCorrupt, StoreTooNew)
"""Problems that the next transaction would meet again, perhaps after another long wait."""


class Shelf:
    """A store for one run: a problem is told once, and research goes on without what could not be had.

    ``problem`` is the first ``StoreError`` of the run, to be told in ``errors``.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._is_closed = False
        self._is_read_only = False
        self._told: set[str] = set()
        self.problem: StoreError | None = None

    @property
    def can_write(self) -> bool:
        """Whether it makes sense to write something now."""
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

    def read(self, action: Callable[[Unit], T], otherwise: T) -> T:
        """Run ``action`` on a snapshot."""

        def run(store: Store) -> T:
            with store.read() as unit:
                return action(unit)

        return self.attempt(run, otherwise)

    def write(self, action: Callable[[Unit], T], otherwise: T) -> T:
        """Run ``action`` in a transaction of its own."""
        if self._is_read_only:
            return otherwise

        def run(store: Store) -> T:
            with store.write() as unit:
                return action(unit)

        return self.attempt(run, otherwise)

    def note(self, error: StoreError) -> None:
        """Remember a problem that arose elsewhere with the same store."""
        if str(error) not in self._told:
            logger.warning("%s", error)
        self._told.add(str(error))
        self.problem = self.problem or error
        self._is_closed = self._is_closed or isinstance(error, _LASTING)
        self._is_read_only = self._is_read_only or isinstance(error, StoreUnwritable)


class ReadOnlyShelf(Shelf):
    """A store that is read without a trace (``Store.read_untouched``): what would be written is not."""

    def __init__(self, store: Store) -> None:
        super().__init__(store)
        self._is_read_only = True

    def read(self, action: Callable[[Unit], T], otherwise: T) -> T:
        """Run ``action`` on a snapshot; it may be called again."""
        found = self.attempt(lambda store: store.read_untouched(action), None)
        return otherwise if found is None else found
