"""What the cache would say to a request, and why (SPEC 3.2, 3.3): no source asked, no change, no database made.

A model of embeddings that is configured and calibrated is asked: what it says is evidence.

It judges as ``kr.research.cache.Cache`` does without storing the marks and removals that a real look finds
due. No change: the database's bytes and those of its write-ahead log stay as they are (``Store.read_untouched``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from math import log
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kr.contracts.requests import ResearchRequest, parse_request
from kr.errors import FieldError, InvalidRequest
from kr.freshness import Limits, Verdict
from kr.matching.decide import THRESHOLD, Considered, decide
from kr.matching.evidence import MEANING, NAMES, Candidate
from kr.matching.weights import DEFAULT
from kr.research.cache import judge_all, may_be_baseline, own_majors
from kr.research.candidates import MOST, gather
from kr.research.unsure import leaves_a_choice
from kr.store.lock import make_owner
from kr.store.store import ReadOnlyShelf, Shelf, Store
from kr.tree import read_document
from kr.values import Entry, MatchRules, Query

if TYPE_CHECKING:
    from kr.matching.vectors import Meant
    from kr.research.meaning import Meaning
    from kr.store.session import UnitOfWork

Outcome = Literal["hit", "stale", "miss"]

_OTHER_MAJOR = "of another major version, and the topic has an entry for the one that is asked for"

_FARTHER = f"{MOST} other entries share more words with the request: this one's meaning is not compared"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The settings that decide (SPEC 7). ``meaning`` makes what asks a model of embeddings, where one is configured.

    ``asks_model``: one of language is configured, and ``unsure`` (``cache_match_unsure``) has it asked where words leave a doubt.
    """

    limits: Limits
    match: MatchRules
    aliases: Mapping[str, str]
    meaning: "Callable[[Shelf, str], Meaning | None]"
    unsure: str
    asks_model: bool


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


