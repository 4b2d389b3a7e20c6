"""The tokens of a topic."""

from typing import Literal, NamedTuple


class Token(NamedTuple):
    """A word, a run of Chinese, Japanese or Korean characters, or a break between phrases.

    ``at`` counts words; a run or break has the place of the word after it. ``in_name`` marks the words
    of an identifier, ``joint`` those that a hyphen ties to the word before.
    """

    kind: Literal["word", "cjk", "break"]
    text: str
    at: int
    function: bool
    in_name: bool = False
    joint: bool = False
