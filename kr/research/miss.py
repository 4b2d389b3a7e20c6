"""Steps 4 to 8 of F1: what the cache does not answer is researched, written and indexed, once for everybody."""

import hashlib
import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from kr import cancellation
from kr.errors import KrError, ReportUnwritable, StoreError
from kr.frameworks import canonical
from kr.models import SourceAttempt
from kr.report import INSTALLED_DOCS_LAST
from kr.research.chain import Breaker, Chain, Result
from kr.research.decide import Lookup, Outcome, outcome_of
from kr.research.model import Model
from kr.research.packages import Packages
from kr.research.persona import Persona, chosen_persona
from kr.research.report import Report, build_report
from kr.research.run import Run
from kr.settings import Settings
from kr.settings.model import OwnSource
from kr.source_kinds import is_package
from kr.sources.base import Ask, Source
from kr.sources.registry import build_source
from kr.store import ledger, saving, wordings
from kr.store.engine import INDEX
from kr.store.places import pair_of
from kr.store.saving import Draft, Saved
from kr.text import fold
from kr.times import major_key, parse_time, same_major, to_text
from kr.transfer import has_export
from kr.transfer.export_yaml import refresh_exports
from kr.transfer.import_yaml import import_on_first_use

if TYPE_CHECKING:
    from kr.research.service import Progress

logger = logging.getLogger(__name__)

EXHAUSTED = "Research budget exhausted for story {story_key}, continuing with available context"
"""The log line of F1, step 5.3, as it stands."""
_NOTHING_ALLOWED = "No source was asked: max_calls is 0"
_LIBRARY_IDS_LAST = timedelta(days=90)
"""How long a library id, and the versions that were listed with it, are trusted without a new search."""
_LEASE_SECONDS = 8.0
"""How long a lease outlives its holder: the others take over after it."""
_BEAT_SECONDS = 2.0
_POLL_SECONDS = 0.1


