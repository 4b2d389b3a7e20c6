"""Search providers: how each is asked, and what of its answer is a result (SPEC 3.5 item 3)."""

import json
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any, Literal, NamedTuple, Protocol
from urllib.parse import unquote

from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.sources.deadline import Deadline, bounded

ProviderName = Literal["searxng", "brave", "tavily", "duckduckgo"]

MAX_ANSWER = 2 * 1024 * 1024
"""Bytes of a provider's answer."""

ASKED_FOR = 8
"""Results asked for: some are no pages, and some lead to the same."""


class Result(NamedTuple):
    """One result of a search."""

    url: str
    title: str


class Provider(Protocol):
    """Something that answers a search."""

    def search(self, query: str, deadline: Deadline) -> Sequence[Result]:
        """Return the results, best first, at least one. Raises ``SourceFailure``, ``SourceTimeout``."""


class _Request(NamedTuple):
    method: str
    path: str
    parameters: Mapping[str, str] | None = None
    headers: Mapping[str, str] | None = None
    body: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class _Api:
    """How a provider with an HTTP interface is spoken to. ``results`` are the keys that lead to the list."""

    base_url: str | None
    request: Callable[[str, str], _Request]
    results: tuple[str, ...]
    needs_key: bool = True


def _searxng(query: str, _key: str) -> _Request:
    return _Request("GET", "/search", {"q": query, "format": "json"})


def _brave(query: str, key: str) -> _Request:
    parameters = {"q": query[:400], "count": str(ASKED_FOR)}  # 400 characters are its limit
    return _Request("GET", "/res/v1/web/search", parameters, {"X-Subscription-Token": key})


def _tavily(query: str, key: str) -> _Request:
    body = {"query": query[:400], "max_results": ASKED_FOR}
    return _Request("POST", "/search", None, {"Authorization": f"Bearer {key}"}, body)


