"""How sure a report is, and how a research request ended (SPEC 3.7 and 3.9; seed 000, steps 6.2 and 9)."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import sha256

from kr.values import Answer, Confidence, Consulted, ResearchStatus

CONTEXT7 = "context7"
DEEPWIKI = "deepwiki"
WEB_SEARCH = "web_search"
LOCAL_DOCS = "local_docs"

_READ_FOR_AGREEMENT = 100_000  # characters of a page
_READ_FOR_COPIES = 1_000_000
# A link's target, which differs between copies: relative ones are made absolute.
_ADDRESS = re.compile(r"\]\([^()\s]*\)|https?://[^\s<>()]+")
_WORD = re.compile(r"[^\W_]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Course:
    """What happened to one research request."""

    fresh_hit: bool = False
    consulted: tuple[Consulted, ...] = ()
    budget_ended: bool = False
    """A source was not asked because the budget was empty."""
    written: bool = True
    """Both the report and its index row are on disk."""

    @property
    def answered(self) -> bool:
        """Whether a source of the chain answered. The installed package's own documentation is none."""
        return any(row.status == "success" and row.source != LOCAL_DOCS for row in self.consulted)


def research_status(course: Course) -> ResearchStatus:
    """Return the first status of SPEC 3.9's table that holds, for a request that was not refused."""
    asked = {row.status for row in course.consulted if row.source != LOCAL_DOCS}
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


def confidence(answers: Iterable[Answer], question: str, *, has_code: bool) -> Confidence:
    """Return the confidence of a report made from ``answers`` (SPEC 3.7's table).

    ``has_code`` tells whether Context7's answer holds at least one code example. No answers at all (a stale
    baseline, a skeleton) is ``low``.
    """
    by_source = {answer.source: answer for answer in answers}
    if CONTEXT7 in by_source:
        return "high" if has_code else "medium"
    if DEEPWIKI in by_source:
        return "medium"
    web = by_source.get(WEB_SEARCH)
    return "medium" if web and agree(distinct_pages(web), question) else "low"


def agree(pages: Sequence[str], question: str) -> bool:
    """Tell whether two or more pages speak of the question: each holds at least half of its keywords."""
    from kr.text.corpus import words_of

    asked = words_of(question)
    if not asked:
        return False
    speaking = (page for page in pages if 2 * len(asked & words_of(page)) >= len(asked))
    return next(speaking, None) is not None and next(speaking, None) is not None


def distinct_pages(answer: Answer) -> list[str]:
    """Return the pages of a web answer, titles included; of copies only the first.

    Passages of one address are one page: a page agrees with itself only. So do two addresses with the same
    words, links aside: copies confirm nothing.
    """
    titled: dict[str | None, str] = {}
    texts: dict[str | None, str] = {}
    for passage in answer.passages:
        url = passage.url or answer.url
        text = f"{titled.get(url, '')}\n{passage.title or ''}\n{passage.text}"
        titled[url] = text[:_READ_FOR_AGREEMENT]
        texts[url] = f"{texts.get(url, '')}\n{passage.text}"[:_READ_FOR_COPIES]
    distinct: dict[bytes, str] = {}
    for url, text in texts.items():
        distinct.setdefault(_words_digest(text), titled[url])
    return list(distinct.values())


def _words_digest(text: str) -> bytes:
    words = " ".join(_WORD.findall(_ADDRESS.sub(" ", text).casefold()))
    return sha256(words[:_READ_FOR_AGREEMENT].encode("utf-8", "replace")).digest()
