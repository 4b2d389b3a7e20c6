"""Notes and warnings that are set apart, in the notations of the documentation generators (SPEC 3.7: caveats).

Read here: ``!!! warning "Title"`` (MkDocs), ``:::caution Title`` (Docusaurus), ``/// note | Title`` (PyMdown),
``[!WARNING]`` (GitHub) and a label in words (``**Note:**``). The words are kept, the marks are not.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

Scope = Literal["", "indented", "fenced", "quoted"]

_CAVEAT = (
    r"warnings?|cautions?|danger|important|attention|notes?|notice|beware|caveats?|limitations?|known issues?|bug"
    r"|error|failure|security|deprecat(?:ed|ion)|breaking(?:[ -]changes?)?|version[ -](?:added|changed|deprecated|removed)"
)
_SINCE = r"(?:added|changed|removed|deprecated) (?:in|since)(?: version)? v?\d[\w.]{0,20}"
_OTHER = r"tips?|hint|info|abstract|example|success|question|quote|todo|seealso|see[ -]also|details"
_TITLE = r"(?:[ ]?[(:][^*_`\n]{0,80})?[!:.]?"
_BEGINS = re.compile(
    rf"(?:[^\w\s*`\[\\]{{1,3}}\s*)?(?:(\*\*|__)(?:{_CAVEAT}|{_SINCE}){_TITLE}\1|(?:{_CAVEAT}): )",
    re.IGNORECASE,
)
_LONE = re.compile(rf"(\*\*|__)(?:{_CAVEAT}|{_SINCE}|{_OTHER}){_TITLE}\1:?", re.IGNORECASE)
_KNOWN = re.compile(rf"(?:{_CAVEAT}|{_OTHER})", re.IGNORECASE)
_MARK = re.compile(
    r"(?P<mark>!!!|\?\?\?\+?|:{3,9}|/{3,9})[ \t]*(?P<name>[A-Za-z][\w.-]{0,60})?[ \t]*(?P<rest>.*)"
    r"|\[!(?P<quoted>[A-Za-z]{1,20})\][+-]?[ \t]*(?P<words>.*)"
)
_QUOTED_TITLE = re.compile(r"""(?:inline(?: end)?[ ]*)?"([^"]{0,200})"|\|[ ]*(.{0,200})|\[([^\]]{0,200})\]""")
_ATTRIBUTES = re.compile(r"""\{(?:[^{}]{0,200}?title="([^"{}]{0,200})")?[^{}]{0,200}\}""")
_LONGEST_TITLE = 80


@dataclass(frozen=True, slots=True)
class Part:
    """Markdown inside or outside of an admonition. ``scope`` tells how far one that begins here goes on.

    ``ends`` is set where a fenced one has been closed right before.
    """

    text: str
    scope: Scope = ""
    ends: bool = False


def parts(content: str) -> Iterator[Part]:
    """Yield a paragraph's Markdown without the marks of admonitions; their kind and title become a label."""
    if not any(mark in content for mark in ("!!!", "???", ":::", "///", "[!")):
        yield Part(content)
        return
    lines: list[str] = []
    label, title, ends = "", "", False
    scope: Scope = ""
    for line in content.split("\n"):
        found = _MARK.fullmatch(line.strip())
        opened = _opened(found) if found else None
        if opened is None:
            lines.append(line)
            continue
        if lines or label or ends:
            yield Part(_labelled(label, title, "\n".join(lines)), scope, ends)
        label, title, words, scope = opened
        ends = not scope
        lines = [words] if words else []
    yield Part(_labelled(label, title, "\n".join(lines)), scope, ends)


def lone_label(text: str) -> bool:
    """Tell whether a paragraph is nothing but a label, which belongs to what comes next."""
    return _LONE.fullmatch(text.strip()) is not None


def begins_caveat(text: str) -> bool:
    """Tell whether a text begins with the label of a warning or note."""
    return _BEGINS.match(text) is not None


def _opened(found: re.Match[str]) -> tuple[str, str, str, Scope] | None:
    """Return label, title, first words and scope of what a line opens; no scope where it closes; None for text."""
    if found["quoted"]:
        known = _KNOWN.fullmatch(found["quoted"])
        return (_shown(found["quoted"]), "", found["words"], "quoted") if known else None
    mark, name, rest = found["mark"], found["name"] or "", found["rest"]
    is_fence = mark[0] in ":/"
    if not name:
        return ("", "", "", "") if is_fence and not rest else None
    titled = _QUOTED_TITLE.fullmatch(rest) or _ATTRIBUTES.fullmatch(rest)
    title = next((group for group in titled.groups() if group), "") if titled else ""
    if not titled and is_fence:
        title, rest = rest, ""
    words = "" if titled else rest
    if not _KNOWN.fullmatch(name):
        if mark[0] == ":":
            return "", "", title, ""  # a tab or another container: its words are kept
        return (_shown(name), title, "", "fenced" if is_fence else "indented") if titled else None
    return _shown(name), title, words, "fenced" if is_fence else "indented"


def _shown(name: str) -> str:
    return name.replace("-", " ").replace("seealso", "see also").capitalize()


def _labelled(label: str, title: str, body: str) -> str:
    if not label:
        return body
    title, body = re.sub(r"[*_`]", "", title).strip(), body.strip()
    if title and body and len(title) <= _LONGEST_TITLE:
        return f"**{label} ({title}):** {body}"
    return f"**{label}:** {title}{' ' if title and body else ''}{body}".rstrip()
