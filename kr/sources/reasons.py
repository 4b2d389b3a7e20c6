"""Why a source gave no answer, in one short line: harmless for a terminal, and without a secret of the configuration."""

import os
import re
from collections.abc import Iterable, Iterator
from http import HTTPStatus
from urllib.parse import parse_qsl, urlsplit

from kr.settings.model import Server
from kr.text import one_line as text_line
from kr.text import strip_invisible

MAX_REASON = 200
"""Characters of a reason; the rest is cut."""

MAX_QUOTED = 130
"""Characters of a source's own words in a reason."""

# Three asterisks stand for a secret.
_MARKUP = re.compile(r"</?[A-Za-z!][^<>]*>|[<>`#|\\]|-{2,}|(?<!\*)\*{1,2}(?!\*)|\*{4,}")
_QUOTES = re.compile(r'["“”„‟«»]')
_SECRET_NAME = re.compile(r"(?i)(?:key|token|secret|password|passwd|auth|bearer)")
_SHORTEST_SECRET = 4
_SHORTEST_CREDENTIAL = 8


def one_line(text: str, *, limit: int = MAX_REASON) -> str:
    """Make ``text`` one printable line of at most ``limit`` characters."""
    shown = strip_invisible(text[: limit * 20])
    return text_line("".join(char if char.isprintable() else " " for char in shown), limit)


def quoted(text: str) -> str:
    """Return a source's own words in quotation marks: one line of at most ``MAX_QUOTED`` characters, without markup."""
    bare = _MARKUP.sub(" ", _QUOTES.sub("'", strip_invisible(text[: MAX_QUOTED * 20])))
    return f'"{one_line(bare.replace("](", "] ("), limit=MAX_QUOTED)}"'


def secrets_of(server: Server, *, surely: bool = False) -> tuple[str, ...]:
    """Return everything of a server's configuration that no message may repeat, and the words of each (``Bearer abc``), longest first.

    ``surely``: only what is surely a credential. A text may hold an ordinary header's value, but never one of these.
    """
    named = [*server.headers.items(), *server.env.items()]
    values = [value for name, value in named if not surely or _SECRET_NAME.search(name)]
    values += [*_secret_arguments(server.args), *_secrets_of_url(server.url or "")]
    shortest = _SHORTEST_CREDENTIAL if surely else _SHORTEST_SECRET
    found = {part for value in values for part in (value, *value.split())}
    kept = (one for one in found if len(one) >= shortest and one.lower() not in {"bearer", "basic"})
    return tuple(sorted(kept, key=len, reverse=True))


def _secret_arguments(args: tuple[str, ...]) -> Iterable[str]:
    for index, arg in enumerate(args):
        name, _, value = arg.partition("=")
        if name.startswith("-") and _SECRET_NAME.search(name):
            yield value or (args[index + 1] if index + 1 < len(args) else "")


def _secrets_of_url(url: str) -> Iterable[str]:
    try:
        parts = urlsplit(url)
    except ValueError:
        yield url
        return
    yield from filter(None, (parts.username, parts.password, parts.query))
    yield from (value for _, value in parse_qsl(parts.query))


def without_secrets(text: str, secrets: Iterable[str]) -> str:
    """Put ``***`` for every secret, which are given longest first."""
    for secret in secrets:
        text = text.replace(secret, "***")
    return text


def leaves(error: BaseException) -> Iterator[BaseException]:
    """Yield the errors in a group, however deep, or the error itself."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from leaves(inner)
    else:
        yield error


def connection_reason(error: BaseException) -> str:
    """Say why no connection came about, by the system's own words beneath the error of an HTTP client."""
    beneath: BaseException | None = error
    while beneath is not None:
        for leaf in leaves(beneath):
            if "certificate" in str(leaf).lower():
                return "the server's certificate is not trusted"
            if isinstance(leaf, OSError) and leaf.errno is not None and leaf.errno > 0:
                return f"no connection: {os.strerror(leaf.errno)}"
        beneath = beneath.__cause__ or beneath.__context__
    return one_line(f"no connection: {str(error) or type(error).__name__}", limit=120)


def status_reason(status: int) -> str:
    try:
        return f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"HTTP {status}"


def pause_asked_for(status: int, retry_after: str | None) -> float | None:
    """Return the seconds of a busy server's ``Retry-After`` header; None where it has none."""
    seconds = re.fullmatch(r"\s*([0-9]{1,9}(?:\.[0-9]{1,9})?)\s*", retry_after or "")
    return float(seconds[1]) if seconds and status in {429, 503} else None
