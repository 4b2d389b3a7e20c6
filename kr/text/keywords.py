"""Keywords of a text: the words by which topics, lessons and passages are compared (SPEC 3.2)."""

import re
import unicodedata
from functools import cache

from kr.text.stopwords import FUNCTION_WORDS

MAX_CHARACTERS = 4096
MAX_KEYWORDS = 64

_CJK = (
    "\u1100-\u11ff\u2e80-\u2fdf\u3005-\u3007\u3040-\u30fa\u30fc-\u30ff\u3130-\u318f\u31f0-\u31ff\u3400-\u4dbf"
    "\u4e00-\u9fff\ua960-\ua97f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"
)
"""Chinese, Japanese and Korean letters, as the inside of a character class. Halfwidth forms are gone after NFKC."""

WORD = r"\w\u0591-\u05c7\u064b-\u065f\u0900-\u0963\u0966-\u0eff\u1000-\u109f"
"""Letters, digits and ``_``, as the inside of a character class; and the vowel signs that ``\\w`` leaves out."""

_APOSTROPHES = str.maketrans("", "", "'’")


def keywords(text: str, *, limit: int = MAX_KEYWORDS) -> tuple[str, ...]:
    """Return the keywords of ``text``, each once, in the order of their first appearance.

    NFKC, case folded, split on everything that is no letter or digit and inside ``camelCase`` and
    ``snake_case``; English function words are dropped; a run of Chinese, Japanese or Korean characters becomes its
    character bigrams. At most ``limit`` keywords, of at most the first 4,096 characters, so that a hostile
    text costs no more than a long one. ``keywords(" ".join(keywords(t)))`` gives the same again.
    """
    found: dict[str, None] = {}
    for run, is_run in runs(normalise(text)):
        if is_run:
            found.update(dict.fromkeys(bigrams(run)))
        else:
            for piece in _pieces(run.isascii()).findall(run):
                found.update(dict.fromkeys(content_parts(piece)))
        if len(found) >= limit:
            break
    return tuple(found)[:limit]


@cache
def _pieces(
    is_ascii: bool,
) -> re.Pattern[str]:  # the classes of all scripts take as long to compile as a look-up's SQL
    return re.compile(r"[\w']+" if is_ascii else f"[{WORD}'’]+")


@cache
def _lone_marks() -> re.Pattern[str]:
    return re.compile(r"[\u0300-\u036f]+")


def normalise(text: str) -> str:
    """Cut ``text`` to what is looked at, in NFKC; case is kept, since it parts words."""
    text = text[:MAX_CHARACTERS]
    if text.isascii():
        return text
    return _lone_marks().sub("", unicodedata.normalize("NFKC", text))[:MAX_CHARACTERS]


def runs(text: str) -> list[tuple[str, bool]]:
    """Part ``text`` into runs of Chinese, Japanese or Korean characters (True) and what stands between (False)."""
    if text.isascii():
        return [(text, False)] if text else []
    return [(part, place % 2 == 1) for place, part in enumerate(_cjk_run().split(text)) if part]


def is_cjk(text: str) -> bool:
    """Tell whether ``text`` starts with a Chinese, Japanese or Korean character."""
    return not text.isascii() and _cjk_run().match(text) is not None


@cache
def _cjk_run() -> re.Pattern[str]:
    return re.compile(f"([{_CJK}]+)")


def bigrams(run: str) -> tuple[str, ...]:
    """Return the character bigrams of ``run``; a single character stands for itself."""
    return tuple(run[i : i + 2] for i in range(len(run) - 1)) if len(run) > 1 else (run,)


def content_parts(piece: str) -> list[str]:
    """Return the words of one piece of text without its function words.

    A compound of which only one word would be left (``MySQL``, ``onOk``) stays whole, so that a name is not
    reduced to a fragment of it.
    """
    parts = split_compound(piece)
    kept = [part for part in parts if part not in FUNCTION_WORDS]
    if len(parts) > 1 and len(kept) < 2:
        whole = "".join(parts)
        return [whole] if whole not in FUNCTION_WORDS else []
    return kept


def split_compound(piece: str) -> list[str]:
    """Split at underscores and camel humps and fold case: ``max_overflow``, ``bodyCell``, ``XMLHttpRequest``.

    A single capital before a hump belongs to it (``OAuth2`` is ``oauth2``), digits to the letters before them.
    """
    words: list[str] = []
    for part in piece.translate(_APOSTROPHES).split("_"):
        start = 0
        for index in range(1, len(part)):
            if index - start > 1 and _is_hump(part, index):
                words.append(part[start:index])
                start = index
        if part[start:]:
            words.append(part[start:])
    return [fold_word(word) for word in words]


def fold_word(word: str) -> str:
    """Fold case; NFKC once more, since some letters fold to a letter and a mark."""
    if word.isascii():
        return word.lower()
    return _lone_marks().sub("", unicodedata.normalize("NFKC", word.casefold()))


def _is_hump(word: str, index: int) -> bool:
    if not word[index].isupper():
        return False
    if not word[index - 1].isupper():
        return True
    following = word[index + 1 : index + 2]
    return following.islower() and word[index:].rstrip("s") != word[index]
