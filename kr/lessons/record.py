"""U5, steps 1 to 6: what an agent's failure teaches, as lines at the end of the lessons file."""

import logging
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from kr import recording
from kr.errors import InvalidRequest, StoreError
from kr.guard import mask_secrets, safe
from kr.lessons.book import LessonBook, make_row, session_name
from kr.lessons.events import MOST_EVENTS, AgentReturn, Finding, detect, evident, phase_tag, read_return
from kr.lessons.file import LessonsFileError
from kr.lessons.line import FIX_COLUMNS, KEPT_COLUMNS, LONGEST, word_lesson
from kr.models import EventType, Problem
from kr.requests import bad, checked, decoded, loose_text, read_document, scalars, text
from kr.settings import Settings
from kr.store.lessons import LessonRow
from kr.text import columns
from kr.times import to_text

logger = logging.getLogger(__name__)

NO_EVENTS = "No recordable error events detected in agent return"
ALL_DUPLICATES = "All entries already exist in _lessons-learned.md"
APPEND_FAILED = "Failed to append lesson entries to file"
"""Messages of U5, steps 1, 4 and 5, as they stand; ``confirmation`` has the fourth."""

NOTHING_TOLD = "No lesson could be distilled from the agent return"

OWN_REMEDIES = "remedies.yaml"
_VERSION = re.compile(r"[\s@]+[v^~=<>]*\d[\w.]*$")


def record(
    data: bytes | Mapping[str, Any], book: LessonBook, settings: Settings, *, now: datetime
) -> recording.RecordEnvelope:
    """Answer a request, or the document of one: any bytes in, an envelope out.

    It is ``recorded``, ``skipped`` (also where it is invalid) or ``failure`` (``append_write_failed``). References are
    written relative to the project.
    """
    given: Mapping[str, Any] = {}
    try:
        given = read_document(data) if isinstance(data, bytes) else data
        request = recording.parse_record(given, phases=settings.knowledge_research.all_phases)
    except InvalidRequest as error:
        why = mask_secrets(str(error))
        logger.warning("nothing is recorded: %s", why)
        echoed = {**error.read, **given}
        if isinstance(story := echoed.get("story_key"), str):
            echoed["story_key"] = mask_secrets(story)
        return recording.skip(echoed, f"Recording skipped: {why}")
    returned = read_return(request.agent_return)
    events = detect(request.event_type, returned, evident_events(request.phase, returned, settings))
    identity = {"session_id": request.session_id, "story_key": request.story_key}
    if not (events or request.lessons):
        return recording.skip(identity, NO_EVENTS)
    detected, path = len(request.lessons or events), book.file.path
    root = settings.project_root
    context = _Context(request, returned, root, now)
    problems: list[Problem] = []
    if request.lessons:
        rows = context.handed_over(events[0] if events else request.event_type, problems)
    else:
        rows = context.distill(events[:MOST_EVENTS], path.parent / OWN_REMEDIES)
    results = recording.RecordResults(
        events_detected=detected,
        file_path=(path.relative_to(root) if path.is_relative_to(root) else path).as_posix(),
    )
    try:
        fresh, total = book.append(rows, now=now)
    except (LessonsFileError, StoreError) as error:
        logger.warning("%s", error)
        message = f"{APPEND_FAILED}: {error}"
        problem = Problem(type="append_write_failed", file_path=results.file_path, message=message)
        return recording.RecordEnvelope(status="failure", **identity, results=results, errors=[problem])
    results = replace(
        results,
        entries_recorded=len(fresh),
        entries_skipped=detected - len(fresh),
        quarantined=sum(row.held is not None for row in fresh),
        recorded_entries=[
            recording.RecordedEntry(
                date=row.lesson.date,
                phase=row.lesson.tags[0],
                event_type=row.event_type or "",
                summary=row.lesson.summary,
                ref=row.lesson.ref,
                quarantined=row.held is not None,
            )
            for row in fresh
        ],
        total_entries_in_file=total,
        message=None if fresh else ALL_DUPLICATES if rows else NOTHING_TOLD,
    )
    status: Literal["recorded", "skipped"] = "recorded" if fresh else "skipped"
    return recording.RecordEnvelope(status=status, **identity, results=results, errors=problems)


def evident_events(phase: str, returned: AgentReturn, settings: Settings) -> tuple[EventType, ...]:
    """Return the events that an agent's return shows by itself (U5, "Configuration Dependencies")."""
    defaults = settings.defaults
    most = defaults.max_story_review_rounds if phase == "story-review" else defaults.max_review_rounds
    return evident(phase, returned, most_rounds=most, is_e2e_enabled=settings.e2e_inspection.enabled)


