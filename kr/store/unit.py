"""One transaction's view of all tables. What a hit doesn't look at is imported when it is asked for."""

from __future__ import annotations  # a hit does not evaluate seventeen types

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Generic, TypeVar

from kr.store.session import Meta, Session

if TYPE_CHECKING:
    from kr.store.archive import Archive
    from kr.store.counts import Counts
    from kr.store.entries import Entries
    from kr.store.leases import Leases
    from kr.store.lessons import Lessons
    from kr.store.requests import Ledger, NearMisses, Requests
    from kr.store.search import Search
    from kr.store.sources import Circuits, Libraries
    from kr.store.terms import Terms, Vectors
    from kr.store.texts import Revisions
    from kr.store.wordings import Wordings
    from kr.store.workflows import Workflows

Part = TypeVar("Part")


class _Part(Generic[Part]):
    """An attribute that is made of the session when it is first looked at, from a class named ``module.Class``."""

    def __init__(self, place: str) -> None:
        self._module, _, self._class = place.partition(".")
        self._kind: Callable[[Session], Part] | None = None

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, unit: Unit, owner: type) -> Part:
        if self._kind is None:
            self._kind = getattr(import_module(f"kr.store.{self._module}"), self._class)
        made = unit.__dict__[self._name] = self._kind(unit.session)
        return made


class Unit:
    """What happens through one unit happens together, or not at all. Don't use it after its block."""

    def __init__(self, session: Session) -> None:
        self.session = session

    archive: _Part[Archive] = _Part("archive.Archive")
    circuits: _Part[Circuits] = _Part("sources.Circuits")
    counts: _Part[Counts] = _Part("counts.Counts")
    entries: _Part[Entries] = _Part("entries.Entries")
    leases: _Part[Leases] = _Part("leases.Leases")
    ledger: _Part[Ledger] = _Part("requests.Ledger")
    lessons: _Part[Lessons] = _Part("lessons.Lessons")
    libraries: _Part[Libraries] = _Part("sources.Libraries")
    meta: _Part[Meta] = _Part("session.Meta")
    near_misses: _Part[NearMisses] = _Part("requests.NearMisses")
    requests: _Part[Requests] = _Part("requests.Requests")
    revisions: _Part[Revisions] = _Part("texts.Revisions")
    search: _Part[Search] = _Part("search.Search")
    terms: _Part[Terms] = _Part("terms.Terms")
    vectors: _Part[Vectors] = _Part("terms.Vectors")
    wordings: _Part[Wordings] = _Part("wordings.Wordings")
    workflows: _Part[Workflows] = _Part("workflows.Workflows")
