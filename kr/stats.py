"""What the cache spares, costs and holds: the numbers of ``kr stats``, ``/v1/stats``, ``/metrics`` and the page.

Tokens spared are one number everywhere, ``ledger.spared_by_day`` by day and its sum: for each answer from the cache what finding out
had cost before, less the answer.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from kr.errors import UnknownEntry
from kr.settings import Settings
from kr.store import entries, ledger
from kr.store.engine import Store, Transaction, texts_of
from kr.store.entries import unknown_entry
from kr.store.lookup import offered
from kr.times import to_text

Row = dict[str, Any]

DAYS = 30
_MOST_STORIES = 20


def collect(store: Store, settings: Settings, *, now: datetime) -> Row:
    """Count everything, the 20 stories that cost most and the last 30 days; rates are 0.0 to 1.0 or None. Raises a ``StoreError``."""
    with store.read() as tx:
        by_story, lessons = ledger.view(tx, "spending_by_story"), ledger.view(tx, "lessons_by_phase")
        archived = ledger.number_by(tx, "reason", "archived_entries")
        return {
            "database": store.location,
            "today": now.astimezone(UTC).date().isoformat(),
            "requests": _requests(tx),
            "spared": spared(ledger.spared_by_day(tx)),
            "index": {
                "entries": entries.count(tx),
                "max_entries": settings.knowledge_research.max_entries,
                "by_status": ledger.number_by(tx, "status", "entries"),
                "by_framework": ledger.number_by(tx, "framework", "entries"),
            },
            "archive": {"entries": sum(archived.values()), "by_reason": archived},
            "hit_rate_by_day": ledger.view(tx, "hit_rate_by_day")[-DAYS:],
            "hit_rate_by_framework": ledger.view(tx, "hit_rate_by_framework"),
            "spending": {
                "charged": sum(story["charged"] for story in by_story),
                "stories": len(by_story),
                "max_calls_per_story": settings.knowledge_research.max_calls_per_story,
                "by_story": by_story[:_MOST_STORIES],
            },
            "sources": _sources(tx, now),
            "lessons": {"total": sum(row["lessons"] for row in lessons), "by_phase": lessons},
        }


def spared(days: Iterable[Mapping[str, Any]]) -> Row:
    """Sum up what answers from the cache spared: ``{tokens, seconds, answers}``; ``answers`` are those that were measured."""
    sums = Counter[str]()
    for day in days:
        sums.update({name: day[name] for name in ("tokens", "milliseconds", "answers")})
    return {
        "tokens": sums["tokens"],
        "seconds": round(sums["milliseconds"] / 1000, 3),
        "answers": sums["answers"],
    }


def _requests(tx: Transaction) -> Row:
    by_day = ledger.view(tx, "hit_rate_by_day")
    hits, answered = (sum(day[name] for day in by_day) for name in ("hits", "requests"))
    by_mode = ledger.number_by(tx, "mode", "requests")
    return {
        "total": sum(by_mode.values()),
        "research": answered,
        "hits": hits,
        "misses": answered - hits,
        "hit_rate": round(hits / answered, 4) if answered else None,
        "by_mode": by_mode,
        "by_status": ledger.number_by(tx, "status", "requests"),
    }


def _sources(tx: Transaction, now: datetime) -> list[Row]:
    """Say how reliable each source was, and whether its circuit is open now."""
    empty = {"asked": 0, "success": 0, "timeout": 0, "unavailable": 0, "success_rate": None, "mean_ms": None}
    rows = {row["source"]: row for row in ledger.view(tx, "source_reliability")}
    circuits = {circuit["source"]: circuit for circuit in ledger.circuits(tx)}
    found = []
    for source in sorted(rows.keys() | circuits.keys()):
        circuit = circuits.get(source)
        is_open = circuit is not None and to_text(now) < (circuit["open_until"] or "")
        of_circuit = {
            "circuit": "open" if is_open else "closed",
            "open_until": circuit["open_until"] if circuit and is_open else None,
            "last_error": circuit["last_error"] if circuit else None,
        }
        found.append({"source": source, **empty, **rows.get(source, {}), **of_circuit})
    return found


def last_days(store: Store, now: datetime) -> Row:
    """Say how the last 30 UTC days went, today included: ``{days, requests, hits, spared_tokens, measured, charged}``.

    Each of ``days``, the oldest first, has ``day`` (a date), ``misses``, ``hit_rate`` (None without requests), ``failed`` and the numbers
    whose sums stand beside it. ``spared_tokens`` are those of the ``measured`` answers.
    """
    today = now.astimezone(UTC).date()
    dates = [today - timedelta(days=back) for back in reversed(range(DAYS))]
    with store.read() as tx:
        asked = {row["day"]: row for row in ledger.view(tx, "hit_rate_by_day")}
        calls = ledger.calls_by_day(tx, dates[0].isoformat())
        spares = {row["day"]: row for row in ledger.spared_by_day(tx)}
    days: list[Row] = []
    for day in dates:
        of_day = asked.get(str(day), {"requests": 0, "hits": 0, "hit_rate": None})
        spare = spares.get(str(day), {"tokens": 0, "answers": 0})
        called = calls.get(str(day), {"charged": 0, "failed": 0})
        missed = of_day["requests"] - of_day["hits"]
        measured = {"spared_tokens": spare["tokens"], "measured": spare["answers"]}
        days.append({**of_day, "day": day, "misses": missed, **measured, **called})
    sums = ("requests", "hits", "spared_tokens", "measured", "charged")
    return {"days": days, **{name: sum(day[name] for day in days) for name in sums}}


def open_needs(store: Store, *, limit: int, offset: int = 0) -> tuple[list[Row], int]:
    """Give questions to which candidates were offered and from which nobody has chosen, and how many there are.

    Requests of one need are one, those that were asked most first: ``{request, tags, asked, researched, offered}``, where ``request`` is the
    newest of them, ``researched`` the id of the entry that was written then, and each of ``offered`` is ``{id, entry}``, with ``entry`` None
    where it is not in the index any more.
    """
    with store.read() as tx:
        groups = _grouped(ledger.open_offers(tx))
        shown = groups[offset : offset + limit]
        ids = {entry_id for group in shown for entry_id in offered(group[0])}
        live = {entry.id: entry for entry in entries.some(tx, ids)}
    needs = [
        {
            "request": group[0],
            "tags": texts_of(group[0]["tags"]),
            "asked": len(group),
            "researched": next(filter(None, (it["entry_id"] for it in group)), None),
            "offered": [{"id": entry_id, "entry": live.get(entry_id)} for entry_id in offered(group[0])],
        }
        for group in shown
    ]
    return needs, len(groups)


def _grouped(requests: Iterable[Row]) -> list[list[Row]]:
    groups: dict[tuple[str | None, str | None], list[Row]] = {}
    for request in requests:
        groups.setdefault((request["framework"], request["question"]), []).append(request)
    return sorted(groups.values(), key=len, reverse=True)


def close_request(store: Store, request_id: str, entry_id: str | None, now: datetime) -> int:
    """Say which entry answers a need (None: none of those offered); return how many requests that settles. Raises ``UnknownEntry``."""

    def write(tx: Transaction) -> int:
        request = ledger.offer(tx, request_id)
        if request is None:
            raise UnknownEntry("there is no such question; somebody may have removed it")
        if entry_id is not None:
            if entry_id not in offered(request):
                raise UnknownEntry(f"{entry_id} was not offered for this question")
            entry = entries.get(tx, entry_id)
            if entry is None:
                raise unknown_entry(tx, entry_id)
            wording = {
                "at": to_text(now),
                "topic": request["topic"] or "",
                "tags": texts_of(request["tags"]),
                "question": request["question"] or "",
                "proved": True,
            }
            entries.keep_wording(tx, entry, wording)
        framework, question = request["framework"] or "", request["question"] or ""
        return ledger.close_offers(tx, framework, question, entry_id, at=to_text(now))

    return store.change(write)
