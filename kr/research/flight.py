"""Single-flight: identical questions at the same moment make one research (SPEC 3.5).

A lease in the database says who is researching a question. Others wait for it to be given back, or to expire
because its holder died, and then look at the cache again before they research themselves.
"""

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime

from kr import cancellation
from kr.freshness import major_key
from kr.matching.frameworks import canonical
from kr.naming import fold
from kr.research.chain import Progress
from kr.research.run import OverallDeadline
from kr.store.store import Shelf
from kr.values import Query

logger = logging.getLogger(__name__)

LEASE_SECONDS = 8.0
"""How long a lease outlives its holder: the others take over after it."""

_BEAT_SECONDS = 2.0
_POLL_SECONDS = 0.1


def flight_key(query: Query) -> str:
    """Name the report that a query would make: framework, topic and major version, as a digest."""
    parts = (canonical(query.framework), fold(query.topic), major_key(query.framework_version))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@contextmanager
def single_flight(
    shelf: Shelf,
    query: Query,
    *,
    owner: str,
    deadline: OverallDeadline,
    progress: Progress,
    clock: Callable[[], datetime],
) -> Iterator[bool]:
    """Hold the lease for ``query`` within the block; yields whether another process held it before.

    Without a usable database, or when the holder outlasts the deadline, the block runs without a lease.
    """
    key = flight_key(query)

    def acquire() -> bool:
        return shelf.write(
            lambda unit: unit.leases.acquire(key, owner, now=clock(), ttl=LEASE_SECONDS), otherwise=True
        )

    try:  # an interrupt may strike when the lease is held and nobody knows yet
        is_ours = acquire()
        waited = not is_ours
        if waited:
            logger.info("another process is researching this question; waiting for its report")
            progress.waiting()
            try:
                while not is_ours and deadline.remaining() > 0:
                    cancellation.sleep(_POLL_SECONDS)
                    is_ours = acquire()
            finally:
                progress.done()
        yield waited
    finally:
        shelf.write(lambda unit: unit.leases.release(key, owner), otherwise=False)


def renew_lease(shelf: Shelf, query: Query, *, owner: str, clock: Callable[[], datetime]) -> None:
    """Keep the lease from expiring."""
    key = flight_key(query)
    shelf.write(lambda unit: unit.leases.renew(key, owner, now=clock(), ttl=LEASE_SECONDS), otherwise=False)


@contextmanager
def heartbeat(*beats: Callable[[], None]) -> Iterator[None]:
    """Call every one of ``beats`` every two seconds, in a thread, while the block runs."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(_BEAT_SECONDS):
            for beat in beats:
                beat()

    thread = threading.Thread(target=run, name="kr-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=_BEAT_SECONDS)
