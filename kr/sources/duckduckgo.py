"""DuckDuckGo, the search provider for those who configured none (SPEC 3.5 item 3)."""

from collections.abc import Sequence
from typing import Any

from kr.errors import SourceFailure, SourceNotAsked, SourceTimeout
from kr.sources.deadline import Deadline, bounded
from kr.sources.providers import ASKED_FOR, Result, usable


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
            why = "" if self._is_configured else "no search provider is configured, and "
            raise SourceNotAsked(
                f"{why}DuckDuckGo needs the package ddgs beside kr: pip install ddgs"
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
