"""The research source ``web_search``: a search, then the pages of its first results (F1, step 5c)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import anyio
import httpx2

from kr.documents.html import to_markdown
from kr.documents.rank import question_of, rank_texts
from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.extras import how_to_install
from kr.models import Answer, Passage, Query
from kr.sources.addresses import Network
from kr.sources.base import Ask
from kr.sources.event_loop import in_thread, run
from kr.sources.fetch import ask_json, checked_url, fetch_page

ProviderName = Literal["searxng", "brave", "tavily", "duckduckgo"]

_MAX_ANSWER = 2 * 1024 * 1024
"""Bytes of a provider's answer."""

_ASKED_FOR = 8
"""Results asked for: some are no pages, and some lead to the same."""

_MAX_PAGES = 3
"""Results whose pages are read."""

_MAX_SEARCH = 400
"""Characters of a search, which is what Brave and Tavily take."""

_SEARCH_SECONDS = 30.0
_PAGE_SECONDS = 30.0
"""Seconds that a search, and the pages together, are waited for, however long the source may take."""

_ENOUGH = 2
"""Pages that can confirm one another; once they are there, the others get ``_GRACE`` seconds more."""

_GRACE = 4.0


@dataclass(frozen=True, slots=True)
class Result:
    url: str
    title: str


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

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Answer from pages that could be read. Raises ``SourceFailure``; that no page could be read is no fault of the provider."""
        passages = run(lambda: self._answer(ask.query), timeout=timeout)
        return Answer(source=self.name, passages=_ranked(passages, ask.query), url=passages[0].url)

    async def _answer(self, query: Query) -> Sequence[Passage]:
        results = await self._search(search_query(query))
        return await _read(results[:_MAX_PAGES], Network(allow_private=self.allow_private_addresses))

    async def _search(self, words: str) -> Sequence[Result]:
        provider = choose_provider(self.provider, self.url, self.api_key, self.api_key_env)
        try:
            with anyio.fail_after(_at_most(_SEARCH_SECONDS)):
                if provider == "duckduckgo":
                    return await _duckduckgo(words, is_configured=self.provider != "auto")
                return await self._ask_provider(provider, words)
        except TimeoutError as error:
            raise SourceTimeout(f"{provider} gave no answer in time") from error

    async def _ask_provider(self, provider: ProviderName, words: str) -> Sequence[Result]:
        match provider:
            case "searxng":
                url = self._target(None, "/search", {"q": words, "format": "json"})
                hints = {403: " (does the instance allow the format json?)"}
                found = await self._get(provider, url, {}, hints)
            case "brave":
                headers = {"X-Subscription-Token": self._key(provider)}
                query = {"q": words[:_MAX_SEARCH], "count": str(_ASKED_FOR)}
                url = self._target("https://api.search.brave.com", "/res/v1/web/search", query)
                found = await self._get(provider, url, headers)
                if isinstance(found, dict) and found.get("type") == "search":
                    found.setdefault("web", {"results": []})  # left out when nothing was found
                found = found.get("web") if isinstance(found, dict) else None
            case _:
                found = await ask_json(
                    provider,
                    "POST",
                    self._target("https://api.tavily.com", "/search", {}),
                    max_bytes=_MAX_ANSWER,
                    headers={"Authorization": f"Bearer {self._key(provider)}"},
                    body={"query": words[:_MAX_SEARCH], "max_results": _ASKED_FOR},
                )
        if not isinstance(found, dict) or not isinstance(found.get("results"), list):
            raise SourceFailure(f"{provider}: the answer is not of the documented shape")
        return usable(found["results"], provider)

    async def _get(
        self,
        provider: str,
        url: httpx2.URL,
        headers: Mapping[str, str],
        hints: Mapping[int, str] | None = None,
    ) -> Any:
        return await ask_json(provider, "GET", url, max_bytes=_MAX_ANSWER, headers=headers, hints=hints or {})

    def _key(self, provider: str) -> str:
        key = (self.api_key or "").strip()
        if not key:
            raise SourceNotAsked(f"{provider} needs an API key: set web_search.api_key_env")
        if not key.isascii() or not key.isprintable():
            raise SourceNotAsked(f"{provider}: the API key has characters that no key has")
        return key

    def _target(self, default: str | None, path: str, query: Mapping[str, str]) -> httpx2.URL:
        """Return the URL of a request to the configured address, or to the provider's own."""
        base = (self.url or "").strip() or default
        if base is None:
            raise SourceNotAsked("searxng needs its address: set web_search.url")
        try:
            url = checked_url(base)
        except SourceFailure as error:
            raise SourceNotAsked(f"web_search.url: {error.reason}") from error
        folder = url.path.rstrip("/").removesuffix("/search")
        return url.copy_with(path=folder + path).copy_merge_params(dict(query))


