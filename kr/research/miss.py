"""Steps 4 to 8 of F1: what the cache does not answer is researched, written and indexed, once for everybody."""

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path

from kr import cancellation
from kr.errors import KrError, ReportUnwritable, StoreError
from kr.frameworks import framework_key
from kr.guard import reasons_to_hold
from kr.models import (
    LOCAL_DOCS,
    Entry,
    Learned,
    ResearchEnvelope,
    ResearchResults,
    ResearchStatus,
    SourceAttempt,
)
from kr.packages import find_dependencies, package_aliases
from kr.packages.installed import find_installed
from kr.report import INSTALLED_DOCS_LAST
from kr.research.cache import Lookup
from kr.research.chain import Chain, Result
from kr.research.decide import research_status
from kr.research.llm import Author, choose
from kr.research.persona import Persona, chosen_persona
from kr.research.report import Report, build_report
from kr.research.run import Run, results_of
from kr.settings import Settings
from kr.sources import build_source
from kr.sources.base import Ask, Source
from kr.store import ledger, saving
from kr.store.reports import pair_of
from kr.store.saving import Draft, Saved
from kr.text import fold
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


class Miss:
    """Researches what one request wants."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._settings = run.service.settings
        self._config = run.service.settings.knowledge_research
        self._environ = run.service.environ

    def perform(self, found: Lookup) -> ResearchEnvelope:
        """Answer a request; ``found`` is what the cache holds for it, which may not be served.

        It may hold the answer after all: another has researched it meanwhile, or the project names it otherwise.
        """
        run = self._run
        again = self._look_further(found)
        if run.may_serve(again):
            return run.serve(again)
        if again is not found and run.may_offer(again):
            return run.offer(again)
        with lease(run) as has_waited:
            # Also who did not wait: another may have had the lease, and let go of it, since this one looked.
            found = run.cache.look_up(run.query)
            if run.may_serve(found):
                return run.serve(found)
            if has_waited and found.entry and _was_written_meanwhile(run, found.entry):
                run.notes.append("another agent researched this at the same moment; its report is shared")
                skipped = [SourceAttempt(source=source.name, status="skipped") for source in self._sources()]
                results = replace(results_of(found, found.entry), sources_consulted=skipped)
                return run.answer("degraded", results, found.report)
            taken = choose(run, found.related) if found.is_offer else None
            return run.serve(taken) if taken else self._research(found)

    def _look_further(self, found: Lookup) -> Lookup:
        """Import an index that git brought or that waits beside an empty database, and look under the project's names of packages."""
        run, base = self._run, self._settings.knowledge_base
        is_unknown = found.known is None and not found.related
        if (
            is_unknown
            and has_export(base)
            and run.cache.attempt(
                lambda: import_on_first_use(run.cache.store, base, now=run.clock()), otherwise=False
            )
        ):
            found = run.cache.look_up(run.query)
        elif self._config.auto_export and run.cache.attempt(
            lambda: has_edited_index(run.cache.store, base), otherwise=False
        ):
            self._export()
            found = run.cache.look_up(run.query)
        if not is_unknown:
            return found
        # What the working directory's files say goes before what the configuration's do.
        named = [
            package_aliases(find_dependencies(folder, self._environ).dependencies)
            for folder in reversed(run.service.folders)
        ]
        aliases = {name: package for names in named for name, package in names.items()}
        if aliases and found.known is None and not found.related:
            found = run.cache.look_up(run.query, {**aliases, **self._config.aliases})
        return found

    def _research(self, found: Lookup) -> ResearchEnvelope:
        run = self._run
        author = Author(run, self._load_persona())  # step 4
        chain = Chain(run, author.covers)
        with _heartbeat(chain.budget.renew):
            result = self._ask_sources(found, chain)  # step 5
            synthesis = author.write(result.answer or result.gap)
            again = run.cache.look_up(run.query) if result.answer is None else None
            if again and again.is_hit and again.entry:
                # A fresh report, or somebody else's luck meanwhile: a placeholder must not take the place of that.
                return run.serve(again) if run.may_serve(again) else self._keep(again, again.entry, result)
            report = build_report(  # step 6
                run.query,
                answer=result.answer or result.gap,
                baseline=found.baseline,
                today=run.clock().date(),
                notes=run.notes,
                synthesis=synthesis,
                max_tokens=self._config.report_max_tokens,
                sources={attempt.source for attempt in result.attempts},
            )
            saved = self._save(found, report)  # steps 7 and 8
        return self._answer(found, result, report, saved)

    def _keep(self, found: Lookup, entry: Entry, result: Result) -> ResearchEnvelope:
        """Nothing answered a request for a new research: the fresh report stays as it is, and is returned."""
        self._run.notes.append(f"{entry.id} could not be researched again; its report is unchanged")
        results = replace(results_of(found, entry), sources_consulted=result.attempts)
        status: ResearchStatus = "budget-exhausted" if result.ended == "budget" else "degraded"
        return self._run.answer(status, results, found.report)

    def _answer(self, found: Lookup, result: Result, report: Report, saved: Saved | None) -> ResearchEnvelope:
        status = research_status(
            result.attempts,
            is_answered=result.answer is not None and result.answer.source != LOCAL_DOCS,
            is_written=saved is not None,
            has_budget_ended=result.ended == "budget",
        )
        results = ResearchResults(
            confidence=report.confidence,
            sources_consulted=result.attempts,
            match=found.match,
            related=[it for it in found.related if saved is None or it.id != saved.entry.id],
        )
        text, entry = report.text, found.entry
        if saved is not None:
            # A placeholder or a known text leaves the entry and its history untouched.
            is_as_it_was = saved.is_beside and saved.revision == saved.entry.revision
            results = replace(
                results,
                cache_entry_id=saved.entry.id,
                report_path=None if saved.is_beside else saved.entry.path,
                index_updated=not is_as_it_was,
                lru_evicted=saved.lru_evicted,
                auto_archived=saved.auto_archived,
            )
        elif entry is not None and entry.is_written and report.origin == "baseline" and found.report:
            # Nobody's words are overwritten: the stale finding is given as it stands.
            results = replace(results_of(found, entry), sources_consulted=result.attempts)
            text = found.report
        if status in {"budget-exhausted", "degraded"}:
            results = self._run.with_findings(results)
        return self._run.answer(status, results, text)

    def _load_persona(self) -> Persona:
        home = Path(self._environ.get("HOME") or "/nonexistent")
        persona, note = chosen_persona(self._settings, home)
        self._run.persona = persona.name
        logger.info("researching under the principles of %s", persona.name)
        if note is not None:
            logger.warning("BMM Architect persona load failed, using lean persona")
            self._run.notes.append(note)
        return persona

    # --- step 5

    def _ask_sources(self, found: Lookup, chain: Chain) -> Result:
        run, result, ask = self._run, chain.result, self._prepare()
        # A stale report stands in where nothing answers; a copy of installed documentation is read anew instead.
        is_copy = found.entry is not None and found.entry.is_installed_excerpt
        local_docs = None if found.baseline is not None and not is_copy else self._local_docs()
        fallback = self._config.fallback_if_mcp_unavailable
        last = build_source(fallback, self._settings, self._environ) if fallback else None
        chain.ask_in_order(self._sources(), ask, fallback=last, waiting=int(local_docs is not None))
        if result.ended == "budget":
            message = EXHAUSTED.format(story_key=run.request.story_key)
            logger.warning("%s", message)
            result.notes.append(message)
        if result.answer is None:
            if local_docs is not None:
                chain.ask(local_docs, ask)
            used = _what_serves(found, result)
            if result.gap is not None:
                result.notes.append(f"question_not_covered: {used}")
            elif result.ended != "budget":
                result.notes.append(f"all_sources_unavailable: {used}")
        if learned := result.learned:
            framework = run.query.framework
            run.cache.write(lambda tx: ledger.learn_library(tx, framework, learned, now=run.clock()), None)
        run.notes += result.notes
        return result

    def _prepare(self) -> Ask:
        query = self._run.query
        known = self._run.cache.read(lambda tx: ledger.library(tx, query.framework), None)
        return Ask(query=query, known=known or Learned(), own_repository=self._repository)

    def _repository(self) -> str | None:
        """Return the framework's ``owner/repo``: configured, or named by the installed package."""
        framework = self._run.query.framework
        for name, repository in self._config.repositories.items():
            if fold(name) == fold(framework):
                return repository
        found = find_installed(framework, self._run.service.folders, self._environ)
        return next((package.repository for package in found if package.repository), None)

    def _sources(self) -> list[Source]:
        return [build_source(name, self._settings, self._environ) for name in self._config.sources]

    def _local_docs(self) -> Source | None:
        if not self._config.local_docs:
            return None
        from kr.sources.local_docs import LocalDocs  # heavy

        return LocalDocs(self._run.service.folders, self._environ)

    # --- steps 7 and 8

    def _save(self, found: Lookup, report: Report) -> Saved | None:
        """Write and index the report; None where it is not kept. A failure is noted and degrades the answer."""
        run = self._run
        is_of_finding = found.entry is not None and found.entry.is_written
        if not run.cache.can_write or (report.origin == "baseline" and is_of_finding):
            return None
        if reasons := reasons_to_hold(
            "\n".join((run.query.framework, run.query.topic, run.query.question, *run.query.tags))
        ):
            run.notes.append(f"not_kept: the request {'; it '.join(reasons)}")
            return None
        now = run.clock()
        try:
            saved = saving.save(run.cache.store, _draft(run, found, report, now), report.text, now)
        except StoreError as error:
            run.cache.note(error)
            return None
        except ReportUnwritable as error:
            run.add_error(error)
            return None
        logger.info("wrote %s; the index holds %d entries", saved.entry.path, saved.index_count)
        run.notes += saved.warnings
        if saved.is_beside:
            is_kept = saved.revision != saved.entry.revision
            kept = f", and is kept as its revision {saved.revision}" if is_kept else ""
            run.notes.append(f"{saved.entry.id} is unchanged: what was found now does not replace it{kept}")
        if self._config.auto_export:
            self._export()
        return saved

    def _export(self) -> None:
        try:
            refresh_exports(self._run.cache.store, self._settings.knowledge_base)
        except KrError as error:
            self._run.notes.append(f"export_failed: {error}")


