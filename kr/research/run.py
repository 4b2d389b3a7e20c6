"""One research request under way: what the cache holds for it, what it may spend, and its answer (F1, steps 2, 3 and 9)."""

import json
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from kr.errors import (
    FieldError,
    InvalidRequest,
    KrError,
    StoreBusy,
    StoreCorrupt,
    StoreError,
    StoreTooNew,
    StoreUnwritable,
)
from kr.frameworks import framework_key, lookup_keys, same_framework
from kr.models import (
    Entry,
    Envelope,
    Problem,
    Query,
    Related,
    ResearchResults,
    ResearchStatus,
    Tier,
    in_one_line,
)
from kr.requests import ResearchRequest
from kr.research import decide
from kr.research.decide import Candidate, Lookup
from kr.settings.model import KnowledgeResearch
from kr.store import lookup
from kr.store.engine import Row, Transaction
from kr.store.files import new_id
from kr.store.lookup import EntryRow, keywords_key, question_key, topic_key
from kr.text import fit, search_words, tokens, tokens_of
from kr.times import parse_time, to_text

if TYPE_CHECKING:
    from kr.research.service import ResearchService

logger = logging.getLogger(__name__)

LEAVE_SECONDS = 0.5
"""How long an interrupted run waits for a writer: what it held and can't give back expires by itself."""

T = TypeVar("T")
SAVE_HINT = (
    "found the answer elsewhere, and it worked? Save it for the next agent with `kr save` (MCP: save_finding)"
)
"""What an answer says that holds no report."""
OFFERED = "candidates: use: ID takes one of results.related, if_unsure: research has it researched; rate what worked"
"""What an answer says that offers candidates."""
HIT_TIMEOUT = 0.2
"""Seconds that a hit waits for a writer at most."""

_LASTING = (StoreBusy, StoreCorrupt, StoreTooNew)
"""Problems that the next transaction would meet again, perhaps after another long wait."""
_KEPT_BACK = (0.05, 5.0)
"""The share of the overall time, and the seconds at most, that are kept so that the answer is out before the caller gives up."""
_MOST_LESSONS = 3
_FEW = 10
"""Findings of a framework up to which the latest are named where no word is shared: of many the words have to choose."""


def find_served(
    tx: Transaction, query: Query, config: KnowledgeResearch, now: datetime
) -> tuple[Candidate, Tier] | None:
    """Return the entry that is served, or that a new research stands on, and by what it matches."""
    keys, asked = lookup_keys(query.framework, config.aliases), question_key(query.question)
    if config.cache_match == "seed":
        rows = lookup.framework(tx, keys, question=asked)
    else:
        topic, keywords = topic_key(query.topic), keywords_key(query.topic)
        rows = lookup.served(tx, keys, topic=topic, question=asked, keywords=keywords)
    return decide.choose(query, _judged(rows, query, config, now), config)


def find_candidates(
    tx: Transaction, query: Query, config: KnowledgeResearch, now: datetime
) -> list[Candidate]:
    """Return the entries that may answer, best first."""
    if not config.cache_fuzzy_match:
        return []
    keys, name = lookup_keys(query.framework, config.aliases), frozenset(tokens(query.framework))
    words = search_words(query.topic, " ".join(query.tags), query.question, without=name)
    found = lookup.candidates(tx, keys, words)
    scores = {row[0].id: bm25 for row, bm25 in found}
    known = _judged([row for row, _ in found], query, config, now)
    ranked = decide.rank(query, [(it, scores[it.entry.id]) for it in known])
    is_large = bool(ranked) and lookup.count(tx, keys) > decide.MANY
    return decide.offered(ranked, most=decide.MORE if is_large else decide.FEW)


def few_findings(tx: Transaction, query: Query, config: KnowledgeResearch, now: datetime) -> list[Related]:
    """Return a framework's findings as they are offered, where they are few: whoever asks knows what other words mean."""
    rows = lookup.framework(tx, lookup_keys(query.framework, config.aliases), question="")
    # Findings alone are judged: a placeholder of this major must not hide what is known of another.
    judged = _judged([row for row in rows if row[0].is_written], query, config, now)
    found = [it for it in judged if it.refusal is None]
    latest = sorted(found, key=lambda it: it.entry.last_accessed, reverse=True)[: decide.MORE]
    return [it for it, _ in offers_of(tx, latest)] if len(found) <= _FEW else []


