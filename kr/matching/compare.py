"""How two topics compare: their overlap, and what makes them different things (SPEC 3.2)."""

import re
from functools import cache

from kr.matching.opposites import Axis, are_opposed, is_reversed
from kr.matching.terms import NEED, Keys, in_english
from kr.matching.topic import LIGHT, Name, Segment, Topic, Unit, need_of, same_name, topic_of
from kr.matching.words import SHORT_FORMS, is_near, is_short_for, singular, stem
from kr.text.keywords import FUNCTION_WORDS, MAX_CHARACTERS, is_cjk
from kr.values import NamedTuple

BOTH_SIDES, ONE_SIDE = 2.0, 0.35
"""What words cost that each topic has for itself, and those that only the longer one has. Chosen on tests/data/matching.yaml;
scores hardly move between 1.5 and 4, and between 0.3 and 0.4."""
MINIMAL_PAIR = 0.45
"""How similar two topics are in which one different word means another thing, whatever their tags."""
LONE_WORD = 1.5
"""A shared weight below this is no more than one word, and not a topic."""
ONE_THING = 1.5
"""A topic of no more weight, light words aside, names one thing: its opposite needs no common words around it."""
_FUZZY = 24
_LONG_STEM = 7


class Comparison(NamedTuple):
    """``overlap`` and ``similarity`` are 0.0 to 1.0; ``contradiction`` says why the topics can't be the same.

    ``is_opposite``: not by another name or word, but since one denies, or turns round, what the other is about.
    """

    overlap: float
    similarity: float
    contradiction: str | None
    is_opposite: bool = False


def compare(one: Topic, other: Topic) -> Comparison:
    """Compare two topics; the same whichever comes first.

    The overlap is a symmetrised Tversky index: words that only one topic has cost little, since a question is often
    shorter or longer than the entry; words that *each* has for itself cost much, since there one thing was
    put in the place of another.
    """
    mine, yours = _matched(one, other)
    matched_one, rest_one = _weigh(one, other, mine)
    matched_other, rest_other = _weigh(other, one, yours)
    if one.segments and other.segments and _gaps(one, other) & _gaps(other, one):
        rest_one, rest_other = rest_one + 1, rest_other + 1
    matched = (matched_one + matched_other) / 2
    low, high = sorted((rest_one, rest_other))
    related = matched >= 1 or min(one.substance, other.substance) <= ONE_THING
    opposite = _opposite(one, other, related=related)
    reason = opposite or _different_names(one, other, related=related)
    if not matched:
        return Comparison(0.0, 0.0, reason, opposite is not None)
    overlap = matched / (matched + BOTH_SIDES * low + ONE_SIDE * high)
    if matched < LONE_WORD and high >= 0.25:
        overlap *= 0.6
    similarity = matched / (matched + (low + high) / 2)
    if reason is None and similarity >= MINIMAL_PAIR:
        if low >= 0.9:
            reason = "each topic has words of its own in an otherwise equal text"
        elif _denies_more(one, other):
            reason = opposite = "one topic denies something in an otherwise equal text"
    return Comparison(overlap, similarity, reason, opposite is not None)


def _weigh(topic: Topic, other: Topic, matched: set[int]) -> tuple[float, float]:
    """Return the weight of what ``topic`` shares with ``other``, and of what it has for itself."""
    inside = sum(unit.weight for unit in topic.units if unit.at in matched)
    outside = sum(unit.weight for unit in topic.units) - inside
    for segment in topic.segments:
        for weight, covered, alone in _cover(segment, other.bigrams):
            if covered:
                inside += weight
            else:
                outside += weight / 2 if alone else weight
    return inside, max(outside, 0.0)


