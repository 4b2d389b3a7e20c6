"""Pairs of opposites in software topics, English and Chinese first (SPEC 3.2). The table is ``opposites.txt``."""

import re
from functools import cache
from pathlib import Path

from kr.matching.han import pattern, simplified
from kr.matching.inflection import bases
from kr.matching.vocabulary import SHORT_FORMS

Poles = dict[str, tuple[tuple[int, int], ...]]


def _read(text: str, start: int = 0) -> Poles:
    found: dict[str, list[tuple[int, int]]] = {}
    for axis, line in enumerate(dict.fromkeys(text.splitlines()), start):
        one, other = line.split("|")
        for word in one.split():
            found.setdefault(word, []).append((axis, 1))
        for word in other.split():
            found.setdefault(word, []).append((axis, -1))
    return {word: tuple(ends) for word, ends in found.items()}


@cache
def _sections() -> tuple[str, str]:
    text = Path(__file__).with_name("opposites.txt").read_text(encoding="utf-8")
    english, _, others = text.partition("[english]\n")[2].partition("[chinese, japanese, korean]\n")
    return english, others


@cache
def english_poles() -> Poles:
    """Return for each word the axes of meaning it lies on, with its end of each: 1 or -1. Axes are numbers."""
    return _read(_sections()[0])


def poles_of(word: str) -> tuple[tuple[int, int], ...]:
    """Return the axes and ends of an English word in any of its forms."""
    poles = english_poles()
    for base in bases(word):
        if base in poles:
            return poles[base]
    return poles.get(SHORT_FORMS.get(word, ""), ())


def poles_in(run: str) -> list[tuple[int, int, str]]:
    """Return the axes and ends that a run of simplified Chinese, of Japanese or Korean names, each with its word."""
    poles = cjk_poles()
    return [(axis, pole, word) for word in _cjk_pattern().findall(run) for axis, pole in poles[word]]


@cache
def cjk_poles() -> Poles:
    return _read(simplified(_sections()[1]), start=1000)


@cache
def _cjk_pattern() -> re.Pattern[str]:
    return pattern(*sorted(cjk_poles(), key=len, reverse=True))
