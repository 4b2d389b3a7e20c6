"""What each key may hold, what overrides what, and how wrong values are named."""

import re
from pathlib import Path
from typing import Any

import pytest

from kr.errors import ConfigError
from kr.settings import Settings, load_settings
from kr.settings.model import Configuration, CustomSource, plain, render_config

CONTEXT7 = "https://mcp.context7.com/mcp"
KR = "knowledge_research."


def load(folder: Path, text: str = "", **environ: str) -> Settings:
    config = folder / "kr.yaml"
    config.write_text(text, encoding="utf-8")
    return load_settings(config=config, knowledge_base=None, environ=environ, cwd=folder)


def problems(folder: Path, text: str = "", **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(folder, text, **environ)
    assert "s3cret" not in str(caught.value)
    return str(caught.value).splitlines()


def value_at(settings: Settings, dotted: str) -> Any:
    value: Any = settings
    for step in dotted.split("."):
        value = getattr(value, step)
    return value


def nested(dotted: str, written: str) -> str:
    *outer, last = dotted.split(".")
    opening = "".join("  " * depth + f"{key}:\n" for depth, key in enumerate(outer))
    return f"{opening}{'  ' * len(outer)}{last}: {written}\n"


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        (KR + "enabled", "no", False),
        (KR + "max_age_days", "~", None),
        (KR + "sources", "[web_search, context7]", ("web_search", "context7")),
        (KR + "repositories", "{vue: vuejs/core, 1.0: a/b.js}", {"vue": "vuejs/core", "1.0": "a/b.js"}),
        (KR + "llm.base_url", "http://[::1]:1/v1", "http://[::1]:1/v1"),
        ("role_mapping.knowledge_researcher_persona", "lean", "lean"),
        ("defaults.agent_timeout_seconds.knowledge_research", "30", 30),
        ("e2e_inspection.enabled", "no", False),
    ],
)  # fmt: skip
def test_what_is_allowed(tmp_path: Path, key: str, written: str, value: object) -> None:
    assert value_at(load(tmp_path, nested(key, written)), key) == value


def test_sources_of_ones_own(tmp_path: Path) -> None:
    text = "[{name: acme, server: a, tool: t}, {name: handbook, folder: docs, framework: acme}]"
    tool, folder = load(tmp_path, nested(KR + "sources", text)).knowledge_research.sources
    assert isinstance(tool, CustomSource)
    assert isinstance(folder, CustomSource)
    assert (tool.name, tool.server, tool.tool, tool.argument) == ("acme", "a", "t", "query")
    assert (folder.name, folder.folder, folder.framework) == ("handbook", "docs", "acme")


WHOLE = "must be a whole number from"
OWN = "must be {name, server, tool, argument} or {name, folder, framework}"


@pytest.mark.parametrize(
    ("key", "written", "message"),
    [
        (KR + "enabled", "2", "must be true or false"),
        (KR + "max_entries", "0", WHOLE + " 1 to 1000000"),
        (KR + "max_entries", "9" * 5000, WHOLE),
        (KR + "cache_match_floor", "tags", "must be one of framework+tags, framework+topic, framework+topic+tags"),
        (KR + "aliases", "[nuxtjs]", "must be a mapping of other names to frameworks"),
        (KR + "sources", "[context7, context7]", "each name once"),
        (KR + "knowledge_base_path", '"a\\0b"', "must be the path of a folder"),
        (KR + "web_search.url", "ftp://s3cret/", "must be an http or https URL"),
        (KR + "web_search.api_key_env", "sk-s3cret", "must be the name of an environment variable or null"),
        (KR + "llm", "s3cret", "must be a mapping"),
        ("defaults.agent_timeout_seconds", "600", "must be a mapping"),
    ],
)  # fmt: skip
def test_a_wrong_value_names_file_key_and_what_is_allowed(
    tmp_path: Path, key: str, written: str, message: str
) -> None:
    text = nested(key, written)
    (problem,) = problems(tmp_path, text)
    assert problem.startswith(f"{tmp_path / 'kr.yaml'}: {key} ")
    assert message in problem


