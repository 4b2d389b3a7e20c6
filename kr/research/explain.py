"""``kr explain``: what the cache would answer to a request, and why. No source is asked, nothing is changed, no database made."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from kr.errors import FieldError, InvalidRequest
from kr.frameworks import lookup_keys, same_framework
from kr.models import Entry, Query, to_plain
from kr.requests import ResearchRequest, parse_request
from kr.research.cache import words_of
from kr.research.decide import (
    JudgedEntry,
    choose,
    judge_row,
    match_of,
    most_offered,
    of_own_major,
    offered,
    rank,
    tier_of,
)
from kr.settings.model import KnowledgeResearch
from kr.store import lookup, search
from kr.store.engine import Store, Transaction
from kr.store.entries import question_key
from kr.store.lookup import Found

_MOST_RANKED = 200
_SHOWN = ("id", "topic", "question", "origin", "framework_version", "last_accessed")


def explain(
    store: Store, data: Mapping[str, Any], config: KnowledgeResearch, *, now: datetime
) -> dict[str, Any]:
    """Judge every entry of the framework for a research request, given as plain data.

    ``outcome`` is ``hit``, ``stale`` (it would be researched again), ``candidates`` or ``miss``. Each of ``considered``, best
    first, has its ``score``, by what it is served (``tier``) or why it is not (``refused``), and its freshness with reasons.
    Raises ``InvalidRequest`` or a ``StoreError``.
    """
    request = parse_request(data)
    if not isinstance(request, ResearchRequest):
        raise InvalidRequest(FieldError("mode", "only a research request can be explained"))
    query = request.research_query
    with store.read_if_exists() as tx:
        rows, scores = _read(tx, query, config)
    judged = [judge_row(row, query.framework_version, config, now) for row in rows]
    in_time = [it for it in judged if it.verdict.status != "archived"]
    known = of_own_major(in_time, query.framework_version)
    chosen = choose(query, known, config)
    ranked = rank(query, [(it, scores.get(it.entry.id, 0.0)) for it in known])
    fitting = [it for it in ranked if it.known.entry.id in scores]
    offers = [it.known.entry.id for it in offered(fitting, most=most_offered(len(rows)))]
    ordered: list[tuple[JudgedEntry, float | None]] = [(it.known, it.score) for it in ranked]
    ordered += [(it, None) for it in known if it.entry.origin == "placeholder"]
    considered = [_row(query, it, score, config, chosen, offers=offers) for it, score in ordered]
    considered.sort(key=lambda row: chosen is None or row["id"] != chosen[0].entry.id)
    considered += [_left_out(it, config) for it in judged if it not in known]
    return {
        **_decision(chosen, offers, _why_nothing(rows, scores, config)),
        "query": {**to_plain(query), "tags": list(query.tags)},
        "considered": considered,
    }


def _read(tx: Transaction, query: Query, config: KnowledgeResearch) -> tuple[list[Found], dict[str, float]]:
    """Return the entries of the framework, and the ``bm25`` of those that share a word."""
    keys = lookup_keys(query.framework, config.aliases)
    rows = [
        row
        for row in lookup.framework(tx, keys, question=question_key(query.question))
        if same_framework(row[0].framework, query.framework, config.aliases)
    ]
    return rows, search.rank(tx, keys, words_of(query), most=_MOST_RANKED) if config.cache_fuzzy_match else {}


def _why_nothing(rows: Collection[Found], scores: Mapping[str, float], config: KnowledgeResearch) -> str:
    if not rows:
        return "no entry has this framework"
    if not config.cache_fuzzy_match:
        return "no topic is equal, and cache_fuzzy_match is off"
    return "no entry has enough in common with it" if scores else "no entry shares a word with it"


def _decision(
    chosen: tuple[JudgedEntry, str] | None, offers: Collection[str], nothing: str
) -> dict[str, Any]:
    if chosen is not None:
        known, tier = chosen
        entry_id = known.entry.id
        if known.is_servable:
            return {"outcome": "hit", "entry_id": entry_id, "decision": f"{entry_id} would be served: {tier}"}
        if known.refusal is None:
            why = ", ".join(known.verdict.reasons)
            decision = f"would be researched again; {entry_id} is stale: {why}"
            return {"outcome": "stale", "entry_id": entry_id, "decision": decision}
    refused = chosen[0].entry.id if chosen else None
    if offers:
        decision = f"nothing is served by itself; {next(iter(offers))} would be offered first"
        return {"outcome": "candidates", "entry_id": refused, "decision": decision}
    return {"outcome": "miss", "entry_id": refused, "decision": f"would be researched: {nothing}"}


def _row(
    query: Query,
    known: JudgedEntry,
    score: float | None,
    config: KnowledgeResearch,
    chosen: tuple[JudgedEntry, str] | None,
    *,
    offers: Collection[str],
) -> dict[str, Any]:
    entry = known.entry
    tier = tier_of(query, known, config)
    match = match_of(query, known, tier or "use")
    refused = known.refusal if tier else _why_no_tier(config, is_offered=entry.id in offers)
    if refused is None and known.verdict.status != "fresh":
        refused = f"stale: {', '.join(known.verdict.reasons)}"
    if refused is None and chosen is not None and chosen[0].entry.id != entry.id:
        refused = f"{chosen[0].entry.id} goes before it"
    return {
        **_shown(entry),
        "tier": tier,
        "score": score,
        "topic_overlap": match.topic_overlap,
        "shared_tags": match.shared_tags,
        "worked": match.worked,
        "wrong": match.wrong,
        "freshness": known.verdict.status,
        "reasons": list(known.verdict.reasons),
        "refused": refused,
    }


def _why_no_tier(config: KnowledgeResearch, *, is_offered: bool) -> str:
    if not config.cache_fuzzy_match:
        return "another topic, and cache_fuzzy_match is off"
    below = f"below cache_match_floor, {config.cache_match_floor}"
    why = below if config.cache_match == "seed" else "another topic, question and keywords"
    if is_offered:
        return f"{why}: it is offered, not served"
    return f"{why}, and too little in common, or others fit better: it is not offered either"


def _left_out(known: JudgedEntry, config: KnowledgeResearch) -> dict[str, Any]:
    days, status = config.archive_after_days, known.verdict.status
    why = "its topic has an entry of the version that is asked for"
    if status == "archived":
        why = f"not accessed for more than {days} days: counts as archived"
    return {**_shown(known.entry), "freshness": status, "reasons": [*known.verdict.reasons], "refused": why}


def _shown(entry: Entry) -> dict[str, Any]:
    return {**{name: getattr(entry, name) for name in _SHOWN}, "tags": list(entry.tags)}
