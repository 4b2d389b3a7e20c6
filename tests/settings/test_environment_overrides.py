"""``KR_*`` variables as overrides of the file."""

import json
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kr.errors import ConfigError
from kr.settings import Settings, load_settings
from kr.settings.discovery import LISTS, MAPPINGS, OWN_NAMES, name_of, path_of, read_overrides
from kr.settings.model import KnowledgeResearch, Server


def load(folder: Path, environ: dict[str, str], text: str = "") -> Settings:
    if text:
        (folder / "kr.yaml").write_text(text, encoding="utf-8")
    return load_settings(config=None, knowledge_base=None, environ=environ, cwd=folder)


def problem(folder: Path, environ: dict[str, str], text: str = "") -> str:
    with pytest.raises(ConfigError) as caught:
        load(folder, environ, text)
    return str(caught.value)


@pytest.mark.parametrize(
    ("name", "value", "key", "read"),
    [
        ("KR_ENABLED", "no", "enabled", False),
        ("KR_MAX_ENTRIES", " 12 ", "max_entries", 12),
        ("KR_MAX_AGE_DAYS", "5", "max_age_days", 5),
        ("KR_MAX_AGE_DAYS", "null", "max_age_days", None),
        ("KR_FALLBACK_IF_MCP_UNAVAILABLE", "null", "fallback_if_mcp_unavailable", None),
        ("KR_CACHE_MATCH_FLOOR", "framework+topic", "cache_match_floor", "framework+topic"),
        ("KR_CACHE_MATCH", "seed", "cache_match", "seed"),
        ("KR_ALIASES", "{nuxtjs: nuxt}", "aliases", {"nuxtjs": "nuxt"}),
        ("KR_LLM__API_KEY_ENV", "OLLAMA_KEY", "llm.api_key_env", "OLLAMA_KEY"),
        ("KR_SOURCES", "deepwiki", "sources", ("deepwiki",)),
        ("KR_SOURCES", " deepwiki , context7,", "sources", ("deepwiki", "context7")),
        ("KR_SOURCES", "[deepwiki, context7]", "sources", ("deepwiki", "context7")),
        ("KR_SOURCES", '["deepwiki","context7"]', "sources", ("deepwiki", "context7")),
        ("KR_SOURCES", "[]", "sources", ()),
        ("KR_CIRCUIT_BREAKER__FAILURES", "0", "circuit_breaker.failures", 0),
        ("KR_CIRCUIT_BREAKER", "{failures: 9}", "circuit_breaker.failures", 9),
        ("KR_CIRCUIT_BREAKER", '{"failures": 9}', "circuit_breaker.failures", 9),
        ("KR_REPOSITORIES", "{vue: vuejs/core}", "repositories", {"vue": "vuejs/core"}),
        ("KR_REPOSITORIES__VUE", "vuejs/core", "repositories", {"vue": "vuejs/core"}),
        ("KR_WEB_SEARCH__URL", "http://127.0.0.1:1/", "web_search.url", "http://127.0.0.1:1/"),
        ("KR_LLM__MODEL", "4.10", "llm.model", "4.10"),
    ],
)
def test_a_variable_sets_its_key(tmp_path: Path, name: str, value: str, key: str, read: object) -> None:
    settings = load(tmp_path, {name: value})
    found: object = settings.knowledge_research
    for step in key.split("."):
        found = getattr(found, step)
    assert found == read
    assert settings.warnings == ()


def test_variables_override_the_file(tmp_path: Path) -> None:
    text = "knowledge_research: {max_entries: 1, circuit_breaker: {failures: 4, pause_seconds: 5}, sources: [deepwiki]}"
    research = load(
        tmp_path, {"KR_MAX_ENTRIES": "2", "KR_CIRCUIT_BREAKER__FAILURES": "7"}, text
    ).knowledge_research
    assert research.max_entries == 2
    assert (research.circuit_breaker.failures, research.circuit_breaker.pause_seconds) == (7, 5)
    assert research.sources == ("deepwiki",)
    replaced = load(tmp_path, {"KR_CIRCUIT_BREAKER": "{failures: 8}"}).knowledge_research.circuit_breaker
    assert (replaced.failures, replaced.pause_seconds) == (8, 60)


