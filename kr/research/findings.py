"""Findings and ratings: what an agent or a person found out and proved goes back in, and what waits for a person.

A finding becomes a report whose header and sections are kr's; the texts stand as they were written.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kr import report
from kr.errors import FieldError, InvalidRequest, UnknownEntry
from kr.frameworks import framework_key
from kr.guard import SECRET, clean, mask_secrets, reasons_to_hold
from kr.models import (
    NO_RATINGS,
    Confidence,
    Entry,
    Query,
    Ratings,
    Writer,
    agent,
    to_plain,
    validation_problems,
)
from kr.requests import parse, read_document
from kr.research.finding_text import (
    MOST_TOKENS,
    Finding,
    Rate,
    RateResults,
    SaveEnvelope,
    SaveResults,
    cleaned,
    render_finding,
)
from kr.research.run import find_candidates, offers_of
from kr.store import entries, ledger, lookup, saving
from kr.store.engine import Row, Transaction
from kr.store.files import new_id
from kr.text import (
    derive_tags,
    derive_topic,
    digest,
    has_invisible,
    keywords,
    section,
    tokens_of,
)
from kr.times import UNKNOWN_VERSION, same_major, to_text

if TYPE_CHECKING:
    from kr.research.service import ResearchService

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_HELD = ("id", "at", "framework", "question", "reasons", "written_by")
HELD = "held-"
"""How the ids of findings that wait begin, where somebody saved them; lessons have others, and so has what stood in an edited file (``HELD_FILE``)."""

OWN_WORD = "the word of who saved it confirms nothing; another session's does"


class Findings:
    """Saves findings, takes ratings, keeps what waits for a person.

    ``export`` writes the YAML files and returns what went wrong; ``serves_one``: all that is handed over comes from one client.
    """

    def __init__(
        self, service: "ResearchService", *, export: Callable[[], list[str]], serves_one: bool = False
    ) -> None:
        self._service = service
        self._store = service.store
        self._clock = service.clock
        self._export = export
        self._serves_one = serves_one
        self._saved_here: dict[tuple[str, int], Writer] = {}

    def save(self, data: bytes | Mapping[str, Any], writer: Writer | None = None) -> SaveEnvelope:
        """Keep a finding as its entry's new text; what is wrong with it stands in the envelope. Raises a ``StoreError``.

        ``writer`` is a person; None: the agent of the session that ``data`` names.
        """
        try:
            given, notes = parse(Finding, read_document(data)), list[str]()
            _check_length(given)
            finding = cleaned(given)
            by, texts = writer or agent(finding.session_id), _all_texts(finding)
            if has_invisible(_all_texts(given)) or SECRET in texts:
                notes.append("what may be a secret, or what nobody sees, was taken out")
            # Whoever puts comments into an order's words hides it from the rules.
            if reasons := reasons_to_hold(texts) or reasons_to_hold(_COMMENT.sub("", texts)):
                return self._hold(finding, by, reasons)
            return self._save(finding, by, notes)
        except InvalidRequest as error:
            problems = error.fields
        except UnknownEntry as error:
            problems = (FieldError("entry", str(error)),)
        return SaveEnvelope(status="failure", results=None, errors=validation_problems(problems))

    def _save(self, finding: Finding, by: Writer, notes: list[str]) -> SaveEnvelope:
        now = self._clock()
        query, known = self._about(finding)
        confidence: Confidence = "medium" if finding.sources or finding.verified_by else "low"
        is_same = known is not None and same_major(known.framework_version, query.framework_version)
        draft = Entry(
            framework=query.framework,
            framework_version=query.framework_version,
            topic=query.topic,
            tags=query.tags,
            confidence=confidence,
            origin="finding",
            question=finding.question,
            written_by=by.name,
            id=known.id if known and is_same else "",
        )
        saved = saving.save(self._store, draft, render_finding(finding, query, by, confidence, now), now)
        entry, notes = saved.entry, [*notes, *saved.warnings]
        self._saved_here[entry.id, saved.revision] = by
        if saved.is_beside:
            stays = f"{entry.id} was written by {entry.written_by}, and stays; this text is its revision {saved.revision}"
            is_confirmed = entry.confidence == "high"
            notes.append(f"{stays}{'. Others confirmed it: say what verified yours' if is_confirmed else ''}")
        config = self._service.settings.knowledge_research
        with self._store.read() as tx:
            ranked = find_candidates(tx, query, config, now)
            alike = [it for it in ranked if it.may_say_the_same and it.entry.id != entry.id]
            related = [it for it, _ in offers_of(tx, alike)]
        self._log(finding, by, now, status="saved", entry_id=entry.id, topic=query.topic)
        notes += self._export()
        results = SaveResults(
            id=entry.id,
            path=entry.path,
            revision=saved.revision,
            replaced=saved.replaced,
            confidence=confidence,
            index_count=saved.index_count,
            related=related,
            notes=notes,
        )
        return SaveEnvelope(status="saved", results=results, errors=[])

    def _about(self, finding: Finding) -> tuple[Query, Entry | None]:
        """Say what the text is about, and the entry that it names. One that improves an entry has its topic, also for another major."""
        known, framework, version = None, finding.framework, finding.framework_version
        if finding.entry is not None:
            with self._store.read() as tx:
                known = entries.get(tx, finding.entry)
                if known is None:
                    raise entries.unknown_entry(tx, finding.entry)
            if framework_key(known.framework) != framework_key(framework):
                raise UnknownEntry(f"{known.id} is about {known.framework}, not about {framework}")
        if version is None:
            version = known.framework_version if known else self._service.version_of(framework)
        topic = known.topic if known else finding.topic or derive_topic(framework, finding.question)
        query = Query(
            framework=framework,
            framework_version=version or UNKNOWN_VERSION,
            topic=topic,
            tags=finding.tags or derive_tags(framework, topic),
            question=finding.question,
        )
        return query, known

    def _hold(self, finding: Finding, by: Writer, reasons: tuple[str, ...]) -> SaveEnvelope:
        """Keep a finding for a person to look at; the entry that it is about stays as it is."""
        now = self._clock()
        request = {name: value for name, value in to_plain(finding).items() if value not in (None, [])}
        held_id = f"{HELD}{digest(repr(sorted(request.items())) + by.name)[:12]}"
        held = {
            "id": held_id,
            "at": to_text(now),
            "framework": finding.framework,
            "question": finding.question,
            "reasons": reasons,
            "request": request,
            "written_by": by.name,
        }
        self._store.change(lambda tx: entries.quarantine(tx, held))
        self._log(finding, by, now, status="quarantined")
        results = SaveResults(id=held_id, notes=[f"it waits for a person (kr review): {'; '.join(reasons)}"])
        return SaveEnvelope(status="quarantined", results=results, errors=[])

    def _log(self, finding: Finding, by: Writer, now: datetime, **more: Any) -> None:
        """Keep the request's row; ``answer_tokens`` is what the session was given for this before (tokens spared)."""

        def write(tx: Transaction) -> None:
            tokens, milliseconds = ledger.given_before(tx, by.session, finding.framework)
            row = {
                "id": new_id(),
                "at": to_text(now),
                "mode": "save",
                "story_key": finding.story_key,
                "session_id": by.session,
                "framework": finding.framework,
                "framework_version": finding.framework_version,
                "question": finding.question,
                "project": str(self._service.cwd),
                "duration_ms": milliseconds,
                "answer_tokens": tokens,
            }
            lookup.log_request(tx, row | more)

        self._store.change(write)

    def rate(self, entry_id: str, data: Mapping[str, Any], writer: Writer | None = None) -> RateResults:
        """Note whether an entry's current text worked. A session counts once for it, by its last word.

        Raises ``InvalidRequest``, ``UnknownEntry``, or a ``StoreError``.
        """
        given = parse(Rate, data)
        note = None if given.note is None else mask_secrets(clean(given.note))
        if note is not None and (reasons := reasons_to_hold(note)):
            raise InvalidRequest(FieldError("note", f"is not taken: {'; '.join(reasons)}"))
        by, now = writer or agent(given.session_id), self._clock()

        def write(tx: Transaction) -> tuple[RateResults, bool]:
            entry = entries.get(tx, entry_id)
            if entry is None:
                raise entries.unknown_entry(tx, entry_id)
            if entry.origin == "placeholder":
                why = f"{entry.id} is a placeholder: it says nothing that could work; `kr save` what you find out"
                raise InvalidRequest(FieldError("id", why))
            # Whatever session it names, who saved a text through this process can't confirm it: the word is its writer's.
            saved = self._saved_here.get((entry.id, entry.revision)) if self._serves_one else None
            results = _rate(tx, entry, replace(given, note=note), saved or by, now, session=by.session)
            return results, entry.status == "stale"

        results, was_stale = self._store.change(write)
        if was_stale:  # nothing else of it is exported
            self._export()
        return results

    def review(self) -> dict[str, Any]:
        """Return what waits for a person: ``{quarantined, wrong}``, findings that were held back and entries that were rated wrong."""
        with self._store.read() as tx:
            held = [_held_item(it) for it in entries.quarantined(tx)]
            rated = [lookup.one(tx, entry_id) for entry_id in entries.rated_wrong(tx)]
            wrong = [_wrong_item(tx, found[0], found[1]) for found in rated if found]
        return {"quarantined": held, "wrong": wrong}

    def decide(self, finding_id: str, *, is_approved: bool) -> dict[str, Any]:
        """Save a finding that waited, as its writer's, or drop it. Raises ``UnknownEntry``."""
        with self._store.read() as tx:
            waiting = entries.quarantined(tx, finding_id)
        if not waiting:
            raise UnknownEntry(f"nothing waits under the id {finding_id}; `kr review` lists what does")
        decided = _held_item(waiting[0])
        if is_approved:
            finding, name = parse(Finding, waiting[0]["request"]), waiting[0]["written_by"]
            by = Writer(name, name.removeprefix("agent:"))
            try:
                decided = to_plain(self._save(finding, by, []))
            except UnknownEntry:  # the entry that it improves is gone: it is one of its own
                decided = to_plain(self._save(replace(finding, entry=None), by, []))
        self._store.change(lambda tx: entries.end_quarantine(tx, finding_id))
        return decided


