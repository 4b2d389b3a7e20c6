"""Steps 4 to 8 of F1: what the cache does not answer is asked of the sources, written and indexed, once for everybody."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kr.errors import KrError, ReportUnwritable, StoreError
from kr.frameworks import framework_key
from kr.guard import reasons_to_hold
from kr.models import (
    LOCAL_DOCS,
    Entry,
    Envelope,
    Learned,
    Related,
    ResearchResults,
    ResearchStatus,
    SourceAttempt,
)
from kr.packages import find_dependencies, package_aliases
from kr.packages.installed import find_installed
from kr.report import INSTALLED_DOCS_LAST, is_by_hand
from kr.research.chain import Chain, lease
from kr.research.decide import Lookup
from kr.research.llm import Author, choose
from kr.research.report import Report, build_report
from kr.research.run import ResearchRun, few_findings
from kr.settings import Settings
from kr.sources import build_source
from kr.sources.base import Ask, Source
from kr.store import entries, ledger, saving
from kr.store.engine import Transaction
from kr.store.lookup import topic_key
from kr.store.saving import Saved
from kr.text import fold
from kr.times import parse_time, same_major, to_text
from kr.transfer import has_export
from kr.transfer.export_yaml import has_edited_index, refresh_exports
from kr.transfer.import_yaml import import_on_first_use

logger = logging.getLogger(__name__)

EXHAUSTED = "Research budget exhausted for story {story_key}, continuing with available context"
"""The log line of F1, step 5.3, as it stands."""
OTHER_WORDS = "related: what others found out about it, in other words; use: ID takes one"


def perform(run: ResearchRun, found: Lookup) -> Envelope:
    """Answer a request; ``found`` is what the cache holds for it, which does not answer.

    It may hold the answer after all: another has researched it meanwhile, or the project names it otherwise.
    """
    again = _look_further(run, found)
    if again is not found and (answered := run.answered(again)) is not None:
        return answered
    with lease(run) as has_waited:
        # Also who did not wait: another may have had the lease, and let go of it, since this one looked.
        found = run.look_up()
        if (answered := run.answered(found)) is not None:
            return answered
        written = parse_time(found.entry.last_accessed) if found.entry else None
        if has_waited and written is not None and written >= run.started:
            # A research that was waited for ended without a fresh answer: its report is ours all the same.
            run.notes.append("another agent researched this at the same moment; its report is shared")
            return run.answer("degraded", found.results, found.report)
        taken = choose(run, found.related) if found.is_offer else None
        return run.serve(taken) if taken else _research(run, found)


def _look_further(run: ResearchRun, found: Lookup) -> Lookup:
    """Import an index that git brought or that waits beside an empty database, and look under the project's names of packages."""
    base = run.service.settings.knowledge_base

    def import_index() -> bool:
        is_first = (
            found.is_miss and has_export(base) and import_on_first_use(run.store, base, now=run.clock())
        )
        if not is_first and run.config.auto_export and has_edited_index(run.store, base):
            _export(run)
            return True
        return is_first

    if run.attempt(import_index, otherwise=False):
        found = run.look_up()
    aliases: dict[str, str] = {}
    # What the working directory's files say goes before what the configuration's do.
    for folder in reversed(run.service.folders) if found.is_miss else ():
        aliases |= package_aliases(find_dependencies(folder, run.service.environ).dependencies)
    if not aliases:
        return found
    run.config = run.config.but(aliases={**aliases, **run.config.aliases})
    return run.look_up()


