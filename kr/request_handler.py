"""Requests of F1: any bytes in, an envelope out (SPEC 3.1).

``RequestHandler`` checks a request, refuses it with a row of its own or hands it on: to research, or to the
lessons of a phase.
"""

import logging
import re
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kr.contracts.requests import (
    LessonsInjectRequest,
    Mode,
    Parsed,
    ResearchRequest,
    is_blank,
    parse_request,
    put_over,
)
from kr.envelopes import Envelope, Problem, failure, in_one_line, validation_problems
from kr.errors import FieldError, InvalidRequest, StoreError
from kr.freshness import to_text
from kr.naming import fold
from kr.settings import Settings
from kr.store import requests
from kr.store.engine import Store
from kr.store.requests import RequestRow
from kr.tree import read_document

if TYPE_CHECKING:
    from _typeshed import StrPath

    from kr.research.chain import Progress
    from kr.research.service import ResearchService

logger = logging.getLogger(__name__)

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_NAME_AND_VERSION = r"(?P<name>.+?)\s*(?:==|@)\s*(?P<version>v?\d\S*)"
_ASKING = frozenset(
    ["how", "what", "why", "when", "where", "which", "can", "does", "do", "is", "are", "should"]
)
_QUESTIONS_WORDS = 3
_ASKED = ("framework", "framework_version", "topic", "question")

DISABLED = "Knowledge research disabled in config"
"""The error of seed 000, "State Preconditions"."""


