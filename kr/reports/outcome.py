"""How sure a report is (SPEC 3.7; seed 000, step 6.2)."""

import re

from kr.naming import sha256_of
from kr.source_kinds import SOURCES, is_pages
from kr.values import Answer, Confidence

_READ_FOR_COPIES = 1_000_000  # characters of a page
_COMPARED = 100_000
# A link's target, which differs between copies: relative ones are made absolute.
_ADDRESS = r"\]\([^()\s]*\)|https?://[^\s<>()]+"
_WORD = r"[^\W_]+"


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
