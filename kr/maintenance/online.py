"""``kr doctor --online``: one cheap question to each configured source (SPEC 6.5)."""

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from kr.errors import SourceFailure, SourceNotAsked
from kr.maintenance.findings import Finding
from kr.sources.base import Ask, Source
from kr.values import Query

_QUESTION = Query(
    framework="react",
    framework_version="unknown",
    topic="state",
    tags=("state",),
    question="How is state kept in a component?",
)
_REPOSITORY = "facebook/react"


def check_sources(
    sources: Sequence[Source], models: Sequence[tuple[str, Callable[[], object]]], *, timeout: float
) -> Iterator[Finding]:
    """Ask each source, and use each model by the name of its setting, and tell whether it works.

    Nothing is charged, kept or counted for the circuit breaker. ``timeout`` is in seconds for each source.
    """
    ask = Ask(query=_QUESTION, repository=_REPOSITORY)
    for source in sources:
        yield _found(source.name, partial(source.ask, ask, timeout=timeout))
    for name, use in models:
        yield _found(name, use)


def _found(name: str, use: Callable[[], object]) -> Finding:
    started = time.monotonic()
    try:
        use()
    except SourceNotAsked as failure:
        return Finding(check="source", severity="warning", subject=name, message=failure.reason)
    except SourceFailure as failure:
        return Finding(
            check="source", severity="error", subject=name, message=f"gave no answer: {failure.reason}"
        )
    message = f"answered in {time.monotonic() - started:.1f} s"
    return Finding(check="source", severity="information", subject=name, message=message)
