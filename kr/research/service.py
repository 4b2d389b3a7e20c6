"""Requests of F1: any bytes in, an envelope out. What the cache answers ends in ``kr.research.run``; a miss goes to ``kr.research.miss``."""

import logging
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from kr.errors import FieldError, InvalidRequest, StoreError
from kr.models import (
    Envelope,
    Problem,
    failure,
    in_one_line,
    to_plain,
    validation_problems,
)
from kr.requests import (
    Bad,
    LessonsInjectRequest,
    Mode,
    ResearchRequest,
    framework_name,
    parse_request,
    question,
    read_document,
    with_overrides,
)
from kr.research.decide import Lookup, related_of
from kr.research.run import ResearchRun, find_candidates, find_served
from kr.settings import Settings
from kr.store import lookup
from kr.store.engine import Store
from kr.store.files import new_id
from kr.text import derive_tags, derive_topic
from kr.times import UNKNOWN_VERSION, to_text

logger = logging.getLogger(__name__)

Clock = Callable[[], datetime]

DISABLED = "Knowledge research disabled in config"
"""The error of F1, "State Preconditions"."""
_MOST_LOOKED_AT = 5_000
"""Files of a folder of one's own that are looked at, whether they changed."""
_WORDS_ALONE = re.compile(r"[A-Za-z0-9 ,.;?!()'/-]*")
_OF_SECRETS = re.compile(
    r"pass|pwd|secret|token|key|cred|cookie|auth|basic|sess|login|identified|clave|wort|recover|otp|psk|dsn|senha|\b(?:pin|sas|sig)\b|"
    r"[a-z0-9]{16}|[0-9](?:[ -]?[0-9]){7}|//|(?<![a-z])['-]",
    re.IGNORECASE,
)
"""A text of ``_WORDS_ALONE`` in which this finds nothing holds no secret: the patterns of ``kr.guard``, a tenth of a hit, are not asked."""
_QUERY_FIELDS = ("framework", "question", "framework_version", "topic", "tags")
_ASKED_FIELDS = ("framework", "topic", "question", "tags")
_LOGGED_FIELDS = ("framework", "framework_version", "topic", "question")
_OVERRIDE_FIELDS = ("max_calls", "timeout_seconds", "refresh", "use", "if_unsure")


Progress = Callable[[str], None]
"""Hears in one line what a request waits for; nothing any more where the line is empty."""


