"""The research source ``web_search``: a search, then the pages of its first results (F1, step 5c)."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, ClassVar

import anyio
import httpx2

from kr.documents.index import rank_texts
from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout, how_to_install
from kr.models import Query
from kr.settings.model import SearchProvider
from kr.sources.base import Answer, Ask, Passage
from kr.sources.fetch import ask_json, checked_url, fetch_page
from kr.sources.network import Network, in_thread, run
from kr.text import one_line

_ASKED_FOR = 8
"""Results asked for: some are no pages, and some lead to the same."""
_MAX_PAGES = 3
"""Results whose pages are read."""
_MAX_SEARCH = 400
"""Characters of a search, which is what Brave and Tavily take."""
_SEARCH_SECONDS = 30.0
_PAGE_SECONDS = 15.0
"""Seconds that a search, and the pages together, are waited for, however long the source may take."""


class WebSearch:
    """Reads the pages of the first three results of a search, all at once; the provider's own address may be private."""

    name: ClassVar[str] = "web_search"
    is_charged: ClassVar[bool] = True

    def __init__(self, config: SearchProvider, environ: Mapping[str, str]) -> None:
        self._config = config
        self._key = environ.get(config.api_key_env or "", "").strip()

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Answer from pages that could be read. Raises ``SourceFailure``; that no page could be read is no fault of the provider."""
        passages = run(lambda: self._pages(ask.query), timeout=timeout)
        return Answer(source=self.name, passages=_ranked(passages, ask.query), url=passages[0].url)

    async def _pages(self, query: Query) -> Sequence[Passage]:
        provider = self.provider
        version = "" if query.framework_version.strip().lower() == "unknown" else query.framework_version
        words = " ".join(f"{query.framework} {version} {query.question}".split())  # F1, step 5c
        search = _duckduckgo if provider == "duckduckgo" else self._search
        try:
            with anyio.fail_after(_at_most(_SEARCH_SECONDS)):
                found = await search(words)
        except TimeoutError as error:
            raise SourceTimeout(f"{provider} gave no answer in time") from error
        network = Network(allow_private=self._config.allow_private_addresses)
        return await _read(usable(found, provider), network)

    @property
    def provider(self) -> str:
        """Where ``auto`` leaves it open: a url is SearXNG's; a key is Tavily's where its variable says so, else Brave's."""
        if self._config.provider != "auto":
            return self._config.provider
        if self._config.url:
            return "searxng"
        if self._key:
            return "tavily" if "TAVILY" in (self._config.api_key_env or "").upper() else "brave"
        return "duckduckgo"

    async def _search(self, words: str) -> Sequence[Any]:
        """Return the results as the provider gives them. Raises ``SourceFailure``."""
        provider, body = self.provider, None
        if not self._key and provider != "searxng":
            raise SourceNotAsked(f"{provider} needs an API key: set web_search.api_key_env")
        if not self._config.url and provider == "searxng":
            raise SourceNotAsked("searxng needs its address: set web_search.url")
        headers = dict[str, str]()
        match provider:
            case "searxng":
                url = self._target("", "/search").copy_merge_params({"q": words, "format": "json"})
            case "brave":
                url = self._target("https://api.search.brave.com", "/res/v1/web/search")
                url = url.copy_merge_params({"q": words[:_MAX_SEARCH], "count": str(_ASKED_FOR)})
                headers = {"X-Subscription-Token": self._key}
            case _:
                url = self._target("https://api.tavily.com", "/search")
                headers = {"Authorization": f"Bearer {self._key}"}
                body = {"query": words[:_MAX_SEARCH], "max_results": _ASKED_FOR}
        found = await ask_json(provider, url, headers=headers, body=body)
        if provider == "brave" and isinstance(found, dict):  # ``web`` is left out when nothing was found
            found = found.get("web", {"results": []} if found.get("type") == "search" else None)
        if not isinstance(found, dict) or not isinstance(found.get("results"), list):
            raise SourceFailure(f"{provider}: the answer is not of the documented shape")
        results: list[Any] = found["results"]
        return results

    def _target(self, default: str, path: str) -> httpx2.URL:
        """Return ``path`` below the configured address, or below the provider's own."""
        url = checked_url(self._config.url or default)
        return url.copy_with(path=url.path.rstrip("/").removesuffix("/search") + path)


