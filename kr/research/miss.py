"""Steps 4 to 8 of F1: what the cache does not answer is asked of the sources, written and indexed, once for everybody.

A call is reserved in the database before it is made, then charged or given back, so that parallel agents on one story never
overspend. A circuit breaker, shared through the database, leaves a source alone that keeps failing.
"""

import hashlib
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Literal

from kr import cancellation
from kr.errors import KrError, ReportUnwritable, SourceFailure, SourceNotAsked, SourceTimeout, StoreError
from kr.frameworks import framework_key
from kr.guard import GIVES_ORDERS, reasons_to_hold
from kr.models import (
    LOCAL_DOCS,
    Answer,
    Entry,
    Learned,
    ResearchEnvelope,
    ResearchResults,
    SourceAttempt,
    SourceOutcome,
)
from kr.packages import find_dependencies, package_aliases
from kr.packages.installed import find_installed
from kr.report import INSTALLED_DOCS_LAST, split
from kr.research.decide import research_status
from kr.research.llm import Author, choose, chosen_persona
from kr.research.report import Report, build_report
from kr.research.run import Lookup, Run
from kr.settings import Settings
from kr.sources import build_source
from kr.sources.base import Ask, Source
from kr.store import ledger, lookup, saving
from kr.store.engine import Transaction
from kr.store.ledger import Reservation, SourceCall
from kr.store.saving import Saved
from kr.text import fold, tokens_of
from kr.times import major_key, parse_time, same_major, to_text
from kr.transfer import has_export
from kr.transfer.export_yaml import has_edited_index, refresh_exports
from kr.transfer.import_yaml import import_on_first_use

logger = logging.getLogger(__name__)

EXHAUSTED = "Research budget exhausted for story {story_key}, continuing with available context"
"""The log line of F1, step 5.3, as it stands."""
_LEASE_SECONDS = 8.0
"""How long a lease outlives its holder: the others take over after it."""
_BEAT_SECONDS = 2.0
_POLL_SECONDS = 0.1
_AROUND_A_CALL = 15.0
"""Seconds that a probe may take beyond the call itself: for its imports, and for ending its session."""
_MOST_JUDGED = 200_000
"""Characters of a source's text that are judged: an excerpt shows a few thousand."""


