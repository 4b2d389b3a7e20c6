"""The configuration: keys, what is allowed, defaults, and a line of explanation each.

The keys are those of SPEC 7 and of the seeds' "Configuration Dependencies". The descriptions feed the
template of ``kr init`` (``render_config``) and the reference.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from kr.freshness import ARCHIVE_AFTER_DAYS, CACHE_TTL_DAYS
from kr.settings import DEFAULT_KNOWLEDGE_BASE
from kr.settings.kinds import (
    Key,
    Problem,
    Section,
    Wrong,
    header_value,
    key,
    list_of,
    mapping_of,
    one_of,
    section,
    shown,
    text,
    variable_name,
    variable_value,
    web_address,
    whole,
    wrong,
    yes_no,
)
from kr.source_kinds import CHAIN, DEFAULT_SERVERS, SOURCES
from kr.values import PHASES, TIERS, CacheMatch, Tier

_DAYS = 100_000  # 273 years: date arithmetic stays within the calendar
_REPOSITORY = r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}"

_PHASE = re.compile(r"(?!quarantined$)[a-z][a-z0-9-]{0,39}")


_OWN_NAME = re.compile(r"[a-z][a-z0-9_-]{0,39}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnSource:
    """A source of one's own in ``sources``: a ``tool`` of an MCP ``server``, or a ``folder`` of documents about ``framework`` (SPEC 3.5.5)."""

    name: str
    server: str | None = None
    tool: str | None = None
    argument: str = "query"
    folder: str | None = None
    framework: str | None = None


def read_sources(value: object) -> tuple[str | OwnSource, ...]:
    """Take a list of known names and of mappings that describe sources of one's own; each name at most once."""
    allowed = f"must be a list of {', '.join(CHAIN)} and mappings of your own, each name at most once"
    items = value if isinstance(value, list | tuple) else [value]
    if items is not value:
        raise wrong(f"{allowed}, not {shown(value)}")
    found = [_own_source(item) if isinstance(item, dict) else item for item in items]
    known = tuple(item for item in found if isinstance(item, OwnSource) or item in CHAIN)
    names = [item.name if isinstance(item, OwnSource) else item for item in found]
    if len(known) < len(found) or len(set(names)) < len(names):
        raise wrong(f"{allowed}, not {', '.join(map(shown, names[:5]))}")
    return known


def _own_source(written: dict[str, object]) -> OwnSource:
    forms = ({"name", "server", "tool", "argument"}, {"name", "folder", "framework"})
    told = {key: item for key, item in written.items() if item is not None}
    if not all(isinstance(item, str) and item.strip() and item.isprintable() for item in told.values()):
        raise wrong("has a source of your own with a value that is no text")
    form = forms["folder" in told]
    needed = form - {"argument", "framework"}
    if not needed <= told.keys() <= form:
        raise wrong(
            "has a source of your own that is neither {name, server, tool, argument} nor {name, folder, framework}"
        )
    name = str(told["name"])
    if not _OWN_NAME.fullmatch(name) or name in SOURCES:
        raise wrong(
            f"has a source of your own whose name is not small letters, digits and dashes, or is taken: {shown(name)}"
        )
    return OwnSource(**{key: str(item) for key, item in told.items()})


_PHASES = list_of(
    "tags in small letters, digits and dashes",
    lambda item: isinstance(item, str) and _PHASE.fullmatch(item) is not None,
)
_TEXTS = list_of("texts", lambda item: isinstance(item, str), secret=True)


class CircuitBreaker(Section):
    """When a source that keeps failing is left alone (SPEC 3.5)."""

    failures: int = key(
        whole(0, 1000), 3, "Failures in a row after which a source is skipped; 0 turns it off."
    )
    pause_seconds: int = key(
        whole(1, 900),
        60,
        "Seconds that the first pause lasts; each further one is twice as long, up to 15 minutes.",
    )


