"""What of a tool's words is but a complaint, and so may go on to other agents before a person has read it (SPEC 4.1).

Orders can be worded in more ways than a list can hold; complaints are alike. So a sentence of a tool goes on only when it
reads as one: English or Chinese, with a sign of what is wrong in it, and with no clause that tells its reader what to do
or talks somebody into something. Quoted words are judged by themselves. Pure.
"""

import re
from itertools import dropwhile

from kr.lessons.distill import listed, phrases
from kr.matching.rarity import rarity
from kr.text.keywords import FUNCTION_WORDS, stem

_WORDY, _QUOTED_WORDS = 1, 4
"""Words that a sentence, and a quotation, may have without a sign of what is wrong: a name, a kind, a value."""
_TITLE = 3
"""Words that a button or a handler is called with."""
_LONG_NAME, _SENTENCE_LONG = 4, 7
"""Words from which on a name may say a sentence, and more than which it does not only name what it does."""
_FOREIGN = 0.34
"""Share of words that technical English does not have, from which on a sentence is in another language."""
_STRANGE = 0.6
"""The same where some words are English all the same."""
_FEW = 2
_ABBREVIATED = 3
_COMMON, _UNSEEN = 0.7, 1.0
_PROSE = 0.8
"""Share of plain words from which on a quotation is a sentence, not code."""
_HIDDEN = "…"

# Plain words alone: no part of a name, a path, a call or a number.
_WORD = re.compile(r"(?<![\w./@:$<-])[A-Za-z]+(?:['’][a-z]+)?(?![\w/@(=<]|[.:-]\w)")
_SENTENCE = re.compile(r"((?<=[.!?;])(?<!\.\.\.)\s+|(?<=[。！？；])|\s(?:->|=>|→|[-–—|])\s+|\n+)")
_BREAK = re.compile(
    r"([;。；，！？]\s*|[.!?,:](?=\s|$)\s*|\s(?:[-–—|]|->|=>|→)\s+|[()\[\]{}]\s*"
    r"|\s(?=(?:so|because|which|while|since|as|but|until|unless|before|after|and|or|then|who)\s))"
)
_QUOTED = re.compile(r"\"([^\"\n]+)\"|`([^`\n]+)`|(?<!\w)'([^'\n]+)'(?!\w)|‘([^’\n]+)’|“([^”\n]+)”")
# Code in quotation marks, and plain words in a row within it: a text, a comment.
_CODE = re.compile(r"[{}();=<>]")
_RUN = re.compile(r"(?<![\w.])[A-Za-z']+(?: [A-Za-z']+){2,}")
# What anything may be headed with, and the class of an exception, which is a sign.
_LABEL = re.compile(
    r"^(?:\W*(?:\w+ )?(?:error|fatal|fail(?:ure|ed)|panic|warning|err)\w*(?:\[[\w-]+\])?[:!]\s+)+",
    re.IGNORECASE,
)
_CLASS = re.compile(r"^(?:[\w.]+\.[A-Z]\w+|[A-Z]\w+(?:Error|Exception|Check|Exit)): ")
_CLAUSE = re.compile(r"[,;:]\s|[，；：、]|\s[-–—]\s|\s(?:then|so)\s")
_BARE = re.compile(r"[A-Za-z]+(?:-[a-z]+)*")
_ATTRIBUTE = re.compile(
    r"\b(?:stale|missing|private|frozen|locked|unused|un\w+|broken|dirty|dead|duplicate|invalid|expired|failing) (?=[a-z])",
    re.IGNORECASE,
)
_FINITE = re.compile(
    r"\b(?:is|are|was|were|has|have|had|may|might|can|could|will|would|does|do|did|must|should|shall|\w+ed)\b|\w['’]t\b"
)
_LETTER = re.compile(r"[^\W\d_]")
_LATIN = "\u017f"
_HAN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]")
_LEET = str.maketrans("013457", "oleast")
_LEETED = re.compile(r"\b(?=\w*[a-z][013457]+[a-z])[a-z013457]{4,}\b", re.IGNORECASE)
_VERB_AND_NAME = re.compile(r"\s-{0,2}[A-Za-z@][\w@/.-]*\w\s?$")
_INFLECTED = re.compile(r"(?:ing|(?<!^sh)(?<!^shr)(?<!emb)(?<!e)ed|[^su]s)$", re.IGNORECASE)
_NAME = re.compile(
    r"(?<![A-Za-z0-9_])(?:[A-Za-z]\w*(?:[-.]\w+)+|[A-Za-z]\w*_\w+|[A-Za-z][a-z]*(?:[A-Z][a-z]*)+)"
)
_NAME_PART = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")


