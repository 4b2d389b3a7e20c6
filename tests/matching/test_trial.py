from collections.abc import Mapping

import pytest

from kr.matching.learning import Example, Reached, judge, learn, mean, read_labelled
from kr.matching.weights import Fitted, Learned

RISING = Learned(Fitted(0.0, (1.0,)), {"balanced": 0.6, "strict": 0.9})


def example(want: str | None, rows: Mapping[str, float], group: str = "g") -> Example:
    return Example("kind", group, {name: (number,) for name, number in rows.items()}, want)


def test_what_is_reached_is_counted() -> None:
    reached = judge(
        RISING,
        [
            example("a", {"a": 5.0, "b": 1.0}),  # taken, also when strict
            example("a", {"a": 1.0, "b": 0.0}),  # taken when balanced
            example("a", {"a": 0.0, "b": -1.0}),  # the right one, and not sure enough
            example("a", {"a": 1.0, "b": 5.0}),  # another one
            example(None, {"a": 1.0, "b": -1.0}),  # a near miss that is answered when balanced
            example(None, {"a": -1.0, "b": -1.0}),
            example(None, {}),
            example(None, {"a": 0.0}),
        ],
    )
    assert reached == Reached(
        first=0.75, recall={"balanced": 0.5, "strict": 0.25}, wrong={"balanced": 0.25, "strict": 0.0}
    )


def test_a_framework_without_entries_answers_nothing() -> None:
    reached = judge(RISING, [example("a", {})])
    assert (reached.first, reached.recall["balanced"]) == (0.0, 0.0)


def test_limits_come_from_frameworks_that_were_not_learned_from() -> None:
    # In the group "odd" near misses look like answers: weights that learned from it would know better.
    told = [
        example(want, {"a": 1.0 + number / 50 if want else -1.0 - number / 50}, group)
        for group in ("one", "two", "three")
        for number in range(20)
        for want in ("a", None)
    ]
    odd = [example(None, {"a": 1.0}, "odd") for _ in range(10)]
    learned = learn(told + odd)
    assert learned.least["strict"] >= learned.least["balanced"] > 0.5
    assert judge(learned, odd).wrong["balanced"] <= 0.04
    assert judge(learn(told), told).recall["balanced"] == 1.0


def test_means() -> None:
    one = Reached(1.0, {"balanced": 0.5, "strict": 0.0}, {"balanced": 0.0, "strict": 0.0})
    other = Reached(0.5, {"balanced": 0.7, "strict": 0.2}, {"balanced": 0.1, "strict": 0.0})
    found = mean([one, other])
    assert found.first == pytest.approx(0.75)
    assert found.recall == pytest.approx({"balanced": 0.6, "strict": 0.1})
    assert found.wrong == pytest.approx({"balanced": 0.05, "strict": 0.0})


def test_a_labelled_file_is_read() -> None:
    file = read_labelled(
        """
entries:
  - {id: e, framework: click, framework_version: "8.1", topic: t, tags: [a], question: q, report: text}
queries:
  - {kind: near, want: null,
     ask: {framework: Click, framework_version: "8", topic: u, tags: [], question: r}}
"""
    )
    assert (file.entries[0].tags, file.entries[0].question, file.reports) == (("a",), "q", {"e": "text"})
    assert file.asked[0].query.framework == "Click"
    assert file.asked[0].want is None
