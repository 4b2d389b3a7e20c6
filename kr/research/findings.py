"""Findings and ratings: what an agent or a person found out and proved goes back in (SPEC 3.10)."""

import re
import uuid
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from kr.contracts.findings import MOST_TOKENS, Finding, Rate, Writer, agent, parse_finding, parse_rate
from kr.envelopes import RateResults, SaveEnvelope, SaveResults, save_failure
from kr.errors import FieldError, InvalidRequest, KrError, UnknownEntry
from kr.freshness import UNKNOWN_VERSION, same_major, to_text
from kr.guard import SECRET, clean, mask_secrets, reasons_to_hold
from kr.models import to_plain
from kr.naming import digest
from kr.report import (
    ATTRIBUTION,
    CAVEATS,
    CODE,
    DETAILS,
    HEADER,
    INSTALLED_DOCS_LAST,
    SUMMARY,
    Shape,
    read_confidence,
    read_shape,
    title_of,
    write_shape,
)
from kr.research.lookup import Cache
from kr.store import entries, lookup, quarantine, requests, revisions, saving, wordings
from kr.store.engine import Store, Transaction
from kr.store.entries import framework_key
from kr.store.quarantine import Quarantined
from kr.store.requests import RequestRow
from kr.store.saving import Draft, Saved
from kr.store.unknown import unknown_entry
from kr.store.wordings import Rating
from kr.text.counting import fence_after, tokens_of
from kr.text.words import derive_tags, derive_topic
from kr.values import Confidence, Entry, Query, Related, replace

_MODE = "save"
_HELD = "held-"
"""How the ids of findings that wait begin."""
_FENCED = re.compile(r"\s*(`{3,}|~{3,})")
_COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_HEADING = re.compile(r" {0,3}(#{1,6})(?=\s|$)")
_UNDERLINE = re.compile(r" {0,3}(?:=+|-+)\s*$")
_HTML_BLOCK = re.compile(r" {0,3}<(?:(?:script|pre|style|textarea)\b|[?!])", re.IGNORECASE)
"""What would hide all that follows from who sees the Markdown rendered."""
_CLAIMED = re.compile(
    r"^\W*(?:written|verified|confirmed|reviewed|approved|rated)[ \t]+by\b.*\n?", re.IGNORECASE | re.MULTILINE
)
_HEADER_LINE = re.compile(rf"\s*\*\*(?:{'|'.join(HEADER)}):\*\*")