def _research(run: ResearchRun, found: Lookup) -> Envelope:
    chain = Chain(run, Author(run))  # step 4
    _ask_sources(run, found, chain)  # step 5
    again = run.look_up() if chain.answer is None else None
    if again and again.is_hit:
        # A fresh report, or somebody else's luck meanwhile: a placeholder must not take the place of that.
        if (answered := run.answered(again)) is not None:
            return answered
        run.notes.append("it could not be researched again; its report is unchanged")
        results = replace(again.results, sources_consulted=chain.attempts)
        status: ResearchStatus = "budget-exhausted" if chain.ended == "budget" else "degraded"
        return run.answer(status, results, again.report)
    report = build_report(  # step 6
        run.query,
        answer=chain.answer or chain.gap,
        baseline=found.baseline,
        today=run.clock().date(),
        synthesis=chain.author.written,
        max_tokens=run.config.report_max_tokens,
    )
    return _answer(run, found, chain, report, _save(run, found, report))  # steps 7 and 8


def _answer(run: ResearchRun, found: Lookup, chain: Chain, report: Report, saved: Saved | None) -> Envelope:
    status = research_status(
        chain.attempts,
        is_answered=chain.is_answered,
        is_written=saved is not None,
        has_budget_ended=chain.ended == "budget",
    )
    text = report.text
    results = ResearchResults(
        confidence=report.confidence,
        sources_consulted=chain.attempts,
        match=found.match,
        related=[it for it in found.related if saved is None or it.id != saved.entry.id],
    )
    if saved is not None:
        # No id is given: a rating would count for the withdrawn text, which the asker never saw.
        is_of_withdrawn = saved.is_beside and found.known is not None and found.known.refusal is not None
        results = replace(
            results,
            cache_entry_id=None if is_of_withdrawn else saved.entry.id,
            report_path=None if saved.is_beside else saved.entry.path,
            # A placeholder or a known text leaves the entry and its history untouched.
            index_updated=not saved.is_beside or saved.revision != saved.entry.revision,
            lru_evicted=saved.lru_evicted,
            auto_archived=saved.auto_archived,
        )
    elif report.origin == "baseline" and found.report and _is_by_hand(found):
        # Nobody's words are overwritten: the stale finding is given as it stands.
        results, text = replace(found.results, sources_consulted=chain.attempts), found.report
    if status in ("degraded", "budget-exhausted") and not results.related:
        others = run.read(lambda tx: few_findings(tx, run.query, run.config, run.clock()), list[Related]())
        results = replace(results, related=others)
        run.notes += [OTHER_WORDS] if others else []
    return run.answer(status, results, text)


def _ask_sources(run: ResearchRun, found: Lookup, chain: Chain) -> None:
    environ = run.service.environ
    known = run.read(lambda tx: ledger.library(tx, run.query.framework), None)
    ask = Ask(query=run.query, known=known or Learned(), own_repository=lambda: _repository(run))
    sources = configured_sources(run.service.settings, environ)
    number = len(run.config.sources)
    # A stale report stands in where nothing answers; a copy of installed documentation is read anew instead.
    is_copy = found.entry is not None and found.entry.is_installed_excerpt
    local_docs = list[Source]()
    if run.config.local_docs and (found.baseline is None or is_copy):
        from kr.sources.local_docs import LocalDocs  # heavy

        local_docs.append(LocalDocs(run.service.folders, environ))
    chain.ask_in_order(sources[:number], [*sources[number:], *local_docs], ask)
    if not chain.is_answered and chain.ended == "budget":
        message = EXHAUSTED.format(story_key=run.request.story_key)
        logger.warning("%s", message)
        run.notes.append(message)
    elif not chain.is_answered and chain.gap is None:
        used = "no cached content available" if found.baseline is None else "using stale cache"
        used = "keeping the existing report" if found.is_hit else used
        used = "using installed documentation" if chain.answer is not None else used
        run.notes.append(f"all_sources_unavailable: {used}")
    if found.entry is None and not chain.is_answered:
        run.notes += run.read(lambda tx: _in_archive(tx, run.query.framework, run.query.topic), [])
    if chain.learned:
        learned, now = chain.learned[-1], run.clock()
        run.write(lambda tx: ledger.learn_library(tx, run.query.framework, learned, now=now), None)


