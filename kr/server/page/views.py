"""What each view of the page shows: the operations of ``kr.app`` made into the values that its template reads."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any
from urllib.parse import quote

from kr import stats as numbers
from kr.app import App
from kr.errors import FieldError, InvalidRequest, ReviewerNeeded, UnknownEntry
from kr.models import EntryStatus, Writer
from kr.server.page.charts import Chart, bar_chart, day_label, rate_chart
from kr.server.page.markdown import report_page
from kr.server.page.rendering import number, percent, plural

PER_PAGE = 50
_MOST_FOUND = 200
FEW = 20
"""On a page of what is taller than a line."""
_STATUSES = ("fresh", "stale")
_REASONS = ("lru", "age", "manual")
LESSON_MARKS = {
    "retire": ("retired_at", True),
    "bring-back": ("retired_at", False),
    "pin": ("pinned_at", True),
    "unpin": ("pinned_at", False),
}
"""What a person may say of a lesson, by the form's word: the mark, and whether it is set."""

Context = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Asked:
    """The query of an address. A value that makes no sense is as if it were not there: people edit addresses."""

    values: Mapping[str, str]

    def text(self, name: str) -> str:
        """Return a value, or nothing."""
        return self.values.get(name, "").strip()[:200]

    def one_of(self, name: str, allowed: Sequence[str]) -> str:
        """Return a value if it is one of these."""
        return value if (value := self.text(name)) in allowed else ""

    @property
    def page(self) -> int:
        """The number of the page, from 1 on."""
        text = self.text("page")
        return int(text) if text.isdecimal() and len(text) <= 6 and int(text) else 1

    def offset(self, per_page: int = PER_PAGE) -> int:
        """How many items come before the page."""
        return (self.page - 1) * per_page


def overview(app: App, asked: Asked) -> Context:  # noqa: ARG001 - every view takes both
    """Show how the last thirty days went, what waits for a person, and what the cache holds."""
    stats, course = app.stats(), numbers.last_days(app.store, app.clock())
    return {
        "stats": stats,
        "course": course,
        "rate_chart": rate_chart(_each(course, "day"), _each(course, "hit_rate"), _labels(course)),
        "tokens_chart": _chart(course, hit="spared_tokens"),
        "questions_chart": _chart(course, hit="hits", miss="misses"),
        "open_needs": numbers.open_needs(app.store, limit=0)[1],
        "waiting": app.findings.review(),
        "open_circuits": [row for row in stats["sources"] if row["circuit"] == "open"],
    }


def _chart(course: Context, **series: str) -> Chart:
    """Draw a stack for each day, of these numbers by the classes of their parts."""
    parts = [(name, _each(course, number)) for name, number in series.items()]
    return bar_chart(_each(course, "day"), parts, _labels(course))


def _each(course: Context, name: str) -> list[Any]:
    return [day[name] for day in course["days"]]


def _labels(course: Context) -> list[str]:
    return [_label(day) for day in course["days"]]


def _label(day: Context) -> str:
    asked = (
        f"{plural(day['requests'], 'question')}, {day['hits']} from the cache ({percent(day['hit_rate'])})"
    )
    spared = f", {number(day['spared_tokens'])} tokens spared" if day["spared_tokens"] else ""
    calls = f", {plural(day['charged'], 'call')} to sources" if day["charged"] else ""
    return f"{day_label(day['day'])}: {asked}{spared}{calls}"


def entries(app: App, asked: Asked) -> Context:
    """List live entries, found by words or the last used first."""
    words, framework = asked.text("q"), asked.text("framework")
    status = asked.one_of("status", _STATUSES)
    return {
        "words": words,
        "framework": framework,
        "status": status,
        "statuses": _STATUSES,
        "frameworks": sorted(app.stats()["index"]["by_framework"], key=str.casefold),
        **_entries(app, asked, words=words, framework=framework or None, status=status),
    }


def _entries(app: App, asked: Asked, *, words: str, framework: str | None, status: str) -> Context:
    catalog, first = app.catalog, asked.offset()
    if not words:
        judged: EntryStatus | None = "fresh" if status == "fresh" else "stale" if status == "stale" else None
        found = catalog.page(framework=framework, status=judged, limit=PER_PAGE, offset=first)
        return {"entries": _titled(app, found["entries"]), **_paging(asked, found["total"])}
    rows = catalog.search(words, framework=framework, limit=_MOST_FOUND)
    kept = [row for row in rows if status in {"", row["status"]}]
    return {"entries": _titled(app, kept[first : first + PER_PAGE]), **_paging(asked, len(kept))}


