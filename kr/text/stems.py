"""Stems: what the inflected forms of an English word share (SPEC 3.2: tags compare by their stems)."""

import sys
from _thread import allocate_lock  # threading is nothing that a hit imports
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from types import ModuleType
from typing import Any

PACKAGE = "snowballstemmer"
_SHORTEST = 4
"""Shorter words are abbreviations more often than inflected forms (``ios``, ``css``)."""
_LOADING = allocate_lock()


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """Return the stem of a folded word; what is no plain English word comes back as it is.

    Snowball's English stemmer, applied twice: a noun made from a verb's noun ("normalizations") takes two steps to
    the root that its verb takes one to.
    """
    if len(word) < _SHORTEST or not (word.isascii() and word.isalpha()):
        return word
    stemmer = _english()()  # one of its own for each call, since it keeps the word that it works on
    return str(stemmer.stemWord(stemmer.stemWord(word)))


@cache
def _english() -> type[Any]:
    with _LOADING:  # another thread would find the stand-in gone in the middle of its import
        return _load()


def _load() -> type[Any]:
    """Load the one language: the package itself imports all thirty, which would be a sixth of a hit."""
    if PACKAGE not in sys.modules:
        found = find_spec(PACKAGE)
        if found is not None and found.submodule_search_locations is not None:
            stand_in = ModuleType(PACKAGE)
            stand_in.__path__ = found.submodule_search_locations
            sys.modules[PACKAGE] = stand_in
            try:
                english: type[Any] = import_module(f"{PACKAGE}.english_stemmer").EnglishStemmer
            finally:
                del sys.modules[PACKAGE]
            return english
    from snowballstemmer.english_stemmer import EnglishStemmer

    return EnglishStemmer  # type: ignore[no-any-return]
