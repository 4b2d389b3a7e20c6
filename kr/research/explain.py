"""What the cache would say to a request, and why (SPEC 3.2, 3.3): no network, no change, no database made.

It walks the way of ``kr.research.cache.Cache`` without storing the marks and removals that a real look finds
due.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from kr.contracts.requests import ResearchRequest, parse_request
from kr.documents import read_document
from kr.errors import FieldError, InvalidRequest, StoreError
from kr.rules.freshness import Limits, Verdict, judge
from kr.rules.match import THRESHOLD, Considered, rank
from kr.store.inspection import look
from kr.store.store import Store
from kr.values import Entry, Query, Tier

Outcome = Literal["hit", "stale", "miss"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The settings that decide (SPEC 7)."""

    limits: Limits
    fuzzy: bool
    floor: Tier


def read_query(request: bytes | Mapping[str, Any], *, warn: Callable[[str], object]) -> Query:
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
    return parsed.request.research_query.query()


def explain(store: Store, query: Query, rules: Rules, *, now: datetime) -> dict[str, Any]:
    """Hold every entry of the framework against ``query``. Raises a ``StoreError``.

    ``outcome`` is ``hit``, ``stale`` (it would be researched again) or ``miss``. Each of ``considered`` tells
    its tier, overlap, shared tags, freshness with reasons, and ``refused``: why it is not the answer, or None.
    """
    candidates: list[Entry] = []
    others: list[str] = []
    if store.exists():
        _require_current(store)
        with store.read() as unit:
            candidates = unit.entries.candidates(query.framework)
            if not candidates:
                others = list(unit.counts.entries_by("framework"))
    verdicts = {entry.id: judge(entry, query.framework_version, rules.limits, now) for entry in candidates}
    judged = [_with_status(entry, verdicts[entry.id]) for entry in candidates]
    live = [entry for entry in judged if verdicts[entry.id].status != "archived"]
    ranked = rank(query, live, fuzzy=rules.fuzzy, floor=rules.floor)
    best = ranked[0] if ranked and ranked[0].tier else None
    is_lost = best is not None and store.read_report(best.entry) is None
    rows = [_row(item, verdicts[item.entry.id], best, is_lost=is_lost) for item in ranked]
    rows += [_archived_row(entry, verdicts[entry.id], rules) for entry in judged if entry not in live]
    outcome, decision = _decide(best, is_lost=is_lost, candidates=candidates)
    return {
        "outcome": outcome,
        "entry_id": best.entry.id if best and not is_lost else None,
        "decision": decision,
        "query": _query(query),
        "rules": {
            "topic_overlap_at_least": THRESHOLD,
            "cache_fuzzy_match": rules.fuzzy,
            "cache_match_floor": rules.floor,
            "cache_ttl_days": rules.limits.ttl_days,
            "archive_after_days": rules.limits.archive_after_days,
            "max_age_days": rules.limits.max_age_days,
        },
        "considered": rows,
        "nearest_frameworks": _nearest(query.framework, others),
    }


def _require_current(store: Store) -> None:
    """Refuse a database that a mere read would upgrade."""
    if look(store.path).state == "older":
        raise StoreError(f"{store.path}: is of an older kr, and this changes nothing; run `kr db upgrade`")


def _query(query: Query) -> dict[str, Any]:
    return {
        "framework": query.framework,
        "framework_version": query.framework_version,
        "topic": query.topic,
        "tags": list(query.tags),
        "question": query.question,
    }


def _with_status(entry: Entry, verdict: Verdict) -> Entry:
    return replace(entry, status="fresh" if verdict.status == "fresh" else "stale")


def _row(item: Considered, verdict: Verdict, best: Considered | None, *, is_lost: bool) -> dict[str, Any]:
    refused = item.reason
    if item is best and is_lost:
        refused = "its report is missing or empty: the entry would be removed"
    elif item.tier is not None and best is not None and item is not best:
        refused = _behind(item, best)
    elif item is best and verdict.status != "fresh":
        refused = f"stale: {', '.join(verdict.reasons)}"
    return _shown(item.entry, verdict) | {
        "tier": item.tier,
        "topic_overlap": item.topic_overlap,
        "shared_tags": list(item.shared_tags),
        "refused": refused,
    }


def _archived_row(entry: Entry, verdict: Verdict, rules: Rules) -> dict[str, Any]:
    return _shown(entry, verdict) | {
        "tier": None,
        "topic_overlap": None,
        "shared_tags": [],
        "refused": f"not accessed for more than {rules.limits.archive_after_days} days: counts as archived",
    }


def _shown(entry: Entry, verdict: Verdict) -> dict[str, Any]:
    return {
        "id": entry.id,
        "topic": entry.topic,
        "tags": list(entry.tags),
        "framework_version": entry.framework_version,
        "last_accessed": entry.last_accessed,
        "freshness": verdict.status,
        "reasons": list(verdict.reasons),
    }


def _behind(item: Considered, best: Considered) -> str:
    if item.tier != best.tier:
        return f"{best.entry.id} answers in a better tier ({best.tier})"
    if item.topic_overlap != best.topic_overlap:
        return f"{best.entry.id} overlaps more ({best.topic_overlap:.2f})"
    if len(item.shared_tags) != len(best.shared_tags):
        return f"{best.entry.id} shares more tags"
    if item.entry.status != best.entry.status:
        return f"{best.entry.id} is fresh"
    return f"{best.entry.id} was accessed later, or fits the question's words better"


def _decide(best: Considered | None, *, is_lost: bool, candidates: Sequence[Entry]) -> tuple[Outcome, str]:
    if best is None:
        why = "no entry has this framework" if not candidates else "every entry was refused"
        return "miss", f"would be researched: {why}"
    if is_lost:
        return "miss", f"would be researched: the report of {best.entry.id} is missing or empty"
    if best.entry.status == "fresh":
        return "hit", f"{best.entry.id} would be served from the cache"
    if best.tier == "framework+tags" or best.entry.origin == "skeleton":
        return "stale", f"would be researched again; {best.entry.id} is stale and no baseline"
    return "stale", f"would be researched again, with {best.entry.id} as the baseline"


def _nearest(framework: str, others: Sequence[str]) -> list[str]:
    """Offer frameworks that are written alike, when none is equal."""
    import difflib

    from kr.rules.naming import fold

    folded = {fold(name): name for name in others}
    return [
        folded[name] for name in difflib.get_close_matches(fold(framework), list(folded), n=3, cutoff=0.6)
    ]