class RequestHandler:
    """Answers requests. ``before_use`` runs before the index is first read; ``lessons_store`` opens one that waits only briefly."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        lessons_store: Callable[[], AbstractContextManager[Store]],
        before_use: Callable[[], None],
        environ: Mapping[str, str],
        cwd: "StrPath",
        progress: "Progress",
        clock: Callable[[], datetime],
    ) -> None:
        self._settings = settings
        self._store = store
        self._lessons_store = lessons_store
        self._before_use = before_use
        self._environ = environ
        self._cwd = cwd
        self._progress = progress
        self._clock = clock

    def research_document(
        self,
        data: bytes,
        *,
        include_report: bool = False,
        max_tokens: int | None = None,
        overrides: Mapping[str, Any] = _NOTHING,
    ) -> Envelope:
        """Answer a request document of either mode; ``overrides`` win over its ``config_overrides``.

        A report in the answer has at most ``max_tokens``.
        """
        try:
            document = read_document(data)
        except InvalidRequest as error:
            return self._refuse(error.read, *validation_problems(error.fields))
        _warn(document.warnings)
        read: Mapping[str, Any] = document.data
        if overrides:
            read = {**read, "config_overrides": put_over(read.get("config_overrides"), overrides)}
        return self._handle(read, include_report=include_report, max_tokens=max_tokens)

    def research_question(
        self,
        framework: str,
        question: str,
        *,
        include_report: bool = False,
        max_tokens: int | None = None,
        framework_version: str | None = None,
        topic: str | None = None,
        tag: tuple[str, ...] = (),
        story_key: str = "0-0",
        session_id: str | None = None,
        max_calls: int | None = None,
        timeout: int | None = None,
        overrides: Mapping[str, Any] = _NOTHING,
    ) -> Envelope:
        """Answer a person's question; what is not said is derived (SPEC 3.1). ``overrides`` are of ``config_overrides``."""
        said = {
            "story_key": story_key,
            "session_id": f"terminal-{uuid.uuid4().hex}" if session_id is None else session_id,
            "config_overrides": {"max_calls": max_calls, "timeout_seconds": timeout, **overrides},
        }
        asked = {"framework": framework, "framework_version": framework_version, "topic": topic}
        asked["question"] = question
        if wrong := _wrong_question(framework, question):
            refused = {"mode": "research", "research_query": asked, **said}
            return self._refuse(refused, *validation_problems(wrong))
        with self._accounted({"mode": "research", "research_query": asked, **said}):
            data = self.question_data(
                framework, question, framework_version=framework_version, topic=topic, tag=tag
            )
        return self._handle(data | said, include_report=include_report, max_tokens=max_tokens)

    def question_data(
        self,
        framework: str,
        question: str,
        *,
        framework_version: str | None = None,
        topic: str | None = None,
        tag: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        """Make the request that a person's question stands for; a version behind the name (``rich==13.7.1``) is read as one."""
        from kr.text.words import derive_tags, derive_topic

        if found := re.fullmatch(_NAME_AND_VERSION, framework.strip()):
            framework = found["name"]
            framework_version = framework_version or found["version"]
        topic = derive_topic(framework, question) if topic is None else topic
        return {
            "story_key": "0-0",
            "mode": "research",
            "session_id": "terminal",
            "research_query": {
                "framework": framework,
                "framework_version": (
                    self.detect_version(framework) if framework_version is None else framework_version
                ),
                "topic": topic,
                "tags": list(tag) or list(derive_tags(framework, topic)),
                "question": question,
            },
        }

    def inject_document(self, data: bytes, more: Mapping[str, Any] | None = None) -> Envelope:
        """Answer a document of mode lessons-inject (SPEC 3.1); ``more`` is put over its ``lessons_inject``."""
        try:
            document = read_document(data)
        except InvalidRequest as error:
            return self._refuse(error.read, *validation_problems(error.fields), mode="lessons-inject")
        _warn(document.warnings)
        asked = document.data.get("lessons_inject")
        if more and isinstance(asked, Mapping):
            return self.inject_lessons({**document.data, "lessons_inject": {**asked, **more}})
        return self.inject_lessons(document.data)

    def inject_lessons(self, data: Mapping[str, Any]) -> Envelope:
        if data.get("mode") == "research":
            wrong = 'Invalid mode: "research"; allowed here: lessons-inject'
            return self._refuse(data, Problem(type="validation_error", field="mode", message=wrong))
        return self._handle(data, include_report=False, default_mode="lessons-inject")

    def _handle(
        self,
        data: Mapping[str, Any],
        *,
        include_report: bool,
        max_tokens: int | None = None,
        default_mode: Mode | None = None,
    ) -> Envelope:
        try:
            parsed: Parsed = parse_request(
                data, default_mode=default_mode, phases=self._settings.knowledge_research.all_phases
            )
        except InvalidRequest as error:
            _warn(error.warnings)
            return self._refuse(data, *validation_problems(error.fields), mode=default_mode)
        _warn(parsed.warnings)
        if not self._settings.knowledge_research.enabled:
            return self._refuse(data, Problem(type="disabled", message=DISABLED), mode=default_mode)
        if isinstance(parsed.request, ResearchRequest):
            with self._accounted(data):
                self._before_use()
                researcher = self._researcher
            try:
                envelope = researcher.research(
                    parsed.request, include_report=include_report, max_tokens=max_tokens
                )
            except InvalidRequest as error:  # of what only the index can tell: an entry that is named
                return self._refuse(data, *validation_problems(error.fields))
            if envelope.status == "cache-hit":
                self._before_use = _nothing  # the index is not empty
            return envelope
        return self._inject(parsed.request)

    @contextmanager
    def _accounted(self, data: Mapping[str, Any]) -> Iterator[None]:
        """Keep a row of a request that is interrupted before research keeps one itself (SPEC 5)."""
        try:
            yield
        except Exception:
            raise
        except BaseException as error:
            self._record(data, failure(data), error=f"interrupted: {type(error).__name__}")
            raise

    def _refuse(self, data: Mapping[str, Any], *problems: Problem, mode: Mode | None = None) -> Envelope:
        """Answer ``failure``, and keep a row of it: every request counts (SPEC 5)."""
        envelope = failure(data, *problems, mode=mode)
        self._record(data, envelope, error=in_one_line(problems))
        return envelope

    def _record(self, data: Mapping[str, Any], envelope: Envelope, *, error: str | None) -> None:
        query = data.get("research_query")
        said: Mapping[str, Any] = query if isinstance(query, Mapping) else {}
        asked: dict[str, Any] = {name: _text(said.get(name)) for name in _ASKED}
        row = RequestRow(
            id=uuid.uuid4().hex,
            at=to_text(self._clock()),
            mode=_text(envelope.mode),
            status="failure",
            story_key=_text(envelope.story_key),
            session_id=_text(envelope.session_id),
            duration_ms=0,
            error=error,
            **asked,
        )
        try:
            with self._store.write() as tx:
                requests.record(tx, row)
        except StoreError as problem:
            logger.warning("%s", problem)

    def _inject(self, request: LessonsInjectRequest) -> Envelope:
        from kr.lessons.file import LessonBook, LessonsFile
        from kr.lessons.inject import inject

        with self._lessons_store() as store:
            return inject(
                request,
                book=LessonBook(LessonsFile(self._settings.lessons_file), store),
                budget=self._settings.knowledge_research.lessons_injection_budget,
                now=self._clock(),
                related=self._depends_on,
            )

    def _depends_on(self, framework: str) -> tuple[str, ...]:
        from kr.composition import depends_on

        return depends_on(self._settings, self._environ, self._cwd, framework)

    def detect_version(self, framework: str) -> str:
        """Return the version of a framework that the project uses (SPEC 6.4), or ``unknown``."""
        from pathlib import Path

        from kr.freshness import UNKNOWN_VERSION
        from kr.packages.versions import version_of

        folders = dict.fromkeys((Path(self._cwd), self._settings.project_root))
        found = (version_of(folder, framework, self._environ) for folder in folders)
        if version := next(filter(None, found), None):
            return version
        from kr.composition import mistyped

        if names := mistyped(self._settings, self._store, self._cwd, framework):
            said = "no dependency file and no entry names %s; did you mean %s? It is asked about as it stands"
            logger.warning(said, framework, " or ".join(names))
        else:
            said = "no version of %s was found in the project's files; give it with --framework-version"
            logger.warning(said, framework)
        return UNKNOWN_VERSION

    @cached_property
    def _researcher(self) -> "ResearchService":
        from kr.composition import build_research

        return build_research(
            self._settings,
            self._store,
            environ=self._environ,
            cwd=self._cwd,
            progress=self._progress,
            clock=self._clock,
        )


def _wrong_question(framework: str, question: str) -> tuple[FieldError, ...]:
    """Say what is wrong with what a person typed, before topic, tags and version are derived from it."""
    typed = {"research_query.framework": framework, "research_query.question": question}
    if blank := [field for field, text in typed.items() if is_blank(text)]:
        return tuple(FieldError(field, "Validation failed: must not be empty") for field in blank)
    for field, text in typed.items():
        if not any(character.isalnum() for character in text):
            return (FieldError(field, f"{text.strip()!r} has no letter and no digit"),)
    name, why = framework.strip(), ""
    if name.startswith(("/", "./", "~")) or "\\" in name or ".." in name.split("/"):
        why = "is a path; a name such as vue, next.js or owner/repo is expected"
    elif _is_question(name, question):
        why = "is a question; did you mean the arguments the other way round? The framework comes first"
    return (FieldError("research_query.framework", f"{name!r} {why}"),) if why else ()


def _is_question(framework: str, other: str) -> bool:
    """Tell whether a framework reads as a question, or is many words beside one that is a framework's usual name."""
    from kr.frameworks import is_usual_name

    words = fold(framework).split()
    if len(words) < _QUESTIONS_WORDS:
        return framework.endswith("?")
    return (
        words[0] in _ASKING
        or framework.endswith("?")
        or (is_usual_name(other) and not is_usual_name(framework))
    )


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        logger.warning("%s", warning)


def _nothing() -> None:
    """Do nothing."""


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
