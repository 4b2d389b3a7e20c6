"""The sentences of a material that answer its question, and those that warn (SPEC 3.7: extractive, ranked)."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from kr.reports.outcome import CONTEXT7, DEEPWIKI
from kr.reports.passages import Ranked, Unit
from kr.reports.ranking import rarity
from kr.reports.terms import Terms
from kr.text.markdown import split
from kr.text.sentences import Sentence, is_of_length, leans, plain, sentences_of, understandable

_OF_BEST = 0.65
_OF_QUESTION = 0.35
_FROM_HEADING = 0.35
_OPENING_FROM_HEADING = 0.8
_FROM_UNIT = 0.35
_LABELLED = 0.5
_ALIKE = 0.8
_OPENING, _TELLING = 3, 2
_FEW = 3
_LEADS, _LEADING = 2, 0.8
_NAMES_FOLLOWED = 2
_NAME = re.compile(r"`([A-Za-z_][\w.]{1,60})(?:\(\))?`")
_CAVEAT = re.compile(
    r"\b(?:deprecat\w*|breaking|warn\w*|caution|caveat\w*|notes?|beware|important|must not|only works|"
    r"not supported|unsupported|experimental|beta|unstable|removed|renamed|migrat\w*|since v?\d|as of|"
    r"requires?|versions?(?! (?:argument|parameter|option|field|number|control)\b)|v\d+(?:\.\d+)*|limitations?|known issues?|security)\b"
    r"|注意|警告|弃用|废弃|不支持|不兼容|版本|迁移|限制",
    re.IGNORECASE,
)
_CAVEAT_HEADING = re.compile(
    r"\W*(?:\d[\d.]*\W+)?(?:(?:known|common|current|important|notable|security|version|major|some)\s+)*"
    r"(?:caveats?|limitations?|restrictions?|gotchas?|pitfalls?|warnings?|cautions?|beware|breaking changes?|"
    r"deprecat\w*|migrat\w*|upgrad\w*|(?:in)?compatibilit\w*|notes?|notice|(?<=known )(?:issues?|problems?|bugs?)|"
    r"(?<=common )(?:mistakes|problems))\b"
    r"|\W*(?:[\d一二三四五六七八九十]+[、.．\s]\s*)?(?:使用|重要|已知的?|版本)?"
    r"(?:注意|警告|问题$|限制|局限|弃用|废弃|不兼容|兼容性|破坏性|迁移|升级|陷阱)",
    re.IGNORECASE,
)
_SUBJECTLESS = re.compile(
    r"(?:deprecated|removed|renamed|requires?|not supported|only works|since v?\d|as of)\b", re.IGNORECASE
)
_IN_BRACKETS = re.compile(r"\([^()]*\)")
_IN_TURN = 3  # sentences of one section of caveats before another's
_LAST = 1_000
_SPEAKING = 0.35  # of the best passage's score: a source with such a passage is about the question


@dataclass(frozen=True, slots=True)
class Quotation:
    """A sentence with the unit that it stands in: as clean Markdown on one line, and as it stands there.

    A table below a heading of caveats is one too, as it is. ``is_cut``: more such text was left out right after it.
    """

    unit: Unit
    text: str
    original: str
    is_cut: bool = False


@dataclass(frozen=True, slots=True)
class Summary:
    """``is_answer``: the sentences speak of the question; else they are of the passage that is nearest to it."""

    quotations: tuple[Quotation, ...]
    is_answer: bool = True


@dataclass(slots=True, eq=False)
class _Candidate:
    at: int
    unit: Unit
    sentence: Sentence
    held: frozenset[int]
    told: float = 0.0  # weight of the question that it tells of, its heading's included
    score: float = 0.0
    is_cut: bool = False


def summarize(ranked: Sequence[Ranked], terms: Terms, count: int) -> Summary:
    """Return at most ``count`` sentences that carry real weight of the question, those of the best unit first.

    Real is measured at the question's whole weight and at the best sentence. Where none is, the opening
    sentences of the best passage are returned, with what in it comes nearest.
    """
    candidates = _candidates(ranked, terms)
    weights = _weights(candidates, terms)
    _score(candidates, ranked, terms, weights)
    chosen = _choose(candidates, weights, count)
    if not chosen:
        return Summary(_cleaned(_nearest(candidates, ranked)), is_answer=False)
    chosen = _with_context(chosen, candidates, count)
    chosen = _with_lead(chosen, candidates, ranked, count)
    followed = _followed(chosen, candidates)
    chosen = [chosen[0], *followed, *(c for c in chosen[1:] if c not in followed)][:count]
    return Summary(_cleaned(_in_order(chosen)))


def caveats(ranked: Sequence[Ranked], terms: Terms, count: int) -> tuple[Quotation, ...]:
    """Return what warns where the question is spoken of: the most telling chosen first, in the source's order.

    That is what stands below headings such as "Known issues", of each first some, then notes and warnings that are
    set apart, in sources and passages that speak of the question; then sentences about versions, deprecation and limits.
    """
    everything = _candidates(ranked, terms, with_tables=True)
    below = _below_warnings(ranked, terms)
    apart = _speaking(ranked, everything)
    candidates = [
        c
        for c in everything
        if id(c.unit) in below or (c.sentence.warns and id(c.unit) in apart) or _warns(c.sentence, terms)
    ]
    weights = _weights(candidates, terms)
    _score(candidates, ranked, terms, weights)
    told = _FROM_UNIT * (sum(weights) or 1.0)
    tiers: dict[_Candidate, int] = {}
    seen: Counter[int] = Counter()
    wanted: set[_Candidate] = set()
    for candidate in candidates:
        unit = id(candidate.unit)
        is_apart = candidate.sentence.warns and unit in apart
        if unit in below or is_apart:
            wanted.add(candidate)
            candidate.score += told * understandable(candidate.sentence)
        if candidate.score <= 0:
            continue
        if unit in below:
            tiers[candidate] = 2 * (seen[unit] // _IN_TURN)
            seen[unit] += 1
        elif is_apart:
            tiers[candidate] = 1
        elif candidate.held or not weights or _is_about(candidate, everything, terms):
            tiers[candidate] = _LAST
    best = sorted(tiers, key=lambda candidate: (tiers[candidate], -candidate.score))[:count]
    leaned_on = [everything[c.at - 1] for c in best if c.at and leans(c.sentence)]
    best += [c for c in leaned_on if c not in best and any(c.unit is other.unit for other in best)]
    shown = sorted(best, key=lambda candidate: candidate.at)
    for candidate, after in zip(shown, [*(c.at for c in shown), len(everything)][1:], strict=True):
        candidate.is_cut = any(c in wanted for c in everything[candidate.at + 1 : after])
    return _cleaned(shown)


def _speaking(ranked: Sequence[Ranked], everything: Sequence[_Candidate]) -> set[int]:
    """Return the units (by ``id``) that speak of the question, or answer it by their source's nature."""
    best = max((row.score for row in ranked), default=0.0)
    found = {id(row.unit) for row in ranked if row.score > 0 and row.score >= _SPEAKING * best}
    found |= {id(row.unit) for row in ranked if row.unit.origin.source in {CONTEXT7, DEEPWIKI}}
    return found | {id(c.unit) for c in everything if c.held and c.sentence.warns}


