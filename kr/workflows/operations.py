"""kr's own operations as steps: ``with`` becomes a request, the envelope becomes the ``result`` (rule 9)."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kr.errors import WorkflowError
from kr.models import to_plain
from kr.text import counted
from kr.workflows.state import Finished, Instance, Job

if TYPE_CHECKING:
    from kr.models import Envelope
    from kr.recording import RecordEnvelope

_INJECT = ("phase", "framework", "query", "files")
_MOST_LESSONS = 100
Result = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operations:
    """The operations over one configuration, as ``kr.app`` has them."""

    research: "Callable[[bytes], Envelope]"
    inject: "Callable[[bytes], Envelope]"
    record: "Callable[[bytes], RecordEnvelope]"
    save: Callable[[Mapping[str, Any]], Result]
    export_yaml: Callable[[Path | None], Result]
    needs: Callable[[], list[Result]]
    lessons: Callable[[str | None, int], list[Result]]

    def perform(self, job: Job, instance: Instance, *, folder: Path) -> Finished:
        """Do the operation of a job. Raises ``KrError``."""
        request = {"story_key": "0-0", "session_id": instance.workflow_id, **job.request}
        match job.operation:
            case "research":
                envelope = to_plain(self.research(_document({"mode": "research", **request})))
                return _enveloped(job, envelope, _research_details(envelope))
            case "save":
                envelope = self.save(request)
                where = (envelope["results"] or {}).get("id", "nothing")
                return _enveloped(job, envelope, f"{envelope['status']}: {where}")
            case "lessons.inject":
                request = _nested(request, "lessons_inject", _INJECT)
                envelope = to_plain(self.inject(_document(request)))
                given = (envelope.get("results") or {}).get("injected_count", 0)
                return _enveloped(job, envelope, f"{envelope['status']}: {counted(given, 'lesson')}")
            case "lessons.record":
                envelope = to_plain(self.record(_document(request)))
                # Recording never stops its caller (rule 4.2).
                recorded = len(envelope["results"]["recorded_entries"])
                details = f"{envelope['status']}: {counted(recorded, 'lesson')}"
                return Finished(job.target, is_success=True, details=details, result=envelope)
            case _:
                return self._plain(job, folder)

    def _plain(self, job: Job, folder: Path) -> Finished:
        """Do an operation that answers without an envelope."""
        request = job.request
        limit = _number(request, "limit")
        match job.operation:
            case "export-yaml":
                output = request.get("output")
                result = self.export_yaml(None if output is None else folder / str(output))
                details = f"exported {counted(result['entries'], 'entry', 'entries')}"
            case "warm":
                needs = self.needs()
                lacking = [need for need in needs if need["state"] != "fresh"]
                result = {
                    "needs": needs,
                    "lacking": lacking[:limit],
                    "left_out": lacking[len(lacking[:limit]) :],
                }
                details = f"{len(lacking)} of {counted(len(needs), 'framework')} lack a fresh report"
            case "lessons.list":
                phase = request.get("phase")
                listed = self.lessons(None if phase is None else str(phase), limit or _MOST_LESSONS)
                came_back = sum(lesson["recurred"] for lesson in listed)
                result = {"lessons": listed, "total": len(listed), "recurred": came_back}
                details = f"{counted(len(listed), 'lesson')}, came back {counted(came_back, 'time')}"
            case _:
                raise WorkflowError(f"{job.operation} is not an operation of kr")
        return Finished(job.target, is_success=True, details=details, result=result)


def _nested(request: Mapping[str, Any], name: str, fields: tuple[str, ...]) -> dict[str, Any]:
    if name in request:
        return dict(request)
    rest = {key: value for key, value in request.items() if key not in fields}
    return {**rest, name: {key: request[key] for key in fields if key in request}}


def _document(request: Mapping[str, Any]) -> bytes:
    return json.dumps(request, ensure_ascii=False).encode("utf-8", "replace")


def _enveloped(job: Job, envelope: Result, details: str) -> Finished:
    is_success = envelope["status"] != "failure"
    if not is_success:
        details = "; ".join(problem["message"] for problem in envelope["errors"]) or "failure"
    return Finished(job.target, is_success=is_success, details=details, result=envelope)


def _research_details(envelope: Result) -> str:
    results = envelope.get("results") or {}
    return f"{envelope['status']}: {results.get('report_path') or 'no report'}"


def _number(request: Mapping[str, Any], name: str) -> int | None:
    value = request.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not str(value).isdecimal() or len(str(value)) > 9:
        raise WorkflowError(f"with.{name}: must be a whole number, not {value}")
    return int(str(value))
