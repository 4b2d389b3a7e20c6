"""The configuration as pydantic models: keys, defaults, what is allowed, and a line of explanation each.

The keys are those of SPEC 7 and of the seeds' "Configuration Dependencies". The descriptions feed the
template of ``kr init`` and the reference.
"""

import re
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, model_validator

from kr.settings.kinds import (
    Kind,
    header_value,
    one_of,
    shown,
    text,
    variable_name,
    variable_value,
    web_address,
    whole,
    wrong,
    yes_no,
)
from kr.settings.raw import DEFAULT_KNOWLEDGE_BASE

SourceName = Literal["context7", "deepwiki", "web_search"]
SOURCES: tuple[SourceName, ...] = ("context7", "deepwiki", "web_search")
DEFAULT_SERVERS = {
    "context7": "https://mcp.context7.com/mcp",
    "deepwiki": "https://mcp.deepwiki.com/mcp",
}
_DAYS = 100_000  # 273 years: date arithmetic stays within the calendar
_REPOSITORY = r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/[A-Za-z0-9._-]{1,100}"
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def _field(default: Any, description: str, **kwargs: Any) -> Any:
    return Field(default, description=description, **kwargs)


YesNo = Annotated[bool, BeforeValidator(yes_no())]


class Section(BaseModel):
    """A mapping of the file. A key with nothing after it holds no keys; unknown keys are ignored here."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    @model_validator(mode="before")
    @classmethod
    def _is_mapping(cls, data: object) -> object:
        if data is None:
            return {}
        if not isinstance(data, dict | cls):
            raise wrong(f"must be a mapping, not {shown(data)}")
        return data


def _mapping_of(kind: Kind) -> Callable[[object], object]:
    """Check every value of a mapping, naming the key that holds a wrong one."""

    def read(value: object) -> object:
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise wrong(f"must be a mapping, not {shown(value)}")
        for key, item in value.items():
            try:
                kind(item)
            except ValueError as exc:
                raise wrong(f"has a wrong value for {shown(key)}: {exc}") from exc
        return value

    return read


def _list_of_text(value: object) -> object:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise wrong("must be a list of texts")
    return tuple(value)


def _sources(value: object) -> object:
    if (
        not isinstance(value, list | tuple)
        or any(item not in SOURCES for item in value)
        or len(set(value)) < len(value)
    ):
        allowed = f"must be a list of {', '.join(SOURCES)}, each at most once"
        items = ", ".join(shown(item) for item in value) if isinstance(value, list | tuple) else shown(value)
        raise wrong(f"{allowed}, not {items}")
    return tuple(value)


def _header_names(headers: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
    for name in headers:
        if _HEADER.fullmatch(name) is None:
            raise wrong(f"has a name that no header can have: {shown(name)}")
    return headers


def _variable_names(env: Mapping[str, SecretStr]) -> Mapping[str, SecretStr]:
    for name in env:
        if not name or "=" in name or not name.isprintable():
            raise wrong(f"has a name that no environment variable can have: {shown(name)}")
    return env


Headers = Annotated[
    Mapping[str, SecretStr], BeforeValidator(_mapping_of(header_value())), AfterValidator(_header_names)
]
Variables = Annotated[
    Mapping[str, SecretStr], BeforeValidator(_mapping_of(variable_value())), AfterValidator(_variable_names)
]
Repositories = Annotated[
    Mapping[str, str],
    BeforeValidator(_mapping_of(text("owner/repo as on GitHub", pattern=_REPOSITORY))),
]


class CircuitBreaker(Section):
    """When a source that keeps failing is left alone (SPEC 3.5)."""

    failures: Annotated[int, BeforeValidator(whole(0, 1000))] = _field(
        3, "Failures in a row after which a source is skipped; 0 turns it off."
    )
    pause_seconds: Annotated[int, BeforeValidator(whole(1, 900))] = _field(
        60, "The first pause; it doubles up to 15 minutes."
    )


class Server(Section):
    """One MCP server, in the ecosystem's mcpServers form: ``url`` and ``headers``, or ``command``."""

    type: Annotated[
        str | None,
        BeforeValidator(one_of("http", "streamable-http", "streamable_http", "stdio", nullable=True)),
    ] = _field(None, "Accepted as other programs write it; url or command decides.")
    url: Annotated[str | None, BeforeValidator(web_address(nullable=True))] = _field(
        None, "Where the server answers over streamable HTTP; ${VAR} expands.", repr=False
    )
    headers: Headers = _field(
        {},
        "Headers sent to url; ${VAR} expands, and a header whose variable is not set is left out.",
        repr=False,
    )
    command: Annotated[str | None, BeforeValidator(text("a program", nullable=True))] = _field(
        None, "A program that speaks MCP over standard input and output."
    )
    args: Annotated[tuple[str, ...], BeforeValidator(_list_of_text)] = _field(
        (), "The program's arguments.", repr=False
    )
    env: Variables = _field(
        {},
        "The program's additional environment; ${VAR} expands, and a variable whose own is not set is left out.",
        repr=False,
    )

    @model_validator(mode="after")
    def _one_way(self) -> "Server":
        if (self.url is None) == (self.command is None):
            raise wrong("must have either url or command")
        if self.url is not None and (self.args or self.env):
            raise wrong("has args or env, which go with command, beside url")
        if self.command is not None and self.headers:
            raise wrong("has headers, which go with url, beside command")
        return self


