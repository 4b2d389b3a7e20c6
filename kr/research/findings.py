"""Findings and ratings: what an agent or a person found out and proved goes back in, and what waits for a person."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any

from kr.errors import FieldError, InvalidRequest, UnknownEntry
from kr.frameworks import framework_key
from kr.guard import SECRET, clean, mask_secrets, reasons_to_hold
from kr.models import (
    Confidence,
    Entry,
    Query,
    RateResults,
    Ratings,
    SaveEnvelope,
    SaveResults,
    Writer,
    agent,
    to_plain,
    validation_problems,
)
from kr.report import DETAILS, INSTALLED_DOCS_LAST, SUMMARY, read_confidence
from kr.requests import MOST_TOKENS, Finding, Rate, parse, read_document
from kr.research.finding_text import cleaned, render_finding
from kr.research.run import find_candidates, offers_of
from kr.store import entries, lookup, saving, usage
from kr.store.engine import Transaction
from kr.store.entries import unknown_entry
from kr.store.files import new_id
from kr.store.lookup import RequestRow
from kr.store.usage import Quarantined, Rating
from kr.text import derive_tags, derive_topic, digest, has_invisible, keywords, section, tokens_of
from kr.times import UNKNOWN_VERSION, same_major, to_text

if TYPE_CHECKING:
    from kr.research.service import ResearchService

_HELD = "held-"
"""How the ids of findings that wait begin."""
SAME_PROCESS = "it counts as the word of the session that saved the text through this process: another process's word confirms it"


class Findings:
    """Saves findings, takes ratings, and keeps what waits for a person.

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
            if has_invisible(_all_texts(given)) or SECRET in _all_texts(finding):
                notes.append("what may be a secret, or what nobody sees, was taken out")
            by = writer or agent(finding.session_id)
            if reasons := reasons_to_hold(_all_texts(finding)):
                return self._hold(finding, by, reasons)
            return self._save(finding, by, notes)
        except InvalidRequest as error:
            return _refused(error.fields)
        except UnknownEntry as error:
            return _refused([FieldError("entry", str(error))])

    def _save(self, finding: Finding, by: Writer, notes: list[str]) -> SaveEnvelope:
        now, known = self._clock(), self._named(finding)
        query = self._query(finding, known)
        confidence: Confidence = "medium" if finding.sources or finding.verified_by else "low"
        is_same_major = known is not None and same_major(known.framework_version, query.framework_version)
        draft = Entry(
            framework=query.framework,
            framework_version=query.framework_version,
            topic=query.topic,
            tags=query.tags,
            confidence=confidence,
            origin="finding",
            question=finding.question,
            written_by=by.name,
            id=known.id if known and is_same_major else "",
        )
        saved = saving.save(self._store, draft, render_finding(finding, query, by, confidence, now), now)
        entry, notes = saved.entry, [*notes, *saved.warnings]
        self._saved_here[entry.id, saved.revision] = by
        if saved.is_beside:
            stays = f"{entry.id} was written by {entry.written_by}, and stays; this text is its revision {saved.revision}"
            is_confirmed = entry.confidence == "high"
            notes.append(
                f"{stays}. Others confirmed it: say what verified yours, or its sources"
                if is_confirmed
                else stays
            )
        config = self._service.settings.knowledge_research
        with self._store.read() as tx:
            ranked = find_candidates(tx, query, config, config.aliases, now)
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

    def _named(self, finding: Finding) -> Entry | None:
        if finding.entry is None:
            return None
        with self._store.read() as tx:
            entry = entries.get(tx, finding.entry)
            if entry is None:
                raise unknown_entry(tx, finding.entry)
        if framework_key(entry.framework) != framework_key(finding.framework):
            raise UnknownEntry(f"{entry.id} is about {entry.framework}, not about {finding.framework}")
        return entry

    def _query(self, finding: Finding, known: Entry | None) -> Query:
        """Say what the text is about. One that improves an entry has its topic, also where it is for another major."""
        version = finding.framework_version
        if version is None:
            version = known.framework_version if known else self._service.version_of(finding.framework)
        topic = known.topic if known else finding.topic or derive_topic(finding.framework, finding.question)
        return Query(
            framework=finding.framework,
            framework_version=version or UNKNOWN_VERSION,
            topic=topic,
            tags=finding.tags or derive_tags(finding.framework, topic),
            question=finding.question,
        )

    def _hold(self, finding: Finding, by: Writer, reasons: tuple[str, ...]) -> SaveEnvelope:
        """Keep a finding for a person to look at; the entry that it is about stays as it is."""
        now = self._clock()
        request = {name: value for name, value in to_plain(finding).items() if value not in (None, [])}
        held_id = f"{_HELD}{digest(repr(sorted(request.items())) + by.name)[:12]}"
        held = Quarantined(
            id=held_id,
            at=to_text(now),
            framework=finding.framework,
            question=finding.question,
            reasons=reasons,
            request=request,
            written_by=by.name,
        )
        self._store.change(lambda tx: usage.quarantine(tx, held))
        self._log(finding, by, now, status="quarantined")
        results = SaveResults(id=held_id, notes=[f"it waits for a person (kr review): {'; '.join(reasons)}"])
        return SaveEnvelope(status="quarantined", results=results, errors=[])

    def _log(self, finding: Finding, by: Writer, now: datetime, **more: Any) -> None:
        """Keep the request's row; ``answer_tokens`` is what the session was given for this before (tokens spared)."""

        def write(tx: Transaction) -> None:
            tokens, milliseconds = usage.given_before(tx, by.session, finding.framework)
            row = RequestRow(
                id=new_id(),
                at=to_text(now),
                mode="save",
                story_key=finding.story_key,
                session_id=by.session,
                framework=finding.framework,
                framework_version=finding.framework_version,
                question=finding.question,
                project=str(self._service.cwd),
                duration_ms=milliseconds,
                answer_tokens=tokens,
                **more,
            )
            lookup.log_request(tx, row)

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
                raise unknown_entry(tx, entry_id)
            if entry.origin == "placeholder":
                why = f"{entry.id} is a placeholder: it says nothing that could work; `kr save` what you find out"
                raise InvalidRequest(FieldError("id", why))
            # Whatever session it names, who saved a text through this process can't confirm it: the word is its writer's.
            saved = self._saved_here.get((entry.id, entry.revision)) if self._serves_one else None
            rater = saved or by
            results = _rate(tx, entry, replace(given, note=note), rater, now, session=by)
            if rater.session != by.session:
                results = replace(results, note=SAME_PROCESS)
            return results, entry.status == "stale"

        results, was_stale = self._store.change(write)
        if was_stale:  # nothing else of it is exported
            self._export()
        return results

    def review(self) -> dict[str, Any]:
        """Return what waits for a person: ``{quarantined, wrong}``, findings that were held back and entries that were rated wrong."""
        with self._store.read() as tx:
            held = [_held_item(it) for it in usage.quarantined(tx)]
            rated = [lookup.one(tx, entry_id) for entry_id in usage.rated_wrong(tx)]
            wrong = [_wrong_item(tx, found[0], found[1]) for found in rated if found]
        return {"quarantined": held, "wrong": wrong}

    def waits(self, finding_id: str) -> bool:
        """Whether an id is that of a finding which waits, or waited: lessons have others."""
        return finding_id.startswith(_HELD)

    def approve(self, finding_id: str) -> SaveEnvelope:
        """Save a finding that waited, as its writer's. Raises ``UnknownEntry``."""
        held = self._held(finding_id)
        finding = parse(Finding, held.request)
        by = Writer(held.written_by, held.written_by.removeprefix("agent:"))
        try:
            envelope = self._save(finding, by, [])
        except UnknownEntry:  # the entry that it improves is gone: it is one of its own
            envelope = self._save(replace(finding, entry=None), by, [])
        self._store.change(lambda tx: usage.release(tx, finding_id))
        return envelope

    def reject(self, finding_id: str) -> dict[str, Any]:
        """Drop a finding that waited; returns it. Raises ``UnknownEntry``."""
        held = self._held(finding_id)
        self._store.change(lambda tx: usage.release(tx, finding_id))
        return _held_item(held)

    def _held(self, finding_id: str) -> Quarantined:
        with self._store.read() as tx:
            held = usage.quarantined(tx, finding_id)
        if not held:
            raise UnknownEntry(f"nothing waits under the id {finding_id}; `kr review` lists what does")
        return held[0]