@pytest.mark.parametrize(
    ("written", "message"),
    [
        ("phases: [Release]", "phases[0] must be a word of small letters"),
        ("repositories: {vue: ../..}", "repositories.vue must be owner/repo as on GitHub"),
        ("sources: [{name: context7, folder: x}]", f"sources[0] {OWN}, with a name that is not taken"),
        ("sources: [{name: a, folder: b, server: c, tool: d}]", f"sources[0] {OWN}"),
        ("servers: {context7: {url: 'http://${HOST}:${PORT}/'}}", "context7.url needs the environment variable HOST and PORT"),
        ("servers: {context7: {url: http://x, command: y}}", "context7 must have either url (and headers) or command"),
        ("servers: {context7: {command: x, headers: {a: s3cret}}}", "context7 must have either"),
        ("servers: {context7: http://s3cret}", "context7 must be a mapping"),
        ('servers: {context7: {command: x, env: {A: "s3cret\\0"}}}', "env.A must be text without NUL"),
    ],
)  # fmt: skip
def test_what_is_wrong_within_a_value_is_named_without_its_secrets(
    tmp_path: Path, written: str, message: str
) -> None:
    (problem,) = problems(tmp_path, f"knowledge_research:\n  {written}\n")
    assert problem.startswith(f"{tmp_path / 'kr.yaml'}: knowledge_research.")
    assert message in problem


def test_unknown_keys_of_ours_are_warnings_with_the_nearest(tmp_path: Path) -> None:
    text = "theirs: {x: 1}\nknowledge_research:\n  max_entry: 1\n  zzz: 1\ndefaults: {isolation: 1}\nrole_mapping: {dev_persona: x}\n"
    place, ending = tmp_path / "kr.yaml", "is not a setting of kr"
    assert load(tmp_path, text, KR_TOTAL="5").warnings == (
        f"{place}: {KR}max_entry {ending}; did you mean max_entries?",
        f"{place}: {KR}zzz {ending}",
        f"KR_TOTAL: {KR}total {ending}",
    )


class TestVariables:
    @pytest.mark.parametrize(
        ("name", "value", "key", "read"),
        [
            ("KR_MAX_ENTRIES", " 12 ", "max_entries", 12),
            ("KR_ALIASES", "{nuxtjs: nuxt}", "aliases", {"nuxtjs": "nuxt"}),
            ("KR_SOURCES", " deepwiki , context7,", "sources", ("deepwiki", "context7")),
            ("KR_SOURCES", '["deepwiki","context7"]', "sources", ("deepwiki", "context7")),
            ("KR_CIRCUIT_BREAKER__FAILURES", "0", "circuit_breaker.failures", 0),
            ("KR_REPOSITORIES__VUE", "vuejs/core", "repositories", {"vue": "vuejs/core"}),
        ],
    )
    def test_a_variable_sets_its_key(
        self, tmp_path: Path, name: str, value: str, key: str, read: object
    ) -> None:
        settings = load(tmp_path, **{name: value})
        assert value_at(settings, KR + key) == read
        assert settings.warnings == ()

    def test_variables_override_the_file_and_inner_ones_the_outer(self, tmp_path: Path) -> None:
        text = "knowledge_research: {max_entries: 1, circuit_breaker: {failures: 4, pause_seconds: 5}}"
        research = load(
            tmp_path, text, KR_MAX_ENTRIES="2", KR_CIRCUIT_BREAKER__FAILURES="7"
        ).knowledge_research
        breaker = research.circuit_breaker
        assert (research.max_entries, breaker.failures, breaker.pause_seconds) == (2, 7, 5)
        both = {"KR_CIRCUIT_BREAKER__FAILURES": "7", "KR_CIRCUIT_BREAKER": "{failures: 8}"}
        breaker = load(tmp_path, text, **both).knowledge_research.circuit_breaker
        assert (breaker.failures, breaker.pause_seconds) == (7, 60)

    def test_an_empty_one_counts_as_not_set_and_krs_others_are_known(self, tmp_path: Path) -> None:
        more = {"KR_MAX_ENTRIES": "", "KR_UNKNOWN": " ", "KR_DATABASE_URL": "", "KR_TOKEN": "t"}
        settings = load(tmp_path, "knowledge_research: {max_entries: 3}", **more)
        assert (settings.knowledge_research.max_entries, settings.database_url) == (3, None)
        assert settings.warnings == ()

    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("KR_MAX_ENTRIES", "many", "max_entries must be a whole number from 1 to 1000000"),
            ("KR_SOURCES", "[a", "sources is not a YAML or JSON value such as [one, two]"),
            ("KR_CIRCUIT_BREAKER", "{failures: -1}", "circuit_breaker.failures must be a whole number"),
            ("KR_SERVERS", "{x: {headers: {Authorization: 's3cret}}", "servers is not a YAML or JSON"),
        ],
    )
    def test_a_wrong_one_is_named(self, tmp_path: Path, name: str, value: str, message: str) -> None:
        text = "knowledge_research:\n  circuit_breaker: {failures: 1}\n"
        (problem,) = problems(tmp_path, text, **{name: value})
        assert problem.startswith(f"{name}: knowledge_research.{message}")

    def test_one_can_not_go_into_what_is_no_mapping(self, tmp_path: Path) -> None:
        told = f"{tmp_path / 'kr.yaml'}: {KR}llm must be a mapping"
        assert problems(tmp_path, "knowledge_research:\n  llm: 5\n", KR_LLM__MODEL="m") == [told]


