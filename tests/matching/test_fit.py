import random
from math import exp

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.matching.learning import fit, least_likelihood
from kr.matching.weights import Fitted

NUMBER = st.floats(-3, 3, width=32)
EXAMPLES = st.lists(st.tuples(NUMBER, NUMBER, st.booleans()), min_size=4, max_size=40).filter(
    lambda rows: len({label for *_, label in rows}) == 2
)


def drawn(bias: float, weights: list[float], number: int) -> tuple[list[list[float]], list[bool]]:
    """Examples whose labels fall as a known model says."""
    chance = random.Random(7)  # the same examples every time
    rows = [[chance.gauss(0, 1) for _ in weights] for _ in range(number)]
    model = Fitted(bias, tuple(weights))
    return rows, [chance.random() < model.likelihood(row) for row in rows]


def test_it_finds_the_weights_that_the_examples_were_made_with() -> None:
    rows, labels = drawn(-1.0, [2.0, -1.5, 0.0], 6000)
    found = fit(rows, labels)
    assert found.bias == pytest.approx(-1.0, abs=0.15)
    assert found.weights == pytest.approx((2.0, -1.5, 0.0), abs=0.2)


def test_one_piece_of_evidence_that_says_little() -> None:
    # Of 10 with it 8 are hits, of 10 without it 2: the log odds are ln 4 and -ln 4.
    rows = [[1.0]] * 10 + [[0.0]] * 10
    labels = [True] * 8 + [False] * 2 + [True] * 2 + [False] * 8
    found = fit(rows, labels, ridge=1e-6)
    assert found.likelihood([1.0]) == pytest.approx(0.8, abs=1e-3)
    assert found.likelihood([0.0]) == pytest.approx(0.2, abs=1e-3)
    assert found.weights[0] == pytest.approx(2 * 1.3863, abs=1e-2)


@given(EXAMPLES)
def test_at_the_best_weights_nothing_pulls(examples: list[tuple[float, float, bool]]) -> None:
    rows, labels = [[a, b] for a, b, _ in examples], [label for *_, label in examples]
    found = fit(rows, labels, ridge=1.0)
    # The bias is not penalized: as many hits are expected as there are.
    assert sum(map(found.likelihood, rows)) == pytest.approx(sum(labels), abs=1e-3)


@given(EXAMPLES, st.floats(0.1, 10), st.floats(-5, 5))
def test_the_unit_of_a_number_does_not_count(
    examples: list[tuple[float, float, bool]], factor: float, shift: float
) -> None:
    rows, labels = [[a, b] for a, b, _ in examples], [label for *_, label in examples]
    moved = [[a * factor + shift, b] for a, b in rows]
    one, other = fit(rows, labels), fit(moved, labels)
    for row, same in zip(rows, moved, strict=True):
        assert one.likelihood(row) == pytest.approx(other.likelihood(same), abs=1e-3)


def test_examples_that_one_number_parts_wholly_keep_their_weights_in_bounds() -> None:
    rows = [[float(number > 10)] for number in range(21)]
    found = fit(rows, [number > 10 for number in range(21)])
    assert 0.5 < found.likelihood([1.0]) < 1.0
    assert abs(found.weights[0]) < 20
    assert fit(rows, [number > 10 for number in range(21)], ridge=1e-9).likelihood([1.0]) > 0.99


def test_a_number_that_never_changes_has_no_weight() -> None:
    assert fit([[1.0, 0.0], [1.0, 1.0]], [False, True]).weights[0] == 0.0


def test_twins_share_the_weight() -> None:
    rows, labels = drawn(0.0, [1.0], 500)
    found = fit([[a, a] for (a,) in rows], labels)
    assert found.weights[0] == pytest.approx(found.weights[1])


def test_one_label_alone_teaches_nothing() -> None:
    with pytest.raises(ValueError, match="one label"):
        fit([[1.0], [2.0]], [True, True])


def test_a_likelihood_is_never_out_of_bounds() -> None:
    assert Fitted(0.0, (1e300,)).likelihood([1e300]) == pytest.approx(1.0)
    assert Fitted(0.0, (1e300,)).likelihood([-1e300]) == pytest.approx(exp(-30))


@given(st.lists(st.floats(0, 1), max_size=60), st.floats(0, 0.5))
def test_no_more_than_the_share_that_is_allowed_exceeds_the_least(
    refused: list[float], allowed: float
) -> None:
    least = least_likelihood(refused, allowed=allowed)
    assert sum(likelihood > least for likelihood in refused) <= allowed * len(refused)
