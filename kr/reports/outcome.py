"""How sure a report is, and how a research request ended (SPEC 3.7 and 3.9; seed 000, steps 6.2 and 9)."""

import re

from kr.naming import sha256_of
from kr.source_kinds import SOURCES, is_package, is_pages
from kr.values import Answer, Confidence, Consulted, ResearchStatus, Value

_READ_FOR_COPIES = 1_000_000  # characters of a page
_COMPARED = 100_000
# A link's target, which differs between copies: relative ones are made absolute.
_ADDRESS = r"\]\([^()\s]*\)|https?://[^\s<>()]+"
_WORD = r"[^\W_]+"


class Course(Value):
    """What happened to one research request."""

    fresh_hit: bool = False
    consulted: tuple[Consulted, ...] = ()
    budget_ended: bool = False
    """A source was not asked because the budget was empty."""
    answered: bool = False
    """A source of the chain answered the question. The installed package's own documentation is none, and what does
    not cover the question is no answer (SPEC 3.7), although it was charged."""
    written: bool = True
    """Both the report and its index row are on disk."""


def research_status(course: Course) -> ResearchStatus:
    """Return the first status of SPEC 3.9's table that holds, for a request that was not refused."""
    asked = {row.status for row in course.consulted if not is_package(row.source)}
    if course.fresh_hit:
        return "cache-hit"
    if not course.answered:
        return "budget-exhausted" if course.budget_ended else "degraded"
    if not course.written:
        return "partial"
    # The chain stops at the first answer, so whatever failed was asked before it.
    if "timeout" in asked:
        return "timeout"
    return "partial" if "unavailable" in asked else "success"


def confidence(source: str, *, has_code: bool = False, agreeing: int = 0) -> Confidence:
    """Return the confidence of a report that was made from one source's answer (SPEC 3.7's table).

    ``has_code`` tells whether the answer holds at least one code example, ``agreeing`` how many distinct web pages
    have taken passages that cover the question.
    """
    kind = SOURCES.get(source)
    if kind is None:
        return "low"
    if is_pages(source) and agreeing > 1:
        return "medium"
    return kind.with_code if has_code else kind.confidence


def copies(answer: Answer) -> dict[str | None, str]:
    """Return a digest of each page's words by its address: addresses with equal digests hold one page.

    Passages of one address are one page, and a page confirms itself as little as a copy does. Links differ between
    copies, so they don't count.
    """
    from kr.text.inline import safe_url

    texts: dict[str | None, str] = {}
    for passage in answer.passages:
        url = safe_url(passage.url) or safe_url(answer.url)
        texts[url] = f"{texts.get(url, '')}\n{passage.text}"[:_READ_FOR_COPIES]
    return {url: _words_digest(text) for url, text in texts.items()}


def _words_digest(text: str) -> str:
    words = " ".join(re.findall(_WORD, re.sub(_ADDRESS, " ", text).casefold()))
    return sha256_of(words[:_COMPARED].encode("utf-8", "replace"))
