"""What a person's question is about: the terminal form derives topic and tags from it (SPEC 3.1)."""

import re
from functools import cache

from kr.matching.frameworks import same_framework
from kr.text.keywords import (
    CJK_FUNCTION,
    CJK_LIGHT,
    EMPTY_WORDS,
    LIGHT_WORDS,
    MAX_CHARACTERS,
    MAX_KEYWORDS,
    keywords,
    normalise,
    runs,
    split_compound,
    stem,
    word_set,
)

_WORD = re.compile(
    r"(?:(?<=\w)\((?:[^()\n]|\([^()\n]{0,80}\)){0,80}\)|(?<=\w)\[[^\[\]\n]{0,80}\]|(?<==)\"[^\"\n]{0,80}\"|(?<==)'[^'\n]{0,80}'|\S)+"
)
"""What stands between spaces; the arguments of a call, an index and a quoted value belong to their name with the spaces in them."""
_BEFORE = " \t,;:!?\"'`()[]{}<>«»“”‘’„…，。；：！？、（）【】《》"
_AFTER = _BEFORE + "."
_OPENED_BY = {")": "(", "]": "[", "}": "{"}
_QUOTES = "\"'`"
_PAUSES = frozenset(",;:.!?，。；：！？、")
_MOST_TAGS = 5
_LONGEST, _TAIL = 120, 40
"""Characters of a derived topic, and of its end where it is cut."""

_LEADING = word_set(
    """
    way ways possible best recommended proper correct easy easiest simple simplest idiomatic good better example examples
    want wants need needs like love trying try able know understand explain tell show going go about
    """
)
_LEADING_ENDS = word_set("to of for and or so as if then")
"""What leads in, when such a word ends it: "*is there an easy way to* read", "*I want to* read"; a common table is none."""

_QUESTION_WORDS = word_set("which what how why when where who")

_PREPOSITIONS = word_set("in with using for of on from under via inside to and or")
"""They go with the framework's name when nothing follows that they could belong to: "mock a client *in fastapi*"."""

_EVERYDAY = word_set(
    """
    add after alternative answer appear around ask automatically away back bad become before begin behave big bring busy
    call care case cause change come complain contain correctly cost create current decide deep differ different earlier
    easily else end every exist expect fail fast few fill find finish first follow full get give good goes gone grow
    hand handle happen hard heavy hold huge hundred keep kind know large last later leave less let level little long look
    lose lot main maintain manage many matter mean million miss move name nest new next notice nothing number offer old
    once one only open order original own part pass pick piece place plain point possible put quick quickly raise
    reach read really receive recommend refer remain remove replace report return right run same say second see seem send
    separate several share show side single slow small something start stay step still stop store succeed sure switch
    take talk tell ten thing thousand three time try turn two type usual value want wait watch whole wrong yet
    """
)
"""What a question is told with and nobody would file it under."""


def derive_topic(framework: str, question: str) -> str:
    """Keep the words of the question that tell something, in their order: ``make option repeatable``.

    Articles, pronouns, auxiliaries and question words go, as do what leads in ("is there a way to"), a clause that says nothing
    of its own ("..., which should I use") and the name of the framework, by which the topic is filed anyway. All words stay by
    which the matcher tells topics apart ("not", "from", "A" in "A to Z"), and so does every pause, up to the number of
    words that it reads: the opposite may come last. A question of such words alone is its own topic. What is longer than
    a line is cut in its middle.
    """
    words = _WORD.findall(question[:MAX_CHARACTERS])
    clauses: list[list[str]] = [[]]
    asks = False
    for place, written in enumerate(words):
        word = _stripped(written)
        asks = word.lower() in _QUESTION_WORDS if place == 0 or words[place - 1][-1] in _PAUSES else asks
        if word and not _is_empty(words, place, word):
            clauses[-1].append(word)
        if clauses[-1] and (written[-1] in _PAUSES or place + 1 == len(words)):
            # The first clause may be "what can I use"; a later one only asks again.
            if asks and len(clauses) > 1 and not any(map(_is_tag, clauses[-1])):
                clauses.pop()
            clauses.append([])
    clauses[0] = _without_lead(clauses[0])
    told = [" ".join(kept) for clause in clauses if (kept := _without_framework(framework, clause))]
    topic = " ".join(", ".join(told).split()[:MAX_KEYWORDS]).rstrip(",")
    return _short(topic if keywords(topic) else " ".join(question.split()))