def test_the_inner_variable_comes_after_the_outer_one(tmp_path: Path) -> None:
    environ = {"KR_CIRCUIT_BREAKER__FAILURES": "7", "KR_CIRCUIT_BREAKER": "{failures: 8, pause_seconds: 9}"}
    breaker = load(tmp_path, environ).knowledge_research.circuit_breaker
    assert (breaker.failures, breaker.pause_seconds) == (7, 9)


def test_an_empty_variable_counts_as_not_set(tmp_path: Path) -> None:
    environ = {"KR_MAX_ENTRIES": "", "KR_UNKNOWN": " ", "KR_DATABASE_URL": ""}
    settings = load(tmp_path, environ, "knowledge_research: {max_entries: 3}")
    assert settings.knowledge_research.max_entries == 3
    assert settings.database_url is None
    assert settings.warnings == ()


def test_kr_variables_of_other_uses_are_known(tmp_path: Path) -> None:
    environ = {
        "KR_TOKEN": "t",
        "KR_VENV": "v",
        "KR_DATABASE_URL": "sqlite:///x.db",
        "PATH": "/bin",
        "_KR_COMPLETE": "x",
    }
    settings = load(tmp_path, environ)
    assert settings.warnings == ()
    assert settings.database_url == "sqlite:///x.db"


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("KR_MAX_ENTRY", "KR_MAX_ENTRIES"),
        ("KR_DATABASE_URI", "KR_DATABASE_URL"),
        ("KR_CIRCUIT_BREAKER__FAILURE", "KR_CIRCUIT_BREAKER__FAILURES"),
        ("KR_max_entries", "KR_MAX_ENTRIES"),
        ("KR_ZZZ", None),
        ("KR_", None),
        ("KR_ENABLED_", "KR_ENABLED"),
        ("KR___FAILURES", None),
    ],
)
def test_an_unknown_variable_is_a_warning_with_the_nearest(
    tmp_path: Path, name: str, meant: str | None
) -> None:
    settings = load(tmp_path, {name: "5"})
    (warning,) = settings.warnings
    assert warning.startswith(f"the environment variable {name} is not a setting of kr")
    assert warning.endswith(f"did you mean {meant}?" if meant else "of kr")
    assert settings.knowledge_research == KnowledgeResearch()


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        (
            "KR_MAX_ENTRIES",
            "many",
            'knowledge_research.max_entries must be a whole number from 1 to 1000000, not "many"',
        ),
        (
            "KR_MAX_ENTRIES",
            "null",
            "knowledge_research.max_entries must be a whole number from 1 to 1000000, not null",
        ),
        ("KR_SOURCES", "google", "knowledge_research.sources must be a list of context7"),
        ("KR_SOURCES", "[a", "knowledge_research.sources is not a YAML or JSON value such as [one, two]"),
        (
            "KR_CIRCUIT_BREAKER",
            "5",
            "knowledge_research.circuit_breaker must be a mapping such as {key: value}",
        ),
        (
            "KR_CIRCUIT_BREAKER",
            "{failures: -1}",
            "knowledge_research.circuit_breaker.failures must be a whole number",
        ),
        (
            "KR_SERVERS",
            "{x: {headers: {Authorization: 'Bearer secret}}",
            "knowledge_research.servers is not a YAML or JSON",
        ),
        ("KR_ENABLED__X", "1", "knowledge_research.enabled must be true or false, not a mapping"),
        (
            "KR_KNOWLEDGE_BASE_PATH",
            "null",
            "knowledge_research.knowledge_base_path must be the path of a folder, not null",
        ),
    ],
)
def test_a_wrong_variable_is_named(tmp_path: Path, name: str, value: str, told: str) -> None:
    message = problem(tmp_path, {name: value})
    assert message.startswith(f"{name}: {told}")
    assert "secret" not in message
    assert "\n" not in message