def _with_default_servers(value: object) -> object:
    """Let a server in the file replace the default of its name, null remove it, and headers alone keep its URL."""
    if value is None:
        value = {}
    if not isinstance(value, dict):
        raise wrong(f"must be a mapping, not {shown(value)}")
    servers: dict[str, object] = {name: {"url": url} for name, url in DEFAULT_SERVERS.items()}
    for name, server in value.items():
        if (
            isinstance(server, dict)
            and name in DEFAULT_SERVERS
            and server.keys().isdisjoint({"url", "command"})
        ):
            server = {"url": DEFAULT_SERVERS[name], **server}  # noqa: PLW2901 - the same server, completed
        servers[name] = server
    return {name: server for name, server in servers.items() if server is not None}


class WebSearch(Section):
    """The provider of the source ``web_search``."""

    provider: Annotated[
        Literal["auto", "searxng", "brave", "tavily", "duckduckgo"],
        BeforeValidator(one_of("auto", "searxng", "brave", "tavily", "duckduckgo")),
    ] = _field("auto", "searxng, brave, tavily, duckduckgo, or auto: what is configured.")
    url: Annotated[str | None, BeforeValidator(web_address(nullable=True))] = _field(
        None, "The address of your SearXNG, or another base URL of the provider; ${VAR} expands.", repr=False
    )
    api_key_env: Annotated[str | None, BeforeValidator(variable_name())] = _field(
        None, "The environment variable that holds the provider's key."
    )
    allow_private_addresses: YesNo = _field(
        False, "Whether a result or redirect on a private address may be read."
    )


class LanguageModel(Section):
    """The OpenAI-compatible endpoint of ``synthesis: llm``."""

    base_url: Annotated[str | None, BeforeValidator(web_address(nullable=True))] = _field(
        None, "The endpoint's base URL.", repr=False
    )
    model: Annotated[str | None, BeforeValidator(text(nullable=True))] = _field(None, "The model's name.")
    api_key_env: Annotated[str | None, BeforeValidator(variable_name())] = _field(
        None, "The environment variable that holds its key."
    )