class ResearchService:
    """Answers requests over one configuration. Imports little: a hit pays for what it uses."""

    def __init__(
        self,
        settings: Settings,
        store: Store,
        *,
        environ: Mapping[str, str],
        cwd: str | Path,
        progress: Progress,
        clock: Clock,
    ) -> None:
        self.settings = settings
        self.store = store
        self.environ = environ
        self.cwd = Path(cwd)
        self.progress = progress
        self.clock = clock

    def document(
        self,
        document: bytes | Mapping[str, Any],
        *,
        overrides: Mapping[str, Any] | None = None,
        **answer: Any,
    ) -> Envelope:
        """Answer a request of either mode, as bytes or as plain data, flat or whole; ``answer``: see there.

        ``overrides`` win over the request's own ``config_overrides``.
        """
        try:
            data = self.expand_short_form(document)
        except InvalidRequest as error:
            return self._refuse(error.read, validation_problems(error.fields))
        return self.answer(with_overrides(data, overrides) if overrides else data, **answer)

    def has_changed_folder(self, found: Lookup, moment: datetime) -> bool:
        """Whether a folder of one's own was changed after an excerpt of it was made; to read it again costs nothing."""
        if found.entry is None or found.entry.origin != "excerpt":
            return False
        own = (it for it in self.settings.knowledge_research.sources if not isinstance(it, str))
        places = [it.folder for it in own if it.folder and f"(via {it.name})" in (found.report or "")]
        return any(_newest_change(self.settings.project_root / it) > moment.timestamp() for it in places)

    def expand_short_form(self, document: bytes | Mapping[str, Any]) -> Mapping[str, Any]:
        """Make F1's request of a flat one, which has framework and question at its top; another document stays as it is (rule 3.1).

        What it leaves out is derived. Raises ``InvalidRequest`` for bytes that can't be read.
        """
        data = read_document(document)
        is_flat = "research_query" not in data and ("framework" in data or "question" in data)
        if not is_flat or data.get("mode") not in (None, "research"):
            return data
        query = {name: data[name] for name in _QUERY_FIELDS if data.get(name)}
        query |= {name: _masked(query[name]) for name in _ASKED_FIELDS if name in query}
        overrides = {name: data[name] for name in _OVERRIDE_FIELDS if name in data}
        moved = {*_QUERY_FIELDS, *_OVERRIDE_FIELDS, "mode"}
        rest = {name: value for name, value in data.items() if name not in moved and value is not None}
        identity = {"story_key": "0-0", "session_id": f"request-{new_id()}"}
        whole = {**identity, **rest, "mode": "research", "research_query": self._filled(query)}
        return with_overrides(whole, overrides)

    def _filled(self, query: Mapping[str, Any]) -> dict[str, Any]:
        """Derive the version, the topic and the tags that a question leaves out."""
        try:
            framework, asked = framework_name(query.get("framework")), question(query.get("question"))
        except Bad:
            # The validation names what is missing, and nothing that would have been derived from it.
            return {"framework_version": UNKNOWN_VERSION, "topic": "unknown", "tags": ["unknown"], **query}
        topic = query.get("topic") or derive_topic(framework, asked)
        version = query.get("framework_version") or self.version_of(framework)
        tags = [*derive_tags(framework, str(topic))]
        return {"framework_version": version, "topic": topic, "tags": tags, **query}

    def version_of(self, framework: str) -> str:
        """Return the version of a framework that the project uses, or ``unknown``."""
        from kr.packages import find_dependencies, version_of  # heavy

        for folder in dict.fromkeys((self.cwd, self.settings.project_root)):
            if version := version_of(folder, framework, self.environ):
                return version
        logger.warning(
            "no version of %s was found in the project's files; give it with --framework-version", framework
        )
        for warning in find_dependencies(self.cwd, self.environ).warnings:
            logger.warning("not read: %s", warning)
        return UNKNOWN_VERSION

    @cached_property
    def folders(self) -> tuple[Path, ...]:
        """The projects whose packages count: where we are, then where the configuration is."""
        root = self.settings.project_root
        is_elsewhere = self.settings.config_file is not None and root.resolve() != self.cwd.resolve()
        return (self.cwd, root) if is_elsewhere else (self.cwd,)

    def depends_on(self, framework: str) -> tuple[str, ...]:
        """Return the packages that a framework's installed package depends on: their lessons fit, too."""
        from kr.packages.installed import find_installed  # heavy

        found = find_installed(framework, self.folders, self.environ)
        return tuple(dict.fromkeys(name for package in found for name in package.requires))

    def inject(self, document: bytes | Mapping[str, Any], more: Mapping[str, Any] | None = None) -> Envelope:
        """Answer a request of mode lessons-inject, as bytes or as plain data; ``more`` is put over its ``lessons_inject``."""
        try:
            data = read_document(document)
        except InvalidRequest as error:
            return self._refuse(error.read, validation_problems(error.fields), mode="lessons-inject")
        if data.get("mode") == "research":
            wrong = 'Invalid mode: "research"; allowed here: lessons-inject'
            return self._refuse(data, [Problem(type="validation_error", field="mode", message=wrong)])
        wanted = data.get("lessons_inject")
        if more and isinstance(wanted, Mapping):
            data = {**data, "lessons_inject": {**wanted, **more}}
        return self.answer(data, default_mode="lessons-inject")

    def answer(
        self,
        data: Mapping[str, Any],
        *,
        include_report: bool = False,
        max_tokens: int | None = None,
        default_mode: Mode | None = None,
    ) -> Envelope:
        """Check a request of either mode, given as plain data, and answer it. A report in the answer has at most ``max_tokens``.

        Secrets are taken out of what is asked before it is sent or kept (rule 8).
        """
        if isinstance(asked := data.get("research_query"), Mapping):
            masked = {name: _masked(asked[name]) for name in _ASKED_FIELDS if name in asked}
            data = {**data, "research_query": {**asked, **masked}}
        try:
            request = parse_request(
                data, default_mode=default_mode, phases=self.settings.knowledge_research.all_phases
            )
            if not self.settings.knowledge_research.enabled:
                return self._refuse(data, [Problem(type="disabled", message=DISABLED)], mode=default_mode)
            if isinstance(request, LessonsInjectRequest):
                return self._inject(request)
            run = ResearchRun(self, request, include_report=include_report, max_tokens=max_tokens)
            return self._research(run)
        except InvalidRequest as error:
            return self._refuse(data, validation_problems(error.fields), mode=default_mode)

    @staticmethod
    def _research(run: ResearchRun) -> Envelope:
        """Answer from the cache, else from what is to be found out. Raises ``InvalidRequest`` for a named entry that can't be served."""
        found, wanted = Lookup(), run.overrides.use
        try:
            if wanted is not None and not (found := run.use(wanted)).is_hit:
                run.notes.append(
                    f"{wanted} has no report that could be served: the question was answered without it"
                )
            found = found if found.is_hit else run.look_up()
            if (answered := run.answered(found)) is not None:
                return answered
            from kr.research.miss import perform  # heavy

            return perform(run, found)
        except InvalidRequest:
            raise
        except BaseException as error:
            run.note_interrupt(error)
            raise

    def _refuse(
        self, data: Mapping[str, Any], problems: Sequence[Problem], *, mode: Mode | None = None
    ) -> Envelope:
        """Answer ``failure``, and keep its row: every request leaves one."""
        envelope = failure(data, *problems, mode=mode)
        query = data.get("research_query")
        given: Mapping[str, Any] = query if isinstance(query, Mapping) else {}
        known: dict[str, Any] = {name: _masked(_text(given.get(name))) for name in _LOGGED_FIELDS}
        row = {
            "id": new_id(),
            "at": to_text(self.clock()),
            "mode": _text(envelope.mode),
            "status": "failure",
            "story_key": _text(envelope.story_key),
            "session_id": _text(envelope.session_id),
            "duration_ms": 0,
            "error": in_one_line(problems),
            **known,
        }
        try:
            self.store.change(lambda tx: lookup.log_request(tx, row), scope=None)
        except StoreError as error:
            logger.warning("%s", error)
        return envelope

    def _inject(self, request: LessonsInjectRequest) -> Envelope:
        from kr.lessons.file import open_lessons  # heavy
        from kr.lessons.inject import inject  # heavy

        budget = self.settings.knowledge_research.lessons_injection_budget
        with open_lessons(self.settings) as file:
            return inject(request, file=file, budget=budget, now=self.clock(), related=self.depends_on)

    def explain(self, document: bytes | Mapping[str, Any]) -> dict[str, Any]:
        """Say what the cache would answer to a research request, and why; no source is asked, nothing is changed, no database made.

        ``outcome`` is ``hit``, ``stale`` (it would be researched again), ``candidates`` or ``miss``. Each of ``considered``, what is served
        and what is offered, has its ``score``, by what it is served (``tier``) or why it is not (``refused``), and its freshness.
        Raises ``InvalidRequest`` or a ``StoreError``.
        """
        request = parse_request(self.expand_short_form(document))
        if not isinstance(request, ResearchRequest):
            raise InvalidRequest(FieldError("mode", "only a research request can be explained"))
        query, config = request.research_query, self.settings.knowledge_research
        with self.store.read() as tx:
            first, tier = find_served(tx, query, config, self.clock()) or (None, None)
            offered = find_candidates(tx, query, config, self.clock())
            hashes = [it.entry.sha256 for it in [*filter(None, [first]), *offered]]
            texts = lookup.texts(tx, hashes) if hashes else {}
        if first is not None:  # with the score that it has among the others
            first = next((it for it in offered if it.entry.id == first.entry.id), first)
        outcome = "candidates" if offered else "miss"
        if first is not None and first.refusal is None:
            outcome = "hit" if first.is_servable else "stale"
        considered = []
        for it in [*filter(None, [first]), *(it for it in offered if it is not first)]:
            refused = it.refusal
            if it.verdict.reasons:
                refused = refused or f"stale: {', '.join(it.verdict.reasons)}"
            if it is not first:
                refused = refused or "not the same topic, question or keywords: it is only offered"
            shown = to_plain(related_of(it, texts.get(it.entry.sha256, "")))
            shown |= {
                "tier": tier if it is first else None,
                "freshness": it.verdict.status,
                "refused": refused,
            }
            considered.append(shown)
        entry_id = first.entry.id if first else None
        return {"outcome": outcome, "entry_id": entry_id, "query": to_plain(query), "considered": considered}


def _masked(value: Any) -> Any:
    """Take secrets out of a text, or of those in a list."""
    if isinstance(value, list):
        return [_masked(it) for it in value]
    if not isinstance(value, str) or (_WORDS_ALONE.fullmatch(value) and not _OF_SECRETS.search(value)):
        return value
    from kr.guard import mask_secrets  # heavy: its patterns

    return mask_secrets(value)


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _newest_change(folder: Path) -> float:
    """Return when something in a folder was changed last, in seconds since 1970."""
    newest = 0.0
    for path in (folder, *islice(folder.rglob("*"), _MOST_LOOKED_AT)):
        with suppress(OSError):  # gone meanwhile
            newest = max(newest, path.stat().st_mtime)
    return newest
