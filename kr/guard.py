"""What others write: hidden characters and secrets are taken out, and what must wait for a person is named.

A finding or a lesson is read by an agent, which may take what it reads for its task. Which text waits is decided by one
principle: **a report speaks of the code; what waits speaks to its reader, or takes a protection away.** So three things wait:

- orders about the agent: its instructions, its role, its people, its approvals, its memory, its secrets;
- bytes from elsewhere that are run unseen: a download in a shell, in an interpreter, or in ``eval``;
- a safeguard that is switched off: certificates, signatures, sandbox, permissions, hooks, reviews; or all files deleted.

What the reader does to the code does not wait: a command, a URL, an option, "you must call init() before connect()". Nor does a
sentence that warns of a thing, or quotes an order as one that a hostile text may hold. Patterns do not understand a text: an order in new
words gets through, which is why agents also hear that what they get is material to judge.

Pure. The patterns are data (``guard.yaml``); keys of known shapes are found by the detectors of ``detect-secrets``.
"""

import html
import re
import string
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from functools import cache, partial
from importlib.resources import files
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any

import yaml

from kr.text import strip_invisible

if TYPE_CHECKING:
    from detect_secrets.plugins.base import RegexBasedDetector

SECRET = "<secret>"  # noqa: S105 - what stands in place of one
TOO_LONG = "is too long to be judged"

_MOST_JUDGED = 300_000
_LONG_LINE = 20_000
_JUDGED_AT_ONCE = 20
_CARD_DIGITS = range(13, 20)
_DIGEST_DIGITS = frozenset({40, 64, 128})
"""Hexadecimal digits of a git commit, and of SHA-1, SHA-256 and SHA-512: no secrets by themselves."""
_SHORTEST_NUMBER = 4
"""Digits: a shorter number beside a secret's name is a switch or a count."""
_FOLDER = 12
"""Characters that a folder's name has at most on the average; in a key a slash is rarer."""
_CLASSES = (str.isupper, str.islower, str.isdigit)
_PRIVATE_USE = 0xF8F0
# The rules know what stands beside a name, and an address is no secret.
_UNUSED_DETECTORS = frozenset({"BasicAuthDetector", "IPPublicDetector", "PrivateKeyDetector"})
# Letters of full width are read as the plain ones: a name must not hide in them.
_WIDE = {0xFEE0 + code: code for code in range(0x21, 0x7F) if chr(code).isalnum() or chr(code) in "=_-"}
# Letters of other scripts that look like Latin ones; digits and signs that stand for letters.
_LOOK_ALIKE = str.maketrans(
    "аеорсухіјѕһԁԛԝьнкмтвαεικνορτυχАЕОРСХІЈЅВНКМТΑΒΕΖΗΙΚΜΝΟΡΤΥΧ’‘“”–—‑",
    "aeopcyxijshdqwbhkmtbaeikvoptuxAEOPCXIJSBHKMTABEZHIKMNOPTYX''\"\"---",
)
_LEET = str.maketrans("013457@$", "oieastas")
_MAY_BE_WARNED_OF = ("downloads", "safeguards")
_AROUND = 200


def clean(text: str) -> str:
    """Return the text in NFC without control, bidirectional and invisible characters; line breaks and tabs stay."""
    return unicodedata.normalize("NFC", strip_invisible(unicodedata.normalize("NFC", text)))


def safe(text: str) -> str:
    """Return a text without hidden characters and secrets."""
    return mask_secrets(clean(text))


# --- secrets ---


