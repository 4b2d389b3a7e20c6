"""What speaks against an entry beyond its topic: another identifier, the opposite of what is to be done (SPEC 3.2).

Two topics are compared word by word (``kr.matching.compare``). Questions are long, and full of words that are told by the way:
of these only names of one family count, and the act that is asked about, ``disable the cache`` of "How do I disable the cache?".
"""

import re
from functools import cache

from kr.matching.compare import opposed_acts, opposed_verbs, unmatched_names
from kr.matching.keys import NEED, Keys
from kr.matching.names import Name
from kr.matching.terms import in_english
from kr.matching.topic import Topic, need_of, topic_of
from kr.text.keywords import MAX_CHARACTERS, is_cjk
from kr.text.stopwords import FUNCTION_WORDS

_MOST_WORDS = 9
_MOST_CHARACTERS = 24


def another_name(asked: Topic, topic: str, question: str | None, keys: Keys) -> str | None:
    """Say which name is asked for where the entry's need has another one of its family: ``useCallback``, ``useMemo``.

    Names are of one family when they begin or end with the same word. On 1,192 labelled questions of six files this held for
    16 that no entry answers and for 2 of the 562 whose entry was the best. That a report mentions the name says nothing:
    the reports of siblings mention one another.
    """
    if not any(_has_parts(name) and not _stands_in_need(name, keys) for name in asked.names):
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
