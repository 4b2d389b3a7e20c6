"""A need and its opposite, or with the roles exchanged: offered at most, never served for one another (rule 3.2)."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from kr.app import App
from kr.models import to_plain
from kr.store import saving
from tests.support.program import Project
from tests.support.stores import ROOT, draft

PAIRS: list[tuple[str, str]] = [
    (one, other)
    for one, other in yaml.safe_load((ROOT / "tests/data/opposites.yaml").read_text(encoding="utf-8"))
]


def question(topic: str) -> str:
    return f"如何{topic}？" if not topic.isascii() else f"How do I {topic}?"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> Iterator[App]:
    """A knowledge base that holds the first need of each pair."""
    project = Project(tmp_path_factory.mktemp("opposites") / "project", env={"KR_AUTO_EXPORT": "false"})
    with project.app() as made:
        for one, _ in PAIRS:
            entry = draft("acme", one, framework_version="3", tags=("acme",), question=question(one))
            saving.save(made.store, entry, f"# {one}\n\n## Summary\n\nHow to {one}.\n", project.clock())
        yield made


def ask(app: App, topic: str, asked: str) -> dict[str, Any]:
    query = {
        "framework": "acme",
        "framework_version": "3",
        "topic": topic,
        "question": asked,
        "tags": ["acme"],
    }
    return to_plain(app.research.document({**query, "if_unsure": "candidates", "max_calls": 0}))


def test_no_opposite_is_served(app: App) -> None:
    assert len(PAIRS) == 57
    for _, other in PAIRS:
        derived = app.research.expand_short_form({"framework": "acme", "question": question(other)})[
            "research_query"
        ]
        for topic in (other, derived["topic"]):
            answer = ask(app, topic, question(other))
            assert not answer["results"]["cache_hit"], (other, answer["results"]["cache_entry_id"])


def test_each_need_is_still_served_for_itself(app: App) -> None:
    for one, _ in PAIRS:
        answer = ask(app, one.upper(), question(one))
        assert answer["status"] == "cache-hit", one
