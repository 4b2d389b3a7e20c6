"""Steps 4 to 9 of research (seed 000, "Workflow Steps"), from top to bottom in ``Pipeline.research``."""

import gc
import logging
from datetime import datetime, timedelta
from functools import partial

from kr.envelopes import ResearchEnvelope
from kr.errors import (
    ReportUnwritable,
    SourceFailure,
    SourceTimeout,
    StoreError,
)
from kr.freshness import parse_time, same_major, to_text
from kr.report import INSTALLED_DOCS_LAST
from kr.research import judge
from kr.research.chain import (
    EXHAUSTED,
    NOTHING_ALLOWED,
    Chain,
    Gathered,
    heartbeat,
    renew_lease,
    single_flight,
)
from kr.research.excerpt import Report, build_report
from kr.research.lookup import LookedUp
from kr.research.persona import Persona
from kr.research.run import Policy, Run, Services, SourceSet
from kr.research.service import Course, Ending, answer, may_serve, of_entry, serve
from kr.research.synthesis import Synthesis
from kr.source_kinds import is_answer, is_package
from kr.sources.base import Ask
from kr.store import ledger, saving, wordings
from kr.store.places import pair_of
from kr.store.saving import Draft, Saved
from kr.values import Answer, Consulted, Query, replace

logger = logging.getLogger(__name__)

LIBRARY_IDS_LAST = timedelta(days=90)
"""How long a library id, and the versions that were listed with it, are trusted without a new search."""