def offers_of(tx: Transaction, ranked: Sequence[Candidate]) -> list[tuple[Related, str]]:
    """Return candidates as they are offered, each with its text; those whose texts are nowhere are left out."""
    kept = lookup.texts(tx, [it.entry.sha256 for it in ranked]) if ranked else {}
    texts = [kept.get(it.entry.sha256) or tx.files.read_text(it.entry.path) for it in ranked]
    return [(decide.related_of(it, text), text) for it, text in zip(ranked, texts, strict=True) if text]


def _judged(
    rows: Sequence[EntryRow], query: Query, config: KnowledgeResearch, now: datetime
) -> list[Candidate]:
    # Aliases may part what the shipped table joins.
    own = [row for row in rows if same_framework(row[0].framework, query.framework, config.aliases)]
    return decide.judge_all(own, query.framework_version, config, now)


class ResearchRun:
    """One research request under way: what the cache holds for it, what it may spend, and its answer (F1, steps 2, 3 and 9).

    The database is never in the way (error rows 3, 4 and 14): a request goes on without what could not be had, and names it.
    """

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
        self.store = service.store
        self.clock = service.clock
        self.started = service.clock()
        self.id = new_id()
        self.config = service.settings.knowledge_research
        # A framework is asked about under the name that the configuration gives it: sources know that one.
        query = request.research_query
        names = {framework_key(other): name for other, name in self.config.aliases.items()}
        self.query = replace(query, framework=names.get(framework_key(query.framework), query.framework))
        self.errors: list[Problem] = []
        self.persona: str | None = None
        self.charged = self.unrecorded = 0
        """Calls that it was charged, and how many of them could not be written into the ledger."""
        self.overrides = request.config_overrides
        self.notes = [*self.overrides.notes]
        most = self.overrides.max_calls
        self.call_limit = self.config.max_calls_per_story if most is None else most
        """How many calls the request, or its story, may cost."""
        self.timeout = self.overrides.timeout_seconds or self.config.timeout_seconds
        """Seconds that one source may take."""
        self.can_write = True
        self._is_closed = False
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

    # --- the database

    def attempt(self, action: Callable[[], T], otherwise: T) -> T:
        """Run ``action``, or give ``otherwise`` where the database can't serve, now or since earlier in the request."""
        if self._is_closed:
            return otherwise
        try:
            return action()
        except StoreError as error:
            self.add_error(error)
            return otherwise

    def read(self, action: Callable[[Transaction], T], otherwise: T) -> T:
        def run() -> T:
            with self.store.read() as tx:
                return action(tx)

        return self.attempt(run, otherwise)

    def write(self, action: Callable[[Transaction], T], otherwise: T, *, timeout: float | None = None) -> T:
        """Write in one transaction. After a ``timeout`` in seconds the request goes on without writing."""
        if not self.can_write:
            return otherwise
        try:
            return self.store.change(action, timeout=timeout, scope=None)
        except StoreError as error:
            if timeout is None or not isinstance(error, StoreBusy):
                self.add_error(error)
            else:
                logger.warning("%s", error)
                self.can_write = False
        return otherwise

    def add_error(self, error: KrError) -> None:
        """Name a problem in the answer; what the database can't do any more is not tried again."""
        logger.warning("%s", error)
        self._is_closed = self._is_closed or isinstance(error, _LASTING)
        self.can_write = self.can_write and not isinstance(error, (*_LASTING, StoreUnwritable))
        problem = Problem(type=error.code, message=str(error))
        if problem not in self.errors:
            self.errors.append(problem)

    # --- step 2

    def look_up(self) -> Lookup:
        """Find the entry that is served, and the candidates where none is. One whose report is nowhere is removed."""
        return self.attempt(self._look_up, Lookup())

    def _look_up(self) -> Lookup:
        now = self.clock()
        with self.store.read() as tx:
            chosen = find_served(tx, self.query, self.config, now)
            served = chosen[0] if chosen and chosen[0].is_servable else None
            ranked = list[Candidate]()
            if served is None or served.entry.is_installed_excerpt:
                ranked = find_candidates(tx, self.query, self.config, now)
            # Beside an excerpt of installed documentation stand the findings.
            offers = offers_of(tx, [it for it in ranked if served is None or it.entry.is_written])
        if chosen is not None:
            logger.info("%s matches by %s and is %s", chosen[0].entry.id, chosen[1], chosen[0].entry.status)
        else:
            logger.info("nothing is served of %s; %d may answer", self.query.framework, len(offers))
        near = {it.entry.id for it in ranked if it.is_near}
        offer = next((text for it, text in offers[:1] if it.id in near), None)
        found = self._with_report(*chosen, is_hit=served is not None) if chosen else Lookup()
        return replace(found, related=tuple(it for it, _ in offers), offer=offer)

    def use(self, entry_id: str, tier: Tier = "use", score: float | None = None) -> Lookup:
        """Find the entry of an id, whatever its age and ratings. Raises ``InvalidRequest`` for one that can't be served."""
        return self.attempt(lambda: self._use(entry_id, tier, score), Lookup())

    def _use(self, entry_id: str, tier: Tier, score: float | None) -> Lookup:
        with self.store.read() as tx:
            found = lookup.one(tx, entry_id)
            if found is None:
                from kr.store import entries  # heavy

                why = str(entries.unknown_entry(tx, entry_id))
                if entries.quarantined(tx, entry_id):
                    why = f"{entry_id} waits for a person; `kr review` shows it"
                raise InvalidRequest(FieldError("config_overrides.use", f"Validation failed: {why}"))
        if found[0].origin == "placeholder":
            return Lookup()
        known = decide.judge_row(found, self.query.framework_version, self.config, self.clock())
        return self._with_report(known, tier, score, is_hit=True)

    def _with_report(
        self, known: Candidate, tier: Tier, score: float | None = None, *, is_hit: bool
    ) -> Lookup:
        """Return an entry with its report, marked where it is stale; nothing where that is nowhere, and the entry was removed."""
        entry, verdict = known.entry, known.verdict
        if verdict.needs_marking:
            from kr.store import entries  # heavy

            reasons = ", ".join(verdict.reasons)
            self.write(
                lambda tx: entries.mark_stale(tx, entry.id, reasons, major=verdict.for_major),
                otherwise=False,
                timeout=HIT_TIMEOUT,
            )
        report = self.read(lambda tx: lookup.text_in_file(tx, entry), None)
        if report is None:  # its file is gone, or somebody wrote into it
            from kr.store import entries, saving  # heavy

            report = saving.read_report(self.store, entry)
            if report is None:
                saving.drop_lost(self.store, entry)
                return Lookup()
            known = replace(known, entry=self.read(lambda tx: entries.get(tx, entry.id), None) or entry)
        match = decide.match_of(self.query, known, tier, score)
        return Lookup(known=known, match=match, report=report, is_hit=is_hit)

    # --- steps 3 and 9

    def answered(self, found: Lookup) -> Envelope | None:
        """Answer from the cache, or leave the choice to the caller; None where it has to be researched."""
        researched = parse_time(found.entry.researched_at or "") if found.entry else None
        # What is to be refreshed is answered only with what was researched since it was asked.
        is_due = self.overrides.refresh and (researched is None or researched < self.started)
        if self.overrides.use is None and researched is not None:
            is_due = is_due or self.service.has_changed_folder(found, researched)
        if found.is_hit and not is_due:
            return self.serve(found)
        if self.overrides.if_unsure != "candidates" or self.overrides.refresh or not found.is_offer:
            return None
        # Nothing is asked, nothing charged; the best candidate's report goes along, which is an access.
        self.notes.append(OFFERED)
        best, now = found.related[0].id, self.clock()
        touch = None if found.offer is None else lambda tx: lookup.touch(tx, best, now) is not None
        return self.answer("candidates", ResearchResults(related=[*found.related]), found.offer, touch)

    def serve(self, found: Lookup) -> Envelope:
        """Step 3: touch the entry, keep wording and row in the same write, and return it; no network, no budget."""
        if found.known is None:
            raise ValueError("a miss can't be served")
        entry, ratings = found.known.entry, found.known.ratings
        if entry.status != "fresh":
            why = f": {', '.join(found.known.verdict.reasons)}" if found.known.verdict.reasons else ""
            self.notes.append(f"{entry.id} is stale, and served because config_overrides.use names it{why}")
        if ratings.wrong:
            why = f": {ratings.note}" if ratings.note else ""
            self.notes.append(f"{entry.id} was rated wrong by {ratings.wrong}{why}")
        is_chosen = found.match is not None and found.match.tier == "use"
        results = replace(found.results, cache_hit=True)
        return self.answer(
            "cache-hit", results, found.report, lambda tx: self._touch(tx, entry, is_chosen=is_chosen)
        )

    def _touch(self, tx: Transaction, entry: Entry, *, is_chosen: bool) -> bool:
        """Note the access, and how a request worded it that chose the entry; False when the entry went meanwhile."""
        now = self.clock()
        if lookup.touch(tx, entry.id, now) is None:
            return False
        if is_chosen:
            from kr.guard import reasons_to_hold  # heavy: its patterns, for a wording that is kept
            from kr.store import entries, ledger  # heavy

            query, at = self.query, to_text(now)
            ledger.close_offers(tx, query.framework, query.question, entry.id, at=at)
            if self.config.cache_fuzzy_match and not reasons_to_hold(f"{query.question}\n{query.topic}"):
                wording = {
                    "at": at,
                    "topic": query.topic,
                    "tags": query.tags,
                    "question": query.question,
                    "session_id": self.request.session_id,
                }
                entries.keep_wording(tx, entry, wording)
        return True

    def answer(
        self,
        status: ResearchStatus,
        results: ResearchResults,
        text: str | None,
        touch: Callable[[Transaction], bool] | None = None,
    ) -> Envelope:
        """Make the envelope, and keep the request's row (step 9); ``touch`` is part of the same write, ``text`` the report's."""
        is_offer = status == "candidates"
        if status in {"degraded", "budget-exhausted"}:
            self.notes.append(SAVE_HINT)
        level = results.related[0].confidence if is_offer else results.confidence
        if text is not None:
            text = text if level is None else decide.with_confidence(text, level)
            text = text if self._max_tokens is None else fit(text, self._max_tokens)[0]

        def write(tx: Transaction) -> ResearchResults:
            is_updated = results.index_updated if touch is None else touch(tx)
            counted = self._counted(tx, replace(results, index_updated=is_updated))
            lookup.log_request(tx, self.row(status, counted, text))
            return counted

        timeout = HIT_TIMEOUT if touch is not None or is_offer else None
        ended = self.write(write, None, timeout=timeout)
        if ended is None:
            left = self.calls_left(self.charged - self.unrecorded)
            is_updated = results.index_updated and touch is None
            unwritten = replace(results, budget_remaining=left, index_updated=is_updated)
            ended = self.read(lambda tx: self._counted(tx, unwritten), unwritten)
        path, base = results.report_path, self.service.settings.knowledge_base
        is_shown = not is_offer and (self._include_report or path is None)
        return Envelope(
            status=status,
            story_key=self.request.story_key,
            mode="research",
            session_id=self.request.session_id,
            results=replace(
                ended,
                degradation_notes=[*self.notes],
                candidate_report={"id": results.related[0].id, "text": text} if is_offer and text else None,
                report=text if is_shown else None,
                report_file=f"{base}/{path}" if path is not None else None,
            ),
            errors=[*self.errors],
        )

    def _counted(self, tx: Transaction, results: ResearchResults) -> ResearchResults:
        """Add what every answer says of the knowledge base: live entries, calls left, lessons that fit."""
        live, spent = lookup.counts(tx, self.request.session_id, self.request.story_key)
        keys = lookup_keys(self.query.framework, self.config.aliases)
        words = search_words(self.query.topic, self.query.question, without=frozenset(keys))
        found = lookup.lessons(tx, words, most=_MOST_LESSONS, frameworks=keys)
        lessons = [{"summary": row["summary"], "ref": row["ref"]} for row in found]
        return replace(results, index_count=live, budget_remaining=self.calls_left(spent), lessons=lessons)

    def row(
        self,
        status: str,
        results: ResearchResults | None = None,
        text: str | None = None,
        error: str | None = None,
    ) -> Row:
        """Make the row of ``requests``; ``results`` and the report's ``text`` are those of its answer."""
        ended, query = results or ResearchResults(), self.query
        match, offered = ended.match, [{"id": it.id, "score": it.score} for it in ended.related if it.score]
        return {
            "id": self.id,
            "at": to_text(self.started),
            "mode": "research",
            "status": status,
            "story_key": self.request.story_key,
            "session_id": self.request.session_id,
            "framework": self.request.research_query.framework,
            "framework_version": query.framework_version,
            "topic": query.topic,
            "question": query.question,
            "tags": json.dumps(query.tags, ensure_ascii=False),
            "tier": match.tier if match else None,
            "entry_id": ended.cache_entry_id,
            "persona": self.persona,
            "project": str(self.service.cwd),
            "duration_ms": round((time.monotonic() - self._began) * 1000),
            "budget_remaining": results.budget_remaining if results else None,
            "answer_tokens": tokens_of(text or "") if results else None,
            "score": match.score if match else ended.related[0].score if offered else None,
            "candidates": json.dumps(offered) if offered and not ended.cache_hit else None,
            "error": error or in_one_line(self.errors),
        }

    def note_interrupt(self, error: BaseException) -> None:
        """Keep the row of a request that ends without an answer."""
        row = self.row("failure", error=f"interrupted: {type(error).__name__}")
        self.write(
            lambda tx: None if lookup.has_ended(tx, row["id"]) else lookup.log_request(tx, row),
            None,
            timeout=LEAVE_SECONDS,
        )
