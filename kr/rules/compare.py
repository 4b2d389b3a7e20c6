"""How two topics compare: their overlap, and what makes them different things (SPEC 3.2)."""

from typing import NamedTuple

from kr.rules.names import Name, same_name
from kr.rules.opposites import positive_of
from kr.rules.topics import Segment, Topic, Unit
from kr.rules.words import is_near, singular, stem

BOTH_SIDES = 3.0
ONE_SIDE = 0.4
MINIMAL_PAIR = 0.5
LONE_WORD = 1.5
_FUZZY = 24


class Comparison(NamedTuple):
    """``overlap`` and ``similarity`` are 0.0 to 1.0; ``contradiction`` says why the topics can't be the same."""

    overlap: float
    similarity: float
    contradiction: str | None


def compare(one: Topic, other: Topic) -> Comparison:
    """Compare two topics; the same whichever comes first.

    The overlap is a symmetrised Tversky index: words that only one topic has cost little, since a question is often
    shorter or longer than the entry; words that *each* has for itself cost much, since there one thing was
    put in the place of another.
    """
    mine, yours = _matched(one, other)
    matched_one, rest_one = _weigh(one.units, mine)
    matched_other, rest_other = _weigh(other.units, yours)
    for segments, bigrams, side in ((one.segments, other.bigrams, 0), (other.segments, one.bigrams, 1)):
        covered, uncovered = _cover(segments, bigrams)
        if side == 0:
            matched_one, rest_one = matched_one + covered, rest_one + uncovered
        else:
            matched_other, rest_other = matched_other + covered, rest_other + uncovered
    matched = (matched_one + matched_other) / 2
    low, high = sorted((rest_one, rest_other))
    if not matched:
        return Comparison(0.0, 0.0, _contradiction(one, other, matched=0.0))
    overlap = matched / (matched + BOTH_SIDES * low + ONE_SIDE * high)
    if matched < LONE_WORD and high >= 0.25:
        overlap *= 0.6
    similarity = matched / (matched + (low + high) / 2)
    reason = _contradiction(one, other, matched=matched)
    if reason is None and low >= 0.9 and similarity >= MINIMAL_PAIR:
        reason = "each topic has words of its own in an otherwise equal text"
    return Comparison(overlap, similarity, reason)


def _weigh(units: tuple[Unit, ...], matched: set[int]) -> tuple[float, float]:
    inside = sum(unit.weight for unit in units if unit.at in matched)
    return inside, sum(unit.weight for unit in units) - inside


def _matched(one: Topic, other: Topic) -> tuple[set[int], set[int]]:
    """Return the indices of the words that each topic shares with the other."""
    mine = {unit.at for unit in one.units if unit.stem in other.stems}
    yours = {unit.at for unit in other.units if unit.stem in one.stems}
    if len(mine) == len(one.units) and len(yours) == len(other.units):
        return mine, yours
    for name in one.names:
        for theirs in other.names:
            if name.kind != "number" and same_name(name, theirs):
                mine.update(range(name.start, name.end))
                yours.update(range(theirs.start, theirs.end))
    _match_joined(one, mine, other, yours)
    _match_joined(other, yours, one, mine)
    left = [unit for unit in one.units if unit.at not in mine][:_FUZZY]
    right = [unit for unit in other.units if unit.at not in yours][:_FUZZY]
    for unit in left:
        for candidate in right:
            if candidate.at not in yours and is_near(unit.text, candidate.text):
                mine.add(unit.at)
                yours.add(candidate.at)
                break
    return mine, yours


def _match_joined(one: Topic, mine: set[int], other: Topic, yours: set[int]) -> None:
    """Match single words with what the other topic writes as several: ``websocket``, ``rerenders``, ``HPA``."""
    for unit in one.units:
        if unit.at in mine or len(unit.text) < 3:
            continue
        span = other.joined.get(singular(unit.text)) or (
            other.initials.get(unit.text) if len(unit.text) < 7 else None
        )
        if span:
            mine.add(unit.at)
            yours.update(range(*span))


