"""Servers in the mcpServers form, ``${VAR}`` in them, and secrets that stay secret."""

from pathlib import Path

import pytest

from kr.errors import ConfigError
from kr.settings import Settings, load_settings

CONTEXT7 = "https://mcp.context7.com/mcp"


def load(folder: Path, servers: str, environ: dict[str, str] | None = None) -> Settings:
    config = folder / "kr.yaml"
    config.write_text(f"knowledge_research:\n  servers: {servers}\n", encoding="utf-8")
    return load_settings(config=config, knowledge_base=None, environ=environ or {}, cwd=folder)


def headers(settings: Settings, name: str = "context7") -> dict[str, str]:
    server = settings.knowledge_research.servers[name]
    return dict(server.headers)


def test_the_default_servers_are_there_without_configuration(tmp_path: Path) -> None:
    servers = load(tmp_path, "").knowledge_research.servers
    assert {name: server.url for name, server in servers.items()} == {
        "context7": CONTEXT7,
        "deepwiki": "https://mcp.deepwiki.com/mcp",
    }


def test_a_named_server_replaces_the_default_and_leaves_the_other(tmp_path: Path) -> None:
    text = "{context7: {command: npx, args: [-y, '@upstash/context7-mcp', 8080, 2.10], env: {A: 1, B: ''}}}"
    servers = load(tmp_path, text).knowledge_research.servers
    context7 = servers["context7"]
    assert (context7.url, context7.command) == (None, "npx")
    assert context7.args == ("-y", "@upstash/context7-mcp", "8080", "2.10")
    assert context7.env == {"A": "1", "B": ""}
    assert servers["deepwiki"].url == "https://mcp.deepwiki.com/mcp"


def test_null_takes_a_server_away(tmp_path: Path) -> None:
    assert list(load(tmp_path, "{deepwiki: null}").knowledge_research.servers) == ["context7"]
    assert list(load(tmp_path, "", {"KR_SERVERS__CONTEXT7": "null"}).knowledge_research.servers) == [
        "deepwiki"
    ]


def test_headers_alone_keep_the_default_url(tmp_path: Path) -> None:
    settings = load(tmp_path, "{context7: {headers: {Authorization: 'Bearer ${KEY}'}}}", {"KEY": "s3cret"})
    assert settings.knowledge_research.servers["context7"].url == CONTEXT7
    assert headers(settings) == {"Authorization": "Bearer s3cret"}
    by_variable = load(
        tmp_path, "", {"KR_SERVERS__CONTEXT7__HEADERS__AUTHORIZATION": "Bearer ${KEY}", "KEY": "k"}
    )
    assert headers(by_variable) == {"authorization": "Bearer k"}


