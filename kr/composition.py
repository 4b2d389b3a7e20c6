"""Builds the researcher from the settings: the sources, the persona, the policy."""

import os
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from kr.errors import KrError, SourceFailure, SourceNotAsked
from kr.freshness import Limits
from kr.research.run import Judge, Policy, Services, SourceSet, Writer
from kr.research.service import ResearchService
from kr.research.shelf import Shelf
from kr.settings import Settings
from kr.store import entries
from kr.store.engine import Store
from kr.transfer import export_wanted
from kr.values import Answer, MatchRules, Query

if TYPE_CHECKING:
    from pathlib import Path

    from _typeshed import StrPath

    from kr.research.chain import Breaker, Progress
    from kr.research.explain import Rules
    from kr.research.findings import Findings
    from kr.research.persona import Persona
    from kr.research.synthesis import Synthesis
    from kr.sources.base import Source
    from kr.sources.model_server import LanguageModel

_PROBE_SECONDS = 20.0
_AROUND_A_CALL = 15.0
"""Seconds that a probe may take beyond the call itself: for its imports, and for ending its session."""


def build_research(
    settings: Settings,
    store: Store,
    *,
    environ: Mapping[str, str],
    cwd: "StrPath",
    progress: "Progress",
    clock: Callable[[], datetime],
) -> ResearchService:
    """Build what answers research requests. Nothing is asked, opened or loaded yet."""

    def sources() -> SourceSet:
        from kr.sources.base import build_source

        config = settings.knowledge_research
        fallback, root = config.fallback_if_mcp_unavailable, settings.project_root
        return SourceSet(
            chain=[build_source(name, config, environ, root) for name in config.sources],
            fallback=build_source(fallback, config, environ, root) if fallback else None,
            local_docs=_local_docs(settings, environ, cwd),
        )

    services = Services(
        store=store,
        sources=sources,
        breaker=partial(_breaker, settings, clock),
        project_aliases=lambda: _project_aliases(settings, cwd),
        mistyped=lambda framework: mistyped(settings, store, cwd, framework),
        persona=lambda: _persona(settings, environ),
        repository=lambda framework: _repository(settings, environ, cwd, framework),
        writer=lambda: _writer(settings, environ),
        judge=lambda: _judge(settings, environ),
        export=export_wanted(settings, store),
        progress=progress,
        clock=clock,
        project=os.fspath(cwd),
    )
    return ResearchService(_policy(settings), services)


def limits_of(settings: Settings) -> Limits:
    """Return the ages at which entries become stale, and are archived."""
    config = settings.knowledge_research
    return Limits(
        ttl_days=config.cache_ttl_days,
        archive_after_days=config.archive_after_days,
        max_age_days=config.max_age_days,
    )


def _policy(settings: Settings) -> Policy:
    config = settings.knowledge_research
    return Policy(
        knowledge_base=os.fspath(settings.knowledge_base),
        limits=limits_of(settings),
        rules=MatchRules(
            mode=config.cache_match, floor=config.cache_match_floor, fuzzy=config.cache_fuzzy_match
        ),
        aliases=config.aliases,
        per_story=config.max_calls_per_story,
        overall_timeout=settings.overall_timeout,
        timeout=lambda: config.timeout_seconds,
        report_tokens=lambda: config.report_max_tokens,
    )


def build_findings(
    settings: Settings,
    store: Store,
    *,
    version_of: Callable[[str], str],
    cwd: "StrPath",
    clock: Callable[[], datetime],
) -> "Findings":
    """Build what saves findings and takes ratings."""
    from kr.research.findings import Findings
    from kr.research.lookup import Cache

    policy, export = _policy(settings), export_wanted(settings, store)
    cache = Cache(
        Shelf(store),
        policy.limits,
        policy.rules,
        aliases=policy.aliases,
        more_aliases=dict,
        clock=clock,
    )

    def export_into(notes: list[str]) -> None:
        try:
            export()
        except KrError as error:
            notes.append(f"export_failed: {error}")

    return Findings(
        store,
        cache,
        version_of=version_of,
        export=export_into,
        clock=clock,
        project=os.fspath(cwd),
    )


def explain_rules(settings: Settings) -> "Rules":
    """Give the settings that decide what is served, for ``kr explain``."""
    from kr.research.explain import Rules

    policy = _policy(settings)
    return Rules(limits=policy.limits, match=policy.rules, aliases=policy.aliases)


def _language_model(settings: Settings, environ: Mapping[str, str]) -> "LanguageModel | None":
    config = settings.knowledge_research.llm
    if config.base_url is None or config.model is None:
        return None
    from kr.sources.model_server import LanguageModel

    return LanguageModel(
        base_url=config.base_url,
        model=config.model,
        api_key=config.key_of(environ),
        api_key_env=config.api_key_env,
    )


def _needed_model(settings: Settings, environ: Mapping[str, str]) -> "LanguageModel":
    model = _language_model(settings, environ)
    if model is None:
        raise SourceNotAsked("not configured (knowledge_research.llm.base_url and llm.model)")
    return model


