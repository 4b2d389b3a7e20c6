"""The research source ``web_search``: a search, then the pages of its first results (F1, step 5c)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import anyio
import httpx2

from kr.documents.html import to_markdown
from kr.documents.index import question_of, rank_texts
from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout, how_to_install
from kr.models import Answer, Passage, Query
from kr.settings.model import SearchProvider
from kr.sources.addresses import Network
from kr.sources.base import Ask
from kr.sources.event_loop import in_thread, run
from kr.sources.fetch import ask_json, checked_url, fetch_page

_MAX_ANSWER = 2 * 1024 * 1024
"""Bytes of a provider's answer."""

_ASKED_FOR = 8
"""Results asked for: some are no pages, and some lead to the same."""

_MAX_PAGES = 3
"""Results whose pages are read."""

_MAX_SEARCH = 400
"""Characters of a search, which is what Brave and Tavily take."""

_SEARCH_SECONDS = 30.0
_PAGE_SECONDS = 15.0
"""Seconds that a search, and the pages together, are waited for, however long the source may take."""


@dataclass(frozen=True, slots=True)
class Result:
    url: str
    title: str


class WebSearch:
    """Reads the pages of the first three results of a search, all at once; the provider's own address may be private."""

    name: ClassVar[str] = "web_search"
    is_charged: ClassVar[bool] = True

    def __init__(self, config: SearchProvider, environ: Mapping[str, str]) -> None:
        self._config = config
        self._key = environ.get(config.api_key_env or "", "").strip()

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Answer from pages that could be read. Raises ``SourceFailure``; that no page could be read is no fault of the provider."""
        passages = run(lambda: self._answer(ask.query), timeout=timeout)
        return Answer(source=self.name, passages=_ranked(passages, ask.query), url=passages[0].url)

    async def _answer(self, query: Query) -> Sequence[Passage]:
        provider = self.provider
        version = "" if query.framework_version.strip().lower() == "unknown" else query.framework_version
        words = " ".join(f"{query.framework} {version} {query.question}".split())  # F1, step 5c
        try:
            with anyio.fail_after(_at_most(_SEARCH_SECONDS)):
                found = await self._search(provider, words)
        except TimeoutError as error:
            raise SourceTimeout(f"{provider} gave no answer in time") from error
        network = Network(allow_private=self._config.allow_private_addresses)
        return await _read(usable(found, provider)[:_MAX_PAGES], network)

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

    async def _search(self, provider: str, words: str) -> Sequence[Any]:
        """Return the results as the provider gives them. Raises ``SourceFailure``."""
        if provider == "duckduckgo":
            return await _duckduckgo(words)
        if not self._key and provider != "searxng":
            raise SourceNotAsked(f"{provider} needs an API key: set web_search.api_key_env")
        method, headers, body = "GET", {}, None
        match provider:
            case "searxng":
                url = self._target(None, "/search", {"q": words, "format": "json"})
            case "brave":
                query = {"q": words[:_MAX_SEARCH], "count": str(_ASKED_FOR)}
                url = self._target("https://api.search.brave.com", "/res/v1/web/search", query)
                headers = {"X-Subscription-Token": self._key}
            case _:
                method, url = "POST", self._target("https://api.tavily.com", "/search", {})
                headers = {"Authorization": f"Bearer {self._key}"}
                body = {"query": words[:_MAX_SEARCH], "max_results": _ASKED_FOR}
        found = await ask_json(provider, method, url, max_bytes=_MAX_ANSWER, headers=headers, body=body)
        if provider == "brave" and isinstance(found, dict):  # ``web`` is left out when nothing was found
            found = found.get("web", {"results": []} if found.get("type") == "search" else None)
        if not isinstance(found, dict) or not isinstance(found.get("results"), list):
            raise SourceFailure(f"{provider}: the answer is not of the documented shape")
        results: list[Any] = found["results"]
        return results

    def _target(self, default: str | None, path: str, query: Mapping[str, str]) -> httpx2.URL:
        """Return the URL of a request to the configured address, or to the provider's own."""
        base = (self._config.url or "").strip() or default
        if base is None:
            raise SourceNotAsked("searxng needs its address: set web_search.url")
        try:
            url = checked_url(base)
        except SourceFailure as error:
            raise SourceNotAsked(f"web_search.url: {error.reason}") from error
        folder = url.path.rstrip("/").removesuffix("/search")
        return url.copy_with(path=folder + path).copy_merge_params(dict(query))


