"""The keys of the configuration: what each may hold, what holds without it, and a sentence of explanation.

The sentences make the template of ``kr init`` and docs/configuration.md. Sections are plain classes: each dataclass would
be compiled anew in every process that answers a hit.
"""

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from kr.models import CHAIN, DEFAULT_SERVERS, LOCAL_DOCS, PHASES, TIERS, Tier
from kr.text import KeyPath, Tree


class Invalid(Exception):
    """What was written is not allowed: the path below the key that was read, and what follows the key's name."""

    def __init__(self, message: str, path: KeyPath = ()) -> None:
        super().__init__(message)
        self.message = message
        self.path = path


class Kind:
    """What a key may hold. ``allowed`` follows "must be"; ``read`` raises ``ValueError`` or its like."""

    def __init__(self, allowed: str, read: Callable[[Any], Any]) -> None:
        self.allowed = allowed
        self.read = read

    def __call__(self, value: Tree) -> Any:
        """Return the value. Raises ``Invalid``, which does not show the value: it may be a secret."""
        try:
            return self.read(value)
        except (ValueError, TypeError, KeyError, AttributeError):
            raise Invalid(f"must be {self.allowed}") from None


class Setting:
    """A key: what holds without it, what it may hold, and its explanation."""

    def __init__(self, default: Any, kind: Kind, help: str) -> None:  # noqa: A002 - as in click
        self.default = default
        self.kind = kind
        self.help = help

    @property
    def section(self) -> "type[Section] | None":
        """What has keys of its own; a server stands for all servers."""
        one = next(iter(self.default.values()), None) if isinstance(self.default, dict) else self.default
        return type(one) if isinstance(one, Section) else None


class Section:
    """A mapping of the configuration: its keys are declared with ``setting``, an instance holds their values."""

    keys: ClassVar[dict[str, Setting]] = {}

    def __init_subclass__(cls) -> None:
        cls.keys = {name: key for name, key in vars(cls).items() if isinstance(key, Setting)} or cls.keys

    def __init__(self, **values: Any) -> None:
        vars(self).update({name: key.default for name, key in self.keys.items()} | values)

    def but(self, **values: Any) -> Self:
        """Return the section with other values."""
        return type(self)(**{**vars(self), **values})

    @classmethod
    def read(cls, value: Tree) -> Self:
        """Read what was written; unknown keys are ignored. Raises ``Invalid``."""
        if value is not None and not isinstance(value, dict):
            raise Invalid("must be a mapping")
        written = value or {}
        kinds = {name: key.kind for name, key in cls.keys.items() if name in written}
        return cls(**_read_all(kinds, written))


def setting(default: Any, kind: Kind, help: str) -> Any:  # noqa: A002
    """Declare a key; ``Any`` so that it may stand behind the type of its value."""
    return Setting(default, kind, help)


def section(kind: type[Section], help: str) -> Any:  # noqa: A002
    return Setting(kind(), Kind("a mapping", kind.read), help)


def or_null(kind: Kind) -> Kind:
    return Kind(f"{kind.allowed} or null", lambda it: None if it is None else kind.read(it))


def whole_number(low: int, high: int) -> Kind:
    def read(value: str) -> int:
        if not (value.isascii() and value.isdigit() and low <= int(value) <= high):
            raise ValueError
        return int(value)

    return Kind(f"a whole number from {low} to {high}", read)


def choice(*names: str) -> Kind:
    return Kind(f"one of {', '.join(names)}", lambda value: names[names.index(value)])


def text(allowed: str = "text", pattern: str = r".*\S.*", *, lines: bool = False) -> Kind:
    """Take text that wholly matches the pattern: printable text of one line, unless ``lines``."""

    def read(value: str) -> str:
        if not re.fullmatch(pattern, value) or not (lines or value.isprintable()):
            raise ValueError
        return value

    return Kind(allowed, read)


def list_of(member: Kind, allowed: str) -> Kind:
    """Take a list, or words that commas separate."""

    def read(value: Tree) -> tuple[Any, ...]:
        if isinstance(value, str):
            value = [word.strip() for word in value.split(",") if word.strip()]
        if not isinstance(value, list):
            raise TypeError
        items = dict(enumerate(value))
        return tuple(_read_all(dict.fromkeys(items, member), items).values())

    return Kind(f"a list of {allowed}", read)