class Findings:
    """Saves findings, takes ratings, and keeps what waits for a person. ``version_of`` gives a framework's version in the project."""

    def __init__(
        self,
        store: Store,
        cache: Cache,
        *,
        version_of: Callable[[str], str],
        export: Callable[[list[str]], None],
        clock: Callable[[], datetime],
        project: str,
    ) -> None:
        self._store = store
        self._cache = cache
        self._version_of = version_of
        self._export = export
        self._clock = clock
        self._project = project

    def save(self, data: Mapping[str, Any], writer: Callable[[str | None], Writer] = agent) -> SaveEnvelope:
        """Keep a finding as its entry's new text. Raises a ``StoreError``; what is wrong with it is told in the envelope.

        ``writer`` says who hands it over, by the session that it names.
        """
        try:
            given, warnings = parse_finding(data)
            _check_length(
                given
            )  # before secrets are taken out: a line that is too long to be looked at is one
            finding = _cleaned(given)
            if _secrets_in(finding) > _secrets_in(given):
                warnings.append(f"what may be a secret was taken out: {SECRET} stands in its place")
            text = self._checked(finding)
            by = writer(finding.session_id)
            if reasons := reasons_to_hold(text):
                return self._hold(finding, by, reasons)
            return self._save(finding, by, warnings)
        except InvalidRequest as error:
            return save_failure(error.fields)
        except UnknownEntry as error:
            return save_failure([FieldError("entry", str(error))])

    def _checked(self, finding: Finding) -> str:
        """Return all that others will read. Raises ``InvalidRequest`` where it says nothing."""
        if not any(character.isalnum() for character in finding.answer):
            raise InvalidRequest(FieldError("answer", "has no letter and no digit"))
        more = (
            finding.framework,
            finding.framework_version or "",
            finding.session_id or "",
            finding.question,
            finding.topic or "",
            finding.verified_by or "",
            *finding.tags,
            *finding.sources,
        )
        return "\n\n".join([*_texts(finding), *more])

    def _save(self, finding: Finding, by: Writer, warnings: list[str]) -> SaveEnvelope:
        now, known = self._clock(), self._named(finding)
        query = self._query(finding, known)
        confidence: Confidence = "medium" if finding.sources or finding.verified_by else "low"
        text = render(finding, query, by, confidence, now)
        draft = Draft(
            framework=query.framework,
            framework_version=query.framework_version,
            topic=query.topic,
            tags=query.tags,
            confidence=confidence,
            origin="finding",
            question=finding.question,
            written_by=by.name,
            entry_id=known.id
            if known and same_major(known.framework_version, query.framework_version)
            else None,
        )
        saved = saving.save(self._store, draft, text, now)
        notes = [*warnings, *saved.warnings]
        if saved.is_beside:
            notes.append(
                f"{saved.entry.id} was written by {saved.entry.written_by}, and stays; this text is its revision {saved.revision}"
            )
        related = self._alike(query, saved)
        self._log(
            finding,
            by,
            now,
            status="saved",
            entry_id=saved.entry.id,
            framework_version=query.framework_version,
            topic=query.topic,
        )
        self._export(notes)
        results = SaveResults(
            id=saved.entry.id,
            path=saved.entry.path,
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
            version = known.framework_version if known else self._version_of(finding.framework)
        topic = known.topic if known else finding.topic or derive_topic(finding.framework, finding.question)
        return Query(
            framework=finding.framework,
            framework_version=version or UNKNOWN_VERSION,
            topic=topic,
            tags=finding.tags or derive_tags(finding.framework, topic),
            question=finding.question,
        )

    def _alike(self, query: Query, saved: Saved) -> list[Related]:
        """Return the entries that may say the same, so that the writer can improve one of them instead."""
        found = self._cache.alike(query)
        return [it for it in found if it.id != saved.entry.id]

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
        with self._store.write() as tx:
            if quarantine.get(tx, held_id) is None:
                quarantine.add(tx, held)
        self._log(finding, by, now, status="quarantined")
        results = SaveResults(
            id=held_id,
            path=None,
            revision=None,
            replaced=None,
            confidence=None,
            index_count=None,
            related=[],
            notes=[f"it waits for a person (kr review): {'; '.join(reasons)}"],
        )
        return SaveEnvelope(status="quarantined", results=results, errors=[])

    def _log(self, finding: Finding, by: Writer, now: datetime, **known: Any) -> None:
        """Keep the request's row; ``answer_tokens`` is what the session was given for this need before (SPEC 8, tokens spared)."""
        with self._store.write() as tx:
            given = requests.given_before(tx, by.session, finding.framework)
            row = RequestRow(
                id=uuid.uuid4().hex,
                at=to_text(now),
                mode=_MODE,
                story_key=finding.story_key,
                session_id=by.session,
                framework=finding.framework,
                question=finding.question,
                project=self._project,
                duration_ms=given.milliseconds,
                answer_tokens=given.tokens,
                **known,
            )
            requests.record(tx, row)

    def rate(
        self, entry_id: str, data: Mapping[str, Any], writer: Callable[[str | None], Writer] = agent
    ) -> RateResults:
        """Note whether an entry's current text worked. A session counts once for it, by its last word.

        Raises ``InvalidRequest``, ``UnknownEntry``, or a ``StoreError``.
        """
        given = parse_rate(data)
        note = None if given.note is None else mask_secrets(clean(given.note))
        if note is not None and (reasons := reasons_to_hold(note)):
            raise InvalidRequest(FieldError("note", f"is not taken: {'; '.join(reasons)}"))
        by, now = writer(given.session_id), self._clock()
        with self._store.write() as tx:
            entry = entries.get(tx, entry_id)
            if entry is None:
                raise _not_rated(tx, entry_id)
            if entry.origin == "placeholder":
                why = f"{entry.id} is a placeholder: it says nothing that could work; `kr save` what you find out"
                raise InvalidRequest(FieldError("id", why))
            results = _rate(tx, entry, replace(given, note=note), by, now)
        if given.outcome == "worked" and entry.status == "stale":  # nothing else of it stands in the index
            self._export([])
        return results

    def review(self) -> dict[str, Any]:
        """Tell what waits for a person: ``{quarantined, wrong}``, findings that were held back and entries that were rated wrong."""
        with self._store.look() as tx:
            held = [_held_item(it) for it in quarantine.all(tx)]
            wrong = [_wrong_item(tx, entry_id) for entry_id in wordings.rated_wrong(tx)]
        return {"quarantined": held, "wrong": wrong}

    def waits(self, finding_id: str) -> bool:
        """Whether an id is that of a finding which waits, or waited: lessons have others."""
        return finding_id.startswith(_HELD)

    def approve(self, finding_id: str) -> SaveEnvelope:
        """Save a finding that waited, as its writer's. Raises ``UnknownEntry``."""
        held = self._held(finding_id)
        finding, warnings = parse_finding(held.request)
        session = held.written_by.removeprefix("agent:")
        try:
            envelope = self._save(finding, Writer(held.written_by, session), warnings)
        except UnknownEntry:  # the entry that it improves is gone: it is one of its own
            envelope = self._save(replace(finding, entry=None), Writer(held.written_by, session), warnings)
        with self._store.write() as tx:
            quarantine.remove(tx, finding_id)
        return envelope

    def reject(self, finding_id: str) -> dict[str, Any]:
        """Drop a finding that waited; returns it. Raises ``UnknownEntry``."""
        held = self._held(finding_id)
        with self._store.write() as tx:
            quarantine.remove(tx, finding_id)
        return _held_item(held)

    def _held(self, finding_id: str) -> Quarantined:
        with self._store.look() as tx:
            held = quarantine.get(tx, finding_id)
        if held is None:
            raise UnknownEntry(f"nothing waits under the id {finding_id}; `kr review` lists what does")
        return held


def _texts(finding: Finding) -> list[str]:
    return [finding.answer, finding.code or "", finding.caveats or ""]


def _check_length(finding: Finding) -> None:
    tokens = sum(map(tokens_of, _texts(finding)))
    if tokens > MOST_TOKENS:
        problem = f"{tokens} tokens with code and caveats; at most {MOST_TOKENS}, since others pay for it"
        raise InvalidRequest(FieldError("answer", problem))


def _secrets_in(finding: Finding) -> int:
    return sum(text.count(SECRET) for text in _texts(finding))


def _cleaned(finding: Finding) -> Finding:
    """Take secrets and hidden characters out of everything that others will read."""

    def cleaned(text: str) -> str:
        return mask_secrets(clean(_without_comments(text)))

    texts = ("question", "answer", "caveats", "verified_by", "topic")
    changed = {name: cleaned(text) for name in texts if (text := getattr(finding, name)) is not None}
    if finding.code is not None:
        changed["code"] = mask_secrets(clean(finding.code))
    lists = {name: tuple(map(cleaned, getattr(finding, name))) for name in ("sources", "tags")}
    names = ("framework", "framework_version", "session_id")
    shown = {
        name: mask_secrets(clean(text)) for name in names if (text := getattr(finding, name)) is not None
    }
    return replace(finding, **changed, **lists, **shown)


def render(finding: Finding, query: Query, by: Writer, confidence: Confidence, now: datetime) -> str:
    """Write a finding as a report: the template's header and sections are kr's, the texts stand as written (SPEC 3.7)."""
    sections = _of_report(finding) or _of_parts(finding)
    named = [f"- Written by: {by.name}"]
    if finding.verified_by:
        named.append(f"- Verified by: {finding.verified_by}")
    named += [f"- Source: {source}" for source in finding.sources]
    # Who wrote it and what proved it is told here, and by nobody's own words.
    given = _CLAIMED.sub("", sections.pop(ATTRIBUTION, ""))
    header = {
        "Framework": query.framework,
        "Version": query.framework_version,
        "Research Date": now.astimezone(UTC).date().isoformat(),
        "Confidence": confidence,
        "Sources": ", ".join(finding.sources) or "the writer's own work",
    }
    body = {name: contained(text) or "None." for name, text in sections.items()}
    attribution = "\n".join([*named, *([contained(given)] if given else [])])
    title = title_of(query.framework, query.topic)
    return write_shape(Shape(title=title, header=header, sections={**body, ATTRIBUTION: attribution}))


def _of_parts(finding: Finding) -> dict[str, str]:
    first, rest = _first_paragraph(finding.answer.strip("\n"))
    if _FENCED.match(first):
        first, rest = finding.question, finding.answer
    code = finding.code or ""
    if code and not _FENCED.match(code):
        fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`{3,}", code) or [""]))
        code = f"{fence}\n{code}\n{fence}"
    return {
        SUMMARY: first,
        DETAILS: rest.strip("\n"),
        CODE: code,
        CAVEATS: finding.caveats or "",
    }


def _first_paragraph(text: str) -> tuple[str, str]:
    """Split behind the first paragraph; a block of code in it goes along as a whole."""
    fence, lines = "", text.splitlines()
    for at, line in enumerate(lines):
        fence = fence_after(line, fence)
        if not fence and not line.strip():
            return "\n".join(lines[:at]), "\n".join(lines[at + 1 :])
    return text, ""


def _of_report(finding: Finding) -> dict[str, str] | None:
    """Return the sections of an answer that is a whole report; what ``code`` and ``caveats`` hold goes along."""
    shape = read_shape(finding.answer.rstrip("\n") + "\n")
    if shape is None:
        return None
    more = _of_parts(finding)
    sections = dict(shape.sections)
    for name in (CODE, CAVEATS):
        sections[name] = "\n\n".join(filter(None, (sections[name], more[name])))
    return sections


def contained(text: str) -> str:
    """Return a text that can't be taken for a part of a report that is kr's.

    Outside of code, headings are two levels lower at least, lines like the header's are quoted, and comments are gone; an open fence
    is closed.
    """
    lines: list[str] = []
    fence, indent = "", 0
    for line in _without_comments(text).splitlines():
        open_before, fence = fence, fence_after(line, fence)
        if fence and not open_before:
            indent = _indent(line)
        if not open_before and not fence and _UNDERLINE.match(line) and lines and lines[-1].strip():
            lines += [""] if "|" not in lines[-1] else []
        # A line of code that stands less far to the right than its block would end the list that the block is in.
        missing = " " * max(0, indent - _indent(line)) if open_before and line.strip() else ""
        lines.append(missing + line if open_before or fence else _harmless(line))
    return "\n".join([*lines, *([" " * indent + fence] if fence else [])]).strip("\n")


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _harmless(line: str) -> str:
    if heading := _HEADING.match(line):
        return f"{'#' * max(3, len(heading[1]))}{line[heading.end() :]}"
    if _HTML_BLOCK.match(line):
        return f"\\{line.lstrip()}"
    return f"> {line.lstrip()}" if _HEADER_LINE.match(line) else line


def _without_comments(text: str) -> str:
    """Take HTML comments out, which people don't see, until none is left: what stood around one may make another. Code keeps its own."""
    while (left := _without_one_layer(text)) != text:
        text = left
    return text


def _without_one_layer(text: str) -> str:
    parts = re.split(
        r"(^ {0,3}(`{3,}|~{3,}).*?^ {0,3}\2[`~]*\s*$|`[^`\n]*`)", text, flags=re.MULTILINE | re.DOTALL
    )
    return "".join(
        _COMMENT.sub("", part) if at % 3 == 0 else part if at % 3 == 1 else ""
        for at, part in enumerate(parts)
        if part is not None
    )