class Pipeline:
    def __init__(self, policy: Policy, services: Services) -> None:
        self._policy = policy
        self._services = services

    def research(self, run: Run, found: LookedUp) -> ResearchEnvelope:
        """Answer a request for which the cache holds ``found``, which may not be served."""
        gc.enable()
        with single_flight(
            run.shelf,
            run.query,
            owner=run.owner,
            deadline=run.deadline,
            progress=self._services.progress,
            clock=self._services.clock,
        ) as waited:
            # Also who did not wait: another may have had the lease, and let go of it, since this one looked.
            found = run.cache.look_up(run.query)
            if may_serve(run, found):
                return serve(run, self._services, found)
            if waited and _is_news(run, found):
                return self._share(run, found)
            if found.is_offer:
                with heartbeat(partial(self._renew_lease, run)):
                    taken = judge.take(run, self._services, found, timeout=self._policy.timeout())
                if taken is not None:
                    return serve(run, self._services, taken)
            persona = self._load_persona(run)  # step 4
            with heartbeat(run.budget.renew, partial(self._renew_lease, run)):
                author = _Author(run, self._services, persona, timeout=self._timeout(run))
                gathered = self._ask_sources(run, found, author)  # step 5
                synthesis = author.wrote(gathered.answer or gathered.gap)
                if gathered.answer is None and (again := run.cache.look_up(run.query)).is_hit:
                    # Somebody else was luckier meanwhile: a skeleton must not take the place of that.
                    return (
                        serve(run, self._services, again)
                        if may_serve(run, again)
                        else _stand(run, again, gathered)
                    )
                report = self._write_report(run, found, gathered, synthesis)  # step 6
            saved = None
            if not self._is_mistyped(run, gathered, report):
                saved = self._save(run, found, report)  # steps 7 and 8
        return self._return(run, found, gathered, report, saved)  # step 9

    def _share(self, run: Run, found: LookedUp) -> ResearchEnvelope:
        """Answer from what another process has just found out, although it is no fresh answer."""
        run.notes.append("another agent researched this at the same moment; its report is shared")
        consulted = tuple(
            Consulted(source=source.name, status="skipped") for source in self._services.sources().chain
        )
        course = Course(consulted=consulted)
        return answer(run, of_entry(found, course))

    def _renew_lease(self, run: Run) -> None:
        renew_lease(run.shelf, run.query, owner=run.owner, clock=self._services.clock)

    def _load_persona(self, run: Run) -> Persona:
        persona, note = self._services.persona()
        run.persona = persona.name
        logger.info("researching under the principles of %s", persona.name)
        if note is not None:
            logger.warning(
                "BMM Architect persona load failed, using lean persona (`role_mapping: {knowledge_researcher_persona: lean}`"
                " in the configuration chooses it)"
            )
            run.notes.append(note)
        return persona

    def _ask_sources(self, run: Run, found: LookedUp, author: "_Author") -> Gathered:
        chain = Chain(
            budget=run.budget,
            breaker=self._services.breaker(run.shelf, run.owner, run.deadline.allows(self._timeout(run))),
            progress=self._services.progress,
            deadline=run.deadline,
            timeout=self._timeout(run),
            covers=author.covers,
        )
        sources = self._services.sources()
        ask = self._prepare(run)
        gathered = chain.run(sources.chain, sources.fallback, ask)
        if gathered.ended == "budget":
            is_forbidden = run.asks_nobody
            message = NOTHING_ALLOWED if is_forbidden else EXHAUSTED.format(story_key=run.request.story_key)
            logger.warning("%s", message)
            gathered.notes.append(message)
        if gathered.answer is None:
            used = _fall_back(chain, sources, ask, found, gathered)
            if gathered.gap is not None:
                gathered.notes.append(f"question_not_covered: {used}")
            elif gathered.ended != "budget":
                gathered.notes.append(f"all_sources_unavailable: {used}")
        self._remember(run, gathered)
        run.notes += gathered.notes
        return gathered

    def _timeout(self, run: Run) -> float:
        return run.overrides.timeout_seconds or self._policy.timeout()

    def _prepare(self, run: Run) -> Ask:
        known = run.shelf.read(lambda tx: ledger.library(tx, run.query.framework), None)

        def own_repository() -> str | None:
            return self._services.repository(run.query.framework)

        if known is None:
            return Ask(query=run.query, own_repository=own_repository)
        # What was learned long ago may list no version that came since: it is searched for anew.
        learned = parse_time(known.learned_at or "")
        is_recent = learned is not None and run.started - learned <= LIBRARY_IDS_LAST
        return Ask(
            query=run.query,
            library_id=known.library_id if is_recent else None,
            library_versions=known.versions if is_recent else (),
            repository=known.repository,
            own_repository=own_repository,
        )

    def _remember(self, run: Run, gathered: Gathered) -> None:
        learned = gathered.learned
        if learned.library_id or learned.repository:
            run.shelf.write(
                lambda tx: ledger.learn_library(
                    tx,
                    run.query.framework,
                    library_id=learned.library_id,
                    versions=learned.library_versions,
                    repository=learned.repository,
                    now=self._services.clock(),
                ),
                None,
            )

    def _write_report(
        self, run: Run, found: LookedUp, gathered: Gathered, synthesis: Synthesis | None
    ) -> Report:
        return build_report(
            run.query,
            answer=gathered.answer or gathered.gap,
            baseline=found.baseline,
            today=self._services.clock().date(),
            notes=run.notes,
            synthesis=synthesis,
            max_tokens=self._policy.report_tokens(),
            sources=self._services.sources().known,
        )

    def _is_mistyped(self, run: Run, gathered: Gathered, report: Report) -> bool:
        """Whether a framework of which nobody knows anything is probably another one: its skeleton would only be in the way."""
        if report.origin != "skeleton" or gathered.gap is not None:
            return False
        names = self._services.mistyped(run.query.framework)
        if names:
            run.notes.append(
                f"nothing is known of {run.query.framework}, and no entry was made; did you mean {' or '.join(names)}?"
            )
        return bool(names)

    def _save(self, run: Run, found: LookedUp, report: Report) -> Saved | None:
        """Steps 7 and 8. A failure is told and degrades the answer (error rows 13 to 15)."""
        now = self._services.clock()
        is_of_finding = found.match is not None and found.match.entry.is_written
        if not run.shelf.can_write or (report.origin == "baseline" and is_of_finding):
            return None
        try:
            saved = saving.save(self._services.store, _draft(run, found, report, now), report.text, now)
        except StoreError as error:
            run.shelf.note(error)
            return None
        except ReportUnwritable as error:
            run.add_error(error)
            return None
        logger.info("wrote %s; the index holds %d entries", saved.entry.path, saved.index_count)
        run.notes += saved.warnings
        if saved.is_beside:
            kept = (
                f", and is kept as its revision {saved.revision}"
                if saved.revision != saved.entry.revision
                else ""
            )
            run.notes.append(
                f"{saved.entry.id} is as it was: what was found now does not take its place{kept}"
            )
        elif run.overrides.refresh:
            # So is a wrong choice undone: these words led to another entry, and what they ask for was wanted anew.
            run.shelf.write(lambda tx: wordings.take(tx, run.query.question, saved.entry), None)
        self._services.export_into(run.notes)
        return saved

    @staticmethod
    def _return(
        run: Run, found: LookedUp, gathered: Gathered, report: Report, saved: Saved | None
    ) -> ResearchEnvelope:
        course = Course(
            consulted=tuple(gathered.consulted),
            budget_ended=gathered.ended == "budget",
            answered=gathered.answer is not None and not is_package(gathered.answer.source),
            written=saved is not None,
        )
        related = tuple(it for it in found.related if saved is None or it.id != saved.entry.id)
        is_finding = found.match is not None and found.match.entry.is_written
        if saved is None and is_finding and report.origin == "baseline":
            # Nobody's words are overwritten: the stale finding is given as it stands.
            return answer(run, replace(of_entry(found, course), related=related))
        return answer(
            run,
            Ending(
                course=course,
                entry_id=saved.entry.id if saved else None,
                path=saved.entry.path if saved and not saved.is_beside else None,
                confidence=report.confidence,
                match=found.match,
                ratings=found.ratings,
                related=related,
                index_updated=saved is not None and not _is_as_it_was(saved),
                index_count=saved.index_count if saved else None,
                lru_evicted=saved.lru_evicted if saved else 0,
                auto_archived=saved.auto_archived if saved else 0,
                text=report.text,
            ),
        )


