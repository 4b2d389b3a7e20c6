"""The research source ``web_search``: a search, then the pages of its first results (SPEC 3.5 item 3)."""

import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol

from kr.cancellation import broken_off
from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.models import Answer, Passage, Query
from kr.sources.base import Ask, Source

if TYPE_CHECKING:
    from kr.deadline import Deadline
    from kr.settings.model import KnowledgeResearch
    from kr.sources.http_exchange import Network


ProviderName = Literal["searxng", "brave", "tavily", "duckduckgo"]

MAX_ANSWER = 2 * 1024 * 1024
"""Bytes of a provider's answer."""

ASKED_FOR = 8
"""Results asked for: some are no pages, and some lead to the same."""

MAX_PAGES = 3
"""Results whose pages are read (seed 000, step 5c)."""

_PAGE_SECONDS = 30.0
"""The longest that one page is waited for, however long the search may take."""

_SEARCH_SECONDS = 30.0

_ENOUGH = 2
"""Pages that can confirm one another (SPEC 3.7); once they are there, the others get ``_GRACE`` seconds more."""

_GRACE = 4.0


class Result(NamedTuple):
    url: str
    title: str


class Provider(Protocol):
    """Something that answers a search."""

    def search(self, query: str, deadline: "Deadline") -> Sequence[Result]:
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
    """SearXNG, Brave or Tavily at ``url`` (None: its own address), which may be private. Redirects are not followed."""

    name: Literal["searxng", "brave", "tavily"]
    url: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)

    def search(self, query: str, deadline: "Deadline") -> Sequence[Result]:
        from kr.sources.http_exchange import ask_json

        request = _APIS[self.name].request(query, self._key())
        found = ask_json(
            self.name,
            request.method,
            _target(self._base_url(), request),
            deadline=deadline,
            max_bytes=MAX_ANSWER,
            headers=request.headers or {},
            body=request.body,
            hints={403: " (does the instance allow the format json?)"} if self.name == "searxng" else {},
        )
        return self._results(found)

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

    def _results(self, found: Any) -> Sequence[Result]:
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
    """Choose the provider. ``auto``: a url is SearXNG's, a key whose the variable's name says, else Brave's; else DuckDuckGo."""
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


def _target(base_url: str, request: _Request) -> Any:
    """Return the ``httpx.URL`` of a request. Raises ``SourceFailure`` when the configured address is none."""
    from kr.sources.safe_fetch import checked_url

    base, mark, query = base_url.partition("#")[0].partition("?")
    base = base.rstrip("/").removesuffix("/search")
    try:
        url = checked_url(base + request.path + mark + query)
    except SourceFailure as error:
        raise SourceNotAsked(f"web_search.url: {error.reason}") from error
    return url.copy_merge_params(dict(request.parameters)) if request.parameters else url


class DuckDuckGo:
    """DuckDuckGo through the package ``ddgs``, without a key; ``is_configured``: somebody chose it."""

    def __init__(self, *, is_configured: bool = False) -> None:
        self._is_configured = is_configured

    def search(self, query: str, deadline: "Deadline") -> Sequence[Result]:
        try:
            from ddgs import DDGS
            from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException
        except ImportError as error:
            from kr.extras import how_to_install

            why = "" if self._is_configured else "no search provider is configured, and "
            raise SourceNotAsked(
                f"{why}DuckDuckGo needs the package ddgs. This installs it: {how_to_install('duckduckgo')}"
            ) from error
        from kr.deadline import bounded

        seconds = max(1, min(15, int(deadline.remaining())))

        def ask() -> list[dict[str, Any]]:
            with DDGS(timeout=seconds) as client:
                return list(client.text(query, max_results=ASKED_FOR, backend="duckduckgo"))

        try:
            found = bounded(ask, deadline)
        except (SourceTimeout, TimeoutException) as error:
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