class WebSearch(Section):
    """The provider of the source ``web_search``."""

    provider: Literal["auto", "searxng", "brave", "tavily", "duckduckgo"] = key(
        one_of("auto", "searxng", "brave", "tavily", "duckduckgo"),
        "auto",
        "The provider; auto takes the one that url or api_key_env configures, else DuckDuckGo.",
    )
    url: str | None = key(
        web_address(nullable=True),
        None,
        "The address of your SearXNG, or another base URL of the provider; ${VAR} expands.",
        is_hidden=True,
    )
    api_key_env: str | None = key(
        variable_name(), None, "The environment variable that holds the provider's key."
    )
    allow_private_addresses: bool = key(
        yes_no(), False, "Whether a result or redirect on a private address may be read."
    )


class ModelServer(Section):
    """An OpenAI-compatible server (SPEC 3.2, 3.7)."""

    base_url: str | None = key(
        web_address(nullable=True),
        None,
        "The server's base URL, Ollama's for example; ${VAR} expands.",
        is_hidden=True,
    )
    model: str | None = key(text(nullable=True), None, "The model's name.")
    api_key_env: str | None = key(variable_name(), None, "The environment variable that holds its key.")

    def key_of(self, environ: Mapping[str, str]) -> str | None:
        """Return the server's key, where the environment has it."""
        return environ.get(self.api_key_env) if self.api_key_env else None


_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADERS = mapping_of(
    header_value(), is_name=lambda name: _HEADER.fullmatch(name) is not None, bad_name="no header"
)
_VARIABLES = mapping_of(
    variable_value(),
    is_name=lambda name: bool(name) and "=" not in name and name.isprintable(),
    bad_name="no environment variable",
)


class Server(Section):
    """One MCP server, in the ecosystem's mcpServers form: ``url`` and ``headers``, or ``command``."""

    type: str | None = key(
        one_of("http", "streamable-http", "streamable_http", "stdio", nullable=True),
        None,
        "Accepted because other programs write it, and not used: url or command decides.",
    )
    url: str | None = key(
        web_address(nullable=True),
        None,
        "Its address for streamable HTTP; ${VAR} expands. Without url and command: that of the default of this name.",
        is_hidden=True,
    )
    headers: Mapping[str, str] = key(
        _HEADERS,
        {},
        "Headers sent to url; ${VAR} expands, and a header whose variable is not set is left out.",
        is_hidden=True,
    )
    command: str | None = key(
        text("a program", nullable=True), None, "A program that speaks MCP over standard input and output."
    )
    args: tuple[str, ...] = key(_TEXTS, (), "The program's arguments.", is_hidden=True)
    env: Mapping[str, str] = key(
        _VARIABLES,
        {},
        "Variables added to the program's environment; ${VAR} expands, and one whose ${VAR} is not set is left out.",
        is_hidden=True,
    )

    def check(self) -> None:
        if (self.url is None) == (self.command is None):
            raise wrong("must have either url or command")
        if self.url is not None and (self.args or self.env):
            raise wrong("has args or env, which go with command, beside url")
        if self.command is not None and self.headers:
            raise wrong("has headers, which go with url, beside command")


def read_servers(value: object) -> Mapping[str, Server]:
    """Let a server in the file replace the default of its name, null remove it, and headers alone keep its URL."""
    if value is not None and not isinstance(value, dict):
        raise wrong(f"must be a mapping, not {shown(value)}")
    written: dict[str, object] = {name: {"url": url} for name, url in DEFAULT_SERVERS.items()}
    for name, server in (value or {}).items():
        is_default = name in DEFAULT_SERVERS and isinstance(server, dict)
        has_way = isinstance(server, dict) and not server.keys().isdisjoint({"url", "command"})
        written[name] = {"url": DEFAULT_SERVERS[name], **server} if is_default and not has_way else server
    servers: dict[str, Server] = {}
    problems: list[Problem] = []
    for name, server in written.items():
        if server is not None:
            try:
                servers[name] = Server.read(server)
            except Wrong as error:
                problems += error.below(name)
    if problems:
        raise Wrong(*problems)
    return servers


