"""Steps 2 and 3 of seed 000: is there an entry that answers, and may it still be served."""

from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, NoReturn

from kr.errors import FieldError, InvalidRequest
from kr.freshness import UNKNOWN_VERSION, Limits, Verdict, judge, major_key
from kr.log import Logger
from kr.matching.frameworks import same_framework
from kr.naming import fold
from kr.store.store import Shelf, Store
from kr.values import TIERS, Entry, Match, MatchRules, Query, Related, Tier, Value, replace

if TYPE_CHECKING:
    from kr.matching.evidence import Candidate
    from kr.matching.vectors import Meant
    from kr.research.meaning import Meaning
    from kr.store.session import UnitOfWork

logger = Logger(__name__)


class Found(Value):
    """What the cache holds: the matched entry, its text, and live entries that were not taken, best first."""

    match: Match | None = None
    report: str | None = None
    related: tuple[Related, ...] = ()

    @property
    def is_hit(self) -> bool:
        return self.match is not None and self.match.entry.status == "fresh"

    @property
    def is_answered(self) -> bool:
        """Whether an entry was found that says something: a skeleton only tells that nothing was (SPEC 3.3)."""
        return self.match is not None and self.match.entry.origin != "skeleton"

    @property
    def is_unsure(self) -> bool:
        """Whether nothing answers, and something is near."""
        return not self.is_answered and bool(self.related)

    @property
    def baseline(self) -> str | None:
        """The old report that a new research stands on, if nothing better is found (SPEC 3.3)."""
        if self.match is None or not may_be_baseline(self.match.tier, self.match.entry):
            return None
        return self.report


MISS = Found()


SURE = 0.9
"""From this likelihood on the wording of a hit is kept: a doubtful one would teach mistakes."""


def is_sure(match: Match) -> bool:
    return match.likelihood is not None and match.likelihood >= SURE


def may_be_baseline(tier: Tier, entry: Entry) -> bool:
    """Whether a stale entry that matched by its topic may be what a new research stands on (SPEC 3.3)."""
    return tier in {"framework+topic+tags", "framework+topic"} and entry.origin != "skeleton"


def judge_all(
    candidates: Sequence[Entry], query: Query, limits: Limits, now: datetime
) -> dict[str, tuple[Entry, Verdict]]:
    """Judge each entry, by its id, and give it the status it has now; ``archived`` ones are no answer."""
    verdicts = ((entry, judge(entry, query.framework_version, limits, now)) for entry in candidates)
    return {entry.id: (_as_judged(entry, verdict), verdict) for entry, verdict in verdicts}


def own_majors(candidates: Sequence[Entry], version: str) -> list[Entry]:
    """Leave out what was researched for another major version of a topic that has an entry for this one (SPEC 3.3)."""
    wanted = major_key(version)
    served = {fold(it.topic) for it in candidates if major_key(it.framework_version) == wanted}
    return [
        it
        for it in candidates
        if fold(it.topic) not in served or major_key(it.framework_version) in {wanted, UNKNOWN_VERSION}
    ]


