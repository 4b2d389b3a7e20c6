"""What ``kr calibrate`` learns, against servers of embeddings on loopback: one that knows all, and one that knows nothing."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache

import pytest

from kr.calibration import Calibration, Evidence, calibrate, load_labelled
from kr.errors import SourceFailure
from kr.matching.learning import ALLOWED
from kr.matching.vectors import Likeness, from_text, need_text, similarity_numbers, texts_of, to_text
from kr.sources.model_server import MOST_TEXTS, Embeddings
from kr.text.keywords import keywords, stem
from kr.values import Entry, Query
from tests.support.web_servers import Reply, Request, WebServer, as_json, web_server

LABELLED = load_labelled()
TWO = LABELLED[:2]


class Words:
    """Evidence that a test can look through: how much of what is asked stands in the need and in the report."""

    names = ("need", "report")
    never_against: tuple[int, ...] = ()
    ahead = None

    def __call__(
        self, query: Query, entries: Sequence[Entry], reports: Mapping[str, str]
    ) -> dict[str, tuple[float, float]]:
        asked = stems(need_text(query.topic, query.tags, query.question))
        found = {}
        for entry in entries:
            need = stems(need_text(entry.topic, entry.tags, entry.question))
            report = stems(reports[entry.id])
            found[entry.id] = (len(asked & need) / len(asked), len(asked & report) / len(asked))
        return found


@cache
def stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, keywords(text)))


EVIDENCE: Evidence = Words()


def by_label(text: str) -> str:
    """Name the entry that a need is about; what no entry answers is about itself."""
    return ANSWERS.get(text, text)


ANSWERS = {
    need_text(asked.query.topic, asked.query.tags, asked.query.question): asked.want
    for file in LABELLED
    for asked in file.asked
    if asked.want
} | {need_text(e.topic, e.tags, e.question): e.id for file in LABELLED for e in file.entries}


def vector(about: str) -> list[float]:
    digest = hashlib.blake2b(about.encode(), digest_size=32).digest()
    return [byte - 127.5 for byte in digest]


@contextmanager
def model(*, knows: bool) -> Iterator[WebServer]:
    def respond(request: Request) -> Reply:
        texts = json.loads(request.body)["input"]
        rows = [vector(by_label(text) if knows else text) for text in texts]
        return as_json({"data": [{"index": n, "embedding": row} for n, row in enumerate(rows)]})

    with web_server(respond) as server:
        yield server


def run(server: WebServer, told: list[tuple[int, int]] | None = None) -> Calibration:
    def progress(done: int, total: int) -> None:
        if told is not None:
            told.append((done, total))

    return calibrate(Embeddings(base_url=server.url, model="tiny"), EVIDENCE, TWO, progress=progress)


@pytest.fixture(scope="module")
def informed() -> Calibration:
    with model(knows=True) as server:
        return run(server)


def test_the_labelled_sets_are_whole() -> None:
    assert [len(file.entries) for file in LABELLED] == [40] * 8
    assert [len(file.asked) for file in LABELLED] == [200] * 7 + [208]
    needs = {need_text(e.topic, e.tags, e.question) for file in LABELLED for e in file.entries}
    assert len(needs) == 320
    for file in LABELLED:
        ids = {entry.id for entry in file.entries}
        assert all(file.reports[entry.id].strip() and entry.question for entry in file.entries)
        assert {asked.want for asked in file.asked} <= ids | {None}
        assert 90 <= sum(asked.want is None for asked in file.asked) <= 110


def test_a_model_that_knows_what_is_meant_is_believed(informed: Calibration) -> None:
    assert informed.questions == 400
    assert informed.reached.first > 0.95
    assert informed.reached.recall["balanced"] > 0.95
    assert informed.reached.wrong["balanced"] < ALLOWED["balanced"] + 0.02
    assert informed.reached.recall["balanced"] > informed.without.recall["balanced"] + 0.1


def test_a_model_that_knows_nothing_changes_little(informed: Calibration) -> None:
    told: list[tuple[int, int]] = []
    with model(knows=False) as server:
        found = run(server, told)
    assert found.without == informed.without
    assert found.reached.recall["balanced"] == pytest.approx(found.without.recall["balanced"], abs=0.1)
    done, total = zip(*told, strict=True)
    assert done == tuple(sorted(done))
    assert done[-1] == total[-1] == len(_all_texts())
    assert len(told) == -(-total[-1] // MOST_TEXTS)


def _all_texts() -> set[str]:
    asked = {need_text(a.query.topic, a.query.tags, a.query.question) for file in TWO for a in file.asked}
    return asked.union(*(texts_of(it, file.reports[it.id]) for file in TWO for it in file.entries))


def test_what_is_kept_says_the_same(informed: Calibration) -> None:
    kept = to_text(informed.names, informed.calibrated)
    assert from_text(kept, informed.names) == informed.calibrated
    assert from_text(kept, (*informed.names, "something new")) is None
    assert from_text(kept, informed.names[::-1]) is None


def test_an_entry_that_stands_alone_is_ahead_of_what_is_usual(informed: Calibration) -> None:
    usual = informed.calibrated.usual_next
    assert -0.1 < usual < 0.5  # vectors without a relation have a cosine near 0
    near, far = Likeness(0.9, 0.8), Likeness(0.6, 0.1)
    assert similarity_numbers({"a": near}, usual_next=0.5)["a"] == pytest.approx((0.9, 0.4, 0.8))
    beside = similarity_numbers({"a": near, "b": near}, usual_next=0.5, skeletons={"b"})
    assert beside["a"] == pytest.approx((0.9, 0.4, 0.8))
    assert beside["b"] == pytest.approx((0.9, 0.0, 0.8))
    pair = similarity_numbers({"a": near, "b": far}, usual_next=0.5)
    assert pair["a"] == pytest.approx((0.9, 0.3, 0.8))
    assert pair["b"] == pytest.approx((0.6, -0.3, 0.1))


@pytest.mark.parametrize("kept", ["", "{}", "[]", "null", '{"version": 2, "weights": []}', '{"version": 3}'])
def test_what_others_wrote_is_learned_anew(kept: str) -> None:
    assert from_text(kept, ("need",)) is None


def test_a_server_that_fails_stops_it() -> None:
    with web_server(lambda _: Reply(status=401)) as server, pytest.raises(SourceFailure, match="HTTP 401"):
        run(server)
