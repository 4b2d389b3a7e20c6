"""What a person's question is about: the terminal form derives topic and tags from it (SPEC 3.1)."""

import re
from itertools import pairwise

from kr.rules.keywords import keywords

_WORD = re.compile(r"\S+")
_EDGES = " \t.,;:!?\"'`()[]{}<>«»“”‘’„…，。；：！？、（）【】《》"
_MOST_WORDS = 12
_MOST_TAGS = 5


def derive_topic(question: str) -> str:
    """Keep the words of the question that carry keywords, in their order: ``make option repeatable``.

    A question of function words alone is its own topic.
    """
    words = [word.strip(_EDGES) for word in _WORD.findall(question)]
    telling = [word for word in words if word and keywords(word)]
    return " ".join(telling[:_MOST_WORDS]) or " ".join(question.split())


def derive_tags(framework: str, question: str) -> list[str]:
    """Make tags from neighbouring keywords: ``make-option``, ``option-repeatable``.

    A single everyday word as a tag would answer any question that has it (SPEC 3.2, the weakest tier). A word
    written like an identifier says enough by itself.
    """
    words = [word.strip(_EDGES) for word in _WORD.findall(question)]
    telling = [word for word in words if word and keywords(word)][:_MOST_WORDS]
    tags = [word for word in telling if _is_identifier(word)]
    tags += ["-".join((*keywords(one), *keywords(two))) for one, two in pairwise(telling)]
    return list(dict.fromkeys(tags))[:_MOST_TAGS] or telling or [framework]


def _is_identifier(word: str) -> bool:
    return "_" in word or (word != word.lower() and word[1:] != word[1:].lower())
