"""Which entry is served, and in which order the others are offered. Pure: values with reasons out.

kr answers by itself only on an exact match: the same topic, a known wording, the same keywords in the same order. Everything else is a
ranked list, and the asker chooses.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import lru_cache
from math import log1p
from typing import TYPE_CHECKING, Literal

from kr.models import (
    NO_RATINGS,
    PLACEHOLDER,
    TIERS,
    Confidence,
    Entry,
    EntryStatus,
    Match,
    Query,
    Ratings,
    Related,
    ResearchResults,
    Tier,
)
from kr.text import (
    DISTINGUISHING_WORDS,
    contraries,
    fold,
    identifiers,
    keywords,
    search_words,
    stem,
    summary_of,
    tag_key,
    tokens,
)
from kr.times import UNKNOWN_VERSION, major_key, oldest_live, parse_time, same_major

if TYPE_CHECKING:
    from kr.settings.model import KnowledgeResearch

SAME_TOPIC = 0.70
"""From this share of common keywords on two topics match (F1, step 2)."""
FEW, MORE = 3, 5
"""How many candidates are offered, and how many of a framework that has more than ``MANY`` entries."""
MANY = 20
_FINDING = 3.0
"""What a finding is worth beside an excerpt that fits as well: somebody proved it."""
_WORKED, _INSTALLED = 1.0, -1.0
_NEAR, _SHARE_OF_WORDS = 2, 0.6
_OF_BEST = 0.5
_SUMMARY_CHARACTERS = 200
_OWN_CONFIDENCE = re.compile(r"^(\*\*Confidence:\*\* )(?:high|medium|low)$", re.MULTILINE)
WITHDRAWN = -1000.0
"""The score of an entry that was rated wrong, or what is below it: it stands last."""


# --- whether an entry may still be served (F1, step 2, actions 3 and 4)

Freshness = Literal["fresh", "stale", "archived"]

MARKED = "marked stale"


@dataclass(frozen=True, slots=True)
class Verdict:
    """``archived`` is a miss. ``for_major``: only the major that was asked for speaks against it, so that its own may be served.

    ``needs_marking``: the entry's row does not have this mark yet.
    """

    status: Freshness
    reasons: tuple[str, ...]
    for_major: str | None = None
    needs_marking: bool = False

    @property
    def of_other_version(self) -> str | None:
        """Say so where an entry is about another version than what was asked for."""
        return next((it for it in self.reasons if it.startswith("version ")), None)


def judge(entry: Entry, version: str, rules: "KnowledgeResearch", now: datetime) -> Verdict:
    """Judge an entry for a request for ``version`` at ``now``, which carries a time zone (rule 3.3).

    Ages are whole days between UTC dates, and every limit means "more than". An unreadable date makes it stale.
    """
    now = now.astimezone(UTC)
    accessed, end = parse_time(entry.last_accessed), parse_time(entry.fresh_until or "")
    longest = min(rules.cache_ttl_days, rules.archive_after_days)
    is_other_version = not same_major(entry.framework_version, version)
    found = (
        _mark(entry),
        f"version {entry.framework_version}, asked for {version}" if is_other_version else None,
        _over("last accessed", entry.last_accessed, longest, now.date()),
        _over("researched", entry.researched_at or entry.created, rules.max_age_days, now.date()),
        f"fresh until {entry.fresh_until} only"
        if entry.fresh_until is not None and now >= (end or now)
        else None,
    )
    reasons = tuple(reason for reason in found if reason)
    if accessed and accessed.date() < oldest_live(now.date(), rules.archive_after_days):
        return Verdict("archived", reasons)
    if not reasons:
        return Verdict("fresh", reasons)
    is_of_version = is_other_version and len(reasons) == 1
    needs_marking = entry.status == "fresh" or (not is_of_version and entry.stale_major is not None)
    return Verdict("stale", reasons, major_key(version) if is_of_version else None, needs_marking)


def _mark(entry: Entry) -> str | None:
    # What was marked for another major version is judged by the versions themselves.
    if entry.status == "fresh" or entry.stale_major is not None:
        return None
    return PLACEHOLDER if entry.origin == "placeholder" else MARKED


def _over(what: str, when: str, limit: int | None, today: date) -> str | None:
    if limit is None:
        return None
    moment = parse_time(when)
    if moment is None:
        return f"{what} at an unreadable date"
    age = (today - moment.date()).days
    return f"{what} {age} days ago, more than {limit}" if age > limit else None


# --- which one is served


@dataclass(frozen=True, slots=True)
class Candidate:
    """A live entry of the framework, judged for a request. ``is_wording``: the request's question is a known wording of it.

    Where it was ranked, ``score`` orders, and is no probability; ``shared`` is how many keywords the need has in common with the
    entry's topic, question and tags, and ``of`` how many it has.
    """

    entry: Entry
    verdict: Verdict
    ratings: Ratings = NO_RATINGS
    is_wording: bool = False
    score: float = 0.0
    shared: int = 0
    of: int = 0

    @property
    def is_servable(self) -> bool:
        return self.verdict.status == "fresh" and self.refusal is None

    @property
    def refusal(self) -> str | None:
        """Say why nobody is served this entry, however fresh it is; None where nothing speaks against it."""
        if self.entry.origin == "placeholder":
            return "it is a placeholder"
        if self.ratings.withdraws(self.entry):
            return f"it was rated wrong{f': {self.ratings.note}' if self.ratings.note else ''}"
        return None

    @property
    def is_near(self) -> bool:
        """Whether its text is worth the asker's tokens unasked: a finding's always, an excerpt's where the needs share words."""
        return self.entry.is_written or self.shared >= min(_NEAR, self.of)

    @property
    def may_say_the_same(self) -> bool:
        """Whether the needs share most of their words."""
        return self.shared >= min(_NEAR, self.of) and self.shared >= _SHARE_OF_WORDS * self.of

    @property
    def is_worth_offering(self) -> bool:
        """Whether to offer it costs less than to find it anew: to read the installed documentation again costs nothing."""
        return not self.entry.is_installed_excerpt or self.ratings.worked > 0 or self.may_say_the_same


