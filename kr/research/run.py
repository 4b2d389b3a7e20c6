"""One research request under way: what it may spend, what it has to say on its way, and its answer (F1, steps 3 and 9)."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kr.errors import KrError
from kr.frameworks import framework_key, lookup_keys
from kr.models import (
    Entry,
    Problem,
    Query,
    ResearchEnvelope,
    ResearchResults,
    ResearchStatus,
    in_one_line,
)
from kr.requests import ResearchRequest
from kr.research.cache import HIT_TIMEOUT, Aliases, Cache, Lookup
from kr.research.decide import with_confidence
from kr.store import lookup, usage
from kr.store.engine import Transaction
from kr.store.files import new_id
from kr.store.lookup import RequestRow
from kr.store.usage import Wording
from kr.text import fit, search_words, tokens_of
from kr.times import parse_time, to_text

if TYPE_CHECKING:
    from kr.research.service import ResearchService

SAVE_HINT = (
    "found the answer elsewhere, and it worked? Save it for the next agent with `kr save` (MCP: save_finding)"
)
"""What an answer says that holds no report."""
OFFERED = "candidates: use: ID takes one of results.related, if_unsure: research has it researched; rate what worked"
"""What an answer says that offers candidates."""

OTHER_WORDS = "related: what others found out about it, in other words; use: ID takes one"
INSTALLED_ALONE = "its report was made of installed documentation alone, and may miss the question"
"""What a hit says that serves such a report, until somebody said that it worked."""

_KEPT_BACK = (0.05, 5.0)
"""The share of the overall time, and the seconds at most, that are kept so that the answer is out before the caller gives up."""
_MOST_LESSONS = 3
_MOST_LOOKED_AT = 5_000
"""Files of a folder of one's own that are looked at, whether they changed."""