def _warns(sentence: Sentence, terms: Terms) -> bool:
    """Tell whether a sentence has a word of warning; one that the question asks about (migration) is none.

    Nor is what stands in brackets at another parameter than the question's: "`extra`: (Deprecated) ...".
    """
    text = "" if sentence.is_table else sentence.text
    if sentence.label and not terms.within(sentence.label):
        text = _IN_BRACKETS.sub("", text)
    return any(not terms.within(found[0]) for found in _CAVEAT.finditer(text))


def _below_warnings(ranked: Sequence[Ranked], terms: Terms) -> set[int]:
    """Return the units (by ``id``) whose heading announces caveats, in sources that speak of the question.

    Where the question itself asks for them (how to migrate), such a heading is one like others.
    """
    best = max((row.score for row in ranked), default=0.0)
    speaking = {row.unit.origin.number for row in ranked if row.score > 0 and row.score >= _SPEAKING * best}
    found = set()
    for row in ranked:
        heading = _CAVEAT_HEADING.match(row.unit.heading or "")
        is_asked = row.unit.origin.source in {CONTEXT7, DEEPWIKI}  # they answer the question itself
        if heading and not terms.within(heading[0]) and (is_asked or row.unit.origin.number in speaking):
            found.add(id(row.unit))
    return found


