"""What others write: hidden characters and secrets are taken out, and what must wait for a person is named (SPEC 3.10, 4.2).

A finding or a lesson is read by an agent, which may take what it reads for its task. Which text waits is decided by one
principle: **a report speaks of the code; what waits speaks to its reader, or takes a protection away.** So three things wait:

- orders about the agent: its instructions, its role, its people, its approvals, its memory, its secrets;
- bytes from elsewhere that are run unseen: a download in a shell, in an interpreter, or in ``eval``;
- a safeguard that is switched off: certificates, signatures, sandbox, permissions, hooks, reviews; or all files deleted.

What the reader does to the code does not wait, in whatever mood it is said: a command, a URL, an option, "you must call
init() before connect()". A sentence that warns against a thing does not wait either. Rules are no reader: who words an
order in a new way gets through, which is why agents are also told that what they get is material to judge.

Pure. The patterns are data (``guard.yaml``); keys of known shapes are found by the detectors of ``detect-secrets``, which are
imported late: only who writes needs them.
"""

import html
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from kr.text.characters import strip_invisible

if TYPE_CHECKING:
    from detect_secrets.plugins.base import RegexBasedDetector

SECRET = "<secret>"  # noqa: S105 - what stands in place of one
TOO_LONG = "is too long to be judged"
_MOST_JUDGED = 300_000
_LONG_LINE = 20_000
_JUDGED_AT_ONCE = 500

# --- hidden characters ---


def clean(text: str) -> str:
    """Return the text in NFC without control, bidirectional and invisible characters; line breaks and tabs stay."""
    return unicodedata.normalize("NFC", strip_invisible(unicodedata.normalize("NFC", text)))


# --- secrets ---

# Letters of full width are read as the plain ones: a name must not hide in them.
_WIDE = {0xFEE0 + code: code for code in range(0x21, 0x7F) if chr(code).isalnum() or chr(code) in "=_-"}
_RANDOM = re.compile(r"(?<![\w/+.-])(?!sha(?:256|384|512)-)[A-Za-z0-9_+/-]{24,}={0,2}(?![\w/+-])")
_HEX = re.compile(
    r"(?<![\w@-])(?<!commit )(?<!checkout )(?<!rev: )(?<!sha1:)(?<!sha256:)(?:0x)?[0-9a-fA-F]{32,}(?![\w-])"
)
# The rest of one that a terminal wrapped.
_WRAPPED = re.compile(
    r"<secret>\n[ \t]*(?=\S*[0-9])(?=\S*[a-z])(?=\S*[A-Z])[\w+/=-]{8,}(?=\s*$)", re.MULTILINE
)
_COOKIES = re.compile(r"(\b(?:set-)?cookies?[\"']?\s*[:=]\s*)([^\n]+)", re.IGNORECASE)
_COOKIE = re.compile(
    r"(?<![\w.-])(?!(?:path|domain|expires|max-?age|same-?site|secure|http-?only|name|key|options?|partitioned)\b)"
    r"[\w.-]+[\"']?\s*[=:]\s*([\"']?[^\s;,\"'}]{4,})",
    re.IGNORECASE,
)
_CARD = re.compile(
    r"(?<![\w.-])(?:4[0-9]{3}|5[1-5][0-9]{2}|2[2-7][0-9]{2}|3[0-9]{3}|6[0-9]{3})(?:[ -]?[0-9]){8,15}(?![\w-]|\.[0-9])"
)
_ABOUT = re.compile(
    r"(?:[_-]|(?<=[a-z])(?=[A-Z]))"
    r"(?i:dir|file|path|ur[il]|name|type|ttl|expir\w*|length|lifetime|max_?age|alg\w*|header|field|count|limit|prefix|env|class)"
    r"[\"'`\]]*\s*(?:[:=]|=>)\s*$"
    r"|\$\{?PWD\}?[\"']?\s*:\s*$"
)
_CARD_DIGITS = range(13, 20)
_SHORTEST_NUMBER = 4
"""Digits: a shorter number beside a secret's name is a switch or a count."""
_FOLDER = 12
"""Characters that a folder's name has at most on the average; in a key a slash is rarer."""
# No key of a known shape is shorter, or has letters or digits alone: most texts need no detectors.
_LONG_TOKEN = re.compile(r"(?<![\w+=.:-])(?=[+=.:-]*\w*[+=.:\w-]*\d)(?=[\d+=.:_-]*[A-Za-z])[\w+=.:-]{20,}")
# The detectors by entropy, by keyword, for URLs and for addresses stay out: the rules know what stands beside a name, and an
# address is no secret.
_LEFT_OUT = frozenset({"base", "basic_auth", "high_entropy_strings", "ip_public", "keyword", "private_key"})
_CLASSES = (str.isupper, str.islower, str.isdigit)


