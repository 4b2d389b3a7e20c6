"""Twenty entries are weighed, as if all were (SPEC 3.2): keys that are missing are made and kept."""

import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from kr.matching.decide import Decision, decide
from kr.matching.terms import VERSION, keys_of
from kr.research.candidates import MOST, Gathered, gather
from kr.store.store import Store
from kr.values import Entry, MatchRules, Query
from tests.support import calibration
from tests.support.program import Project, request
from tests.support.stores import NOW, draft, obey_permissions, protected, sql


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "project")


def query(topic: str, *tags: str, question: str = "How?") -> Query:
    return Query(framework="click", framework_version="8", topic=topic, tags=tags, question=question)


def look(store: Store, asked: Query, *, most: int | None = MOST) -> Gathered:
    with store.read() as unit:
        return gather(unit, asked, {}, read=lambda entry: store.read_report(entry) or "", most=most)


def keep(store: Store, made: list[tuple[Entry, dict[str, int]]]) -> None:
    with store.write() as unit:
        for entry, keys in made:
            unit.terms.put(entry, keys)


def chosen(asked: Query, gathered: Gathered) -> Decision:
    return decide(asked, gathered.candidates(gathered.entries), MatchRules())


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Store:
    """A framework with the entries of all labelled needs, more than are ever weighed."""
    store = Store(None, tmp_path_factory.mktemp("base"))
    held = {c.entry.id: c.entry for case in cases() for c in case.candidates}
    made = []
    for entry in held.values():
        saved = store.save_report(
            draft("click", entry.topic, tags=entry.tags, question=entry.question), f"# {entry.topic}\n", NOW
        ).entry
        made.append((saved, keys_of((saved.topic, saved.tags, saved.question), (), f"# {entry.topic}\n")))
    keep(store, made)
    return store


def cases() -> list[calibration.Case]:
    return calibration.load_sharing(calibration.FIRST_TWO[0])


def test_the_best_twenty_answer_as_all_would(filled: Store) -> None:
    chance = random.Random(3)  # the same questions every time
    differing = []
    for case in chance.sample(cases(), 40):
        asked = query(case.query.topic, *case.query.tags, question=case.query.question)
        few, all_of_them = look(filled, asked), look(filled, asked, most=None)
        assert len(few.best) == MOST < len(all_of_them.best) == len(all_of_them.entries)
        one, other = chosen(asked, few), chosen(asked, all_of_them)
        taken = [decision.match.entry.id if decision.match else None for decision in (one, other)]
        if taken[0] != taken[1]:
            differing.append((asked, taken))
    # What few entries have is counted among those that are weighed: that may tip what stands at the limit.
    assert len(differing) <= 2, differing


def test_the_very_topic_is_among_the_best_of_any_number(filled: Store) -> None:
    for entry in look(filled, query("x")).entries:
        asked = query(
            entry.topic.upper(), question="a queue of retries with a dependency injected test client"
        )
        assert entry.id in look(filled, asked).best
        match = chosen(asked, look(filled, asked)).match
        assert match is not None
        assert match.likelihood == 1.0


def forget_keys(project: Project) -> None:
    """Save the entry that ``request()`` asks for, without keys, as an older version left it."""
    asked = request()["research_query"]
    with project.app() as app:
        own = draft(
            "vue",
            asked["topic"],
            framework_version="3.5",
            tags=tuple(asked["tags"]),
            question=asked["question"],
        )
        app.store.save_report(own, "# repeated\n", project.clock())
    project.sql("UPDATE entries SET keys_version = NULL")
    project.sql("DELETE FROM entry_terms")


def test_keys_that_are_missing_are_made_and_kept(project: Project) -> None:
    forget_keys(project)
    # A need of its own: an equal topic answers without keys, and what answers gets new ones with the wording that it keeps.
    project.research(request(topic="log files", question="Where are the logs written?", tags=["logging"]))
    assert project.sql("SELECT DISTINCT keys_version FROM entries") == [(VERSION,)]
    assert project.sql("SELECT count(*) FROM entry_terms")[0][0] > 2


def test_made_keys_serve_the_look_that_made_them(filled: Store) -> None:
    sql(filled.path, "UPDATE entries SET keys_version = NULL")
    asked = query("dependency injection in tests")
    fresh = look(filled, asked)
    assert len(fresh.made) == fresh.looked_at
    keep(filled, fresh.made)
    kept = look(filled, asked)
    assert kept.made == []
    assert set(kept.best) == set(fresh.best)
    assert chosen(asked, kept) == chosen(asked, fresh)


def test_a_question_of_very_many_words_is_looked_up(filled: Store) -> None:
    text = " ".join(f"w{number}" for number in range(100_000))
    assert (
        chosen(query("x", text, question=text), look(filled, query("x", text, question=text))).match is None
    )


def test_a_database_that_can_only_be_read_still_answers(project: Project) -> None:
    forget_keys(project)
    with protected(project.base, *project.base.glob("kr.db*")):
        done = subprocess.run(
            [sys.executable, "-m", "kr", "research", "--request", "-", "--format", "json"],
            cwd=project.root, env=project.environ(), text=True, input=json.dumps(request()), capture_output=True,
            preexec_fn=obey_permissions, check=False, timeout=60,
        )  # fmt: skip
    assert json.loads(done.stdout)["status"] == "cache-hit", done.stderr
    assert project.sql("SELECT count(*) FROM entry_terms") == [(0,)]