def mask_secrets(text: str) -> str:
    """Return a clean text with ``<secret>`` in place of every value that is, or may be, one. Lines stay lines.

    A line of more than 20,000 characters, which nobody reads, is one as a whole.
    """
    lines = text.translate(_WIDE).split("\n")
    text = "\n".join(line if len(line) <= _LONG_LINE else SECRET for line in lines)
    # Examples of documentation stand aside meanwhile, each as a sign that is neither a letter nor a digit.
    examples = {chr(_PRIVATE_USE + at): it for at, it in enumerate(_table()["examples"]) if it in text}
    for sign, example in examples.items():
        text = text.replace(example, sign)
    text = _apply("secrets", "no_value", text)
    text = _pattern("cookies").sub(_mask_cookies, text)
    for detector in _detectors() if _has_long_token(text) else ():
        for found in sorted(set(detector.analyze_string(text)), key=len, reverse=True):
            if found and len(found) > 5:
                text = text.replace(found, SECRET)
    text = _apply("named", "no_value_of_a_name", text)
    text = _mask_where("hex", text, lambda digits: len(digits) not in _DIGEST_DIGITS)
    text = _mask_where("card", _pattern("wrapped").sub(SECRET, text), _is_card)
    text = _mask_where("random", text, _is_random)
    for sign, example in examples.items():
        text = text.replace(sign, example)
    return text


def _has_long_token(text: str) -> bool:
    """Whether there may be a key of a known shape: none is shorter, or has letters or digits alone. Most texts need no detectors."""
    tokens = (found[0] for found in _pattern("long_token").finditer(text))
    return any(any(map(str.isdigit, it)) and any(map(str.isalpha, it)) for it in tokens)


def _apply(kind: str, judges: str, text: str) -> str:
    lowered = text.lower()
    for rule in _rules(kind):
        if pattern := rule.pattern_for(lowered):
            masked = pattern.sub(partial(_mask, rule.replacement, judges), text)
            if masked != text:
                text, lowered = masked, masked.lower()
    return text


def _mask_where(name: str, text: str, is_secret: Callable[[str], bool]) -> str:
    return _pattern(name).sub(lambda found: SECRET if is_secret(found[0]) else found[0], text)


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
    """Whether a value was taken out before, or is what stood before it: an anchor, a bracket, a quote."""
    rest = found.string[found.end() : found.end() + len(SECRET) + 1]
    return SECRET in value or rest.startswith(SECRET) or (value[0] in "&!" and SECRET in rest)


def _mask_cookies(found: re.Match[str]) -> str:
    pairs = (pair[1] for pair in _pattern("cookie").finditer(found[2]))
    has_value = any(SECRET not in value and not _is_no_value(value, "no_value_of_a_name") for value in pairs)
    return f"{found[1]}{SECRET}" if has_value else found[0]


def _is_about(name: str, value: str) -> bool:
    """Whether a name is that of what only has to do with a secret: ``max_tokens=4096``, ``secrets_dir=``."""
    is_number = value.rstrip(")]},;").isdigit() and (
        "tokens" in name.lower() or len(value) < _SHORTEST_NUMBER
    )
    return is_number or _pattern("about").search(name) is not None


def _is_no_value(value: str, kind: str) -> bool:
    """Whether it is a placeholder, a variable, a type, code or a word of a sentence rather than a value."""
    if any(_compiled(pattern).match(value) for pattern in _table()["no_value"]):
        return True
    is_certain = value[0] in "\"'`" and any(map(str.isdigit, value))
    return not is_certain and any(_compiled(pattern).match(value) for pattern in _table()[kind])


def _is_card(text: str) -> bool:
    """Whether it is a payment card's number, by its length and its check digit (Luhn)."""
    digits = [int(letter) for letter in text if letter.isdigit()]
    doubled = [2 * digit - 9 * (digit > 4) for digit in digits[-2::-2]]
    return len(digits) in _CARD_DIGITS and (sum(doubled) + sum(digits[-1::-2])) % 10 == 0


def _is_random(text: str) -> bool:
    """Whether it is a key, no name or path: it changes between capitals, small letters and digits all the time."""
    if text.count("/") * _FOLDER > len(text) or _pattern("jwt_header").fullmatch(text):
        return False
    kinds = [next((at for at, kind in enumerate(_CLASSES) if kind(letter)), 3) for letter in text]
    changes = sum(one != other for one, other in pairwise(kinds))
    return {0, 1, 2} <= set(kinds) and changes >= len(text) / 3