def _matched(one: Topic, other: Topic) -> tuple[set[int], set[int]]:
    """Return the places of the words that each topic shares with the other."""
    mine = {unit.at for unit in one.units if unit.stem in other.stems}
    yours = {unit.at for unit in other.units if unit.stem in one.stems}
    if len(mine) == len(one.units) and len(yours) == len(other.units):
        return mine, yours
    for name in one.identifiers if other.identifiers else ():
        for theirs in other.identifiers:
            if same_name(name, theirs):
                mine.update(range(name.start, name.end))
                yours.update(range(theirs.start, theirs.end))
    for a, of_a, b, of_b in ((one, mine, other, yours), (other, yours, one, mine)):
        _match_denied(a, of_a, b, of_b)
        _match_joined(a, of_a, b, of_b)
    left = [unit for unit in one.units if unit.at not in mine][:_FUZZY]
    right = [unit for unit in other.units if unit.at not in yours][:_FUZZY]
    for unit in left:
        for candidate in right:
            if unit.text[0] == candidate.text[0] and candidate.at not in yours and _means(unit, candidate):
                mine.add(unit.at)
                yours.add(candidate.at)
                break
    return mine, yours


def _means(unit: Unit, candidate: Unit) -> bool:
    """Tell a typing error, also in an inflected form (``reconection``, ``reconnect``), and an ambiguous short form."""
    return (
        is_near(unit.text, candidate.text)
        or (min(len(unit.stem), len(candidate.stem)) >= _LONG_STEM and is_near(unit.stem, candidate.stem))
        or is_short_for(unit.text, candidate.text)
    )


def _match_denied(one: Topic, mine: set[int], other: Topic, yours: set[int]) -> None:
    """Match a word that denies with a phrase that does: ``unsorted``, "not sorted"."""
    for unit in one.deniers if other.denials else ():
        if unit.at not in mine and any(unit.denies in denial.scope for denial in other.denials):
            mine.add(unit.at)
            yours.update(theirs.at for theirs in other.units if theirs.stem == unit.denies)


def _match_joined(one: Topic, mine: set[int], other: Topic, yours: set[int]) -> None:
    """Match single words with what the other topic writes as several: ``websocket``, ``rerenders``, ``HPA``."""
    for unit in one.units:
        if unit.at not in mine and (len(unit.text) > 2 or unit.text in SHORT_FORMS):
            span = (
                other.joined.get(unit.plain)
                or other.initials.get(unit.text)
                or other.joined.get(singular(SHORT_FORMS.get(unit.text, "")))
            )
            if span:
                mine.add(unit.at)
                yours.update(range(*span))


def _cover(segment: Segment, bigrams: frozenset[str]) -> list[tuple[float, bool, bool]]:
    """Return for each character its weight, whether a shared bigram covers it, and if not, whether it is alone.

    A lone uncovered character beside covered ones is mostly a particle or a cut word, and counts half.
    """
    text, weights = segment
    if len(text) == 1:
        return [(weights[0], any(text in bigram for bigram in bigrams), False)]
    covered = [False] * (len(text) + 1)
    for i in range(len(text) - 1):
        if text[i : i + 2] in bigrams:
            covered[i] = covered[i + 1] = True
    return [
        (
            weight,
            covered[i],
            not covered[i] and (i == 0 or covered[i - 1]) and (i + 1 == len(text) or covered[i + 1]),
        )
        for i, weight in enumerate(weights)
    ]


def _gaps(topic: Topic, other: Topic) -> set[tuple[str, str]]:
    """Return where a lone character is not shared, by its shared neighbours.

    A gap in the same place on both sides means that one character was put for another: 懒加载, 预加载.
    """
    gaps: set[tuple[str, str]] = set()
    for segment in topic.segments:
        text = segment.text
        for i, (_, _, alone) in enumerate(_cover(segment, other.bigrams)):
            if alone and i + 1 < len(text):
                gaps.add(("before", text[i + 1]))
            if alone and i > 0:
                gaps.add(("after", text[i - 1]))
    return gaps


