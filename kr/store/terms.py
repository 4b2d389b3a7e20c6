"""What live entries are looked up by: table ``entry_terms`` (SPEC 3.2; ``kr.matching.keys`` makes them)."""

from collections.abc import Iterable, Mapping
from typing import Any

import sqlalchemy as sa

from kr.matching.keys import NEED, VERSION, keys_of
from kr.store.keys import framework_key
from kr.store.rows import Need
from kr.store.schema import entries, entry_terms
from kr.values import Entry

Keys = dict[str, int]


class Terms:
    """Keeps the keys of entries in the caller's transaction. They go with their entry's row."""

    def __init__(self, connection: sa.Connection) -> None:
        self._connection = connection

    def put(self, entry: Entry, keys: Mapping[str, int]) -> None:
        """Keep the keys of a live entry in place of those it had; one that is gone meanwhile needs none."""
        live = sa.update(entries).where(entries.c.id == entry.id).values(keys_version=VERSION)
        if not self._connection.execute(live).rowcount:
            return
        self._connection.execute(sa.delete(entry_terms).where(entry_terms.c.entry_id == entry.id))
        framework = framework_key(entry.framework)
        rows = [
            {"framework_key": framework, "term": term, "entry_id": entry.id, "fields": places}
            for term, places in keys.items()
        ]
        self._connection.execute(sa.insert(entry_terms), rows)

    def make(self, entry: Entry, wordings: Iterable[Need], report: str) -> None:
        """Make the keys of a live entry and keep them."""
        own = (entry.topic, entry.tags, entry.question)
        self.put(entry, keys_of(own, wordings, report))

    def holding(self, framework_keys: Iterable[str], terms: Iterable[str]) -> dict[str, Keys]:
        """Return the entries of the frameworks that have some of the terms, by id, with where these stand."""
        wanted = sa.select(entry_terms.c.entry_id, entry_terms.c.term, entry_terms.c.fields).where(
            entry_terms.c.framework_key.in_(list(framework_keys)), entry_terms.c.term.in_(list(terms))
        )
        return self._grouped(wanted)

    def needs(self, entry_ids: Iterable[str]) -> dict[str, Keys]:
        """Return the keys of the entries' needs, by id: what only their reports have is left out."""
        wanted = sa.select(entry_terms.c.entry_id, entry_terms.c.term, entry_terms.c.fields).where(
            entry_terms.c.entry_id.in_(list(entry_ids)), entry_terms.c.fields.op("&")(NEED) != 0
        )
        return self._grouped(wanted)

    def _grouped(self, wanted: sa.Select[Any]) -> dict[str, Keys]:
        found: dict[str, Keys] = {}
        for entry_id, term, places in self._connection.execute(wanted):
            found.setdefault(entry_id, {})[term] = places
        return found