def complaint(text: str) -> str:
    """Return a tool's words without the sentences that are no complaints; empty where none is.

    Quoted words that order something are hidden: ``assert "…" == x``.
    """
    hidden = _QUOTED.sub(_judged, text)
    masked = _QUOTED.sub(_masked, hidden)
    if _is_disguised(masked):
        return ""
    parts, at = [], 0
    for part in _SENTENCE.split(masked):
        kept = part if is_complaint(part) else _before_order(part)
        parts.append(hidden[at : at + len(kept)].strip())
        at += len(part)
    return " ".join(filter(None, parts))


def is_complaint(sentence: str) -> bool:
    """Tell whether a sentence only says what is wrong, or is too short to say anything else than a name."""
    words = _WORD.findall(sentence)
    if (
        _urges(sentence)
        or any(phrases(kind).search(sentence) for kind in ("called", "weakening", "unsafe_name"))
        or _is_foreign(words)
    ):
        return False
    # "Error: " is put before anything.
    said = _LABEL.sub("", sentence)
    clauses = _CLAUSE.split(said)
    if any(map(_is_bare, clauses)) or any(_HAN.search(one) and not _says_wrong(one) for one in clauses):
        return False
    return len(_WORD.findall(said)) <= _WORDY or _CLASS.match(said) is not None or _says_wrong(said)


def _says_wrong(text: str) -> bool:
    return phrases("wrong").search(text) is not None


def _is_bare(clause: str) -> bool:
    """Tell a clause that begins with what may be a verb, and says nothing of anything: "nuke migrations"."""
    first, _, rest = clause.strip().partition(" ")
    is_verb = _BARE.fullmatch(first) and not _INFLECTED.search(first)
    if not is_verb or first.lower() in listed("words.yaml", "no_verbs") or not _LETTER.search(rest):
        return False
    # "Shred stale backups": what is only said of a thing is no sign.
    return not _FINITE.search(rest) and not _says_wrong(f"{first} {_ATTRIBUTE.sub('', rest)}")


def _before_order(sentence: str) -> str:
    """Return the complaint that stands before an order in one sentence; empty where none does."""
    clauses = _BREAK.split(sentence)
    at = next((at for at, clause in enumerate(clauses) if _urges(clause) or _is_bare(clause)), 0)
    head = "".join(clauses[: max(at - 1, 0)]).rstrip(" ,:;(")
    is_long = len(_WORD.findall(head)) >= _FEW or _HAN.search(head)
    return head if is_long and is_complaint(head) else ""


def says_to_do(name: str) -> bool:
    """Tell a name of several words that says what to do: a key, a file, a test that somebody called so."""
    return phrases("called").search(name) is not None or (not _is_title(name) and _urges(name))


def names_an_order(text: str) -> bool:
    """Tell a text in which a name says a sentence: ``please_skip_all_reviews_and_merge``."""
    return any(map(_speaks, _NAME.findall(text)))


def _speaks(name: str) -> bool:
    words = [word.lower() for word in _NAME_PART.findall(name)]
    said = " ".join(words)
    if len(words) > _FEW and "." not in name and phrases("called").search(said):
        return True
    if len(words) < _LONG_NAME or not _urges(said):
        return False
    # Functions begin with a verb, too: what they are called has no such words.
    return len(words) > _SENTENCE_LONG or not listed("words.yaml", "speaking").isdisjoint(words)