def confirmation(envelope: recording.RecordEnvelope) -> str | None:
    """Return the line that tells people what was written (U5, step 5.6c), for standard error."""
    results = envelope.results
    written = results.entries_recorded - results.quarantined
    if envelope.status != "recorded" or not written:
        return None
    total = results.total_entries_in_file
    return f"[LESSONS] {written} entries appended to _lessons-learned.md (total: {total} entries)"


# --- in the words of who learned ---


def read_words(value: object) -> dict[str, Any]:
    """Read one lesson that was handed over, ``{symptom, fix, ref, tags}``, as ``{summary, ref, tags}``: both halves, without secrets.

    Raises ``InvalidRequest`` with an error per bad half.
    """
    words = checked({"symptom": text, "fix": _fix, "ref": loose_text, "tags": scalars}, decoded(value))
    summary = word_lesson(safe(words["symptom"][:LONGEST]), safe(words["fix"]), KEPT_COLUMNS)
    return {"summary": summary, "ref": words["ref"], "tags": words["tags"]}


def _fix(value: object) -> str:
    fix = " ".join(text(value).split())
    if (taken := columns(fix)) > FIX_COLUMNS:
        raise bad(f"is too long: {taken} columns, at most {FIX_COLUMNS}; say what to do in one sentence")
    return fix


@dataclass(frozen=True, slots=True)
class _Context:
    """What the lessons of one request are made of (U5, step 2)."""

    request: recording.RecordRequest
    returned: AgentReturn
    root: Path
    now: datetime

    @property
    def framework(self) -> str:
        return _VERSION.sub("", self.request.framework_context.strip())

    def handed_over(self, event: EventType, problems: list[Problem]) -> list[LessonRow]:
        """Take the lessons that were handed over, both halves as they were worded; a bad one is a problem, and costs only itself."""
        rows: list[LessonRow] = []
        for number, value in enumerate(self.request.lessons[:MOST_EVENTS]):
            try:
                words = read_words(value)
            except InvalidRequest as error:
                for problem in error.fields:
                    field, message = f"lessons[{number}].{problem.field}", mask_secrets(problem.message)
                    problems.append(Problem(type="validation_error", field=field, message=message))
                continue
            tags = (self.framework, *words["tags"])
            rows += self._row(event, tags, words["summary"], words["ref"], source="agent")
        return rows

    def distill(self, events: Sequence[EventType], own_remedies: Path) -> list[LessonRow]:
        """Word one lesson for each event, from what its author reported (U5, step 3).

        Each phase's next agent gets the best there is; only within one phase lessons must differ.
        """
        from kr.lessons.remedies import read_own  # heavy
        from kr.lessons.wording import word_finding  # heavy

        own = read_own(own_remedies)
        rows: dict[tuple[str, str], list[LessonRow]] = {}
        for event in events:
            phase = phase_tag(event, self.request.phase)
            worded = [(it, word) for it in self._findings(event) if (word := word_finding(it, own))]
            unused = [(it, word) for it, word in worded if (phase, word.summary) not in rows]
            if unused:
                finding, word = next((pair for pair in unused if pair[1].has_fix), unused[0])
                tags = (self.framework,) if self.framework else word.tags
                made = self._row(event, tags, word.summary, finding.path or "", source=word.source)
                rows[phase, word.summary] = made
        return [row for made in rows.values() for row in made]

    def _row(
        self, event: EventType, tags: Sequence[str], summary: str, ref: str, *, source: str
    ) -> list[LessonRow]:
        """Make a lesson of the event's phase; its reference is the first path that is one, relative to the project."""
        phase = phase_tag(event, self.request.phase)
        paths = map(str.strip, (ref, *self.request.code_paths, *self.returned.artifacts))
        path = next(filter(None, paths), "")
        path = path.removeprefix(f"{self.root}/").removeprefix("./")
        row = make_row(
            (phase, *tags),
            summary,
            path,
            recorded_at=to_text(self.now),
            story_key=self.request.story_key,
            session_id=session_name(self.request.session_id),
            event_type=event,
            source=source,
        )
        return [row] if row else []

    def _findings(self, event: EventType) -> list[Finding]:
        """Return what an event is about, the worst first; what the agent says in all only where that is all there is.

        Secrets are taken out before anything is cut: half of one is one still.
        """
        from kr.lessons.wording import is_vague  # heavy

        returned = self.returned
        issues = sorted(returned.issues, key=lambda issue: issue not in returned.severe)
        if event == "high_severity_issues":
            found = list(returned.severe)
        elif event == "review_max_rounds":
            found = [*issues, *returned.errors]
        else:
            found = [*returned.errors, *issues]
        texts = (returned.summary, self.request.additional_context)
        said = [Finding(message=text) for text in texts if text]
        found = [it for it in found if not is_vague(f"{it.message} {it.fix}")] or said
        return [replace(it, message=safe(it.message), fix=safe(it.fix)) for it in found]