class TestServers:
    def servers(self, folder: Path, text: str, **environ: str) -> Any:
        return load(folder, f"knowledge_research:\n  servers: {text}\n", **environ).knowledge_research.servers

    def test_a_named_server_replaces_the_default_and_leaves_the_other(self, tmp_path: Path) -> None:
        assert self.servers(tmp_path, "")["context7"].url == CONTEXT7
        text = "{context7: {command: npx, args: [-y, 8080, 2.10], env: {A: 1, B: ''}}}"
        servers = self.servers(tmp_path, text)
        context7 = servers["context7"]
        assert (context7.url, context7.command, context7.args) == (None, "npx", ("-y", "8080", "2.10"))
        assert context7.env == {"A": "1", "B": ""}
        assert servers["deepwiki"].url == "https://mcp.deepwiki.com/mcp"

    def test_headers_alone_keep_the_default_url(self, tmp_path: Path) -> None:
        server = self.servers(tmp_path, "{context7: {headers: {K: 'Bearer ${KEY}'}}}", KEY="k")["context7"]
        assert (server.url, server.headers) == (CONTEXT7, {"K": "Bearer k"})
        by_variable = {"KR_SERVERS__CONTEXT7__HEADERS__AUTHORIZATION": "${KEY}", "KEY": "k"}
        assert self.servers(tmp_path, "", **by_variable)["context7"].headers == {"authorization": "k"}

    @pytest.mark.parametrize("environ", [{}, {"KEY": ""}])
    def test_a_header_without_its_variable_is_left_out_with_a_warning(
        self, tmp_path: Path, environ: dict[str, str]
    ) -> None:
        text = "knowledge_research:\n  servers: {context7: {headers: {A: 'Bearer ${KEY}', X-Client: kr}}}\n"
        settings = load(tmp_path, text, **environ)
        assert settings.knowledge_research.servers["context7"].headers == {"X-Client": "kr"}
        place = f"{tmp_path / 'kr.yaml'}: knowledge_research.servers.context7.headers.A"
        needs = "needs the environment variable KEY, which is not set; it is left out"
        assert settings.warnings == (f"{place} {needs}",)

    def test_secrets_stand_in_no_text_of_the_settings(self, tmp_path: Path) -> None:
        environ = {
            "KEY": "s3cret",
            "KR_WEB_SEARCH__URL": "http://s3cret@h/",
            "KR_LLM__BASE_URL": "http://h/${KEY}",
        }
        environ["KR_DATABASE_URL"] = "postgresql://u:s3cret@h/d"
        servers = "{a: {url: 'http://h/${KEY}', headers: {A: '${KEY}'}}, b: {command: c, args: [s3cret], env: {B: '${KEY}'}}}"
        settings = load(tmp_path, f"knowledge_research: {{servers: {servers}}}", **environ)
        assert settings.knowledge_research.llm.base_url == "http://h/s3cret"
        texts = (settings, settings.knowledge_research, *settings.knowledge_research.servers.values())
        assert "s3cret" not in "".join(repr(text) + str(text) for text in texts)


class TestTemplate:
    @pytest.mark.parametrize("is_open", [False, True])
    def test_what_init_writes_loads_to_the_defaults(self, tmp_path: Path, is_open: bool) -> None:
        text = uncommented(render_config()) if is_open else render_config()
        settings = load(tmp_path, text)
        read = {section: plain(getattr(settings, section)) for section in Configuration.keys}
        assert read == plain(Configuration())
        assert (settings.warnings, settings.names_persona) == ((), is_open)


def uncommented(text: str) -> str:
    return re.sub(r"^( *)#(?! )", r"\1", text, flags=re.MULTILINE)