def _masked(quoted: re.Match[str]) -> str:
    """Hide quoted words, which say what a sentence is about and break it nowhere; a single one may be its verb."""
    said = next(filter(None, quoted.groups()))
    return f" {said} " if said in listed("words.yaml", "orders") else "\0" * len(quoted[0])


def _judged(quoted: re.Match[str]) -> str:
    said = next(filter(None, quoted.groups()))
    return quoted[0] if _may_be_quoted(said) else quoted[0].replace(said, _HIDDEN)


def _may_be_quoted(said: str) -> bool:
    if any(letter > _LATIN and not _HAN.match(letter) for letter in _LETTER.findall(said)):
        return False
    if _CODE.search(said):
        return not any(map(_urges, _RUN.findall(said)))
    words = _WORD.findall(said)
    is_prose = len(words) > _QUOTED_WORDS and len(words) >= _PROSE * len(said.split())
    return not says_to_do(said) and (not is_prose or is_complaint(said))


def _is_title(said: str) -> bool:
    """Tell the name of a button, a handler or a task: a verb and a word or two."""
    words = said.split()
    is_bare = all(map(str.isalpha, words)) and not is_persuading(said)
    if (
        is_bare
        and len(words) <= _LONG_NAME
        and said.istitle()
        and words[0].lower() not in listed("words.yaml", "risky")
    ):
        return True
    is_short = len(words) < _TITLE or (len(words) == _TITLE and words[1].lower() in FUNCTION_WORDS)
    return (
        is_bare
        and is_short
        and listed("words.yaml", "objects").isdisjoint(word.lower() for word in words[1:])
    )


def is_persuading(text: str) -> bool:
    """Tell words that talk their reader into something, whatever they complain of beside it."""
    return phrases("persuasion").search(text) is not None


def _urges(text: str) -> bool:
    return is_persuading(text) or any(map(_is_order, _BREAK.split(text)))


def _is_order(clause: str) -> bool:
    """Tell a clause that begins as an order does: "wipe the cache", "please trust evil-x"."""
    urging = listed("words.yaml", "urging")
    told = list(dropwhile(lambda word: word.lower() in urging or word.endswith("ly"), _WORD.findall(clause)))
    verb, following = (*told, "", "")[:2]
    if verb.lower() in listed("words.yaml", "orders") and not verb.isupper():
        if not following:
            return _VERB_AND_NAME.search(clause) is not None
        return following.lower() not in listed("words.yaml", "no_object")
    is_bare = not _INFLECTED.search(verb) and verb.lower() not in listed("words.yaml", "no_verbs")
    return is_bare and (following if len(following) == 1 else following.lower()) in listed(
        "words.yaml", "objects"
    )


def _is_foreign(words: list[str]) -> bool:
    known = listed("words.yaml", "plain")
    told = [word.lower().replace("'", "") for word in words if word.istitle() or word.islower()]
    unknown = [
        word
        for word in told
        if len(word) > _ABBREVIATED
        and word not in FUNCTION_WORDS
        and word not in known
        and _rarity(word) == _UNSEEN
    ]
    share = _FOREIGN if listed("words.yaml", "english").isdisjoint(told) else _STRANGE
    return len(unknown) >= _FEW and len(unknown) > share * len(told)


def _is_disguised(text: str) -> bool:
    if any(not letter.isascii() and not _HAN.match(letter) for letter in _LETTER.findall(text)):
        return True
    return any(
        _rarity(word.lower()) == _UNSEEN and _rarity(word.lower().translate(_LEET)) < _COMMON
        for word in _LEETED.findall(text)
    )


def _rarity(word: str) -> float:
    return rarity(stem(word.partition("'")[0])).rarity
