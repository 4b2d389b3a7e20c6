from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kr.rules.lessons.duplicates import duplicates, tells_the_same
from kr.rules.lessons.line import Lesson

PAIRS = yaml.safe_load(
    Path(__file__).parents[2].joinpath("data/lesson-pairs.yaml").read_text(encoding="utf-8")
)


def lesson(summary: str, *tags: str) -> Lesson:
    return Lesson(date="2026-02-07", tags=tags or ("code-review",), summary=summary)


def test_there_are_enough_pairs() -> None:
    assert len(PAIRS) >= 40
    assert sum(pair["same"] for pair in PAIRS) >= 20


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: pair["other"][:40])
def test_labelled_pairs(pair: dict[str, Any]) -> None:
    for one, other in ((pair["one"], pair["other"]), (pair["other"], pair["one"])):
        assert bool(list(duplicates(lesson(one), [lesson(other)]))) == pair["same"]


def test_another_phase_is_no_duplicate() -> None:
    one = lesson("Set row-height", "dev-execution")
    assert list(duplicates(one, [lesson("Set row-height", "code-review")])) == []
    assert list(duplicates(one, [lesson("Set row-height", "vue", "dev-execution")])) != []


@given(st.text(max_size=80).filter(str.strip))
def test_a_lesson_is_its_own_duplicate(summary: str) -> None:
    assert tells_the_same(summary, summary)
    assert list(duplicates(lesson(summary), [lesson(summary)]))