def mask_secrets(text: str) -> str:
    """Return a clean text with ``<secret>`` in place of every value that is, or may be, one. Lines stay lines.

    A line of more than 20,000 characters, which nobody reads, is one as a whole.
    """
    lines = text.translate(_WIDE).split("\n")
    text = "\n".join(line if len(line) <= _LONG_LINE else SECRET for line in lines)
    for pattern, replacement in _secret_rules("secrets"):
        text = pattern.sub(partial(_mask, replacement, "no_value"), text)
    text = _COOKIES.sub(_mask_cookies, text)
    for detector in _detectors() if _LONG_TOKEN.search(text) else ():
        for found in sorted(set(detector.analyze_string(text)), key=len, reverse=True):
            if found and len(found) > 5:
                text = text.replace(found, SECRET)
    for pattern, replacement in _secret_rules("named"):
        text = pattern.sub(partial(_mask, replacement, "no_value_of_a_name"), text)
    text = _WRAPPED.sub(SECRET, _HEX.sub(SECRET, text))
    text = _CARD.sub(lambda found: SECRET if _is_card(found[0]) else found[0], text)
    return _RANDOM.sub(lambda found: SECRET if _is_random(found[0]) else found[0], text)


def _mask(replacement: str | None, judges: str, found: re.Match[str]) -> str:
    """Put ``<secret>`` behind what is kept of a match, unless there is one already, or what would go is no value."""
    kept = found[1] if replacement is None else "".join(filter(None, found.groups()))
    value = found[0].removeprefix(kept)
    if _is_masked(found, value) or not any(map(str.isalnum, value)):
        return found[0]
    if replacement != SECRET and (_is_about(kept, value) or _is_no_value(value, judges)):
        return found[0]
    return f"{kept}{SECRET}" if replacement is None else found.expand(replacement)


def _is_masked(found: re.Match[str], value: str) -> bool:
    """Tell a value that was taken out before, or what stood before it: an anchor, a bracket, a quote."""
    rest = found.string[found.end() : found.end() + len(SECRET) + 1]
    return SECRET in value or rest.startswith(SECRET) or (value[0] in "&!" and SECRET in rest)


def _mask_cookies(found: re.Match[str]) -> str:
    pairs = (pair[1] for pair in _COOKIE.finditer(found[2]))
    has_value = any(SECRET not in value and not _is_no_value(value, "no_value_of_a_name") for value in pairs)
    return f"{found[1]}{SECRET}" if has_value else found[0]


def _is_about(name: str, value: str) -> bool:
    """Tell the name of what only has to do with a secret: ``max_tokens=4096``, ``secrets_dir=``."""
    is_number = value.isdigit() and ("tokens" in name.lower() or len(value) < _SHORTEST_NUMBER)
    return _ABOUT.search(name) is not None or is_number


def _is_no_value(value: str, kind: str) -> bool:
    """Tell a placeholder, a variable, a type, code or a word of a sentence from a value."""
    if any(pattern.match(value) for pattern in _no_value("no_value")):
        return True
    is_certain = value[0] in "\"'`" and any(map(str.isdigit, value))
    return not is_certain and any(pattern.match(value) for pattern in _no_value(kind))


def _is_card(text: str) -> bool:
    """Tell a payment card's number by its length and its check digit (Luhn)."""
    digits = [int(letter) for letter in text if letter.isdigit()]
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits[-2::-2]]
    return len(digits) in _CARD_DIGITS and (sum(doubled) + sum(digits[-1::-2])) % 10 == 0


def _is_random(text: str) -> bool:
    """Tell a key from a name or a path: it changes between capitals, small letters and digits all the time."""
    if text.count("/") * _FOLDER > len(text):
        return False
    kinds = [next((at for at, kind in enumerate(_CLASSES) if kind(letter)), 3) for letter in text]
    changes = sum(one != other for one, other in pairwise(kinds))
    return {0, 1, 2} <= set(kinds) and changes >= len(text) / 3


@cache
def _secret_rules(kind: str) -> list[tuple[re.Pattern[str], str | None]]:
    rows: dict[str, str | None] = _table()[kind]
    return [(_compiled(pattern), replacement) for pattern, replacement in rows.items()]


@cache
def _no_value(kind: str) -> list[re.Pattern[str]]:
    return [_compiled(pattern) for pattern in _table()[kind]]


@cache
def _detectors() -> "Sequence[RegexBasedDetector]":
    # Loading them takes 0.2 s.
    from importlib import import_module
    from pkgutil import iter_modules

    from detect_secrets import plugins
    from detect_secrets.plugins.base import RegexBasedDetector

    names = [found.name for found in iter_modules(plugins.__path__) if found.name not in _LEFT_OUT]
    modules = [import_module(f"{plugins.__name__}.{name}") for name in names]
    kinds = {
        kind: None
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and issubclass(kind, RegexBasedDetector) and kind is not RegexBasedDetector
    }
    return tuple(kind() for kind in kinds)


# --- what waits for a person ---