_APIS: Mapping[str, _Api] = {
    "searxng": _Api(None, _searxng, ("results",), needs_key=False),
    "brave": _Api("https://api.search.brave.com", _brave, ("web", "results")),
    "tavily": _Api("https://api.tavily.com", _tavily, ("results",)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpProvider:
    """SearXNG, Brave or Tavily at ``url``, or at its own address where ``url`` is None.

    The address may be private, since the user configured it; redirects are not followed.
    """

    name: Literal["searxng", "brave", "tavily"]
    url: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)

    def search(self, query: str, deadline: Deadline) -> Sequence[Result]:
        """Ask the provider, see ``Provider``. Reasons hold neither the key nor the address."""
        from kr.sources.http_exchange import Network, exchange

        request = _APIS[self.name].request(query, self._key())
        base_url, credentials = _split_credentials(self._base_url())
        target = _target(base_url, request)
        headers = {"Accept": "application/json", **(credentials or {}), **(request.headers or {})}
        content = None
        if request.body is not None:
            headers["Content-Type"] = "application/json"
            content = json.dumps(request.body).encode()
        try:
            reply = exchange(
                request.method,
                target,
                network=Network(allow_private=True),
                deadline=deadline,
                max_bytes=MAX_ANSWER,
                headers=headers,
                content=content,
            )
        except SourceTimeout as error:
            raise SourceTimeout(f"{self.name} gave no answer in time") from error
        except SourceFailure as error:
            raise SourceFailure(f"{self.name}: {error.reason}") from error
        self._check(reply.status, reply.headers)
        if reply.body.is_cut:
            raise SourceFailure(f"{self.name}: the answer is larger than 2 MiB")
        return self._results(reply.body.data)

    def _key(self) -> str:
        key = (self.api_key or "").strip()
        if not key and _APIS[self.name].needs_key:
            raise SourceNotAsked(f"{self.name} needs an API key: set web_search.api_key_env")
        if not key.isascii() or not key.isprintable():
            raise SourceNotAsked(f"{self.name}: the API key has characters that no key has")
        return key

    def _base_url(self) -> str:
        url = (self.url or "").strip() or _APIS[self.name].base_url
        if not url:
            raise SourceNotAsked(f"{self.name} needs its address: set web_search.url")
        return url

    def _check(self, status: int, headers: Mapping[str, str]) -> None:
        from kr.sources.reasons import retry_after_seconds

        if not 200 <= status < 300:
            after = None
            if status in {HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE}:
                after = retry_after_seconds(headers.get("retry-after"), now=datetime.now(UTC))
            raise SourceFailure(f"{self.name}: {_status_reason(status, self.name)}", retry_after=after)
        kind = headers.get("content-type", "").partition(";")[0].strip().lower()
        if not kind.endswith(("/json", "+json")):
            raise SourceFailure(f"{self.name}: the answer is no JSON")

    def _results(self, data: bytes) -> Sequence[Result]:
        try:
            found = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise SourceFailure(f"{self.name}: the answer is broken JSON") from error
        for key in _APIS[self.name].results:
            if not isinstance(found, dict):
                raise SourceFailure(f"{self.name}: the answer is not of the documented shape")
            if key == "web" and key not in found and found.get("type") == "search":
                found = {"web": {"results": []}}  # Brave leaves it out when it found nothing
            found = found.get(key)
        if not isinstance(found, list):
            raise SourceFailure(f"{self.name}: the answer is not of the documented shape")
        return usable(found, self.name)


def provider_for(
    provider: ProviderName | Literal["auto"], *, url: str | None, api_key: str | None, api_key_env: str | None
) -> Provider:
    """Choose the provider.

    ``auto`` takes what is configured: a url is SearXNG's; a key is whose the variable's name says, else
    Brave's; nothing leaves DuckDuckGo.
    """
    is_configured = provider != "auto"
    if provider == "auto":
        variable = (api_key_env or "").upper()
        if url:
            provider = "searxng"
        elif api_key:
            provider = "tavily" if "TAVILY" in variable else "brave"
        else:
            provider = "duckduckgo"
    if provider == "duckduckgo":
        return DuckDuckGo(is_configured=is_configured)
    return HttpProvider(name=provider, url=url, api_key=api_key)


def usable(items: Sequence[object], name: str, *, address: str = "url") -> Sequence[Result]:
    """Keep the results that lead to different pages of the web. Raises ``SourceFailure`` when none does."""
    kept: dict[str, Result] = {}
    objects = [item for item in items if isinstance(item, dict)]
    if items and not objects:
        raise SourceFailure(f"{name}: the answer is not of the documented shape")
    for item in objects:
        url, title = item.get(address), item.get("title")
        if not isinstance(url, str) or not url.lower().startswith(("http://", "https://")):
            continue
        clean = " ".join(title[:1000].split()) if isinstance(title, str) else ""
        kept.setdefault(url.partition("#")[0], Result(url, clean[:200]))
    if objects and not kept:
        raise SourceFailure(f"{name}: the answer has no result with a web address")
    if not kept:
        raise SourceFailure(f"{name} found nothing", is_fault=False)
    return tuple(kept.values())


def _split_credentials(url: str) -> tuple[str, Mapping[str, str] | None]:
    """Take a user name and password out of an address; they go into a header."""
    scheme, separator, rest = url.partition("://")
    authority, slash, path = rest.partition("/")
    user, at, host = authority.rpartition("@")
    if not at:
        return url, None
    token = b64encode(unquote(user).encode()).decode()
    return f"{scheme}{separator}{host}{slash}{path}", {"Authorization": f"Basic {token}"}


def _target(base_url: str, request: _Request) -> Any:
    """Return the ``httpx.URL`` of a request. Raises ``SourceFailure`` when the configured address is none."""
    from kr.sources.safe_fetch import checked_url

    base, mark, query = base_url.partition("#")[0].partition("?")
    base = base.rstrip("/").removesuffix("/search")
    try:
        url = checked_url(base + request.path + mark + query, allow_private=True)
    except SourceFailure as error:
        raise SourceNotAsked(f"web_search.url: {error.reason}") from error
    return url.copy_merge_params(dict(request.parameters)) if request.parameters else url


def _status_reason(status: int, name: str) -> str:
    if 300 <= status < 400:
        return f"HTTP {status}, a redirect that is not followed"
    try:
        reason = f"HTTP {status} {HTTPStatus(status).phrase}"
    except ValueError:
        reason = f"HTTP {status}"
    if status == HTTPStatus.FORBIDDEN and name == "searxng":
        return f"{reason} (does the instance allow the format json?)"
    return reason


class DuckDuckGo:
    """DuckDuckGo through the package ``ddgs``, which needs no key.

    ``is_configured``: somebody chose it, and it does not merely stand in for a provider.
    """

    def __init__(self, *, is_configured: bool = False) -> None:
        self._is_configured = is_configured

    def search(self, query: str, deadline: Deadline) -> Sequence[Result]:
        """Ask DuckDuckGo, see ``Provider``."""
        try:
            from ddgs import DDGS
            from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException
        except ImportError as error:
            from kr.extras import how_to_install

            why = "" if self._is_configured else "no search provider is configured, and "
            raise SourceNotAsked(
                f"{why}DuckDuckGo needs the package ddgs. This installs it: {how_to_install('duckduckgo')}"
            ) from error
        seconds = max(1, min(15, int(deadline.remaining())))

        def ask() -> list[dict[str, Any]]:
            with DDGS(timeout=seconds) as client:
                return list(client.text(query, max_results=ASKED_FOR, backend="duckduckgo"))

        try:
            found = bounded(ask, deadline)
        except SourceTimeout as error:
            raise SourceTimeout("duckduckgo gave no answer in time") from error
        except TimeoutException as error:
            raise SourceTimeout("duckduckgo gave no answer in time") from error
        except RatelimitException as error:
            raise SourceFailure("duckduckgo: too many requests") from error
        except DDGSException as error:
            if "No results" in str(error):
                raise SourceFailure("duckduckgo found nothing", is_fault=False) from error
            raise SourceFailure("duckduckgo: the search failed") from error
        except Exception as error:  # of a package that speaks with strangers
            raise SourceFailure(f"duckduckgo: the search failed ({type(error).__name__})") from error
        return usable(found, "duckduckgo", address="href")