def mapping_of(member: Kind, allowed: str) -> Kind:
    """Take a mapping; with nothing behind its key it is empty."""

    def read(value: Mapping[str, Tree] | None) -> dict[str, Any]:
        return _read_all(dict.fromkeys(value or {}, member), value or {})

    return Kind(f"a mapping of {allowed}", read)


def _read_all(readers: Mapping[Any, Callable[[Any], Any]], written: Mapping[Any, Tree]) -> dict[Any, Any]:
    """Read a value with each reader. Raises ``Invalid``."""
    values: dict[Any, Any] = {}
    for step, reader in readers.items():
        try:
            values[step] = reader(written[step])
        except Invalid as error:
            raise Invalid(error.message, (step, *error.path)) from None
    return values


_YES_NO = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}
FLAG = Kind("true or false", lambda value: _YES_NO[value.lower()])
DAYS = whole_number(0, 100_000)
COUNT = whole_number(1, 10_000)
TEXT = or_null(text())
URL = or_null(text("an http or https URL", r"https?://[^\s/]\S*"))
VARIABLE = or_null(text("the name of an environment variable", r"[A-Za-z_]\w*"))
WORD = text("a word of small letters, digits and dashes", r"[a-z][a-z0-9_-]{0,39}")
REPOSITORY_NAME = r"[A-Za-z0-9][A-Za-z0-9-]{0,38}/(?!\.{1,2}$)[A-Za-z0-9._-]{1,100}"
REPOSITORIES = mapping_of(
    text("owner/repo as on GitHub", REPOSITORY_NAME), "frameworks to owner/repo as on GitHub"
)
LINES = text("text without NUL", r"[^\0]*", lines=True)
TEXTS = mapping_of(LINES, "names to texts")
NAMES = mapping_of(text(), "other names to frameworks")
PROVIDER = choice("auto", "searxng", "brave", "tavily", "duckduckgo")


class CircuitBreaker(Section):
    """When a source that keeps failing is left alone, and for how long."""

    failures: int = setting(
        3, whole_number(0, 1000), "Failures in a row after which a source is skipped; 0: never."
    )
    pause_seconds: int = setting(
        60, whole_number(1, 900), "The first pause; each further one is twice as long."
    )


class SearchProvider(Section):
    """The provider of web searches."""

    provider: str = setting("auto", PROVIDER, "auto: what url or api_key_env configures, else DuckDuckGo.")
    url: str | None = setting(None, URL, "Your SearXNG, with json allowed, or another; ${VAR} expands.")
    api_key_env: str | None = setting(None, VARIABLE, "The environment variable that holds the key.")
    allow_private_addresses: bool = setting(False, FLAG, "Whether a page on a private address may be read.")


class ModelServer(Section):
    """An OpenAI-compatible server."""

    base_url: str | None = setting(None, URL, "The server's base URL, Ollama's for example; ${VAR} expands.")
    model: str | None = setting(None, TEXT, "The model's name.")
    api_key_env: str | None = setting(None, VARIABLE, "The environment variable that holds its key.")


class Server(Section):
    """An MCP server in the ecosystem's ``mcpServers`` form. All but the command may hold secrets, and is not shown."""

    url: str | None = setting(None, URL, "Its address, for streamable HTTP; ${VAR} expands.")
    headers: Mapping[str, str] = setting({}, TEXTS, "Sent to url; ${VAR} expands.")
    command: str | None = setting(None, TEXT, "A program that speaks MCP over standard input and output.")
    args: tuple[str, ...] = setting((), list_of(LINES, "texts"), "The program's arguments.")
    env: Mapping[str, str] = setting({}, TEXTS, "Added to the program's environment; ${VAR} expands.")

    def __init__(self, **values: Any) -> None:
        """Raise ``Invalid`` where the keys don't go together."""
        super().__init__(**values)
        is_mixed = (self.args or self.env) if self.url else self.headers
        if (self.url is None) == (self.command is None) or is_mixed:
            raise Invalid("must have either url (and headers) or command (and args and env)")


def _read_servers(value: Mapping[str, Any] | None) -> dict[str, Server]:
    """Let a server replace the default of its name, null remove it, and headers alone keep the default's URL."""
    written: dict[str, Any] = {name: {"url": url} for name, url in DEFAULT_SERVERS.items()}
    for name, server in (value or {}).items():
        has_way = not isinstance(server, dict) or "url" in server or "command" in server
        written[name] = server if has_way else {**server, "url": DEFAULT_SERVERS.get(name)}
    servers = {name: server for name, server in written.items() if server is not None}
    return _read_all(dict.fromkeys(servers, Server.read), servers)


