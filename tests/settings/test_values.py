"""What each key may hold, and how a wrong value is told."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.errors import ConfigError
from kr.settings import Settings, load_settings
from kr.settings.model import KnowledgeResearch, Server


def load(text: str, folder: Path, environ: dict[str, str] | None = None) -> Settings:
    config = folder / "kr.yaml"
    config.write_text(text, encoding="utf-8")
    return load_settings(config=config, knowledge_base=None, environ=environ or {}, cwd=folder)


def problems(text: str, folder: Path, environ: dict[str, str] | None = None) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(text, folder, environ)
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


KR = "knowledge_research."


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("enabled", "no", False),
        ("enabled", "On", True),
        ("enabled", '"true"', True),
        ("cache_ttl_days", "0", 0),
        ("cache_ttl_days", "1_000", 1000),
        ("cache_ttl_days", '"30"', 30),
        ("archive_after_days", "5", 5),
        ("max_age_days", "null", None),
        ("max_age_days", "90", 90),
        ("max_entries", "+1", 1),
        ("max_calls_per_story", "0", 0),
        ("timeout_seconds", "86400", 86400),
        ("cache_fuzzy_match", "off", False),
        ("cache_match_floor", "framework+topic", "framework+topic"),
        ("sources", "[]", ()),
        ("sources", "[web_search, context7]", ("web_search", "context7")),
        ("fallback_if_mcp_unavailable", "null", None),
        ("fallback_if_mcp_unavailable", "~", None),
        ("fallback_if_mcp_unavailable", "deepwiki", "deepwiki"),
        ("lessons_injection_budget", "0", 0),
        ("auto_export", "False", False),
        ("local_docs", "false", False),
        ("circuit_breaker.failures", "0", 0),
        ("circuit_breaker.pause_seconds", "900", 900),
        ("repositories", "{vue: vuejs/core, 1.0: a/b.js}", {"vue": "vuejs/core", "1.0": "a/b.js"}),
        ("repositories", "", {}),
        ("web_search", "", None),
        ("web_search.provider", "searxng", "searxng"),
        ("web_search.url", "http://127.0.0.1:8888/", "http://127.0.0.1:8888/"),
        ("web_search.api_key_env", "BRAVE_KEY", "BRAVE_KEY"),
        ("web_search.allow_private_addresses", "yes", True),
        ("synthesis", "llm", "llm"),
        ("judge", "llm", "llm"),
        ("cache_match", "seed", "seed"),
        ("llm.base_url", "http://[::1]:1/v1", "http://[::1]:1/v1"),
        ("llm.model", "4.10", "4.10"),
    ],
)
def test_what_is_allowed_in_knowledge_research(tmp_path: Path, key: str, written: str, value: object) -> None:
    settings = load(nested(KR + key, written), tmp_path)
    if key != "web_search":
        assert value_at(settings, KR + key) == value
    else:
        assert settings.knowledge_research.web_search.provider == "auto"


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("role_mapping.knowledge_researcher_persona", "lean", "lean"),
        ("defaults.parallel", "4", 4),
        ("defaults.max_review_rounds", "1", 1),
        ("defaults.max_story_review_rounds", "2", 2),
        ("defaults.agent_timeout_seconds.knowledge_research", "30", 30),
        ("defaults.agent_timeout_action", "retry", "retry"),
        ("e2e_inspection.enabled", "no", False),
    ],
)
def test_what_is_allowed_elsewhere(tmp_path: Path, key: str, written: str, value: object) -> None:
    assert value_at(load(nested(key, written), tmp_path), key) == value


WHOLE = "must be a whole number from"
FLAG = "must be true or false"


@pytest.mark.parametrize(
    ("key", "written", "message"),
    [
        (KR + "enabled", "2", FLAG + ', not "2"'),
        (KR + "enabled", "", FLAG + ", not null"),
        (KR + "enabled", "[true]", FLAG + ", not a list"),
        (KR + "max_entries", "0", WHOLE + ' 1 to 1000000, not "0"'),
        (KR + "max_entries", "-1", WHOLE),
        (KR + "max_entries", "many", WHOLE + ' 1 to 1000000, not "many"'),
        (KR + "max_entries", "2.0", WHOLE),
        (KR + "max_entries", "1e3", WHOLE),
        (KR + "max_entries", "010", WHOLE),
        (KR + "max_entries", "0x10", WHOLE),
        (KR + "max_entries", "true", WHOLE),
        (KR + "max_entries", "null", WHOLE + " 1 to 1000000, not null"),
        (KR + "max_entries", "{a: 1}", "not a mapping"),
        (KR + "max_entries", "9" * 5000, WHOLE),
        (KR + "max_entries", "1__0", WHOLE),
        (KR + "max_age_days", "-1", WHOLE + ' 0 to 100000 or null, not "-1"'),
        (KR + "archive_after_days", "99999999", WHOLE),
        (KR + "timeout_seconds", "0", WHOLE),
        (KR + "circuit_breaker", "5", 'must be a mapping, not "5"'),
        (KR + "circuit_breaker.pause_seconds", "901", WHOLE),
        (
            KR + "cache_match_floor",
            "tags",
            'must be one of framework+tags, framework+topic, framework+topic+tags, not "tags"',
        ),
        (KR + "cache_match_floor", "framework+need", "must be one of framework+tags"),
        (KR + "cache_match", "loose", "must be one of sure, seed"),
        (KR + "cache_match", "null", "must be one of sure, seed, not null"),
        (KR + "aliases", "{nuxtjs: ''}", 'has a wrong value for "nuxtjs": must be the name of a framework'),
        (KR + "aliases", "[nuxtjs]", "must be a mapping, not a list"),
        (KR + "llm.api_key_env", "sk-secret", "must be the name of an environment variable or null"),
        (KR + "report_max_tokens", "10", WHOLE + " 200 to 64000"),
        (
            KR + "sources",
            "context7",
            "must be a list of context7, deepwiki, web_search and mappings of your own, each name at most once",
        ),
        (KR + "sources", "[context7, context7]", "each name at most once"),
        (KR + "sources", "[local_docs]", 'not "local_docs"'),
        (KR + "sources", "[{name: a, folder: x}, {name: a, folder: y}]", "each name at most once"),
        (KR + "sources", "[{name: context7, folder: x}]", "or is taken"),
        (KR + "sources", "[{name: a, server: b}]", "neither {name, server, tool, argument} nor"),
        (KR + "sources", "[{name: a, folder: b, tool: c}]", "neither {name, server, tool, argument} nor"),
        (KR + "sources", "[{name: a, folder: []}]", "that is no text"),
        (KR + "sources", "[[context7]]", "not a list"),
        (KR + "sources", "", "not null"),
        (KR + "fallback_if_mcp_unavailable", "local_docs", "or null"),
        (KR + "fallback_if_mcp_unavailable", "false", 'or null, not "false"'),
        (KR + "knowledge_base_path", "''", "must be the path of a folder"),
        (KR + "knowledge_base_path", '"a\\0b"', "must be the path of a folder"),
        (KR + "knowledge_base_path", "[a]", "must be the path of a folder, not a list"),
        (KR + "repositories", "[a]", "must be a mapping, not a list"),
        (KR + "repositories", "{vue: core}", 'has a wrong value for "vue": must be owner/repo'),
        (KR + "repositories", "{vue: ../..}", "owner/repo"),
        (KR + "repositories", "{vue: a/..}", "owner/repo"),
        (KR + "web_search.provider", "google", "must be one of auto, searxng, brave, tavily, duckduckgo"),
        (KR + "web_search.url", "localhost:8080", "must be an http or https URL"),
        (KR + "web_search.url", "ftp://x/", "must be an http or https URL"),
        (KR + "web_search.url", "http://x:port/", "must be an http or https URL"),
        (KR + "web_search.api_key_env", "sk-secret", "must be the name of an environment variable or null"),
        (KR + "synthesis", "gpt", "must be one of excerpt, llm"),
        (KR + "judge", "candidates", "must be one of llm or null"),
        (KR + "llm.base_url", "https://", "must be an http or https URL"),
        (KR + "llm.model", "''", "must be text or null"),
        ("knowledge_research", "[1]", "must be a mapping, not a list"),
        ("role_mapping.knowledge_researcher_persona", "", "must be the id or path of a persona, not null"),
        ("defaults.parallel", "0", WHOLE),
        ("defaults.agent_timeout_seconds", "600", "must be a mapping"),
        ("defaults.agent_timeout_seconds.knowledge_research", "0", WHOLE),
        ("defaults.agent_timeout_action", "''", "must be text"),
        ("e2e_inspection.enabled", "maybe", FLAG),
    ],
)
def test_a_wrong_value_names_file_line_key_and_what_is_allowed(
    tmp_path: Path, key: str, written: str, message: str
) -> None:
    text = nested(key, written)
    (problem,) = problems(text, tmp_path)
    assert problem.startswith(f"{tmp_path / 'kr.yaml'}, line {text.count(chr(10))}: {key} ")
    assert message in problem
    assert "sk-secret" not in problem


def test_all_wrong_values_are_told_at_once(tmp_path: Path) -> None:
    text = "defaults: {parallel: x}\nknowledge_research:\n  enabled: x\n  web_search: {url: '${NONE}', provider: x}\n"
    found = problems(
        text, tmp_path, {"KR_MAX_ENTRIES": "x", "KR_LLM": "x", "KR_DATABASE_URL": "mysql://u:secret@h"}
    )
    starts = {
        problem.split(" must ")[0].split(" needs ")[0].removeprefix(f"{tmp_path}/") for problem in found
    }
    assert starts == {
        "kr.yaml, line 1: defaults.parallel",
        "kr.yaml, line 3: knowledge_research.enabled",
        "kr.yaml, line 4: knowledge_research.web_search.url",
        "kr.yaml, line 4: knowledge_research.web_search.provider",
        "KR_MAX_ENTRIES: knowledge_research.max_entries",
        "KR_LLM: knowledge_research.llm",
        "KR_DATABASE_URL: database_url",
    }
    assert "secret" not in "".join(found)


def test_unknown_keys_are_warnings_with_the_nearest(tmp_path: Path) -> None:
    text = (
        "theirs: {x: 1}\nknowledge_research:\n  max_entry: 1\n  zzz: 1\n  llm: {modell: x}\n"
        "  servers: {context7: {urls: x}, context-7: {url: http://x}}\n"
        "defaults: {paralel: 1, isolation: 1, agent_timeout_seconds: {knowledge_researcher: 1, dev: 2}}\n"
        "role_mapping: {dev_persona: x}\n"
        "output_foldr: x\ndefault: {}\n"
    )
    place = f"{tmp_path / 'kr.yaml'}, line"
    assert load(text, tmp_path).warnings == (
        f"{place} 9: output_foldr is not a setting of kr; did you mean output_folder?",
        f"{place} 3: knowledge_research.max_entry is not a setting of kr; did you mean max_entries?",
        f"{place} 4: knowledge_research.zzz is not a setting of kr",
        f"{place} 5: knowledge_research.llm.modell is not a setting of kr; did you mean model?",
        f"{place} 6: knowledge_research.servers.context7.urls is not a setting of kr; did you mean url?",
        f"{place} 7: defaults.paralel is not a setting of kr; did you mean parallel?",
        f"{place} 6: knowledge_research.servers.context-7 is used by no source; the servers that are used: context7, deepwiki",
    )


@pytest.mark.parametrize("section", ["synthesis: llm", "judge: llm", "web_search: {provider: searxng}"])
def test_what_can_not_work_yet_is_a_warning(tmp_path: Path, section: str) -> None:
    (warning,) = load(f"knowledge_research:\n  {section}\n", tmp_path).warnings
    assert f"{tmp_path / 'kr.yaml'}, line 2: " in warning


def test_settings_are_frozen(tmp_path: Path) -> None:
    settings = load("", tmp_path)
    with pytest.raises(AttributeError, match="frozen"):
        settings.knowledge_research.enabled = False  # type: ignore[misc]


@pytest.mark.parametrize(
    "url", ["sqlite:///kr.db", "sqlite:////tmp/kr.db", "postgresql+psycopg://u:p@h/d", "postgresql://h/d"]
)
def test_the_database_url_is_taken_as_it_is(tmp_path: Path, url: str) -> None:
    settings = load("", tmp_path, {"KR_DATABASE_URL": url})
    assert settings.database_url == url
    assert url not in repr(settings)


def test_a_database_url_that_is_refused_is_told_a_form_that_serves(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="must begin with sqlite:///") as caught:
        load("", tmp_path, {"KR_DATABASE_URL": "postgres://x"})
    assert "postgres" not in str(caught.value)


@given(st.text(max_size=30))
def test_any_text_for_any_kind_is_read_or_told(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    folder = tmp_path_factory.mktemp("any")
    keys = ("enabled", "max_entries", "max_age_days", "cache_match_floor", "knowledge_base_path")
    written = "".join(f"  {key}: {json.dumps(text)}\n" for key in keys)
    try:
        settings = load(f"knowledge_research:\n{written}", folder)
    except ConfigError as exc:
        told = str(exc)
        assert all(line.isprintable() for line in told.splitlines())
    else:
        assert settings.knowledge_research.max_entries > 0


def test_the_models_can_be_made_by_hand() -> None:
    server = Server(url="http://h/", headers={"A": "b"})
    research = KnowledgeResearch(
        max_entries=5, auto_export=False, sources=("context7",), servers={"context7": server}
    )
    assert (research.max_entries, research.auto_export, research.sources) == (5, False, ("context7",))
    assert research.servers["context7"] == server
    assert research.circuit_breaker.failures == 3
