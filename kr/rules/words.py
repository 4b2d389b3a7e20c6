"""When two words count as the same one: inflection, usual short forms, typing errors (SPEC 3.2)."""

from functools import lru_cache

from kr.rules.opposites import POLES

_SHORT_FORMS = {
    "config": "configuration", "conf": "configuration", "cfg": "configuration", "configure": "configuration",
    "param": "parameter", "params": "parameter", "arg": "argument", "args": "argument", "attr": "attribute",
    "attrs": "attribute", "env": "environment", "repo": "repository", "dir": "directory", "db": "database",
    "dev": "development", "prod": "production", "perf": "performance", "auth": "authentication", "deps": "dependency",
    "js": "javascript", "ts": "typescript", "py": "python", "pg": "postgresql", "postgres": "postgresql",
    "k8s": "kubernetes", "i18n": "internationalization", "l10n": "localization", "a11y": "accessibility",
    "admin": "administrator", "async": "asynchronous", "sync": "synchronous", "info": "information", "spec": "specification",
    "docs": "documentation", "doc": "documentation", "msg": "message", "btn": "button", "img": "image", "embed": "embedding",
    "indices": "index", "indexes": "index", "children": "child", "queries": "query", "matrices": "matrix",
    "vertices": "vertex", "schemata": "schema", "criteria": "criterion", "built": "build",
    "sent": "send", "wrote": "write", "written": "write", "chosen": "choose", "hidden": "hide", "ran": "run",
    "threw": "throw", "thrown": "throw", "broken": "break", "lost": "lose", "kept": "keep", "bound": "bind",
    "colour": "color", "behaviour": "behavior", "licence": "license", "centre": "center", "analyse": "analyze",
    "huge": "large", "big": "large",
}  # fmt: skip

_CONFUSABLE = """
model modal; model module; state stage; state static; local locale; content context; content contest; internal interval
render reader; leader loader; trace track trade; flush flash; quota quote; slice slide; style stale; scale scala
share shard shape sharp; store score; clone close; clear clean; click clock; chart chars; month mount mouth; parse pause
point print paint; login logic logon; except expect; accept access; scope scape; script strict; thread threat
signal single; format formal; render sender; params parens; reset reuse; resume resize; device devise; policy police
string strong; mutation mutations; stack stock; watch match; shell shelf; space spare; steam stream; token taken
private privacy; restore restart; revert revere; insert invert; attach attack; contract contrast; worker wonder
prefix postfix; upsert insert; filter filler; principal principle; compliment complement; desert dessert; cache catch
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
    word = _SHORT_FORMS.get(word, word)
    if len(word) < 4 or not (word.isascii() and word.isalpha()):
        return word
    word = singular(word)
    word = _SHORT_FORMS.get(word, word)
    for ending, least, replacement in _ENDINGS:
        rest = word[: -len(ending)]
        if word.endswith(ending) and len(rest) >= least and _VOWELS.intersection(rest):
            return _tidy(rest + replacement)
    return _tidy(word)


def full_form(word: str) -> str:
    """Return what a usual short form or an irregular one stands for (``env``, ``indices``), else the word itself."""
    return _SHORT_FORMS.get(word, word)


_ENDINGS = (
    ("ionship", 4, ""), ("ization", 4, "iz"), ("isation", 4, "iz"), ("ational", 4, ""), ("ation", 4, ""),
    ("ional", 4, ""), ("ating", 4, ""), ("ated", 4, ""), ("ator", 4, ""), ("ate", 4, ""), ("ally", 4, "al"),
    ("ption", 4, "b"), ("scribing", 2, "scrib"), ("ion", 4, ""), ("ement", 5, ""), ("ment", 6, ""), ("able", 4, ""),
    ("ible", 4, ""), ("ency", 4, ""), ("ancy", 4, ""), ("ingly", 4, ""), ("edly", 4, ""), ("ing", 3, ""),
    ("eed", 99, ""), ("ied", 3, "y"), ("ed", 3, ""), ("ly", 4, ""), ("er", 5, ""), ("or", 6, ""),
)  # fmt: skip


def singular(word: str) -> str:
    """Take the plural's ``s`` off."""
    if len(word) < 4 or not word.endswith("s") or word.endswith(("ss", "us", "is", "as", "os")):
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return word[:-2]
    return word[:-1]


def _tidy(root: str) -> str:
    if len(root) > 3 and root[-1] == root[-2] and root[-1] not in "sl":
        root = root[:-1]
    if len(root) > 3 and root.endswith("e"):
        root = root[:-1]
    return root


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
    if not (one.isalpha() and other.isalpha()) or is_distinct(one, other):
        return False
    from rapidfuzz.distance import OSA

    return OSA.distance(one, other, score_cutoff=allowed) <= allowed


def is_distinct(one: str, other: str) -> bool:
    """Tell whether two similar words are known to mean different things."""
    if frozenset((singular(one), singular(other))) in _DISTINCT:
        return True
    poles = dict(POLES.get(one, ()))
    return any(poles.get(axis, pole) != pole for axis, pole in POLES.get(other, ()))
