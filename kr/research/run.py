"""One research request under way: what it may spend, what it has to say on its way, and its answer (F1, steps 3 and 9)."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kr.errors import KrError
from kr.frameworks import framework_key, lookup_keys
from kr.models import (
    Match,
    Problem,
    Query,
    ResearchEnvelope,
    ResearchResults,
    in_one_line,
)
from kr.requests import ResearchOverrides, ResearchRequest
from kr.research.cache import HIT_TIMEOUT, Aliases, Cache, Lookup
from kr.research.decide import Outcome, research_status, with_confidence
from kr.store import entries, lookup, new_id, requests, search, wordings
from kr.store.engine import Transaction
from kr.store.requests import Need, RequestRow
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
        self.query = under_its_name(request.research_query, service.rules.aliases)
        self.cache = Cache(service.store, service.rules, service.clock)
        self.notes: list[str] = []
        self.errors: list[Problem] = []
        self.persona: str | None = None
        self.charged = self.unrecorded = 0
        """Calls that it was charged, and how many of them could not be written into the ledger."""
        self._include_report = include_report
        self._max_tokens = max_tokens

    @property
    def overrides(self) -> ResearchOverrides:
        return self.request.config_overrides

    @property
    def call_limit(self) -> int:
        """How many calls the request, or its story, may cost."""
        most = self.overrides.max_calls
        return self.service.settings.knowledge_research.max_calls_per_story if most is None else most

    @property
    def timeout(self) -> int:
        """Seconds that one source may take."""
        return self.overrides.timeout_seconds or self.service.settings.knowledge_research.timeout_seconds

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
            if found.match is not None:
                return found
            self.notes.append(
                f"{self.overrides.use} has no report that could be served: the question was answered without it"
            )
        return self.cache.look_up(self.query)

    def may_serve(self, found: Lookup) -> bool:
        """Whether the cache answers; what is to be refreshed, only with what was researched since it was asked."""
        if not found.is_hit or found.match is None or self.overrides.use is not None:
            return found.is_hit
        researched = parse_time(found.match.entry.researched_at or "")
        if self.overrides.refresh:
            return researched is not None and researched >= self.started
        return researched is None or not self._has_changed_since(found, researched)

    def _has_changed_since(self, found: Lookup, moment: datetime) -> bool:
        """Whether a folder of one's own was changed after an excerpt of it was made; to read it again costs nothing."""
        if found.match is None or found.match.entry.origin != "excerpt":
            return False
        settings, text = self.service.settings, found.report or ""
        own = (it for it in settings.knowledge_research.sources if not isinstance(it, str))
        folders = [
            settings.project_root / it.folder for it in own if it.folder and f"(via {it.name})" in text
        ]
        return any(_newest_change(folder) > moment.timestamp() for folder in folders)

    def may_offer(self, found: Lookup) -> bool:
        """Whether the caller chooses among the candidates."""
        return self.overrides.if_unsure == "candidates" and not self.overrides.refresh and found.is_offer

    def add_error(self, error: KrError) -> None:
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
            lambda tx: None if requests.has_ended(tx, row.id) else requests.record(tx, row), None
        )

    def offer(self, found: Lookup) -> ResearchEnvelope:
        """Leave the choice to the caller: nothing is asked, nothing charged; the best candidate's report goes along."""
        self.notes.append(OFFERED)
        text, now = self.cache.report_of_best(found), self.clock()
        outcome = Outcome(is_offer=True, related=found.related, text=text)
        if text is None:
            return self.answer(outcome)
        return self.answer(outcome, lambda tx: entries.touch(tx, found.related[0].id, now) is not None)

    def serve(self, found: Lookup) -> ResearchEnvelope:
        """Step 3: touch the entry, keep wording and row in the same write, and return it; no network, no budget."""
        match = found.match
        if match is None:
            raise ValueError("a miss can't be served")
        if match.entry.is_installed_excerpt and not found.ratings.worked:
            self.notes.append(INSTALLED_ALONE)
        if match.entry.status != "fresh":
            self.notes.append(
                f"{match.entry.id} is stale and was served because config_overrides.use names it; "
                "with config_overrides.refresh it is researched again"
            )
        if found.ratings.wrong:
            why = f": {found.ratings.note}" if found.ratings.note else ""
            self.notes.append(f"{match.entry.id} was rated wrong by {found.ratings.wrong}{why}")
        return self.answer(replace(outcome_of(found), is_fresh_hit=True), lambda tx: self._touch(tx, match))

    def _touch(self, tx: Transaction, match: Match) -> bool:
        """Note the access, and how a request worded it that chose the entry; False when the entry went meanwhile."""
        now = self.clock()
        if entries.touch(tx, match.entry.id, now) is None:
            return False
        if match.tier == "use":
            query, at = self.query, to_text(now)
            requests.settle_alike(tx, query.framework, query.question, match.entry.id, at=at)
            from kr.guard import reasons_to_hold  # heavy: its patterns, for a wording that is kept

            if self.service.rules.match.fuzzy and not reasons_to_hold(f"{query.question}\n{query.topic}"):
                need = Need(query.topic, query.tags, query.question)
                wordings.keep(tx, match.entry, need, at=at, session_id=self.request.session_id)
        return True

    def answer(
        self, outcome: Outcome, touch: Callable[[Transaction], bool] | None = None
    ) -> ResearchEnvelope:
        """Make the envelope, and keep the request's row (step 9); ``touch`` is part of the same write."""
        status = research_status(outcome)
        if status in {"degraded", "budget-exhausted"}:
            self.notes.append(SAVE_HINT)
        level = outcome.related[0].confidence if outcome.is_offer else outcome.confidence
        shown = outcome.text
        if shown is not None:
            shown = shown if level is None else with_confidence(shown, level)
            shown = shown if self._max_tokens is None else fit(shown, self._max_tokens)[0]
        self._add_problem()

        def write(tx: Transaction) -> _Counted:
            is_updated = outcome.index_updated if touch is None else touch(tx)
            counted = self._count(tx, is_updated=is_updated)
            tokens = tokens_of(shown) if shown else 0
            requests.record(tx, self._ended_row(status, outcome, tokens, counted))
            return counted

        is_updated = outcome.index_updated and touch is None
        timeout = HIT_TIMEOUT if touch is not None or outcome.is_offer else None
        left = self.calls_left(self.charged - self.unrecorded)
        counted = self.cache.write(write, None, timeout=timeout) or self.cache.read(
            lambda tx: self._count(tx, is_updated=is_updated), _Counted(0, left, is_updated)
        )
        self._add_problem()
        return ResearchEnvelope(
            status=status,
            story_key=self.request.story_key,
            mode="research",
            session_id=self.request.session_id,
            results=self._results(outcome, shown, counted),
            errors=[*self.errors],
        )

    def _add_problem(self) -> None:
        if self.cache.problem is not None:
            self.add_error(self.cache.problem)

    def _count(self, tx: Transaction, *, is_updated: bool) -> "_Counted":
        live, spent = lookup.counts(tx, self.request.session_id, self.request.story_key)
        keys = lookup_keys(self.query.framework, self.service.rules.aliases)
        words = search_words(self.query.topic, self.query.question, but=frozenset(keys))
        found = search.lessons(tx, words, most=_MOST_LESSONS, frameworks=keys)
        lessons = [{"summary": row["summary"], "ref": row["ref"]} for row in found]
        return _Counted(live, self.calls_left(spent), is_updated, lessons)

    def _ended_row(self, status: str, outcome: Outcome, tokens: int, counted: "_Counted") -> RequestRow:
        match, related = outcome.match, outcome.related
        offered = [{"id": it.id, "score": it.score} for it in related if it.score]
        return self.row(
            status,
            error=in_one_line(self.errors),
            tier=match.tier if match else None,
            score=match.score if match else related[0].score if offered else None,
            entry_id=outcome.entry_id,
            budget_remaining=counted.calls_left,
            answer_tokens=tokens,
            candidates=json.dumps(offered) if offered and not outcome.is_fresh_hit else None,
        )

    def _results(self, outcome: Outcome, shown: str | None, counted: "_Counted") -> ResearchResults:
        is_whole = self._include_report or outcome.path is None
        candidate = None
        if outcome.is_offer and shown is not None:
            candidate = {"id": outcome.related[0].id, "text": shown}
        base = self.service.settings.knowledge_base
        return ResearchResults(
            cache_hit=outcome.is_fresh_hit,
            cache_entry_id=outcome.entry_id,
            report_path=outcome.path,
            confidence=outcome.confidence,
            sources_consulted=[*outcome.attempts],
            budget_remaining=counted.calls_left,
            degradation_notes=[*self.notes],
            index_updated=counted.is_updated,
            index_count=counted.entries if outcome.index_count is None else outcome.index_count,
            lru_evicted=outcome.lru_evicted,
            match=_match_view(outcome),
            related=[*outcome.related],
            candidate_report=candidate,
            lessons=counted.lessons,
            auto_archived=outcome.auto_archived,
            report=shown if is_whole and not outcome.is_offer else None,
            report_file=f"{base}/{outcome.path}" if outcome.path is not None else None,
        )