def judge_row(
    found: tuple[Entry, Ratings, bool], version: str, rules: "KnowledgeResearch", now: datetime
) -> Candidate:
    """Judge an entry for a version, and give it the status that it has now; past its time it is stale, and no more."""
    entry, ratings, is_wording = found
    verdict = judge(entry, version, rules, now)
    status: EntryStatus = "fresh" if verdict.status == "fresh" else "stale"
    return Candidate(replace(entry, status=status), verdict, ratings, is_wording)


def judge_all(
    found: Iterable[tuple[Entry, Ratings, bool]], version: str, rules: "KnowledgeResearch", now: datetime
) -> list[Candidate]:
    """Judge entries for a version. Left out are archived ones, and those of another major where the topic has one of this major."""
    judged = [judge_row(it, version, rules, now) for it in found]
    known = [(it, major_key(it.entry.framework_version)) for it in judged if it.verdict.status != "archived"]
    wanted = major_key(version)
    served = {fold(it.entry.topic) for it, major in known if major == wanted}
    return [
        it for it, major in known if fold(it.entry.topic) not in served or major in {wanted, UNKNOWN_VERSION}
    ]


def choose(
    query: Query, known: Sequence[Candidate], rules: "KnowledgeResearch"
) -> tuple[Candidate, Tier] | None:
    """Return the entry that is served, or that a new research stands on, and by what it matches.

    What may be served goes first, then a finding before what sources say, then the better tier, then what was accessed last.
    With ``cache_match: seed`` the tier alone decides, for findings as well.
    """

    def order(pair: tuple[Candidate, Tier]) -> tuple[bool, bool, int]:
        it, tier = pair
        goes_behind = rules.cache_match == "sure" and not it.entry.is_written
        return not it.is_servable, goes_behind, _ORDER.index(tier)

    tiers = ((it, tier_of(query, it, rules)) for it in _last_accessed_first(known))
    return min(((it, tier) for it, tier in tiers if tier is not None), key=order, default=None)


def _last_accessed_first(known: Iterable[Candidate]) -> list[Candidate]:
    by_id = sorted(known, key=lambda it: it.entry.id)
    return sorted(by_id, key=lambda it: it.entry.last_accessed, reverse=True)


_ORDER: tuple[Tier, ...] = (
    "framework+topic+tags",
    "framework+topic",
    "framework+wording",
    "framework+keywords",
    "framework+tags",
)


