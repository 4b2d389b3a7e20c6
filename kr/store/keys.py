"""The keys by which rows are compared: of a framework, whichever of its usual names is written, and of a topic."""

from kr import naming
from kr.matching.frameworks import canonical

Pair = tuple[str, str]
"""A framework and a topic, by their keys."""


def framework_key(framework: str) -> str:
    """Return what all usual names of a framework share (SPEC 3.2, "Candidates")."""
    return canonical(framework)


def topic_key(topic: str) -> str:
    """Return the form in which topics are equal."""
    return naming.fold(topic)


def pair_of(framework: str, topic: str) -> Pair:
    """Return the pair by which entries are told apart, majors aside."""
    return framework_key(framework), topic_key(topic)
