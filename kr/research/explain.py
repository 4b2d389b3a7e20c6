"""What the cache would say to a request, and why (SPEC 3.2, 3.3): no source asked, no change, no database made.

The database's bytes and those of its write-ahead log stay as they are (``Store.read_untouched``).
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from kr.contracts.requests import ResearchRequest, parse_request
from kr.errors import FieldError, InvalidRequest
from kr.frameworks import lookup_keys, most_alike, same_framework
from kr.freshness import Limits
from kr.models import to_plain
from kr.naming import fold
from kr.research.decide import Known, choose, judge_all, match_of, most_offered, offered, rank, tier_of
from kr.store import counts, entries, lookup, meta, revisions, search
from kr.store.engine import Store, Transaction
from kr.store.entries import question_key
from kr.store.meta import FIRST_IMPORT
from kr.text.words import search_words, tokens
from kr.tree import read_document
from kr.values import Entry, Match, MatchRules, Query

Outcome = Literal["hit", "stale", "candidates", "miss"]

_MOST_RANKED = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The settings that decide what is served (SPEC 7)."""

    limits: Limits
    match: MatchRules
    aliases: Mapping[str, str]


def read_request(request: bytes | Mapping[str, Any], *, warn: Callable[[str], object]) -> ResearchRequest:
    """Read a research request, a document or plain data. Raises ``InvalidRequest``."""
    if isinstance(request, bytes):
        document = read_document(request)
        request = document.data
        for warning in document.warnings:
            warn(warning)
    parsed = parse_request(request)
    for warning in parsed.warnings:
        warn(warning)
    if not isinstance(parsed.request, ResearchRequest):
        raise InvalidRequest(FieldError("mode", "only a research request can be explained"))
    return parsed.request


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What the database has of a framework; ``others`` are the names of other frameworks, where it has nothing of it.

    ``lost`` are the ids whose report is nowhere; ``is_untouched``: an index that stands there would be imported by the first research (SPEC 6.2).
    """

    known: tuple[Known, ...] = ()
    archived: tuple[Entry, ...] = ()
    lost: frozenset[str] = frozenset()
    scores: Mapping[str, float] | None = None
    others: tuple[str, ...] = ()
    is_untouched: bool = True

    @property
    def number(self) -> int:
        return len(self.known) + len(self.archived)


def explain(
    store: Store, request: ResearchRequest, rules: Rules, *, now: datetime, index: Path | None = None
) -> dict[str, Any]:
    """Hold every entry of the framework against what is asked. Raises a ``StoreError``.

    ``index`` is where an ``index.yaml`` may wait; ``waiting_index`` names it if the first research would import it. ``outcome`` is
    ``hit``, ``stale`` (it would be researched again), ``candidates`` or ``miss``. Each of ``considered``, best first, tells its
    ``score``, by what it is served (``tier``) or why it is not (``refused``), and its freshness with the reasons.
    """
    query = request.research_query
    with store.look() as tx:
        held = _held(tx, query, rules, now)
    match = choose(query, [it for it in held.known if it.entry.id not in held.lost], rules.match)
    chosen = next((it for it in held.known if match and it.entry.id == match.entry.id), None)
    ranked = rank(query, [(it, (held.scores or {}).get(it.entry.id, 0.0)) for it in held.known])
    placeholders = [it for it in held.known if it.entry.origin == "placeholder"]
    scored = [(it.known, it.score) for it in ranked] + [(it, None) for it in placeholders]
    fitting = [it for it in ranked if it.known.entry.id in (held.scores or {})]
    offers = [it.known.entry.id for it in offered(fitting, most=most_offered(held.number))]
    rows = [
        _row(query, known, score, rules.match, chosen, offers=offers, lost=held.lost)
        for known, score in scored
    ]
    rows.sort(key=lambda row: row["id"] != (match.entry.id if match else None))
    old = f"not accessed for more than {rules.limits.archive_after_days} days: counts as archived"
    rows += [
        {**_shown(entry), "freshness": "archived", "reasons": [], "refused": old} for entry in held.archived
    ]
    best = next((entry_id for entry_id in offers if entry_id not in held.lost), None)
    outcome, decision = _decision(match, chosen, best, _why_nothing(held, rules.match))
    waiting = index if held.is_untouched and index is not None and index.is_file() else None
    return {
        "outcome": outcome,
        "entry_id": match.entry.id if match else None,
        "decision": decision,
        "waiting_index": str(waiting) if waiting else None,
        "query": to_plain(query),
        "rules": {
            "cache_match": rules.match.mode,
            "cache_fuzzy_match": rules.match.fuzzy,
            "cache_match_floor": rules.match.floor if rules.match.mode == "seed" else None,
            "cache_ttl_days": rules.limits.ttl_days,
            "archive_after_days": rules.limits.archive_after_days,
            "max_age_days": rules.limits.max_age_days,
        },
        "considered": rows,
        "nearest_frameworks": most_alike(query.framework, {fold(it): it for it in held.others}.values()),
    }


def _held(tx: Transaction, query: Query, rules: Rules, now: datetime) -> _Held:
    keys = lookup_keys(query.framework, rules.aliases)
    rows = [
        row
        for row in lookup.framework(tx, keys, question=question_key(query.question))
        if same_framework(row[0].framework, query.framework, rules.aliases)
    ]
    known = judge_all(rows, query.framework_version, rules.limits, now)
    live = {it.entry.id for it in known}
    words = search_words(
        query.topic, " ".join(query.tags), query.question, but=frozenset(tokens(query.framework))
    )
    return _Held(
        known=tuple(known),
        archived=tuple(row[0] for row in rows if row[0].id not in live),
        lost=frozenset(it.entry.id for it in known if _is_lost(tx, it.entry)),
        scores=search.rank(tx, keys, words, most=_MOST_RANKED) if rules.match.fuzzy else None,
        others=() if rows else tuple(counts.number_by(tx, "framework", "entries")),
        is_untouched=entries.count(tx) == 0 and meta.get(tx, FIRST_IMPORT) is None,
    )


def _is_lost(tx: Transaction, entry: Entry) -> bool:
    return revisions.text(tx, entry.sha256) is None and tx.files.state(entry.path) == "absent"


def _why_nothing(held: _Held, rules: MatchRules) -> str:
    if not held.known and not held.archived:
        return "no entry has this framework"
    if not rules.fuzzy:
        return "no topic is equal, and cache_fuzzy_match is off"
    return "no entry has enough in common with it" if held.scores else "no entry shares a word with it"


def _why_no_tier(rules: MatchRules, *, is_offered: bool) -> str:
    if not rules.fuzzy:
        return "another topic, and cache_fuzzy_match is off"
    is_below = f"below cache_match_floor, {rules.floor}"
    why = is_below if rules.mode == "seed" else "another topic, question and keywords"
    if is_offered:
        return f"{why}: it is offered, not served"
    return f"{why}, and too little in common, or others fit better: it is not offered either"


def _row(
    query: Query,
    known: Known,
    score: float | None,
    rules: MatchRules,
    chosen: Known | None,
    *,
    offers: Collection[str],
    lost: frozenset[str],
) -> dict[str, Any]:
    entry = known.entry
    tier = tier_of(query, known, rules)
    match = match_of(query, entry, tier or "use")
    refused: str | None
    if entry.id in lost:
        refused = "its report is missing or empty: the entry would be removed"
    elif tier is None:
        refused = _why_no_tier(rules, is_offered=entry.id in offers)
    else:
        refused = known.refusal
    if refused is None and known.verdict.status != "fresh":
        refused = f"stale: {', '.join(known.verdict.reasons)}"
    if refused is None and chosen is not None and chosen.entry.id != entry.id:
        refused = f"{chosen.entry.id} goes before it"
    return {
        **_shown(entry),
        "tier": tier,
        "score": score,
        "topic_overlap": round(match.topic_overlap, 4),
        "shared_tags": list(match.shared_tags),
        "worked": known.ratings.worked,
        "wrong": known.ratings.wrong,
        "freshness": known.verdict.status,
        "reasons": list(known.verdict.reasons),
        "refused": refused,
    }


def _shown(entry: Entry) -> dict[str, Any]:
    told = ("id", "topic", "question", "origin", "framework_version", "last_accessed")
    return {**{name: getattr(entry, name) for name in told}, "tags": list(entry.tags)}


def _decision(
    match: Match | None, chosen: Known | None, best: str | None, nothing: str
) -> tuple[Outcome, str]:
    if match is not None and chosen is not None:
        if chosen.is_servable:
            return "hit", f"{match.entry.id} would be served: {match.tier}"
        if chosen.refusal is None:
            return (
                "stale",
                f"would be researched again; {match.entry.id} is stale: {', '.join(chosen.verdict.reasons)}",
            )
    if best is not None:
        return "candidates", f"nothing is served by itself; {best} would be offered first"
    return "miss", f"would be researched: {nothing}"
