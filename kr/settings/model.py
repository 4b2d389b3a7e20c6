"""The configuration as pydantic models: keys, defaults, what is allowed, and a line of explanation each.

The keys are those of SPEC 7 and of the seeds' "Configuration Dependencies". The descriptions feed the
template of ``kr init`` and the reference.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, get_args

from pydantic import BeforeValidator

from kr.freshness import ARCHIVE_AFTER_DAYS, CACHE_TTL_DAYS
from kr.settings.kinds import one_of, shown, text, variable_name, web_address, whole, wrong, yes_no
from kr.settings.raw import DEFAULT_KNOWLEDGE_BASE
from kr.settings.section import Section, described, mapping_of
from kr.settings.servers import Server, Servers
from kr.source_kinds import CHAIN, DEFAULT_SERVERS
from kr.values import PHASES, TIERS, CacheMatch, Tier

_DAYS = 100_000  # 273 years: date arithmetic stays within the calendar
_REPOSITORY = r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}"

_PHASE = re.compile(r"(?!quarantined$)[a-z][a-z0-9-]{0,39}")

YesNo = Annotated[bool, BeforeValidator(yes_no())]


def _sources(value: object) -> object:
    if (
        not isinstance(value, list | tuple)
        or any(item not in CHAIN for item in value)
        or len(set(value)) < len(value)
    ):
        allowed = f"must be a list of {', '.join(CHAIN)}, each at most once"
        items = (
            ", ".join(shown(item) for item in value[:5]) if isinstance(value, list | tuple) else shown(value)
        )
        raise wrong(f"{allowed}, not {items}")
    return tuple(value)


Repositories = Annotated[
    Mapping[str, str],
    BeforeValidator(mapping_of(text("owner/repo as on GitHub", pattern=_REPOSITORY))),
]


def _phases(value: object) -> object:
    if not isinstance(value, list | tuple) or not all(
        isinstance(item, str) and _PHASE.fullmatch(item) for item in value
    ):
        raise wrong(f"must be a list of tags in small letters, digits and dashes, not {shown(value)}")
    return tuple(value)


class CircuitBreaker(Section):
    """When a source that keeps failing is left alone (SPEC 3.5)."""

    failures: Annotated[int, BeforeValidator(whole(0, 1000))] = described(
        3, "Failures in a row after which a source is skipped; 0 turns it off."
    )
    pause_seconds: Annotated[int, BeforeValidator(whole(1, 900))] = described(
        60, "The first pause; it doubles up to 15 minutes."
    )


class WebSearch(Section):
    """The provider of the source ``web_search``."""

    provider: Annotated[
        Literal["auto", "searxng", "brave", "tavily", "duckduckgo"],
        BeforeValidator(one_of("auto", "searxng", "brave", "tavily", "duckduckgo")),
    ] = described("auto", "searxng, brave, tavily, duckduckgo, or auto: what is configured.")
    url: Annotated[str | None, BeforeValidator(web_address(nullable=True))] = described(
        None, "The address of your SearXNG, or another base URL of the provider; ${VAR} expands.", repr=False
    )
    api_key_env: Annotated[str | None, BeforeValidator(variable_name())] = described(
        None, "The environment variable that holds the provider's key."
    )
    allow_private_addresses: YesNo = described(
        False, "Whether a result or redirect on a private address may be read."
    )


class LanguageModel(Section):
    """The OpenAI-compatible endpoint of ``synthesis: llm``."""

    base_url: Annotated[str | None, BeforeValidator(web_address(nullable=True))] = described(
        None, "The endpoint's base URL.", repr=False
    )
    model: Annotated[str | None, BeforeValidator(text(nullable=True))] = described(None, "The model's name.")
    api_key_env: Annotated[str | None, BeforeValidator(variable_name())] = described(
        None, "The environment variable that holds its key."
    )


class Embeddings(Section):
    """The OpenAI-compatible server that turns a need into a vector (SPEC 3.2)."""

    base_url: Annotated[str | None, BeforeValidator(web_address(nullable=True))] = described(
        None, "The server's base URL, Ollama's for example; ${VAR} expands.", repr=False
    )
    model: Annotated[str | None, BeforeValidator(text(nullable=True))] = described(
        None, "The name of the model of embeddings."
    )
    api_key_env: Annotated[str | None, BeforeValidator(variable_name())] = described(
        None, "The environment variable that holds its key."
    )


class KnowledgeResearch(Section):
    """The section ``knowledge_research``."""

    enabled: YesNo = described(True, "Whether research and injection are done at all.")
    knowledge_base_path: Annotated[str, BeforeValidator(text("the path of a folder"))] = described(
        DEFAULT_KNOWLEDGE_BASE,
        "The shared folder; relative to the project. {project-root} and {output_folder} expand.",
    )
    cache_ttl_days: Annotated[int, BeforeValidator(whole(0, _DAYS))] = described(
        CACHE_TTL_DAYS, "An entry that was not read for more days than this is stale."
    )
    archive_after_days: Annotated[int, BeforeValidator(whole(0, _DAYS))] = described(
        ARCHIVE_AFTER_DAYS, "An entry that was not read for more days than this is archived."
    )
    max_age_days: Annotated[int | None, BeforeValidator(whole(0, _DAYS, nullable=True))] = described(
        None,
        "An entry that was researched more days ago than this is stale, however often it is read; null: off.",
    )
    max_entries: Annotated[int, BeforeValidator(whole(1, 1_000_000))] = described(
        200, "Live entries at most; the least recently read go to the archive."
    )
    max_calls_per_story: Annotated[int, BeforeValidator(whole(0, 1000))] = described(
        3, "Answers of sources that one story may have; 0: none."
    )
    timeout_seconds: Annotated[int, BeforeValidator(whole(1, 86_400))] = described(
        600, "How long one call to a source may take."
    )
    cache_fuzzy_match: YesNo = described(
        True, "Whether similar topics and shared tags match; false: equal topics only."
    )
    cache_match: Annotated[CacheMatch, BeforeValidator(one_of(*get_args(CacheMatch)))] = described(
        "balanced",
        "How sure a match must be: strict, balanced, or seed (the plain rule: any shared tag, or a similar topic).",
    )
    cache_match_floor: Annotated[Tier | None, BeforeValidator(one_of(*reversed(TIERS), nullable=True))] = (
        described(
            None,
            "The weakest tier that counts, in every mode; null: framework+tags with seed, none in the other modes.",
        )
    )
    aliases: Annotated[Mapping[str, str], BeforeValidator(mapping_of(text("the name of a framework")))] = (
        described({}, "Other names of frameworks, which match as the framework itself: {nuxtjs: nuxt}.")
    )
    embeddings: Embeddings = described(
        Embeddings(),
        "A server of embeddings, whose similarity is one more piece of evidence once kr calibrate was run.",
    )
    report_max_tokens: Annotated[int, BeforeValidator(whole(200, 64_000))] = described(
        3000, "How long a report may be, in tokens of four characters."
    )
    sources: Annotated[tuple[str, ...], BeforeValidator(_sources)] = described(
        CHAIN,
        "The sources, in the order they are asked; with [] the fallback is still asked, unless it is null.",
    )
    fallback_if_mcp_unavailable: Annotated[str | None, BeforeValidator(one_of(*CHAIN, nullable=True))] = (
        described("web_search", "Asked after them when no MCP server answered; null: none.")
    )
    lessons_injection_budget: Annotated[int, BeforeValidator(whole(0, 1000))] = described(
        10, "Lessons that one agent is given at most."
    )
    lessons_phases: Annotated[tuple[str, ...], BeforeValidator(_phases)] = described(
        (),
        "Phases beside the five that kr brings, for lessons of stages of your own: [release, security-review].",
    )
    lessons_distiller: Annotated[Literal["rules", "llm"], BeforeValidator(one_of("rules", "llm"))] = (
        described(
            "rules", "Who words a lesson: rules, or the language model of llm, whose answer is checked (llm)."
        )
    )
    auto_export: YesNo = described(
        True, "Whether index.yaml and _archived-index.yaml are written after each change."
    )
    local_docs: YesNo = described(
        True, "Whether the installed package's own documentation is read when no source answered."
    )
    circuit_breaker: CircuitBreaker = described(
        CircuitBreaker(), "When a source that keeps failing is left alone."
    )
    repositories: Repositories = described(
        {}, "The GitHub repository of a framework, for DeepWiki: {vue: vuejs/core}."
    )
    servers: Servers = described(
        {name: Server(url=url) for name, url in DEFAULT_SERVERS.items()},
        "The MCP servers, as mcpServers has them; one named here replaces the default of its name, null takes it away.",
        repr=False,
    )
    web_search: WebSearch = described(WebSearch(), "The provider of web searches.")
    synthesis: Annotated[Literal["extractive", "llm"], BeforeValidator(one_of("extractive", "llm"))] = (
        described(
            "extractive",
            "Who writes a report's text: the passages themselves (extractive), or a language model (llm).",
        )
    )
    llm: LanguageModel = described(LanguageModel(), "The OpenAI-compatible endpoint for llm.")

    @property
    def phases(self) -> tuple[str, ...]:
        """The legal phase tags: the seed's five, and those that the configuration adds."""
        return tuple(dict.fromkeys((*PHASES, *self.lessons_phases)))


