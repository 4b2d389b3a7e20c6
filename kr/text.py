"""Plain text: what must not come through from strangers, how it is compared, cut and measured, and the words of a need. Pure.

Nothing here knows what a word means. Small words are left out, inflections are cut off, and a short list of opposites keeps
"on" from being taken for "off".
"""

import re
import unicodedata
from collections.abc import Iterable
from difflib import get_close_matches
from functools import lru_cache
from typing import TypeAlias

Tree: TypeAlias = "dict[str, Tree] | list[Tree] | str | None"
"""Every scalar is the text that was written."""
KeyPath: TypeAlias = tuple[str | int, ...]

DEPTH = 32
"""How deep mappings and lists may be nested."""

CHARACTERS_PER_TOKEN = 4
"""What a token of a language model is taken for."""

# Patterns are texts: ``re`` keeps what it compiled, and a hit compiles only what it needs.

# Control characters, bidirectional controls, and what shows nothing: they hide instructions from people, reorder what is
# read, or repaint a terminal. Thirteen format characters that are seen, such as the Arabic number sign, are kept.
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
# Letters and marks that show nothing: grapheme joiner, Hangul fillers, Khmer vowels, variation selectors.
_INVISIBLE = {
    *"\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0",
    *map(chr, range(0xFE00, 0xFE10)),
    *map(chr, range(0xE0100, 0xE01F0)),
}
_LONGEST_NAME = 200


def strip_invisible(text: str) -> str:
    r"""Return the text without control, bidirectional and invisible characters and terminal escapes.

    Tabs stay; every kind of line break becomes ``\n``, so that all readers agree on where lines end.
    """
    if text.isascii() and text.isprintable():
        return text
    # Removing one may bring an emoji selector behind a sign that it does not belong to, which is harmless.
    return re.sub(_NOT_SHOWN, "", re.sub(_LINE_BREAK, "\n", re.sub(_TERMINAL, "", text)))


def has_invisible(text: str) -> bool:
    """Tell whether ``strip_invisible`` would take more from a text than its kinds of line breaks."""
    shown = re.sub(_LINE_BREAK, "\n", text)
    return strip_invisible(shown) != shown


def fold(text: str) -> str:
    """Return the form in which frameworks and topics are compared: NFKC, trimmed, case folded, without characters that show nothing.

    Folding twice changes nothing (Unicode's caseless match for identifiers, D145).
    """
    if text.isascii():
        return text.lower().strip()
    text = "".join(char for char in text if char not in _INVISIBLE and unicodedata.category(char) != "Cf")
    once = unicodedata.normalize("NFKC", unicodedata.normalize("NFD", text).casefold())
    return unicodedata.normalize("NFKC", once.casefold()).strip()


@lru_cache(maxsize=2048)
def tag_key(tag: str) -> str:
    """Return the form in which tags are compared: NFKC, case folded, ``-``, ``_`` and space alike."""
    return " ".join(fold(tag).replace("-", " ").replace("_", " ").split())


def nearest(name: str, known: Iterable[str], *, most: int = 1) -> list[str]:
    """Return the names most like ``name`` when folded, at most so many, the most alike first."""
    by_fold = {fold(one): one for one in sorted(known)}
    return [by_fold[found] for found in get_close_matches(fold(name[:_LONGEST_NAME]), by_fold, n=most)]


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Ask back with the nearest name; empty where none is near."""
    return "".join(f"did you mean {near}?" for near in nearest(name, known))


def digest(data: str | bytes) -> str:
    """Return the SHA-256 of a text's UTF-8, or of bytes, in hexadecimal; a lone surrogate of a careless caller counts too."""
    from hashlib import sha256  # heavy: OpenSSL

    return sha256(data.encode(errors="surrogatepass") if isinstance(data, str) else data).hexdigest()


def is_blank(text: str) -> bool:
    """Tell whether a text shows nothing: white space and invisible characters alone."""
    return not strip_invisible(text).strip()


def one_line(text: str, limit: int = 500) -> str:
    """Return the visible text as one trimmed line of at most ``limit`` characters, cut with ``…``."""
    line = re.sub(r"\s+", " ", strip_invisible(text[: 20 * limit])).strip()
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"


