"""The evidence of a server of embeddings: real HTTP on loopback, a real database, a breaker shared through it."""

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from kr.matching.vectors import joined, pack
from kr.research.chain import Breaker
from kr.research.meaning import Meaning
from kr.sources.model_server import Embeddings
from kr.store.lock import make_owner
from kr.store.store import Shelf, Store
from kr.values import Entry, Query
from tests.support.stores import NOW, draft
from tests.support.web_servers import Reply, Request, WebServer, as_json, web_server

WORDS = ("cleanup", "session", "cache")


def by_words(request: Request) -> Reply:
    """A model that knows three words: a vector counts them, and a fourth number keeps it from being zero."""
    texts = json.loads(request.body)["input"]
    vectors = [[*(text.count(word) for word in WORDS), 0.1] for text in texts]
    return as_json({"data": [{"index": n, "embedding": vector} for n, vector in enumerate(vectors)]})


class World:
    """One knowledge base, and a clock that stands still until it is moved."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.now = NOW

    def clock(self) -> datetime:
        return self.now

    def entry(self, topic: str, question: str | None = "How?") -> Entry:
        return self.store.save_report(
            draft(topic=topic, tags=("a",), question=question), "# text\n", NOW
        ).entry

    def meaning(self, url: str, model: str = "tiny") -> Meaning:
        """What a process of its own would build."""
        shelf = Shelf(self.store)
        breaker = Breaker(
            shelf, make_owner(), failures=3, pause_seconds=60, probe_seconds=10, clock=self.clock
        )
        return Meaning(Embeddings(base_url=url, model=model), shelf, breaker)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with Store(None, tmp_path / "knowledge-base") as store:
        yield World(store)


@pytest.fixture
def server() -> Iterator[WebServer]:
    with web_server(by_words) as running:
        yield running


def query(topic: str = "session cleanup") -> Query:
    return Query(
        framework="click", framework_version="8", topic=topic, tags=("t",), question="How is it done?"
    )


def inputs(server: WebServer) -> list[list[str]]:
    return [json.loads(request.body)["input"] for request in server.requests()]


def report(entry: Entry) -> str:
    return f"# {entry.topic}\n\nHow a session is told.\n\n## Notes\n\nA cache."


def test_the_nearest_need_and_report_are_told(world: World, server: WebServer) -> None:
    one, other = world.entry("cleanup of a session"), world.entry("cache", question=None)
    found = world.meaning(server.url).similarities(query(), [one, other], read=report)
    assert found[one.id].need > 0.99
    assert found[other.id].need < 0.01
    assert found[one.id].report > found[other.id].report > 0.2
    assert inputs(server) == [
        [
            "session cleanup\nHow is it done?\nt",
            "cleanup of a session\nHow?\na",
            "cleanup of a session\nHow a session is told.",
            "Notes\nA cache.",
            "cache\na",
            "cache\nHow a session is told.",
            "Notes\nA cache.",
        ]
    ]


def test_vectors_of_entries_are_asked_for_once(world: World, server: WebServer) -> None:
    entries = [world.entry("cleanup"), world.entry("cache")]
    first = world.meaning(server.url).similarities(query(), entries, read=report)
    again = world.meaning(server.url)
    assert again.similarities(query(), entries, read=report) == first
    assert again.similarities(query(), entries, read=report) == first
    assert [len(texts) for texts in inputs(server)] == [7, 1]


def test_many_entries_are_asked_for_in_turns(world: World, server: WebServer) -> None:
    entries = [world.entry(f"cache number {number}") for number in range(10)]
    meaning = world.meaning(server.url)
    assert [len(meaning.similarities(query(), entries, read=report)) for _ in range(4)] == [4, 8, 10, 10]
    assert [len(texts) for texts in inputs(server)] == [13, 13, 7]


def test_what_an_earlier_version_kept_is_asked_for_anew(world: World, server: WebServer) -> None:
    entry = world.entry("cleanup")
    with world.store.write() as unit:
        unit.vectors.put("tiny", {entry.id: pack([1.0, 0.0, 0.0, 0.0])})
    assert world.meaning(server.url).similarities(query(), [entry], read=report) == {}
    assert world.meaning(server.url).similarities(query(), [entry], read=report)


def test_models_are_kept_apart(world: World, server: WebServer) -> None:
    entries = [world.entry("cleanup")]
    for model in ("small", "large"):
        assert world.meaning(server.url, model).similarities(query(), entries, read=report)
    assert [len(texts) for texts in inputs(server)] == [4, 4]


def test_another_model_behind_the_same_name_is_noticed(world: World, server: WebServer) -> None:
    one, other = world.entry("cleanup"), world.entry("session")
    with world.store.write() as unit:
        unit.vectors.put("tiny", {one.id: joined([pack([1.0, 0.0])])})
    assert [*world.meaning(server.url).similarities(query(), [one, other], read=report)] == [other.id]
    assert {*world.meaning(server.url).similarities(query(), [one, other], read=report)} == {one.id, other.id}


@pytest.mark.parametrize(
    "reply", [Reply(status=500), Reply(status=401), as_json({"data": []}), Reply(delay=30)]
)
def test_a_server_that_fails_costs_the_evidence_alone(world: World, reply: Reply) -> None:
    entries = [world.entry("cleanup")]
    with web_server(lambda _: reply) as broken:
        assert world.meaning(broken.url).similarities(query(), entries, read=report) == {}


def test_a_server_that_keeps_failing_is_left_alone_for_a_while(world: World) -> None:
    entries = [world.entry("cleanup")]
    with web_server(lambda _: Reply(status=503)) as broken:
        for _ in range(5):
            assert world.meaning(broken.url).similarities(query(), entries, read=report) == {}
        assert len(broken.requests()) == 3
        world.now += timedelta(seconds=61)
        world.meaning(broken.url).similarities(query(), entries, read=report)
        assert len(broken.requests()) == 4


def test_nobody_is_asked_where_there_is_nothing_to_compare(world: World, server: WebServer) -> None:
    assert world.meaning(server.url).similarities(query(), [], read=report) == {}
    assert server.requests() == []
