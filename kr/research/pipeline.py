"""The nine steps of research (seed 000, "Workflow Steps"), from top to bottom in ``Researcher.research``."""

import logging
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from kr.contracts.envelopes import ConsultedSource, MatchView, ResearchEnvelope, ResearchResults
from kr.contracts.requests import ResearchRequest
from kr.errors import KrError, ReportUnwritable, SourceFailure, SourceTimeout, StoreError
from kr.research.cache import Found
from kr.research.chain import EXHAUSTED, Chain, Gathered
from kr.research.flight import heartbeat, renew_lease, single_flight
from kr.research.run import Policy, Run, Services
from kr.rules.freshness import parse_time
from kr.rules.naming import fold
from kr.rules.outcome import Course, research_status
from kr.rules.persona import Persona
from kr.rules.report import Report, Synthesis, build_report
from kr.sources.base import Ask, Source
from kr.store.rows import Draft, Library, RequestRow, Saved
from kr.store.store import Store
from kr.store.times import to_text
from kr.values import Consulted, Match

logger = logging.getLogger(__name__)

INSTALLED_DOCS_LAST = timedelta(days=1)
"""How long an answer from the installed documentation alone is fresh (SPEC 3.3)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Written:
    """What steps 6 to 8 left. ``saved`` is None when nothing could be written."""

    report: Report
    saved: Saved | None


class Researcher:
    """Answers requests in mode ``research``."""

    def __init__(self, policy: Policy, services: Services) -> None:
        self._policy = policy
        self._services = services

    def research(self, request: ResearchRequest, *, include_report: bool = False) -> ResearchEnvelope:
        """Answer one valid request. Degrades rather than fails: nothing but an interruption leaves it."""
        run = Run.begin(request, self._policy, self._services)  # step 1
        found = run.cache.look_up(run.query)  # step 2
        if found.is_hit:
            return self._serve(run, found, include_report=include_report)  # step 3
        with single_flight(
            run.shelf, run.query, owner=run.id, deadline=run.deadline, clock=self._services.clock
        ) as waited:
            if waited:
                found = run.cache.look_up(run.query)
                if found.is_hit:
                    return self._serve(run, found, include_report=include_report)
                if self._is_news(run, found):
                    return self._share(run, found, include_report=include_report)
            with heartbeat(run.budget.renew, partial(self._renew_lease, run)):
                gathered = self._ask_sources(run, found)  # steps 4 and 5
            if gathered.answer is None and (found := run.cache.look_up(run.query)).is_hit:
                # Somebody else was luckier meanwhile: a skeleton must not take the place of that.
                run.notes += gathered.notes
                return self._serve(run, found, include_report=include_report)
            written = self._write(run, found, gathered)  # steps 6 to 8
        return self._answer(run, found, gathered, written, include_report=include_report)  # step 9

    def _serve(self, run: Run, found: Found, *, include_report: bool) -> ResearchEnvelope:
        """Step 3: a fresh hit is touched and returned; no network, no budget."""
        match = _matched(found)
        entry = match.entry

        def touch(store: Store) -> bool:
            with store.write() as unit:
                unit.entries.touch(entry.id, self._services.clock())
            return True

        touched = run.shelf.attempt(touch, otherwise=False)
        results = ResearchResults(
            cache_hit=True,
            cache_entry_id=entry.id,
            report_path=entry.path,
            confidence=entry.confidence,
            sources_consulted=[],
            budget_remaining=run.budget.remaining(),
            degradation_notes=run.notes,
            index_updated=touched,
            index_count=self._count(run),
            lru_evicted=0,
            match=_match_view(match),
            auto_archived=0,
            report=found.report if include_report else None,
        )
        return self._return(run, Course(fresh_hit=True), results)

    def _is_news(self, run: Run, found: Found) -> bool:
        """Whether a waited-for research ended without a fresh answer: its report is ours all the same."""
        entry = found.match.entry if found.match else None
        if entry is None or (fold(entry.framework), fold(entry.topic)) != (
            fold(run.query.framework),
            fold(run.query.topic),
        ):
            return False
        researched = parse_time(entry.researched_at or "")
        return researched is not None and researched >= run.started

    def _share(self, run: Run, found: Found, *, include_report: bool) -> ResearchEnvelope:
        """Answer from what another process has just found out, although it is no fresh answer."""
        match = _matched(found)
        run.notes.append("another agent researched this at the same moment; its report is shared")
        chain = self._services.sources().chain
        consulted = tuple(Consulted(source=source.name, status="skipped") for source in chain)
        results = ResearchResults(
            cache_hit=False,
            cache_entry_id=match.entry.id,
            report_path=match.entry.path,
            confidence=match.entry.confidence,
            sources_consulted=_consulted_view(consulted),
            budget_remaining=run.budget.remaining(),
            degradation_notes=run.notes,
            index_updated=False,
            index_count=self._count(run),
            lru_evicted=0,
            match=_match_view(match),
            auto_archived=0,
            report=found.report if include_report else None,
        )
        return self._return(run, Course(consulted=consulted), results)

    def _renew_lease(self, run: Run) -> None:
        renew_lease(run.shelf, run.query, owner=run.id, clock=self._services.clock)

    def _ask_sources(self, run: Run, found: Found) -> Gathered:
        """Step 5: the chain, then the installed documentation when nothing else is there."""
        chain = Chain(
            budget=run.budget,
            breaker=self._services.breaker(run.shelf, run.id),
            progress=self._services.progress,
            deadline=run.deadline,
            timeout=run.timeout,
        )
        ask = self._prepare(run)
        sources = self._services.sources()
        gathered = chain.run(sources.chain, sources.fallback, ask)
        if gathered.ended == "budget":
            message = EXHAUSTED.format(story_key=run.request.story_key)
            logger.warning("%s", message)
            gathered.notes.append(message)
        if gathered.answer is None:
            used = self._fall_back(chain, sources.local_docs, ask, found, gathered)
            gathered.notes.append(f"all_sources_unavailable: {used}")
        self._remember(run, gathered)
        return gathered

    @staticmethod
    def _fall_back(
        chain: Chain, local_docs: Source | None, ask: Ask, found: Found, gathered: Gathered
    ) -> str:
        """Nothing answered: a stale baseline serves, else the installed documentation (SPEC 3.5.5)."""
        if found.baseline is not None:
            return "using stale cache"
        if local_docs is not None:
            chain.ask_one(local_docs, ask, gathered)
        return "using installed documentation" if gathered.answer else "no cached content available"

    def _prepare(self, run: Run) -> Ask:
        def read(store: Store) -> Library | None:
            with store.read() as unit:
                return unit.libraries.get(run.query.framework)

        known = run.shelf.attempt(read, None)
        return Ask(
            query=run.query,
            library_id=known.library_id if known else None,
            library_versions=known.versions if known else (),
            repository=self._services.repository(run.query.framework)
            or (known.repository if known else None),
        )

    def _remember(self, run: Run, gathered: Gathered) -> None:
        answer = gathered.answer
        if answer is None or not (answer.library_id or answer.repository):
            return

        def put(store: Store) -> None:
            with store.write() as unit:
                unit.libraries.put(
                    run.query.framework,
                    library_id=answer.library_id,
                    versions=answer.library_versions,
                    repository=answer.repository,
                    now=self._services.clock(),
                )

        run.shelf.attempt(put, None)

    def _write(self, run: Run, found: Found, gathered: Gathered) -> _Written:
        """Steps 4 and 6 to 8: the persona's principles and the passages make the report; it is kept."""
        persona, note = self._services.persona()
        run.persona = persona.name
        run.notes += [note] if note else []
        run.notes += gathered.notes
        synthesis = self._synthesize(run, gathered, persona)
        now = self._services.clock()
        baseline = found.baseline if gathered.answer is None else None
        report = build_report(
            run.query,
            answer=gathered.answer,
            baseline=baseline,
            today=now.date(),
            persona=persona,
            notes=run.notes,
            synthesis=synthesis,
        )
        draft = Draft(
            framework=run.query.framework,
            framework_version=run.query.framework_version,
            topic=run.query.topic,
            tags=run.query.tags,
            confidence=report.confidence,
            status="fresh" if report.origin in {"researched", "installed"} else "stale",
            origin=report.origin,
            fresh_until=to_text(now + INSTALLED_DOCS_LAST) if report.origin == "installed" else None,
        )
        return _Written(report=report, saved=self._save(run, draft, report))

    def _synthesize(self, run: Run, gathered: Gathered, persona: Persona) -> Synthesis | None:
        """Let a language model write, where one is wanted; its failure leaves the text extractive (SPEC 3.7)."""
        if self._services.writer is None or gathered.answer is None:
            return None
        try:
            timeout = run.deadline.allows(run.timeout)
            if timeout <= 0:
                raise SourceTimeout("no time is left")
            return self._services.writer(run.query, gathered.answer, persona, timeout=timeout)
        except SourceFailure as failure:
            run.notes.append(f"synthesis: {failure.reason}; the text is extractive")
            return None

    def _save(self, run: Run, draft: Draft, report: Report) -> Saved | None:
        """Steps 7 and 8. A failure is told and degrades the answer (error rows 13 to 15)."""
        if not run.shelf.is_usable:
            return None
        try:
            saved = self._services.store.save_report(draft, report.text, self._services.clock())
        except StoreError as error:
            run.shelf.problem = error
            return None
        except ReportUnwritable as error:
            run.add_error(error)
            return None
        run.notes += saved.warnings
        if self._services.export is not None:
            try:
                self._services.export()
            except KrError as error:
                run.notes.append(f"export_failed: {error}")
        return saved

    def _answer(
        self, run: Run, found: Found, gathered: Gathered, written: _Written, *, include_report: bool
    ) -> ResearchEnvelope:
        saved = written.saved
        course = Course(
            consulted=tuple(gathered.consulted),
            budget_ended=gathered.ended == "budget",
            written=saved is not None,
        )
        results = ResearchResults(
            cache_hit=False,
            cache_entry_id=saved.entry.id if saved else None,
            report_path=saved.entry.path if saved else None,
            confidence=written.report.confidence,
            sources_consulted=_consulted_view(course.consulted),
            budget_remaining=run.budget.remaining(),
            degradation_notes=run.notes,
            index_updated=saved is not None,
            index_count=saved.index_count if saved else self._count(run),
            lru_evicted=saved.lru_evicted if saved else 0,
            match=_match_view(found.match) if found.match else None,
            auto_archived=saved.auto_archived if saved else 0,
            report=written.report.text if include_report or saved is None else None,
        )
        return self._return(run, course, results)

    def _count(self, run: Run) -> int:
        def count(store: Store) -> int:
            with store.read() as unit:
                return unit.entries.count()

        return run.shelf.attempt(count, 0)

    def _return(self, run: Run, course: Course, results: ResearchResults) -> ResearchEnvelope:
        """Step 9: the envelope, and the row in ``requests``."""
        status = research_status(course)
        row = RequestRow(
            id=run.id,
            at=to_text(run.started),
            mode="research",
            status=status,
            story_key=run.request.story_key,
            session_id=run.request.session_id,
            framework=run.query.framework,
            framework_version=run.query.framework_version,
            topic=run.query.topic,
            tier=results.match.tier if results.match else None,
            entry_id=results.cache_entry_id,
            persona=run.persona,
            duration_ms=run.duration_ms(),
            budget_remaining=results.budget_remaining,
        )

        def record(store: Store) -> None:
            with store.write() as unit:
                unit.requests.record(row)

        run.shelf.attempt(record, None)
        if run.shelf.problem is not None:
            run.add_error(run.shelf.problem)
        return ResearchEnvelope(
            status=status,
            story_key=run.request.story_key,
            mode="research",
            session_id=run.request.session_id,
            results=results,
            errors=run.errors,
        )


def _matched(found: Found) -> Match:
    if found.match is None:
        raise AssertionError("a miss has no match")
    return found.match


def _match_view(match: Match) -> MatchView:
    return MatchView(
        tier=match.tier,
        topic_overlap=round(match.topic_overlap, 4),
        shared_tags=list(match.shared_tags),
        entry_status=match.entry.status,
    )


def _consulted_view(consulted: tuple[Consulted, ...]) -> list[ConsultedSource]:
    return [ConsultedSource(source=row.source, status=row.status, url=row.url) for row in consulted]