@cache
def _detectors() -> "Sequence[RegexBasedDetector]":
    # They take 0.2 s, and most texts need none.
    from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class  # heavy
    from detect_secrets.plugins.base import RegexBasedDetector  # heavy

    kinds: Iterable[type] = get_mapping_from_secret_type_to_class().values()
    used = (kind for kind in kinds if issubclass(kind, RegexBasedDetector))
    return tuple(kind() for kind in used if kind.__name__ not in _UNUSED_DETECTORS)


# --- what waits for a person ---


def reasons_to_hold(text: str) -> tuple[str, ...]:
    """Return why a text must wait for a person; empty where nothing speaks against handing it out.

    Reasons are sentences without a subject: ``turns off a safeguard``. A text of more than 300,000
    characters, or with a line of more than 20,000, always waits.
    """
    if len(text) > _MOST_JUDGED or max(map(len, text.split("\n"))) > _LONG_LINE:
        return (TOO_LONG,)
    views = _views(text)
    return tuple(it["reason"] for kind, it in _table()["reasons"].items() if _holds(kind, views))


def gives_orders(text: str) -> bool:
    """Whether a text gives orders to the agent that reads it: the first of the reasons."""
    return _holds("orders", _views(text))


def _views(text: str) -> set[str]:
    """Return the text as people read it, and with look-alike letters, spaced letters, entities and emphasis resolved."""
    plain = unicodedata.normalize("NFKC", clean(html.unescape(text)))
    resolved = _pattern("marks").sub("", plain.translate(_LOOK_ALIKE))
    return {
        plain,
        _pattern("spaced").sub(lambda found: re.sub(r"[ .*_·-]", "", found[0]), resolved),
        _pattern("leet").sub(lambda found: found[0].translate(_LEET), plain),
    }


def _holds(kind: str, views: Iterable[str]) -> bool:
    is_excused = _is_warned_of if kind in _MAY_BE_WARNED_OF else _is_quoted
    for view in views:
        lowered = view.lower()
        for rule in _rules(kind):
            pattern = rule.pattern_for(lowered)
            if pattern and not all(map(is_excused, pattern.finditer(view))):
                return True
    return False


def _around(found: re.Match[str]) -> tuple[str, str, str]:
    """Return what stands before a match in its sentence, behind it, and at the beginning of the next one."""
    text, start, end = found.string, found.start(), found.end()
    sentence_end = _pattern("sentence_end")
    before = sentence_end.split(text[max(0, start - _AROUND) : start])[-1]
    after = text[end : end + _AROUND]
    first = sentence_end.search(after)
    return (before, after[: first.start()], after[first.end() :]) if first else (before, after, "")


def _is_warned_of(found: re.Match[str]) -> bool:
    before, after, following = _around(found)
    return bool(
        _pattern("warns_before").search(before)
        or _pattern("warns_after").search(after)
        or _pattern("next_warns").match(following)
    )


def _is_quoted(found: re.Match[str]) -> bool:
    """Whether an order stands in quotes, in a sentence that speaks of texts which hold such."""
    before, after, _ = _around(found)
    sentence = f"{before}{found[0]}{after}"
    start, end = len(before), len(before) + len(found[0])
    quotes = [quote.span() for quote in _pattern("quoted").finditer(sentence)]
    is_inside = any(left < start and end < right for left, right in quotes)
    return is_inside and bool(_pattern("attacks").search(_pattern("quoted").sub("", sentence)))


def find_flagged(texts: Sequence[str]) -> set[int]:
    """Return the places of the texts that hold a secret or something hidden, or must wait for a person.

    Many are judged at once, which is many times cheaper, and one by one where there is something among them.
    """
    found: set[int] = set()
    for start in range(0, len(texts), _JUDGED_AT_ONCE):
        if _is_flagged("\n".join(texts[start : start + _JUDGED_AT_ONCE])):
            places = range(start, min(start + _JUDGED_AT_ONCE, len(texts)))
            found |= {at for at in places if _is_flagged(texts[at])}
    return found


def _is_flagged(text: str) -> bool:
    return safe(text) != text or bool(reasons_to_hold(text))


# --- the patterns ---


