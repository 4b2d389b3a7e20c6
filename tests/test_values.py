"""The two small bases of values: both behave as what they stand in for."""

import copy
from functools import cached_property

import pytest

from kr.values import NamedTuple, Value, replace


class Row(NamedTuple):
    one: int
    two: str = "b"


class Area(Value):
    width: int
    height: int = 1

    @cached_property
    def size(self) -> int:
        return self.width * self.height


def test_a_named_tuple_is_a_tuple_with_names() -> None:
    row = Row(1, two="c")
    assert row == (1, "c") == tuple(Row(two="c", one=1))
    assert (row.one, row.two) == (1, "c")
    assert Row(1) == (1, "b")
    assert row._replace(one=2) == Row(2, "c")
    assert row._asdict() == {"one": 1, "two": "c"}
    assert repr(row) == "Row(one=1, two='c')"
    assert copy.copy(row) == copy.deepcopy(row) == row
    assert type(copy.deepcopy(row)) is Row


@pytest.mark.parametrize(
    ("placed", "named"),
    [((), {}), ((1, "b", 3), {}), ((1,), {"one": 1}), ((1,), {"three": 3}), ((), {"two": "b"})],
)
def test_a_named_tuple_takes_each_field_once(placed: tuple[object, ...], named: dict[str, object]) -> None:
    with pytest.raises(TypeError, match="Row"):
        Row(*placed, **named)  # type: ignore[arg-type]


def test_a_changed_value_shares_nothing_that_was_worked_out() -> None:
    area = Area(width=2, height=3)
    assert area.size == 6
    wider = replace(area, width=4)
    assert (wider, wider.size) == (Area(width=4, height=3), 12)
    assert area == Area(width=2, height=3)
    with pytest.raises(TypeError, match="depth"):
        replace(area, depth=1)