class KnowledgeResearch(Section):
    enabled: bool = key(
        yes_no(),
        True,
        "Whether kr answers research requests and injects lessons; lessons are recorded all the same.",
    )
    knowledge_base_path: str = key(
        text("the path of a folder"),
        DEFAULT_KNOWLEDGE_BASE,
        "The folder of the knowledge base; relative to the project. {project-root} and {output_folder} expand.",
    )
    cache_ttl_days: int = key(
        whole(0, _DAYS), CACHE_TTL_DAYS, "An entry that was not read for more days than this is stale."
    )
    archive_after_days: int = key(
        whole(0, _DAYS), ARCHIVE_AFTER_DAYS, "An entry that was not read for more days than this is archived."
    )
    max_age_days: int | None = key(
        whole(0, _DAYS, nullable=True),
        None,
        "An entry that was researched more days ago than this is stale, however often it is read; null: off.",
    )
    max_entries: int = key(
        whole(1, 1_000_000),
        200,
        "The most live entries; beyond that the least recently read go to the archive.",
    )
    max_calls_per_story: int = key(
        whole(0, 1000), 3, "How many answered calls to sources one story may cost; 0: none."
    )
    timeout_seconds: int = key(whole(1, 86_400), 600, "Seconds that one call to a source may take.")
    cache_fuzzy_match: bool = key(
        yes_no(), True, "Whether more than an equal topic matches; false: equal topics only."
    )
    cache_match: CacheMatch = key(
        one_of(*get_args(CacheMatch)),
        "sure",
        "What is served by itself: what needs no judgement (sure), or whatever has a similar topic or shares a tag (seed).",
    )
    cache_match_floor: Tier = key(
        one_of(*reversed(TIERS)),
        "framework+tags",
        "With cache_match: seed, the weakest tier that is served.",
    )
    judge: Literal["llm"] | None = key(
        one_of("llm", nullable=True),
        None,
        "Who chooses among the candidates for a caller that does not read them: the model of llm, or nobody (null).",
    )
    aliases: Mapping[str, str] = key(
        mapping_of(text("the name of a framework")),
        {},
        "Other names of frameworks, each with the framework that it stands for: {nuxtjs: nuxt}.",
    )
    report_max_tokens: int = key(
        whole(200, 64_000), 1500, "The longest that a report may be, in tokens of four characters."
    )
    sources: tuple[str | OwnSource, ...] = key(
        read_sources,
        CHAIN,
        "The sources in the order in which they are asked; your own as mappings. With [] the fallback is still asked.",
    )
    fallback_if_mcp_unavailable: str | None = key(
        one_of(*CHAIN, nullable=True),
        "web_search",
        "The source that is asked when none of them answered, unless it is among them; null: none.",
    )
    lessons_injection_budget: int = key(whole(0, 1000), 10, "The most lessons that one agent is given.")
    phases: tuple[str, ...] = key(
        _PHASES,
        (),
        "Phases of your own beside the five that kr has: [release, security-review].",
    )
    auto_export: bool = key(
        yes_no(), True, "Whether index.yaml and _archived-index.yaml are written after each change."
    )
    local_docs: bool = key(
        yes_no(), True, "Whether the installed package's own documentation is read when no source answered."
    )
    circuit_breaker: CircuitBreaker = section(CircuitBreaker, "When a source that keeps failing is paused.")
    repositories: Mapping[str, str] = key(
        mapping_of(text("owner/repo as on GitHub", pattern=_REPOSITORY)),
        {},
        "The GitHub repository of a framework, for DeepWiki: {vue: vuejs/core}.",
    )
    servers: Mapping[str, Server] = key(
        read_servers,
        {name: Server(url=url) for name, url in DEFAULT_SERVERS.items()},
        "The MCP servers, written as in mcpServers; one named here replaces the default of that name, null removes it.",
        is_hidden=True,
    )
    web_search: WebSearch = section(WebSearch, "The provider of web searches.")
    synthesis: Literal["excerpt", "llm"] = key(
        one_of("excerpt", "llm"),
        "excerpt",
        "How a report is written: from the sources' passages as they stand (excerpt), or by the model of llm (llm).",
    )
    llm: ModelServer = section(
        ModelServer,
        "The OpenAI-compatible endpoint of synthesis: llm and judge: llm.",
    )

    @property
    def own_sources(self) -> tuple[OwnSource, ...]:
        """Those of ``sources`` that are one's own."""
        return tuple(one for one in self.sources if isinstance(one, OwnSource))

    @property
    def all_phases(self) -> tuple[str, ...]:
        """The legal phase tags: the seed's five, and those that the configuration adds."""
        return tuple(dict.fromkeys((*PHASES, *self.phases)))


