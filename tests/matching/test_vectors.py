import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kr.matching.vectors import Likeness, cosine, joined, likeness, pack, passages

NUMBERS = st.floats(-1e6, 1e6, width=32).filter(lambda number: number == 0 or abs(number) > 1e-6)
PAIRS = st.integers(1, 40).flatmap(
    lambda size: st.tuples(*[st.lists(NUMBERS, min_size=size, max_size=size).filter(any)] * 2)
)


def exact(one: list[float], other: list[float]) -> float:
    product = math.fsum(a * b for a, b in zip(one, other, strict=True))
    return product / (math.hypot(*one) * math.hypot(*other))


@given(PAIRS)
def test_it_is_the_cosine_of_the_vectors(pair: tuple[list[float], list[float]]) -> None:
    one, other = pair
    found = cosine(pack(one), pack(other))
    assert found == pytest.approx(exact(one, other), abs=1e-5)
    assert found == cosine(pack(other), pack(one))
    assert -1.0 <= (found or 0.0) <= 1.0


@given(PAIRS, st.floats(1e-3, 1e3))
def test_length_does_not_count(pair: tuple[list[float], list[float]], factor: float) -> None:
    one, other = pair
    assert cosine(pack([number * factor for number in one]), pack(other)) == pytest.approx(
        cosine(pack(one), pack(other)), abs=1e-5
    )


@given(st.lists(NUMBERS, min_size=1, max_size=40).filter(any))
def test_a_vector_is_like_itself_and_unlike_its_opposite(numbers: list[float]) -> None:
    assert cosine(pack(numbers), pack(numbers)) == pytest.approx(1.0, abs=1e-5)
    assert cosine(pack(numbers), pack([-number for number in numbers])) == pytest.approx(-1.0, abs=1e-5)


def test_it_is_kept_as_little_endian_floats() -> None:
    assert pack([3, 4]) == struct.pack("<2f", 0.6, 0.8)
    assert pack([-7.5]) == struct.pack("<f", -1.0)
    assert cosine(struct.pack("<2f", 1.0, 0.0), struct.pack("<2f", 0.0, 1.0)) == 0.0


@pytest.mark.parametrize("numbers", [[], [0.0, 0.0], [1.0, math.nan], [math.inf], [1e308] * 4])
def test_what_has_no_direction_is_refused(numbers: list[float]) -> None:
    with pytest.raises(ValueError, match="direction"):
        pack(numbers)


@pytest.mark.parametrize("other", [b"", b"abc", pack([1.0]), pack([1.0, 2.0, 3.0])])
def test_what_can_not_be_compared_says_nothing(other: bytes) -> None:
    assert cosine(pack([1.0, 2.0]), other) is None
    assert cosine(other, pack([1.0, 2.0])) is None


def test_what_others_wrote_into_the_database_says_nothing() -> None:
    broken = struct.pack("<2f", math.nan, 1.0)
    assert cosine(broken, pack([1.0, 2.0])) is None
    assert cosine(struct.pack("<2f", math.inf, 1.0), pack([0.0, 2.0])) is None
    assert cosine(b"abcde", b"abcde") is None


def test_a_report_is_taken_apart_under_its_headings() -> None:
    report = f"# Title\nline\n\nfirst\n\nsecond\n\n## Part\n\n{'a' * 300}\n\n{'b' * 300}\n\n"
    assert passages(report) == ["Title\nline\nfirst\nsecond", f"Part\n{'a' * 300}", f"Part\n{'b' * 300}"]
    assert len(passages("\n\n".join(f"# {number}" for number in range(99)))) == 8
    assert passages(" \n\n") == []


def test_the_passages_that_are_nearest_count() -> None:
    need, far, nearer = pack([1.0, 0.0]), pack([0.0, 1.0]), pack([3.0, 4.0])
    assert likeness(need, joined([nearer, far, need, nearer])) == pytest.approx(Likeness(0.6, 0.8))
    assert likeness(need, joined([nearer])) == pytest.approx(Likeness(0.6, 0.6))


@pytest.mark.parametrize(
    "kept",
    [
        b"",
        b"\0",
        pack([1.0, 0.0]),
        joined([pack([1.0, 0.0, 0.0])]),
        joined([pack([1.0] * 4), pack([1.0] * 4)]),
        joined([struct.pack("<2f", math.nan, 1.0)]),
    ],
)
def test_what_another_model_made_is_like_nothing(kept: bytes) -> None:
    assert likeness(pack([1.0, 0.0]), kept) is None