@dataclass(frozen=True, slots=True)
class _Counted:
    """What every answer says of the knowledge base: live entries, calls left, lessons that fit."""

    entries: int
    calls_left: int
    is_updated: bool
    lessons: list[dict[str, str | None]] = field(default_factory=list)


def under_its_name(query: Query, aliases: Aliases) -> Query:
    """Ask about a framework under the name that the configuration gives it: sources know that one."""
    names = {framework_key(other): name for other, name in aliases.items()}
    name, seen = query.framework, set[str]()
    while (key := framework_key(name)) in names and key not in seen:
        seen.add(key)
        name = names[key]
    return query if name == query.framework else replace(query, framework=name)


def _newest_change(folder: Path) -> float:
    """Return when something in a folder was changed last, in seconds since 1970."""
    newest = 0.0
    for path in (folder, *islice(folder.rglob("*"), _MOST_LOOKED_AT)):
        with suppress(OSError):  # gone meanwhile
            newest = max(newest, path.stat().st_mtime)
    return newest


def outcome_of(found: Lookup) -> Outcome:
    """Return the outcome that is the entry which was found, as it is."""
    if found.match is None:
        raise ValueError("a miss has no entry")
    entry = found.match.entry
    return Outcome(
        entry_id=entry.id,
        path=entry.path,
        confidence=entry.confidence,
        match=found.match,
        ratings=found.ratings,
        related=found.related,
        text=found.report,
    )


def _match_view(outcome: Outcome) -> dict[str, Any] | None:
    match = outcome.match
    if match is None:
        return None
    return {
        "tier": match.tier,
        "topic_overlap": round(match.topic_overlap, 4),
        "shared_tags": list(match.shared_tags),
        "entry_status": match.entry.status,
        "origin": match.entry.origin,
        "worked": outcome.ratings.worked,
        "wrong": outcome.ratings.wrong,
        "score": match.score,
    }