def choose_provider(
    provider: ProviderName | Literal["auto"], url: str | None, api_key: str | None, api_key_env: str | None
) -> ProviderName:
    """Choose where ``auto`` leaves it open: a url is SearXNG's; a key is Tavily's where its variable says so, else Brave's."""
    if provider != "auto":
        return provider
    if url:
        return "searxng"
    if api_key:
        return "tavily" if "TAVILY" in (api_key_env or "").upper() else "brave"
    return "duckduckgo"


def _at_most(seconds: float) -> float:
    """Return so many seconds, or fewer where little is left: what is done by then can still be returned."""
    left = anyio.current_effective_deadline() - anyio.current_time()
    return min(seconds, 0.9 * left)


def search_query(query: Query) -> str:
    """Build ``{framework} {framework_version} {question}`` (F1, step 5c), an unknown version left out."""
    version = "" if query.framework_version.strip().lower() == "unknown" else query.framework_version
    return " ".join(f"{query.framework} {version} {query.question}".split())


def usable(items: Sequence[object], provider: str, *, address: str = "url") -> Sequence[Result]:
    """Keep the results that lead to different pages of the web. Raises ``SourceFailure`` when none does."""
    if not items:
        raise SourceFailure(f"{provider} found nothing", is_fault=False)
    kept: dict[str, Result] = {}
    for item in items:
        url = item.get(address) if isinstance(item, dict) else None
        title = item.get("title") if isinstance(item, dict) else None
        if isinstance(url, str) and url.lower().startswith(("http://", "https://")):
            clean = " ".join(title[:1000].split())[:200] if isinstance(title, str) else ""
            kept.setdefault(url.partition("#")[0], Result(url, clean))
    if not kept:
        raise SourceFailure(f"{provider}: the answer has no result with a web address")
    return tuple(kept.values())


async def _duckduckgo(words: str, *, is_configured: bool) -> Sequence[Result]:
    """Search through the package ``ddgs``, without a key."""
    try:
        from ddgs import DDGS  # heavy: an extra that need not be installed
        from ddgs.exceptions import DDGSException, RatelimitException, TimeoutException  # heavy
    except ImportError as error:
        why = "" if is_configured else "no search provider is configured, and "
        how = how_to_install("duckduckgo")
        raise SourceNotAsked(f"{why}DuckDuckGo needs the package ddgs. This installs it: {how}") from error

    def search() -> list[dict[str, Any]]:
        with DDGS(timeout=15) as client:
            return list(client.text(words, max_results=_ASKED_FOR, backend="duckduckgo"))

    try:
        found = await in_thread(search)
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


async def _read(results: Sequence[Result], network: Network) -> Sequence[Passage]:
    """Read the pages at the same time, and return those that could be read. Raises ``SourceFailure`` when none could."""
    outcomes: dict[int, Passage | SourceFailure] = {}
    with anyio.move_on_after(_at_most(_PAGE_SECONDS)) as scope:

        async def read(index: int, result: Result) -> None:
            outcomes[index] = await _page(result, network)
            if sum(isinstance(one, Passage) for one in outcomes.values()) == _ENOUGH:
                scope.deadline = min(scope.deadline, anyio.current_time() + _GRACE)

        async with anyio.create_task_group() as tasks:
            for index, result in enumerate(results):
                tasks.start_soon(read, index, result)
    found = [outcomes[index] for index in sorted(outcomes)]
    passages = [one for one in found if isinstance(one, Passage)]
    if not passages:
        raise _unread(len(results), [one for one in found if isinstance(one, SourceFailure)])
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
    is_cut = page.is_cut or markdown.is_cut
    if not markdown.text.strip():
        where = " in the beginning, all that was read" if is_cut else ""
        return SourceFailure(f"the page has no text{where}")
    title = markdown.title or result.title or None
    return Passage(text=markdown.text, title=title, url=page.url, is_cut=is_cut)


def _unread(count: int, failures: Sequence[SourceFailure]) -> SourceFailure:
    """Say that no page could be read: the search worked, so it is no fault of the provider."""
    pages = "the page found" if count == 1 else f"any of the {count} pages found"
    reasons = [failure.reason for failure in failures if not isinstance(failure, SourceTimeout)]
    if not reasons:
        return SourceTimeout(f"could not read {pages} in time", is_fault=False)
    return SourceFailure(f"could not read {pages}: {reasons[0]}", is_fault=False)


def _ranked(pages: Sequence[Passage], query: Query) -> tuple[Passage, ...]:
    """Cut the pages at their headings and put what fits the question best first."""
    cut = {page.url for page in pages if page.is_cut}
    found = rank_texts([(page.title or "", page.url or "", page.text) for page in pages], question_of(query))
    return tuple(
        Passage(text=one.text, title=one.name or None, url=one.place, is_cut=one.place in cut)
        for one in found
    ) or tuple(pages)
