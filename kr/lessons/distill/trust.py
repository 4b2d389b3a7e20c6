"""What in a text is a command, an address or an order to its reader, and so not for another agent's prompt (SPEC 4.1).

A lesson is data. What a tool printed can be written by anybody who can make it print: a package's install script, a page,
a test's name. Whatever of it says what to run or whom to obey is left out; what an agent said stays, in quarantine.
"""

import os
import re
from itertools import pairwise

from kr.lessons.distill import listed, phrases
from kr.lessons.distill.complaint import complaint, is_persuading
from kr.naming import digest

_SENTENCE = r"(?<=[.!?;。！？；])(?<!\.\.\.)\s+|(?<=[。！？；])|\s+(?:->|=>|→)\s+|\n+"
_ADDRESS = "<url>"
_PARTS = re.compile(r"[A-Za-z]\w*(?:-\w+)*")
_URL = re.compile(r"\b[a-z][a-z0-9+.-]{1,20}://(?!localhost|127\.)[^\s\"'`<>)\]]+", re.IGNORECASE)
_REST = 3
"""Words of what is but the rest of a sentence."""


_DANGERS = ("command", "called", "address", "index", "package", "order", "disguise", "weakening")


def dangers(text: str) -> tuple[str, ...]:
    """Tell what of a command, an address, an index, a package, an order, a disguise and a weakening a text holds."""
    rest = _without_cures(text)
    return tuple(kind for kind in _DANGERS if phrases(kind).search(rest))


def cures(text: str) -> list[str]:
    """Return what in a tool's words says what to do in one of the shapes that name nothing of a stranger's."""
    told = (" ".join(found[0].split()).strip() for found in _cures(text))
    return [re.sub(r"[`'\"]", "", cure) if sum(map(cure.count, "`'\"")) % 2 else cure for cure in told]


def _cures(text: str) -> list[re.Match[str]]:
    judged = ("no_cure", "order", "index", "disguise")
    found = [
        cure
        for cure in phrases("cure").finditer(text)
        if (not cure["own"] or _is_known(cure["own"]))
        and not any(phrases(kind).search(cure[0]) for kind in judged)
    ]
    # A flag or a verb of a command line is that command's.
    calls = [call.span() for call in phrases("command").finditer(text)] if found else []
    return [
        cure
        for cure in found
        if cure["command"] or not any(start < cure.end() and cure.start() < end for start, end in calls)
    ]


def _is_known(flag: str) -> bool:
    """Tell a flag, a setting or a call that kr knows: a stranger's may do anything, whatever it is called."""
    return not listed("words.yaml", "known_cures").isdisjoint(_PARTS.findall(flag))


def _without_cures(text: str) -> str:
    for found in reversed(_cures(text)):
        text = f"{text[: found.start()]}{text[found.end() :]}"
    return text


def defused(text: str, *, advice: bool = False, cure: bool = True, is_said: bool = False) -> str:
    """Return what of a tool's words may go on: its sentences without those that say what to run or whom to obey.

    Those that say what to do with the code go too, and those that are no complaints, unless ``advice`` keeps them, or what
    they say is a ``cure`` that names nothing of a stranger's. ``is_said``: an agent's own words need be no complaints. An
    address that merely stands in a complaint becomes ``<url>``. Empty when nothing is left.
    """
    parts = [part for part in re.split(_SENTENCE, text) if part.strip()]
    kept = [part for part in parts if not is_order(part, cure=cure)]
    if phrases("installed").search(text):
        # Another package's name in place of the one that is missing is whose it is that printed it.
        kept = [part for part in kept if not phrases("guess").match(part)]
    if not advice:
        # The rest of an advice, behind its semicolon, says nothing without it.
        rests = {rest for part, rest in pairwise(parts) if part.endswith(";") and is_advice(part)}
        kept = [
            _before_advice(part) if is_advice(part, cure=cure) else part
            for part in kept
            if not (part in rests and len(part.split()) <= _REST)
        ]
        if not is_said:
            kept = [_complaint(part, cure=cure) for part in kept]
    without = [part for part in kept if not phrases("address").search(part)]
    return " ".join(
        filter(None, (phrases("address").sub(_ADDRESS, part).strip() for part in without or kept))
    )


def _complaint(sentence: str, *, cure: bool) -> str:
    has_cure = cure and _cures(sentence) and not is_persuading(sentence)
    return sentence if has_cure else complaint(sentence)


def _before_advice(sentence: str) -> str:
    """Return the complaint that stands before an advice in one sentence; empty where none does."""
    found = phrases("advice").search(sentence)
    head = sentence[: found.start()].rstrip(" ,;:(–—-") if found else ""
    is_complaint = len(head.split()) > _REST and not phrases("clause").match(head)
    return head if is_complaint and not is_advice(head) else ""


def is_order(sentence: str, *, cure: bool = True) -> bool:
    """Tell whether a tool's sentence is a command, names an index, or tells its reader what to do outside the code."""
    rest = _without_cures(sentence) if cure else sentence
    kinds = ("tools_order", "command", "index", "order", "disguise")
    return any(phrases(kind).search(rest) for kind in kinds)


def is_advice(sentence: str, *, cure: bool = True) -> bool:
    """Tell whether a tool's sentence says what to do with the code, or which package to take; a ``cure`` may stand in it."""
    rest = _without_cures(sentence) if cure else sentence
    return phrases("advice").search(rest) is not None or phrases("package").search(rest) is not None


def is_hostile(text: str) -> bool:
    """Tell a line that no person should have written: an order to its reader, an index, or a command that fetches."""
    if any(phrases(kind).search(text) for kind in ("order", "index", "disguise", "piped")):
        return True
    return bool(phrases("address").search(text) and phrases("command").search(text))


def rules_version() -> str:
    """Name the rules of ``is_hostile``: what was judged by others is judged again. Cheaper than to read them."""
    # Handing out lessons does without importlib's resources.
    with open(f"{__file__.rpartition(os.sep)[0]}{os.sep}phrases.yaml", encoding="utf-8") as file:  # noqa: PTH123
        return digest(file.read())[:16]


def without_urls(name: str) -> str:
    """Return a name that a tool gave without an address that has a scheme, which nobody is to open."""
    return _URL.sub(_ADDRESS, name) if "://" in name else name


def addresses(text: str) -> list[str]:
    """Return the addresses that a text names."""
    return [found[0] for found in phrases("address").finditer(text)]


def commands(text: str) -> list[str]:
    """Return the beginnings of the commands that a text names."""
    return [" ".join(found[0].split()) for found in phrases("command").finditer(text)]