def test_a_variable_is_blamed_rather_than_the_line_it_overrides(tmp_path: Path) -> None:
    text = "knowledge_research:\n  circuit_breaker: {failures: 1}\n"
    assert problem(tmp_path, {"KR_CIRCUIT_BREAKER": "{failures: x}"}, text).startswith("KR_CIRCUIT_BREAKER: ")


def test_a_variable_can_not_go_into_what_is_no_mapping(tmp_path: Path) -> None:
    message = problem(tmp_path, {"KR_LLM__MODEL": "m"}, "knowledge_research:\n  llm: 5\n")
    assert message.splitlines() == [
        "KR_LLM__MODEL: knowledge_research.llm.model can't be set, for knowledge_research.llm is not a mapping",
        f'{tmp_path / "kr.yaml"}, line 2: knowledge_research.llm must be a mapping, not "5"',
    ]


def test_a_variable_that_makes_a_mapping_of_a_scalar_is_blamed_itself(tmp_path: Path) -> None:
    message = problem(tmp_path, {"KR_MAX_ENTRIES__X": "1"}, "knowledge_research:\n  enabled: yes\n")
    assert message.startswith("KR_MAX_ENTRIES__X: knowledge_research.max_entries must be ")


def test_the_option_for_the_knowledge_base_overrides_file_and_variables(tmp_path: Path) -> None:
    environ = {"KR_DATABASE_URL": "sqlite:///elsewhere.db", "KR_KNOWLEDGE_BASE_PATH": "k1"}
    settings = load_settings(config=None, knowledge_base=Path("k2"), environ=environ, cwd=tmp_path)
    assert (settings.knowledge_base, settings.database_url) == (tmp_path / "k2", None)
    assert load(tmp_path, environ).database_url == "sqlite:///elsewhere.db"


def test_the_kinds_of_keys_agree_with_the_model() -> None:
    fields = KnowledgeResearch.keys
    assert {n for n, f in fields.items() if f.section or isinstance(f.default, dict)} == MAPPINGS
    assert {n for n, f in fields.items() if isinstance(f.default, tuple)} == LISTS
    assert {n for n, f in Server.keys.items() if isinstance(f.default, tuple)} == {"args"}
    assert not {name_of((key,)) for key in fields} & OWN_NAMES


segments = st.from_regex(r"[a-z][a-z0-9]{0,6}(_[a-z0-9]{1,6}){0,2}", fullmatch=True)


@given(st.lists(segments, min_size=1, max_size=4).map(tuple).filter(lambda p: p[0] != "servers"))
def test_names_and_paths_are_each_others_inverse(path: tuple[str, ...]) -> None:
    assert path_of(name_of(path)) == path


def test_the_variables_of_a_server_keep_their_case() -> None:
    assert path_of("KR_SERVERS__X__ENV__API_KEY") == ("servers", "x", "env", "API_KEY")
    assert path_of("KR_SERVERS__X__HEADERS__AUTHORIZATION") == ("servers", "x", "headers", "authorization")


words = st.text(
    st.characters(
        codec="utf-8", exclude_characters=",[]{}~\x00\x85\u2028\u2029", exclude_categories=["C", "Z"]
    ),
    min_size=1,
)


@given(st.lists(words.filter(lambda word: word != "null"), min_size=1, max_size=5))
def test_lists_read_alike_with_commas_json_and_yaml(items: list[str]) -> None:
    flow = yaml.safe_dump(items, default_flow_style=True, default_style='"', width=10_000)
    for text in (",".join(items), " , ".join(items), json.dumps(items), flow):
        (override,) = read_overrides({"KR_SOURCES": text})
        assert override.value == items
        assert override.problem is None


@given(
    st.text(max_size=40),
    st.sampled_from(["KR_SOURCES", "KR_LLM", "KR_SERVERS__A", "KR_SERVERS__A__ARGS", "KR_X"]),
)
def test_any_text_is_a_value_or_a_problem(text: str, name: str) -> None:
    for override in read_overrides({name: text}):
        assert override.problem is None or override.value is None
