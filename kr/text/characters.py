"""Characters that must not come through from an untrusted text (SPEC 3.7).

Control characters and terminal escapes, bidirectional controls, and everything that shows nothing: such
characters hide instructions from people, reorder what they read, or repaint their terminal.

Thirteen format characters (general category Cf) are kept, since they are seen: the signs that are written
around or below numbers in Arabic, Syriac and Kaithi (U+0600 to U+0605, U+06DD, U+070F, U+0890, U+0891,
U+08E2, U+110BD, U+110CD).
"""

import re
import unicodedata
from functools import cache

# ECMA-48: control sequences (colours, cursor), command strings (titles, hyperlinks), other escapes.
_TERMINAL = (
    r"(?:\x1b\[|\x9b)[0-?]{0,64}[ -/]{0,8}[@-~]"
    # A string ends where another begins: a text of beginnings alone must not be read thousands of times.
    r"|(?:\x1b[\]PX^_]|[\x90\x98\x9d\x9e\x9f])[^\x07\x1b\x90\x98\x9c-\x9f\n]{0,4096}+(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]{0,8}[0-~]"
)
_LINE_BREAK = "\r\n|[\r\x0b\x0c\x85\u2028\u2029]"
_NOT_SHOWN = (
    "["
    "\x00-\x08\x0e-\x1f\x7f-\x9f"  # controls, but for tab and line breaks
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u2800\u3164\ufe00-\ufe0d\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff"
    "\U00016fe4\U0001d159"  # a filler and a note without a head: letters and symbols that are blank
    "\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\ud800-\udfff"  # lone surrogates, which no file can hold
    "]"
    # The two selectors of text and emoji style may follow a sign that has both styles; anywhere else, and
    # in a row, they can carry hidden data.
    "|(?<![#*0-9\u00a9\u00ae\u203c-\u3299\U0001f000-\U0001faff])[\ufe0e\ufe0f]"
)


def strip_invisible(text: str) -> str:
    r"""Return the text without control, bidirectional and invisible characters and terminal escapes.

    Tabs stay; every kind of line break becomes ``\n``, so that all readers agree on where lines end.
    """
    if text.isascii() and text.isprintable():
        return text  # most are, and to compile the patterns takes longer than all else that is done with a short text
    terminal, line_break, not_shown = _patterns()
    # Removing one may bring an emoji selector behind a sign that it does not belong to, which is harmless.
    return not_shown.sub("", line_break.sub("\n", terminal.sub("", text)))


@cache
def _patterns() -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    return re.compile(_TERMINAL), re.compile(_LINE_BREAK), re.compile(_NOT_SHOWN)


def one_line(text: str, limit: int = 500) -> str:
    """Return the visible text as one trimmed line of at most ``limit`` characters, cut with ``…``."""
    line = re.sub(r"\s+", " ", strip_invisible(text[: 20 * limit])).strip()
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


_WIDE = frozenset({"W", "F"})
_NO_WIDTH = frozenset({"Mn", "Me", "Cf"})


def columns(text: str) -> int:
    """Count the columns that ``text`` takes in a terminal: a CJK character two, combining marks none."""
    return len(text) if text.isascii() else sum(map(width_of, text))


def width_of(character: str) -> int:
    if character.isascii():
        return 1
    if unicodedata.category(character) in _NO_WIDTH:
        return 0
    return 2 if unicodedata.east_asian_width(character) in _WIDE else 1


_FILLERS = "\u115f\u1160\u2800\u3164\uffa0"
"""Letters and a symbol that are blank."""


def is_blank(text: str) -> bool:
    """Tell whether a text shows nothing: white space and invisible characters alone."""
    return all(it.isspace() or it in _FILLERS or unicodedata.category(it) == "Cf" for it in text)


def first_control(text: str) -> str | None:
    """Return the first control character or line break of a text."""
    return next((it for it in text if unicodedata.category(it) in {"Cc", "Zl", "Zp"}), None)
