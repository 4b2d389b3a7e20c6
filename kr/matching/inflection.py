"""The plain forms that an inflected English word may have (SPEC 3.2)."""

from collections.abc import Iterator

from kr.text.stopwords import word_set

_PLURAL_LOOK = word_set(
    """
    https wss ftps ldaps imaps smtps amqps mqtts coaps rediss
    alias canvas atlas bias pandas christmas ios macos webos chaos kudos cosmos ethos axios nacos helios has does
    """
)
"""Protocols whose last letter says "secure", and other words that are no plurals."""
_PLURALS = word_set("menus submenus gpus cpus tpus apis uris guis clis emojis wikis taxis")
"""Plurals among the many words that end alike: status, analysis."""
_OWN_WORDS = word_set(
    "setting settings string strings thing things nothing something anything everything during morning spring ring"
    " king bring need speed feed seed embed heading headings building buildings meaning listing rating ping"
)
"""Words that only look inflected, or whose inflected form became a thing of its own."""


def singular(word: str) -> str:
    """Take the plural's ``s`` off."""
    if len(word) < 4 or not word.endswith("s") or word in _PLURAL_LOOK or word.endswith("ss"):
        return word
    if word.endswith(("us", "is")) and word not in _PLURALS:
        return word
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes", "zzes")):
        return word[:-2]
    return word[:-1]


def bases(word: str, *, is_verb: bool = False) -> Iterator[str]:
    """Yield ``word`` and what it may be a form of (``hiding``: ``hid``, ``hide``), to be held against a table.

    ``is_verb`` tells that a word such as ``setting`` is no thing of its own.
    """
    yield word
    if (word in _OWN_WORDS and not is_verb) or not word.isascii():
        return
    if (one := singular(word)) != word:
        yield one
    for ending in ("ing", "ed"):
        rest = word.removesuffix(ending)
        if rest == word or len(rest) < 2:
            continue
        yield rest
        yield rest + "e"
        if len(rest) > 2 and rest[-1] == rest[-2]:
            yield rest[:-1]
        if ending == "ed" and rest[-1] == "i":
            yield rest[:-1] + "y"