class Run:
    """One research request under way: what it may spend, what it has to say on its way, and its answer (F1, steps 3 and 9)."""

    def __init__(
        self,
        service: "ResearchService",
        request: ResearchRequest,
        *,
        include_report: bool = False,
        max_tokens: int | None = None,
    ) -> None:
        """Start its budget and its clocks."""
        self._began = time.monotonic()
        self.service = service
        self.request = request
        self.clock = service.clock
        self.started = service.clock()
        self.id = new_id()
        self.config = service.settings.knowledge_research
        self.query = under_its_name(request.research_query, self.config.aliases)
        self.cache = Cache(service.store, self.config, service.clock)
        self.notes: list[str] = []
        self.errors: list[Problem] = []
        self.persona: str | None = None
        self.charged = self.unrecorded = 0
        """Calls that it was charged, and how many of them could not be written into the ledger."""
        self.overrides = request.config_overrides
        most = self.overrides.max_calls
        self.call_limit = self.config.max_calls_per_story if most is None else most
        """How many calls the request, or its story, may cost."""
        self.timeout = self.overrides.timeout_seconds or self.config.timeout_seconds
        """Seconds that one source may take."""
        self._include_report = include_report
        self._max_tokens = max_tokens

    def time_left(self) -> float:
        """Return the seconds that are left of the overall time."""
        seconds = self.service.settings.overall_timeout
        share, most = _KEPT_BACK
        return max(0.0, self._began + seconds - min(seconds * share, most) - time.monotonic())

    def calls_left(self, spent: int) -> int:
        """Return the calls that are left, where the ledger shows so many ``spent`` by the story."""
        used = spent + self.unrecorded if self.overrides.max_calls is None else self.charged
        return max(0, self.call_limit - used)

    def look_up(self) -> Lookup:
        """Find what the cache holds: the entry that the request names, else what answers it."""
        if self.overrides.use is not None:
            found = self.cache.use(self.query, self.overrides.use)
            if found.known is not None:
                return found
            self.notes.append(
                f"{self.overrides.use} has no report that could be served: the question was answered without it"
            )
        return self.cache.look_up(self.query)

    def may_serve(self, found: Lookup) -> bool:
        """Whether the cache answers; what is to be refreshed, only with what was researched since it was asked."""
        if not found.is_hit or found.entry is None or self.overrides.use is not None:
            return found.is_hit
        researched = parse_time(found.entry.researched_at or "")
        if self.overrides.refresh:
            return researched is not None and researched >= self.started
        return researched is None or not self._has_changed_since(found, researched)

    def _has_changed_since(self, found: Lookup, moment: datetime) -> bool:
        """Whether a folder of one's own was changed after an excerpt of it was made; to read it again costs nothing."""
        if found.entry is None or found.entry.origin != "excerpt":
            return False
        root, text = self.service.settings.project_root, found.report or ""
        own = (it for it in self.config.sources if not isinstance(it, str))
        folders = [root / it.folder for it in own if it.folder and f"(via {it.name})" in text]
        return any(_newest_change(folder) > moment.timestamp() for folder in folders)

    def may_offer(self, found: Lookup) -> bool:
        """Whether the caller chooses among the candidates."""
        return self.overrides.if_unsure == "candidates" and not self.overrides.refresh and found.is_offer

    def add_error(self, error: KrError | None) -> None:
        if error is None:
            return
        problem = Problem(type=error.code, message=str(error))
        if problem not in self.errors:
            self.errors.append(problem)

    def row(self, status: str, **more: Any) -> RequestRow:
        """Make the row of ``requests``."""
        query = self.query
        return RequestRow(
            id=self.id,
            at=to_text(self.started),
            mode="research",
            status=status,
            story_key=self.request.story_key,
            session_id=self.request.session_id,
            framework=self.request.research_query.framework,
            framework_version=query.framework_version,
            topic=query.topic,
            question=query.question,
            tags=json.dumps(query.tags, ensure_ascii=False),
            project=str(self.service.cwd),
            persona=self.persona,
            duration_ms=round((time.monotonic() - self._began) * 1000),
            **more,
        )

    def note_interrupt(self, error: BaseException) -> None:
        """Keep the row of a request that ends without an answer."""
        row = self.row("failure", error=f"interrupted: {type(error).__name__}")
        self.cache.write(
            lambda tx: None if lookup.has_ended(tx, row.id) else lookup.log_request(tx, row), None
        )

    def offer(self, found: Lookup) -> ResearchEnvelope:
        """Leave the choice to the caller: nothing is asked, nothing charged; the best candidate's report goes along."""
        self.notes.append(OFFERED)
        text, now = self.cache.report_of_best(found), self.clock()
        results = ResearchResults(related=[*found.related])
        if text is None:
            return self.answer("candidates", results, None)
        best = found.related[0].id
        return self.answer("candidates", results, text, lambda tx: lookup.touch(tx, best, now) is not None)

    def serve(self, found: Lookup) -> ResearchEnvelope:
        """Step 3: touch the entry, keep wording and row in the same write, and return it; no network, no budget."""
        if found.known is None:
            raise ValueError("a miss can't be served")
        entry, ratings = found.known.entry, found.known.ratings
        if entry.is_installed_excerpt and not ratings.worked:
            self.notes.append(INSTALLED_ALONE)
        if entry.status != "fresh":
            self.notes.append(
                f"{entry.id} is stale and was served because config_overrides.use names it; "
                "with config_overrides.refresh it is researched again"
            )
        if ratings.wrong:
            why = f": {ratings.note}" if ratings.note else ""
            self.notes.append(f"{entry.id} was rated wrong by {ratings.wrong}{why}")
        results = replace(results_of(found, entry), cache_hit=True)
        if entry.is_installed_excerpt:
            results = self.with_findings(results)
        is_chosen = found.match is not None and found.match.tier == "use"
        return self.answer(
            "cache-hit", results, found.report, lambda tx: self._touch(tx, entry, is_chosen=is_chosen)
        )

    def with_findings(self, results: ResearchResults) -> ResearchResults:
        """Name the framework's findings, where nothing better than documentation answers and none shares a word."""
        if results.related or not (others := self.cache.findings(self.query)):
            return results
        self.notes.append(OTHER_WORDS)
        return replace(results, related=others)

    def _touch(self, tx: Transaction, entry: Entry, *, is_chosen: bool) -> bool:
        """Note the access, and how a request worded it that chose the entry; False when the entry went meanwhile."""
        now = self.clock()
        if lookup.touch(tx, entry.id, now) is None:
            return False
        if is_chosen:
            query, at = self.query, to_text(now)
            usage.settle_alike(tx, query.framework, query.question, entry.id, at=at)
            from kr.guard import reasons_to_hold  # heavy: its patterns, for a wording that is kept

            if self.config.cache_fuzzy_match and not reasons_to_hold(f"{query.question}\n{query.topic}"):
                wording = Wording(
                    at=at,
                    topic=query.topic,
                    tags=query.tags,
                    question=query.question,
                    session_id=self.request.session_id,
                )
                usage.keep_wording(tx, entry, wording)
        return True

    def answer(
        self,
        status: ResearchStatus,
        results: ResearchResults,
        text: str | None,
        touch: Callable[[Transaction], bool] | None = None,
    ) -> ResearchEnvelope:
        """Make the envelope, and keep the request's row (step 9); ``touch`` is part of the same write, ``text`` the report's."""
        is_offer = status == "candidates"
        if status in {"degraded", "budget-exhausted"}:
            self.notes.append(SAVE_HINT)
        level = results.related[0].confidence if is_offer else results.confidence
        if text is not None:
            text = text if level is None else with_confidence(text, level)
            text = text if self._max_tokens is None else fit(text, self._max_tokens)[0]
        self.add_error(self.cache.problem)

        def write(tx: Transaction) -> ResearchResults:
            is_updated = results.index_updated if touch is None else touch(tx)
            counted = self._counted(tx, replace(results, index_updated=is_updated))
            lookup.log_request(tx, self._ended_row(status, counted, tokens_of(text) if text else 0))
            return counted

        left = self.calls_left(self.charged - self.unrecorded)
        is_updated = results.index_updated and touch is None
        unwritten = replace(results, budget_remaining=left, index_updated=is_updated)
        timeout = HIT_TIMEOUT if touch is not None or is_offer else None
        ended = self.cache.write(write, None, timeout=timeout) or self.cache.read(
            lambda tx: self._counted(tx, unwritten), unwritten
        )
        self.add_error(self.cache.problem)
        path, base = results.report_path, self.service.settings.knowledge_base
        best = {"id": results.related[0].id, "text": text} if is_offer and text is not None else None
        is_shown = not is_offer and (self._include_report or path is None)
        return ResearchEnvelope(
            status=status,
            story_key=self.request.story_key,
            mode="research",
            session_id=self.request.session_id,
            results=replace(
                ended,
                degradation_notes=[*self.notes],
                candidate_report=best,
                report=text if is_shown else None,
                report_file=f"{base}/{path}" if path is not None else None,
            ),
            errors=[*self.errors],
        )

    def _counted(self, tx: Transaction, results: ResearchResults) -> ResearchResults:
        """Add what every answer says of the knowledge base: live entries, calls left, lessons that fit."""
        live, spent = lookup.counts(tx, self.request.session_id, self.request.story_key)
        keys = lookup_keys(self.query.framework, self.config.aliases)
        words = search_words(self.query.topic, self.query.question, but=frozenset(keys))
        found = lookup.lessons(tx, words, most=_MOST_LESSONS, frameworks=keys)
        lessons = [{"summary": row["summary"], "ref": row["ref"]} for row in found]
        return replace(results, index_count=live, budget_remaining=self.calls_left(spent), lessons=lessons)

    def _ended_row(self, status: str, results: ResearchResults, tokens: int) -> RequestRow:
        match, related = results.match, results.related
        offered = [{"id": it.id, "score": it.score} for it in related if it.score]
        return self.row(
            status,
            error=in_one_line(self.errors),
            tier=match.tier if match else None,
            score=match.score if match else related[0].score if offered else None,
            entry_id=results.cache_entry_id,
            budget_remaining=results.budget_remaining,
            answer_tokens=tokens,
            candidates=json.dumps(offered) if offered and not results.cache_hit else None,
        )


def under_its_name(query: Query, aliases: Aliases) -> Query:
    """Ask about a framework under the name that the configuration gives it: sources know that one."""
    names = {framework_key(other): name for other, name in aliases.items()}
    return replace(query, framework=names.get(framework_key(query.framework), query.framework))


def _newest_change(folder: Path) -> float:
    """Return when something in a folder was changed last, in seconds since 1970."""
    newest = 0.0
    for path in (folder, *islice(folder.rglob("*"), _MOST_LOOKED_AT)):
        with suppress(OSError):  # gone meanwhile
            newest = max(newest, path.stat().st_mtime)
    return newest


def results_of(found: Lookup, entry: Entry) -> ResearchResults:
    """Return the results that are the entry which was found, as it is."""
    return ResearchResults(
        cache_entry_id=entry.id,
        report_path=entry.path,
        confidence=entry.confidence,
        match=found.match,
        related=[*found.related],
    )
