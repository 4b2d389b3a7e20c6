"""A few seconds of what ``tests.proof.fuzz`` does for as long as one likes, and samples that must be taken."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.proof.fuzz import DOORS, mutated, try_once
from tests.support.program import Project


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    return Project(tmp_path_factory.mktemp("project"))


@pytest.mark.parametrize("name", DOORS)
def test_a_sample_as_it_is_gets_an_answer(project: Project, name: str) -> None:
    door = DOORS[name]
    assert door.samples
    for sample in door.samples:
        status = door.take(project, sample)
        assert status == 0 or not isinstance(status, int)


@pytest.mark.parametrize("name", DOORS)
@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(chance=st.randoms(use_true_random=False))
def test_whatever_comes_in_ends_well(project: Project, name: str, chance: random.Random) -> None:
    try_once(project, name, mutated(chance, DOORS[name].samples))
