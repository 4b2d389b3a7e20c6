"""F1, the requests of seed 000: any bytes in, an envelope out. A miss is handed to ``kr.research.miss``."""

import json
import logging
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from kr.contracts.requests import (
    LessonsInjectRequest,
    Mode,
    ResearchRequest,
    parse_request,
    put_over,
)
from kr.envelopes import (
    CandidateReport,
    Envelope,
    LessonView,
    MatchView,
    Problem,
    ResearchEnvelope,
    ResearchResults,
    failure,
    in_one_line,
    validation_problems,
)
from kr.errors import FieldError, InvalidRequest, StoreError
from kr.frameworks import lookup_keys
from kr.freshness import UNKNOWN_VERSION, to_text
from kr.models import Match, ResearchStatus
from kr.report import with_confidence
from kr.research.cache import Clock, Run, may_offer, may_serve, rules_of
from kr.research.decide import Lookup, Outcome, outcome_of, research_status
from kr.research.progress import Progress
from kr.research.shelf import HIT_TIMEOUT
from kr.settings import Settings
from kr.store import entries as entry_rows
from kr.store import ledger, lookup, requests, wordings
from kr.store.engine import Store, Transaction
from kr.store.requests import Need, RequestRow
from kr.text.counting import tokens_of
from kr.text.words import derive_tags, derive_topic, search_words
from kr.tree import read_document

if TYPE_CHECKING:
    from kr.research.packages import Packages

logger = logging.getLogger(__name__)

DISABLED = "Knowledge research disabled in config"
"""The error of seed 000, "State Preconditions"."""
SAVE_HINT = "what you find out otherwise and proves right: keep it with `kr save` (MCP: save_finding), so that the next one has it"
"""What an answer says that holds no report."""
OFFERED = "candidates: use: ID takes one of results.related, if_unsure: research has it researched; rate what worked"
"""What an answer says that offers candidates."""

