"""What a person's question is about: the terminal form derives topic and tags from it (SPEC 3.1)."""

import re
from itertools import pairwise

from kr.text.keywords import MAX_CHARACTERS, MAX_KEYWORDS, keywords, split_compound
from kr.text.stopwords import EMPTY_WORDS

_WORD = re.compile(r"\S+")
_BEFORE = " \t,;:!?\"'`()[]{}<>«»“”‘’„…，。；：！？、（）【】《》"
_AFTER = _BEFORE + "."
_PAUSES = frozenset(",;:.!?，。；：！？、")
_MOST_TAG_WORDS = 12
_MOST_TAGS = 5


def derive_topic(question: str) -> str:
    """Keep the words of the question that tell something, in their order: ``make option repeatable``.

    Articles, pronouns, auxiliaries and question words go, as does what leads in ("how do I *get to*"). All words stay by
    which the matcher tells topics apart ("not", "from", "A" in "A to Z"), and so does every pause, up to the number of
    words that it reads: the opposite may come last. A question of such words alone is its own topic.
    """
    words = _WORD.findall(question[:MAX_CHARACTERS])
    kept: list[str] = []
    has_keyword = False
    for place, written in enumerate(words):
        word = _stripped(written)
        if word and not _is_empty(words, place, word) and (kept or _leads(word)):
            kept.append(word)
            has_keyword = has_keyword or bool(keywords(word))
        if kept and written[-1] in _PAUSES and place + 1 < len(words):
            kept[-1] = kept[-1].rstrip(",") + ","
    return " ".join(kept[:MAX_KEYWORDS]).rstrip(",") if has_keyword else " ".join(question.split())


def derive_tags(framework: str, question: str) -> list[str]:
    """Make tags from neighbouring keywords: ``make-option``, ``option-repeatable``.

    A single everyday word as a tag would answer any question that has it (SPEC 3.2, the weakest tier). A word
    written like an identifier says enough by itself.
    """
    words = [_stripped(word) for word in _WORD.findall(question)]
    telling = [word for word in words if word and keywords(word)][:_MOST_TAG_WORDS]
    tags = [word for word in telling if _is_identifier(word)]
    tags += ["-".join((*keywords(one), *keywords(two))) for one, two in pairwise(telling)]
    return list(dict.fromkeys(tags))[:_MOST_TAGS] or telling or [framework]


def _stripped(written: str) -> str:
    """Take quotes, brackets and punctuation off a word, but not the call from ``unique()``."""
    call = re.search(r"(\w\(\))[^\w]*$", written)
    word = written[: call.end(1)] if call else written.rstrip(_AFTER)
    return word.lstrip(_BEFORE)


def _is_empty(words: list[str], place: int, word: str) -> bool:
    parts = split_compound(word)
    if len(parts) != 1 or parts[0] not in EMPTY_WORDS:
        return False
    # An article stands before a word: "A to Z" and "from Z to A" have none.
    following = _stripped(words[place + 1]) if place + 1 < len(words) else "to"
    return parts[0] != "a" or following.lower() not in {"to", "and", "or", "into", "from"}


def _leads(word: str) -> bool:
    """Tell whether a topic may begin with this word: not with the "to" of "how to"."""
    return bool(keywords(word)) or word.lower() not in {
        "to",
        "of",
        "for",
        "and",
        "or",
        "so",
        "as",
        "if",
        "then",
    }


def _is_identifier(word: str) -> bool:
    return "_" in word or (word != word.lower() and word[1:] != word[1:].lower())
