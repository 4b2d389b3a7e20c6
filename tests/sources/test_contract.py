"""The contract of ``kr.sources.base.Source``, for every source and every way a server can behave."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from kr.errors import SourceFailure, SourceTimeout
from kr.sources.base import Answer, Source
from kr.sources.network import THREAD
from tests.support.source_contract import SECRET, SUBJECTS, TIMEOUT, Behaviour, Outcome, Subject

CASES = [
    pytest.param(subject, behaviour, id=f"{subject.name}-{behaviour.name.lower()}")
    for subject in SUBJECTS
    for behaviour in subject.serve
]
SUBJECT_CASES = [pytest.param(subject, id=subject.name) for subject in SUBJECTS]


def ask(subject: Subject, behaviour: Behaviour) -> tuple[Source, Answer | SourceFailure, float]:
    timeout = TIMEOUT if behaviour.outcome is Outcome.TIMEOUT else 20.0
    with subject.serve[behaviour]() as url:
        source = subject.source(url)
        started = time.monotonic()
        try:
            result: Answer | SourceFailure = source.ask(subject.ask, timeout=timeout)
        except SourceFailure as failure:
            result = failure
        return source, result, time.monotonic() - started


def open_sockets() -> int:
    return sum(1 for link in Path("/proc/self/fd").iterdir() if _target(link).startswith("socket:"))


def _target(link: Path) -> str:
    try:
        return str(link.readlink())
    except OSError:
        return ""


def eventually(holds: Callable[[], bool]) -> bool:
    """Wait a little: a thread that was broken off may still be closing what it had open."""
    give_up = time.monotonic() + 10
    while not holds() and time.monotonic() < give_up:
        time.sleep(0.02)
    return holds()


@pytest.fixture(scope="module", autouse=True)
def warm() -> None:
    """Imports and the host of the stand-ins are not what is measured."""
    for subject in SUBJECTS:
        ask(subject, Behaviour.SUCCESS)


@pytest.mark.parametrize(("subject", "behaviour"), CASES)
def test_the_outcome_is_the_one_the_behaviour_asks_for(
    subject: Subject,
    behaviour: Behaviour,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    sockets_before = open_sockets()
    source, result, seconds = ask(subject, behaviour)

    match behaviour.outcome:
        case Outcome.ANSWER:
            assert isinstance(result, Answer), result
            assert result.source == source.name
            assert result.passages
            assert all(passage.text.strip() for passage in result.passages)
            assert result.url is None or result.url.startswith(("http://", "https://"))
        case Outcome.TIMEOUT:
            assert isinstance(result, SourceTimeout), result
            assert TIMEOUT * 0.5 <= seconds < TIMEOUT + 15
        case Outcome.FAULT | Outcome.UNKNOWN:
            assert isinstance(result, SourceFailure), result
            assert not isinstance(result, SourceTimeout)
            assert result.is_fault is (behaviour.outcome is Outcome.FAULT)
            assert seconds < 20

    if isinstance(result, SourceFailure):
        assert result.reason.isprintable()
        assert 0 < len(result.reason) <= 200
        assert result.retry_after == (7.0 if behaviour is Behaviour.RATE_LIMITED else None)
    assert capfd.readouterr() == ("", "")
    assert SECRET not in str(result) + caplog.text
    assert eventually(lambda: open_sockets() <= sockets_before)
    assert eventually(lambda: all(not thread.name.startswith(THREAD) for thread in threading.enumerate()))


@pytest.mark.parametrize("subject", SUBJECT_CASES)
def test_sources_are_asked_from_any_thread_at_the_same_time(subject: Subject) -> None:
    results: list[Answer | SourceFailure] = []
    threads = [
        threading.Thread(target=lambda: results.append(ask(subject, Behaviour.SUCCESS)[1])) for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert [type(result) for result in results] == [Answer] * 4