def _titled(app: App, rows: Sequence[Mapping[str, Any]]) -> list[Context]:
    """Give each row of an entry its title: the question, or the topic where nobody asked."""
    with app.store.look() as unit:
        questions = {entry.id: entry.question for entry in unit.entries.some({row["id"] for row in rows})}
    return [{**row, "title": questions.get(row["id"]) or row["topic"]} for row in rows]


def _paging(asked: Asked, total: int, per_page: int = PER_PAGE) -> Context:
    return {"total": total, "page": asked.page, "pages": max(-(-total // per_page), 1)}


def entry(app: App, asked: Asked, entry_id: str) -> Context:
    """Show one entry with its report, or an earlier text of it, what was said of it, and the wordings that find it."""
    catalog, number = app.catalog, asked.text("text")
    found = catalog.entry(entry_id, report=True)
    is_number = number.isdecimal() and len(number) <= 6
    earlier = catalog.revision(entry_id, int(number)) if is_number else None
    text = found.pop("report") if earlier is None else earlier["text"]
    return {
        "entry": found,
        "earlier": earlier,
        "history": catalog.history(entry_id) if found["revisions"] else [],
        "report": None if text is None else report_page(text),
        "text": text or "",
        "ratings": catalog.ratings(entry_id),
        "wordings": _wordings(app, entry_id),
        "draft": None,
        "problem": None,
    }


def _wordings(app: App, entry_id: str) -> list[Any]:
    with app.store.read() as unit:
        return unit.wordings.of([entry_id]).get(entry_id, [])[::-1]


def review(app: App, asked: Asked) -> Context:  # noqa: ARG001 - every view takes both
    """Show what waits for a person: findings and lessons that were held back, reports rated wrong, candidates."""
    return {"waiting": app.review()}


def candidates(app: App, asked: Asked) -> Context:
    """List the questions to which candidates were offered, and from which nobody has chosen."""
    needs, total = numbers.open_needs(app.store, limit=FEW, offset=asked.offset(FEW))
    return {"needs": needs, **_paging(asked, total, FEW)}


def archive(app: App, asked: Asked) -> Context:
    """List the archive, the last archived first."""
    framework, reason = asked.text("framework"), asked.one_of("reason", _REASONS)
    stats = app.stats()["archive"]
    limit = asked.offset() + PER_PAGE + 1
    found = app.catalog.archive(framework=framework or None, reason=reason or None, limit=limit)  # type: ignore[arg-type]
    with app.store.look() as unit:
        rows = islice(unit.archive.browse(framework or None, reason or None), limit)  # type: ignore[arg-type]
        questions = {archived.archive_id: archived.entry.question for archived in rows}
    shown = found[asked.offset() : limit - 1]
    return {
        "framework": framework,
        "reason": reason,
        "reasons": _REASONS,
        "archived": [{**row, "title": questions.get(row["archive_id"]) or row["topic"]} for row in shown],
        "by_reason": stats["by_reason"],
        "all": stats["entries"],
        "page": asked.page,
        "has_more": len(found) == limit,
    }


def spending(app: App, asked: Asked) -> Context:
    """List stories by what they spent, the dearest first."""
    with app.store.look() as unit:
        stories = unit.counts.view("spending_by_story")
    found = stories[asked.offset() : asked.offset() + PER_PAGE]
    course = numbers.last_days(app.store, app.clock())
    stats = app.stats()
    return {
        "stories": found,
        "dearest": max((story["charged"] for story in found), default=0),
        "course": course,
        "chart": _chart(course, hit="charged", bad="failed"),
        "spending": stats["spending"],
        "spared": stats["spared"],
        **_paging(asked, len(stories)),
    }


def sources(app: App, asked: Asked) -> Context:  # noqa: ARG001 - every view takes both
    """Show how each source does, and whether it is paused."""
    return {"sources": app.stats()["sources"], "settings": app.settings.knowledge_research}


def lessons(app: App, asked: Asked) -> Context:
    """Show lessons by phase with what they are worth, and those that wait for a person."""
    with app.lessons() as service:
        everything = service.lessons(limit=100_000)
        waiting = service.quarantined()
    phases = app.settings.knowledge_research.all_phases
    phase, worth = asked.one_of("phase", phases), asked.one_of("worth", WORTHS)
    shown = [
        lesson
        for lesson in everything
        if lesson["status"] != "quarantined" and _is_asked(lesson, phase, worth)
    ]
    return {
        "phase": phase,
        "worth": worth,
        "worths": WORTHS,
        "phases": [_phase(name, everything) for name in phases],
        "quarantined": waiting,
        "all": len(everything),
        "lessons": shown[asked.offset(FEW) : asked.offset(FEW) + FEW],
        **_paging(asked, len(shown), FEW),
    }


WORTHS = ("helps", "unheeded", "idle", "new")


def _is_asked(lesson: Mapping[str, Any], phase: str, worth: str) -> bool:
    return (not phase or phase in lesson["tags"]) and worth in {"", lesson["worth"]}


def _phase(name: str, everything: Sequence[Mapping[str, Any]]) -> Context:
    mine = [
        lesson for lesson in everything if name in lesson["tags"] and lesson["status"] in {"live", "pinned"}
    ]
    return {
        "name": name,
        "lessons": len(mine),
        **{key: sum(lesson[key] for lesson in mine) for key in COUNTS},
        "worths": [(worth, sum(lesson["worth"] == worth for lesson in mine)) for worth in WORTHS],
    }


COUNTS = ("injected", "recurred", "recurred_after_injection")


def settle(app: App, form: Mapping[str, str]) -> str:
    """Note which entry answers a need, or that none does; the code of what to say."""
    numbers.settle(app.store, form.get("request", ""), form.get("entry") or None, app.clock())
    return "answered" if form.get("entry") else "none"


def restore(app: App, form: Mapping[str, str]) -> str:
    """Bring an archived entry back; raises ``EntryConflict`` where another is live at its place."""
    number = form.get("archive_id", "")
    archive_id = int(number) if number.isdecimal() and len(number) < 19 else -1
    app.catalog.restore(form.get("id", ""), archive_id=archive_id, replace_live=form.get("replace") == "yes")
    return "restored"


def remove(app: App, form: Mapping[str, str]) -> str:
    """Move an entry to the archive."""
    app.catalog.remove([form.get("id", "")])
    return "removed"


def judge_lesson(app: App, form: Mapping[str, str]) -> str:
    """Retire or pin a lesson, or take that back. What is in quarantine is judged by who signed in to review."""
    word, lesson_id = form.get("mark", ""), form.get("id", "")
    if word not in LESSON_MARKS:
        raise UnknownEntry("a lesson can be retired, brought back, pinned or unpinned")
    mark, is_set = LESSON_MARKS[word]
    with app.lessons() as service:
        if lesson_id in {lesson["id"] for lesson in service.quarantined()}:
            raise ReviewerNeeded(
                "It waits for a person: the page Review has what was held back, and says who may judge it."
            )
        service.mark(lesson_id, mark, is_set=is_set)  # type: ignore[arg-type]
    return word


@dataclass(frozen=True, slots=True)
class Reviewed:
    """What a reviewer's form did: the code of what to say, what it is about, and the address to go on with."""

    said: str
    of: str
    back: str = "/review"


def approve(app: App, form: Mapping[str, str], by: Writer) -> Reviewed:  # noqa: ARG001 - every act takes all
    """Let through a finding or a lesson that was held back."""
    waiting = form.get("id", "")
    results = app.approve(waiting).get("results")
    return Reviewed("approved", results["id"] if results else waiting)


def reject(app: App, form: Mapping[str, str], by: Writer) -> Reviewed:  # noqa: ARG001 - every act takes all
    """Drop a finding or a lesson that was held back."""
    app.reject(form.get("id", ""))
    return Reviewed("rejected", form.get("id", ""))


def rate(app: App, form: Mapping[str, str], by: Writer) -> Reviewed:
    """Say as a person whether an entry's report worked."""
    entry_id = form.get("id", "")
    app.rate_report(entry_id, {name: form.get(name) for name in ("outcome", "note")}, by)
    return Reviewed("rated", entry_id, _address(entry_id))


def save(app: App, form: Mapping[str, str], by: Writer) -> Reviewed:
    """Keep an edited text as a person's finding. Raises ``InvalidRequest`` for what is wrong with it."""
    entry_id = form.get("id", "")
    known = app.entry(entry_id)
    said = {name: known[name] for name in ("framework", "framework_version", "topic", "tags")}
    finding = {
        **said,
        "question": known["question"] or known["topic"],
        "answer": form.get("answer", "").replace("\r\n", "\n"),
        "verified_by": form.get("verified_by", ""),
        "sources": form.get("sources", "").split(),
        "entry": entry_id,
    }
    envelope = app.save_finding(finding, by)
    if envelope.results is None:
        raise InvalidRequest(
            *(FieldError(error.field or "answer", error.message) for error in envelope.errors)
        )
    if envelope.status == "quarantined":
        return Reviewed("held", envelope.results.id)
    return Reviewed("saved", envelope.results.id, _address(envelope.results.id))


def _address(entry_id: str) -> str:
    return f"/entries/{quote(entry_id, safe='')}"