def opposed_acts(one: Topic, other: Topic) -> str | None:
    """Say why two short phrases that begin with a verb tell opposite things to do; None where they don't.

    More is asked than of topics: what is denied must be told outright, or the verbs must be opposites that share an object.
    """
    for mine, yours in ((one, other), (other, one)):
        for denial in mine.denials:
            shared = denial.scope & yours.lexicon if denial.strong else frozenset()
            if shared and not any(denial.meets(theirs) for theirs in yours.denials):
                return f"what is to be done denies what the other asks for: {', '.join(sorted(shared))}"
    return opposed_verbs(one, other)


def opposed_verbs(one: Topic, other: Topic) -> str | None:
    """Say that two acts begin with opposites and share an object; of translated ones no more is to be known."""
    begun, ended = _poles_of_verb(one), _poles_of_verb(other)
    if any(begun.get(axis, pole) != pole for axis, pole in ended.items()) and _objects(one) & _objects(other):
        return "what is to be done is the opposite of what the other asks for"
    return None


def _poles_of_verb(act: Topic) -> dict[Axis, int]:
    first = act.segments[0].text if act.segments else act.units[0].stem if act.units else ""
    return {
        axis: end.pole
        for axis, ends in act.poles.items()
        for end in ends
        if (first.startswith(end.text) if act.segments else first == end.text)
    }


def _objects(act: Topic) -> frozenset[str]:
    return act.bigrams | {unit.stem for unit in act.units if unit.weight > LIGHT}


def _opposite(one: Topic, other: Topic, *, related: bool) -> str | None:
    return (
        _denied(one, other)
        or _denied(other, one)
        or _denied_by_prefix(one, other)
        or _denied_by_prefix(other, one)
        or (_opposed(one, other) if related else None)
        or _turned(one, other)
    )


def _denied(one: Topic, other: Topic) -> str | None:
    for denial in one.denials:
        shared = denial.scope & other.lexicon
        if shared and not any(denial.meets(theirs) for theirs in other.denials):
            return f"one topic denies what the other is about: {', '.join(sorted(shared))}"
    return None


def _denies_more(one: Topic, other: Topic) -> bool:
    """Tell whether one topic denies more often than the other, whatever it denies."""
    return _denials(one, other) != _denials(other, one)


def _denials(one: Topic, other: Topic) -> int:
    """Count what ``one`` denies: in phrases, and by the form of a word where ``other`` has a phrase for it."""
    by_form = sum(
        unit.stem not in other.stems and any(unit.denies in denial.scope for denial in other.denials)
        for unit in one.deniers
    )
    return by_form + sum(denial.strong for denial in one.denials)


def _denied_by_prefix(one: Topic, other: Topic) -> str | None:
    for unit in one.deniers:
        if unit.denies not in other.stems or unit.denies in one.stems or unit.stem in other.stems:
            continue
        if not any(unit.denies in denial.scope for denial in other.denials):
            return f"{unit.text} denies what the other topic is about"
    return None


def _opposed(one: Topic, other: Topic) -> str | None:
    if any(are_opposed(one.poles[axis], other.poles[axis]) for axis in one.poles.keys() & other.poles.keys()):
        return "the topics name opposites"
    return None


def _turned(one: Topic, other: Topic) -> str | None:
    if is_reversed(one.directions, other.directions) or is_reversed(other.directions, one.directions):
        return "one topic goes the other's way back"
    return None


def _different_names(one: Topic, other: Topic, *, related: bool) -> str | None:
    if not one.identifiers or not other.identifiers:
        return None
    mine, yours = unmatched_names(one, other), unmatched_names(other, one)
    for name in mine:
        for theirs in yours:
            if _clash(name, theirs, related=related):
                return f"{name.key} is not {theirs.key}"
    return None


def unmatched_names(one: Topic, other: Topic) -> list[Name]:
    """Return the names of one topic that the other has in no form."""
    return [name for name in one.identifiers if not _is_known(name, other)]