def _check_length(finding: Finding) -> None:
    """Refuse a too long answer. This comes before masking, which replaces a line that is too long by ``<secret>``."""
    tokens = sum(tokens_of(text or "") for text in (finding.answer, finding.code, finding.caveats))
    if tokens > MOST_TOKENS:
        problem = f"{tokens} tokens with code and caveats; at most {MOST_TOKENS}, since others pay for it"
        raise InvalidRequest(FieldError("answer", problem))


def _all_texts(finding: Finding) -> str:
    """Return all that others will read."""
    values = to_plain(finding).values()
    return "\n\n".join(text for it in values for text in (it if isinstance(it, list) else [it]) if text)


def _rate(
    tx: Transaction, entry: Entry, given: Rate, by: Writer, now: datetime, *, session: str
) -> RateResults:
    """Note a rating as ``by``'s word; the wordings that it proves, or takes away, are those of ``session``."""
    rating = {
        "entry_id": entry.id,
        "revision": entry.revision,
        "session_id": by.session,
        "story_key": given.story_key,
        "outcome": given.outcome,
        "note": given.note,
        "at": to_text(now),
    }
    entries.rate(tx, rating)
    if given.outcome == "worked":
        _confirm(tx, entry, session, now)
    else:
        entries.forget_wordings(tx, entry, session)
    found, is_own = lookup.one(tx, entry.id), entry.written_by in {f"agent:{by.session}", by.session}
    ratings = found[1] if found else NO_RATINGS
    confidence, withdrawn = entry.confidence, ratings.withdraws(entry)
    if entry.is_written:
        is_confirmed = any(
            it["outcome"] == "worked" and f"agent:{it['session_id']}" != entry.written_by != it["session_id"]
            for it in entries.ratings_of(tx, entry)
        )
        # By itself a text has the confidence that its header says, but never high, which others alone can make it.
        said = report.read_confidence(lookup.text_of(tx, entry.sha256) or "")
        own: Confidence = "low" if said in {None, "low"} else "medium"
        confidence = "high" if is_confirmed and not withdrawn else own
        entries.update(tx, entry.id, confidence=confidence)
    return RateResults(
        id=entry.id,
        worked=ratings.worked,
        wrong=ratings.wrong,
        revision=entry.revision,
        confidence=confidence,
        origin=entry.origin,
        withdrawn=withdrawn,
        note=OWN_WORD if is_own and given.outcome == "worked" else None,
    )


