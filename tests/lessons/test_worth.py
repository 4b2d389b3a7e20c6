"""Which lessons earn their place: recurrences with and without the lesson, what people decide, forty simulated sprints."""

import random
from datetime import timedelta
from pathlib import Path

import pytest

from kr.errors import UnknownEntry
from kr.lessons.file import LessonsFile
from kr.lessons.review import Lessons
from kr.store.engine import Store
from tests.support.lessons import NOW, inject_from, record_to


@pytest.fixture
def service(path: Path, store: Store) -> Lessons:
    return Lessons(LessonsFile(path, store), clock=lambda: NOW)


def given(path: Path, store: Store, session: str = "s") -> str:
    answer = inject_from(path, store, session_id=session)
    return str((answer.results or {})["injection_block"])


def test_a_person_retires_pins_and_words_anew(
    path: Path, project: Path, store: Store, service: Lessons
) -> None:
    record_to(path, project, store, errors=["Page is required for MyBatis-Plus"])
    record_to(path, project, store, errors=["row-height must be set"])
    newer, older = service.lessons()
    assert given(path, store).splitlines()[2:] == [
        "1. row-height must be set",
        "2. Page is required for MyBatis-Plus",
    ]
    assert service.mark(older["id"][:6], "pinned_at")["status"] == "pinned"
    assert given(path, store).splitlines()[2] == "1. Page is required for MyBatis-Plus"
    assert service.mark(newer["id"], "retired_at")["status"] == "retired"
    assert "row-height" not in given(path, store)
    assert service.mark(newer["id"], "approved_at")["status"] == "live"
    assert [lesson["summary"] for lesson in service.lessons()] == [newer["summary"], older["summary"]]
    before = path.read_bytes()
    edited = service.edit(
        older["id"], "Pass a Page to MyBatis-Plus selects, password=hunter2hunter2", by_person=True
    )
    assert path.read_bytes().startswith(before)
    assert edited["summary"] == "Pass a Page to MyBatis-Plus selects, password=<secret>"
    assert edited["source"] == "person"
    block = given(path, store)
    assert "Page is required" not in block
    assert "Pass a Page" in block
    assert [lesson["status"] for lesson in service.lessons()].count("superseded") == 1
    with pytest.raises(UnknownEntry, match="no lesson has the id"):
        service.mark("zzz", "pinned_at")


# What each kind of lesson does to its failure: its chance in a sprint where the lesson was given, and where it was not.
KINDS = {"helps": (0.0, 0.8), "unheeded": (0.8, 0.8), "idle": (0.0, 0.0)}
NAMES = ("Kafka", "Redis", "Vite", "Django", "Flask", "Celery")


@pytest.mark.effort(6, 2)
def test_forty_sprints_are_counted(
    path: Path, project: Path, store: Store, service: Lessons, effort: int
) -> None:
    """Half of the agents get the lessons (the other half is the control), and failures come as their kind says."""
    chance = random.Random(7)
    failures = {
        f"{name} client{number} needs option{kind}{number} of {name}": kind
        for number, name in enumerate(NAMES[:effort])
        for kind in KINDS
    }
    for failure in failures:
        record_to(path, project, store, session_id="first", errors=[failure])
    happened: dict[str, list[int]] = {failure: [0, 0] for failure in failures}
    for sprint in range(40):
        session, now = f"sprint-{sprint}", NOW + timedelta(days=sprint)
        is_given = sprint % 2 == 0
        if is_given:
            inject_from(path, store, session_id=session, budget=len(failures), now=now)
        for failure, kind in failures.items():
            if chance.random() < KINDS[kind][0 if is_given else 1]:
                happened[failure][is_given] += 1
                record_to(path, project, store, session_id=session, now=now, errors=[failure])
    told = {lesson["summary"]: lesson for lesson in service.lessons()}
    assert len(told) == len(failures)
    for failure in failures:
        lesson = told[failure]
        assert lesson["injected"] == 20
        assert lesson["recurred"] == sum(happened[failure])
        assert lesson["recurred_after_injection"] == happened[failure][True]
    # Those that came back go first; those that never did make room.
    block = given(path, store, "last")
    assert effort < 5 or "optionidle" not in block
    assert block.count("optionhelps") + block.count("optionunheeded") == min(10, 2 * effort)
