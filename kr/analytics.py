"""Read-only counts for ``kr stats`` (SPEC 6.5): what the cache spares, what it costs, what it holds.

Saved seconds = hits x (mean duration of a research that a source answered - mean duration of a hit), never
below zero. Saved calls = hits x mean number of calls charged to such a research. Both are measured in
``requests`` and ``source_calls``; as long as no research was measured, nothing counts as saved.
"""

from collections import Counter
from datetime import UTC, date, datetime
from typing import TYPE_CHECKING, Any

from kr.freshness import parse_time
from kr.naming import fold

if TYPE_CHECKING:
    from kr.settings import Settings
    from kr.store.store import Store
    from kr.store.unit import Unit

_STORIES = 20
_DAYS = 30
_AGES = ((0, "today"), (7, "1-7 days"), (30, "8-30 days"), (60, "31-60 days"))
_OLDER = "over 60 days"
_UNREADABLE = "unreadable date"


def collect_stats(store: "Store", settings: "Settings", *, now: datetime) -> dict[str, Any]:
    """Count everything; zeros where no database is, and none is made. Raises a ``StoreError``.

    Rates are 0.0 to 1.0 (None: nothing to divide by), durations say their unit in their name. At most 20
    stories (the dearest) and 30 days (the last) are listed.
    """
    with store.look() as unit:
        return {
            "database": store.place,
            "today": now.astimezone(UTC).date().isoformat(),
            "requests": _requests(unit),
            "saved": _saved(unit),
            "index": _index(unit, settings, now),
            "archive": _archive(unit),
            "hit_rate_by_day": unit.counts.view("hit_rate_by_day")[-_DAYS:],
            "hit_rate_by_framework": unit.counts.view("hit_rate_by_framework"),
            "spending": _spending(unit, settings),
            "sources": _sources(unit, now),
            "lessons": {
                "total": unit.counts.lessons(),
                "by_phase": unit.counts.view("lessons_by_phase"),
            },
            "workflows": _workflows(unit),
        }


def _requests(unit: "Unit") -> dict[str, Any]:
    modes = unit.counts.requests_by("mode")
    research = unit.counts.research_statuses()
    hits = research.get("cache-hit", 0)
    answered = sum(number for status, number in research.items() if status != "failure")
    return {
        "total": sum(modes.values()),
        "research": answered,
        "hits": hits,
        "misses": answered - hits,
        "hit_rate": _ratio(hits, answered),
        "by_mode": modes,
        "by_status": unit.counts.requests_by("status"),
    }


def _saved(unit: "Unit") -> dict[str, Any]:
    hits, answered = unit.counts.hits(), unit.counts.answered()
    spared_ms = max(answered.mean_ms - hits.mean_ms, 0.0) if answered.number else 0.0
    return {
        "calls": round(hits.number * answered.mean_calls, 1),
        "seconds": round(hits.number * spared_ms / 1000, 3),
        "measured_researches": answered.number,
    }


def _index(unit: "Unit", settings: "Settings", now: datetime) -> dict[str, Any]:
    accesses = unit.counts.last_accesses()
    return {
        "entries": len(accesses),
        "max_entries": settings.knowledge_research.max_entries,
        "by_status": unit.counts.entries_by("status"),
        "by_confidence": unit.counts.entries_by("confidence"),
        "by_age": by_age(accesses, now.astimezone(UTC).date()),
        "by_framework": _merged(unit.counts.entries_by("framework")),
    }


def _archive(unit: "Unit") -> dict[str, Any]:
    reasons = unit.counts.archived_by_reason()
    return {"entries": sum(reasons.values()), "by_reason": reasons}


def _workflows(unit: "Unit") -> dict[str, Any]:
    statuses = unit.workflows.by_status()
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


def _merged(counted: dict[str, int]) -> dict[str, int]:
    """Count frameworks that are the same when folded as one, under the name most entries have (SPEC 3.2)."""
    names: dict[str, str] = {}
    merged: Counter[str] = Counter()
    for name, number in counted.items():
        merged[names.setdefault(fold(name), name)] += number
    return dict(merged.most_common())


def _spending(unit: "Unit", settings: "Settings") -> dict[str, Any]:
    stories = unit.counts.view("spending_by_story")
    return {
        "charged": sum(story["charged"] for story in stories),
        "stories": len(stories),
        "max_calls_per_story": settings.knowledge_research.max_calls_per_story,
        "by_story": stories[:_STORIES],
    }


def _sources(unit: "Unit", now: datetime) -> list[dict[str, Any]]:
    """Give the reliability of each source, and what its circuit breaker says now (SPEC 3.5)."""
    circuits = {circuit.source: circuit for circuit in unit.circuits.all()}
    rows = {row["source"]: row for row in unit.counts.view("source_reliability")}
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