class Miss:
    """Researches what one request wants."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._settings = run.service.settings
        self._environ = run.service.environ

    def perform(self, found: Lookup) -> ResearchEnvelope:
        """Answer a request; ``found`` is what the cache holds for it, which does not answer.

        It may hold the answer after all: another has researched it meanwhile, or the project names it otherwise.
        """
        run = self._run
        again = self._look_further(found)
        if again is not found and (answered := run.answered(again)) is not None:
            return answered
        with lease(run) as has_waited:
            # Also who did not wait: another may have had the lease, and let go of it, since this one looked.
            found = run.look_up()
            if (answered := run.answered(found)) is not None:
                return answered
            if has_waited and found.entry and found.match and found.match.tier.startswith("framework+topic"):
                # A research that was waited for ended without a fresh answer: its report is ours all the same. A stale entry
                # is not touched by look-ups: it was accessed when it was written.
                written = parse_time(found.entry.last_accessed)
                if written is not None and written >= run.started:
                    run.notes.append("another agent researched this at the same moment; its report is shared")
                    return run.answer("degraded", found.results, found.report)
            taken = choose(run, found.related) if found.is_offer else None
            return run.serve(taken) if taken else self._research(found)

    def _look_further(self, found: Lookup) -> Lookup:
        """Import an index that git brought or that waits beside an empty database, and look under the project's names of packages."""
        run, base = self._run, self._settings.knowledge_base
        is_unknown = found.known is None and not found.related
        if is_unknown and has_export(base):
            is_new = run.attempt(
                lambda: import_on_first_use(run.store, base, now=run.clock()), otherwise=False
            )
            found = run.look_up() if is_new else found
        elif run.config.auto_export and run.attempt(
            lambda: has_edited_index(run.store, base), otherwise=False
        ):
            self._export()
            found = run.look_up()
        if found.known is not None or found.related:
            return found
        aliases: dict[str, str] = {}
        # What the working directory's files say goes before what the configuration's do.
        for folder in reversed(run.service.folders):
            aliases |= package_aliases(find_dependencies(folder, self._environ).dependencies)
        return run.look_up({**aliases, **run.config.aliases}) if aliases else found

    def _research(self, found: Lookup) -> ResearchEnvelope:
        run = self._run
        persona, note = chosen_persona(self._settings, Path(self._environ.get("HOME") or "/nonexistent"))
        run.persona = persona.name  # step 4
        if note is not None:
            logger.warning("BMM Architect persona load failed, using lean persona")
            run.notes.append(note)
        chain = Chain(run, Author(run, persona))
        self._ask_sources(found, chain)  # step 5
        again = run.look_up() if chain.answer is None else None
        if again and again.is_hit:
            # A fresh report, or somebody else's luck meanwhile: a placeholder must not take the place of that.
            if (answered := run.answered(again)) is not None:
                return answered
            run.notes.append("it could not be researched again; its report is unchanged")
            results = replace(again.results, sources_consulted=chain.attempts)
            return run.answer(
                "budget-exhausted" if chain.ended == "budget" else "degraded", results, again.report
            )
        report = build_report(  # step 6
            run.query,
            answer=chain.answer or chain.gap,
            baseline=found.baseline,
            today=run.clock().date(),
            notes=run.notes,
            synthesis=chain.author.written,
            max_tokens=run.config.report_max_tokens,
            sources={attempt.source for attempt in chain.attempts},
        )
        return self._answer(found, chain, report, self._save(found, report))  # steps 7 and 8

    def _answer(self, found: Lookup, chain: "Chain", report: Report, saved: Saved | None) -> ResearchEnvelope:
        status = research_status(
            chain.attempts,
            is_answered=chain.answer is not None and chain.answer.source != LOCAL_DOCS,
            is_written=saved is not None,
            has_budget_ended=chain.ended == "budget",
        )
        entry, text = found.entry, report.text
        results = ResearchResults(
            confidence=report.confidence,
            sources_consulted=chain.attempts,
            match=found.match,
            related=[it for it in found.related if saved is None or it.id != saved.entry.id],
        )
        if saved is not None:
            results = replace(
                results,
                cache_entry_id=saved.entry.id,
                report_path=None if saved.is_beside else saved.entry.path,
                # A placeholder or a known text leaves the entry and its history untouched.
                index_updated=not saved.is_beside or saved.revision != saved.entry.revision,
                lru_evicted=saved.lru_evicted,
                auto_archived=saved.auto_archived,
            )
        elif entry is not None and entry.is_written and report.origin == "baseline" and found.report:
            # Nobody's words are overwritten: the stale finding is given as it stands.
            results, text = replace(found.results, sources_consulted=chain.attempts), found.report
        return self._run.answer(status, results, text)

    # --- step 5

    def _ask_sources(self, found: Lookup, chain: "Chain") -> None:
        run, environ = self._run, self._environ
        known = run.read(lambda tx: ledger.library(tx, run.query.framework), None)
        ask = Ask(query=run.query, known=known or Learned(), own_repository=self._repository)
        sources = [build_source(name, self._settings, environ) for name in run.config.sources]
        last, names = run.config.fallback_if_mcp_unavailable, {source.name for source in sources}
        fallback = [build_source(last, self._settings, environ)] if last and last not in names else []
        # A stale report stands in where nothing answers; a copy of installed documentation is read anew instead.
        is_copy = found.entry is not None and found.entry.is_installed_excerpt
        local_docs = list[Source]()
        if run.config.local_docs and (found.baseline is None or is_copy):
            from kr.sources.local_docs import LocalDocs  # heavy

            local_docs.append(LocalDocs(run.service.folders, environ))
        chain.ask_in_order(sources, [*fallback, *local_docs], ask)
        if chain.ended == "budget" and (chain.answer is None or chain.answer.source == LOCAL_DOCS):
            message = EXHAUSTED.format(story_key=run.request.story_key)
            logger.warning("%s", message)
            run.notes.append(message)
        if chain.answer is None or chain.answer.source == LOCAL_DOCS:
            used = _what_serves(found, chain)
            if chain.gap is not None:
                run.notes.append(f"question_not_covered: {used}")
            elif chain.ended != "budget":
                run.notes.append(f"all_sources_unavailable: {used}")
        if chain.learned:
            run.write(
                lambda tx: ledger.learn_library(tx, run.query.framework, chain.learned[-1], now=run.clock()),
                None,
            )

    def _repository(self) -> str | None:
        """Return the framework's ``owner/repo``: configured, or named by the installed package."""
        run = self._run
        for name, repository in run.config.repositories.items():
            if fold(name) == fold(run.query.framework):
                return repository
        found = find_installed(run.query.framework, run.service.folders, self._environ)
        return next((package.repository for package in found if package.repository), None)

    # --- steps 7 and 8

    def _save(self, found: Lookup, report: Report) -> Saved | None:
        """Write and index the report; None where it is not kept. A failure is noted and degrades the answer."""
        run = self._run
        is_of_finding = found.entry is not None and found.entry.is_written
        if not run.can_write or (report.origin == "baseline" and is_of_finding):
            return None
        query = run.query
        asked = "\n".join((query.framework, query.topic, query.question, *query.tags))
        if reasons := reasons_to_hold(asked):
            run.notes.append(f"not_kept: the request {'; it '.join(reasons)}")
            return None
        now = run.clock()
        try:
            saved = saving.save(run.store, _draft(run, found, report, now), report.text, now)
        except (StoreError, ReportUnwritable) as error:
            run.add_error(error)
            return None
        run.notes += saved.warnings
        if saved.is_beside:
            is_kept = saved.revision != saved.entry.revision
            kept = f", and is kept as its revision {saved.revision}" if is_kept else ""
            run.notes.append(f"{saved.entry.id} is unchanged: what was found now does not replace it{kept}")
        if run.config.auto_export:
            self._export()
        return saved

    def _export(self) -> None:
        try:
            refresh_exports(self._run.store, self._settings.knowledge_base)
        except KrError as error:
            self._run.notes.append(f"export_failed: {error}")