@pytest.mark.parametrize("environ", [{}, {"KEY": ""}])
def test_a_header_without_its_variable_is_left_out_with_a_warning(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    settings = load(
        tmp_path, "{context7: {headers: {Authorization: 'Bearer ${KEY}', X-Client: kr}}}", environ
    )
    assert headers(settings) == {"X-Client": "kr"}
    (warning,) = settings.warnings
    assert warning == (
        f"{tmp_path / 'kr.yaml'}, line 2: knowledge_research.servers.context7.headers.Authorization "
        "needs the environment variable KEY, which is not set; it is left out"
    )


def test_a_variable_of_a_server_without_its_own_is_left_out_too(tmp_path: Path) -> None:
    settings = load(
        tmp_path, "{context7: {command: c, env: {A: '${KEY}', B: '${OTHER}'}}}", {"OTHER": "a\nb"}
    )
    env = settings.knowledge_research.servers["context7"].env
    assert env == {"B": "a\nb"}
    assert "KEY" in settings.warnings[0]


@pytest.mark.parametrize(
    ("written", "environ", "url"),
    [
        ("http://${HOST}:${PORT}/mcp", {"HOST": "h", "PORT": "1"}, "http://h:1/mcp"),
        ("${URL:-http://fallback/}", {}, "http://fallback/"),
        ("${URL:-http://fallback/}", {"URL": "http://set/"}, "http://set/"),
        ("http://h/$HOST", {"HOST": "x"}, "http://h/$HOST"),
        ("http://h/?k=${K}", {"K": "${HOST}", "HOST": "x"}, "http://h/?k=${HOST}"),
    ],
)
def test_urls_expand_once(tmp_path: Path, written: str, environ: dict[str, str], url: str) -> None:
    settings = load(tmp_path, f"{{context7: {{url: '{written}'}}}}", environ)
    assert settings.knowledge_research.servers["context7"].url == url
    assert settings.warnings == ()


@pytest.mark.parametrize(
    ("servers", "told"),
    [
        (
            "{context7: {url: 'http://${HOST}:${PORT}/'}}",
            "context7.url needs the environment variable HOST and PORT",
        ),
        ("{context7: {url: http://x, command: y}}", "context7 must have either url or command"),
        ("{context7: {url: null, command: null}}", "context7 must have either url or command"),
        ("{other: {}}", "other must have either url or command"),
        (
            "{context7: {url: http://x, args: [a]}}",
            "context7 has args or env, which go with command, beside url",
        ),
        (
            "{context7: {command: x, headers: {a: b}}}",
            "context7 has headers, which go with url, beside command",
        ),
        ("{context7: http://x}", "context7 must be a mapping"),
        ("[a]", "servers must be a mapping, not a list"),
        ("{context7: {url: 'file:///etc/passwd'}}", "context7.url must be an http or https URL"),
        ("{context7: {url: 'http://user:s3cret@h:x/'}}", "context7.url must be an http or https URL"),
        ("{context7: {type: sse, url: http://x}}", "context7.type must be one of http"),
        (
            '{context7: {headers: {A: "s3cret\\r\\nB: 1"}}}',
            'headers has a wrong value for "A": must be text of one line',
        ),
        (
            "{context7: {headers: {A: [s3cret]}}}",
            'headers has a wrong value for "A": must be text of one line',
        ),
        ("{context7: {headers: {'A B': s3cret}}}", 'headers has a name that no header can have: "A B"'),
        ("{context7: {headers: [a]}}", "headers must be a mapping, not a list"),
        (
            "{context7: {command: x, env: {'A=B': s3cret}}}",
            "env has a name that no environment variable can have",
        ),
        ('{context7: {command: x, env: {A: "s3cret\\0"}}}', 'env has a wrong value for "A"'),
        ("{context7: {command: x, args: s3cret}}", "args must be a list of texts"),
        ("{context7: {command: x, args: [[s3cret]]}}", "args must be a list of texts"),
        ("{context7: {command: ''}}", "command must be a program"),
    ],
)
def test_a_wrong_server_is_told_without_its_secrets(tmp_path: Path, servers: str, told: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(tmp_path, servers)
    message = str(caught.value)
    assert message.startswith(f"{tmp_path / 'kr.yaml'}, line 2: knowledge_research.servers")
    assert told in message
    assert "s3cret" not in message


def test_a_header_that_a_variable_makes_dangerous_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="text of one line") as caught:
        load(tmp_path, "{context7: {headers: {A: '${KEY}'}}}", {"KEY": "s3cret\r\nHost: evil"})
    assert "s3cret" not in str(caught.value)


def test_secrets_stand_in_no_text_of_the_settings(tmp_path: Path) -> None:
    environ = {
        "KEY": "s3cret",
        "KR_WEB_SEARCH__URL": "http://s3cret@h/",
        "KR_LLM__BASE_URL": "http://h/${KEY}",
    }
    environ["KR_DATABASE_URL"] = "postgresql://u:s3cret@h/d"
    servers = "{context7: {url: 'http://h/${KEY}', headers: {A: '${KEY}'}}, deepwiki: {command: c, args: [s3cret], env: {B: '${KEY}'}}}"
    settings = load(tmp_path, servers, environ)
    assert settings.knowledge_research.llm.base_url == "http://h/s3cret"
    texts = (settings, settings.knowledge_research, *settings.knowledge_research.servers.values())
    assert "s3cret" not in "".join(repr(text) + str(text) for text in texts)


def test_the_form_that_other_programs_write_is_read(tmp_path: Path) -> None:
    settings = load(tmp_path, '{"context7": {"type": "http", "url": "http://h/mcp", "headers": {}}}')
    assert settings.knowledge_research.servers["context7"].url == "http://h/mcp"
    assert settings.warnings == ()