def _is_as_it_was(saved: Saved) -> bool:
    """Whether a placeholder or a known text left the entry and its history untouched."""
    return saved.is_beside and saved.revision == saved.entry.revision


class _Author:
    """Has a language model, where one is to write, write from what sources answer, once each (SPEC 3.7, ``synthesis: llm``).

    It reads what words may take for an answer that is none, and for none that is one: so its word counts there. A failure
    leaves an excerpt.
    """

    def __init__(self, run: Run, services: Services, persona: Persona, *, timeout: float) -> None:
        self._run = run
        self._writer = None if run.asks_nobody else services.writer()
        self._persona = persona
        self._timeout = timeout
        self._written: list[tuple[Answer, Synthesis]] = []

    def covers(self, _query: Query, answer: Answer) -> bool:
        """Tell whether an answer covers the question, in a source's own words or in the model's."""
        if is_answer(answer.source) and not answer.is_gap:
            return True
        synthesis = self.wrote(answer)
        return not answer.is_gap if synthesis is None else synthesis.answers

    def wrote(self, answer: Answer | None) -> Synthesis | None:
        """Return what the model makes of an answer; None where it is not to be asked or has failed."""
        known = next((synthesis for one, synthesis in self._written if one is answer), None)
        if answer is None or known is not None or self._writer is None:
            return known
        try:
            granted = self._run.deadline.allows(self._timeout)
            if granted <= 0:
                raise SourceTimeout("no time is left")
            known = self._writer(self._run.query, answer, self._persona, timeout=granted)
        except SourceFailure as failure:
            self._writer = None  # of no further answer either
            self._run.notes.append(f"synthesis: {failure.reason}; the report is an excerpt")
            return None
        if not known.answers and is_answer(answer.source):
            # Such a source answered the question itself, and words are not asked either.
            self._writer = None
            self._run.notes.append(
                "synthesis: the language model found no answer in the sources; the report is an excerpt"
            )
            return None
        self._written.append((answer, known))
        return known


def _stand(run: Run, found: LookedUp, gathered: Gathered) -> ResearchEnvelope:
    """Nothing answered a request for a new research: the fresh report stays as it is, and is returned."""
    ending = of_entry(
        found, Course(consulted=tuple(gathered.consulted), budget_ended=gathered.ended == "budget")
    )
    run.notes.append(f"{ending.entry_id} could not be researched again; its report is unchanged")
    return answer(run, ending)


def _fall_back(chain: Chain, sources: SourceSet, ask: Ask, found: LookedUp, gathered: Gathered) -> str:
    """Nothing answered: a stale baseline serves, unless a copy of installed documentation, else that documentation (SPEC 3.5.5)."""
    kept = "keeping the existing report" if found.is_hit else "using stale cache"
    has_baseline = found.baseline is not None
    is_copy = found.match is not None and found.match.entry.is_installed_excerpt
    if has_baseline and not is_copy:
        return kept
    if sources.local_docs is not None:
        chain.ask_one(sources.local_docs, ask, gathered)
    if gathered.answer is not None:
        installed, asked = gathered.answer.version, ask.query.framework_version
        if installed and not same_major(installed, asked):
            gathered.notes.append(f"{installed} is installed, and the request is about {asked}")
        return "using installed documentation"
    return kept if has_baseline or found.is_hit else "no cached content available"


def _draft(run: Run, found: LookedUp, report: Report, now: datetime) -> Draft:
    # A report that was carried over keeps the version and the time that its text is of; one of another major
    # version stands in for the one that was asked for, and must not take the place of its own entry.
    old = found.match.entry if report.origin == "baseline" and found.match else None
    asked = run.query.framework_version
    return Draft(
        framework=run.query.framework,
        framework_version=old.framework_version
        if old and same_major(old.framework_version, asked)
        else asked,
        topic=run.query.topic,
        tags=run.query.tags,
        confidence=report.confidence,
        status="fresh" if report.origin in {"researched", "installed"} else "stale",
        origin="placeholder" if report.origin == "skeleton" else "excerpt",
        fresh_until=to_text(now + INSTALLED_DOCS_LAST) if report.origin == "installed" else None,
        researched_at=(old.researched_at or old.created) if old else None,
        question=run.query.question,
    )


def _is_news(run: Run, found: LookedUp) -> bool:
    """Whether a waited-for research ended without a fresh answer: its report is ours all the same."""
    if found.match is None:
        return False
    entry = found.match.entry
    if pair_of(entry.framework, entry.topic) != pair_of(run.query.framework, run.query.topic):
        return False
    # A stale entry is not touched by look-ups: it was accessed when it was written.
    written = parse_time(entry.last_accessed)
    return written is not None and written >= run.started