def build(config: "KnowledgeResearch", environ: Mapping[str, str]) -> Source:
    search = config.web_search
    return WebSearch(
        provider=search.provider,
        url=search.url,
        api_key=environ.get(search.api_key_env) if search.api_key_env else None,
        api_key_env=search.api_key_env,
        allow_private_addresses=search.allow_private_addresses,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSearch:
    """Reads the pages of the first three results of a search, all at once; ``url`` is the provider's, and may be private."""

    name: ClassVar[str] = "web_search"
    is_charged: ClassVar[bool] = True
    provider: ProviderName | Literal["auto"] = "auto"
    url: str | None = field(default=None, repr=False)
    api_key: str | None = field(default=None, repr=False)
    api_key_env: str | None = None
    allow_private_addresses: bool = False
    network: "Network | None" = None

    def prepare(self) -> None:
        """There is nothing heavy to import."""

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        from kr.deadline import Deadline

        deadline = Deadline(timeout)
        try:
            with broken_off(deadline.cancel):
                results = self._search(search_query(ask.query), deadline)
                passages = self._read(results[:MAX_PAGES], deadline)
        finally:
            deadline.cancel()
        return Answer(source=self.name, passages=_ranked(passages, ask.query), url=passages[0].url)

    def _search(self, query: str, deadline: "Deadline") -> Sequence[Result]:
        provider: Provider = provider_for(
            self.provider, url=self.url, api_key=self.api_key, api_key_env=self.api_key_env
        )
        return provider.search(query, deadline.within(_SEARCH_SECONDS))

    def _read(self, results: Sequence[Result], deadline: "Deadline") -> tuple[Passage, ...]:
        """Read the pages, and wait for all or the deadline. Raises ``SourceFailure`` when none was read."""
        from kr.sources.http_exchange import Network

        network = self.network or Network(allow_private=self.allow_private_addresses)
        pages = deadline.within(_PAGE_SECONDS)
        done: queue.SimpleQueue[tuple[int, Passage | SourceFailure]] = queue.SimpleQueue()
        threads = [
            threading.Thread(
                target=lambda index=index, result=result: done.put((index, _page(result, network, pages))),
                name="kr-page",
                daemon=True,
            )
            for index, result in enumerate(results)
        ]
        for thread in threads:
            thread.start()
        outcomes = _collect(done, len(results), pages)
        pages.cancel()
        for thread in threads:
            thread.join(0.2)  # they end at once, but for one that is converting a page
        read = tuple(found for _, found in sorted(outcomes.items()) if isinstance(found, Passage))
        if not read:
            raise _unread(len(results), [found for _, found in sorted(outcomes.items())])
        return read


def _ranked(pages: Sequence[Passage], query: Query) -> tuple[Passage, ...]:
    """Cut the pages at their headings and put what fits the question best first."""
    from kr.documents.rank import question_of, rank_texts

    cut = {page.url for page in pages if page.is_cut}
    found = rank_texts([(page.title or "", page.url or "", page.text) for page in pages], question_of(query))
    return tuple(
        Passage(text=one.text, title=one.name or None, url=one.place, is_cut=one.place in cut)
        for one in found
    ) or tuple(pages)


def search_query(query: Query) -> str:
    """Build ``{framework} {framework_version} {question}`` (seed 000, step 5c), an unknown version left out."""
    version = "" if query.framework_version.strip().lower() == "unknown" else query.framework_version
    return " ".join(f"{query.framework} {version} {query.question}".split())


def _page(result: Result, network: "Network", deadline: "Deadline") -> Passage | SourceFailure:
    """Read one page; what goes wrong is returned, since this runs in a thread."""
    from kr.documents.html import to_markdown
    from kr.sources.safe_fetch import fetch_page

    try:
        page = fetch_page(result.url, network=network, deadline=deadline)
        deadline.remaining()
        markdown = to_markdown(page.text, media_type=page.media_type, url=page.url)
    except SourceFailure as failure:
        return failure
    except Exception as error:  # noqa: BLE001  # a stranger's page; an error in a thread would be lost
        return SourceFailure(f"the page can't be converted ({type(error).__name__})")
    is_cut = page.is_cut or markdown.is_cut
    if not markdown.text.strip():
        return SourceFailure(
            f"the page has no text{' in the beginning, all that was read' if is_cut else ''}"
        )
    title = markdown.title or result.title or None
    return Passage(text=markdown.text, title=title, url=page.url, is_cut=is_cut)


def _collect(
    done: "queue.SimpleQueue[tuple[int, Passage | SourceFailure]]", count: int, deadline: "Deadline"
) -> dict[int, Passage | SourceFailure]:
    """Wait for all pages or the deadline; when enough are read, the slow ones hold up nobody for long."""
    outcomes: dict[int, Passage | SourceFailure] = {}
    read = 0
    try:
        while len(outcomes) < count:
            index, found = done.get(timeout=deadline.remaining())
            outcomes[index] = found
            if isinstance(found, Passage):
                read += 1
                deadline = deadline.within(_GRACE) if read == _ENOUGH else deadline
    except (queue.Empty, SourceTimeout):
        return outcomes
    return outcomes


def _unread(count: int, failures: Sequence[Passage | SourceFailure]) -> SourceFailure:
    """Say that no page could be read. The search worked, so it is no fault of the provider."""
    known = [failure for failure in failures if isinstance(failure, SourceFailure)]
    late = count - len(known) + sum(isinstance(failure, SourceTimeout) for failure in known)
    pages = "the page found" if count == 1 else f"any of the {count} pages found"
    if late == count:
        return SourceTimeout(f"could not read {pages} in time", is_fault=False)
    first = next(failure for failure in known if not isinstance(failure, SourceTimeout))
    return SourceFailure(f"could not read {pages}: {first.reason}", is_fault=False)