class RoleMapping(Section):
    knowledge_researcher_persona: str = key(
        text("the id or path of a persona"),
        "bmad:bmm:agents:architect",
        "The persona whose principles guide the research.",
    )


class AgentTimeouts(Section):
    """The mapping ``defaults.agent_timeout_seconds``; other agents' timeouts are not kr's."""

    knowledge_research: int = key(whole(1, 86_400), 600, "Seconds that one research may take altogether.")


class Defaults(Section):
    """The section ``defaults``, as far as it is kr's."""

    parallel: int = key(
        whole(1, 10_000),
        1,
        "Agents at work at once; accepted and not used, as the database serializes writers.",
    )
    max_review_rounds: int = key(whole(1, 10_000), 10, "Review rounds after which a lesson is recorded.")
    max_story_review_rounds: int = key(
        whole(1, 10_000), 3, "Rounds of story review after which a lesson is recorded."
    )
    agent_timeout_seconds: AgentTimeouts = section(AgentTimeouts, "Timeouts in seconds, by agent.")
    agent_timeout_action: str = key(
        text(),
        "mark_needs_intervention",
        "What the orchestrator does with an agent that timed out; accepted and not used.",
    )


class E2EInspection(Section):
    enabled: bool = key(yes_no(), True, "Whether failures of end-to-end inspection become lessons.")


class Configuration(Section):
    """The whole file, as far as it is kr's."""

    knowledge_research: KnowledgeResearch = section(KnowledgeResearch, "The knowledge cache.")
    role_mapping: RoleMapping = section(RoleMapping, "Which persona plays which role.")
    defaults: Defaults = section(Defaults, "Settings of the orchestrator, as far as kr uses or accepts them.")
    e2e_inspection: E2EInspection = section(E2EInspection, "End-to-end inspection.")


_HEAD = """\
# The configuration of kr. Every key stands here with its default: take the # away from a line that
# begins with it directly to change the setting. Environment variables override: KR_MAX_ENTRIES is
# max_entries, KR_CIRCUIT_BREAKER__FAILURES is failures of circuit_breaker.
"""


def render_config(*, persona: str | None = None, knowledge_base_path: str | None = None) -> str:
    """Return the text of ``kr.yaml``: what is passed is set, everything else stands commented out with its default."""
    chosen = {
        ("role_mapping", "knowledge_researcher_persona"): persona,
        ("knowledge_research", "knowledge_base_path"): knowledge_base_path,
    }
    parts = [_HEAD]
    for name, outer in Configuration.keys.items():
        parts.append(f"\n# {outer.description}\n{name}:\n")
        for inner, field in outer.default.keys.items():
            value = chosen.get((name, inner))
            parts.extend(f"  # {line}\n" for line in _explained(field))
            mark, written = ("#", plain(field.default)) if value is None else ("", value)
            parts.append(f"  {mark}{inner}: {_flow(written)}\n")
    return "".join(parts)


def _explained(field: Key) -> list[str]:
    """Return the key's line, and one for each key within it (for the servers: within each of them)."""
    default = field.default
    inner = next(iter(default.values()), None) if isinstance(default, dict) else default
    keys = inner.keys if isinstance(inner, Section) else {}
    return [field.description, *(f"  {key}: {within.description}" for key, within in keys.items())]


def plain(value: object) -> object:
    """Return a default as YAML would hold it: sections as mappings of the keys that matter, tuples as lists."""
    if isinstance(value, Server):
        return {"url": value.url}
    if isinstance(value, Section):
        return {key: plain(item) for key, item in value.fields().items()}
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value


def _flow(value: object) -> str:
    import yaml

    text: str = yaml.safe_dump(
        value, default_flow_style=True, sort_keys=False, width=10_000, allow_unicode=True
    )
    return text.removesuffix("\n").removesuffix("\n...").removesuffix("...\n")
