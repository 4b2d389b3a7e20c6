"""One transaction's view of all tables. What a hit doesn't look at is imported when it is asked for."""

from functools import cached_property
from typing import TYPE_CHECKING

from kr.store.session import Session

if TYPE_CHECKING:
    from kr.store.archive import Archive
    from kr.store.browsing import Browsing
    from kr.store.circuits import Circuits
    from kr.store.counts import Counts
    from kr.store.entries import Entries
    from kr.store.leases import Leases
    from kr.store.ledger import Ledger
    from kr.store.lessons import Lessons
    from kr.store.libraries import Libraries
    from kr.store.meta import Meta
    from kr.store.near_misses import NearMisses
    from kr.store.requests import Requests
    from kr.store.revisions import Revisions
    from kr.store.search import Search
    from kr.store.terms import Terms
    from kr.store.upkeep import Upkeep
    from kr.store.vectors import Vectors
    from kr.store.wordings import Wordings
    from kr.store.workflows import Workflows


class Unit:
    """What happens through one unit happens together, or not at all. Don't use it after its block."""

    def __init__(self, session: Session) -> None:
        self.session = session

    @cached_property
    def entries(self) -> "Entries":
        """The live index."""
        from kr.store.entries import Entries

        return Entries(self.session)

    @cached_property
    def archive(self) -> "Archive":
        """The archive and its guard."""
        from kr.store.archive import Archive

        return Archive(self.session)

    @cached_property
    def revisions(self) -> "Revisions":
        """Earlier texts."""
        from kr.store.revisions import Revisions

        return Revisions(self.session)

    @cached_property
    def wordings(self) -> "Wordings":
        """How the needs that entries answered were worded."""
        from kr.store.wordings import Wordings

        return Wordings(self.session)

    @cached_property
    def terms(self) -> "Terms":
        """What entries are looked up by."""
        from kr.store.terms import Terms

        return Terms(self.session)

    @cached_property
    def vectors(self) -> "Vectors":
        """The needs of entries as a model of embeddings sees them."""
        from kr.store.vectors import Vectors

        return Vectors(self.session)

    @cached_property
    def search(self) -> "Search":
        """What is found by words."""
        from kr.store.search import Search

        return Search(self.session)

    @cached_property
    def browsing(self) -> "Browsing":
        """Index and archive as people look through them."""
        from kr.store.browsing import Browsing

        return Browsing(self.session)

    @cached_property
    def ledger(self) -> "Ledger":
        """The budgets."""
        from kr.store.ledger import Ledger

        return Ledger(self.session)

    @cached_property
    def lessons(self) -> "Lessons":
        """What is known of the lines of the lessons file."""
        from kr.store.lessons import Lessons

        return Lessons(self.session)

    @cached_property
    def requests(self) -> "Requests":
        """The log of requests."""
        from kr.store.requests import Requests

        return Requests(self.session)

    @cached_property
    def near_misses(self) -> "NearMisses":
        """What was near requests that nothing answered."""
        from kr.store.near_misses import NearMisses

        return NearMisses(self.session)

    @cached_property
    def leases(self) -> "Leases":
        """Who works on what."""
        from kr.store.leases import Leases

        return Leases(self.session)

    @cached_property
    def circuits(self) -> "Circuits":
        """Which sources are paused."""
        from kr.store.circuits import Circuits

        return Circuits(self.session)

    @cached_property
    def libraries(self) -> "Libraries":
        """What was learned about frameworks."""
        from kr.store.libraries import Libraries

        return Libraries(self.session)

    @cached_property
    def counts(self) -> "Counts":
        """The numbers for people."""
        from kr.store.counts import Counts

        return Counts(self.session)

    @cached_property
    def upkeep(self) -> "Upkeep":
        """What keeps the tables in order."""
        from kr.store.upkeep import Upkeep

        return Upkeep(self.session)

    @cached_property
    def workflows(self) -> "Workflows":
        """The instances of workflows."""
        from kr.store.workflows import Workflows

        return Workflows(self.session)

    @cached_property
    def meta(self) -> "Meta":
        """Facts about the knowledge base."""
        from kr.store.meta import Meta

        return Meta(self.session)