def _texts(finding: Finding) -> list[str]:
    return [finding.answer, finding.code or "", finding.caveats or ""]


def _refused(errors: Iterable[FieldError]) -> SaveEnvelope:
    return SaveEnvelope(status="failure", results=None, errors=validation_problems(errors))


def _check_length(finding: Finding) -> None:
    """Refuse an empty or too long answer. This comes before masking, which replaces a line that is too long by ``<secret>``."""
    if not any(character.isalnum() for character in finding.answer):
        raise InvalidRequest(FieldError("answer", "has no letter and no digit"))
    tokens = sum(map(tokens_of, _texts(finding)))
    if tokens > MOST_TOKENS:
        problem = f"{tokens} tokens with code and caveats; at most {MOST_TOKENS}, since others pay for it"
        raise InvalidRequest(FieldError("answer", problem))


def _all_texts(finding: Finding) -> str:
    """Return all that others will read."""
    more = (finding.framework, finding.framework_version, finding.session_id, finding.question)
    rest = (finding.topic, finding.verified_by, *finding.tags, *finding.sources)
    return "\n\n".join([*_texts(finding), *(text or "" for text in (*more, *rest))])


def _rate(
    tx: Transaction, entry: Entry, given: Rate, by: Writer, now: datetime, *, session: Writer
) -> RateResults:
    """Note a rating as ``by``'s word; ``session`` is who asked, and whose wordings are meant."""
    rating = Rating(
        entry_id=entry.id,
        revision=entry.revision,
        session_id=by.session,
        story_key=given.story_key,
        outcome=given.outcome,
        note=given.note,
        at=to_text(now),
    )
    usage.rate(tx, rating)
    if given.outcome == "worked":
        _confirm(tx, entry, session, now)
    else:
        usage.forget_wordings(tx, entry, session.session)
    found = lookup.one(tx, entry.id)
    if found is None:
        raise UnknownEntry(f"{entry.id} went meanwhile")
    _, ratings, _ = found
    confidence, withdrawn = entry.confidence, ratings.withdraws(entry)
    if entry.is_written:
        is_confirmed = any(
            it.outcome == "worked" and f"agent:{it.session_id}" != entry.written_by != it.session_id
            for it in usage.ratings_of(tx, entry)
        )
        # By itself a text has the confidence that its header says, but never high, which others alone can make it.
        said = read_confidence(lookup.text_of(tx, entry.sha256) or "")
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
    )


