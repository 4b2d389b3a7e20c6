"""What a source file documents: one name with its code and its text."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Documented:
    """A module, class, function, attribute, type or option.

    ``name`` is its path where it is defined (``click.core.Option.prompt``); ``signature`` is code of the source's
    language and may be empty; ``docstring`` is the text as the source has it, of Python in any style, of TypeScript
    as Markdown; ``more`` is Markdown that stands below it. ``weight`` is how much it speaks to users, 1.0 as a rule.
    """

    name: str
    signature: str
    docstring: str
    more: str = ""
    weight: float = 1.0