# Letters of other scripts that look like Latin ones.
_LOOK_ALIKE = str.maketrans(
    "аеорсухіјѕһԁԛԝьнкмтвαεικνορτυχАЕОРСХІЈЅВНКМТΑΒΕΖΗΙΚΜΝΟΡΤΥΧ’‘“”–—‑",
    "aeopcyxijshdqwbhkmtbaeikvoptuxAEOPCXIJSBHKMTABEZHIKMNOPTYX''\"\"---",
)
_SPACED = re.compile(r"(?<!\w)\w(?:[ .*_·-]\w){5,}(?!\w)")
_MARKS = re.compile(r"\*\*|~~|(?<![\w-])__|__(?![\w-])|\\(?=[`*_|-])")
# A warning against what follows in its sentence; "do not hesitate to" warns of nothing.
_WARNS = re.compile(
    r"\b(?:never|don't|do not|does not|doesn't|must not|mustn't|should not|shouldn't|cannot|can't|avoid\w*|without|instead of"
    r"|rather than|no need (?:to|for)|not (?:necessary|needed|required) to|(?:is|are|was) (?:insecure|unsafe|dangerous|forbidden)"
    r"|refus\w+|reject\w*|forbid\w*|prohibit\w*|detect\w*|prevent\w*|not|nicht|不要)\b"
    r"(?!\W+(?:hesitate|forget|worry|mind|bother|fail|wait|miss|be afraid|need|only|just|skip)\b)[^.!?;\n]{0,80}$",
    re.IGNORECASE,
)
_MAY_BE_WARNED_OF = ("hands a download to a shell or an interpreter", "turns off a safeguard")
_WARNING_AFTER = re.compile(
    r"[^.!?\n]{0,60}?\b(?:is (?:not (?:the|a) (?:fix|solution|answer)|insecure|unsafe|dangerous|forbidden|wrong|no (?:fix|solution))"
    r"|must (?:never|not)|should (?:never|not)|never in production|hides the)\b",
    re.IGNORECASE,
)


def reasons_to_hold(text: str) -> tuple[str, ...]:
    """Return why a text must wait for a person; empty where nothing speaks against handing it out.

    Reasons are sentences without a subject: ``turns off a safeguard``. A text of more than 300,000
    characters, or with a line of more than 20,000, always waits.
    """
    if len(text) > _MOST_JUDGED or max(map(len, text.split("\n"))) > _LONG_LINE:
        return (TOO_LONG,)
    views = list(dict.fromkeys(_views(text)))
    return tuple(
        reason
        for reason, patterns in _reasons().items()
        if any(_holds(patterns, view, warned_of=reason in _MAY_BE_WARNED_OF) for view in views)
    )


def _views(text: str) -> Iterable[str]:
    """Give the text as people read it, and with look-alike letters, spaced letters, entities and emphasis resolved."""
    plain = unicodedata.normalize("NFKC", clean(html.unescape(text)))
    yield plain
    resolved = _MARKS.sub("", plain.translate(_LOOK_ALIKE))
    yield _SPACED.sub(lambda found: re.sub(r"[ .*_·-]", "", found[0]), resolved)


def _holds(patterns: Sequence[re.Pattern[str]], text: str, *, warned_of: bool) -> bool:
    found = (match for pattern in patterns for match in pattern.finditer(text))
    return any(not (warned_of and _is_warned_of(match)) for match in found)


def _is_warned_of(found: re.Match[str]) -> bool:
    before = found.string[max(0, found.start() - 120) : found.start()]
    return _WARNS.search(before) is not None or _WARNING_AFTER.match(found.string, found.end()) is not None


@cache
def _reasons() -> dict[str, list[re.Pattern[str]]]:
    return {reason: [_compiled(row) for row in rows] for reason, rows in _table()["reasons"].items()}


def safe(text: str) -> str:
    """Return a text without hidden characters and secrets."""
    return mask_secrets(clean(text))


def find_odd(texts: Sequence[str]) -> set[int]:
    """Return the places of the texts that hold a secret or something hidden, or must wait for a person.

    Many texts are judged at once, which is many times cheaper, and halved only where there is something.
    """
    starts = range(0, len(texts), _JUDGED_AT_ONCE)
    return {
        at for start in starts for at in _odd_between(texts, start, min(start + _JUDGED_AT_ONCE, len(texts)))
    }


def _odd_between(texts: Sequence[str], start: int, end: int) -> Iterator[int]:
    together = "\n".join(texts[start:end])
    if safe(together) == together and not reasons_to_hold(together):
        return
    if end - start == 1:
        yield start
    else:
        middle = (start + end) // 2
        yield from _odd_between(texts, start, middle)
        yield from _odd_between(texts, middle, end)


# --- the patterns ---


@cache
def _table() -> dict[str, Any]:
    from importlib.resources import files

    import yaml

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    text = files("kr").joinpath("guard.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = yaml.load(text, Loader=loader)  # noqa: S506 - one of the two safe loaders
    return table


def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern with the parts in it: ``%name%``, which may hold others."""
    parts: dict[str, str] = _table()["parts"]
    while (whole := re.sub(r"%(\w+)%", lambda part: parts.get(part[1], part[0]), pattern)) != pattern:
        pattern = whole
    return re.compile(pattern, re.IGNORECASE)
