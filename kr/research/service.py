"""F1, the requests of F1: any bytes in, an envelope out. A miss is handed to ``kr.research.miss``."""

import logging
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol

from kr.errors import FieldError, InvalidRequest, StoreError
from kr.models import Envelope, Problem, ResearchEnvelope, failure, in_one_line, validation_problems
from kr.requests import (
    LessonsInjectRequest,
    Mode,
    ResearchRequest,
    parse_request,
    read_document,
    with_overrides,
)
from kr.research.cache import Clock
from kr.research.decide import Lookup, Outcome
from kr.research.run import Run, rules_of
from kr.settings import Settings
from kr.store import requests
from kr.store.engine import Store
from kr.store.requests import RequestRow
from kr.text import derive_tags, derive_topic
from kr.times import UNKNOWN_VERSION, to_text

if TYPE_CHECKING:
    from kr.research.packages import Packages

logger = logging.getLogger(__name__)

DISABLED = "Knowledge research disabled in config"
"""The error of F1, "State Preconditions"."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_IN_A_ROW = ("framework", "framework_version", "topic", "question")


class Progress(Protocol):
    """Hears what a request waits for."""

    def asking(self, source: str) -> None:
        """``source`` is being asked."""

    def waiting(self) -> None:
        """Another process researches the same, and its report is waited for."""

    def done(self) -> None:
        """Nothing is being asked, or waited for, any more."""


class ResearchService:
    """Answers requests over one configuration. Imports little: a hit pays for what it uses."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        environ: Mapping[str, str],
        cwd: str | Path,
        progress: Progress,
        clock: Clock,
    ) -> None:
        self.settings = settings
        self.store = store
        self.environ = environ
        self.cwd = Path(cwd)
        self.progress = progress
        self.clock = clock
        self._rules = rules_of(settings)
        self._packages: Packages | None = None
        self._unread: tuple[str, ...] = ()
        """The project's dependency files that could not be read, where a version was looked for in vain."""

    def document(
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
            return self._refuse(error.read, validation_problems(error.fields))
        given = with_overrides(document, overrides) if overrides else document
        return self.answer(given, include_report=include_report, max_tokens=max_tokens)

    def question(
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
        """Answer a framework and a question; what is not said is derived. ``overrides`` are of ``config_overrides``."""
        said = {
            "story_key": story_key,
            "session_id": session_id or f"terminal-{uuid.uuid4().hex}",
            "config_overrides": {"max_calls": max_calls, "timeout_seconds": timeout, **overrides},
        }
        try:
            data = self.question_data(
                framework, question, framework_version=framework_version, topic=topic, tag=tag
            )
        except InvalidRequest as error:
            typed = {"framework": framework, "question": question}
            given = {"mode": "research", "research_query": typed, **said}
            return self._refuse(given, validation_problems(error.fields))
        return self.answer({**data, **said}, include_report=include_report, max_tokens=max_tokens)

    def question_data(
        self,
        framework: str,
        question: str,
        *,
        framework_version: str | None = None,
        topic: str | None = None,
        tag: tuple[str, ...] = (),
    ) -> dict[str, Any]:
        """Make the request that a framework and a question stand for. Raises ``InvalidRequest`` where one of them says nothing."""
        typed = {"framework": framework, "question": question}
        if wrong := [name for name, text in typed.items() if not any(map(str.isalnum, text))]:
            why = "Validation failed: must hold a letter or a digit"
            raise InvalidRequest(*(FieldError(f"research_query.{name}", why) for name in wrong))
        topic = derive_topic(framework, question) if topic is None else topic
        return {
            "story_key": "0-0",
            "mode": "research",
            "session_id": "terminal",
            "research_query": {
                "framework": framework,
                "framework_version": framework_version or self.version_of(framework),
                "topic": topic,
                "tags": list(tag) or list(derive_tags(framework, topic)),
                "question": question,
            },
        }

    def version_of(self, framework: str) -> str:
        """Return the version of a framework that the project uses, or ``unknown``."""
        from kr.packages.versions import find_dependencies, version_of  # heavy

        folders = dict.fromkeys((self.cwd, self.settings.project_root))
        found = (version_of(folder, framework, self.environ) for folder in folders)
        version = next(filter(None, found), None)
        if version is None:
            logger.warning(
                "no version of %s was found in the project's files; give it with --framework-version",
                framework,
            )
            self._unread = find_dependencies(self.cwd, self.environ).warnings
        return version or UNKNOWN_VERSION

    def inject(self, data: bytes, more: Mapping[str, Any] = _NOTHING) -> Envelope:
        """Answer a document of mode lessons-inject; ``more`` is put over its ``lessons_inject``."""
        try:
            document = read_document(data)
        except InvalidRequest as error:
            return self._refuse(error.read, validation_problems(error.fields), mode="lessons-inject")
        wanted = document.get("lessons_inject")
        if more and isinstance(wanted, Mapping):
            return self.inject_data({**document, "lessons_inject": {**wanted, **more}})
        return self.inject_data(document)

    def inject_data(self, data: Mapping[str, Any]) -> Envelope:
        """Answer a request of mode lessons-inject, given as plain data."""
        if data.get("mode") == "research":
            wrong = 'Invalid mode: "research"; allowed here: lessons-inject'
            return self._refuse(data, [Problem(type="validation_error", field="mode", message=wrong)])
        return self.answer(data, default_mode="lessons-inject")

    def answer(
        self,
        data: Mapping[str, Any],
        *,
        include_report: bool = False,
        max_tokens: int | None = None,
        default_mode: Mode | None = None,
    ) -> Envelope:
        """Check a request of either mode, given as plain data, and answer it."""
        try:
            request = parse_request(
                data, default_mode=default_mode, phases=self.settings.knowledge_research.all_phases
            )
            if not self.settings.knowledge_research.enabled:
                return self._refuse(data, [Problem(type="disabled", message=DISABLED)], mode=default_mode)
            if isinstance(request, LessonsInjectRequest):
                return self._inject(request)
            return self._research(request, include_report=include_report, max_tokens=max_tokens)
        except InvalidRequest as error:
            return self._refuse(data, validation_problems(error.fields), mode=default_mode)

    def _refuse(
        self, data: Mapping[str, Any], problems: Sequence[Problem], *, mode: Mode | None = None
    ) -> Envelope:
        """Answer ``failure``, and keep its row: every request leaves one."""
        envelope = failure(data, *problems, mode=mode)
        query = data.get("research_query")
        given: Mapping[str, Any] = query if isinstance(query, Mapping) else {}
        known: dict[str, Any] = {name: _text(given.get(name)) for name in _IN_A_ROW}
        row = RequestRow(
            id=uuid.uuid4().hex,
            at=to_text(self.clock()),
            mode=_text(envelope.mode),
            status="failure",
            story_key=_text(envelope.story_key),
            session_id=_text(envelope.session_id),
            duration_ms=0,
            error=in_one_line(problems),
            **known,
        )
        self._keep_row(row)
        return envelope

    def _keep_row(self, row: RequestRow) -> None:
        try:
            with self.store.write() as tx:
                requests.record(tx, row)
        except StoreError as error:
            logger.warning("%s", error)

    def _inject(self, request: LessonsInjectRequest) -> Envelope:
        from kr.lessons.book import open_book  # heavy
        from kr.lessons.inject import inject  # heavy

        with open_book(self.settings) as book:
            return inject(
                request,
                book=book,
                budget=self.settings.knowledge_research.lessons_injection_budget,
                now=self.clock(),
                related=self._depends_on,
            )

    def _depends_on(self, framework: str) -> tuple[str, ...]:
        return self.packages.depends_on(framework)

    @property
    def packages(self) -> "Packages":
        if self._packages is None:
            from kr.research.packages import Packages  # heavy

            self._packages = Packages(self.settings, self.environ, self.cwd)
        return self._packages

    def _research(
        self, request: ResearchRequest, *, include_report: bool, max_tokens: int | None
    ) -> ResearchEnvelope:
        """Answer a valid request (F1, steps 2 to 9); it degrades rather than fails.

        Raises ``InvalidRequest`` for an entry that is named and can't be served.
        """
        run = Run(
            request=request,
            rules=self._rules,
            store=self.store,
            clock=self.clock,
            project=str(self.cwd),
            knowledge_base=self.settings.knowledge_base,
            include_report=include_report,
            max_tokens=max_tokens,
        )
        if run.query.framework_version == UNKNOWN_VERSION:
            run.notes += [f"not read: {warning}" for warning in self._unread]
        try:
            found = self._look_up(run)
            if run.may_serve(found):
                return run.serve(found)
            if run.may_offer(found) and (readable := run.cache.readable(found)).is_offer:
                return run.offer(readable)
            from kr.research.miss import Miss  # heavy

            result = Miss(self.settings, self.packages, self.progress).perform(run, found)
            if isinstance(result, Outcome):
                return run.answer(result)
            return run.serve(result) if result.is_hit else run.offer(result)
        except InvalidRequest:
            raise
        except BaseException as error:
            row = run.row("failure", error=f"interrupted: {type(error).__name__}")
            run.shelf.write(
                lambda tx: None if requests.has_ended(tx, row.id) else requests.record(tx, row), None
            )
            raise

    @staticmethod
    def _look_up(run: Run) -> Lookup:
        if run.overrides.use is None:
            return run.cache.look_up(run.query)
        found = run.cache.use(run.query, run.overrides.use)
        if found.match is not None:
            return found
        run.notes.append(
            f"{run.overrides.use} has no report that could be served: the question was answered without it"
        )
        return run.cache.look_up(run.query)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
