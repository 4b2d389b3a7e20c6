"""The statements of a Gradle script: a program, of which only the shape is read.

Comments are left out. A statement goes on over lines while a bracket is open or a comma waits, and ends
where a block begins or ends.
"""

import re
from collections.abc import Iterator
from itertools import islice
from typing import NamedTuple

MAX_CHARACTERS = 512 * 1024
_MOST_PARTS = 100_000
_LONGEST_STATEMENT = 20_000

_TOKEN = re.compile(
    r"""(?P<long>\"{3}.*?(?:\"{3}|\Z)|'{3}.*?(?:'{3}|\Z))"""
    r"""|(?P<string>"(?:\\[^\n]|\$\{[^}\n]{0,200}\}|[^"\\\n])*+"?|'(?:\\[^\n]|[^'\\\n])*+'?)"""
    r"""|(?P<comment>/\*.*?(?:\*/|\Z)|//[^\n]*)"""
    r"""|(?P<end>[{};\n])"""
    r"""|[^"'/{};\n]+|/""",
    re.DOTALL,
)
"""A string over lines; one to the end of its line at most; a comment; what parts statements. Each is read once."""
_STATES_DEPENDENCIES = re.compile(r"\b(?:dependencies|imports|resolutionStrategy)\b")


class Statement(NamedTuple):
    """One statement. ``depth`` counts the blocks it stands in; ``states`` tells that one is of dependencies."""

    text: str
    depth: int
    states: bool


def statements(script: str) -> Iterator[Statement]:
    """Yield the statements of the script's first ``MAX_CHARACTERS``, in time that is linear in its length."""
    blocks: list[bool] = []
    header = ""
    for text, end in islice(_parts(script[:MAX_CHARACTERS]), _MOST_PARTS):
        inside = bool(blocks and blocks[-1])
        if text:
            header = text
            yield Statement(text, len(blocks), inside or _STATES_DEPENDENCIES.match(text) is not None)
        if end == "{":
            blocks.append(inside or _STATES_DEPENDENCIES.search(header) is not None)
        elif end == "}" and blocks:
            blocks.pop()
        if end in {"{", "}"}:
            header = ""


def _parts(script: str) -> Iterator[tuple[str, str]]:
    """Yield each statement's text, which may be empty, and the character that ends it."""
    pieces: list[str] = []
    brackets = length = 0
    for token in _TOKEN.finditer(script + "\n}"):
        text = token[0]
        if token.lastgroup == "end":
            if text != "\n" or not (brackets or _goes_on(pieces)):
                yield "".join(pieces).strip(), text
                pieces, brackets, length = [], 0, 0
                continue
            text = " "
        elif token.lastgroup == "comment":
            text = " "
        elif token.lastgroup == "long":
            text = f'"{" ".join(text.strip(text[0]).split())}"'
        elif token.lastgroup is None:
            brackets = max(0, brackets + len(re.findall(r"[(\[]", text)) - len(re.findall(r"[)\]]", text)))
            text = re.sub(r"\s+", " ", text)
        if length + len(text) <= _LONGEST_STATEMENT and not (text == " " and pieces[-1:] == [" "]):
            pieces.append(text)
            length += len(text)


def _goes_on(pieces: list[str]) -> bool:
    last = next((p for p in reversed(pieces[-2:]) if p != " "), "").rstrip()
    return last.endswith((",", "+", "="))