async def _duckduckgo(words: str) -> Sequence[Any]:
    """Search through the package ``ddgs``, without a key."""
    try:
        from ddgs import DDGS  # heavy: an extra that need not be installed
    except ImportError as error:
        needs = "DuckDuckGo, which is asked where no other provider is configured, needs the package ddgs"
        raise SourceNotAsked(f"{needs}. This installs it: {how_to_install('duckduckgo')}") from error

    def search() -> list[Any]:
        with DDGS(timeout=15) as client:
            return list(client.text(words, max_results=_ASKED_FOR, backend="duckduckgo"))

    try:
        return await in_thread(search)
    except Exception as error:  # of a package that speaks with strangers
        if type(error).__name__ == "TimeoutException":
            raise SourceTimeout("duckduckgo gave no answer in time") from error
        if "No results" in str(error):
            return []
        raise SourceFailure(f"duckduckgo: the search failed ({type(error).__name__})") from error


def _at_most(seconds: float) -> float:
    """Return so many seconds, or fewer where little is left: what is done by then can still be returned."""
    left = anyio.current_effective_deadline() - anyio.current_time()
    return min(seconds, 0.9 * left)


def usable(items: Sequence[object], provider: str) -> dict[str, str]:
    """Return the addresses and titles of the first results that lead to different pages of the web. Raises ``SourceFailure`` for none."""
    if not items:
        raise SourceFailure(f"{provider} found nothing", is_fault=False)
    kept: dict[str, str] = {}
    for item in (it for it in items if isinstance(it, dict)):
        url = item.get("url") or item.get("href")
        if isinstance(url, str) and url.lower().startswith(("http://", "https://")):
            kept.setdefault(url.partition("#")[0], one_line(str(item.get("title") or ""), 200))
    if not kept:
        raise SourceFailure(f"{provider}: the answer has no result with a web address")
    return dict(islice(kept.items(), _MAX_PAGES))


async def _read(results: Mapping[str, str], network: Network) -> Sequence[Passage]:
    """Read the pages at the same time, and return those that could be read. Raises ``SourceFailure`` when none could."""
    pages: dict[str, Passage] = {}
    reasons: list[str] = []

    async def read(url: str, title: str) -> None:
        try:
            page = await fetch_page(url, network=network)
            pages[url] = replace(page, title=page.title or title or None)
        except SourceTimeout:
            pass
        except SourceFailure as failure:
            reasons.append(failure.reason)
        except Exception as error:  # noqa: BLE001  # a stranger's page; the other pages are still read
            reasons.append(f"the page can't be converted ({type(error).__name__})")

    with anyio.move_on_after(_at_most(_PAGE_SECONDS)):
        async with anyio.create_task_group() as tasks:
            for url, title in results.items():
                tasks.start_soon(read, url, title)
    if not pages:  # the search worked: it is no fault of the provider
        if not reasons:
            raise SourceTimeout(f"could not read any of {len(results)} pages in time", is_fault=False)
        raise SourceFailure(f"could not read any of {len(results)} pages: {reasons[0]}", is_fault=False)
    return [pages[url] for url in results if url in pages]


def _ranked(pages: Sequence[Passage], query: Query) -> tuple[Passage, ...]:
    """Cut the pages at their headings and put what fits the question best first."""
    cut = {page.url for page in pages if page.is_cut}
    found = rank_texts([(page.title or "", page.url or "", page.text) for page in pages], query)
    return tuple(
        Passage(text=one.text, title=one.name or None, url=one.place, is_cut=one.place in cut)
        for one in found
    ) or tuple(pages)