def tier_of(query: Query, known: Candidate, rules: "KnowledgeResearch") -> Tier | None:
    """Return by what an entry is served for a request; None where somebody has to judge."""
    entry = known.entry
    is_same = same_topic(query.topic, entry.topic)
    if rules.cache_match == "seed" and rules.cache_fuzzy_match:
        tier = _tier_of_seed(query, entry, is_same=is_same)
        if tier is not None and TIERS.index(tier) <= TIERS.index(rules.cache_match_floor):
            return tier
        # The entry's own question counts for none of F1's tiers; one that somebody confirmed does.
        is_own = same_topic(query.question, entry.question or "")
        return "framework+wording" if known.is_wording and not is_own else None
    if is_same:
        return "framework+topic+tags" if shared_tags(query.tags, entry.tags) else "framework+topic"
    if not rules.cache_fuzzy_match:
        return None
    if known.is_wording:
        return "framework+wording"
    if not entry.is_installed_excerpt and _same_keywords(query, entry):
        return "framework+keywords"
    return None


def _tier_of_seed(query: Query, entry: Entry, *, is_same: bool) -> Tier | None:
    has_tags = bool(shared_tags(query.tags, entry.tags))
    if is_same or overlap(query.topic, entry.topic) >= SAME_TOPIC:
        return "framework+topic+tags" if has_tags else "framework+topic"
    return "framework+tags" if has_tags else None


def _same_keywords(query: Query, entry: Entry) -> bool:
    """Whether two needs differ in inflection, case and small words alone, name the same identifiers, and no opposite or negation differs.

    Nor may one ask how to get what the other asks how to make: "get a cookie" is not "make a cookie".
    """
    mine = keywords(query.topic)
    told, other = (
        {stem(it) for it in tokens(topic) if it in DISTINGUISHING_WORDS}
        for topic in (query.topic, entry.topic)
    )
    if not mine or mine != keywords(entry.topic) or told != other:
        return False
    asked, known = f"{query.topic} {query.question}", f"{entry.topic} {entry.question or ''}"
    return contraries(asked) == contraries(known) and identifiers(asked) == identifiers(known)


def same_topic(one: str, other: str) -> bool:
    return " ".join(fold(one).split()) == " ".join(fold(other).split())


def overlap(one: str, other: str) -> float:
    """Return the share of keywords that two topics have in common, of those of the longer one; 0.0 to 1.0."""
    mine, theirs = set(keywords(one)), set(keywords(other))
    longer = max(len(mine), len(theirs))
    return len(mine & theirs) / longer if longer else 0.0


def shared_tags(asked: Sequence[str], known: Sequence[str]) -> tuple[str, ...]:
    """Return the request's tags that the entry has too, each once, as the request writes them; by their stems."""
    theirs = {_tag_stems(tag) for tag in known}
    found: dict[tuple[str, ...], str] = {}
    for tag in asked:
        if (stems := _tag_stems(tag)) in theirs:
            found.setdefault(stems, tag)
    return tuple(found.values())


@lru_cache(maxsize=4096)
def _tag_stems(tag: str) -> tuple[str, ...]:
    return tuple(stem(token) for token in tokens(tag)) or (tag_key(tag),)


def match_of(query: Query, known: Candidate, tier: Tier, score: float | None = None) -> Match:
    """Say why an entry is served."""
    entry = known.entry
    is_same = same_topic(query.topic, entry.topic)
    return Match(
        tier=tier,
        topic_overlap=1.0 if is_same else round(overlap(query.topic, entry.topic), 4),
        shared_tags=list(shared_tags(query.tags, entry.tags)),
        entry_status=entry.status,
        origin=entry.origin,
        worked=known.ratings.worked,
        wrong=known.ratings.wrong,
        score=score,
    )


def offered(ranked: Sequence[Candidate], *, most: int) -> list[Candidate]:
    """Return what is offered of ranked entries. What is far behind the best one is left out: every line costs the asker tokens.

    An excerpt of installed documentation has the words of the question that made it, and is no measure for what somebody proved.
    """
    worth = [it for it in ranked if it.is_worth_offering]
    measures = [it.score for it in worth if not it.entry.is_installed_excerpt]
    least = _OF_BEST * max(measures or [it.score for it in worth], default=0.0)
    return [it for it in worth if it.score >= least or it.score <= WITHDRAWN][:most]


