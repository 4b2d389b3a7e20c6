"""Stems: what the inflected forms of an English word share (SPEC 3.2: tags compare by their stems)."""

from functools import lru_cache

_SHORTEST = 4
"""Shorter words are abbreviations more often than inflected forms (``ios``, ``css``)."""


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Return the stem of a folded word; what is no plain English word comes back as it is.

    Snowball's English stemmer, applied twice: a noun made from a verb's noun ("normalizations") takes two steps to
    the root that its verb takes one to.
    """
    if len(word) < _SHORTEST or not (word.isascii() and word.isalpha()):
        return word
    # One language's module, since the package imports all thirty; and a stemmer of its own for each call, since it
    # keeps the word that it works on.
    from snowballstemmer.english_stemmer import EnglishStemmer

    stemmer = EnglishStemmer()
    return str(stemmer.stemWord(stemmer.stemWord(word)))
