"""What one request of research carries along, and what all of them share."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from kr.contracts.envelopes import Problem
from kr.contracts.requests import ResearchOverrides, ResearchRequest
from kr.errors import KrError
from kr.freshness import Limits
from kr.matching.frameworks import canonical
from kr.reports.persona import Persona
from kr.reports.report import Synthesis
from kr.research.budget import LedgerBudget, Payer
from kr.research.cache import Cache
from kr.research.chain import Breaker, Progress
from kr.research.overall_deadline import OverallDeadline
from kr.research.shelf import Shelf
from kr.sources.base import Source
from kr.store.owners import make_owner
from kr.store.store import Store
from kr.values import Answer, MatchRules, Query, replace

if TYPE_CHECKING:
    from kr.research.meaning import Meaning


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The settings that research goes by. Times are seconds; ``knowledge_base`` is an absolute path.

    ``aliases`` are other names of frameworks; ``limits.configured_sources`` is kept with every report.
    """

    knowledge_base: Path
    limits: Limits
    rules: MatchRules
    aliases: Mapping[str, str]
    per_story: int
    timeout: float
    overall_timeout: float
    report_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSet:
    """``chain`` in order; ``fallback`` and ``local_docs`` are asked as SPEC 3.5 says, if given."""

    chain: Sequence[Source]
    fallback: Source | None
    local_docs: Source | None


class Writer(Protocol):
    """Writes a report's text from what the sources gave."""

    def __call__(self, query: Query, answer: Answer, persona: Persona, *, timeout: float) -> Synthesis:
        """Write, or raise ``SourceFailure``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What research works with, built once by the composition root.

    ``sources`` builds the chain when it is needed: a hit asks nobody. ``breaker`` is made for an owner whose
    calls take so many seconds at most.
    ``meaning`` makes what asks a model of embeddings for an owner, or nothing where none is configured.
    ``project_aliases`` reads the other names of frameworks that the project's dependency files tell.
    ``persona`` loads the persona and tells what went wrong; ``repository`` knows a framework's ``owner/repo``;
    ``writer`` writes Summary and Details from the sources, where a language model is wanted.
    ``export`` writes the YAML files and raises ``KrError`` when it can't.
    """

    store: Store
    sources: Callable[[], SourceSet]
    breaker: Callable[[Shelf, str, float], Breaker]
    meaning: "Callable[[Shelf, str], Meaning | None]"
    project_aliases: Callable[[], Mapping[str, str]]
    persona: Callable[[], tuple[Persona, str | None]]
    repository: Callable[[str], str | None]
    writer: Writer | None
    export: Callable[[], None] | None
    progress: Progress
    clock: Callable[[], datetime]


@dataclass(slots=True)
class Run:
    """One request on its way through the nine steps."""

    request: ResearchRequest
    query: Query
    id: str
    owner: str
    started: datetime
    shelf: Shelf
    cache: Cache
    budget: LedgerBudget
    deadline: OverallDeadline
    timeout: float
    knowledge_base: Path
    include_report: bool
    notes: list[str] = field(default_factory=list)
    errors: list[Problem] = field(default_factory=list)
    persona: str | None = None
    _began: float = field(default_factory=time.monotonic)

    @classmethod
    def begin(
        cls, request: ResearchRequest, policy: Policy, services: Services, *, include_report: bool
    ) -> "Run":
        """Step 1: the request is valid; its budget and its clocks start here."""
        overrides = request.config_overrides
        shelf = Shelf(services.store)
        run_id = uuid.uuid4().hex
        owner = make_owner()
        payer = Payer(
            request_id=run_id, session_id=request.session_id, story_key=request.story_key, owner=owner
        )
        return cls(
            request=request,
            query=_under_its_name(request.research_query, policy.aliases),
            id=run_id,
            owner=owner,
            started=services.clock(),
            shelf=shelf,
            cache=Cache(
                shelf,
                policy.limits,
                policy.rules,
                aliases=policy.aliases,
                more_aliases=services.project_aliases,
                meaning=services.meaning(shelf, owner),
                clock=services.clock,
            ),
            budget=LedgerBudget(
                shelf,
                payer,
                per_story=policy.per_story,
                max_calls=overrides.max_calls,
                clock=services.clock,
            ),
            deadline=OverallDeadline(policy.overall_timeout),
            timeout=overrides.timeout_seconds or policy.timeout,
            knowledge_base=policy.knowledge_base,
            include_report=include_report,
        )

    @property
    def overrides(self) -> ResearchOverrides:
        """What the request says of itself."""
        return self.request.config_overrides

    def add_error(self, error: KrError) -> None:
        """Tell an error in the answer, once."""
        problem = Problem(type=error.code, message=str(error))
        if problem not in self.errors:
            self.errors.append(problem)

    def duration_ms(self) -> int:
        """Whole milliseconds since the run began."""
        return round((time.monotonic() - self._began) * 1000)


def _under_its_name(query: Query, aliases: Mapping[str, str]) -> Query:
    """Ask about a framework under the name that the configuration gives it: sources know that one."""
    names = {canonical(other): name for other, name in aliases.items()}
    name, seen = query.framework, set[str]()
    while (key := canonical(name)) in names and key not in seen:
        seen.add(key)
        name = names[key]
    return replace(query, framework=name)