class Miss:
    """Researches over one configuration."""

    def __init__(self, settings: Settings, packages: Packages, progress: "Progress") -> None:
        self._settings = settings
        self._config = settings.knowledge_research
        self._packages = packages
        self._progress = progress
        self._model = Model(settings, packages.environ)

    def perform(self, run: Run, found: Lookup) -> Outcome | Lookup:
        """Research what a request wants; ``found`` is what the cache holds for it, which may not be served.

        Returns what the cache holds after all: another has researched it meanwhile, or the project names it otherwise.
        """
        again = self._look_further(run, found)
        if run.may_serve(again) or (again is not found and run.may_offer(again)):
            return again
        with lease(run, self._progress) as has_waited:
            # Also who did not wait: another may have had the lease, and let go of it, since this one looked.
            found = run.cache.look_up(run.query)
            if run.may_serve(found):
                return found
            if has_waited and _is_news(run, found):
                return self._share(run, found)
            taken = self._model.choose(run, found.related, self._progress) if found.is_offer else None
            return taken or self._research(run, found)

    def _look_further(self, run: Run, found: Lookup) -> Lookup:
        """Import an index that waits beside an empty database, and look under the names that the project gives its packages."""
        if found.match is not None or found.related:
            return found
        base = self._settings.knowledge_base
        if has_export(base) and run.shelf.attempt(
            lambda store: import_on_first_use(store, base, now=run.clock()), otherwise=False
        ):
            found = run.cache.look_up(run.query)
        aliases = self._packages.aliases()
        if found.match is not None or found.related or not aliases:
            return run.cache.readable(found) if found.is_offer else found
        further = run.cache.look_up(run.query, {**aliases, **run.rules.aliases})
        return run.cache.readable(further) if further.is_offer else further

    def _research(self, run: Run, found: Lookup) -> Outcome | Lookup:
        persona = self._load_persona(run)  # step 4
        author = self._model.author(run, persona)
        breaker = Breaker(run, self._config.circuit_breaker, timeout=self._timeout(run))
        chain = Chain(run, breaker, self._progress, timeout=self._timeout(run), covers=author.covers)
        with _heartbeat(chain.budget.renew):
            result = self._ask_sources(run, found, chain)  # step 5
            synthesis = author.write(result.answer or result.gap)
            if result.answer is None and (again := run.cache.look_up(run.query)).is_hit:
                # Somebody else was luckier meanwhile: a placeholder must not take the place of that.
                return again if run.may_serve(again) else _stand(run, again, result)
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
            saved = self._save(run, found, report)  # steps 7 and 8
        return _outcome(found, result, report, saved)

    def _share(self, run: Run, found: Lookup) -> Outcome:
        """Return what another process has just found out, although it is no fresh answer."""
        run.notes.append("another agent researched this at the same moment; its report is shared")
        skipped = tuple(SourceAttempt(source=source.name, status="skipped") for source in self._sources())
        return outcome_of(found, attempts=skipped)

    # --- sources ---

    def _ask_sources(self, run: Run, found: Lookup, chain: Chain) -> Result:
        result, sources, local_docs = chain.result, self._sources(), self._local_docs()
        has_baseline = _has_lasting_baseline(found)
        ask = self._prepare(run)
        waiting = int(local_docs is not None and not has_baseline)
        chain.ask_in_order(sources, ask, fallback=self._fallback(), waiting=waiting)
        if result.ended == "budget":
            story = run.request.story_key
            message = _NOTHING_ALLOWED if run.asks_nobody else EXHAUSTED.format(story_key=story)
            logger.warning("%s", message)
            result.notes.append(message)
        if result.answer is None:
            if local_docs is not None and not has_baseline:
                chain.ask(local_docs, ask)
            used = _what_serves(run, found, result)
            if result.gap is not None:
                result.notes.append(f"question_not_covered: {used}")
            elif result.ended != "budget":
                result.notes.append(f"all_sources_unavailable: {used}")
        self._remember(run, result)
        run.notes += result.notes
        return result

    def _prepare(self, run: Run) -> Ask:
        framework = run.query.framework
        known = run.shelf.read(lambda tx: ledger.library(tx, framework), None)

        def own_repository() -> str | None:
            return self._packages.repository(framework)

        if known is None:
            return Ask(query=run.query, own_repository=own_repository)
        # What was learned long ago may list no version that came since: it is searched for anew.
        learned = parse_time(known.learned_at or "")
        is_recent = learned is not None and run.started - learned <= _LIBRARY_IDS_LAST
        return Ask(
            query=run.query,
            library_id=known.library_id if is_recent else None,
            library_versions=known.versions if is_recent else (),
            repository=known.repository,
            own_repository=own_repository,
        )

    def _remember(self, run: Run, result: Result) -> None:
        learned = result.learned
        if learned.library_id or learned.repository:
            run.shelf.write(
                lambda tx: ledger.learn_library(
                    tx,
                    run.query.framework,
                    library_id=learned.library_id,
                    versions=learned.library_versions,
                    repository=learned.repository,
                    now=run.clock(),
                ),
                None,
            )

    # --- steps 7 and 8 ---

    def _save(self, run: Run, found: Lookup, report: Report) -> Saved | None:
        """Write and index the report; None where it is not kept. A failure is noted and degrades the answer."""
        is_of_finding = found.match is not None and found.match.entry.is_written
        if not run.shelf.can_write or (report.origin == "baseline" and is_of_finding):
            return None
        now = run.clock()
        try:
            saved = saving.save(run.store, _draft(run, found, report, now), report.text, now)
        except StoreError as error:
            run.shelf.note(error)
            return None
        except ReportUnwritable as error:
            run.add_error(error)
            return None
        logger.info("wrote %s; the index holds %d entries", saved.entry.path, saved.index_count)
        run.notes += saved.warnings
        if saved.is_beside:
            is_kept = saved.revision != saved.entry.revision
            kept = f", and is kept as its revision {saved.revision}" if is_kept else ""
            run.notes.append(
                f"{saved.entry.id} is as it was: what was found now does not take its place{kept}"
            )
        elif run.overrides.refresh:
            # So is a wrong choice undone: these words led to another entry, and what they ask for was wanted anew.
            run.shelf.write(lambda tx: wordings.take(tx, run.query.question, saved.entry), None, scope=INDEX)
        if self._config.auto_export:
            try:
                refresh_exports(run.store, self._settings.knowledge_base)
            except KrError as error:
                run.notes.append(f"export_failed: {error}")
        return saved

    # --- what the settings name ---

    def _load_persona(self, run: Run) -> Persona:
        home = Path(self._packages.environ.get("HOME") or "/nonexistent")
        persona, note = chosen_persona(self._settings, home)
        run.persona = persona.name
        logger.info("researching under the principles of %s", persona.name)
        if note is not None:
            logger.warning("BMM Architect persona load failed, using lean persona")
            run.notes.append(note)
        return persona

    def _timeout(self, run: Run) -> float:
        return run.overrides.timeout_seconds or self._config.timeout_seconds

    def _sources(self) -> list[Source]:
        return [_source(name, self._settings, self._packages.environ) for name in self._config.sources]

    def _fallback(self) -> Source | None:
        name = self._config.fallback_if_mcp_unavailable
        return _source(name, self._settings, self._packages.environ) if name else None

    def _local_docs(self) -> Source | None:
        if not self._config.local_docs:
            return None
        from kr.sources.local_docs import LocalDocs  # heavy

        return LocalDocs(self._packages.folders, self._packages.environ)