def _is_about(candidate: _Candidate, everything: Sequence[_Candidate], terms: Terms) -> bool:
    """Tell whether a caveat that does not name its subject ("This is deprecated") has the question's before it."""
    if not (leans(candidate.sentence) or _SUBJECTLESS.match(candidate.sentence.text)):
        return False
    before = everything[candidate.at - 1] if candidate.at else candidate
    if before.unit is candidate.unit and before.held:
        return True
    return bool(terms.within(candidate.unit.heading or ""))


def _candidates(ranked: Sequence[Ranked], terms: Terms, *, with_tables: bool = False) -> list[_Candidate]:
    found: list[_Candidate] = []
    for row in ranked:
        for sentence in sentences_of(row.unit.blocks, with_tables=with_tables):
            found.append(_Candidate(len(found), row.unit, sentence, terms.within(plain(sentence.text))))
    return found


def _weights(candidates: Sequence[_Candidate], terms: Terms) -> list[float]:
    rare = rarity(terms, (candidate.held for candidate in candidates))
    return [scarce * term.weight for scarce, term in zip(rare, terms.all, strict=True)]


def _score(
    candidates: Sequence[_Candidate], ranked: Sequence[Ranked], terms: Terms, weights: Sequence[float]
) -> None:
    best = max((row.score for row in ranked), default=0.0) or 1.0
    standing = {id(row.unit): row.score / best for row in ranked}
    whole = sum(weights) or 1.0
    opened: set[int] = set()
    above: dict[int, frozenset[int]] = {}
    for candidate in candidates:
        unit = id(candidate.unit)
        form = understandable(candidate.sentence)
        heading = above.setdefault(unit, terms.within(candidate.unit.heading or ""))
        share = _FROM_HEADING if unit in opened else _OPENING_FROM_HEADING
        opened.add(unit)
        candidate.told = sum(weights[at] for at in candidate.held)
        if candidate.sentence.label:
            candidate.told += _LABELLED * sum(weights[at] for at in terms.within(candidate.sentence.label))
        candidate.told += share * sum(weights[at] for at in heading - candidate.held)
        candidate.score = form * (candidate.told + _FROM_UNIT * whole * standing[unit])


def _choose(candidates: Sequence[_Candidate], weights: Sequence[float], count: int) -> list[_Candidate]:
    enough = _OF_QUESTION * sum(weights)
    able = [
        candidate
        for candidate in candidates
        if candidate.score > 0 and candidate.told >= enough and candidate.told > 0
    ]
    able.sort(key=lambda candidate: -candidate.score)
    chosen: list[_Candidate] = []
    for candidate in able:
        if len(chosen) == count or candidate.score < _OF_BEST * able[0].score:
            break
        if not any(_is_alike(candidate.sentence.text, other.sentence.text) for other in chosen):
            chosen.append(candidate)
    return chosen


