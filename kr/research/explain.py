"""``kr explain``: what the cache would answer to a request, and why. No source is asked, nothing is changed, no database made."""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from kr.errors import FieldError, InvalidRequest
from kr.frameworks import lookup_keys, same_framework
from kr.models import Query, to_plain
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
from kr.store import lookup
from kr.store.engine import Store
from kr.store.lookup import question_key

_MOST_RANKED = 200
_SHOWN_OF_MATCH = ("topic_overlap", "shared_tags", "worked", "wrong")
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
    keys, version = lookup_keys(query.framework, config.aliases), query.framework_version
    with store.read() as tx:
        rows = lookup.framework(tx, keys, question=question_key(query.question))
        may_rank = config.cache_fuzzy_match
        found = lookup.rank(tx, keys, words_of(query), most=_MOST_RANKED) if may_rank else {}
    own = [row for row in rows if same_framework(row[0].framework, query.framework, config.aliases)]
    judged = [judge_row(row, version, config, now) for row in own]
    known = of_own_major([it for it in judged if it.verdict.status != "archived"], version)
    chosen = choose(query, known, config)
    ranked = rank(query, [(it, found.get(it.entry.id, 0.0)) for it in known])
    fitting = [it for it in ranked if it.known.entry.id in found]
    offers = [it.known.entry.id for it in offered(fitting, most=most_offered(len(own)))]
    scores = {it.known.entry.id: it.score for it in ranked}
    # What would be served stands first, then what ranks, then placeholders and what is left out.
    judged.sort(key=lambda it: -scores.get(it.entry.id, float("-inf")))
    judged.sort(key=lambda it: (chosen is None or it is not chosen[0], it not in known))
    considered = []
    for it in judged:
        refused = _refused(query, it, chosen, config, known=known, offers=offers)
        considered.append(_row(query, it, config, score=scores.get(it.entry.id), refused=refused))
    return {**_decision(chosen, offers), "query": to_plain(query), "considered": considered}


def _decision(chosen: tuple[JudgedEntry, str] | None, offers: Collection[str]) -> dict[str, Any]:
    known, tier = chosen or (None, "")
    entry_id = known.entry.id if known else None
    if known and known.is_servable:
        outcome, told = "hit", f"{entry_id} would be served: {tier}"
    elif known and known.refusal is None:
        why = ", ".join(known.verdict.reasons)
        outcome, told = "stale", f"would be researched again; {entry_id} is stale: {why}"
    elif offers:
        outcome, told = (
            "candidates",
            f"nothing is served by itself; {next(iter(offers))} would be offered first",
        )
    else:
        outcome, told = "miss", "would be researched: no entry has enough in common with it"
    return {"outcome": outcome, "entry_id": entry_id, "decision": told}


def _row(
    query: Query, known: JudgedEntry, config: KnowledgeResearch, *, score: float | None, refused: str | None
) -> dict[str, Any]:
    tier = tier_of(query, known, config)
    match = match_of(query, known, tier or "use")
    return {
        **{name: getattr(known.entry, name) for name in _SHOWN},
        **{name: getattr(match, name) for name in _SHOWN_OF_MATCH},
        "tags": list(known.entry.tags),
        "tier": tier,
        "score": score,
        "freshness": known.verdict.status,
        "reasons": list(known.verdict.reasons),
        "refused": refused,
    }


def _refused(
    query: Query,
    judged: JudgedEntry,
    chosen: tuple[JudgedEntry, str] | None,
    config: KnowledgeResearch,
    *,
    known: Collection[JudgedEntry],
    offers: Collection[str],
) -> str | None:
    """Say why an entry is not served; None where it is."""
    reasons = ", ".join(judged.verdict.reasons)
    if judged.verdict.status == "archived":
        return f"counts as archived: {reasons}"
    if judged not in known:
        return "its topic has an entry of the version that is asked for"
    if tier_of(query, judged, config) is None:
        how = "it is offered, not served" if judged.entry.id in offers else "it is not offered either"
        return f"another topic, question and keywords: {how}"
    if judged.refusal is None and judged.verdict.status != "fresh":
        return f"stale: {reasons}"
    is_behind = chosen is not None and chosen[0] is not judged
    return judged.refusal or (f"{chosen[0].entry.id} goes before it" if chosen and is_behind else None)