def configured_sources(settings: Settings, environ: Mapping[str, str]) -> list[Source]:
    """Return every source that the settings name, the fallback too."""
    config = settings.knowledge_research
    names = dict.fromkeys([*config.sources, *filter(None, [config.fallback_if_mcp_unavailable])])
    return [_source(name, settings, environ) for name in names]


def _source(name: str | OwnSource, settings: Settings, environ: Mapping[str, str]) -> Source:
    return build_source(name, settings.knowledge_research, environ, settings.project_root)


@contextmanager
def lease(run: Run, progress: "Progress") -> Iterator[bool]:
    """Hold the right to research a question; yields whether another held it before. Without a database there is none."""
    key = lease_key(run)

    def acquire() -> bool:
        return run.shelf.write(
            lambda tx: ledger.acquire_lease(tx, key, run.owner, now=run.clock(), ttl=_LEASE_SECONDS),
            otherwise=True,
        )

    def renew() -> None:
        run.shelf.write(
            lambda tx: ledger.renew_lease(tx, key, run.owner, now=run.clock(), ttl=_LEASE_SECONDS), False
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
        with _heartbeat(renew):
            yield has_waited
    finally:
        run.shelf.write(lambda tx: ledger.release_lease(tx, key, run.owner), otherwise=False)


def lease_key(run: Run) -> str:
    """Name the report that a query would make: framework, topic and major version, as a digest."""
    query = run.query
    parts = (canonical(query.framework), fold(query.topic), major_key(query.framework_version))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


@contextmanager
def _heartbeat(beat: Callable[[], None]) -> Iterator[None]:
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


def _has_lasting_baseline(found: Lookup) -> bool:
    """Whether a stale report stands in where nothing answers; a copy of installed documentation is read anew instead."""
    is_copy = found.match is not None and found.match.entry.is_installed_excerpt
    return found.baseline is not None and not is_copy


def _what_serves(run: Run, found: Lookup, result: Result) -> str:
    """Say what the answer is made of where no source answered."""
    if result.answer is not None:
        installed, asked = result.answer.version, run.query.framework_version
        if installed and not same_major(installed, asked):
            result.notes.append(f"{installed} is installed, and the request is about {asked}")
        return "using installed documentation"
    if found.is_hit:
        return "keeping the existing report"
    return "using stale cache" if found.baseline is not None else "no cached content available"


def _is_news(run: Run, found: Lookup) -> bool:
    """Whether a research that was waited for ended without a fresh answer: its report is ours all the same."""
    if found.match is None:
        return False
    entry = found.match.entry
    if pair_of(entry.framework, entry.topic) != pair_of(run.query.framework, run.query.topic):
        return False
    # A stale entry is not touched by look-ups: it was accessed when it was written.
    written = parse_time(entry.last_accessed)
    return written is not None and written >= run.started


def _stand(run: Run, found: Lookup, result: Result) -> Outcome:
    """Nothing answered a request for a new research: the fresh report stays as it is, and is returned."""
    outcome = outcome_of(found, attempts=tuple(result.attempts), has_budget_ended=result.ended == "budget")
    run.notes.append(f"{outcome.entry_id} could not be researched again; its report is unchanged")
    return outcome


def _draft(run: Run, found: Lookup, report: Report, now: datetime) -> Draft:
    # A report that was carried over keeps the version and the time that its text is of; one of another major
    # version stands in for the one that was asked for, and must not take the place of its own entry.
    old = found.match.entry if report.origin == "baseline" and found.match else None
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


def _outcome(found: Lookup, result: Result, report: Report, saved: Saved | None) -> Outcome:
    outcome = Outcome(
        attempts=tuple(result.attempts),
        has_budget_ended=result.ended == "budget",
        is_answered=result.answer is not None and not is_package(result.answer.source),
        is_written=saved is not None,
        confidence=report.confidence,
        match=found.match,
        ratings=found.ratings,
        related=tuple(it for it in found.related if saved is None or it.id != saved.entry.id),
        text=report.text,
    )
    if (
        saved is None
        and found.match is not None
        and found.match.entry.is_written
        and report.origin == "baseline"
    ):
        # Nobody's words are overwritten: the stale finding is given as it stands.
        entry = found.match.entry
        return replace(
            outcome, entry_id=entry.id, path=entry.path, confidence=entry.confidence, text=found.report
        )
    if saved is None:
        return outcome
    # A placeholder or a known text leaves the entry and its history untouched.
    is_as_it_was = saved.is_beside and saved.revision == saved.entry.revision
    return replace(
        outcome,
        entry_id=saved.entry.id,
        path=None if saved.is_beside else saved.entry.path,
        index_updated=not is_as_it_was,
        index_count=saved.index_count,
        lru_evicted=saved.lru_evicted,
        auto_archived=saved.auto_archived,
    )