def _cover(segments: tuple[Segment, ...], bigrams: frozenset[str]) -> tuple[float, float]:
    """Return the weight of the characters that stand in a shared bigram, and of the others.

    A lone uncovered character beside covered ones is mostly a particle or a cut word, and counts half.
    """
    inside = outside = 0.0
    for text, weights in segments:
        if len(text) == 1:
            shared = text in bigrams or any(text in bigram for bigram in bigrams)
            inside, outside = (inside + weights[0], outside) if shared else (inside, outside + weights[0])
            continue
        covered = [False] * (len(text) + 1)
        for i in range(len(text) - 1):
            if text[i : i + 2] in bigrams:
                covered[i] = covered[i + 1] = True
        for i, weight in enumerate(weights):
            if covered[i]:
                inside += weight
            else:
                alone = (i == 0 or covered[i - 1]) and (i + 1 == len(text) or covered[i + 1])
                outside += weight / 2 if alone else weight
    return inside, outside


def _contradiction(one: Topic, other: Topic, *, matched: float) -> str | None:
    return (
        _denied(one, other)
        or _denied(other, one)
        or _denied_by_prefix(one, other)
        or _denied_by_prefix(other, one)
        or (_opposed(one, other) if matched >= 1 else None)
        or _different_names(one, other, related=matched >= 1)
    )


def _denied(one: Topic, other: Topic) -> str | None:
    for denial in one.denials:
        shared = denial.scope & other.lexicon
        if shared and not any(denial.scope & theirs.scope for theirs in other.denials):
            return f"one topic denies what the other is about: {', '.join(sorted(shared))}"
    return None


def _denied_by_prefix(one: Topic, other: Topic) -> str | None:
    for unit in one.units:
        if unit.stem in other.stems or not (positive := positive_of(unit.text)):
            continue
        root = stem(positive)
        if root in other.stems and root not in one.stems and not any(root in d.scope for d in other.denials):
            return f"{unit.text} is not {positive}"
    return None


def _opposed(one: Topic, other: Topic) -> str | None:
    for axis, poles in one.poles.items():
        theirs = other.poles.get(axis)
        if theirs and not poles & theirs:
            return "the topics name opposites"
    return None


def _different_names(one: Topic, other: Topic, *, related: bool) -> str | None:
    if not one.names or not other.names:
        return None
    mine, yours = _unmatched(one, other), _unmatched(other, one)
    for name in mine:
        for theirs in yours:
            if _clash(name, theirs, related=related):
                return f"{name.key} is not {theirs.key}"
    return None


def _unmatched(one: Topic, other: Topic) -> list[Name]:
    return [name for name in one.names if not _is_known(name, other)]


def _is_known(name: Name, topic: Topic) -> bool:
    if name.kind != "number":
        span = topic.joined.get(name.key) or topic.initials.get(name.key)
        if span and not any(_is_inside(span, theirs) for theirs in topic.names):
            return True
    if name.kind == "compound" and all(stem(part) in topic.stems for part in name.parts):
        return True
    if len(name.parts) > 2 and "".join(part[0] for part in name.parts) in topic.joined:
        return True
    return any(same_name(name, theirs) for theirs in topic.names)


def _is_inside(span: tuple[int, int], name: Name) -> bool:
    """Tell whether words are but a part of an identifier: ``RoleBinding`` in ``ClusterRoleBinding``."""
    return (
        name.kind == "code"
        and name.start <= span[0]
        and span[1] <= name.end
        and span != (name.start, name.end)
    )


def _clash(name: Name, theirs: Name, *, related: bool) -> bool:
    kinds = {name.kind, theirs.kind}
    if kinds == {"code"}:
        return True
    if "compound" in kinds:
        return kinds <= {"compound", "code"} and not {*name.parts}.isdisjoint(theirs.parts)
    if kinds == {"number"}:
        return related
    return related and "number" not in kinds