def _what_serves(found: Lookup, chain: "Chain") -> str:
    """Say what the answer is made of where no source answered."""
    if chain.answer is not None:
        return "using installed documentation"
    if found.is_hit:
        return "keeping the existing report"
    return "using stale cache" if found.baseline is not None else "no cached content available"


def _draft(run: Run, found: Lookup, report: Report, now: datetime) -> Entry:
    # A report that was carried over keeps the version and the time that its text is of; one of another major
    # version stands in for the one that was asked for, and must not take the place of its own entry.
    old = found.entry if report.origin == "baseline" else None
    asked = run.query.framework_version
    is_same = old is not None and same_major(old.framework_version, asked)
    return Entry(
        framework=run.query.framework,
        framework_version=old.framework_version if old and is_same else asked,
        topic=run.query.topic,
        tags=run.query.tags,
        confidence=report.confidence,
        status="fresh" if report.origin in {"researched", "installed"} else "stale",
        origin="placeholder" if report.origin == "skeleton" else "excerpt",
        fresh_until=to_text(now + INSTALLED_DOCS_LAST) if report.origin == "installed" else None,
        researched_at=(old.researched_at or old.created) if old else None,
        question=run.query.question,
    )


def configured_sources(settings: Settings, environ: Mapping[str, str]) -> list[Source]:
    """Return every source that the settings name, the fallback too."""
    config = settings.knowledge_research
    names = dict.fromkeys([*config.sources, *filter(None, [config.fallback_if_mcp_unavailable])])
    return [build_source(name, settings, environ) for name in names]


# --- one research for many


@contextmanager
def lease(run: Run) -> Iterator[bool]:
    """Hold the right to research a question; yields whether another held it before. Without a database there is none.

    While the block runs, the lease and what the request has reserved are renewed.
    """
    key, progress, stop = lease_key(run), run.service.progress, threading.Event()

    def acquire(tx: Transaction) -> bool:
        ledger.renew(tx, run.id, now=run.clock())
        return ledger.acquire_lease(tx, key, run.id, now=run.clock(), ttl=_LEASE_SECONDS)

    def beat() -> None:
        while not stop.wait(_BEAT_SECONDS):
            run.write(acquire, otherwise=True)

    beating = threading.Thread(target=beat, name="kr-heartbeat", daemon=True)
    try:  # an interrupt may strike when the lease is held and nobody knows yet
        is_ours = run.write(acquire, otherwise=True)
        has_waited = not is_ours
        if has_waited:
            progress.waiting()
            try:
                while not is_ours and run.time_left() > 0:
                    cancellation.sleep(_POLL_SECONDS)
                    is_ours = run.write(acquire, otherwise=True)
            finally:
                progress.done()
        beating.start()
        yield has_waited
    finally:
        stop.set()
        if beating.ident is not None:
            beating.join(timeout=_BEAT_SECONDS)
        run.write(lambda tx: ledger.release_lease(tx, key, run.id), otherwise=False)