def _at_most(seconds: float) -> float:
    """Return so many seconds, or fewer where little is left: what is done by then can still be returned."""
    left = anyio.current_effective_deadline() - anyio.current_time()
    return min(seconds, 0.9 * left)


def usable(items: Sequence[object], provider: str) -> Sequence[Result]:
    """Keep the results that lead to different pages of the web. Raises ``SourceFailure`` when none does."""
    if not items:
        raise SourceFailure(f"{provider} found nothing", is_fault=False)
    kept: dict[str, Result] = {}
    for item in items:
        found = item if isinstance(item, dict) else {}
        url, title = found.get("url") or found.get("href"), found.get("title")
        if isinstance(url, str) and url.lower().startswith(("http://", "https://")):
            clean = " ".join(title[:1000].split())[:200] if isinstance(title, str) else ""
            kept.setdefault(url.partition("#")[0], Result(url, clean))
    if not kept:
        raise SourceFailure(f"{provider}: the answer has no result with a web address")
    return tuple(kept.values())


async def _duckduckgo(words: str) -> Sequence[Any]:
    """Search through the package ``ddgs``, without a key."""
    try:
        from ddgs import DDGS  # heavy: an extra that need not be installed
        from ddgs.exceptions import TimeoutException  # heavy
    except ImportError as error:
        needs = "DuckDuckGo, which is asked where no other provider is configured, needs the package ddgs"
        raise SourceNotAsked(f"{needs}. This installs it: {how_to_install('duckduckgo')}") from error

    def search() -> list[Any]:
        with DDGS(timeout=15) as client:
            return list(client.text(words, max_results=_ASKED_FOR, backend="duckduckgo"))

    try:
        return await in_thread(search)
    except TimeoutException as error:
        raise SourceTimeout("duckduckgo gave no answer in time") from error
    except Exception as error:  # of a package that speaks with strangers
        if "No results" in str(error):
            return []
        raise SourceFailure(f"duckduckgo: the search failed ({type(error).__name__})") from error


async def _read(results: Sequence[Result], network: Network) -> Sequence[Passage]:
    """Read the pages at the same time, and return those that could be read. Raises ``SourceFailure`` when none could."""
    outcomes: dict[int, Passage | SourceFailure] = {}

    async def read(index: int, result: Result) -> None:
        outcomes[index] = await _page(result, network)

    with anyio.move_on_after(_at_most(_PAGE_SECONDS)):
        async with anyio.create_task_group() as tasks:
            for index, result in enumerate(results):
                tasks.start_soon(read, index, result)
    found = [outcomes[index] for index in sorted(outcomes)]
    passages = [one for one in found if isinstance(one, Passage)]
    if not passages:  # the search worked: it is no fault of the provider
        failures = [one for one in found if isinstance(one, SourceFailure)]
        reasons = [failure.reason for failure in failures if not isinstance(failure, SourceTimeout)]
        if not reasons:
            raise SourceTimeout(f"could not read any of {len(results)} pages in time", is_fault=False)
        raise SourceFailure(f"could not read any of {len(results)} pages: {reasons[0]}", is_fault=False)
    return passages


async def _page(result: Result, network: Network) -> Passage | SourceFailure:
    """Read one page; what goes wrong is returned, so that the other pages are still read."""
    try:
        page = await fetch_page(result.url, network=network)
        markdown = await in_thread(lambda: to_markdown(page.text, media_type=page.media_type))
    except SourceFailure as failure:
        return failure
    except Exception as error:  # noqa: BLE001  # a stranger's page; the other pages are still read
        return SourceFailure(f"the page can't be converted ({type(error).__name__})")
    if not markdown.text.strip():
        return SourceFailure("the page has no text")
    title, is_cut = markdown.title or result.title or None, page.is_cut or markdown.is_cut
    return Passage(text=markdown.text, title=title, url=page.url, is_cut=is_cut)


def _ranked(pages: Sequence[Passage], query: Query) -> tuple[Passage, ...]:
    """Cut the pages at their headings and put what fits the question best first."""
    cut = {page.url for page in pages if page.is_cut}
    found = rank_texts([(page.title or "", page.url or "", page.text) for page in pages], question_of(query))
    return tuple(
        Passage(text=one.text, title=one.name or None, url=one.place, is_cut=one.place in cut)
        for one in found
    ) or tuple(pages)
