"""What one request of research carries along, and what all of them share."""

import json
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Protocol

from kr.contracts.requests import ResearchOverrides, ResearchRequest
from kr.envelopes import Problem
from kr.errors import KrError
from kr.frameworks import canonical
from kr.freshness import Limits, to_text
from kr.research.budget import LedgerBudget, OverallDeadline, Payer
from kr.research.lookup import Cache
from kr.research.shelf import Shelf
from kr.store.engine import Store
from kr.store.requests import RequestRow
from kr.text.counting import fit
from kr.values import Answer, MatchRules, Query, Value, replace

if TYPE_CHECKING:
    from kr.research.chain import Breaker, Progress
    from kr.research.persona import Persona
    from kr.research.synthesis import Synthesis
    from kr.sources.base import Source


class Policy(Value):
    """The settings that research goes by, in seconds; ``knowledge_base`` is absolute, ``aliases`` name other frameworks."""

    knowledge_base: str
    limits: Limits
    rules: MatchRules
    aliases: Mapping[str, str]
    per_story: int
    overall_timeout: float
    timeout: Callable[[], float]
    report_tokens: Callable[[], int]


class SourceSet(Value):
    """``chain`` in order; ``fallback`` and ``local_docs`` are asked as SPEC 3.5 says, if given."""

    chain: "Sequence[Source]"
    fallback: "Source | None"
    local_docs: "Source | None"

    @property
    def known(self) -> frozenset[str]:
        """What the sources are called: a note of one begins with its name."""
        asked = (*self.chain, self.fallback, self.local_docs)
        return frozenset(source.name for source in asked if source is not None)


class Writer(Protocol):
    """Writes a report's text from what the sources gave."""

    def __call__(self, query: Query, answer: Answer, persona: "Persona", *, timeout: float) -> "Synthesis":
        """Write, or raise ``SourceFailure``."""


class Judge(Protocol):
    """Chooses among candidates, for who asks without reading them (SPEC 3.2, ``judge: llm``)."""

    def __call__(self, system: str, user: str, *, timeout: float) -> str:
        """Reply, or raise ``SourceFailure``."""


class Services(Value):
    """What research works with, built once by the composition root; most of it is made when it is first needed.

    ``breaker`` is made for an owner; ``mistyped`` gives what an unknown name may be; ``persona`` tells what went wrong;
    ``repository`` knows a framework's ``owner/repo``; ``export`` writes the YAML files and raises ``KrError``.
    """

    store: Store
    sources: Callable[[], SourceSet]
    breaker: "Callable[[Shelf, str, float], Breaker]"
    project_aliases: Callable[[], Mapping[str, str]]
    mistyped: Callable[[str], Sequence[str]]
    persona: "Callable[[], tuple[Persona, str | None]]"
    repository: Callable[[str], str | None]
    writer: Callable[[], Writer | None]
    judge: Callable[[], Judge | None]
    export: Callable[[], None]
    progress: "Progress"
    clock: Callable[[], datetime]
    project: str | None = None
    """The folder of the project that asks."""

    def export_into(self, notes: list[str]) -> None:
        """Write the YAML files; a failure is a note (SPEC 3.8)."""
        try:
            self.export()
        except KrError as error:
            notes.append(f"export_failed: {error}")


class Run:
    """One request on its way through the nine steps. Step 1: it is valid; its budget and its clocks start here."""

    def __init__(
        self,
        request: ResearchRequest,
        policy: Policy,
        services: Services,
        *,
        include_report: bool,
        max_tokens: int | None = None,
    ) -> None:
        self._began = time.monotonic()
        self.policy = policy
        self.request = request
        self.query = _under_its_name(request.research_query, policy.aliases)
        self.started = services.clock()
        request_id = uuid.uuid4().hex
        self.owner = request_id
        self.row = RequestRow(
            id=request_id,
            at=to_text(self.started),
            mode="research",
            status="failure",
            story_key=request.story_key,
            session_id=request.session_id,
            framework=request.research_query.framework,
            framework_version=self.query.framework_version,
            topic=self.query.topic,
            question=self.query.question,
            tags=json.dumps(self.query.tags, ensure_ascii=False),
            project=services.project,
        )
        self.shelf = Shelf(services.store)
        self.cache = Cache(
            self.shelf,
            policy.limits,
            policy.rules,
            aliases=policy.aliases,
            more_aliases=services.project_aliases,
            clock=services.clock,
        )
        payer = Payer(
            request=self.row,
            session_id=request.session_id,
            story_key=request.story_key,
            owner=self.owner,
        )
        self.budget = LedgerBudget(
            self.shelf,
            payer,
            per_story=policy.per_story,
            max_calls=self.overrides.max_calls,
            clock=services.clock,
        )
        self.deadline = OverallDeadline(policy.overall_timeout)
        self.include_report = include_report
        self._max_tokens = max_tokens
        self.notes: list[str] = []
        self.errors: list[Problem] = []
        self.persona: str | None = None

    @property
    def overrides(self) -> ResearchOverrides:
        return self.request.config_overrides

    @property
    def asks_nobody(self) -> bool:
        """Whether the request leaves no call, to a source or to a model (SPEC 3.1, ``max_calls: 0``)."""
        return self.overrides.max_calls == 0

    def fitted(self, text: str) -> str:
        """Cut a text to what the caller wants to read at most."""
        return text if self._max_tokens is None else fit(text, self._max_tokens)[0]

    def add_error(self, error: KrError) -> None:
        problem = Problem(type=error.code, message=str(error))
        if problem not in self.errors:
            self.errors.append(problem)

    def duration_ms(self) -> int:
        return round((time.monotonic() - self._began) * 1000)


def _under_its_name(query: Query, aliases: Mapping[str, str]) -> Query:
    """Ask about a framework under the name that the configuration gives it: sources know that one."""
    names = {canonical(other): name for other, name in aliases.items()}
    name, seen = query.framework, set[str]()
    while (key := canonical(name)) in names and key not in seen:
        seen.add(key)
        name = names[key]
    return replace(query, framework=name)
