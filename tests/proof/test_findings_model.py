"""Findings and ratings in whatever order, against a model of rule 3.10 that fits on a page: whose text stands, and who is served it."""

import json
import shutil
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from kr.models import Writer, to_plain
from tests.support.postgresql import Databases
from tests.support.program import Project
from tests.support.program import request as asked_for

PERSON = Writer("person:ann", "person:ann")
topics = st.sampled_from(["slots", "guards"])
sessions = st.sampled_from(["a", "b", "c"])
Outcome = Literal["worked", "wrong"]


@dataclass
class Text:
    """One revision: who wrote it, and what each session said of it last."""

    mark: str
    writer: str
    is_verified: bool
    ratings: dict[str, Outcome] = field(default_factory=dict)

    def counted(self, outcome: Outcome) -> int:
        return sum(it == outcome for it in self.ratings.values())

    @property
    def is_persons(self) -> bool:
        return self.writer.startswith("person:")

    @property
    def is_served(self) -> bool:
        """Not while more say wrong than worked; of a person's text, two sessions, or a person, must say so."""
        wrong = self.counted("wrong")
        is_enough = wrong >= 2 or not self.is_persons or self.ratings.get(PERSON.session) == "wrong"
        return not (wrong > self.counted("worked") and is_enough)

    @property
    def confidence(self) -> str:
        others = [
            who
            for who, said in self.ratings.items()
            if said == "worked" and self.writer not in {who, f"agent:{who}"}
        ]
        return "high" if others and self.is_served else "medium" if self.is_verified else "low"

    def gives_way_to(self, other: "Text") -> bool:
        """A person's to a person's, one that another session confirmed to one that is verified or its writer's, others to any."""
        if other.is_persons:
            return True
        is_unproved = not other.is_verified and other.writer != self.writer
        return not self.is_persons and not (self.confidence == "high" and is_unproved)


@dataclass
class Known:
    """An entry: its revisions by number, and which stands."""

    texts: dict[int, Text]
    current: int
    is_live: bool = True

    @property
    def text(self) -> Text:
        return self.texts[self.current]


class Findings(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="kr-"))
        self.project = Project(self.folder)
        self.app = self.project.app()
        self.model: dict[str, Known] = {}
        self.number = 0

    def teardown(self) -> None:
        self.app.close()
        shutil.rmtree(self.folder)

    @rule(topic=topics, session=sessions, is_person=st.booleans(), is_verified=st.booleans())
    def save(self, topic: str, session: str, *, is_person: bool, is_verified: bool) -> None:
        self.number += 1
        mark = f"Mark{self.number}"
        data = {
            "framework": "vue",
            "question": f"How do {topic} work?",
            "topic": topic,
            "answer": f"{mark}.",
            "session_id": session,
        }
        data |= {"verified_by": "npm test"} if is_verified else {}
        saved = to_plain(self.app.save_finding(data, PERSON if is_person else None))
        assert saved["status"] == "saved"
        text = Text(mark, PERSON.name if is_person else f"agent:{session}", is_verified)
        known = self.model.get(topic)
        number = saved["results"]["revision"]
        if known is None or not known.is_live:
            earlier = dict(known.texts) if known else {}
            assert number not in earlier
            if known:
                del earlier[known.current]  # it is in the archive, and comes back from there
            self.model[topic] = Known({**earlier, number: text}, number)
            return
        assert number not in known.texts
        is_beside = not known.text.gives_way_to(text)
        assert saved["results"]["replaced"] == (None if is_beside else known.current)
        known.texts[number] = text
        if not is_beside:
            known.current = number

    def live(self, topic: str) -> Known | None:
        known = self.model.get(topic)
        return known if known is not None and known.is_live else None

    @rule(
        topic=topics, session=sessions, outcome=st.sampled_from(["worked", "wrong"]), is_person=st.booleans()
    )
    def rate(self, topic: str, session: str, outcome: Outcome, *, is_person: bool) -> None:
        known = self.live(topic)
        if known is None:
            return
        who = PERSON.session if is_person else session
        known.text.ratings[who] = outcome
        data = {"outcome": outcome, "session_id": session}
        told = to_plain(self.app.rate_report(f"vue-{topic}", data, PERSON if is_person else None))
        assert (told["worked"], told["wrong"]) == (known.text.counted("worked"), known.text.counted("wrong"))

    @rule(topic=topics, which=st.integers(1, 6))
    def bring_back_a_text(self, topic: str, which: int) -> None:
        known = self.live(topic)
        if known is not None and which in known.texts and which != known.current:
            self.app.catalog.restore_revision(f"vue-{topic}", which)
            known.current = which

    @rule(topic=topics)
    def remove(self, topic: str) -> None:
        known = self.live(topic)
        if known is not None:
            self.app.catalog.remove([f"vue-{topic}"])
            known.is_live = False

    @rule(days=st.integers(0, 3))
    def wait(self, days: int) -> None:
        self.project.clock.pass_days(days)

    @precondition(lambda self: self.number % 3 == 0)
    @rule()
    def open_again(self) -> None:
        self.app.close()
        self.app = self.project.app()

    @invariant()
    def what_stands_is_what_the_model_says(self) -> None:
        for topic, known in self.model.items():
            if not known.is_live:
                continue
            entry = self.app.entry(f"vue-{topic}", report=True)
            assert f"{known.text.mark}." in entry["report"]
            assert (entry["written_by"], entry["confidence"]) == (known.text.writer, known.text.confidence)

    @invariant()
    def who_is_served_is_who_the_model_says(self) -> None:
        for topic, known in self.model.items():
            asked = asked_for(topic=topic, question=f"{topic}?", framework_version="unknown")
            if known.is_live and known.text.is_served:
                answer = to_plain(self.app.research.document(json.dumps(asked).encode(), include_report=True))
                assert answer["status"] == "cache-hit"
                assert f"{known.text.mark}." in answer["results"]["report"]
            else:
                assert self.app.explain(asked)["outcome"] != "hit"


@pytest.mark.timeout(1_800)
@pytest.mark.effort(200, 20)
def test_findings_and_ratings_in_any_order_are_what_the_model_says(
    database_url: str | None, effort: int, request: pytest.FixtureRequest
) -> None:
    class OfThisDatabase(Findings):
        def __init__(self) -> None:
            if database_url is not None:
                databases: Databases = request.getfixturevalue("postgresql")
                assert databases.clean() == database_url
            super().__init__()
            assert self.app.store.is_shared == (database_url is not None)

    tried = settings(max_examples=effort, stateful_step_count=15, deadline=None)
    run_state_machine_as_test(OfThisDatabase, settings=tried)