class KnowledgeResearch(Section):
    """The section ``knowledge_research``."""

    enabled: YesNo = _field(True, "Whether research and injection are done at all.")
    knowledge_base_path: Annotated[str, BeforeValidator(text("the path of a folder"))] = _field(
        DEFAULT_KNOWLEDGE_BASE,
        "The shared folder; relative to the project. {project-root} and {output_folder} expand.",
    )
    cache_ttl_days: Annotated[int, BeforeValidator(whole(0, _DAYS))] = _field(
        30, "An entry that was not read for more days than this is stale."
    )
    archive_after_days: Annotated[int, BeforeValidator(whole(0, _DAYS))] = _field(
        60, "An entry that was not read for more days than this is archived."
    )
    max_age_days: Annotated[int | None, BeforeValidator(whole(0, _DAYS, nullable=True))] = _field(
        None,
        "An entry that was researched more days ago than this is stale, however often it is read; null: off.",
    )
    max_entries: Annotated[int, BeforeValidator(whole(1, 1_000_000))] = _field(
        200, "Live entries at most; the least recently read go to the archive."
    )
    max_calls_per_story: Annotated[int, BeforeValidator(whole(0, 1000))] = _field(
        3, "Answers of sources that one story may have; 0: none."
    )
    timeout_seconds: Annotated[int, BeforeValidator(whole(1, 86_400))] = _field(
        600, "How long one call to a source may take."
    )
    cache_fuzzy_match: YesNo = _field(
        True, "Whether similar topics and shared tags match; false: equal topics only."
    )
    cache_match_floor: Annotated[
        Literal["framework+tags", "framework+topic", "framework+topic+tags"],
        BeforeValidator(one_of("framework+tags", "framework+topic", "framework+topic+tags")),
    ] = _field(
        "framework+tags",
        "The weakest match that counts: framework+tags, framework+topic or framework+topic+tags.",
    )
    sources: Annotated[tuple[SourceName, ...], BeforeValidator(_sources)] = _field(
        SOURCES, "The sources, in the order they are asked; [] asks none."
    )
    fallback_if_mcp_unavailable: Annotated[
        SourceName | None, BeforeValidator(one_of(*SOURCES, nullable=True))
    ] = _field("web_search", "Asked after them when no MCP server answered; null: none.")
    lessons_injection_budget: Annotated[int, BeforeValidator(whole(0, 1000))] = _field(
        10, "Lessons that one agent is given at most."
    )
    auto_export: YesNo = _field(
        True, "Whether index.yaml and _archived-index.yaml are written after each change."
    )
    local_docs: YesNo = _field(
        True, "Whether the installed package's own documentation is read when no source answered."
    )
    circuit_breaker: CircuitBreaker = _field(
        CircuitBreaker(), "When a source that keeps failing is left alone."
    )
    repositories: Repositories = _field(
        {}, "The GitHub repository of a framework, for DeepWiki: {vue: vuejs/core}."
    )
    servers: Annotated[Mapping[str, Server], BeforeValidator(_with_default_servers)] = _field(
        {name: Server(url=url) for name, url in DEFAULT_SERVERS.items()},
        "The MCP servers, as mcpServers has them; one that is named here replaces the default of its name.",
        repr=False,
    )
    web_search: WebSearch = _field(WebSearch(), "The provider of web searches.")
    synthesis: Annotated[Literal["extractive", "llm"], BeforeValidator(one_of("extractive", "llm"))] = _field(
        "extractive",
        "Who writes a report's text: the passages themselves (extractive), or a language model (llm).",
    )
    llm: LanguageModel = _field(LanguageModel(), "The OpenAI-compatible endpoint for llm.")


class RoleMapping(Section):
    """The section ``role_mapping``, as far as it is kr's."""

    knowledge_researcher_persona: Annotated[str, BeforeValidator(text("the id or path of a persona"))] = (
        _field("bmad:bmm:agents:architect", "The persona whose principles guide the research.")
    )


class AgentTimeouts(Section):
    """The mapping ``defaults.agent_timeout_seconds``; other agents' timeouts are not kr's."""

    knowledge_research: Annotated[int, BeforeValidator(whole(1, 86_400))] = _field(
        600, "How long one invocation may take altogether."
    )


class Defaults(Section):
    """The section ``defaults``, as far as it is kr's."""

    parallel: Annotated[int, BeforeValidator(whole(1, 10_000))] = _field(
        1, "Agents at work at once; reported only, for the database serializes writers whatever it says."
    )
    max_review_rounds: Annotated[int, BeforeValidator(whole(1, 10_000))] = _field(
        10, "Review rounds after which a lesson is recorded."
    )
    max_story_review_rounds: Annotated[int, BeforeValidator(whole(1, 10_000))] = _field(
        3, "The same for the review of stories."
    )
    agent_timeout_seconds: AgentTimeouts = _field(AgentTimeouts(), "Timeouts by agent.")
    agent_timeout_action: Annotated[str, BeforeValidator(text())] = _field(
        "mark_needs_intervention", "What the orchestrator does with an agent that timed out."
    )


class E2EInspection(Section):
    """The section ``e2e_inspection``."""

    enabled: YesNo = _field(True, "Whether failures of end-to-end inspection become lessons.")


class Configuration(Section):
    """The whole file, as far as it is kr's."""

    knowledge_research: KnowledgeResearch = _field(KnowledgeResearch(), "The knowledge cache.")
    role_mapping: RoleMapping = _field(RoleMapping(), "Which persona plays which role.")
    defaults: Defaults = _field(Defaults(), "What the orchestrator shares with its agents.")
    e2e_inspection: E2EInspection = _field(E2EInspection(), "End-to-end inspection.")