def _is_known(name: Name, topic: Topic) -> bool:
    if name.kind != "number":
        span = (
            topic.joined.get(name.key)
            or topic.initials.get(name.key)
            or topic.joined.get(singular(SHORT_FORMS.get(name.key, "")))
        )
        if span and not any(_is_inside(span, theirs) for theirs in topic.identifiers):
            return True
    if name.kind == "compound" and all(stem(part) in topic.stems for part in name.parts):
        # Another compound with one of the parts is in its place: adapter-static, "static pages with adapter-node".
        related = [theirs for theirs in topic.identifiers if not {*name.parts}.isdisjoint(theirs.parts)]
        return not related or any(same_name(name, theirs) for theirs in related)
    if len(name.parts) > 2 and "".join(part[0] for part in name.parts) in topic.joined:
        return True
    return any(same_name(name, theirs) for theirs in topic.identifiers)


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


_MOST_WORDS = 9
_MOST_CHARACTERS = 24


def another_name(asked: Topic, topic: str, question: str | None, keys: Keys) -> str | None:
    """Say which name is asked for where the entry's need has another one of its family: ``useCallback``, ``useMemo``.

    Names are of one family when they begin or end with the same word. On 1,192 labelled questions of six files this held for
    16 that no entry answers and for 2 of the 562 whose entry was the best. That a report mentions the name says nothing:
    the reports of siblings mention one another.
    """
    if not any(_has_parts(name) and not _stands_in_need(name, keys) for name in asked.identifiers):
        return None
    known = need_of(topic, question)
    mine = [
        name for name in unmatched_names(asked, known) if _has_parts(name) and not _stands_in_need(name, keys)
    ]
    for theirs in unmatched_names(known, asked) if mine else ():
        for name in mine:
            if _has_parts(theirs) and _is_sibling(name, theirs):
                return f"{name.key} is asked for, and this is about {theirs.key}"
    return None


def opposite_act(asked: str, known: str) -> str | None:
    """Say why two questions ask for opposite acts: "How do I disable X?", "How do I enable X?"; None where they don't.

    Held for 1 of 562 questions with their own entry and for 12 of 600 that no entry answers.
    """
    mine, yours = act_of(asked), act_of(known)
    if not mine or not yours:
        return None
    if _has_chinese(mine) == _has_chinese(yours):
        return opposed_acts(topic_of(mine), topic_of(yours))
    mine, yours = (in_english(text) if _has_chinese(text) else text for text in (mine, yours))
    return opposed_verbs(topic_of(mine), topic_of(yours))


def act_of(question: str) -> str:
    """Return what a question wants done: what stands behind "how do I", "how to", 怎么, up to the next pause."""
    found = _lead().search(question[:MAX_CHARACTERS])
    if found is None:
        return ""
    return (found["chinese"] or " ".join((found["english"] or "").split()[:_MOST_WORDS]))[:MAX_CHARACTERS]


@cache
def _lead() -> re.Pattern[str]:
    return re.compile(
        r"\bhow\s+(?:(?:do|can|could|should|would|must|does)\s+(?:i|we|you|one|it|they|people)|(?:do|can|to))\s+"
        r"(?P<english>[^.,;?:()]*)"
        rf"|(?:怎么样|怎么|如何|怎样|怎麼)(?P<chinese>[^，。？?,;；]{{1,{_MOST_CHARACTERS}}})",
        re.IGNORECASE,
    )


def _has_chinese(text: str) -> bool:
    return any(map(is_cjk, text))


def _has_parts(name: Name) -> bool:
    return name.kind == "code" and len(name.parts) > 1


def _stands_in_need(name: Name, keys: Keys) -> bool:
    return any(keys.get(text, 0) & NEED for text in (name.key, "".join(name.parts)))


def _is_sibling(name: Name, theirs: Name) -> bool:
    if name.key.startswith(theirs.key) or theirs.key.startswith(name.key):
        return False
    ends = ((name.parts[place], theirs.parts[place]) for place in (0, -1))
    return any(mine == other and mine not in FUNCTION_WORDS for mine, other in ends)