def _in_archive(tx: Transaction, framework: str, topic: str) -> list[str]:
    """Name the finding of a topic that left the index last."""
    gone = entries.archived(tx, framework_key=framework_key(framework), topic_key=topic_key(topic))
    found = [it.entry.id for it in gone if it.entry.is_written]
    return [f"{it} is in the archive: `kr archive restore {it}` brings it back" for it in found[:1]]


def _repository(run: ResearchRun) -> str | None:
    """Return the framework's ``owner/repo``: configured, or named by the installed package."""
    for name, repository in run.config.repositories.items():
        if fold(name) == fold(run.query.framework):
            return repository
    found = find_installed(run.query.framework, run.service.folders, run.service.environ)
    return next((package.repository for package in found if package.repository), None)


def _is_by_hand(found: Lookup) -> bool:
    """Whether somebody wrote the text of an entry: nothing takes its place, and nothing is written into it."""
    return found.entry is not None and (found.entry.is_written or is_by_hand(found.report or ""))


# --- steps 7 and 8


def _save(run: ResearchRun, found: Lookup, report: Report) -> Saved | None:
    """Write and index the report; None where it is not kept. A failure is noted and degrades the answer."""
    if not run.can_write or (report.origin == "baseline" and _is_by_hand(found)):
        return None
    query, now = run.query, run.clock()
    asked = "\n".join((query.framework, query.topic, query.question, *query.tags))
    if reasons := reasons_to_hold(asked):
        run.notes.append(f"not_kept: the request {'; it '.join(reasons)}")
        return None
    try:
        saved = saving.save(run.store, _draft(run, found, report), report.text, now)
    except (StoreError, ReportUnwritable) as error:
        run.add_error(error)
        return None
    run.notes += saved.warnings
    if saved.is_beside:
        is_kept = saved.revision != saved.entry.revision
        kept = f", and is kept as its revision {saved.revision}" if is_kept else ""
        why = f" ({found.known.refusal})" if found.known and found.known.refusal else ""
        run.notes.append(f"{saved.entry.id} is unchanged{why}: what was found now does not replace it{kept}")
    if run.config.auto_export:
        _export(run)
    return saved


def _export(run: ResearchRun) -> None:
    try:
        refresh_exports(run.store, run.service.settings.knowledge_base)
    except KrError as error:
        run.notes.append(f"export_failed: {error}")


def _draft(run: ResearchRun, found: Lookup, report: Report) -> Entry:
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
        origin="placeholder" if report.origin == "placeholder" else "excerpt",
        fresh_until=to_text(run.clock() + INSTALLED_DOCS_LAST) if report.origin == "installed" else None,
        researched_at=(old.researched_at or old.created) if old else None,
        question=run.query.question,
    )


def configured_sources(settings: Settings, environ: Mapping[str, str]) -> list[Source]:
    """Return every source that the settings name, the fallback too."""
    config = settings.knowledge_research
    names = dict.fromkeys([*config.sources, *filter(None, [config.fallback_if_mcp_unavailable])])
    return [build_source(name, settings, environ) for name in names]


def research_status(
    attempts: Sequence[SourceAttempt], *, is_answered: bool, is_written: bool, has_budget_ended: bool
) -> ResearchStatus:
    """Return the first status of the table that holds (F1, "Return Value"), where sources were to be asked.

    ``is_answered``: a source of the chain answered the question; installed documentation is none. ``is_written``: report and
    row are in the database. ``has_budget_ended``: a source was not asked because the budget was empty.
    """
    if not is_answered:
        return "budget-exhausted" if has_budget_ended else "degraded"
    if not is_written:
        return "partial"
    # The chain stops at the first answer, so whatever failed was asked before it.
    asked = {row.status for row in attempts if row.source != LOCAL_DOCS}
    if "timeout" in asked:
        return "timeout"
    return "partial" if "unavailable" in asked else "success"
