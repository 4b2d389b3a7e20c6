"""The protocol that every research source follows (SPEC 3.5), and the way from a source's name to what asks it.

Also what they have in common: short, harmless reasons for a failure, and the pause that a server asks for.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from http import HTTPStatus
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from kr.errors import SourceNotAsked
from kr.text import characters
from kr.text.characters import strip_invisible
from kr.values import Answer, Query, ServerConfig

if TYPE_CHECKING:
    from kr.settings.model import KnowledgeResearch, OwnSource


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One question to one source, with what an earlier request learned about the framework.

    ``own_repository`` may start the project's Python: only a source that needs it calls it.
    """

    query: Query
    library_id: str | None = None
    library_versions: tuple[str, ...] = ()
    repository: str | None = None
    own_repository: Callable[[], str | None] = lambda: None


class Source(Protocol):
    """A place that answers questions.

    ``ask`` blocks for at most about ``timeout`` seconds, importing what it needs when it is first called.
    It returns an answer with at least one passage of real documentation, or raises ``SourceFailure``
    (``SourceTimeout`` when it gave none in time); nothing else leaves it. It leaves no process, socket or
    file behind, whatever ends it.
    """

    @property
    def name(self) -> str:
        """The name in ``sources``, ``sources_consulted`` and the ledger."""

    @property
    def is_charged(self) -> bool:
        """Whether an answer costs a call of the story's budget."""

    def prepare(self) -> None:
        """Import what asking needs: that takes a while, and is no part of a call's own time."""

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Answer, or raise ``SourceFailure``. ``timeout`` is in seconds and positive."""


class NotConfigured:
    """Stands in the chain for a source that has no server: it says so when it is asked."""

    is_charged = True

    def __init__(self, name: str, *, hint: str) -> None:
        self.name = name
        self._hint = hint

    def prepare(self) -> None:
        """There is nothing to import."""

    def ask(self, ask: Ask, *, timeout: float) -> Answer:  # noqa: ARG002 - the protocol's parameters
        raise SourceNotAsked(f"not configured ({self._hint})")


@dataclass(frozen=True, slots=True)
class McpSource:
    server: ServerConfig
    is_charged: ClassVar[bool] = True

    def prepare(self) -> None:
        from kr.sources.mcp_client import prepare

        prepare()


def with_server(
    name: str,
    config: "KnowledgeResearch",
    make: Callable[[ServerConfig], Source],
    *,
    server: str | None = None,
) -> Source:
    """Make a source of the MCP server that the settings have under its name, or under ``server``; or what says that there is none."""
    found = config.servers.get(server or name)
    if found is None:
        return NotConfigured(name, hint=f"knowledge_research.servers.{server or name}")
    return make(ServerConfig(**{each.name: getattr(found, each.name) for each in fields(ServerConfig)}))


def build_source(
    source: "str | OwnSource", config: "KnowledgeResearch", environ: Mapping[str, str], root: Path
) -> Source:
    """Build a source of the chain with its module's ``build(config, environ)``; paths of one's own are below ``root``. Nothing is asked yet."""
    if isinstance(source, str):
        built: Source = import_module(f"kr.sources.{source}").build(config, environ)
        return built
    if source.folder is not None:
        from kr.sources.folder import Folder

        place = root / Path(source.folder).expanduser()
        return Folder(name=source.name, folder=place, framework=source.framework, environ=environ)
    from kr.sources.mcp_tool import McpTool

    name, tool, argument = source.name, source.tool or "", source.argument
    return with_server(
        name, config, lambda server: McpTool(server, name, tool, argument), server=source.server
    )


MAX_REASON = 200
"""Characters of a reason; the rest is cut."""

MAX_QUOTED = 130
"""Characters of a source's own words in a reason."""

# Three asterisks stand for a secret.
_MARKUP = re.compile(r"</?[A-Za-z!][^<>]*>|[<>`#|\\]|-{2,}|(?<!\*)\*{1,2}(?!\*)|\*{4,}")
_QUOTES = re.compile(r'["“”„‟«»]')