def configured_sources(settings: Settings, environ: Mapping[str, str]) -> list[Source]:
    """Return every source that the settings name, the fallback too."""
    config = settings.knowledge_research
    names = dict.fromkeys([*config.sources, *filter(None, [config.fallback_if_mcp_unavailable])])
    return [build_source(name, settings, environ) for name in names]


@contextmanager
def lease(run: Run) -> Iterator[bool]:
    """Hold the right to research a question; yields whether another held it before. Without a database there is none."""
    key, progress = lease_key(run), run.service.progress

    def acquire() -> bool:
        return run.cache.write(
            lambda tx: ledger.acquire_lease(tx, key, run.id, now=run.clock(), ttl=_LEASE_SECONDS),
            otherwise=True,
        )

    try:  # an interrupt may strike when the lease is held and nobody knows yet
        is_ours = acquire()
        has_waited = not is_ours
        if has_waited:
            logger.info("another process is researching this question; waiting for its report")
            progress.waiting()
            try:
                while not is_ours and run.time_left() > 0:
                    cancellation.sleep(_POLL_SECONDS)
                    is_ours = acquire()
            finally:
                progress.done()
        with _heartbeat(acquire):
            yield has_waited
    finally:
        run.cache.write(lambda tx: ledger.release_lease(tx, key, run.id), otherwise=False)