def _confirm(tx: Transaction, entry: Entry, session: str, now: datetime) -> None:
    """Have the session's wordings serve by themselves, also for questions whose offer it used without naming it; a stale entry is fresh again.

    One that shares no word with the entry takes a second session: else one alone could have any question answered by any text.
    """
    text = lookup.text_of(tx, entry.sha256) or ""
    told = (section(text, name) or "" for name in (report.SUMMARY, report.DETAILS))
    words = _words_of(entry.topic, entry.question or "", *entry.tags, *told) - _words_of(entry.framework)
    for it in entries.wordings_of(tx, entry.id):
        if it["session_id"] == session and _words_of(it["question"], it["topic"]) & words:
            entries.prove_wording(tx, entry.id, it["question"])
    for it in ledger.take_offers(tx, session, entry.id, at=to_text(now)):
        is_proved = bool(_words_of(it["question"], it["topic"]) & words)
        entries.keep_wording(tx, entry, it | {"proved": is_proved})
    end = to_text(now + report.INSTALLED_DOCS_LAST) if entry.is_installed_excerpt else entry.fresh_until
    fresh = {"status": "fresh", "stale_reason": None, "stale_major": None, "fresh_until": end}
    entries.update(tx, entry.id, **fresh)
    lookup.touch(tx, entry.id, now)


def _words_of(*texts: str) -> set[str]:
    return {word for text in texts for word in keywords(text)}


def _held_item(held: Row) -> dict[str, Any]:
    shown = held | {"finding": held["request"], "reasons": [*held["reasons"]]}
    return {name: shown[name] for name in ("finding", *_HELD)}


def _wrong_item(tx: Transaction, entry: Entry, ratings: Ratings) -> dict[str, Any]:
    said = [it for it in entries.ratings_of(tx, entry) if it["outcome"] == "wrong"]
    return {
        "id": entry.id,
        "framework": entry.framework,
        "question": entry.question or entry.topic,
        "written_by": entry.written_by,
        "worked": ratings.worked,
        "wrong": ratings.wrong,
        "notes": [{"by": it["session_id"], "at": it["at"], "note": it["note"]} for it in said],
    }
