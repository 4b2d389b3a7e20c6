"""The rules about errors of fixed wording, as a table."""

import re
from pathlib import Path

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from kr.lessons.distill.essence import essence
from kr.lessons.distill.remedies import _BROAD_ROWS, _ROWS, _compiled, _needle, _rules, advice
from kr.lessons.distill.wording import plain
from kr.lessons.returned import read_return

FAILURES = yaml.load(
    Path(__file__).parents[1].joinpath("data/failures.yaml").read_text(encoding="utf-8"),
    Loader=yaml.BaseLoader,
)
_ALL = (*_rules(broad=False), *_rules(broad=True))


def test_no_row_stands_twice() -> None:
    patterns = [pattern for pattern, _ in (*_ROWS, *_BROAD_ROWS)]
    assert len(set(patterns)) == len(patterns)


def test_a_needle_stands_in_the_pattern_of_its_row() -> None:
    for rule in _ALL:
        plain = re.sub(r"\\(?=[^A-Za-z0-9])", "", rule.pattern)
        assert rule.needle in plain, rule


def test_no_failure_needs_a_row_that_its_needle_passes_over() -> None:
    for case in FAILURES:
        for finding in read_return(case["return"]).errors:
            text = plain(essence(finding.complaint).complaint)
            for rule in _ALL:
                if _compiled(rule.pattern).fullmatch(text):
                    assert rule.needle in text, rule


def test_most_rows_have_a_needle() -> None:
    assert sum(len(rule.needle) > 2 for rule in _ALL) > len(_ALL) * 0.6


@pytest.mark.parametrize(
    ("pattern", "needle"),
    [
        (r"KeyError: N", "KeyError: "),
        (r"(?:a|b(?:c|d)): No module named N", ": No module named "),
        (r"one|other", ""),
        (r".*database is locked.*", "database is locked"),
        (r"x\(\) fails?", "x() fail"),
        (r"[Uu]nknown \d+ (N)", "nknown "),
    ],
)
def test_needles(pattern: str, needle: str) -> None:
    assert _needle(pattern) == needle


@given(st.text(max_size=200))
def test_any_text_is_looked_up(text: str) -> None:
    told = advice(text)
    assert told is None or not re.search(r"\s\s|\n", told)
