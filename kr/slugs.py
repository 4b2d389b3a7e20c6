"""Ids and paths of reports (F1, step 6.4 and step 7).

A name is the kebab form of what an agent typed, made into one path segment that Linux, macOS and Windows take alike. Two different
pairs may ask for one base name; the store gives it to the first and the suffixed name to the later.
"""

from dataclasses import dataclass
from typing import Self
from unicodedata import category

from kr.text import digest, fold

_MAX_SEGMENT_BYTES = 100
_DIGEST_CHARS = 12
_SUFFIX_BYTES = 1 + _DIGEST_CHARS
# A suffixed segment with its extension still has to fit.
_MAX_STEM_BYTES = _MAX_SEGMENT_BYTES - len(".md") - _SUFFIX_BYTES

_RESERVED = {
    "con",
    "prn",
    "aux",
    "nul",
    *(f"{port}{number}" for port in ("com", "lpt") for number in range(10)),
}
"""Names of devices on Windows."""


@dataclass(frozen=True, slots=True)
class Name:
    """``path`` is relative to the knowledge base, with forward slashes."""

    id: str
    path: str

    @classmethod
    def of(cls, framework: str, topic: str) -> Self:
        return cls(f"{framework}-{topic}", f"frameworks/{framework}/{topic}.md")


def kebab(text: str) -> str:
    """Return the kebab form: letters, marks and digits of any script, the rest as single dashes; empty when nothing is left."""
    folded = fold(text)
    marks = "".join(char for char in folded if category(char)[0] == "M")
    words = "".join(char if category(char)[0] in "LMN" else " " for char in folded).split()
    return "-".join(word for word in (word.lstrip(marks) for word in words) if word)


def base_name(framework: str, topic: str) -> Name:
    """Return the name that a framework and topic ask for first. Equal folded texts give equal names."""
    return Name.of(_segment(framework), _segment(topic))


def suffixed_name(framework: str, topic: str) -> Name:
    """Return the name for a pair whose base name another pair holds, by a digest of the folded pair alone."""
    digest = _digest(f"{len(fold(framework))}:{fold(framework)}{fold(topic)}")
    return Name.of(_segment(framework), f"{_segment(topic)}-{digest}")


def versioned_name(name: Name, major: str) -> Name:
    """Return the name for another major version of a topic: ``-v3``, or the version's own text, at the end."""
    mark = f"v{major}" if major.isdecimal() else kebab(major)
    if not mark or len(mark.encode()) > _DIGEST_CHARS:
        mark = _digest(major)
    return Name(f"{name.id}-{mark}", f"{name.path.removesuffix('.md')}-{mark}.md")


def _segment(text: str) -> str:
    stem = kebab(text)
    if not stem:
        return f"name-{_digest(fold(text))}"
    if stem in _RESERVED:
        return f"{stem}-{_digest(fold(text))}"
    if len(stem.encode()) > _MAX_STEM_BYTES:
        cut = stem.encode()[: _MAX_STEM_BYTES - _SUFFIX_BYTES].decode(errors="ignore")
        return f"{cut.rstrip('-')}-{_digest(fold(text))}"
    return stem


def _digest(text: str) -> str:
    return digest(text)[:_DIGEST_CHARS]
