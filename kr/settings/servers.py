"""The MCP servers, in the ecosystem's mcpServers form."""

import re
from collections.abc import Mapping
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, SecretStr, model_validator

from kr.settings.kinds import header_value, one_of, shown, text, variable_value, web_address, wrong
from kr.settings.section import Section, described, mapping_of
from kr.source_kinds import DEFAULT_SERVERS

_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def _list_of_text(value: object) -> object:
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise wrong("must be a list of texts")
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
    Mapping[str, SecretStr], BeforeValidator(mapping_of(header_value())), AfterValidator(_header_names)
]
Variables = Annotated[
    Mapping[str, SecretStr], BeforeValidator(mapping_of(variable_value())), AfterValidator(_variable_names)
]


class Server(Section):
    """One MCP server, in the ecosystem's mcpServers form: ``url`` and ``headers``, or ``command``."""

    type: Annotated[
        str | None,
        BeforeValidator(one_of("http", "streamable-http", "streamable_http", "stdio", nullable=True)),
    ] = described(None, "Accepted as other programs write it; url or command decides.")
    url: Annotated[str | None, BeforeValidator(web_address(nullable=True))] = described(
        None,
        "Where it answers over streamable HTTP; ${VAR} expands. Without url and command the default's own.",
        repr=False,
    )
    headers: Headers = described(
        {},
        "Headers sent to url; ${VAR} expands, and a header whose variable is not set is left out.",
        repr=False,
    )
    command: Annotated[str | None, BeforeValidator(text("a program", nullable=True))] = described(
        None, "A program that speaks MCP over standard input and output."
    )
    args: Annotated[tuple[str, ...], BeforeValidator(_list_of_text)] = described(
        (), "The program's arguments.", repr=False
    )
    env: Variables = described(
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


Servers = Annotated[Mapping[str, Server], BeforeValidator(_with_default_servers)]