class CustomSource(Section):
    """A source of one's own: a ``tool`` of an MCP ``server``, or a ``folder`` of documents about ``framework``."""

    name: str = setting("", WORD, "What it is called in answers.")
    server: str | None = setting(None, TEXT, "The server in servers that has the tool.")
    tool: str | None = setting(None, TEXT, "The name of the tool.")
    argument: str = setting("query", text(), "The tool's argument that takes the question.")
    folder: str | None = setting(None, TEXT, "A folder of Markdown, reStructuredText, text or HTML.")
    framework: str | None = setting(None, TEXT, "The framework that the folder is about.")

    def __init__(self, **values: Any) -> None:
        """Raise ``Invalid`` where the keys don't go together."""
        super().__init__(**values)
        is_tool, is_folder = bool(self.server and self.tool), self.folder is not None
        if (
            is_tool == is_folder
            or not self.name
            or self.name in {*CHAIN, LOCAL_DOCS}
            or (is_folder and self.server)
        ):
            raise Invalid(f"must be {_OWN}, with a name that is not taken")


_OWN = "{name, server, tool, argument} or {name, folder, framework}"
_SOURCES = f"{', '.join(CHAIN)} or one of your own: {_OWN}"


def _read_sources(value: Tree) -> tuple[str | CustomSource, ...]:
    def read(one: Tree) -> str | CustomSource:
        return CustomSource.read(one) if isinstance(one, dict) else choice(*CHAIN).read(one)

    found: tuple[str | CustomSource, ...] = list_of(Kind(_SOURCES, read), "").read(value)
    if len({one if isinstance(one, str) else one.name for one in found}) < len(found):
        raise ValueError
    return found


class KnowledgeResearch(Section):
    """kr's own section."""

    enabled: bool = setting(True, FLAG, "Whether kr answers research requests and injects lessons.")
    knowledge_base_path: str = setting(
        ".kr", text("the path of a folder"), "The knowledge base; without a project $XDG_DATA_HOME/kr."
    )
    cache_ttl_days: int = setting(30, DAYS, "An entry that was not read for more days is stale.")
    archive_after_days: int = setting(60, DAYS, "An entry that was not read for more days is archived.")
    max_age_days: int | None = setting(None, or_null(DAYS), "An entry whose text is older is stale.")
    max_entries: int = setting(
        200, whole_number(1, 1_000_000), "Live entries at most; then some are archived."
    )
    max_calls_per_story: int = setting(3, whole_number(0, 1000), "Answered calls that one story may cost.")
    timeout_seconds: int = setting(
        600, whole_number(1, 86_400), "Seconds that one call to a source may take."
    )
    cache_fuzzy_match: bool = setting(True, FLAG, "Whether more than an equal topic matches.")
    cache_match: str = setting(
        "sure", choice("sure", "seed"), "seed: every tier down to the floor is served."
    )
    cache_match_floor: Tier = setting(
        TIERS[-1], choice(*reversed(TIERS)), "The weakest tier that is served where cache_match is seed."
    )
    judge: str | None = setting(
        None, or_null(choice("llm")), "llm: the model chooses among candidates for who does not choose."
    )
    aliases: Mapping[str, str] = setting({}, NAMES, "Other names of frameworks: {nuxtjs: nuxt}.")
    report_max_tokens: int = setting(
        1500, whole_number(200, 64_000), "A report at most, in tokens of 4 characters."
    )
    sources: tuple[str | CustomSource, ...] = setting(
        CHAIN,
        Kind(f"a list of {_SOURCES}; each name once", _read_sources),
        f"What is asked, in this order; your own as mappings: {_OWN}.",
    )
    fallback_if_mcp_unavailable: str | None = setting(
        "web_search", or_null(choice(*CHAIN)), "The source that is asked when no MCP source answered."
    )
    local_docs: bool = setting(True, FLAG, "Whether documentation of installed packages is read at last.")
    lessons_injection_budget: int = setting(
        10, whole_number(0, 1000), "The most lessons that one agent is given."
    )
    phases: tuple[str, ...] = setting(
        (), list_of(WORD, "words of small letters, digits and dashes"), f"Phases beside {', '.join(PHASES)}."
    )
    auto_export: bool = setting(True, FLAG, "Whether index.yaml is written after each change.")
    circuit_breaker: CircuitBreaker = section(CircuitBreaker, "When a failing source is left alone.")
    repositories: Mapping[str, str] = setting(
        {}, REPOSITORIES, "The GitHub repository of a framework, for DeepWiki: {vue: vuejs/core}."
    )
    servers: Mapping[str, Server] = setting(
        {name: Server(url=url) for name, url in DEFAULT_SERVERS.items()},
        Kind("a mapping of names to servers", _read_servers),
        "MCP servers as in mcpServers; one named here replaces the default of that name, null removes it.",
    )
    web_search: SearchProvider = section(SearchProvider, "The provider of web searches.")
    synthesis: str = setting(
        "excerpt", choice("excerpt", "llm"), "Reports are the sources' passages, or what llm's model writes."
    )
    llm: ModelServer = section(ModelServer, "The OpenAI-compatible server of synthesis and judge.")

    @property
    def all_phases(self) -> tuple[str, ...]:
        """F1's five phases, and those that the configuration adds."""
        return tuple(dict.fromkeys((*PHASES, *self.phases)))