def _confirm(tx: Transaction, entry: Entry, by: Writer, now: datetime) -> None:
    """Have the session's wordings serve by themselves, also of the offers that it took silently; a stale entry is fresh again.

    One that shares no word with the entry takes a second session: else one alone could have any question answered by any text.
    """
    text = lookup.text_of(tx, entry.sha256) or ""
    told = (section(text, name) or "" for name in (SUMMARY, DETAILS))
    words = _words_of(entry.topic, entry.question or "", *entry.tags, *told) - _words_of(entry.framework)
    for it in usage.wordings_of(tx, entry.id):
        if it.session_id == by.session and _words_of(it.question, it.topic) & words:
            usage.prove_wording(tx, entry.id, it.question)
    for it in usage.take_offers(tx, by.session, entry.id, at=to_text(now)):
        is_proved = bool(_words_of(it.question, it.topic) & words)
        usage.keep_wording(tx, entry, replace(it, proved=is_proved))
    end = to_text(now + INSTALLED_DOCS_LAST) if entry.is_installed_excerpt else entry.fresh_until
    fresh = {"status": "fresh", "stale_reason": None, "stale_major": None, "fresh_until": end}
    entries.update(tx, entry.id, **fresh)
    lookup.touch(tx, entry.id, now)


def _words_of(*texts: str) -> set[str]:
    return {word for text in texts for word in keywords(text)}


def _held_item(held: Quarantined) -> dict[str, Any]:
    shown = to_plain(held)
    return {"finding": shown.pop("request"), **shown}


def _wrong_item(tx: Transaction, entry: Entry, ratings: Ratings) -> dict[str, Any]:
    notes = [
        {"by": it.session_id, "at": it.at, "note": it.note}
        for it in usage.ratings_of(tx, entry)
        if it.outcome == "wrong"
    ]
    return {
        "id": entry.id,
        "framework": entry.framework,
        "question": entry.question or entry.topic,
        "written_by": entry.written_by,
        "worked": ratings.worked,
        "wrong": ratings.wrong,
        "notes": notes,
    }