def _not_rated(tx: Transaction, entry_id: str) -> KrError:
    if quarantine.get(tx, entry_id) is not None:
        return UnknownEntry(f"{entry_id} waits for a person and is served to nobody: it can't be rated")
    return unknown_entry(tx, entry_id)


def _rate(tx: Transaction, entry: Entry, given: Rate, by: Writer, now: datetime) -> RateResults:
    at = to_text(now)
    wordings.rate(
        tx,
        Rating(
            entry_id=entry.id,
            revision=entry.revision,
            session_id=by.session,
            story_key=given.story_key,
            outcome=given.outcome,
            note=given.note,
            at=at,
        ),
    )
    if given.outcome == "worked":
        wordings.prove(tx, entry.id, by.session)
        taken = requests.given_to(tx, by.session, entry.id)
        for need in taken.values():
            wordings.keep(tx, entry, need, at=at, session_id=by.session, proved=True)
        requests.take_offers(tx, [*taken], entry.id, at=at)
        end = to_text(now + INSTALLED_DOCS_LAST) if entry.is_installed_excerpt else None
        entries.refresh(tx, entry.id, fresh_until=end)
        entries.touch(tx, entry.id, now)
    else:
        wordings.forget_session(tx, entry, by.session)
    said = wordings.ratings_of(tx, entry)
    confirmed = any(
        it.outcome == "worked" and f"agent:{it.session_id}" != entry.written_by != it.session_id
        for it in said
    )
    if entry.is_written:
        entries.set_confidence(tx, entry.id, "high" if confirmed else _unconfirmed(tx, entry))
    found = lookup.one(tx, entry.id)
    if found is None:
        raise AssertionError("the entry is there in its own transaction")
    now_is, ratings, _ = found
    return RateResults(
        id=entry.id,
        worked=ratings.worked,
        wrong=ratings.wrong,
        revision=entry.revision,
        confidence=now_is.confidence,
        origin=entry.origin,
        withdrawn=ratings.withdraws(entry),
    )


def _unconfirmed(tx: Transaction, entry: Entry) -> Confidence:
    """Return the confidence that a text has by itself: what its header says, but never high, which others alone can make it."""
    said = read_confidence(revisions.text(tx, entry.sha256) or "")
    return "low" if said in {None, "low"} else "medium"


def _held_item(held: Quarantined) -> dict[str, Any]:
    return {
        "id": held.id,
        "at": held.at,
        "framework": held.framework,
        "question": held.question,
        "written_by": held.written_by,
        "reasons": list(held.reasons),
        "finding": held.request,
    }


def _wrong_item(tx: Transaction, entry_id: str) -> dict[str, Any]:
    found = lookup.one(tx, entry_id)
    if found is None:
        return {"id": entry_id}
    entry, ratings, _ = found
    said = wordings.ratings_of(tx, entry)
    return {
        "id": entry.id,
        "framework": entry.framework,
        "question": entry.question or entry.topic,
        "written_by": entry.written_by,
        "worked": ratings.worked,
        "wrong": ratings.wrong,
        "notes": [
            {"by": it.session_id, "at": it.at, "note": it.note} for it in said if it.outcome == "wrong"
        ],
    }