def explain(
    store: Store, request: ResearchRequest, rules: Rules, *, now: datetime, index: Path | None = None
) -> dict[str, Any]:
    """Hold every entry of the framework against what is asked. Raises a ``StoreError``.

    ``index`` is where an ``index.yaml`` may wait; ``waiting_index`` names it if the first research would import
    it, so that it may answer what is a miss here.

    ``outcome`` is ``hit``, ``stale`` (it would be researched again) or ``miss``. Each of ``considered`` tells
    its tier, overlap, shared tags, freshness with reasons, and ``refused``: why it is not the answer, or None.
    """
    query, said = request.research_query, request.config_overrides
    held = _held(store, query, rules.aliases)
    verdicts = judge_all(held.entries, query, rules.limits, now)
    served = [entry for entry, verdict in verdicts.values() if verdict.status != "archived"]
    live = {entry.id: entry for entry in own_majors(served, query.framework_version)}
    mine = [Candidate(live[entry_id], keys) for entry_id, keys in held.keys.items() if entry_id in live]
    looked_up = set(list(held.keys)[:MOST])  # what research would hold against it
    nearest = [candidate for candidate in mine if candidate.entry.id in looked_up]
    meant = None if said.max_calls == 0 else _ask(rules, store, query, nearest)
    if meant is not None:
        mine = nearest
    _, related, ranked = decide(query, mine, rules.match, meant=meant)
    best = ranked[0] if ranked and ranked[0].reason is None else None
    is_lost = best is not None and best.entry.sha256 is None and not store.read_file(best.entry.path)
    rows = [_row(item, verdicts[item.entry.id][1], best, meant, is_lost=is_lost) for item in ranked]
    archived = f"not accessed for more than {rules.limits.archive_after_days} days: counts as archived"
    shown = {item.entry.id for item in ranked}
    left_out = [
        (
            entry,
            verdict,
            archived if verdict.status == "archived" else _FARTHER if entry.id in live else _OTHER_MAJOR,
        )
        for entry, verdict in verdicts.values()
        if entry.id not in shown
    ]
    rows += [_row_left_out(*each) for each in left_out]
    outcome, decision = _decide(best, is_lost=is_lost, candidates=held.entries)
    which = [item.id for item in related if verdicts[item.id][1].status == "fresh"]
    if which and rules.asks_model and rules.match.fuzzy and said.use is None and leaves_a_choice(said):
        names = " or ".join(which)
        decision += f"; before that the language model of llm would be asked whether {names} answers"
    waiting = index if held.is_untouched and index is not None and index.is_file() else None
    return {
        "outcome": outcome,
        "entry_id": best.entry.id if best and not is_lost else None,
        "decision": decision,
        "waiting_index": str(waiting) if waiting else None,
        "query": _query(query),
        "rules": {
            "topic_overlap_at_least": THRESHOLD,
            "cache_match": rules.match.mode,
            "likelihood_above": (meant.learned if meant else DEFAULT).least.get(rules.match.mode),
            "cache_fuzzy_match": rules.match.fuzzy,
            "cache_match_floor": rules.match.floor,
            "cache_match_unsure": rules.unsure,
            "cache_ttl_days": rules.limits.ttl_days,
            "archive_after_days": rules.limits.archive_after_days,
            "max_age_days": rules.limits.max_age_days,
        },
        "considered": rows,
        "nearest_frameworks": _nearest(query.framework, held.others),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What the database has: entries of the framework, or else the names of others.

    ``is_untouched``: an index that stands there would be imported by the first research (SPEC 6.2).
    """

    entries: Sequence[Entry] = ()
    keys: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    others: Sequence[str] = ()
    is_untouched: bool = True


def _held(store: Store, query: Query, aliases: Mapping[str, str]) -> _Held:
    def read(unit: "UnitOfWork") -> _Held:
        from kr.store.session import FIRST_IMPORT

        gathered = gather(unit, query, aliases, read=partial(_report, store, unit), most=None)
        return _Held(
            entries=gathered.entries,
            keys=gathered.best,
            others=() if gathered.entries else list(unit.counts.number_by("framework", "entries")),
            is_untouched=unit.entries.count() == 0 and unit.meta.get(FIRST_IMPORT) is None,
        )

    return store.read_untouched(read) or _Held()


def _ask(rules: Rules, store: Store, query: Query, candidates: Sequence[Candidate]) -> "Meant | None":
    shelf = ReadOnlyShelf(store)
    meaning = rules.meaning(shelf, make_owner())
    if meaning is None:
        return None

    def read(entry: Entry) -> str:
        return shelf.read(lambda unit: _report(store, unit, entry), "")

    return meaning.speak(query, candidates, rules.match, read=read)


def _report(store: Store, unit: "UnitOfWork", entry: Entry) -> str:
    """Return a report's text; not through ``read_report``, which takes in what somebody wrote into the file."""
    from kr.naming import decoded

    return unit.revisions.text(entry.sha256) or decoded(store.read_file(entry.path))


def _query(query: Query) -> dict[str, Any]:
    return {
        "framework": query.framework,
        "framework_version": query.framework_version,
        "topic": query.topic,
        "tags": list(query.tags),
        "question": query.question,
    }


def _row(
    item: Considered, verdict: Verdict, best: Considered | None, meant: "Meant | None", *, is_lost: bool
) -> dict[str, Any]:
    refused = item.reason
    if item is best and is_lost:
        refused = "its report is missing or empty: the entry would be removed"
    elif item.reason is None and best is not None and item is not best:
        refused = _behind(item, best)
    elif item is best and verdict.status != "fresh":
        refused = f"stale: {', '.join(verdict.reasons)}"
    return _shown(item.entry, verdict) | {
        "tier": item.tier,
        "topic_overlap": item.topic_overlap,
        "shared_tags": list(item.shared_tags),
        "likelihood": item.likelihood,
        "refused": refused,
        "evidence": _evidence(item, meant),
    }


def _evidence(item: Considered, meant: "Meant | None") -> list[dict[str, Any]]:
    """Tell what each piece of evidence adds to the log odds, the weightiest first; what adds nothing is left out."""
    names: Sequence[str] = NAMES
    meaning, learned = MEANING, DEFAULT
    if meant is not None:
        from kr.matching.vectors import SIMILARITIES, SIMILARITIES_MEANING

        names, meaning = (*names, *SIMILARITIES), {**meaning, **SIMILARITIES_MEANING}
        learned = meant.learned
    fitted = learned.fitted
    pieces = zip(names, item.numbers, fitted.weights, strict=True)
    told: list[dict[str, Any]] = [
        {"name": name, "meaning": meaning[name], "value": round(number, 3), "adds": round(number * weight, 2)}
        for name, number, weight in pieces
    ]
    start = {
        "name": "start",
        "meaning": "where the log odds start",
        "value": 1.0,
        "adds": round(fitted.bias, 2),
    }
    if item.is_hardly_ahead:
        whole, half = fitted.likelihood(item.numbers), learned.likelihood(item.numbers)
        told.append(
            {
                "name": "hardly_ahead",
                "meaning": "hardly ahead of the framework's other entries: half as likely",
                "value": 1.0,
                "adds": round(log(half / (1 - half)) - log(whole / (1 - whole)), 2),
            }
        )
    weighty = [piece for piece in told if piece["adds"]]
    return [start, *sorted(weighty, key=lambda piece: -abs(piece["adds"]))]


def _row_left_out(entry: Entry, verdict: Verdict, why: str) -> dict[str, Any]:
    return _shown(entry, verdict) | {
        "tier": None,
        "topic_overlap": None,
        "shared_tags": [],
        "likelihood": None,
        "refused": why,
        "evidence": [],
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
    if item.likelihood != best.likelihood:
        return f"{best.entry.id} is likelier ({best.likelihood:.2f})"
    if item.entry.status != best.entry.status:
        return f"{best.entry.id} is fresh"
    return f"{best.entry.id} was accessed later"


def _decide(best: Considered | None, *, is_lost: bool, candidates: Sequence[Entry]) -> tuple[Outcome, str]:
    if best is None:
        why = "no entry has this framework" if not candidates else "every entry was refused"
        return "miss", f"would be researched: {why}"
    if is_lost:
        return "miss", f"would be researched: the report of {best.entry.id} is missing or empty"
    if best.entry.status == "fresh":
        return "hit", f"{best.entry.id} would be served from the cache"
    if best.tier is not None and not may_be_baseline(best.tier, best.entry):
        return "stale", f"would be researched again; {best.entry.id} is stale and no baseline"
    return "stale", f"would be researched again, with {best.entry.id} as the baseline"


def _nearest(framework: str, others: Sequence[str]) -> list[str]:
    """Offer frameworks that are written alike, when none is equal."""
    from kr.matching.frameworks import most_alike
    from kr.naming import fold

    return most_alike(framework, {fold(name): name for name in others}.values())