@cache
def _table() -> dict[str, Any]:
    text = files("kr").joinpath("guard.yaml").read_text(encoding="utf-8")
    table: dict[str, Any] = yaml.load(text, Loader=yaml.CBaseLoader)  # noqa: S506 - makes texts, lists and mappings alone
    return table


def _pattern(name: str) -> re.Pattern[str]:
    return _compiled(_table()["patterns"][name])


class _Rule:
    """A pattern, compiled once a text holds the texts that it needs: most texts hold those of few."""

    def __init__(self, text: str, replacement: str | None = None) -> None:
        self.replacement = replacement
        self._text = text
        self._required = required_texts(_expanded(text))

    def pattern_for(self, lowered: str) -> re.Pattern[str] | None:
        """Return the compiled pattern where it may match a text in small letters."""
        return _compiled(self._text) if may_match(lowered, self._required) else None


@cache
def _rules(kind: str) -> list[_Rule]:
    table = _table()
    if kind in table["reasons"]:
        return [_Rule(text) for text in table["reasons"][kind]["patterns"]]
    return [_Rule(text, replacement or None) for text, replacement in table[kind].items()]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(_expanded(pattern), re.IGNORECASE)


def _expanded(pattern: str) -> str:
    """Put the parts into a pattern: ``%name%``, which may hold others."""
    parts: dict[str, str] = _table()["parts"]
    while (whole := re.sub(r"%(\w+)%", lambda part: parts.get(part[1], part[0]), pattern)) != pattern:
        pattern = whole
    return pattern


_UNKNOWN = "\0"  # in place of what may match anything
_KNOWN_FROM = 0xE000  # in place of a group whose texts are known
_SET_OR_ESCAPE = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]", re.DOTALL)
_OPTIONAL = re.compile(r"[^\0](?:[?*]|\{0?,\d*\})|\{[\d,]*\}", re.DOTALL)
_GROUP = re.compile(r"\((\?[:=>]|\?<=|\?[a-zA-Z-]+:|\?P<\w+>)?([^()]*)\)([?*]|\{0?,\d*\})?")
_RUN = re.compile(r"[^\0.^$+?*\ue000-\uf8ff]+|[\ue000-\uf8ff]")
_WORDS = re.compile(r"\w[\w |-]*")
_LETTERS = frozenset(string.printable)


def may_match(lowered: str, required: Sequence[Sequence[Sequence[str]]]) -> bool:
    """Whether a pattern with such ``required_texts`` may match a text in small letters."""
    return any(all(any(map(lowered.__contains__, texts)) for texts in groups) for groups in required)


def required_texts(pattern: str) -> list[list[Sequence[str]]]:
    """Return for each alternative of a pattern groups of texts in small letters: every match of it holds one of each group."""
    known: dict[str, Sequence[str]] = {}

    def resolve(group: re.Match[str]) -> str:
        _kind, body, repeated = group.groups()
        if repeated or body.startswith("?"):
            return _UNKNOWN
        if "|" not in body:
            return f"{_UNKNOWN}{body}{_UNKNOWN}"
        sign = chr(_KNOWN_FROM + len(known))
        known[sign] = any_of(body)
        return sign

    def all_of(alternative: str) -> list[Sequence[str]]:
        texts = (known.get(run, (run.lower(),)) for run in _RUN.findall(alternative))
        return [it for it in texts if it and min(it, key=len) not in _LETTERS]  # a letter is in every text

    def any_of(alternatives: str) -> Sequence[str]:
        if _WORDS.fullmatch(alternatives):  # most are, and this is quicker
            return alternatives.lower().split("|")
        each = map(all_of, _OPTIONAL.sub(_UNKNOWN, alternatives).split("|"))
        best = [max(groups, key=lambda it: len(min(it, key=len)), default=()) for groups in each]
        return [] if () in best else [*chain.from_iterable(best)]

    plain = _SET_OR_ESCAPE.sub(_UNKNOWN, re.sub(r"^\(\?[a-z]+\)", "", pattern))
    while (resolved := _GROUP.sub(resolve, plain)) != plain:
        plain = resolved
    return [all_of(alternative) for alternative in _OPTIONAL.sub(_UNKNOWN, plain).split("|")]
