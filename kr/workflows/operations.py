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
    from kr.lessons.record import RecordEnvelope
    from kr.models import Envelope

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
        result, details = self._perform(job, instance, folder)
        is_success = result.get("status") != "failure"
        if not is_success:
            details = "; ".join(problem["message"] for problem in result["errors"]) or "failure"
        return Finished(job.target, is_success=is_success, details=details, result=result)

    def _perform(self, job: Job, instance: Instance, folder: Path) -> tuple[Result, str]:
        """Give what an operation answers, and a sentence of it."""
        request = {"story_key": "0-0", "session_id": instance.workflow_id, **job.request}
        match job.operation:
            case "research":
                envelope = to_plain(self.research(_document({"mode": "research", **request})))
                path = (envelope["results"] or {}).get("report_path")
                return envelope, f"{envelope['status']}: {path or 'no report'}"
            case "save":
                envelope = self.save(request)
                return envelope, f"{envelope['status']}: {(envelope['results'] or {}).get('id', 'nothing')}"
            case "lessons.inject":
                if "lessons_inject" not in request:
                    request["lessons_inject"] = {key: request.pop(key) for key in _INJECT if key in request}
                envelope = to_plain(self.inject(_document(request)))
                given = (envelope["results"] or {}).get("injected_count", 0)
                return envelope, f"{envelope['status']}: {counted(given, 'lesson')}"
            case "lessons.record":
                envelope = to_plain(self.record(_document(request)))
                recorded = len(envelope["results"]["recorded_entries"])
                return envelope, f"{envelope['status']}: {counted(recorded, 'lesson')}"
            case "export-yaml":
                output = job.request.get("output")
                result = self.export_yaml(None if output is None else folder / str(output))
                return result, f"exported {counted(result['entries'], 'entry', 'entries')}"
            case "warm":
                needs = self.needs()
                limit = _limit(job, len(needs))
                lacking = [need for need in needs if need["state"] != "fresh"]
                result = {"needs": needs, "lacking": lacking[:limit], "left_out": lacking[limit:]}
                return result, f"{len(lacking)} of {counted(len(needs), 'framework')} lack a fresh report"
            case "lessons.list":
                phase = job.request.get("phase")
                listed = self.lessons(None if phase is None else str(phase), _limit(job, _MOST_LESSONS))
                came_back = sum(lesson["recurred"] for lesson in listed)
                result = {"lessons": listed, "total": len(listed), "recurred": came_back}
                return result, f"{counted(len(listed), 'lesson')}, came back {counted(came_back, 'time')}"
            case _:
                raise WorkflowError(f"{job.operation} is not an operation of kr")


def _document(request: Mapping[str, Any]) -> bytes:
    return json.dumps(request, ensure_ascii=False).encode("utf-8", "replace")


def _limit(job: Job, default: int) -> int:
    value = job.request.get("limit", default)
    if isinstance(value, bool) or not str(value).isdecimal() or len(str(value)) > 9:
        raise WorkflowError(f"with.limit: must be a whole number, not {value}")
    return int(str(value))
