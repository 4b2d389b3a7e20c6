"""The entries that a request is held against, with their keys (SPEC 3.2; HIT: keys at write time).

The best twenty of a framework are chosen by the terms that they share with the request; the evidence is worked out for
these alone. Entries whose keys are not made yet are read whole, and their keys given back to be kept.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from kr.matching.evidence import Candidate, asked_of
from kr.matching.frameworks import lookup_keys
from kr.matching.rarity import rarity
from kr.matching.terms import NEED, VERSION, keys_of
from kr.values import Entry, NamedTuple, Query

if TYPE_CHECKING:
    from kr.store.session import UnitOfWork

MOST = 20
_IN_REPORT = 0.6
"""What a term that only the report has counts for, beside one that stands in the entry's need."""
_WHOLE = 100.0
"""What the very topic counts for: such an entry is always among the best."""

Keys = dict[str, int]


class Gathered(NamedTuple):
    """``entries`` are those of the framework that share most with the request, ``best`` their keys by id.

    ``looked_at`` is how many the framework has. ``made`` are keys that were still to be made, with their entries: they are to be kept.
    """

    entries: list[Entry]
    best: Mapping[str, Mapping[str, int]]
    made: list[tuple[Entry, Keys]]
    looked_at: int

    def candidates(self, live: Sequence[Entry]) -> list[Candidate]:
        """Return some of the entries, as the caller has judged them, with their keys."""
        return [Candidate(entry, self.best[entry.id]) for entry in live]


def gather(
    unit: "UnitOfWork",
    query: Query,
    aliases: Mapping[str, str],
    *,
    read: Callable[[Entry], str],
    most: int | None = MOST,
) -> Gathered:
    """Read a framework's entries and the keys asked for. ``read`` gives an entry's report; ``most=None``: all count as the best."""
    asked = asked_of(query)
    wanted = [*asked.all, asked.whole, asked.wording]
    versions = unit.entries.ids(query.framework, aliases)
    keys = unit.terms.holding(lookup_keys(query.framework, aliases), wanted)
    made = _make(unit, [entry_id for entry_id, version in versions.items() if version != VERSION], read)
    keys.update({entry.id: found for entry, found in made})
    ids = sorted(versions, key=lambda entry_id: -_closeness(keys.get(entry_id, {}), wanted))
    best = {entry_id: keys.get(entry_id, {}) for entry_id in ids[:most]}
    for entry_id, need in unit.terms.needs(best).items():
        best[entry_id] = need | best[entry_id]
    return Gathered(unit.entries.some(best), best, made, len(versions))


def _make(unit: "UnitOfWork", due: Sequence[str], read: Callable[[Entry], str]) -> list[tuple[Entry, Keys]]:
    if not due:
        return []
    wordings = unit.wordings.of(due)
    made = []
    for entry in unit.entries.some(due):
        said = ((it.topic, it.tags, it.question) for it in wordings.get(entry.id, ()))
        made.append((entry, keys_of((entry.topic, entry.tags, entry.question), said, read(entry))))
    return made


def _closeness(keys: Mapping[str, int], wanted: Sequence[str]) -> float:
    found = 0.0
    for term in wanted:
        places = keys.get(term, 0)
        if places:
            says = _WHOLE if term.startswith("=") else rarity(term).rarity
            found += says if places & NEED else says * _IN_REPORT
    return found
