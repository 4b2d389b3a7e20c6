import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kr.lessons.duplicates import Told, duplicates, tells_the_same
from kr.lessons.line import Lesson

PAIRS = yaml.safe_load(
    Path(__file__).parents[1].joinpath("data/lesson-pairs.yaml").read_text(encoding="utf-8")
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
        assert Told([lesson(other)]).tells(lesson(one)) == pair["same"]


def test_another_phase_is_no_duplicate() -> None:
    one = lesson("Set row-height", "dev-execution")
    assert list(duplicates(one, [lesson("Set row-height", "code-review")])) == []
    assert list(duplicates(one, [lesson("Set row-height", "vue", "dev-execution")])) != []
    assert not Told([lesson("Set row-height", "code-review")]).tells(one)
    assert Told([lesson("Set row-height", "vue", "dev-execution")]).tells(one)


def test_lines_that_differ_only_in_their_reference_are_compared() -> None:
    twice = [lesson("Set row-heights"), lesson("Set row-heights")._replace(ref="a.vue")]
    assert list(duplicates(lesson("Set row-height"), twice)) == twice


@pytest.mark.parametrize(
    "part", ["a ", "from ", "use x before ", "ab", "aB", "先", "在a", "a.b_", "1", "replace a "]
)
def test_a_long_line_costs_little(part: str) -> None:
    long = (part * 50_000)[:50_000]
    began = time.process_time()
    others = [lesson(f"{number} {long}") for number in range(30)]
    for text in (long, long[:150]):
        list(duplicates(lesson(text), others))
        Told(others).tells(lesson(text))
    assert time.process_time() - began < 10


def test_many_similar_lessons_cost_little() -> None:
    told = Told([])
    began = time.process_time()
    for number in range(500):
        told.add(
            lesson(f"Set retries for service{number} before calling endpoint{number * 7} of the gateway")
        )
        assert not told.tells(
            lesson(f"Set retries for service{number + 1} before calling endpoint{number * 7 + 7}")
        )
    assert told.tells(lesson("Set the retries for service250 before calling endpoint1750 of a gateway"))
    assert time.process_time() - began < 20


@given(st.text(max_size=80).filter(str.strip))
def test_a_lesson_is_its_own_duplicate(summary: str) -> None:
    assert tells_the_same(summary, summary)
    assert list(duplicates(lesson(summary), [lesson(summary)]))