class Cache:
    """Looks entries up, and stores the marks that are due. ``more_aliases``, the project's, are read when nothing answers without."""

    def __init__(
        self,
        shelf: Shelf,
        limits: Limits,
        rules: MatchRules,
        *,
        aliases: Mapping[str, str],
        more_aliases: Callable[[], Mapping[str, str]],
        meaning: "Meaning | None",
        clock: Callable[[], datetime],
    ) -> None:
        self._shelf = shelf
        self._limits = limits
        self._rules = rules
        self._aliases = aliases
        self._more_aliases = more_aliases
        self._meaning = meaning
        self._clock = clock

    @property
    def goes_by_words(self) -> bool:
        """Whether an entry can be found by other words than its topic's (``cache_fuzzy_match``)."""
        return self._rules.fuzzy

    def look_up(self, query: Query) -> Found:
        """Find the best entry for ``query``; a dangling one is removed and counts as a miss (error row 5)."""
        found = self._shelf.attempt(lambda store: self._look_up(store, query, self._aliases), MISS)
        if found.match is not None or found.related:
            return found
        packages = self._more_aliases()
        more = {**packages, **self._aliases}
        meant = self._shelf.attempt(lambda store: _meant(store, query.framework, packages), None)
        if meant is None and not packages:
            return found
        under = query if meant is None else replace(query, framework=meant)
        return self._shelf.attempt(lambda store: self._look_up(store, under, more), found)

    def use(self, query: Query, entry_id: str) -> Found:
        """Find the entry that a request names (SPEC 3.2), whatever its status. Raises ``InvalidRequest`` for one of another framework."""
        return self._shelf.attempt(lambda store: self._use(store, query, entry_id), MISS)

    def servable(self, query: Query, related: Sequence[Related]) -> list[tuple[Entry, str]]:
        """Return those related entries that are fresh for ``query``, each with its report: what a language model may take."""

        def read(store: Store) -> list[tuple[Entry, str]]:
            with store.read() as unit:
                entries = {entry.id: entry for entry in unit.entries.some(item.id for item in related)}
                known = [entries[item.id] for item in related if item.id in entries]
                judged = judge_all(known, query, self._limits, self._clock()).values()
                fresh = [entry for entry, verdict in judged if verdict.status == "fresh"]
                reports = ((entry, store.read_report(entry, unit)) for entry in fresh)
                return [(entry, report) for entry, report in reports if report is not None]

        nothing: list[tuple[Entry, str]] = []
        return self._shelf.attempt(read, nothing)

    def take(self, query: Query, related: Related) -> Found:
        """Find a related entry that a language model took, as ``use`` does; a miss where it went meanwhile."""

        def find(store: Store) -> Found:
            with store.read() as unit:
                entry = unit.entries.get(related.id)
            found = MISS if entry is None else self._named(store, query, entry)
            if found.match is None:
                return found
            return replace(found, match=replace(found.match, likelihood=related.likelihood))

        return self._shelf.attempt(find, MISS)

    def remember(self, entry: Entry, report: str) -> None:
        """Keep the meaning of an entry that was written, where meaning decides."""
        if self._meaning is not None and self._rules.fuzzy and self._rules.mode != "seed":
            self._meaning.remember(entry, report)

    def _use(self, store: Store, query: Query, entry_id: str) -> Found:
        from kr.store.search import unknown_entry

        with store.read() as unit:
            entry = unit.entries.get(entry_id)
            if entry is None:
                _refuse(str(unknown_entry(unit, entry_id)))
        names = (entry.framework, query.framework)
        if not same_framework(*names, self._aliases) and not same_framework(*names, self._more_aliases()):
            _refuse(f"{entry.id} is about {entry.framework}, not about {query.framework}")
        return self._named(store, query, entry)

    def _named(self, store: Store, query: Query, entry: Entry) -> Found:
        from kr.matching.decide import named

        if entry.origin == "skeleton":
            return MISS
        verdict = judge(entry, query.framework_version, self._limits, self._clock())
        if verdict.status == "archived":
            verdict = Verdict("stale", verdict.reasons)
        return self._read(store, entry, verdict, Found(match=named(query, _as_judged(entry, verdict))))

    def _look_up(self, store: Store, query: Query, aliases: Mapping[str, str]) -> Found:
        with store.read() as unit:
            found = self._of_equal_topic(store, unit, query, aliases)
            if found is not None:
                return found
            from kr.research.candidates import gather

            gathered = gather(unit, query, aliases, read=lambda entry: store.read_report(entry, unit) or "")
        from kr.matching.decide import decide

        candidates = gathered.entries
        if gathered.made:
            self._shelf.write(lambda unit: _keep_keys(unit, gathered.made), None)
        judged = judge_all(candidates, query, self._limits, self._clock())
        live = [entry for entry, verdict in judged.values() if verdict.status != "archived"]
        mine = gathered.candidates(own_majors(live, query.framework_version))
        meant = self._meant(store, query, mine)
        decision = decide(query, mine, self._rules, meant=meant)
        match = decision.match
        if match is None:
            logger.info("no entry answers; %d of %s were looked at", gathered.looked_at, query.framework)
            return Found(related=decision.related)
        verdict = judged[match.entry.id][1]
        _tell(match, verdict)
        stored = next(entry for entry in candidates if entry.id == match.entry.id)
        return self._read(store, stored, verdict, Found(match=match, related=decision.related))

    def _meant(self, store: Store, query: Query, candidates: "Sequence[Candidate]") -> "Meant | None":
        if self._meaning is None:
            return None
        return self._meaning.speak(
            query, candidates, self._rules, read=lambda entry: store.read_report(entry) or ""
        )

    def _of_equal_topic(
        self, store: Store, unit: "UnitOfWork", query: Query, aliases: Mapping[str, str]
    ) -> Found | None:
        """Look for a fresh entry of this very topic, which answers whatever else there is; None: look at all of them."""
        candidates = unit.entries.of_same_topic(query.framework, query.topic, aliases)
        if not candidates:
            return None
        judged = judge_all(candidates, query, self._limits, self._clock())
        live = [entry for entry, verdict in judged.values() if verdict.status != "archived"]
        match = of_equal_topic(query, own_majors(live, query.framework_version), self._rules)
        report = store.read_report(match.entry, unit) if match is not None else None
        if match is None or report is None:
            return None
        _tell(match, judged[match.entry.id][1])
        return Found(match=match, report=report)

    def _read(self, store: Store, stored: Entry, verdict: Verdict, found: Found) -> Found:
        """Store the mark that is due, and read the report; without one there is no match."""
        is_for_all = verdict.for_major is None
        if verdict.status == "stale" and (
            stored.status == "fresh" or (is_for_all and stored.stale_major is not None)
        ):
            reasons = ", ".join(verdict.reasons)
            self._shelf.write(
                lambda unit: unit.entries.mark_stale(stored.id, reasons, major=verdict.for_major),
                otherwise=False,
            )
        report = store.read_report(stored)
        if report is None:
            logger.info("%s: there is no report to be read at %s", stored.id, stored.path)
            store.drop_lost(stored)
            return replace(found, match=None)
        return replace(found, report=report)