_NOTHING: Mapping[str, Any] = MappingProxyType({})
_MOST_LESSONS = 3
_LESSONS_PATIENCE = 2.0
"""Seconds that lessons wait for a busy database, which only counts them."""
_IN_A_ROW = ("framework", "framework_version", "topic", "question")


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
        _warn(document.warnings)
        given: Mapping[str, Any] = document.data
        if overrides:
            given = {**given, "config_overrides": put_over(given.get("config_overrides"), overrides)}
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
        typed = {"framework": framework, "question": question}
        if wrong := [name for name, text in typed.items() if not any(map(str.isalnum, text))]:
            given = {"mode": "research", "research_query": typed, **said}
            why = "Validation failed: must hold a letter or a digit"
            errors = [FieldError(f"research_query.{name}", why) for name in wrong]
            return self._refuse(given, validation_problems(errors))
        data = self.question_data(
            framework, question, framework_version=framework_version, topic=topic, tag=tag
        )
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
        """Make the request that a framework and a question stand for."""
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
        from kr.packages.versions import version_of  # heavy

        folders = dict.fromkeys((self.cwd, self.settings.project_root))
        found = (version_of(folder, framework, self.environ) for folder in folders)
        version = next(filter(None, found), None)
        if version is None:
            logger.warning(
                "no version of %s was found in the project's files; give it with --framework-version",
                framework,
            )
        return version or UNKNOWN_VERSION

    def inject(self, data: bytes, more: Mapping[str, Any] = _NOTHING) -> Envelope:
        """Answer a document of mode lessons-inject; ``more`` is put over its ``lessons_inject``."""
        try:
            document = read_document(data)
        except InvalidRequest as error:
            return self._refuse(error.read, validation_problems(error.fields), mode="lessons-inject")
        _warn(document.warnings)
        given = document.data
        wanted = given.get("lessons_inject")
        if more and isinstance(wanted, Mapping):
            given = {**given, "lessons_inject": {**wanted, **more}}
        return self.inject_data(given)

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
            parsed = parse_request(
                data, default_mode=default_mode, phases=self.settings.knowledge_research.all_phases
            )
            _warn(parsed.warnings)
            if not self.settings.knowledge_research.enabled:
                return self._refuse(data, [Problem(type="disabled", message=DISABLED)], mode=default_mode)
            if isinstance(parsed.request, LessonsInjectRequest):
                return self._inject(parsed.request)
            return self._research(parsed.request, include_report=include_report, max_tokens=max_tokens)
        except InvalidRequest as error:
            _warn(error.warnings)
            return self._refuse(data, validation_problems(error.fields), mode=default_mode)

    def _refuse(
        self, data: Mapping[str, Any], problems: Sequence[Problem], *, mode: Mode | None = None
    ) -> Envelope:
        """Answer ``failure``, and keep its row: every request leaves one."""
        envelope = failure(data, *problems, mode=mode)
        query = data.get("research_query")
        given: Mapping[str, Any] = query if isinstance(query, Mapping) else {}
        told: dict[str, Any] = {name: _text(given.get(name)) for name in _IN_A_ROW}
        row = RequestRow(
            id=uuid.uuid4().hex,
            at=to_text(self.clock()),
            mode=_text(envelope.mode),
            status="failure",
            story_key=_text(envelope.story_key),
            session_id=_text(envelope.session_id),
            duration_ms=0,
            error=in_one_line(problems),
            **told,
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
        from kr.lessons.file import LessonBook, LessonsFile  # heavy
        from kr.lessons.inject import inject  # heavy

        with closing(
            Store(self.settings.database_url, self.settings.knowledge_base, timeout=_LESSONS_PATIENCE)
        ) as store:
            return inject(
                request,
                book=LessonBook(LessonsFile(self.settings.lessons_file), store),
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
        """Answer a valid request (seed 000, steps 2 to 9); it degrades rather than fails.

        Raises ``InvalidRequest`` for an entry that is named and can't be served.
        """
        run = Run(
            request=request,
            rules=self._rules,
            store=self.store,
            clock=self.clock,
            project=str(self.cwd),
            include_report=include_report,
            max_tokens=max_tokens,
        )
        try:
            found = self._look_up(run)
            if may_serve(run, found):
                return self._serve(run, found)
            if may_offer(run, found) and (readable := run.cache.readable(found)).is_offer:
                return self._offer(run, readable)
            from kr.research.miss import Miss  # heavy

            result = Miss(self.settings, self.packages, self.progress).perform(run, found)
            if isinstance(result, Outcome):
                return self._answer(run, result)
            return self._serve(run, result) if result.is_hit else self._offer(run, result)
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

    def _offer(self, run: Run, found: Lookup) -> ResearchEnvelope:
        """Leave the choice to the caller: nothing is asked, nothing charged; the best candidate's report goes along."""
        run.notes.append(OFFERED)
        is_there = False
        if found.report is not None:
            best, now = found.related[0].id, self.clock()
            is_there = run.shelf.write(
                lambda tx: entry_rows.touch(tx, best, now) is not None, otherwise=False, timeout=HIT_TIMEOUT
            )
        outcome = Outcome(is_offer=True, related=found.related, text=found.report, index_updated=is_there)
        return self._answer(run, outcome)

    def _serve(self, run: Run, found: Lookup) -> ResearchEnvelope:
        """Step 3: touch the entry, keep wording and row in the same write, and return it; no network, no budget."""
        outcome = outcome_of(found, is_fresh_hit=True)
        match = found.match
        if match is None:
            raise ValueError("a miss can't be served")
        if match.entry.status != "fresh":
            run.notes.append(
                f"{match.entry.id} is stale and was served because config_overrides.use names it; "
                "with config_overrides.refresh it is researched again"
            )
        if found.ratings.wrong:
            why = f": {found.ratings.note}" if found.ratings.note else ""
            run.notes.append(f"{match.entry.id} was rated wrong by {found.ratings.wrong}{why}")
        return self._answer(run, outcome, lambda tx: _touch(tx, run, match))

    def _answer(
        self, run: Run, outcome: Outcome, touch: Callable[[Transaction], bool] | None = None
    ) -> ResearchEnvelope:
        """Make the envelope, and keep the request's row (step 9); ``touch`` is part of the same write."""
        status = research_status(outcome)
        if status in {"degraded", "budget-exhausted"}:
            run.notes.append(SAVE_HINT)
        text = _text_given(outcome)
        _add_problem(run)

        def write(tx: Transaction) -> _Counted:
            is_updated = outcome.index_updated if touch is None else touch(tx)
            counted = _count(tx, run, is_updated=is_updated)
            tokens = tokens_of(run.fitted(text)) if text else 0
            requests.record(tx, _row(run, status, outcome, tokens, counted))
            return counted

        is_updated = outcome.index_updated and touch is None
        timeout = HIT_TIMEOUT if touch is not None or outcome.is_offer else None
        counted = run.shelf.write(write, None, timeout=timeout) or run.shelf.read(
            lambda tx: _count(tx, run, is_updated=is_updated),
            _Counted(
                entries=0, calls_left=run.calls_left(run.charged - run.unrecorded), is_updated=is_updated
            ),
        )
        _add_problem(run)
        return ResearchEnvelope(
            status=status,
            story_key=run.request.story_key,
            mode="research",
            session_id=run.request.session_id,
            results=self._results(run, outcome, text, counted),
            errors=[*run.errors],
        )

    def _results(self, run: Run, outcome: Outcome, text: str | None, counted: "_Counted") -> ResearchResults:
        shown = run.fitted(text) if text is not None else None
        is_whole = run.include_report or outcome.path is None
        candidate = None
        if outcome.is_offer and shown is not None:
            candidate = CandidateReport(id=outcome.related[0].id, text=shown)
        return ResearchResults(
            cache_hit=outcome.is_fresh_hit,
            cache_entry_id=outcome.entry_id,
            report_path=outcome.path,
            confidence=outcome.confidence,
            sources_consulted=[*outcome.attempts],
            budget_remaining=counted.calls_left,
            degradation_notes=[*run.notes],
            index_updated=counted.is_updated,
            index_count=counted.entries if outcome.index_count is None else outcome.index_count,
            lru_evicted=outcome.lru_evicted,
            match=_match_view(outcome),
            related=[*outcome.related],
            candidate_report=candidate,
            lessons=counted.lessons,
            auto_archived=outcome.auto_archived,
            report=shown if is_whole and not outcome.is_offer else None,
            report_file=f"{self.settings.knowledge_base}/{outcome.path}"
            if outcome.path is not None
            else None,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Counted:
    """What every answer tells of the knowledge base: live entries, calls left, lessons that fit."""

    entries: int
    calls_left: int
    is_updated: bool
    lessons: list[LessonView] = field(default_factory=list)


def _count(tx: Transaction, run: Run, *, is_updated: bool) -> _Counted:
    entries, spent = ledger.counted(tx, run.request.session_id, run.request.story_key)
    return _Counted(
        entries=entries, calls_left=run.calls_left(spent), is_updated=is_updated, lessons=_lessons(tx, run)
    )


def _lessons(tx: Transaction, run: Run) -> list[LessonView]:
    """Return the lessons of the framework whose words the question shares."""
    keys = lookup_keys(run.query.framework, run.rules.aliases)
    words = search_words(run.query.topic, run.query.question, but=frozenset(keys))
    found = lookup.lessons(tx, keys, words, most=_MOST_LESSONS)
    return [LessonView(summary=summary, ref=ref) for summary, ref in found]


def _touch(tx: Transaction, run: Run, match: Match) -> bool:
    """Note the access, and how a request worded it that chose the entry; False when the entry went meanwhile."""
    now = run.clock()
    if entry_rows.touch(tx, match.entry.id, now) is None:
        return False
    if match.tier == "use":
        query, at = run.query, to_text(now)
        requests.settle_alike(tx, query.framework, query.question, match.entry.id, at=at)
        if run.rules.match.fuzzy:
            need = Need(query.topic, query.tags, query.question)
            wordings.keep(tx, match.entry, need, at=at, session_id=run.request.session_id)
    return True


def _text_given(outcome: Outcome) -> str | None:
    """Return the report with the confidence that the entry has now."""
    level = outcome.related[0].confidence if outcome.is_offer else outcome.confidence
    return outcome.text if outcome.text is None or level is None else with_confidence(outcome.text, level)


def _row(run: Run, status: ResearchStatus, outcome: Outcome, tokens: int, counted: _Counted) -> RequestRow:
    match, related = outcome.match, outcome.related
    offered = [{"id": it.id, "score": it.score} for it in related]
    return run.row(
        status,
        error=in_one_line(run.errors),
        tier=match.tier if match else None,
        score=match.score if match else related[0].score if related else None,
        entry_id=outcome.entry_id,
        budget_remaining=counted.calls_left,
        answer_tokens=tokens,
        candidates=json.dumps(offered) if offered and not outcome.is_fresh_hit else None,
    )


def _match_view(outcome: Outcome) -> MatchView | None:
    match = outcome.match
    if match is None:
        return None
    return MatchView(
        tier=match.tier,
        topic_overlap=round(match.topic_overlap, 4),
        shared_tags=list(match.shared_tags),
        entry_status=match.entry.status,
        origin=match.entry.origin,
        worked=outcome.ratings.worked,
        wrong=outcome.ratings.wrong,
        score=match.score,
    )


def _add_problem(run: Run) -> None:
    if run.shelf.problem is not None:
        run.add_error(run.shelf.problem)


def _warn(warnings: Iterable[str]) -> None:
    for warning in warnings:
        logger.warning("%s", warning)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None