def lease_key(run: Run) -> str:
    """Name the report that a query would make: framework, topic and major version, as a digest."""
    query = run.query
    parts = (framework_key(query.framework), fold(query.topic), major_key(query.framework_version))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@contextmanager
def _heartbeat(beat: Callable[[], object]) -> Iterator[None]:
    """Call ``beat`` every two seconds, in a thread, while the block runs."""
    stop = threading.Event()

    def run() -> None:
        while not stop.wait(_BEAT_SECONDS):
            beat()

    thread = threading.Thread(target=run, name="kr-heartbeat", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join(timeout=_BEAT_SECONDS)


def _what_serves(found: Lookup, result: Result) -> str:
    """Say what the answer is made of where no source answered."""
    if result.answer is not None:
        return "using installed documentation"
    if found.is_hit:
        return "keeping the existing report"
    return "using stale cache" if found.baseline is not None else "no cached content available"


def _was_written_meanwhile(run: Run, entry: Entry) -> bool:
    """Whether a research that was waited for ended without a fresh answer: its report is ours all the same."""
    if pair_of(entry.framework, entry.topic) != pair_of(run.query.framework, run.query.topic):
        return False
    # A stale entry is not touched by look-ups: it was accessed when it was written.
    written = parse_time(entry.last_accessed)
    return written is not None and written >= run.started


def _draft(run: Run, found: Lookup, report: Report, now: datetime) -> Draft:
    # A report that was carried over keeps the version and the time that its text is of; one of another major
    # version stands in for the one that was asked for, and must not take the place of its own entry.
    old = found.entry if report.origin == "baseline" else None
    asked = run.query.framework_version
    is_same = old is not None and same_major(old.framework_version, asked)
    return Draft(
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
