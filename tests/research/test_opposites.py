"""A need and its opposite, or with the roles exchanged: offered at most, never served for one another (rule 3.2)."""

import json
from collections.abc import Iterator
from pathlib import Path
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


@pytest.fixture(scope="module", params=[True, False], ids=["with questions", "without questions"])
def app(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[App]:
    """A knowledge base that holds the first need of each pair; what was imported has no question."""
    project = Project(tmp_path_factory.mktemp("opposites") / "project", env={"KR_AUTO_EXPORT": "false"})
    with project.app() as made:
        for one, _ in PAIRS:
            entry = draft("acme", one, framework_version="3", tags=("acme",))
            if request.param:
                entry = draft("acme", one, framework_version="3", tags=("acme",), question=question(one))
            saving.save(made.store, entry, f"# {one}\n\n## Summary\n\nHow to {one}.\n", project.clock())
        yield made


def ask(app: App, topic: str, asked: str) -> dict[str, Any]:
    document = {
        "mode": "research",
        "story_key": "1-1",
        "session_id": "s",
        "research_query": {
            "framework": "acme",
            "framework_version": "3",
            "topic": topic,
            "question": asked,
            "tags": ["acme"],
        },
        "config_overrides": {"if_unsure": "candidates", "max_calls": 0},
    }
    return to_plain(app.research.document(json.dumps(document).encode()))


def test_no_opposite_is_served(app: App) -> None:
    assert len(PAIRS) == 57
    for _, other in PAIRS:
        derived = app.research.whole({"framework": "acme", "question": question(other)})["research_query"]
        for topic in (other, derived["topic"]):
            answer = ask(app, topic, question(other))
            assert not answer["results"]["cache_hit"], (other, answer["results"]["cache_entry_id"])


def test_each_need_is_still_served_for_itself(app: App) -> None:
    for one, _ in PAIRS:
        answer = ask(app, one.upper(), question(one))
        assert answer["status"] == "cache-hit", one


def test_an_opposite_at_a_terminal_is_no_hit(tmp_path: Path) -> None:
    project = Project(tmp_path / "project")
    with project.app() as app:
        entry = draft("acme", "turn on strict mode", framework_version="3", question=None)
        saving.save(app.store, entry, "# strict\n\n## Summary\n\nSet `strict: true`.\n", project.clock())
    words = ("acme", "How do I turn off strict mode?", "--framework-version", "3", "--format", "json")
    for _ in range(2):
        done = project.run("research", *words, "--if-unsure", "candidates")
        assert json.loads(done.stdout)["status"] == "candidates"