def build_probes(
    settings: Settings, environ: Mapping[str, str]
) -> "tuple[list[Source], list[tuple[str, Callable[[], object]]]]":
    """Build what ``kr doctor --online`` asks: the sources, and the models that are configured, by their settings' name."""
    from kr.sources.base import build_source

    config = settings.knowledge_research
    names = dict.fromkeys([*config.sources, *filter(None, [config.fallback_if_mcp_unavailable])])
    models: list[tuple[str, Callable[[], object]]] = []
    if (llm := _language_model(settings, environ)) is not None:
        models.append(("llm", lambda: llm.write("Answer with one word.", "Say yes.", timeout=_PROBE_SECONDS)))
    return [build_source(name, config, environ, settings.project_root) for name in names], models


def _breaker(
    settings: Settings, clock: Callable[[], datetime], shelf: Shelf, owner: str, timeout: float
) -> "Breaker":
    from kr.research.chain import Breaker

    config = settings.knowledge_research.circuit_breaker
    return Breaker(
        shelf,
        owner,
        failures=config.failures,
        pause_seconds=config.pause_seconds,
        probe_seconds=timeout + _AROUND_A_CALL,
        clock=clock,
    )


def _local_docs(settings: Settings, environ: Mapping[str, str], cwd: "StrPath") -> "Source | None":
    if not settings.knowledge_research.local_docs:
        return None
    from kr.sources.local_docs import LocalDocs

    return LocalDocs(_projects(settings, cwd), environ)


def _projects(settings: Settings, cwd: "StrPath") -> "tuple[Path, ...]":
    """The projects whose packages count: where we are, then where the configuration is (SPEC 3.5.5)."""
    from pathlib import Path

    here = Path(cwd)
    is_elsewhere = settings.config_file is not None and settings.project_root.resolve() != here.resolve()
    return (here, settings.project_root) if is_elsewhere else (here,)


def _project_aliases(settings: Settings, cwd: "StrPath") -> Mapping[str, str]:
    from kr.packages.versions import project_aliases

    # Of two projects, what the working directory's says counts.
    found = (project_aliases(project) for project in reversed(_projects(settings, cwd)))
    return {name: package for aliases in found for name, package in aliases.items()}


def mistyped(settings: Settings, store: Store, cwd: "StrPath", framework: str) -> list[str]:
    """Return the frameworks of the cache and the project of which a name that neither knows may be a typing error."""
    from kr.frameworks import is_usual_name, same_framework
    from kr.frameworks import mistyped as of_known
    from kr.packages.versions import find_dependencies

    if is_usual_name(framework):
        return []
    nothing: list[str] = []
    known = Shelf(store).read(entries.frameworks, nothing) if store.exists() else nothing
    if any(same_framework(framework, name) for name in known):
        return []
    declared = (find_dependencies(project).dependencies for project in _projects(settings, cwd))
    return of_known(framework, [*known, *(row.framework for rows in declared for row in rows if row.direct)])


def _persona(settings: Settings, environ: Mapping[str, str]) -> tuple["Persona", str | None]:
    from pathlib import Path

    from kr.research.persona import chosen_persona

    return chosen_persona(settings, Path(environ.get("HOME") or "/nonexistent"))


def _repository(settings: Settings, environ: Mapping[str, str], cwd: "StrPath", framework: str) -> str | None:
    """Find a framework's ``owner/repo``: configured, or told by the installed package (SPEC 3.5.2)."""
    from kr.naming import fold
    from kr.packages.installed import find_installed

    for name, repository in settings.knowledge_research.repositories.items():
        if fold(name) == fold(framework):
            return repository
    for package in find_installed(framework, _projects(settings, cwd), environ):
        if package.repository:
            return package.repository
    return None


def depends_on(
    settings: Settings, environ: Mapping[str, str], cwd: "StrPath", framework: str
) -> tuple[str, ...]:
    """Return the packages that a framework's installed package depends on: their lessons fit, too (SPEC 4.1)."""
    from kr.packages.installed import find_installed

    found = find_installed(framework, _projects(settings, cwd), environ)
    return tuple(dict.fromkeys(name for package in found for name in package.requires))


def _writer(settings: Settings, environ: Mapping[str, str]) -> Writer | None:
    """Let a language model write the text, where the settings want it (SPEC 3.7)."""
    if settings.knowledge_research.synthesis != "llm":
        return None

    def write(query: Query, answer: Answer, persona: "Persona", *, timeout: float) -> "Synthesis":
        from kr.research.synthesis import read_reply, system_prompt, user_prompt

        model = _needed_model(settings, environ)
        reply = model.write(system_prompt(persona), user_prompt(query, answer), timeout=timeout)
        written = read_reply(reply, model.model)
        if written is None:
            raise SourceFailure("the language model's answer is empty")
        return written

    return write


def _judge(settings: Settings, environ: Mapping[str, str]) -> Judge | None:
    """Let a language model choose among candidates, where the settings want it (SPEC 3.2)."""
    if settings.knowledge_research.judge != "llm":
        return None

    def judge(system: str, user: str, *, timeout: float) -> str:
        return _needed_model(settings, environ).write(system, user, timeout=timeout, temperature=0.0)

    return judge