class RoleMapping(Section):
    """The section ``role_mapping``, as far as it is kr's."""

    knowledge_researcher_persona: Annotated[str, BeforeValidator(text("the id or path of a persona"))] = (
        described("bmad:bmm:agents:architect", "The persona whose principles guide the research.")
    )


class AgentTimeouts(Section):
    """The mapping ``defaults.agent_timeout_seconds``; other agents' timeouts are not kr's."""

    knowledge_research: Annotated[int, BeforeValidator(whole(1, 86_400))] = described(
        600, "How long one invocation may take altogether."
    )


class Defaults(Section):
    """The section ``defaults``, as far as it is kr's."""

    parallel: Annotated[int, BeforeValidator(whole(1, 10_000))] = described(
        1, "Agents at work at once; reported only, for the database serializes writers whatever it says."
    )
    max_review_rounds: Annotated[int, BeforeValidator(whole(1, 10_000))] = described(
        10, "Review rounds after which a lesson is recorded."
    )
    max_story_review_rounds: Annotated[int, BeforeValidator(whole(1, 10_000))] = described(
        3, "The same for the review of stories."
    )
    agent_timeout_seconds: AgentTimeouts = described(AgentTimeouts(), "Timeouts by agent.")
    agent_timeout_action: Annotated[str, BeforeValidator(text())] = described(
        "mark_needs_intervention", "What the orchestrator does with an agent that timed out."
    )


class E2EInspection(Section):
    """The section ``e2e_inspection``."""

    enabled: YesNo = described(True, "Whether failures of end-to-end inspection become lessons.")


class Configuration(Section):
    """The whole file, as far as it is kr's."""

    knowledge_research: KnowledgeResearch = described(KnowledgeResearch(), "The knowledge cache.")
    role_mapping: RoleMapping = described(RoleMapping(), "Which persona plays which role.")
    defaults: Defaults = described(Defaults(), "What the orchestrator shares with its agents.")
    e2e_inspection: E2EInspection = described(E2EInspection(), "End-to-end inspection.")