def _with_lead(
    chosen: Sequence[_Candidate], candidates: Sequence[_Candidate], ranked: Sequence[Ranked], count: int
) -> list[_Candidate]:
    """Have the passages that answer best speak, if only with how they begin."""
    best = max(row.score for row in ranked)
    found = list(chosen)
    for row in ranked[:_LEADS]:
        if row.score < _LEADING * best or any(candidate.unit is row.unit for candidate in found):
            continue
        able = (
            c for c in candidates if c.unit is row.unit and c.told > 0 and understandable(c.sentence) > 0.5
        )
        opening = next(able, None)
        if opening and not any(_is_alike(opening.sentence.text, other.sentence.text) for other in found):
            found = [*found[: count - 1], opening]
    return found


def _with_context(
    chosen: Sequence[_Candidate], candidates: Sequence[_Candidate], count: int
) -> list[_Candidate]:
    """Add what sentences lean on; where there are few, also what stands beside the best one."""
    found = list(chosen)
    for candidate in chosen:
        before = candidates[candidate.at - 1] if candidate.at else candidate
        if leans(candidate.sentence) and _is_beside(before, candidate) and before not in found:
            found.append(before)
    best = chosen[0]
    for at in (best.at + 1, best.at - 1):
        if len(found) < _FEW and 0 <= at < len(candidates):
            beside = candidates[at]
            if _is_beside(beside, best) and beside not in found:
                found.append(beside)
    return found[:count]


def _is_beside(one: _Candidate, other: _Candidate) -> bool:
    return (
        is_of_length(one.sentence.text)
        and one.unit is other.unit
        and one.sentence.place == other.sentence.place
    )


def _followed(chosen: Sequence[_Candidate], candidates: Sequence[_Candidate]) -> list[_Candidate]:
    """Return the list items that say what a name is which the best sentence puts into code."""
    found: list[_Candidate] = []
    for name in dict.fromkeys(_NAME.findall(chosen[0].sentence.text)):
        defining = next(
            (c for c in candidates if c.sentence.label == name and understandable(c.sentence) > 0), None
        )
        if defining and defining is not chosen[0] and len(found) < _NAMES_FOLLOWED:
            found.append(defining)
    return found


def _is_alike(one: str, other: str) -> bool:
    left, right = set(one.casefold().split()), set(other.casefold().split())
    return len(left & right) >= _ALIKE * min(len(left), len(right))


def _in_order(chosen: Sequence[_Candidate]) -> list[_Candidate]:
    """Put the sentences of one unit together in its order, the unit with the best sentence first."""
    units = list(dict.fromkeys(id(candidate.unit) for candidate in chosen))
    return sorted(chosen, key=lambda candidate: (units.index(id(candidate.unit)), candidate.at))


def _nearest(candidates: Sequence[_Candidate], ranked: Sequence[Ranked]) -> list[_Candidate]:
    """Return how the best passage that has sentences begins, and what in it tells most of the question."""
    for row in ranked:
        own = [candidate for candidate in candidates if candidate.unit is row.unit]
        opening = [c for c in own if c.sentence.place == own[0].sentence.place][:_OPENING]
        telling = [c for c in own if c.held and understandable(c.sentence) > 0.5 and c not in opening]
        telling.sort(key=lambda candidate: -candidate.score)
        found = sorted([*opening, *telling[:_TELLING]], key=lambda candidate: candidate.at)
        if _cleaned(found):
            return found
    return []


def _cleaned(candidates: Sequence[_Candidate]) -> tuple[Quotation, ...]:
    # A sentence cut out of clean Markdown need not be clean: half a code span shows what it held.
    found: dict[tuple[int, str], Quotation] = {}
    for candidate in candidates:
        original = candidate.sentence.text
        text = original if candidate.sentence.is_table else one_clean_line(original)
        if text:
            found.setdefault(
                (id(candidate.unit), text), Quotation(candidate.unit, text, original, candidate.is_cut)
            )
    return tuple(found.values())


def one_clean_line(sentence: str) -> str:
    """Return a piece of Markdown as one line of it, written anew."""
    return (
        " ".join(block.text for block in split(sentence) if block.kind != "code").replace("\n", " ").strip()
    )