def columns(text: str) -> int:
    """Count the columns that ``text`` takes in a terminal: a CJK character two, combining marks none."""
    if text.isascii():
        return len(text)
    seen = (it for it in text if unicodedata.category(it) not in {"Mn", "Me", "Cf"})
    return sum(2 if unicodedata.east_asian_width(it) in {"W", "F"} else 1 for it in seen)


def counted(number: float, one: str, many: str | None = None) -> str:
    """Say how many: ``1 lease``, ``1,200 leases``, ``1.5 calls``; ``many`` where an ``s`` alone doesn't do."""
    return f"{number:,.15g} {one if number == 1 else many or one + 's'}"


def is_cjk(character: str) -> bool:
    """Tell whether a character is a Chinese, Japanese or Korean one, which is a word by itself."""
    return character.isalpha() and unicodedata.east_asian_width(character) == "W"


def parted(text: str) -> str:
    """Return a text with a space on both sides of every CJK character."""
    return text if text.isascii() else "".join(f" {it} " if is_cjk(it) else it for it in text)


def tokens_of(text: str) -> int:
    """Estimate how many tokens a text costs a language model: its characters / 4, a CJK character as one, rounded up.

    Held against one vendor's real tokenizer, 44 reports had 3.65 characters a token, and Chinese prose 1.2.
    """
    more = 0 if text.isascii() else sum(map(is_cjk, text))
    return -(-(len(text) + 3 * more) // CHARACTERS_PER_TOKEN)


def summary_of(text: str, most: int = 200) -> str:
    """Return the first sentences of a text on one line, cut at a sentence or a word within ``most`` characters."""
    line = " ".join(text.split())
    if len(line) <= most:
        return line
    end = max(line.rfind(mark, 0, most) for mark in (". ", "! ", "? ", "。"))
    if end >= most // 3:
        return line[: end + 1]
    return f"{line[: most - 1].rpartition(' ')[0] or line[: most - 1]}…"


_LONGEST = 4000
"""Characters of a text that are looked at."""
_WORD = r"[^\W_]+(?:_+[^\W_]+)*"
_HUMP = r"(?<=[a-z0-9])(?=[A-Z])"
_CODE = r"`([^`\n]{1,80})`|(?<!\w)(--?[A-Za-z][\w-]*)|(@?[A-Za-z_][\w.]*(?:[/-][\w.]+)*)(\(\))?"
_SIGN = r"(?i)(?<!\w)[a-z]\w{0,3}(?:\+\+|#)(?!\w)|[<>=!]=+|(?<=\s)[<>](?=\s)|&&|\|\|"
_SUFFIXES = ("ingly", "edly", "ings", "ing", "ied", "ies", "ed", "es", "s")
_SHORTEST_STEM = 3

SMALL = frozenset(
    """
    a an the this that these those some any each i me my mine we us our ours you your he she it its they them their one ones
    who whom whose which what when where why how whether am is are was were be been being do does did doing done
    have has had having can could may might must shall should will would ought and or but so if then than as of at by for to
    into with there here just also too very quite only really please let lets get gets got getting make makes made making
    use uses used using want wants need needs needed like way ways best right proper properly correct correctly
    possible example examples about via per im ive youre whats theres
    """.split()
)
"""Words that a topic can do without."""

DISTINGUISHING_WORDS = frozenset(
    "get gets got getting make makes made making use uses used using one why when".split()
)
"""Small words that tell needs apart all the same: to get a cookie is not to make one. A topic keeps them, and no search asks for them."""

NEGATING_WORDS = frozenset("not no never without dont cant on off in out up down before after from".split())
"""Small words that turn a need round: a topic always keeps them, and no search asks for them."""

_OPPOSITES = (
    "on off|enable disable|enabled disabled|allow deny|allow forbid|before after|in out|up down|with without|add remove|"
    "open close|start stop|show hide|first last|min max|minimum maximum|ascending descending|asc desc|increase decrease|"
    "lock unlock|encode decode|encrypt decrypt|serialize deserialize|compress decompress|escape unescape|attach detach|"
    "upload download|subscribe unsubscribe|mount unmount|pause resume|grant revoke|append prepend|expand collapse|"
    "inner outer|left right|horizontal vertical|inbound outbound|public private|required optional|lazy eager|"
    "lazily eagerly|top bottom|include exclude|keep strip|back forward|sync async|read write|sensitive insensitive|"
    "增加 减少|启用 禁用|打开 关闭|允许 禁止|开启 关闭|之前 之后|上传 下载|显示 隐藏|加密 解密"
)
_CONTRARY = frozenset(word for pair in _OPPOSITES.split("|") for word in pair.split())
_NEGATIONS = frozenset(
    "not no never without cannot dont doesnt isnt wont cant shouldnt non 不 没 無 无 非 别 勿".split()
)
_TURNED = _CONTRARY | _NEGATIONS
_CJK_CONTRARY = tuple(sorted((word for word in _CONTRARY if not word.isascii()), key=len, reverse=True))
_APOSTROPHES = str.maketrans("", "", "'’")


def tokens(text: str) -> list[str]:
    """Return the words in their order, folded; Chinese, Japanese and Korean characters one by one."""
    text = unicodedata.normalize("NFKC", text[:_LONGEST]).translate(_APOSTROPHES)
    return [token.casefold() for token in re.findall(_WORD, parted(text))]


@lru_cache(maxsize=16_384)
def stem(word: str) -> str:
    """Cut an English inflection off a folded word: ``validates`` and ``validating`` are ``validat``."""
    if not (word.isascii() and word.isalpha()) or word.endswith(("ss", "us", "is")):
        return word
    for suffix in _SUFFIXES:
        base = word.removesuffix(suffix)
        if base != word and len(base) >= _SHORTEST_STEM:
            if suffix in {"ied", "ies"}:
                return base + "i"
            doubled = base[-1] == base[-2] and base[-1] not in "aeiouls"
            return _ended(base[:-1] if doubled else base)
    return _ended(word)


def _ended(word: str) -> str:
    """Write the end of a stem as all inflections have it: ``retry``, ``retrying`` and ``retries`` are ``retri``."""
    if len(word) >= _SHORTEST_STEM and word[-1] == "y" and word[-2] not in "aeiou":
        return word[:-1] + "i"
    return word.removesuffix("e") if len(word) > _SHORTEST_STEM else word


def beginning(word: str) -> str:
    """Return what a folded word and its inflections begin with: what to look for within a text."""
    return stem(word).removesuffix("i") or word


def keywords(text: str) -> list[str]:
    """Return the stems that tell something, in their order; words that turn a need round are among them."""
    return [stem(token) for token in tokens(text) if token not in SMALL]


def identifiers(text: str) -> frozenset[str]:
    """Return the names of code in a text, folded: what is quoted, called, or written with a hump, underscore, digit or dot.

    Beside them options in their case (``-v`` is not ``-V``), comparisons, and languages with a sign (``C++``).
    """
    found = {sign.casefold() for sign in re.findall(_SIGN, text[:_LONGEST])}
    for quoted, option, name, call in re.findall(_CODE, text[:_LONGEST]):
        word = name.strip(".-/")
        if option:
            found.add(option)
        elif quoted:
            found.add(quoted.removesuffix("()").casefold())
        elif call or re.search(r"[a-z][A-Z]|[_\d/@]|\w\.\w", word):
            found.add(word.casefold())
    return frozenset(found)


def contraries(text: str) -> frozenset[str]:
    """Return the words of a text that have an opposite, and its negations: what must not differ where nobody judges."""
    folded = tokens(text)
    joined = "".join(token for token in folded if not token.isascii())
    chinese = {word for word in _CJK_CONTRARY if word in joined}
    plain = {stem(word) if word in _NEGATIONS else word for word in folded if word in _TURNED}
    return frozenset(plain | chinese)


def searchable(text: str) -> str:
    """Return a text as the search index takes it: the words of an identifier beside it, Chinese characters parted."""
    split = re.sub(_HUMP, " ", text).replace("_", " ")
    return parted(text if split == text else f"{split} {text}")


def search_words(*texts: str, without: frozenset[str] = frozenset()) -> list[str]:
    """Return the words to search for, each once: neither small ones, nor those that turn a need round, nor those of ``without``."""
    words = tokens(searchable(" ".join(texts)))
    skipped = SMALL | NEGATING_WORDS | without
    return [word for word in dict.fromkeys(words) if word not in skipped]


def _bare(word: str) -> str:
    return word.strip("\"'`“”‘’([{<>}]).,;:!?，。；：！？、（）").casefold()


_MOST_TOPIC = 120
_MOST_TAGS = 5


def derive_topic(framework: str, question: str) -> str:
    """Return a question without its asking words, articles and the framework's name: the topic of who gives none."""
    own = set(tokens(framework)) | {framework.casefold()}
    kept = []
    words = question[:_LONGEST].split()
    for word, following in zip(words, [*words[1:], ""], strict=False):
        bare, folded = _bare(word), _bare(word).translate(_APOSTROPHES)
        # "in vue" says where, and turns nothing round.
        is_of_name = bare == "in" and _bare(following) in own
        if folded and folded not in SMALL - DISTINGUISHING_WORDS and bare not in own and not is_of_name:
            kept.append(word.strip('"“”,;:!?，。；：！？、').rstrip("."))
    topic = " ".join(kept) or " ".join(question.split())
    if len(topic) > _MOST_TOPIC:
        topic = topic[:_MOST_TOPIC].rpartition(" ")[0] or topic[:_MOST_TOPIC]
    return topic or framework


def derive_tags(framework: str, topic: str) -> tuple[str, ...]:
    """Return the rarer words of a topic as tags: the longest, in their order; the framework's name where there is none."""
    own = frozenset(tokens(framework))
    words = [
        word
        for word in dict.fromkeys(tokens(topic))
        if word not in SMALL | NEGATING_WORDS | own and len(word) > 1
    ]
    longest = sorted(words, key=lambda word: -len(word))[:_MOST_TAGS]
    return tuple(word for word in words if word in longest) or (framework,)


CUT = "\n[… cut here]\n"

_FENCE = r" {0,3}(`{3,}|~{3,})"


def fenced(code: str, language: str = "") -> str:
    """Put code between fences that it does not hold itself; what begins with one stays as it is."""
    if re.match(r"\s*(?:`{3,}|~{3,})", code):
        return code
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall(r"`{3,}", code) or [""]))
    return f"{fence}{language}\n{code}\n{fence}"