def derive_tags(framework: str, question: str) -> list[str]:
    """Take the words under which an agent would file the question: ``multi-stage``, ``useEffect``, ``pagination``.

    Words written like an identifier first, then compounds, then the others in their order; no verb or adjective of
    every day, no word that tells as little as "use", and not the name of the framework.
    """
    text = "".join(
        _chinese_particles().sub(" ", run) if is_run else run for run, is_run in runs(normalise(question))
    )
    words = [_stripped(word) for word in _WORD.findall(text)]
    named = _without_framework(framework, words)
    telling = [word for word in named if len(word) <= _LONGEST and keywords(word)]
    tags = [word for word in telling if _is_identifier(word) or _is_tag(word)]
    tags.sort(key=lambda word: (not _is_identifier(word), "-" not in word))
    unique = {" ".join(map(stem, keywords(word))): word for word in reversed(tags)}
    return [*reversed(unique.values())][:_MOST_TAGS] or telling[:_MOST_TAGS] or [framework]


def _short(topic: str) -> str:
    """Cut a topic that nobody would file by, at words' ends: its beginning, and its end, where the request often stands."""
    if len(topic) <= _LONGEST:
        return topic
    head, tail = topic[: _LONGEST - _TAIL], topic[-_TAIL:]
    return f"{head.rpartition(' ')[0] or head} … {tail.partition(' ')[2] or tail}"


def _without_lead(words: list[str]) -> list[str]:
    end = 0
    while end < len(words) and words[end].lower() in _LEADING | _LEADING_ENDS:
        end += 1
    while end and words[end - 1].lower() not in _LEADING_ENDS:
        end -= 1
    return words[end:]


def _without_framework(framework: str, words: list[str]) -> list[str]:
    """Leave out the framework's name, also as two words or with its version, and a preposition that is left alone."""
    kept: list[str] = []
    place = 0
    while place < len(words):
        length = next((n for n in (3, 2, 1) if _is_name(framework, words[place : place + n])), 0)
        if not length:
            kept.append(_without_prefix(framework, words[place]))
        place += length or 1
        following = words[place : place + 1]
        is_left_alone = not following or following[0].lower() in _PREPOSITIONS
        if length and kept and kept[-1].lower() in _PREPOSITIONS and is_left_alone:
            kept.pop()
    return kept


def _is_name(framework: str, words: list[str]) -> bool:
    # "react" is a verb too, but who asks about React seldom means it.
    return same_framework(" ".join(words), framework)


def _without_prefix(framework: str, word: str) -> str:
    """Return ``lazy`` of ``React.lazy``: the framework goes without saying."""
    first, mark, rest = word.partition(".")
    return rest if mark and rest.isidentifier() and same_framework(first, framework) else word


def _is_tag(word: str) -> bool:
    return any(
        stem(part) not in _everyday() and not part.isdigit() and len(part) > 1 for part in keywords(word)
    )


@cache
def _chinese_particles() -> re.Pattern[str]:
    return re.compile("|".join(map(re.escape, (*CJK_FUNCTION, *CJK_LIGHT))))


@cache
def _everyday() -> frozenset[str]:
    return frozenset(map(stem, _EVERYDAY | LIGHT_WORDS))


def _stripped(written: str) -> str:
    """Take quotes, brackets and punctuation off a word, but none that closes what the word opens: ``unique()``, ``row["id"]``."""
    word = written.lstrip(_BEFORE)
    while word and word[-1] in _AFTER and not _closes(word):
        word = word[:-1]
    return word


def _closes(word: str) -> bool:
    """Tell whether the last sign of a word belongs to one that stands inside of it."""
    last = word[-1]
    if last in _OPENED_BY:
        return word.count(_OPENED_BY[last]) >= word.count(last)
    return last in _QUOTES and word.count(last) % 2 == 0


def _is_empty(words: list[str], place: int, word: str) -> bool:
    parts = split_compound(word)
    if len(parts) != 1 or parts[0] not in EMPTY_WORDS:
        return False
    # An article stands before a word: "A to Z" and "from Z to A" have none.
    following = _stripped(words[place + 1]) if place + 1 < len(words) else "to"
    return parts[0] != "a" or following.lower() not in {"to", "and", "or", "into", "from"}


def _is_identifier(word: str) -> bool:
    return "_" in word or (word != word.lower() and word[1:] != word[1:].lower())
