"""Counts for ``kr stats`` and the page (SPEC 6.5, 8): what the cache spares, costs and holds; days, stories, candidates that wait for a choice.

``spared`` is the one number of SPEC 8, told alike by ``kr stats``, the page, ``/v1/stats`` and ``/metrics``: for each answer from the
cache what finding out had cost before, less the answer.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Any, Literal

from kr.errors import UnknownEntry
from kr.frameworks import canonical
from kr.freshness import parse_time
from kr.naming import fold
from kr.store import archive, counts, entries, ledger, workflows
from kr.store import requests as request_rows
from kr.store import wordings as wording_rows

if TYPE_CHECKING:
    from kr.settings import Settings
    from kr.store.engine import Store, Transaction
    from kr.store.requests import Unanswered
    from kr.store.wordings import Wording
    from kr.values import Entry


_STORIES = 20
_SINGLE = ("terminal-", "mcp-")
"""How the sessions begin that kr named for one question, typed or asked over MCP (SPEC 3.1)."""
_DAYS = 30
_AGES = ((0, "today"), (7, "1-7 days"), (30, "8-30 days"), (60, "31-60 days"))
_OLDER = "over 60 days"
_UNREADABLE = "unreadable date"


def collect_stats(store: "Store", settings: "Settings", *, now: datetime) -> dict[str, Any]:
    """Count everything, the dearest 20 stories and the last 30 days; rates 0.0 to 1.0 or None. Raises a ``StoreError``."""
    with store.look() as tx:
        return {
            "database": str(store.path),
            "today": now.astimezone(UTC).date().isoformat(),
            "requests": _requests(tx),
            "spared": spared(counts.spared_by_day(tx)),
            "index": _index(tx, settings, now),
            "archive": _archive(tx),
            "hit_rate_by_day": counts.view(tx, "hit_rate_by_day")[-_DAYS:],
            "hit_rate_by_framework": _hit_rates(tx, settings.knowledge_research.aliases),
            "spending": _spending(tx, settings),
            "sources": _sources(tx, now),
            "lessons": {
                "total": counts.lessons(tx),
                "by_phase": counts.view(tx, "lessons_by_phase"),
            },
            "workflows": _workflows(tx),
        }


def _requests(tx: "Transaction") -> dict[str, Any]:
    modes = counts.number_by(tx, "mode", "requests")
    by_day = counts.view(tx, "hit_rate_by_day")
    hits, answered = (sum(day[name] for day in by_day) for name in ("hits", "requests"))
    return {
        "total": sum(modes.values()),
        "research": answered,
        "hits": hits,
        "misses": answered - hits,
        "hit_rate": _ratio(hits, answered),
        "by_mode": modes,
        "by_status": counts.number_by(tx, "status", "requests"),
    }


def spared(days: "Sequence[Mapping[str, Any]]") -> dict[str, Any]:
    """Sum up what answers from the cache spared: ``{tokens, seconds, answers}``; ``answers`` are those that were measured (SPEC 8)."""
    return {
        "tokens": sum(day["tokens"] for day in days),
        "seconds": round(sum(day["milliseconds"] for day in days) / 1000, 3),
        "answers": sum(day["answers"] for day in days),
    }


def _index(tx: "Transaction", settings: "Settings", now: datetime) -> dict[str, Any]:
    accesses = counts.last_accesses(tx)
    return {
        "entries": len(accesses),
        "max_entries": settings.knowledge_research.max_entries,
        "by_status": counts.number_by(tx, "status", "entries"),
        "by_confidence": counts.number_by(tx, "confidence", "entries"),
        "by_age": by_age(accesses, now.astimezone(UTC).date()),
        "by_framework": _merged(
            counts.number_by(tx, "framework", "entries"), settings.knowledge_research.aliases
        ),
    }


def _archive(tx: "Transaction") -> dict[str, Any]:
    reasons = counts.number_by(tx, "reason", "archived_entries")
    return {"entries": sum(reasons.values()), "by_reason": reasons}


def _workflows(tx: "Transaction") -> dict[str, Any]:
    statuses = workflows.by_status(tx)
    return {"total": sum(statuses.values()), "by_status": statuses}


def by_age(accesses: list[str], today: date) -> dict[str, int]:
    """Count times of the last access by how many whole UTC days ago they are (SPEC 3.3)."""
    counted = Counter(_age(access, today) for access in accesses)
    names = [*(name for _, name in _AGES), _OLDER]
    ages = {name: counted.pop(name, 0) for name in names}
    return ages | counted


def _age(access: str, today: date) -> str:
    moment = parse_time(access)
    if moment is None:
        return _UNREADABLE
    days = (today - moment.date()).days
    return next((name for limit, name in _AGES if days <= limit), _OLDER)


def _merged(counted: dict[str, int], aliases: Mapping[str, str]) -> dict[str, int]:
    """Count names of one framework as one, under the name that most have (SPEC 3.2). ``counted``: most first."""
    names: dict[str, str] = {}
    merged: Counter[str] = Counter()
    for name, number in counted.items():
        merged[names.setdefault(canonical(name, aliases), name)] += number
    return dict(merged.most_common())


def _hit_rates(tx: "Transaction", aliases: Mapping[str, str]) -> list[dict[str, Any]]:
    rows = counts.view(tx, "hit_rate_by_framework")
    requests = _merged({row["framework"]: row["requests"] for row in rows}, aliases)
    names = {canonical(name, aliases): name for name in requests}
    hits: Counter[str] = Counter()
    for row in rows:
        hits[names[canonical(row["framework"], aliases)]] += row["hits"]
    return [
        {"framework": name, "requests": number, "hits": hits[name], "hit_rate": _ratio(hits[name], number)}
        for name, number in requests.items()
    ]


def _spending(tx: "Transaction", settings: "Settings") -> dict[str, Any]:
    stories = counts.view(tx, "spending_by_story")
    single = [row for row in stories if row["session_id"].startswith(_SINGLE)]
    return {
        "charged": sum(story["charged"] for story in stories),
        "stories": len(stories),
        "max_calls_per_story": settings.knowledge_research.max_calls_per_story,
        "by_story": [row for row in stories if row not in single][:_STORIES],
        "single_questions": {"questions": len(single)}
        | {name: sum(row[name] for row in single) for name in ("charged", "uncharged")},
    }


def _sources(tx: "Transaction", now: datetime) -> list[dict[str, Any]]:
    """Give the reliability of each source, and what its circuit breaker says now (SPEC 3.5)."""
    circuits = {circuit.source: circuit for circuit in ledger.circuits(tx)}
    rows = {row["source"]: row for row in counts.view(tx, "source_reliability")}
    empty = {"asked": 0, "success": 0, "timeout": 0, "unavailable": 0, "success_rate": None, "mean_ms": None}
    found = []
    for source in sorted(rows.keys() | circuits.keys()):
        circuit = circuits.get(source)
        until = parse_time(circuit.open_until) if circuit and circuit.open_until else None
        is_open = until is not None and now < until
        found.append(
            {
                "source": source,
                **empty,
                **rows.get(source, {}),
                "circuit": "open" if is_open else "closed",
                "open_until": circuit.open_until if circuit and is_open else None,
                "last_error": circuit.last_error if circuit else None,
            }
        )
    return found


def _ratio(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


_SUMS = ("requests", "hits", "spared_tokens", "measured", "charged")

Standing = Literal["live", "archived", "gone"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Day:
    """One UTC day: research requests, how many the cache answered, and what the sources were asked.

    ``spared_tokens`` are those of the ``measured`` answers from the cache.
    """

    day: date
    requests: int = 0
    hits: int = 0
    spared_tokens: int = 0
    measured: int = 0
    charged: int = 0
    failed: int = 0

    @property
    def misses(self) -> int:
        return self.requests - self.hits

    @property
    def hit_rate(self) -> float | None:
        """0.0 to 1.0; None on a day without requests."""
        return self.hits / self.requests if self.requests else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """The last days, oldest first, none left out, and their sums."""

    days: tuple[Day, ...]
    requests: int
    hits: int
    spared_tokens: int
    measured: int
    charged: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    session_id: str
    story_key: str
    requests: int
    hits: int
    charged: int
    uncharged: int
    last_at: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Offered:
    """An entry that was offered for a need. What is gone has no topic any more."""

    id: str
    score: float
    standing: Standing
    framework: str | None = None
    topic: str | None = None
    question: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenNeed:
    """A need to which candidates were offered, worded alike by ``asked`` requests, ``request_id`` the last; ``researched`` is its entry."""

    request_id: str
    asked: int
    last_at: str
    framework: str
    topic: str
    tags: tuple[str, ...]
    question: str
    researched: str | None
    offered: tuple[Offered, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenNeeds:
    """Some of the needs that nobody has settled, those asked most first; ``total`` are there."""

    shown: tuple[OpenNeed, ...] = ()
    total: int = 0


def course(store: "Store", now: datetime, *, days: int = 30) -> Course:
    """Tell how the last ``days`` UTC days went, today included. Raises a ``StoreError``."""
    today = now.astimezone(UTC).date()
    dates = [today - timedelta(days=back) for back in reversed(range(days))]
    with store.look() as tx:
        asked = {row["day"]: row for row in counts.view(tx, "hit_rate_by_day")}
        calls = counts.calls_by_day(tx, dates[0].isoformat())
        spares = {row["day"]: row for row in counts.spared_by_day(tx)}
    found = tuple(_day(day, *(rows.get(f"{day}", {}) for rows in (asked, calls, spares))) for day in dates)
    sums = {name: sum(getattr(day, name) for day in found) for name in _SUMS}
    return Course(days=found, **sums)


def _day(day: date, asked: Mapping[str, Any], calls: Mapping[str, int], spares: Mapping[str, int]) -> Day:
    return Day(
        day=day,
        requests=asked.get("requests", 0),
        hits=asked.get("hits", 0),
        spared_tokens=spares.get("tokens", 0),
        measured=spares.get("answers", 0),
        **calls,
    )


def stories(store: "Store", *, limit: int, offset: int = 0) -> tuple[list[Story], int]:
    """Give stories by what they were charged, the dearest first, and how many there are."""
    with store.look() as tx:
        spent = {(row["session_id"], row["story_key"]): row for row in counts.view(tx, "spending_by_story")}
        asked = {(row["session_id"], row["story_key"]): row for row in counts.requests_by_story(tx)}
    found = [_story(key, asked.get(key, {}), spent.get(key, {})) for key in {**spent, **asked}]
    found.sort(key=lambda story: story.last_at, reverse=True)
    found.sort(key=lambda story: (-story.charged, -story.uncharged, -story.requests))
    return found[offset : offset + limit], len(found)


def _story(key: tuple[str, str], asked: Mapping[str, Any], spent: Mapping[str, Any]) -> Story:
    return Story(
        session_id=key[0],
        story_key=key[1],
        requests=asked.get("requests", 0),
        hits=asked.get("hits", 0),
        charged=spent.get("charged", 0),
        uncharged=spent.get("uncharged", 0),
        last_at=max(asked.get("last_at", ""), spent.get("last_at", "")),
    )


def wordings(store: "Store", entry_id: str) -> "list[Wording]":
    with store.read() as tx:
        return wording_rows.of(tx, [entry_id]).get(entry_id, [])[::-1]


def _alike(miss: "Unanswered") -> tuple[str, str, str]:
    return fold(miss.framework), fold(miss.topic), " ".join(fold(miss.question).split())


def _grouped(misses: "Sequence[Unanswered]") -> "list[list[Unanswered]]":
    """Put requests of one need together, the newest first; needs that were asked more often go first."""
    groups: dict[tuple[str, str, str], list[Unanswered]] = {}
    for miss in misses:
        groups.setdefault(_alike(miss), []).append(miss)
    return sorted(groups.values(), key=len, reverse=True)


def open_needs(store: "Store", *, limit: int, offset: int = 0) -> OpenNeeds:
    """Give the needs to which candidates were offered, and from which nobody has chosen."""
    with store.look() as tx:
        groups = _grouped(request_rows.open_offers(tx))
        shown = groups[offset : offset + limit]
        known = _known(tx, {it for group in shown for it, _ in group[0].candidates})
    return OpenNeeds(shown=tuple(_open_need(group, known) for group in shown), total=len(groups))


def _open_need(group: "Sequence[Unanswered]", known: "Mapping[str, Entry | None]") -> OpenNeed:
    last = group[0]
    return OpenNeed(
        request_id=last.request_id,
        asked=len(group),
        last_at=last.at,
        framework=last.framework,
        topic=last.topic,
        tags=last.tags,
        question=last.question,
        researched=next((miss.entry_id for miss in group if miss.entry_id is not None), None),
        offered=tuple(_offered(entry_id, score, known) for entry_id, score in last.candidates),
    )


def _known(tx: "Transaction", entry_ids: set[str]) -> "dict[str, Entry | None]":
    """Give the live entries of these ids, and None for those that are in the archive."""
    live = {entry.id: entry for entry in entries.some(tx, entry_ids)}
    return {**dict.fromkeys(set(archive.ids(tx)) & entry_ids - live.keys()), **live}


def _offered(entry_id: str, score: float, known: "Mapping[str, Entry | None]") -> Offered:
    entry = known.get(entry_id)
    if entry is None:
        return Offered(id=entry_id, score=score, standing="archived" if entry_id in known else "gone")
    return Offered(
        id=entry_id,
        score=score,
        standing="live",
        framework=entry.framework,
        topic=entry.topic,
        question=entry.question,
    )


def settle(store: "Store", request_id: str, entry_id: str | None, now: datetime) -> int:
    """Say which entry answers a need (None: none of those offered); return how many requests that settles. Raises ``UnknownEntry``."""
    from kr.freshness import to_text
    from kr.store.requests import Need

    with store.write() as tx:
        miss = request_rows.get_offer(tx, request_id)
        if miss is None:
            raise UnknownEntry("there is no such question; somebody may have removed it")
        if entry_id is not None:
            entry = _chosen(tx, miss, entry_id)
            need = Need(miss.topic, miss.tags, miss.question)
            wording_rows.keep(tx, entry, need, at=to_text(now), proved=True)
        alike = [other.request_id for other in request_rows.open_offers(tx) if _alike(other) == _alike(miss)]
        settled = list({request_id, *alike})
        request_rows.settle_offers(tx, settled, entry_id, at=to_text(now))
    return len(settled)


def _chosen(tx: "Transaction", miss: "Unanswered", entry_id: str) -> "Entry":
    if entry_id not in {it for it, _ in miss.candidates}:
        raise UnknownEntry(f"{entry_id} was not offered for this question")
    entry = entries.get(tx, entry_id)
    if entry is None:
        from kr.store.unknown import unknown_entry

        raise unknown_entry(tx, entry_id)
    return entry
