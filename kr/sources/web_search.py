"""The research source ``web_search``: a search, then the pages of its first results (SPEC 3.5 item 3)."""

import queue
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from kr.cancellation import broken_off
from kr.errors import SourceFailure, SourceTimeout
from kr.sources.base import Ask, Source
from kr.values import Answer, Passage, Query

if TYPE_CHECKING:
    from kr.settings.model import KnowledgeResearch
    from kr.sources.deadline import Deadline
    from kr.sources.http_exchange import Network
    from kr.sources.providers import Provider, ProviderName, Result

MAX_PAGES = 3
"""Results whose pages are read (seed 000, step 5c)."""

_PAGE_SECONDS = 30.0
"""The longest that one page is waited for, however long the search may take."""

_SEARCH_SECONDS = 30.0

_ENOUGH = 2
"""Pages that can confirm one another (SPEC 3.7); once they are there, the others get ``_GRACE`` seconds more."""

_GRACE = 4.0


def build(config: "KnowledgeResearch", environ: Mapping[str, str]) -> Source:
    """Build the source of these settings, see ``kr.sources.base``."""
    search = config.web_search
    return WebSearch(
        provider=search.provider,
        url=search.url,
        api_key=environ.get(search.api_key_env) if search.api_key_env else None,
        api_key_env=search.api_key_env,
        allow_private_addresses=search.allow_private_addresses,
    )


class WebSearch:
    """Asks a search provider and reads the pages of its first three results, all at the same time.

    ``url`` is the provider's base address, and may be private; pages and their redirects may be only with
    ``allow_private_addresses``. ``api_key_env`` is the name of the variable that held ``api_key``.
    """

    name = "web_search"
    is_charged = True

    def __init__(
        self,
        *,
        provider: "ProviderName | Literal['auto']" = "auto",
        url: str | None = None,
        api_key: str | None = None,
        api_key_env: str | None = None,
        allow_private_addresses: bool = False,
        network: "Network | None" = None,
    ) -> None:
        self._provider: ProviderName | Literal["auto"] = provider
        self._url = url
        self._api_key = api_key
        self._api_key_env = api_key_env
        self._allow_private = allow_private_addresses
        self._network = network

    def prepare(self) -> None:
        """There is nothing heavy to import."""

    def ask(self, ask: Ask, *, timeout: float) -> Answer:
        """Search, and return one passage for each page that could be read; see ``Source.ask``."""
        from kr.sources.deadline import Deadline

        deadline = Deadline(timeout)
        try:
            with broken_off(deadline.cancel):
                results = self._search(search_query(ask.query), deadline)
                passages = self._read(results[:MAX_PAGES], deadline)
        finally:
            deadline.cancel()
        return Answer(source=self.name, passages=passages, url=passages[0].url)

    def _search(self, query: str, deadline: "Deadline") -> "Sequence[Result]":
        from kr.sources.providers import provider_for

        provider: Provider = provider_for(
            self._provider, url=self._url, api_key=self._api_key, api_key_env=self._api_key_env
        )
        return provider.search(query, deadline.within(_SEARCH_SECONDS))

    def _read(self, results: "Sequence[Result]", deadline: "Deadline") -> tuple[Passage, ...]:
        """Read the pages, and wait for all or the deadline. Raises ``SourceFailure`` when none was read."""
        from kr.sources.http_exchange import Network

        network = self._network or Network(allow_private=self._allow_private)
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


def search_query(query: Query) -> str:
    """Build the query of seed 000, step 5c: ``{framework} {framework_version} {question}``.

    An unknown version is left out. White space is made single spaces, since a question may have lines.
    """
    version = "" if query.framework_version.strip().lower() == "unknown" else query.framework_version
    return " ".join(f"{query.framework} {version} {query.question}".split())


def _page(result: "Result", network: "Network", deadline: "Deadline") -> Passage | SourceFailure:
    """Read one page; what goes wrong is returned, since this runs in a thread."""
    from kr.sources.html_markdown import to_markdown
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