class RoleMapping(Section):
    """Which persona plays which role."""

    knowledge_researcher_persona: str = setting(
        "bmad:bmm:agents:architect",
        text("the id or path of a persona"),
        "Its principles guide the synthesis.",
    )


class AgentTimeouts(Section):
    """How long agents may work."""

    knowledge_research: int = setting(
        600, whole_number(1, 86_400), "Seconds that one research may take altogether."
    )


class Defaults(Section):
    """Settings of the orchestrator, as far as kr uses or accepts them."""

    parallel: int = setting(1, COUNT, "Agents at work at once; read and reported, nothing else.")
    max_review_rounds: int = setting(10, COUNT, "Review rounds after which a lesson is recorded.")
    max_story_review_rounds: int = setting(3, COUNT, "The same, for the review of a story.")
    agent_timeout_seconds: AgentTimeouts = section(AgentTimeouts, "Timeouts in seconds, by agent.")
    agent_timeout_action: str = setting("mark_needs_intervention", text(), "Not used by kr.")


class E2EInspection(Section):
    """End-to-end inspection."""

    enabled: bool = setting(True, FLAG, "Whether failures of end-to-end inspection become lessons.")


class Configuration(Section):
    """The whole file, as far as it is kr's."""

    knowledge_research: KnowledgeResearch = section(KnowledgeResearch, "The knowledge cache.")
    role_mapping: RoleMapping = section(RoleMapping, "Which persona plays which role.")
    defaults: Defaults = section(Defaults, "Settings of the orchestrator, as far as kr uses or accepts them.")
    e2e_inspection: E2EInspection = section(E2EInspection, "End-to-end inspection.")


# --- the text of kr.yaml that `kr init` writes: every key with its explanation and default

_HEAD = """\
# The configuration of kr. Every key stands here with its default: take the # away from a line that
# begins with it directly to change the setting. Environment variables override: KR_MAX_ENTRIES is
# max_entries, KR_CIRCUIT_BREAKER__FAILURES is failures of circuit_breaker.
"""


def render_config(knowledge_base_path: str | None = None, *, is_bmad: bool = True) -> str:
    """Return the text of ``kr.yaml``: a path that is passed is set, all else stands commented out with its default.

    Without BMAD the sections that are its orchestrator's are left out.
    """
    parts = [_HEAD]
    for name, outer in Configuration.keys.items() if is_bmad else [*Configuration.keys.items()][:1]:
        parts.append(f"\n# {outer.help}\n{name}:\n")
        for inner, key in outer.default.keys.items():
            is_set = inner == "knowledge_base_path" and knowledge_base_path is not None
            value = knowledge_base_path if is_set else plain(key.default)
            mark = "" if is_set else "#"
            parts.append(f"  # {key.help}\n  {mark}{inner}: {json.dumps(value, ensure_ascii=False)}\n")
    return "".join(parts)


def plain(value: Any) -> Any:
    """Return a default as YAML would hold it: sections as mappings of the keys that matter, tuples as lists."""
    if isinstance(value, Server):
        return {"url": value.url}
    if isinstance(value, Section):
        return {name: plain(getattr(value, name)) for name in value.keys}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return list(value) if isinstance(value, tuple) else value