def _tell(match: Match, verdict: Verdict) -> None:
    logger.info(
        "%s matches by %s (topic overlap %.2f, shared tags: %s) and is %s",
        match.entry.id,
        match.tier,
        match.topic_overlap,
        ", ".join(match.shared_tags) or "none",
        ", ".join((match.entry.status, *verdict.reasons)),
    )


def _as_judged(entry: Entry, verdict: Verdict) -> Entry:
    return entry if verdict.status in {"archived", entry.status} else replace(entry, status=verdict.status)


def _meant(store: Store, framework: str, packages: Collection[str]) -> str | None:
    from kr.matching.frameworks import meant

    with store.read() as unit:
        return meant(framework, unit.entries.frameworks(), packages)


def _keep_keys(unit: "UnitOfWork", made: Sequence[tuple[Entry, Mapping[str, int]]]) -> None:
    for entry, keys in made:
        unit.terms.put(entry, keys)


def _refuse(reason: str) -> NoReturn:
    raise InvalidRequest(FieldError("config_overrides.use", f"Validation failed: {reason}"))


def of_equal_topic(query: Query, live: Sequence[Entry], rules: MatchRules) -> Match | None:
    """Return the entry that answers by its topic alone, as ``kr.matching.decide`` would; None: the others have to be looked at.

    ``live`` are judged entries of the framework; the one that was accessed last is taken.
    """
    wanted = _folded(query.topic)
    same = [
        it for it in live if it.status == "fresh" and it.origin != "skeleton" and _folded(it.topic) == wanted
    ]
    if not same:
        return None
    entry = max(sorted(same, key=lambda it: it.id), key=lambda it: it.last_accessed)
    shared = _shared_tags(query.tags, entry.tags)
    tier = TIERS[0] if shared else TIERS[1]
    # In the seed's order another topic with a shared tag goes before an equal one without.
    is_beaten = tier != TIERS[0] and (rules.mode == "seed" or rules.floor == TIERS[0])
    if is_beaten and rules.fuzzy:
        return None
    return Match(entry=entry, tier=tier, topic_overlap=1.0, shared_tags=shared, likelihood=1.0)


def _folded(topic: str) -> str:
    return " ".join(fold(topic).split())


def _shared_tags(asked: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    if asked == known or (len(asked) == 1 and asked[0] in known):
        return tuple(asked)
    from kr.matching.evidence import shared_tags

    return shared_tags(asked, known)
