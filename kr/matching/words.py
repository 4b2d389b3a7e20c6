"""When two words count as the same one: inflection, usual short forms, typing errors (SPEC 3.2)."""

from functools import lru_cache

from kr.matching.axes import poles_of
from kr.matching.inflection import bases, singular
from kr.matching.vocabulary import ALTERNATIVES, SHORT_FORMS, SYNONYMS

_CONFUSABLE = """
model modal; model module; state stage; state static; local locale; content context; content contest; internal interval
render reader; leader loader; trace track trade; flush flash; quota quote; slice slide; style stale; scale scala
share shard shape sharp; store score; clone close; clear clean; click clock; chart chars; month mount mouth; parse pause
point print paint; login logic logon; except expect; accept access; scope scape; script strict; thread threat
signal single; format formal; render sender; params parens; reset reuse; resume resize; device devise; policy police
string strong; mutation mutations; stack stock; watch match; shell shelf; space spare; steam stream; token taken
private privacy; restore restart; revert revere; insert invert; attach attack; contract contrast; worker wonder
prefix postfix; upsert insert; filter filler; principal principle; compliment complement; desert dessert; cache catch; http https; redis rediss; mqtt mqtts; amqp amqps; ldap ldaps
import impact; expose expire; static statis; marker market; border broder; tenant tenet; primary primacy; table tuple
""".replace("\n", ";").split(";")

_DISTINCT = frozenset(
    frozenset((one, other))
    for group in _CONFUSABLE
    for one in group.split()
    for other in group.split()
    if one != other
)
"""Words of the trade that are one typing error apart and still not the same."""

_VOWELS = frozenset("aeiouy")


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Return what the inflected forms of an English word share; other words come back as they are."""
    word = SHORT_FORMS.get(word, word)
    if len(word) < 4 or not (word.isascii() and word.isalpha()):
        return word
    word = singular(word)
    word = SHORT_FORMS.get(word, word)
    word = next((SYNONYMS[base] for base in bases(word) if base in SYNONYMS), word)
    for ending, least, replacement in _BY_LAST_LETTER.get(word[-1], ()):
        if word.endswith(ending):
            rest = word[: -len(ending)]
            if len(rest) >= least and not _VOWELS.isdisjoint(rest):
                # "provisioning" is a form of a noun that has a verb's root itself.
                return stem(rest) if rest.endswith("ion") else _tidy(rest + replacement)
    return _tidy(word)


_ENDINGS = (
    ("ification", 3, "ify"), ("ified", 3, "ify"), ("ifier", 4, "ify"), ("atically", 4, ""), ("atic", 4, ""),
    ("ically", 3, "ic"), ("ical", 4, "ic"), ("ability", 4, ""), ("ibility", 4, ""), ("ity", 5, ""), ("ness", 4, ""),
    ("ism", 5, ""), ("ence", 6, ""), ("ance", 6, ""),
    ("ionship", 4, ""), ("ization", 4, "iz"), ("isation", 4, "iz"), ("ational", 4, ""), ("ation", 4, ""),
    ("ional", 4, ""), ("ating", 4, ""), ("ated", 4, ""), ("ator", 4, ""), ("ate", 4, ""), ("ally", 4, "al"),
    ("scription", 2, "scrib"), ("scribing", 2, "scrib"), ("ion", 4, ""), ("ement", 5, ""), ("ment", 6, ""), ("able", 4, ""),
    ("ible", 4, ""), ("ency", 4, ""), ("ancy", 4, ""), ("ingly", 4, ""), ("edly", 4, ""), ("ing", 3, ""),
    ("eed", 99, ""), ("ied", 3, "y"), ("ed", 3, ""), ("ily", 3, "y"), ("ly", 4, ""), ("er", 5, ""), ("or", 6, ""), ("ndent", 4, "nd"), ("rrent", 4, "r"), ("stent", 4, "st"),
    ("potent", 3, "pot"), ("erent", 4, "er"),
)  # fmt: skip

_BY_LAST_LETTER = {
    letter: tuple(row for row in _ENDINGS if row[0][-1] == letter)
    for letter in {row[0][-1] for row in _ENDINGS}
}


def _tidy(root: str) -> str:
    if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "sl":
        root = root[:-1]
    if len(root) > 3 and root.endswith("e"):
        root = root[:-1]
    return root


def is_short_for(one: str, other: str) -> bool:
    """Tell whether one word is an ambiguous short form of the other: ``auth`` of both ``authorization`` and ..."""
    return any(
        stem(full) == stem(long)
        for short, long in ((one, other), (other, one))
        for full in ALTERNATIVES.get(singular(short), ())
    )


def is_near(one: str, other: str) -> bool:
    """Tell whether two words are the same but for a typing error: ``validaton``, ``rewirte``.

    One edit (or two neighbours swapped) in words of five letters or more, two in words of nine or more; the first
    letter and every digit must agree, and opposites and well-known lookalikes stay apart.
    """
    shorter = min(len(one), len(other))
    if shorter < 5 or one[0] != other[0] or abs(len(one) - len(other)) > 2 or shorter > 40:
        return False
    return is_slip(one, other, allowed=2 if shorter >= 9 else 1)


def is_slip(one: str, other: str, *, allowed: int) -> bool:
    """Tell whether at most ``allowed`` typing errors part two words that are not known to be different."""
    # Each error exchanges at most two letters: what that excludes need not load the library.
    if abs(len(one) - len(other)) > allowed:
        return False
    if sum(abs(one.count(letter) - other.count(letter)) for letter in {*one, *other}) > 2 * allowed:
        return False
    if not (one.isalpha() and other.isalpha()) or is_distinct(one, other):
        return False
    from rapidfuzz.distance import OSA

    return OSA.distance(one, other, score_cutoff=allowed) <= allowed


def is_distinct(one: str, other: str) -> bool:
    """Tell whether two similar words are known to mean different things."""
    if frozenset((singular(one), singular(other))) in _DISTINCT:
        return True
    poles = dict(poles_of(one))
    return any(poles.get(axis, pole) != pole for axis, pole in poles_of(other))