_SHORTEST_SECRET = 4
_SHORTEST_CREDENTIAL = 8
_SECRET_FLAG = re.compile(r"(?i)(?:key|token|secret|password|passwd|auth|bearer)")
_LONGEST_NUMBER = 12


def one_line(text: str, *, limit: int = MAX_REASON) -> str:
    """Make ``text`` one line of at most ``limit`` characters; what Python takes for unprintable becomes a space too."""
    shown = strip_invisible(text[: limit * 20])
    return characters.one_line("".join(char if char.isprintable() else " " for char in shown), limit)


def quoted(text: str) -> str:
    """Return what a source said, of at most ``MAX_QUOTED`` characters, in quotation marks: its own words, on one line and without markup."""
    bare = _MARKUP.sub(" ", _QUOTES.sub("'", strip_invisible(text[: MAX_QUOTED * 20])))
    return f'"{one_line(bare.replace("](", "] ("), limit=MAX_QUOTED)}"'


def secrets_of(server: ServerConfig) -> tuple[str, ...]:
    """Everything of a server's configuration that no message may repeat, longest first; values under four characters hide nothing.

    Values of headers, environment and query, user information, arguments behind a flag named like a key, and their words (``Bearer abc``).
    """
    values = (*server.headers.values(), *server.env.values(), *_secret_arguments(server.args))
    return _with_words(server, values, _SHORTEST_SECRET)


def credentials_of(server: ServerConfig) -> tuple[str, ...]:
    """Return what is surely a credential, longest first: narrower than ``secrets_of``, as texts may hold an ordinary header value."""
    named = [*server.headers.items(), *server.env.items()]
    values = (value for name, value in named if _SECRET_FLAG.search(name))
    return _with_words(server, (*values, *_secret_arguments(server.args)), _SHORTEST_CREDENTIAL)


def _with_words(server: ServerConfig, values: Iterable[str], shortest: int) -> tuple[str, ...]:
    found = {part for value in values for part in (value, *value.split())}
    found.update(_secrets_of_url(server.url or ""))
    kept = (one for one in found if len(one) >= shortest and one.lower() not in {"bearer", "basic"})
    return tuple(sorted(kept, key=len, reverse=True))


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Put ``***`` for every secret, longest first, also for one with invisible characters in between."""
    known = tuple(secrets)
    for secret in known:
        text = text.replace(secret, "***")
    shown = strip_invisible(text)
    if not any(secret in shown for secret in known):
        return text
    for secret in known:
        shown = shown.replace(secret, "***")
    return shown


def status_reason(status: int) -> str:
    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"


def retry_after_seconds(value: str | None, *, now: datetime) -> float | None:
    """Read a ``Retry-After`` header, seconds or HTTP date (RFC 9110, 10.2.3), as seconds from ``now``; None for neither."""
    text = (value or "").strip()
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text) and len(text) <= _LONGEST_NUMBER:
        return float(text)
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(text)
    except (ValueError, IndexError, TypeError, OverflowError):
        return None
    aware = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (aware - now).total_seconds())


def _secret_arguments(args: tuple[str, ...]) -> Iterable[str]:
    for index, arg in enumerate(args):
        name, _, value = arg.partition("=")
        if not name.startswith("-") or not _SECRET_FLAG.search(name):
            continue
        yield value or (args[index + 1] if index + 1 < len(args) else "")


def _secrets_of_url(url: str) -> Iterable[str]:
    try:
        parts = urlsplit(url)
        user, password = parts.username, parts.password
    except ValueError:
        yield url
        return
    for value in (user, password, *(value for _, value in parse_qsl(parts.query))):
        if value:
            yield from (value, unquote(value))
    if parts.query:
        yield parts.query
    if "@" in parts.netloc:
        yield parts.netloc.rpartition("@")[0]
