"""Lessons in tests: a request to record, and processes that record at the same time."""

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from kr.lessons.file import LOCK_TIMEOUT, LessonsFile
from kr.lessons.inject import inject
from kr.lessons.record import RecordEnvelope, record
from kr.models import Envelope
from kr.requests import LessonsInjectRequest, parse_request
from kr.settings import Settings
from kr.settings.model import Defaults, E2EInspection, KnowledgeResearch, RoleMapping
from kr.store.engine import Store

NOW = datetime(2026, 2, 7, 12, tzinfo=UTC)


def record_data(**changes: Any) -> dict[str, Any]:
    """Make the plain data of a record request; keys of ``agent_return`` may be given beside those of the request."""
    top = (
        "session_id",
        "story_key",
        "phase",
        "event_type",
        "code_paths",
        "framework_context",
        "additional_context",
        "lessons",
    )
    returned = {"status": "failure", "errors": ["row-height must be set for vue-easytable virtual scrolling"]}
    returned |= {key: value for key, value in changes.items() if key not in top}
    data = {
        "session_id": "sprint-1",
        "story_key": "3-1",
        "phase": "dev-execution",
        "event_type": "general_agent_failure",
    }
    return {**data, "agent_return": returned, **{key: value for key, value in changes.items() if key in top}}


def record_to(path: Path, project: Path, store: Store, now: datetime = NOW, **changes: Any) -> RecordEnvelope:
    """Record one request, with the default limits; ``lock_timeout`` is the recorder's, the rest the request's."""
    file = LessonsFile(path, store, lock_timeout=changes.pop("lock_timeout", LOCK_TIMEOUT))
    return record(record_data(**changes), file, settings_of(project), now=now)


def record_words(path: Path, project: Path, store: Store, *lessons: Any, **changes: Any) -> RecordEnvelope:
    """Record lessons that somebody worded."""
    data = {"session_id": "sprint-1", "story_key": "3-1", "lessons": list(lessons), **changes}
    return record(data, LessonsFile(path, store), settings_of(project), now=NOW)


def settings_of(project: Path = Path(), *, is_e2e_enabled: bool = True, **limits: Any) -> Settings:
    """Make a project's configuration; ``limits`` are of ``defaults``."""
    return Settings(
        knowledge_research=KnowledgeResearch(),
        role_mapping=RoleMapping(),
        defaults=Defaults(**limits),
        e2e_inspection=E2EInspection(enabled=is_e2e_enabled),
        knowledge_base=project / ".kr",
        project_root=project,
        config_file=None,
    )


def inject_from(path: Path, store: Store, phase: str = "dev-execution", **options: Any) -> Envelope:
    """Answer one inject request; ``framework``, ``query``, ``files`` and ``session_id`` are the request's."""
    asked: dict[str, Any] = {
        name: options.pop(name) for name in ("framework", "query", "files") if name in options
    }
    session_id = options.pop("session_id", "sprint-1")
    data = {"story_key": "3-1", "session_id": session_id, "lessons_inject": {"phase": phase, **asked}}
    request = parse_request(data, default_mode="lessons-inject")
    assert isinstance(request, LessonsInjectRequest)
    return inject(request, **{"file": LessonsFile(path, store), "budget": 10, "now": NOW, **options})


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a process of this interpreter in the root of the source; its output is text on pipes."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, arguments)],
        cwd=Path(__file__).parents[2],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