def fence_after(line: str, opened: str) -> str:
    """Return the fence that is open behind a line, before which ``opened`` was ("" for none)."""
    match = re.match(_FENCE, line)
    if match is None:
        return opened
    if not opened:
        # Behind backticks that open a block no backtick may stand: it is code in a line then.
        return "" if match[1][0] == "`" and "`" in line[match.end() :] else match[1]
    closes = match[1].startswith(opened) and not line[match.end() :].strip()
    return "" if closes else opened


def sections(text: str) -> dict[str, str]:
    """Return the parts of a text under ``## name`` by their names, each with its heading."""
    found: dict[str, str] = {}
    opened = name = ""
    for line in text.splitlines(keepends=True):
        if not opened and line.startswith("## "):
            name = line[3:].strip()
            found[name] = ""
        opened = fence_after(line, opened)
        if name in found:
            found[name] += line
    return found


def section(text: str, name: str) -> str | None:
    """Return the section of that name, in any case; None where there is none."""
    folded = {heading.casefold(): part for heading, part in sections(text).items()}
    return folded.get(name.strip().casefold())


def fit(text: str, max_tokens: int) -> tuple[str, bool]:
    """Cut a text to ``max_tokens``, at a line's end or within a longer line; returns it and whether it was cut.

    A block of code that is cut through is closed.
    """
    room = max_tokens * CHARACTERS_PER_TOKEN
    if len(text) <= room:
        return text, False
    room = max(room - len(CUT), 0)
    kept, opened, size = "", "", 0
    for line in text[: room + 1].splitlines(keepends=True):
        after = fence_after(line, opened)
        if size + len(line) + (len(after) + 1 if after else 0) > room:
            break
        opened = after
        kept += line
        size += len(line)
    closed = kept + (f"{opened}\n" if opened else "")
    return (closed or text[:room]) + CUT, True


def show_path(path: KeyPath) -> str:
    """Write ``("a", "b", 0)`` as ``a.b[0]``, printable and bounded whatever the keys hold."""
    steps = (f"[{step}]" if isinstance(step, int) else f".{shown_key(step)}" for step in path)
    return "".join(steps).removeprefix(".")


def shown_key(key: str) -> str:
    """Write a key in one short printable word."""
    cut = key if len(key) <= 60 else key[:59] + "…"
    return cut if cut.isprintable() else ascii(cut)[1:-1]