def rank(query: Query, found: Sequence[tuple[Candidate, float]]) -> list[Candidate]:
    """Order entries by how well they fit, best first; ``found`` has each with its ``bm25``, higher is better.

    Findings go before excerpts, what was rated as working goes up, and what was rated wrong goes last. Placeholders are left out.
    """
    from rapidfuzz import fuzz, utils  # heavy: an equal topic needs no ranking

    asked = f"{query.topic} {query.question}"
    words = _need_words(query.framework, query.topic, query.question)
    ranked = []
    for known, bm25 in found:
        entry, own = known.entry, f"{known.entry.topic} {known.entry.question or ''}"
        score = bm25
        score += 6 * fuzz.token_set_ratio(asked, own, processor=utils.default_process) / 100
        score += 4 * fuzz.token_sort_ratio(query.topic, entry.topic, processor=utils.default_process) / 100
        score += len(shared_tags(query.tags, entry.tags))
        # What an entry's writer and its ratings add.
        score += _FINDING if entry.is_written else _INSTALLED if entry.is_installed_excerpt else 0.0
        score += _WORKED * log1p(known.ratings.worked)
        score = WITHDRAWN if known.ratings.withdraws(entry) else round(score, 2)
        shared = words & _need_words(entry.framework, own, *entry.tags)
        if entry.origin != "placeholder":
            ranked.append(replace(known, score=score, shared=len(shared), of=len(words)))
    return sorted(_last_accessed_first(ranked), key=lambda it: -it.score)


def _need_words(framework: str, *texts: str) -> set[str]:
    return {stem(word) for word in search_words(*texts, without=frozenset(tokens(framework)))}


@dataclass(frozen=True, slots=True, kw_only=True)
class Lookup:
    """What the cache holds for a request: an exact entry, candidates, or neither (a miss).

    ``known`` is the entry that is served (``is_hit``), or stale, or refused, ``match`` says why, and ``report`` is its text.
    ``related`` are the candidates, best first; ``offer`` is the text of the first one, where it is worth reading unasked.
    """

    known: Candidate | None = None
    match: Match | None = None
    report: str | None = None
    is_hit: bool = False
    related: tuple[Related, ...] = ()
    offer: str | None = None

    @property
    def entry(self) -> Entry | None:
        return self.known.entry if self.known else None

    @property
    def is_stale(self) -> bool:
        """Whether an entry for this very request is there, which is to be researched again."""
        return self.known is not None and not self.is_hit and self.known.refusal is None

    @property
    def is_miss(self) -> bool:
        return self.known is None and not self.related

    @property
    def is_offer(self) -> bool:
        """Whether there is something to choose from; what was rated wrong is offered with its note."""
        return not self.is_stale and bool(self.related)

    @property
    def baseline(self) -> str | None:
        """The stale report that a new research stands on, if nothing better is found: only one of the same topic."""
        is_of_topic = self.match is not None and self.match.tier.startswith("framework+topic")
        return self.report if is_of_topic and self.is_stale else None

    @property
    def results(self) -> ResearchResults:
        """The results that are the entry which was found, as it is."""
        if (entry := self.entry) is None:
            return ResearchResults(related=[*self.related])
        return ResearchResults(
            cache_entry_id=entry.id,
            report_path=entry.path,
            confidence=entry.confidence,
            match=self.match,
            related=[*self.related],
        )


def related_of(candidate: Candidate, report: str) -> Related:
    """Return a candidate as it is offered."""
    entry, ratings = candidate.entry, candidate.ratings
    return Related(
        id=entry.id,
        framework_version=entry.framework_version,
        topic=entry.topic,
        question=entry.question,
        summary=summary_in(report),
        origin=entry.origin,
        confidence=entry.confidence,
        worked=ratings.worked,
        wrong=ratings.wrong,
        score=candidate.score,
        note=ratings.note if ratings.wrong else candidate.verdict.of_other_version,
    )


def summary_in(report: str) -> str:
    """Return the first sentences of a report's Summary on one line, without the signs of quoting."""
    _, is_there, body = report.partition("## Summary\n")
    section = (body if is_there else report).partition("\n## ")[0]
    lines = (line.strip().lstrip("> ").strip() for line in section.splitlines())
    shown = " ".join(line for line in lines if line and not line.startswith("```"))
    return summary_of(shown, _SUMMARY_CHARACTERS)


def with_confidence(text: str, confidence: Confidence) -> str:
    """Return a report whose header has the confidence that its entry has now: ratings change it, the text stays."""
    head, section, rest = text.partition("\n## ")
    return _OWN_CONFIDENCE.sub(rf"\g<1>{confidence}", head, count=1) + section + rest