def lease_key(run: Run) -> str:
    """Name the report that a query would make: framework, topic and major version, as a digest."""
    query = run.query
    parts = (framework_key(query.framework), fold(query.topic), major_key(query.framework_version))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


class Chain:
    """Asks the sources in order, within the budget, until one covers the question.

    The budget is exactly ``max_calls``, or the story's less what the ledger shows. ``gap`` is the first answer that does not
    cover the question, ``ended`` what stopped the chain.
    """

    def __init__(self, run: Run, author: Author) -> None:
        self.author = author
        self.answer: Answer | None = None
        self.gap: Answer | None = None
        self.attempts: list[SourceAttempt] = []
        self.ended: Literal["budget", "deadline"] | None = None
        self.learned: list[Learned] = []
        self._run = run
        self._held: str | None = None

    def ask_in_order(self, sources: list[Source], spare: list[Source], ask: Ask) -> None:
        """Ask ``sources``, then what is to ``spare`` where none of them answers: a source gets its share of the time that is left."""
        for at, source in enumerate([*sources, *spare]):
            ask = replace(
                ask, known=self.learned[-1] if self.learned else ask.known, learn=self.learned.append
            )
            share = len(sources) + len(spare) - at
            is_out = self.ended == "deadline" or (self.ended == "budget" and source.is_charged)
            try:
                is_asked = self.answer is None and not is_out and self._ask(source, ask, share)
            except BaseException:
                self.give_back(source.name)
                raise
            if not is_asked and at < len(sources):
                self.attempts.append(SourceAttempt(source=source.name, status="skipped"))

    def _ask(self, source: Source, ask: Ask, share: int) -> bool:
        """Ask one source, which may take 1/``share`` of the time left. False when it may not be asked, which adds nothing."""
        cancellation.check()
        run, name, started = self._run, source.name, time.monotonic()
        if run.time_left() <= 0:
            self.ended = "deadline"
            run.notes.append(f"{name}: not asked: the overall deadline has passed")
            return False
        if source.is_charged and not self.reserve():
            self.ended = "budget"
            return False
        circuit = run.read(lambda tx: ledger.circuit(tx, name), ledger.Circuit(source=name))
        is_open = run.config.circuit_breaker.failures and circuit.open_until
        if is_open and not run.write(self._admit(name), otherwise=True):
            self._settle(source, "unavailable", started, reason="circuit open")
            return True
        logger.info("asking %s", name)
        run.service.progress.asking(name)
        try:
            answer = _cleaned(source.ask(ask, timeout=min(run.timeout, run.time_left() / share)))
        except SourceFailure as failure:
            cancellation.check()  # then it was broken off, and is not to blame
            if isinstance(failure, SourceNotAsked) and not source.is_charged:
                return False  # a folder that is about another framework
            self._note(circuit, failure)
            is_late = isinstance(failure, SourceTimeout)
            self._settle(source, "timeout" if is_late else "unavailable", started, reason=failure.reason)
        else:
            self._note(circuit, None)
            self._take(source, answer, started)
        finally:
            run.service.progress.done()
        return True

    def _take(self, source: Source, answer: Answer, started: float) -> None:
        if self.author.covers(answer):
            self.answer = replace(answer, is_gap=False)
            self._settle(source, "success", started, answer=answer)
            return
        self.gap = self.gap or replace(answer, is_gap=True)
        # Who was asked and charged has answered; a look into the installed files that found nothing is none.
        outcome: SourceOutcome = "success" if source.is_charged else "unavailable"
        self._settle(source, outcome, started, answer=answer, reason="its answer does not cover the question")

    # --- the budget

    def reserve(self) -> bool:
        """Hold one call; while other processes hold the rest, wait for them as long as there is time.

        Without a usable database the invocation counts for itself, on top of what one that can merely be read shows.
        """
        run, story = self._run, self._run.request
        is_own = run.overrides.max_calls is not None

        def reserve(tx: Transaction) -> Reservation:
            lookup.begin_request(tx, run.row("failure"))
            limit = None if is_own else run.call_limit
            return ledger.reserve(
                tx, story.session_id, story.story_key, owner=run.id, limit=limit, now=run.clock()
            )

        while not is_own or run.charged < run.call_limit:
            reserved = run.write(reserve, None)
            if reserved is None:
                here = run.charged - run.unrecorded
                spent = run.read(lambda tx: ledger.spent(tx, story.session_id, story.story_key), here)
                return run.calls_left(spent) > 0
            if reserved.outcome == "granted":
                self._held = reserved.id
                return True
            if reserved.outcome == "exhausted" or run.time_left() <= 0:
                return False
            cancellation.sleep(_POLL_SECONDS)
        return False

    def give_back(self, source: str) -> None:
        """Give back what is held: the call was interrupted, perhaps before its reservation was noted here."""

        def release(tx: Transaction) -> None:
            ledger.release_all(tx, self._run.id)
            ledger.release_probe(tx, source)

        self._held = None
        self._run.write(release, None)

    def _settle(
        self,
        source: Source,
        outcome: SourceOutcome,
        started: float,
        *,
        answer: Answer | None = None,
        reason: str | None = None,
    ) -> None:
        """Write what became of a call into the ledger; charge or give back what was held."""
        run, took = self._run, time.monotonic() - started
        url = answer.url if answer else None
        logger.info("%s: %s after %.1f s: %s", source.name, outcome, took, reason or url)
        self.attempts.append(SourceAttempt(source=source.name, status=outcome, url=url))
        if reason is not None:
            run.notes.append(f"{source.name}: {reason}")
        is_charged = answer is not None and source.is_charged
        run.charged += is_charged
        call = SourceCall(
            request_id=run.id,
            at=to_text(run.clock()),
            source=source.name,
            outcome=outcome,
            session_id=run.request.session_id,
            story_key=run.request.story_key,
            duration_ms=round(took * 1000),
            url=url,
            reason=reason,
            charged=is_charged,
            answer_tokens=sum(tokens_of(it.text) for it in answer.passages) if answer else None,
        )

        def record(tx: Transaction) -> bool:
            lookup.begin_request(tx, run.row("failure"))
            ledger.settle(tx, self._held, call)
            return True

        if not run.write(record, otherwise=False):
            run.unrecorded += is_charged
        self._held = None

    # --- the circuit breaker

    def _admit(self, name: str) -> Callable[[Transaction], bool]:
        now, seconds = self._run.clock(), self._run.timeout + _AROUND_A_CALL
        return lambda tx: ledger.admit(tx, name, now=now, probe_seconds=seconds)

    def _note(self, circuit: ledger.Circuit, failure: SourceFailure | None) -> None:
        """Remember an answer (``None``) or a failure; only the source's own fault counts."""
        run, limits, now = self._run, self._run.config.circuit_breaker, self._run.clock()
        if failure is not None and failure.is_fault:
            run.write(
                lambda tx: ledger.record_failure(
                    tx,
                    circuit.source,
                    failure.reason,
                    now=now,
                    failures=limits.failures,
                    pause_seconds=limits.pause_seconds,
                    retry_after=failure.retry_after,
                ),
                None,
            )
        elif isinstance(failure, SourceNotAsked):  # another process may probe
            run.write(lambda tx: ledger.release_probe(tx, circuit.source), None)
        elif circuit.failures:
            # It works: that it does not know a framework is no failure of the source.
            run.write(lambda tx: ledger.record_success(tx, circuit.source), None)


def _cleaned(answer: Answer) -> Answer:
    """Leave out the paragraphs that give orders to the agent that reads them: no documentation does. Raises where no text is left."""
    passages = tuple(replace(it, text=_without_orders(it.text)) for it in answer.passages)
    if not any(split(passage.text) for passage in passages):
        raise SourceFailure("its answer has no text", is_fault=False)
    return replace(answer, passages=passages)


def _without_orders(text: str) -> str:
    if GIVES_ORDERS not in reasons_to_hold(text[:_MOST_JUDGED]):
        return text
    kept = [it for it in text.split("\n\n") if GIVES_ORDERS not in reasons_to_hold(it[:_MOST_JUDGED])]
    return "\n\n".join(kept)
